"""Functions of samples: interpolation, differences, integrals and convolution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._elementwise import clip
from ._kinds import COMPLEX, FLOATS, as_floats, expect_real
from ._manipulation import concat, flip
from ._oarlock import Tensor, _axes, _axis, asarray, conj, isnan, matmul, op, reshape, result_type, zeros
from ._search import argsort, searchsorted, take, where
from ._statistics import all, cumulative_sum, diff, sum

if TYPE_CHECKING:
    from ._typing import ArrayLike, Axes

__all__: list[str] = ["convolve", "correlate", "ediff1d", "gradient", "interp", "trapezoid", "unwrap"]


@in_own_name
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    /,
    left: complex | None = None,
    right: complex | None = None,
    period: float | None = None,
) -> Tensor:
    """Values at `x` on the lines between points with ascending coordinates `xp` and values `fp`. Outside, `left` and `right` are
    the values, by default those of the first and the last point; with a period, the points repeat.

    >>> ol.interp(1.5, [1, 2], [10.0, 20.0]).item()
    15.0
    """
    x, points, values = arrays_of(x, xp, fp)
    if points.ndim != 1 or points.shape != values.shape or points.size == 0:
        raise ValueError(f"expected values for coordinates, at least one, found the shapes {values.shape} and {points.shape}")
    x, points, values = (as_floats(each) for each in (expect_real(x), expect_real(points), values))
    if period is not None:
        x, points = x % abs(period), points % abs(period)
        order = argsort(points)
        points, values = take(points, order), take(values, order)
        points = concat([points[-1:] - abs(period), points, points[:1] + abs(period)])
        values, left, right = concat([values[-1:], values, values[:1]]), None, None
    low = clip(searchsorted(points, x, "right") - 1, 0, max(points.size - 2, 0))
    high = clip(low + 1, 0, points.size - 1)
    here, there, first, last = points[low], points[high], values[low], values[high]
    width = where(there == here, 1.0, there - here)
    made = where(x == there, last, first + (x - here) * ((last - first) / width))
    made = where(x < points[0], values[0] if left is None else left, made)
    made = where(x > points[-1], values[-1] if right is None else right, where(x == points[-1], values[-1], made))
    return where(isnan(x), float("nan"), made)


@in_own_name
def gradient(
    x: ArrayLike, /, *varargs: ArrayLike, axis: Axes | None = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]:
    """The slopes along each axis, from differences of both neighbours, and of one at the ends; a tuple for several axes.

    Behind the array follow distances of samples, or their coordinates, for all axes or for each.

    >>> ol.gradient([1.0, 4.0, 9.0]).tolist()
    [3.0, 4.0, 5.0]
    """
    x = as_floats(asarray(x))
    axes = _axes(axis, x.ndim)
    if len(varargs) not in (0, 1, len(axes)) or (len(varargs) == 1 and len(axes) > 1 and asarray(varargs[0]).ndim):
        raise ValueError(f"expected one distance for all or each of {len(axes)} axes, found {len(varargs)}")
    if edge_order not in (1, 2):
        raise ValueError(f"expected 1 or 2 for `edge_order`, found {edge_order}")
    distances = list(varargs or (1.0,))
    if len(distances) == 1:
        distances *= len(axes)
    made = tuple(_slopes(x, distance, at, edge_order) for distance, at in zip(distances, axes, strict=True))
    return made[0] if len(made) == 1 else made


def _slopes(x: Tensor, distance: ArrayLike, axis: int, edge_order: int) -> Tensor:
    size = x.shape[axis]
    if size <= edge_order:
        raise ValueError(f"expected {edge_order + 1} elements at least along axis {axis}, found {size}")
    _, steps = arrays_of(x, distance)
    if steps.ndim == 0:
        steps = steps * _oarlock.ones(size - 1, dtype=x.dtype, device=x.device)
        is_even = True
    elif steps.shape != (size,):
        raise ValueError(f"expected {size} coordinates along axis {axis}, found the shape {steps.shape}")
    else:
        steps = diff(as_floats(steps))
        is_even = bool(all(steps == steps[0]))
    front, back = (slice(None),) * axis, (None,) * (x.ndim - axis - 1)

    def part(start: int | None, stop: int | None) -> Tensor:
        return x[(*front, slice(start, stop))]

    rises = (part(1, None) - part(None, -1)) / steps[(slice(None), *back)]
    before, behind = steps[:-1][(slice(None), *back)], steps[1:][(slice(None), *back)]
    lower, upper = rises[(*front, slice(None, -1))], rises[(*front, slice(1, None))]
    if is_even:
        # The element between two neighbours has no part in it, and may be anything.
        inner = (part(2, None) - part(None, -2)) / (before + behind)
    else:
        inner = (lower * behind + upper * before) / (before + behind)
    first, last = rises[(*front, slice(None, 1))], rises[(*front, slice(-1, None))]
    if edge_order == 2:
        # The slope of the parabola through the three elements at each end.
        first = first - before[:1] * (upper[(*front, slice(None, 1))] - first) / (before[:1] + behind[:1])
        last = last + behind[-1:] * (last - lower[(*front, slice(-1, None))]) / (before[-1:] + behind[-1:])
    return concat([first, inner, last], axis)


@in_own_name
def trapezoid(y: ArrayLike, /, x: ArrayLike | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral along an axis of the lines between samples, at the coordinates `x` or at distances of `dx`.

    >>> ol.trapezoid([1.0, 2.0, 3.0]).item()
    4.0
    """
    y = as_floats(asarray(y))
    axis = _axis(axis, y.ndim)
    front = (slice(None),) * axis
    middle = (y[(*front, slice(1, None))] + y[(*front, slice(None, -1))]) / 2
    if x is None:
        return sum(middle * dx, axis)
    _, places = arrays_of(y, x)
    widths = reshape(diff(places), (-1, *(1,) * (y.ndim - axis - 1))) if places.ndim == 1 else diff(places, axis=axis)
    return sum(middle * widths, axis)


