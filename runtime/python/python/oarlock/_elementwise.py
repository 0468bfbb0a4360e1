"""Elementwise functions that consist of several ops."""

from __future__ import annotations

from . import _oarlock
from ._arguments import of_arrays
from ._information import iinfo, isdtype
from ._oarlock import Tensor, op, result_type


@of_arrays
def square(x: Tensor, /) -> Tensor:
    """The square of each element."""
    return _oarlock.multiply(x, x)


@of_arrays
def positive(x: Tensor, /) -> Tensor:
    """Each element unchanged."""
    # Not `+x`, which would accept plain numbers too.
    return Tensor.__pos__(x)


@of_arrays
def round(x: Tensor, /) -> Tensor:
    """Rounds to the nearest integer, ties to even; of complex numbers, both parts."""
    if x.dtype in (_oarlock.complex64, _oarlock.complex128):
        return op("Complex", [_oarlock.round(_oarlock.real(x)), _oarlock.round(_oarlock.imag(x))], domain="oarlock")
    return _oarlock.round(x)


@of_arrays
def clip(x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Limits each element to a range. The bounds of integers may exceed the range of the dtype."""
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
