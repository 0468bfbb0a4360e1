"""Elementwise functions of NumPy that are composed of others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._information import finfo
from ._kinds import COMPLEX, FLOATS, as_floats
from ._oarlock import Tensor, asarray, isinf, isnan, maximum, minimum, op, result_type, sin
from ._search import where

if TYPE_CHECKING:
    from ._typing import ArrayLike

__all__: list[str] = [
    "angle",
    "cbrt",
    "deg2rad",
    "divmod",
    "exp2",
    "fabs",
    "float_power",
    "fmax",
    "fmin",
    "fmod",
    "heaviside",
    "modf",
    "nan_to_num",
    "rad2deg",
    "sinc",
]


@in_own_name
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """The quotient that is rounded down, and the remainder.

    >>> [x.tolist() for x in ol.divmod([7, -7], 3)]
    [[2, -3], [1, 2]]
    """
    x1, x2 = arrays_of(x1, x2)
    return _oarlock.floor_divide(x1, x2), _oarlock.remainder(x1, x2)


@in_own_name
def fabs(x: ArrayLike, /) -> Tensor:
    """The absolute values, as floats.

    >>> ol.fabs([-1, 2]).tolist()
    [1.0, 2.0]
    """
    return _oarlock.abs(as_floats(asarray(x)))


@in_own_name
def modf(x: ArrayLike, /) -> tuple[Tensor, Tensor]:
    """The fractions and the whole parts, both with the sign of the number.

    >>> [x.tolist() for x in ol.modf([1.5, -0.25])]
    [[0.5, -0.25], [1.0, -0.0]]
    """
    x = as_floats(asarray(x))
    whole = _oarlock.trunc(x)
    return _oarlock.copysign(where(isinf(x), 0, x - whole), x), whole


@in_own_name
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The remainder of the quotient that is rounded towards 0, with the sign of the dividend.

    >>> ol.fmod([-3, 3], 2).tolist()
    [-1, 1]
    """
    x1, x2 = arrays_of(x1, x2)
    dtype = result_type(x1, x2)
    first, second = (x.astype(dtype, copy=False) for x in (x1, x2))
    return op("Mod", [first, second], {"fmod": 1})


@in_own_name
def fmax(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The larger of the two; the other if one is NaN.

    >>> ol.fmax([1.0, ol.nan], [0.0, 5.0]).tolist()
    [1.0, 5.0]
    """
    x1, x2 = arrays_of(x1, x2)
    return maximum(_or_other(x1, x2), _or_other(x2, x1))


@in_own_name
def fmin(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The smaller of the two; the other if one is NaN.

    >>> ol.fmin([1.0, ol.nan], [0.0, 5.0]).tolist()
    [0.0, 5.0]
    """
    x1, x2 = arrays_of(x1, x2)
    return minimum(_or_other(x1, x2), _or_other(x2, x1))


def _or_other(x: Tensor, other: Tensor) -> Tensor:
    return where(isnan(x), other, x) if x.dtype in FLOATS else x


@in_own_name
def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The first to the power of the second, as `float64` or `complex128`.

    >>> ol.float_power([2, 4], -1).tolist()
    [0.5, 0.25]
    """
    x1, x2 = arrays_of(x1, x2)
    dtype = result_type(x1.dtype, x2.dtype, _oarlock.float64)
    return _oarlock.pow(x1.astype(dtype, copy=False), x2.astype(dtype, copy=False))


@in_own_name
def cbrt(x: ArrayLike, /) -> Tensor:
    """The cube root.

    >>> ol.round(ol.cbrt([8.0, -27.0]), 3).tolist()
    [2.0, -3.0]
    """
    x = as_floats(asarray(x))
    if x.dtype in COMPLEX:
        raise TypeError(f"expected real numbers, found {x.dtype.name}\nhint: take a power of 1/3")
    wide = x.astype(_oarlock.float64, copy=False)
    root = _oarlock.copysign(_oarlock.pow(_oarlock.abs(wide), 1 / 3), wide)
    # A third is rounded: one step of Newton's makes up for it, where it has a number to divide by.
    square = root * root
    is_plain = (square > 0) & _oarlock.isfinite(square)
    root = where(is_plain, root - (root * square - wide) / (3 * where(is_plain, square, 1.0)), root)
    return root.astype(x.dtype, copy=False)


@in_own_name
def exp2(x: ArrayLike, /) -> Tensor:
    """2 to the power of each element.

    >>> ol.exp2([0.0, 3.0]).tolist()
    [1.0, 8.0]
    """
    return _oarlock.pow(2.0, as_floats(asarray(x)))


@in_own_name
def sinc(x: ArrayLike, /) -> Tensor:
    """`sin(pi * x) / (pi * x)`; 1 at 0.

    >>> ol.sinc(0.0).item()
    1.0
    """
    turned = as_floats(asarray(x)) * math.pi
    is_zero = turned == 0
    return where(is_zero, 1.0, sin(turned) / where(is_zero, 1.0, turned))


@in_own_name
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """0 where the first is negative, 1 where it is positive, the second where it is 0.

    >>> ol.heaviside([-1.0, 0.0, 2.0], 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    x1, x2 = (as_floats(x) for x in arrays_of(x1, x2))
    return where(isnan(x1), x1, where(x1 == 0, x2, (x1 > 0).astype(result_type(x1, x2))))


@in_own_name
def deg2rad(x: ArrayLike, /) -> Tensor:
    """Angles in degrees as radians.

    >>> ol.round(ol.deg2rad(180.0) / ol.pi).item()
    1.0
    """
    return as_floats(asarray(x)) * (math.pi / 180)


@in_own_name
def rad2deg(x: ArrayLike, /) -> Tensor:
    """Angles in radians as degrees.

    >>> ol.round(ol.rad2deg(ol.pi)).item()
    180.0
    """
    return as_floats(asarray(x)) * (180 / math.pi)


@in_own_name
def angle(x: ArrayLike, /, deg: bool = False) -> Tensor:
    """The angle of complex numbers, in radians or degrees; of real numbers, that of their sign.

    >>> ol.angle([1.0, -1.0], deg=True).tolist()
    [0.0, 180.0]
    """
    x = as_floats(asarray(x))
    made = _oarlock.atan2(_oarlock.imag(x), _oarlock.real(x))
    return made * (180 / math.pi) if deg else made


@in_own_name
def nan_to_num(
    x: ArrayLike, /, *, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """Numbers in place of NaN and of infinities, by default 0 and the largest numbers of the dtype.

    >>> ol.nan_to_num([1.0, ol.nan], nan=9.0).tolist()
    [1.0, 9.0]
    """
    x = asarray(x)
    if x.dtype in COMPLEX:
        parts = [nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in (_oarlock.real(x), _oarlock.imag(x))]
        return op("Complex", parts, domain="oarlock")
    if x.dtype not in FLOATS:
        return +x
    limits = finfo(x.dtype)
    made = where(isnan(x), nan, x)
    made = where(isinf(x) & (x > 0), limits.max if posinf is None else posinf, made)
    return where(isinf(x) & (x < 0), limits.min if neginf is None else neginf, made)
