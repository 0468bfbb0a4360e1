"""Averages, covariance and correlation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from ._arguments import arrays_of, in_own_name
from ._elementwise import clip
from ._kinds import COMPLEX, as_floats
from ._manipulation import broadcast_to, concat
from ._oarlock import Tensor, _axes, asarray, conj, matmul, real, reshape, result_type, sqrt
from ._shapes import atleast_2d
from ._statistics import any, mean, sum

if TYPE_CHECKING:
    from ._typing import ArrayLike, Axes, DtypeLike

__all__: list[str] = ["average", "corrcoef", "cov"]


@overload
def average(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    *,
    keepdims: bool = False,
) -> Tensor: ...
@overload
def average(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Tensor, Tensor]: ...
@in_own_name
def average(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The mean of elements with weights; with `returned`, also the sums of the weights.

    >>> ol.average([1.0, 3.0], weights=[3, 1]).item()
    1.5
    """
    x = asarray(x)
    if weights is None:
        made = mean(x, axis, keepdims=keepdims)
        total = broadcast_to(asarray(x.size / max(made.size, 1), dtype=made.dtype, device=x.device), made.shape)
        return (made, total) if returned else made
    x, weights = arrays_of(x, weights)
    if weights.shape != x.shape:
        axes = _axes(axis, x.ndim)
        if axis is None or weights.shape != tuple(x.shape[at] for at in axes):
            raise ValueError(f"expected weights of the shape {x.shape} or of the given axes, found the shape {weights.shape}")
        weights = reshape(weights, tuple(size if at in axes else 1 for at, size in enumerate(x.shape)))
    dtype = result_type(as_floats(x), as_floats(weights))
    weights = broadcast_to(weights.astype(dtype, copy=False), x.shape)
    total = sum(weights, axis, keepdims=keepdims)
    if bool(any(total == 0)):
        raise ZeroDivisionError("expected weights that do not add up to 0, found some that do")
    made = sum(x.astype(dtype, copy=False) * weights, axis, keepdims=keepdims) / total
    return (made, total) if returned else made


@in_own_name
def cov(
    x: ArrayLike,
    y: ArrayLike | None = None,
    /,
    rowvar: bool = True,
    bias: bool = False,
    correction: float | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    *,
    dtype: DtypeLike | None = None,
) -> Tensor:
    """The covariances of variables, which are the rows of a matrix, or its columns if `rowvar` is false, computed in `dtype`.

    `correction` is subtracted from the number of observations; by default 1, with `bias` 0. Each observation counts `fweights`
    times, and has one of the weights `aweights`.

    >>> ol.cov([1.0, 2.0, 3.0]).item()
    1.0
    """
    variables = _rows(x, rowvar)
    if y is not None:
        variables, others = arrays_of(variables, _rows(y, rowvar))
        variables = concat([variables, others])
    variables = as_floats(variables if dtype is None else variables.astype(dtype, copy=False))
    left = (0 if bias else 1) if correction is None else correction
    if fweights is None and aweights is None:
        count: float = variables.shape[1] - left
        distances = weighted = variables - mean(variables, 1, keepdims=True)
    else:
        weights = _weights_of(variables, fweights) * _weights_of(variables, aweights)
        total = float(sum(weights))
        count = total - left * (1 if aweights is None else float(sum(weights * _weights_of(variables, aweights))) / total)
        distances = variables - average(variables, 1, weights, keepdims=True)
        weighted = distances * weights
    made = matmul(distances, conj(weighted).T) / asarray(max(count, 0), dtype=real(variables).dtype, device=variables.device)
    return reshape(made, ()) if made.size == 1 else made


def _weights_of(variables: Tensor, weights: ArrayLike | None) -> Tensor:
    """A weight for each observation."""
    made = asarray(1 if weights is None else weights, device=variables.device).astype(real(variables).dtype)
    if weights is not None and made.shape != variables.shape[1:]:
        raise ValueError(f"expected a weight for each of {variables.shape[1]} observations, found the shape {made.shape}")
    if bool(any(made < 0)):
        raise ValueError("expected weights of at least 0, found some below")
    return broadcast_to(made, variables.shape[1:])


def _rows(x: ArrayLike, rowvar: bool) -> Tensor:
    made = asarray(x)
    if made.ndim > 2:
        raise ValueError(f"expected a vector or a matrix, found the shape {made.shape}")
    return made.T if made.ndim == 2 and not rowvar and made.shape[0] != 1 else atleast_2d(made)


@in_own_name
def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, /, rowvar: bool = True, *, dtype: DtypeLike | None = None
) -> Tensor:
    """The correlation coefficients of variables, which are the rows of a matrix, or its columns if `rowvar` is false.

    >>> ol.round(ol.corrcoef([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]), 3).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    covariances = cov(x, y, rowvar, dtype=dtype)
    if covariances.ndim == 0:
        return covariances / covariances
    size = covariances.shape[0]
    spread = sqrt(real(reshape(covariances, (-1,))[:: size + 1]))
    made = covariances / spread[:, None] / spread[None, :]
    if made.dtype in COMPLEX:
        return made
    return clip(made, -1, 1)