@in_own_name
def ediff1d(x: ArrayLike, /, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Tensor:
    """The differences of neighbours among all elements, between the numbers that are put before and after them.

    >>> ol.ediff1d([1, 4, 9], to_begin=0).tolist()
    [0, 3, 5]
    """
    differences = diff(reshape(asarray(x), (-1,)))
    put = (None if more is None else asarray(more, device=differences.device) for more in (to_begin, to_end))
    before, after = ([] if more is None else [reshape(more, (-1,)).astype(differences.dtype, copy=False)] for more in put)
    return concat([*before, differences, *after])


@in_own_name
def unwrap(x: ArrayLike, /, discont: float | None = None, axis: int = -1, *, period: float = 2 * math.pi) -> Tensor:
    """Angles along an axis without jumps: where neighbours differ by more than half a period and by `discont`, whole periods are added.

    >>> ol.unwrap([0, 90, 270, 0], period=360).tolist()
    [0, 90, 270, 360]
    """
    angles = asarray(x)
    steps = diff(angles, axis=axis)
    if angles.dtype in FLOATS or period != int(period):
        angles, steps, half = as_floats(angles), as_floats(steps), period / 2
    else:
        period, half = int(period), int(period) // 2
    wrapped = (steps + half) % period - half
    if period % 2 == 0 or angles.dtype in FLOATS:
        # A step of exactly half a period keeps its sign. Half of an odd period is no step of whole numbers.
        wrapped = where((wrapped == -half) & (steps > 0), half, wrapped)
    jumps = where(_oarlock.abs(steps) < max(half, half if discont is None else discont), 0, wrapped - steps)
    first = take(angles, asarray([0], device=angles.device), axis) * 0
    return angles + cumulative_sum(concat([first, jumps.astype(first.dtype, copy=False)], axis=axis), axis=axis)


@in_own_name
def convolve(x1: ArrayLike, x2: ArrayLike, /, mode: str = "full") -> Tensor:
    """The convolution of two vectors: all of it, as many elements as the longer has (`same`), or those for which both overlap
    entirely (`valid`).

    >>> ol.convolve([1, 2, 3], [1, 1]).tolist()
    [1, 3, 5, 3]
    """
    x1, x2 = (reshape(x, (-1,)) for x in _vectors(x1, x2))
    longer, shorter = (x1, x2) if x1.size >= x2.size else (x2, x1)
    return _slid(longer, flip(shorter), mode)


@in_own_name
def correlate(x1: ArrayLike, x2: ArrayLike, /, mode: str = "valid") -> Tensor:
    """The cross-correlation of two vectors: the sums of products with the conjugates of the other, for every shift.

    >>> ol.correlate([1, 2, 3], [1, 1]).tolist()
    [3, 5]
    """
    x1, x2 = _vectors(x1, x2)
    if x1.size >= x2.size:
        return _slid(x1, conj(x2), mode)
    return flip(_slid(conj(x2), x1, mode))


def _vectors(x1: ArrayLike, x2: ArrayLike) -> tuple[Tensor, ...]:
    made = arrays_of(x1, x2)
    dtype = result_type(*made)
    for x in made:
        if x.ndim > 1 or x.size == 0:
            raise ValueError(f"expected vectors with an element at least, found the shape {x.shape}")
    return tuple(reshape(x.astype(dtype, copy=False), (-1,)) for x in made)


def _slid(x: Tensor, weights: Tensor, mode: str) -> Tensor:
    """The sums of products of weights with as many elements of a longer vector, for every place."""
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"expected `full`, `same` or `valid` for `mode`, found `{mode}`")
    overlap = weights.size - 1
    before = {"full": overlap, "same": weights.size // 2, "valid": 0}[mode]
    behind = {"full": overlap, "same": overlap - weights.size // 2, "valid": 0}[mode]
    if x.dtype in COMPLEX:
        (a, b), (c, d) = ((_oarlock.real(each), _oarlock.imag(each)) for each in (x, weights))
        whole = _slid(a, c, mode) - _slid(b, d, mode), _slid(a, d, mode) + _slid(b, c, mode)
        return op("Complex", whole, domain="oarlock")
    if x.dtype in FLOATS:
        made = op("Conv", [reshape(x, (1, 1, -1)), reshape(weights, (1, 1, -1))], {"pads": [before, behind]})
        return reshape(made, (-1,))
    # The op takes no integers: a matrix has the elements that each result is made of.
    around = [zeros(count, dtype=x.dtype, device=x.device) for count in (before, behind)]
    padded = concat([around[0], x, around[1]])
    places, offsets = (_oarlock._steps(count, 0, 1, x.device) for count in (padded.size - overlap, weights.size))
    return matmul(take(padded, places[:, None] + offsets[None, :]), weights)
