"""Polynomials, with the coefficient of the highest power first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._information import finfo
from ._kinds import as_exact_floats, as_floats
from ._oarlock import Tensor, asarray, result_type, sqrt, zeros
from ._sequences import vander
from ._statistics import sum

if TYPE_CHECKING:
    from ._typing import ArrayLike

__all__: list[str] = ["polyfit", "polyval"]


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
    from .linalg import lstsq

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
    solved = lstsq(powers / scale, values, x.size * finfo(_oarlock.float64).eps).solution
    return (solved / (scale if y.ndim == 1 else scale[:, None])).astype(dtype)
