"""Attention."""

from __future__ import annotations

from math import prod, sqrt
from typing import TYPE_CHECKING

from .. import _oarlock
from .._arguments import arrays_of, in_own_name
from .._creation import tril
from .._manipulation import broadcast_shapes, broadcast_to, repeat
from .._oarlock import Tensor, matmul, ones, op, reshape
from .._search import where
from ._random import dropout
from ._operands import floats
from ._softmax import softmax

if TYPE_CHECKING:
    from .._typing import ArrayLike

__all__: list[str] = ["scaled_dot_product_attention"]


@in_own_name
def scaled_dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    attn_mask: ArrayLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """For each query, the mean of the values, weighted by the `softmax` of the scaled products of the query and the keys.

    The last two axes are those of the places and of the features, and the one before is that of the heads. A mask is true where a
    value takes part, or is added to the products. With `is_causal`, a value takes part if it is not behind the query. With
    `enable_gqa`, as many heads of the query share one of the keys and values as their numbers say.
    """
    q, k, v = floats(query, key, value)
    for name, each in (("query", q), ("key", k), ("value", v)):
        if each.ndim < 2:
            raise ValueError(f"expected axes of places and features for `{name}`, found the shape {each.shape}")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(
            "expected queries and keys of the same features, and as many keys as values, "
            f"found the shapes {q.shape}, {k.shape} and {v.shape}"
        )
    if is_causal and attn_mask is not None:
        raise ValueError("expected no mask with `is_causal`, found both\nhint: combine them in one mask")
    heads = _heads(q, k, v) if enable_gqa else None
    if heads:
        k, v = (repeat(each, heads, axis=-3) if each.shape[-3] != q.shape[-3] else each for each in (k, v))
    lead = broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    factor = 1 / sqrt(q.shape[-1]) if scale is None and q.shape[-1] else scale or 0.0
    mask = None if attn_mask is None else _mask(attn_mask, q, (*lead, q.shape[-2], k.shape[-2]))
    if dropout_p:
        return _composed(q, k, v, mask, dropout_p, is_causal, factor)
    q, k, v = (_four_axes(each, lead) for each in (q, k, v))
    if mask is not None:
        mask = _four_axes(mask, lead)
    made = op("Attention", [q, k, v, mask], {"is_causal": int(is_causal), "scale": float(factor)})
    return reshape(made, (*lead, *made.shape[-2:]))


def _heads(q: Tensor, k: Tensor, v: Tensor) -> int:
    """How many heads of the query share one."""
    counts = [each.shape[-3] if each.ndim > 2 else 0 for each in (q, k, v)]
    if not counts[1] or counts[1] != counts[2] or counts[0] % counts[1]:
        raise ValueError(f"expected heads of the query that share those of keys and values evenly, found {counts}")
    return counts[0] // counts[1]


def _mask(given: ArrayLike, q: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The mask, which fits the products."""
    mask = arrays_of(q, given)[1]
    if mask.dtype != _oarlock.bool:
        mask = mask.astype(q.dtype, copy=False)
    if broadcast_shapes(mask.shape, shape) != shape:
        raise ValueError(f"expected a mask that broadcasts to {shape}, found the shape {mask.shape}")
    return broadcast_to(mask, shape)


def _four_axes(x: Tensor, lead: tuple[int, ...]) -> Tensor:
    """The array with axes for the batch, the heads, the places and the features, which the op expects."""
    wide = broadcast_to(x, (*lead, *x.shape[-2:]))
    return reshape(wide, (prod(lead[:-1]), lead[-1] if lead else 1, *x.shape[-2:]))


def _composed(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, is_causal: bool, factor: float) -> Tensor:
    """Attention of several ops, because the op has no dropout."""
    products = matmul(q, k.mT) * factor
    if is_causal:
        mask = tril(ones(products.shape[-2:], dtype=_oarlock.bool, device=q.device))
    if mask is not None:
        products = where(mask, products, -float("inf")) if mask.dtype == _oarlock.bool else products + mask
    return matmul(dropout(softmax(products, -1), dropout_p), v)
