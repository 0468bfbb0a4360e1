"""Kinds of dtypes, for functions that treat them differently."""

from __future__ import annotations

from . import _oarlock
from ._information import isdtype
from ._oarlock import Tensor, _numbers

FLOATS = (_oarlock.float16, _oarlock.bfloat16, _oarlock.float32, _oarlock.float64)
COMPLEX = (_oarlock.complex64, _oarlock.complex128)


def as_floats(x: Tensor) -> Tensor:
    """The array itself if it has real or complex numbers with a fraction, else as `float32`."""
    return x if x.dtype in FLOATS + COMPLEX else _numbers(x).astype(_oarlock.float32)


def as_exact_floats(x: Tensor) -> Tensor:
    """The same, but integers become `float64`, which tells more of them apart."""
    return x if x.dtype in FLOATS + COMPLEX else _numbers(x).astype(_oarlock.float64)


def whole_numbers(x: Tensor) -> Tensor:
    """The array as `int64`, if it has whole numbers. An empty list has no numbers that would tell its dtype."""
    if x.size and not isdtype(x.dtype, "integral"):
        raise TypeError(f"expected whole numbers as indices, found {x.dtype.name}")
    return x.astype(_oarlock.int64, copy=False)


def expect_real(x: Tensor) -> Tensor:
    """The array, unless its numbers are complex, which have no order."""
    if x.dtype in COMPLEX:
        raise TypeError(f"expected real numbers, found {x.dtype.name}\nhint: take the `real` or `imag` part first")
    return x
