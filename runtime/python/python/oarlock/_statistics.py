"""Reductions and cumulative sums."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._kinds import COMPLEX, as_floats, expect_real
from ._manipulation import broadcast_to, concat
from ._oarlock import Tensor, _axes, _axis, _numbers, _reduced, _summands, asarray, full, op, reshape

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._typing import ArrayLike, Axes, DtypeLike

__all__: list[str] = [
    "all",
    "any",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]


def _of_parts(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Applies a linear function to both parts of complex numbers."""
    return op("Complex", [function(_oarlock.real(x)), function(_oarlock.imag(x))], domain="oarlock")


@in_own_name
def max(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """The maximum.

    >>> ol.max([[1, 5], [7, 2]], axis=0).tolist()
    [7, 5]
    """
    x = asarray(x)
    return _reduced("ReduceMax", expect_real(x), axis, keepdims)


@in_own_name
def min(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """The minimum.

    >>> ol.min([[1, 5], [7, 2]], axis=0).tolist()
    [1, 2]
    """
    x = asarray(x)
    return _reduced("ReduceMin", expect_real(x), axis, keepdims)


@in_own_name
def ptp(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """The distance from the minimum to the maximum.

    >>> ol.ptp([1, 5, 3]).item()
    4
    """
    x = asarray(x)
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)


@in_own_name
def mean(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """The arithmetic mean.

    >>> ol.mean([[1.0, 2.0], [3.0, 4.0]], axis=1).tolist()
    [1.5, 3.5]
    """
    x = asarray(x)
    return _reduced("ReduceMean", as_floats(x), axis, keepdims)


@in_own_name
def sum(x: ArrayLike, /, axis: Axes | None = None, dtype: DtypeLike | None = None, *, keepdims: bool = False) -> Tensor:
    """The sum; 0 for no elements.

    >>> ol.sum([[1, 2], [3, 4]], axis=0).tolist()
    [4, 6]
    """
    x = asarray(x)
    return _reduced("ReduceSum", _summands(x, dtype), axis, keepdims)


@in_own_name
def prod(x: ArrayLike, /, axis: Axes | None = None, dtype: DtypeLike | None = None, *, keepdims: bool = False) -> Tensor:
    """The product; 1 for no elements.

    >>> ol.prod([2, 3, 4]).item()
    24
    """
    x = asarray(x)
    x = _summands(x, dtype)
    if x.dtype not in COMPLEX:
        return _reduced("ReduceProd", x, axis, keepdims)
    for at in _axes(axis, x.ndim):
        x = _halved(x, at)
    axes = _axes(axis, x.ndim)
    return x if keepdims else x[tuple(0 if at in axes else slice(None) for at in range(x.ndim))]


def _halved(x: Tensor, axis: int) -> Tensor:
    """Multiplies complex numbers along an axis down to one element, by halves."""
    front = (slice(None),) * axis
    if x.shape[axis] == 0:
        shape = tuple(1 if at == axis else size for at, size in enumerate(x.shape))
        return full(shape, 1, dtype=x.dtype, device=x.device)
    while (size := x.shape[axis]) > 1:
        half = size // 2
        product = x[(*front, slice(half))] * x[(*front, slice(half, 2 * half))]
        x = concat([product, x[(*front, slice(2 * half, None))]], axis=axis)
    return x


@in_own_name
def var(x: ArrayLike, /, axis: Axes | None = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance: the mean squared deviation from the mean.

    `correction` is subtracted from the number of elements; 1 gives the sample variance.

    >>> ol.var([1.0, 3.0], correction=1).item()
    2.0
    """
    x = asarray(x)
    if x.dtype in COMPLEX:
        raise TypeError(f"expected real numbers, found {x.dtype.name}\nhint: take the variance of the `real` and `imag` parts")
    x = as_floats(x)
    distances = x - _reduced("ReduceMean", x, axis, True)
    count = 1
    for at in _axes(axis, x.ndim):
        count *= x.shape[at]
    try:
        left = float(count - correction)
    except TypeError:
        raise TypeError(f"expected a number for `correction`, found {type(correction).__name__}") from None
    squares = _reduced("ReduceSum", distances * distances, axis, keepdims)
    return squares / asarray(builtins.max(left, 0.0), dtype=x.dtype, device=x.device)


@in_own_name
def std(x: ArrayLike, /, axis: Axes | None = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation.

    >>> ol.std([1.0, 3.0]).item()
    1.0
    """
    x = asarray(x)
    return _oarlock.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


@in_own_name
def cumulative_sum(
    x: ArrayLike, /, axis: int | None = None, dtype: DtypeLike | None = None, *, include_initial: bool = False
) -> Tensor:
    """The cumulative sum.

    >>> ol.cumulative_sum([1, 2, 3], include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    x = asarray(x)
    return _cumulative("CumSum", 0, x, axis, dtype, include_initial)


@in_own_name
def cumulative_prod(
    x: ArrayLike, /, axis: int | None = None, dtype: DtypeLike | None = None, *, include_initial: bool = False
) -> Tensor:
    """The cumulative product.

    >>> ol.cumulative_prod([1, 2, 3]).tolist()
    [1, 2, 6]
    """
    x = asarray(x)
    return _cumulative("CumProd", 1, x, axis, dtype, include_initial)


@in_own_name
def cumsum(x: ArrayLike, /, axis: int | None = None, dtype: DtypeLike | None = None) -> Tensor:
    """The cumulative sum along an axis, by default of the elements in one dimension.

    >>> ol.cumsum([1, 2, 3]).tolist()
    [1, 3, 6]
    """
    return cumulative_sum(_along(x, axis), axis, dtype)


@in_own_name
def cumprod(x: ArrayLike, /, axis: int | None = None, dtype: DtypeLike | None = None) -> Tensor:
    """The cumulative product along an axis, by default of the elements in one dimension.

    >>> ol.cumprod([1, 2, 3]).tolist()
    [1, 2, 6]
    """
    return cumulative_prod(_along(x, axis), axis, dtype)


def _along(x: ArrayLike, axis: int | None) -> Tensor:
    made = asarray(x)
    return reshape(made, (-1,)) if axis is None else made


def _cumulative(
    name: str, first: int, x: Tensor, axis: int | None, dtype: DtypeLike | None, include_initial: bool
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"expected an axis for an array of {x.ndim} dimensions, found none")
        axis = 0
    axis = _axis(axis, x.ndim)
    x = _summands(x, dtype)
    if x.dtype not in COMPLEX:
        made = op(name, [_wide(x), asarray(axis, device=x.device)]).astype(x.dtype, copy=False)
    elif name == "CumSum":
        made = _of_parts(lambda part: op(name, [part, asarray(axis, device=x.device)]), x)
    else:
        made = _scanned(x, axis)
    if include_initial:
        shape = tuple(1 if at == axis else size for at, size in enumerate(x.shape))
        made = concat([full(shape, first, dtype=made.dtype, device=made.device), made], axis=axis)
    return made


def _scanned(x: Tensor, axis: int) -> Tensor:
    """The cumulative product of complex numbers, with distances that double."""
    front, distance = (slice(None),) * axis, 1
    while distance < x.shape[axis]:
        first, later, before = (
            x[(*front, part)] for part in (slice(distance), slice(distance, None), slice(None, -distance))
        )
        x = concat([first, later * before], axis=axis)
        distance *= 2
    return x


def _wide(x: Tensor) -> Tensor:
    """Widens narrow integers to a dtype that kernels can add."""
    wide = {
        _oarlock.int8: _oarlock.int32,
        _oarlock.int16: _oarlock.int32,
        _oarlock.uint8: _oarlock.uint32,
        _oarlock.uint16: _oarlock.uint32,
    }
    return x.astype(wide.get(x.dtype, x.dtype), copy=False)


@in_own_name
def all(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Whether all elements are true or nonzero.

    >>> ol.all([[True, False], [True, True]], axis=1).tolist()
    [False, True]
    """
    x = asarray(x)
    return _truth("ReduceMin", 1, x, axis, keepdims)


@in_own_name
def any(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """Whether any element is true or nonzero.

    >>> ol.any([[False, False], [True, False]], axis=1).tolist()
    [False, True]
    """
    x = asarray(x)
    return _truth("ReduceMax", 0, x, axis, keepdims)


def _truth(name: str, of_none: int, x: Tensor, axis: Axes | None, keepdims: bool) -> Tensor:
    truths = _numbers(x).astype(_oarlock.bool, copy=False)
    axes = _axes(axis, x.ndim)
    if builtins.any(x.shape[at] == 0 for at in axes):
        kept = [1 if at in axes else size for at, size in enumerate(x.shape) if keepdims or at not in axes]
        return full(tuple(kept), bool(of_none), device=x.device)
    return _reduced(name, truths.astype(_oarlock.uint8), axis, keepdims).astype(_oarlock.bool)


@in_own_name
def count_nonzero(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements.

    >>> ol.count_nonzero([0, 5, 6]).item()
    2
    """
    x = asarray(x)
    truths = _numbers(x).astype(_oarlock.bool, copy=False)
    return _reduced("ReduceSum", truths.astype(_oarlock.int64), axis, keepdims)


@in_own_name
def diff(
    x: ArrayLike, /, n: int = 1, axis: int = -1, *, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Tensor:
    """The differences of adjacent elements, taken `n` times.

    >>> ol.diff([1, 4, 9]).tolist()
    [3, 5]
    """
    x = asarray(x)
    at = _axis(axis, x.ndim)
    x = concat([_beside(x, part, at) for part in (prepend, x, append) if part is not None], axis=at)
    front = (slice(None),) * at
    if n < 0:
        raise ValueError(f"expected differences to be taken 0 times or more, found {n}")
    # Each round has one element less, and no elements have no differences.
    for _ in range(n if n < x.shape[at] else x.shape[at]):
        after, before = x[(*front, slice(1, None))], x[(*front, slice(None, -1))]
        x = after - before if x.dtype != _oarlock.bool else _oarlock.not_equal(after, before)
    return x


def _beside(x: Tensor, part: ArrayLike, axis: int) -> Tensor:
    """What is put before or behind an array; a number stands for one slice of it."""
    _, made = arrays_of(x, part)
    return made if made.ndim else broadcast_to(made, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
