"""Lengths, angles and distances of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._arguments import in_own_name
from .._manipulation import broadcast_arrays
from .._oarlock import Tensor, _axis, maximum
from .._statistics import sum as total
from ..linalg import vector_norm
from ._operands import floats, one_of_floats

if TYPE_CHECKING:
    from .._typing import ArrayLike

__all__: list[str] = ["cdist", "cosine_similarity", "normalize", "pairwise_distance"]


@in_own_name
def normalize(input: ArrayLike, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """The vectors along an axis, divided by their `p`-norm, or by `eps` if that is greater."""
    x = one_of_floats(input)
    return x / maximum(vector_norm(x, axis=_axis(dim, x.ndim), keepdims=True, ord=p), eps)


@in_own_name
def cosine_similarity(x1: ArrayLike, x2: ArrayLike, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosines of the angles between the vectors along an axis, whose lengths count as `eps` at least."""
    first, second = broadcast_arrays(*floats(x1, x2))
    axis = _axis(dim, first.ndim)
    first, second = (x / maximum(vector_norm(x, axis=axis, keepdims=True), eps) for x in (first, second))
    return total(first * second, axis=axis)


@in_own_name
def pairwise_distance(x1: ArrayLike, x2: ArrayLike, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The `p`-norms of `x1 - x2 + eps` along the last axis."""
    first, second = floats(x1, x2)
    return vector_norm(first - second + eps, axis=-1, keepdims=keepdim, ord=p)


@in_own_name
def cdist(x1: ArrayLike, x2: ArrayLike, p: float = 2.0) -> Tensor:
    """The distance of each row of a matrix from each row of another, in the `p`-norm.

    The differences of all pairs are in memory at once.
    """
    first, second = floats(x1, x2)
    if first.ndim < 2 or second.ndim < 2 or first.shape[-1] != second.shape[-1]:
        raise ValueError(f"expected matrices with as many columns, found the shapes {first.shape} and {second.shape}")
    if p < 0:
        raise ValueError(f"expected a norm of at least 0 for `p`, found {p}")
    return vector_norm(first[..., :, None, :] - second[..., None, :, :], axis=-1, ord=p)
