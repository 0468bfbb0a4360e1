"""Polynomials, with the coefficient of the highest power first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._calculus import convolve
from ._creation import arange, eye
from ._information import finfo
from ._kinds import as_exact_floats, as_floats
from ._manipulation import broadcast_to, concat
from ._oarlock import Tensor, asarray, reshape, result_type, sqrt, zeros
from ._search import nonzero
from ._sequences import vander
from ._statistics import any, sum

if TYPE_CHECKING:
    from ._typing import ArrayLike

__all__: list[str] = ["polyadd", "polyder", "polyfit", "polyint", "polymul", "polysub", "polyval", "roots"]


@in_own_name
def polyval(p: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The values of a polynomial.

    >>> ol.polyval([2, 1], [0, 1, 2]).tolist()
    [1, 3, 5]
    """
    coefficients, x = arrays_of(p, x)
    if coefficients.ndim != 1:
        raise ValueError(f"expected a vector of coefficients, found the shape {coefficients.shape}")
    made = zeros(x.shape, dtype=result_type(coefficients, x), device=x.device)
    for at in range(coefficients.size):
        made = made * x + coefficients[at]
    return made


@in_own_name
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, /, *, w: ArrayLike | None = None) -> Tensor:
    """The coefficients of the polynomial of a degree that has the least squares of distances from some points, each multiplied by a
    weight `w`.

    >>> ol.round(ol.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1), 3).tolist()
    [2.0, 1.0]
    """
    # Loaded on first use.
    from .linalg import least_squares

    x, y = arrays_of(x, y)
    if x.ndim != 1 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0] or x.size == 0:
        raise ValueError(f"expected as many coordinates as values, found the shapes {x.shape} and {y.shape}")
    if deg < 0:
        raise ValueError(f"expected a degree of at least 0, found {deg}")
    dtype = result_type(as_floats(x), as_floats(y))
    # High powers need more digits than most dtypes have.
    powers = vander(as_exact_floats(x).astype(_oarlock.float64), deg + 1)
    values = y.astype(_oarlock.float64)
    if w is not None:
        weights = asarray(w, device=x.device).astype(_oarlock.float64)
        if weights.shape != x.shape:
            raise ValueError(f"expected a weight for each of {x.size} points, found the shape {weights.shape}")
        powers = powers * weights[:, None]
        values = values * (weights if y.ndim == 1 else weights[:, None])
    scale = sqrt(sum(powers * powers, 0))
    solved, *_ = least_squares(powers / scale, values, x.size * finfo(_oarlock.float64).eps)
    return (solved / (scale if y.ndim == 1 else scale[:, None])).astype(dtype)


@in_own_name
def polyadd(a1: ArrayLike, a2: ArrayLike, /) -> Tensor:
    """The sum of two polynomials.

    >>> ol.polyadd([1, 2], [3, 4, 5]).tolist()
    [3, 5, 7]
    """
    first, second = _of_one_degree(a1, a2)
    return first + second


@in_own_name
def polysub(a1: ArrayLike, a2: ArrayLike, /) -> Tensor:
    """The difference of two polynomials.

    >>> ol.polysub([1, 2], [3, 4, 5]).tolist()
    [-3, -3, -3]
    """
    first, second = _of_one_degree(a1, a2)
    return first - second


@in_own_name
def polymul(a1: ArrayLike, a2: ArrayLike, /) -> Tensor:
    """The product of two polynomials.

    >>> ol.polymul([1, 2], [1, -2]).tolist()
    [1, 0, -4]
    """
    first, second = (_coefficients(p) for p in arrays_of(a1, a2))
    return convolve(first, second)


@in_own_name
def polyder(p: ArrayLike, /, m: int = 1) -> Tensor:
    """The `m`-th derivative of a polynomial.

    >>> ol.polyder([1, 2, 3]).tolist()
    [2, 2]
    """
    made = _coefficients(asarray(p))
    for _ in range(_times(m)):
        made = made[:-1] * arange(made.size - 1, 0, -1, device=made.device).astype(made.dtype)
    return made


@in_own_name
def polyint(p: ArrayLike, /, m: int = 1, k: ArrayLike | None = None) -> Tensor:
    """The `m`-th integral of a polynomial, with `k` as the constant, by default 0, or as those of each integral.

    >>> ol.polyint([4, 2], k=7).tolist()
    [2.0, 2.0, 7.0]
    """
    made = as_floats(_coefficients(asarray(p)))
    constants = broadcast_to(reshape(asarray(0 if k is None else k, device=made.device), (-1,)), (_times(m),)).astype(made.dtype)
    for at in range(m):
        powers = arange(made.size, 0, -1, device=made.device).astype(made.dtype)
        made = concat([made / powers, constants[at : at + 1]])
    return made


@in_own_name
def roots(p: ArrayLike, /) -> Tensor:
    """The roots of a polynomial. They are real numbers if none has an imaginary part.

    >>> ol.round(ol.sort(ol.roots([1, -3, 2])), 3).tolist()
    [1.0, 2.0]
    """
    # Loaded on first use.
    from .linalg import eigvals

    made = as_floats(_coefficients(asarray(p)))
    there = nonzero(made)[0].tolist()
    zero = zeros(made.size - 1 - there[-1], dtype=made.dtype, device=made.device) if there else made[:0]
    made = made[there[0] : there[-1] + 1] if there else made[:0]
    if made.size < 2:
        return zero
    below = eye(made.size - 2, made.size - 1, dtype=made.dtype, device=made.device)
    found = eigvals(concat([reshape(-made[1:] / made[0], (1, -1)), below]))
    return concat([found if any(found.imag) else found.real, zero])


def _coefficients(p: Tensor) -> Tensor:
    if p.ndim > 1:
        raise ValueError(f"expected a vector of coefficients, found the shape {p.shape}")
    return reshape(p, (-1,))


def _of_one_degree(*polynomials: ArrayLike) -> list[Tensor]:
    """Coefficients, with zeros before those of lower degrees."""
    made = [_coefficients(p) for p in arrays_of(*polynomials)]
    size = max(p.size for p in made)
    return [concat([zeros(size - p.size, dtype=p.dtype, device=p.device), p]) for p in made]


def _times(m: int) -> int:
    if m < 0:
        raise ValueError(f"expected a number of times of at least 0, found {m}")
    return m
