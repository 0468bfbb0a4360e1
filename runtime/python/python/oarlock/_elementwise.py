"""Elementwise functions that consist of several ops."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._information import iinfo, isdtype
from ._oarlock import Tensor, asarray, op, result_type

if TYPE_CHECKING:
    from ._typing import ArrayLike

__all__: list[str] = [
    "clip",
    "positive",
    "round",
    "square",
]


@in_own_name
def square(x: ArrayLike, /) -> Tensor:
    """The square of each element.

    >>> ol.square([1, -2, 3]).tolist()
    [1, 4, 9]
    """
    x = asarray(x)
    return _oarlock.multiply(x, x)


@in_own_name
def positive(x: ArrayLike, /) -> Tensor:
    """Each element unchanged.

    >>> ol.positive([1, -2]).tolist()
    [1, -2]
    """
    return +asarray(x)


@in_own_name
def round(x: ArrayLike, /, decimals: int = 0) -> Tensor:
    """Rounds to the nearest number with so many decimals, ties to even; of complex numbers, both parts. Below 0, `decimals` is
    the number of digits before the point that become zeros.

    >>> ol.round([0.5, 1.5, 2.7]).tolist()
    [0.0, 2.0, 3.0]
    """
    x = asarray(x)
    if x.dtype in (_oarlock.complex64, _oarlock.complex128):
        return op("Complex", [round(part, decimals) for part in (_oarlock.real(x), _oarlock.imag(x))], domain="oarlock")
    if isdtype(x.dtype, "integral"):
        return x if decimals >= 0 else _rounded_down(x, 10**-decimals)
    if decimals == 0 or x.dtype == _oarlock.bool:
        return _oarlock.round(x)
    factor = 10.0 ** builtins.abs(decimals)
    return _oarlock.round(x * factor) / factor if decimals > 0 else _oarlock.round(x / factor) * factor


def _rounded_down(x: Tensor, unit: int) -> Tensor:
    """Integers rounded to multiples of a unit, ties to even multiples."""
    if unit > iinfo(x.dtype).max:
        return x * 0
    whole = x // unit
    rest, half = x - whole * unit, unit // 2
    is_odd = (whole & 1) == 1
    goes_up = _oarlock.logical_or(rest > half, _oarlock.logical_and(rest == half, is_odd))
    return (whole + goes_up.astype(x.dtype)) * unit


@in_own_name
def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    """Limits each element to a range. The bounds of integers may exceed the range of the dtype.

    >>> ol.clip([-1, 5, 20], 0, 10).tolist()
    [0, 5, 10]
    """
    x = asarray(x)
    min, max = (each if each is None or isinstance(each, (int, float)) else arrays_of(x, each)[1] for each in (min, max))
    dtype = result_type(x, *(bound for bound in (min, max) if bound is not None))
    x = +x.astype(dtype, copy=False)
    if isdtype(dtype, "integral"):
        least, greatest = iinfo(dtype).min, iinfo(dtype).max
        if isinstance(min, int) and min <= least:
            min = None
        if isinstance(max, int) and max >= greatest:
            max = None
        for bound in (min, max):
            if isinstance(bound, int) and not least <= bound <= greatest:
                raise OverflowError(
                    f"`clip` expected a result that {dtype} has, found that all of it is to be {bound}\n"
                    "hint: convert the array with `astype` to a wider dtype first"
                )
    if min is not None:
        x = _oarlock.maximum(x, min)
    if max is not None:
        x = _oarlock.minimum(x, max)
    return x
