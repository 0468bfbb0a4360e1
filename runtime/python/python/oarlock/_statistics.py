"""Reductions and cumulative sums."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from . import _oarlock
from ._arguments import of_arrays
from ._manipulation import concat
from ._oarlock import Tensor, _axes, _axis, _numbers, _reduced, _summands, asarray, full, op

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._typing import Axes, DtypeLike

_FLOATS = (_oarlock.float16, _oarlock.bfloat16, _oarlock.float32, _oarlock.float64)
_COMPLEX = (_oarlock.complex64, _oarlock.complex128)


def _of_parts(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Applies a linear function to both parts of complex numbers."""
    return op("Complex", [function(_oarlock.real(x)), function(_oarlock.imag(x))], domain="oarlock")


@of_arrays
def max(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The maximum."""
    return _extreme("ReduceMax", x, axis, keepdims)


@of_arrays
def min(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The minimum."""
    return _extreme("ReduceMin", x, axis, keepdims)


def _extreme(name: str, x: Tensor, axis: Axes | None, keepdims: bool) -> Tensor:
    if x.dtype in _COMPLEX:
        raise TypeError(f"expected real numbers, found {x.dtype.name}\nhint: take the `real` or `imag` part first")
    return _reduced(name, x, axis, keepdims)


@of_arrays
def mean(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean."""
    return _reduced("ReduceMean", _as_floats(x), axis, keepdims)


@of_arrays
def sum(x: Tensor, /, *, axis: Axes | None = None, dtype: DtypeLike | None = None, keepdims: bool = False) -> Tensor:
    """The sum; 0 for no elements."""
    return _reduced("ReduceSum", _summands(x, dtype), axis, keepdims)


@of_arrays
def prod(x: Tensor, /, *, axis: Axes | None = None, dtype: DtypeLike | None = None, keepdims: bool = False) -> Tensor:
    """The product; 1 for no elements."""
    x = _summands(x, dtype)
    if x.dtype not in _COMPLEX:
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


@of_arrays
def var(x: Tensor, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance: the mean squared deviation from the mean.

    `correction` is subtracted from the number of elements; 1 gives the sample variance.
    """
    if x.dtype in _COMPLEX:
        raise TypeError(f"expected real numbers, found {x.dtype.name}\nhint: take the variance of the `real` and `imag` parts")
    x = _as_floats(x)
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


@of_arrays
def std(x: Tensor, /, *, axis: Axes | None = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation."""
    return _oarlock.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


@of_arrays
def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: DtypeLike | None = None, include_initial: bool = False
) -> Tensor:
    """The cumulative sum."""
    return _cumulative("CumSum", 0, x, axis, dtype, include_initial)


@of_arrays
def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: DtypeLike | None = None, include_initial: bool = False
) -> Tensor:
    """The cumulative product."""
    return _cumulative("CumProd", 1, x, axis, dtype, include_initial)


def _cumulative(
    name: str, first: int, x: Tensor, axis: int | None, dtype: DtypeLike | None, include_initial: bool
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"expected an axis for an array of {x.ndim} dimensions, found none")
        axis = 0
    axis = _axis(axis, x.ndim)
    x = _summands(x, dtype)
    if x.dtype not in _COMPLEX:
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


@of_arrays
def all(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Whether all elements are true or nonzero."""
    return _truth("ReduceMin", 1, x, axis, keepdims)


@of_arrays
def any(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """Whether any element is true or nonzero."""
    return _truth("ReduceMax", 0, x, axis, keepdims)


def _truth(name: str, of_none: int, x: Tensor, axis: Axes | None, keepdims: bool) -> Tensor:
    truths = _numbers(x).astype(_oarlock.bool, copy=False)
    axes = _axes(axis, x.ndim)
    if builtins.any(x.shape[at] == 0 for at in axes):
        kept = [1 if at in axes else size for at, size in enumerate(x.shape) if keepdims or at not in axes]
        return full(tuple(kept), bool(of_none), device=x.device)
    return _reduced(name, truths.astype(_oarlock.uint8), axis, keepdims).astype(_oarlock.bool)


@of_arrays
def count_nonzero(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements."""
    truths = _numbers(x).astype(_oarlock.bool, copy=False)
    return _reduced("ReduceSum", truths.astype(_oarlock.int64), axis, keepdims)


@of_arrays
def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of adjacent elements, taken `n` times."""
    at = _axis(axis, x.ndim)
    x = concat([part for part in (prepend, x, append) if part is not None], axis=at)
    front = (slice(None),) * at
    if n < 0:
        raise ValueError(f"expected differences to be taken 0 times or more, found {n}")
    # Each round has one element less, and no elements have no differences.
    for _ in range(n if n < x.shape[at] else x.shape[at]):
        after, before = x[(*front, slice(1, None))], x[(*front, slice(None, -1))]
        x = after - before if x.dtype != _oarlock.bool else _oarlock.not_equal(after, before)
    return x


def _as_floats(x: Tensor) -> Tensor:
    return x if x.dtype in _FLOATS + _COMPLEX else _numbers(x).astype(_oarlock.float32)
