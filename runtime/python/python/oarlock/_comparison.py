"""Functions that compare arrays, and that tell kinds of numbers apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._kinds import COMPLEX, FLOATS, as_exact_floats, expect_real
from ._manipulation import broadcast_shapes
from ._oarlock import Tensor, abs, asarray, equal, isfinite, isinf, isnan, logical_and, logical_not, signbit
from ._search import where
from ._statistics import all

if TYPE_CHECKING:
    from ._typing import ArrayLike

__all__: list[str] = [
    "allclose",
    "array_equal",
    "array_equiv",
    "iscomplex",
    "iscomplexobj",
    "isclose",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "isscalar",
]


@in_own_name
def isclose(
    x1: ArrayLike, x2: ArrayLike, /, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether elements differ by at most `atol + rtol * abs(x2)`. Infinities are close to themselves only.

    >>> ol.isclose([1.0, 2.0], [1.0, 2.1]).tolist()
    [True, False]
    """
    x1, x2 = (as_exact_floats(x) for x in arrays_of(x1, x2, is_widened=True))
    both_finite = logical_and(isfinite(x1), isfinite(x2))
    near = abs(x1 - x2) <= atol + rtol * abs(x2)
    made = where(both_finite, near, equal(x1, x2))
    return made | (isnan(x1) & isnan(x2)) if equal_nan else made


@in_own_name
def allclose(
    x1: ArrayLike, x2: ArrayLike, /, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements are close to each other, as `isclose` says.

    >>> ol.allclose([1.0, 2.0], [1.0, 2.000001])
    True
    """
    return bool(all(isclose(x1, x2, rtol, atol, equal_nan)))


@in_own_name
def array_equal(x1: ArrayLike, x2: ArrayLike, /, equal_nan: bool = False) -> bool:
    """Whether two arrays have the same shape and equal elements.

    >>> ol.array_equal([1, 2], [1, 2])
    True
    """
    x1, x2 = arrays_of(x1, x2, is_widened=True)
    if x1.shape != x2.shape:
        return False
    made = equal(x1, x2)
    if equal_nan and x1.dtype in FLOATS + COMPLEX and x2.dtype in FLOATS + COMPLEX:
        made = made | (isnan(x1) & isnan(x2))
    return bool(all(made))


@in_own_name
def array_equiv(x1: ArrayLike, x2: ArrayLike, /) -> bool:
    """Whether two arrays have equal elements once they are broadcast to one shape.

    >>> ol.array_equiv([1, 1], [[1, 1], [1, 1]])
    True
    """
    x1, x2 = arrays_of(x1, x2, is_widened=True)
    try:
        broadcast_shapes(x1.shape, x2.shape)
    except ValueError:
        return False
    return bool(all(equal(x1, x2)))


@in_own_name
def isneginf(x: ArrayLike, /) -> Tensor:
    """Whether each element is negative infinity.

    >>> ol.isneginf([-ol.inf, ol.inf, 0]).tolist()
    [True, False, False]
    """
    return _infinite(x, negative=True)


@in_own_name
def isposinf(x: ArrayLike, /) -> Tensor:
    """Whether each element is positive infinity.

    >>> ol.isposinf([-ol.inf, ol.inf, 0]).tolist()
    [False, True, False]
    """
    return _infinite(x, negative=False)


def _infinite(x: ArrayLike, *, negative: bool) -> Tensor:
    made = as_exact_floats(expect_real(asarray(x)))
    return logical_and(isinf(made), signbit(made) if negative else logical_not(signbit(made)))


@in_own_name
def iscomplex(x: ArrayLike, /) -> Tensor:
    """Whether each element has an imaginary part other than 0.

    >>> ol.iscomplex([1 + 0j, 1 + 2j]).tolist()
    [False, True]
    """
    return _oarlock.imag(asarray(x)) != 0


@in_own_name
def isreal(x: ArrayLike, /) -> Tensor:
    """Whether each element has no imaginary part other than 0.

    >>> ol.isreal([1 + 0j, 1 + 2j]).tolist()
    [True, False]
    """
    return _oarlock.imag(asarray(x)) == 0


@in_own_name
def iscomplexobj(x: ArrayLike, /) -> bool:
    """Whether the dtype of an array is complex.

    >>> ol.iscomplexobj([1 + 0j])
    True
    """
    return asarray(x).dtype in COMPLEX


@in_own_name
def isrealobj(x: ArrayLike, /) -> bool:
    """Whether the dtype of an array is not complex.

    >>> ol.isrealobj([1.0])
    True
    """
    return asarray(x).dtype not in COMPLEX


def isscalar(x: object, /) -> bool:
    """Whether an object is a number or text of Python or NumPy, and no array.

    >>> ol.isscalar(3.1), ol.isscalar([3.1])
    (True, False)
    """
    if isinstance(x, (bool, int, float, complex, str, bytes)):
        return True
    # Scalars of NumPy have what arrays have, but nothing can be written to them.
    return getattr(x, "shape", None) == () and hasattr(x, "dtype") and not hasattr(x, "__setitem__")
