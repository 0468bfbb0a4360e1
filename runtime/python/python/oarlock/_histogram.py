"""Functions that count elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from . import _oarlock
from ._arguments import arrays_of, in_own_name, whole_number
from ._bin_widths import width_of_bins
from ._creation import linspace
from ._information import isdtype
from ._kinds import FLOATS, as_exact_floats, expect_real
from ._oarlock import Tensor, asarray, op, reshape, zeros
from ._search import searchsorted, where
from ._statistics import all, any, diff, max, min, sum

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._typing import ArrayLike

    Range = tuple[float, float] | list[float]

__all__: list[str] = ["bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges"]


@in_own_name
def bincount(x: ArrayLike, /, weights: ArrayLike | None = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 on occurs in a vector of integers; with weights, the sums of their weights.

    >>> ol.bincount([0, 1, 1, 3]).tolist()
    [1, 2, 0, 1]
    """
    x = asarray(x)
    if x.ndim != 1 or (x.size and x.dtype != _oarlock.bool and not isdtype(x.dtype, "integral")):
        raise TypeError(f"expected a vector of integers, found {x.dtype.name} of the shape {x.shape}")
    places = x.astype(_oarlock.int64, copy=False)
    if minlength < 0 or (x.size and int(min(places)) < 0):
        raise ValueError("expected numbers of at least 0 to count, found one below")
    size = int(max(places)) + 1 if x.size else 0
    added = None
    if weights is not None:
        added = as_exact_floats(asarray(weights, device=x.device))
        if added.shape != x.shape:
            raise ValueError(f"expected a weight for each element of the shape {x.shape}, found the shape {added.shape}")
    return _counted(places, added, size if size > minlength else minlength)


def _counted(places: Tensor, weights: Tensor | None, size: int) -> Tensor:
    """The sums of weights, by default 1, at each of some places."""
    added = _oarlock.ones(places.shape, dtype=_oarlock.int64, device=places.device) if weights is None else weights
    nothing = zeros(size, dtype=added.dtype, device=added.device)
    return op("ScatterElements", [nothing, places, added], {"axis": 0, "reduction": "add"}) if places.size else nothing


@in_own_name
def digitize(x: ArrayLike, bins: ArrayLike, /, right: bool = False) -> Tensor:
    """The index of the bin of each element, from 0 for those before the first edge. Edges ascend or descend; an element that is
    equal to one lies behind it, or before it if `right` is true.

    >>> ol.digitize([0.5, 1.5, 9.0], [1.0, 2.0]).tolist()
    [0, 1, 2]
    """
    x, edges = arrays_of(x, bins, is_widened=True)
    if edges.ndim != 1:
        raise ValueError(f"expected a vector of edges, found the shape {edges.shape}")
    # Not their differences, which narrow integers may not have.
    before, behind = edges[:-1], edges[1:]
    side = "left" if right else "right"
    if edges.size < 2 or bool(all(behind >= before)):
        return searchsorted(edges, x, side)
    if not bool(all(behind <= before)):
        raise ValueError("expected edges that ascend or descend, found some that do both")
    return edges.size - searchsorted(edges[::-1], x, side)


@in_own_name
def histogram_bin_edges(
    x: ArrayLike, /, bins: ArrayLike | str = 10, range: Range | None = None, weights: ArrayLike | None = None
) -> Tensor:
    """The edges of the bins of `histogram`: `bins` are the edges, or a number of bins of one width in a range, by default that of
    the elements, or NumPy's name of a rule that finds the number: `auto`, `doane`, `fd`, `rice`, `scott`, `sqrt`, `stone` or
    `sturges`. Weights have no effect, and no rule.

    >>> ol.histogram_bin_edges([1, 2, 4], bins=3).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    given = expect_real(asarray(x))
    x = as_exact_floats(given)
    count = whole_number(bins)
    if count is None and not isinstance(bins, str):
        _, edges = arrays_of(x, bins, is_widened=True)
        if edges.ndim != 1 or bool(any(edges[1:] < edges[:-1])):
            raise ValueError("expected a vector of edges that ascend, found another array")
        return edges
    if count is not None and count < 1:
        raise ValueError(f"expected one bin at least, found {count}")
    first, last = (float(end) for end in range or ((min(x), max(x)) if x.size else (0.0, 1.0)))
    # NaN compares as false.
    if not -float("inf") < first <= last < float("inf"):
        raise ValueError(f"expected a finite range of elements, found {first} to {last}\nhint: give another with `range=`")
    if first == last:
        first, last = first - 0.5, last + 0.5
    if count is None:
        if weights is not None:
            raise TypeError(f"expected a number of bins or their edges beside weights, found `{bins}`\nhint: give a number of bins")
        count = _number_by_rule(str(bins), given, (first, last))
    return linspace(first, last, count + 1, dtype=x.dtype, device=x.device)


def _number_by_rule(rule: str, x: Tensor, within: tuple[float, float]) -> int:
    """The number of bins that a rule finds for the elements in a range."""
    values = reshape(as_exact_floats(x), (-1,))
    values = values[(values >= within[0]) & (values <= within[1])]
    width = width_of_bins(rule, values, lambda number: histogram(values, number, within)[0]) if values.size else 0.0
    # No whole number lies between two others.
    is_whole = x.dtype not in FLOATS and x.dtype != _oarlock.bool
    width = 1.0 if is_whole and 0 < width < 1 else width
    return math.ceil((within[1] - within[0]) / width) if width else 1


@in_own_name
def histogram(
    x: ArrayLike,
    /,
    bins: ArrayLike | str = 10,
    range: Range | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> tuple[Tensor, Tensor]:
    """How many elements lie in each bin, and the edges of the bins. The last bin has its upper edge, too. `bins` and `range` are
    those of `histogram_bin_edges`.

    With weights, the sums of the weights of the elements. With `density`, divided so that the integral over all bins is 1.

    >>> counts, edges = ol.histogram([1, 2, 2, 4], bins=3)
    >>> counts.tolist(), edges.tolist()
    ([1, 2, 1], [1.0, 2.0, 3.0, 4.0])
    """
    x = asarray(x)
    edges = histogram_bin_edges(x, bins, range, weights)
    x = reshape(as_exact_floats(x), (-1,))
    added = None if weights is None else reshape(asarray(weights, device=x.device), (-1,))
    if added is not None and added.size != x.size:
        raise ValueError(f"expected a weight for each of {x.size} elements, found {added.size}")
    is_even = isinstance(bins, str) or whole_number(bins) is not None
    if range is None and is_even:
        # Bins of one width in the range of the elements leave out none.
        counts = _counted(_bins_of(x, edges, is_even), added, edges.size - 1)
    else:
        inside = _inside(x, edges)
        places = _bins_of(where(inside, x, edges[0]), edges, is_even)
        counts = _counted_inside(places, inside, added, edges.size - 1)
    if density:
        widths = diff(as_exact_floats(edges))
        return counts / widths / sum(counts), edges
    return counts, edges


def _inside(x: Tensor, edges: Tensor) -> Tensor:
    """Whether there is a bin for each element."""
    return (x >= edges[0]) & (x <= edges[-1])


def _counted_inside(places: Tensor, inside: Tensor, weights: Tensor | None, size: int) -> Tensor:
    """The same for places of which some do not count. They get a place behind all others: to leave them out, one would have to look."""
    return _counted(where(inside, places, size), weights, size + 1)[:size]


def _bins_of(x: Tensor, edges: Tensor, is_even: bool) -> Tensor:
    """The index of the bin of each element, all of which have one."""
    count = edges.size - 1
    if not is_even:
        # The last bin has its upper edge, too.
        return _oarlock.minimum(searchsorted(edges, x, "right") - 1, count - 1)
    # Between edges of one distance, a quotient finds the bin, except that rounding may find the one beside it.
    places = _oarlock.minimum(((x - edges[0]) * (count / (edges[-1] - edges[0]))).astype(_oarlock.int64), count - 1)
    places = places - (x < edges[places]).astype(_oarlock.int64)
    return places + ((x >= edges[places + 1]) & (places < count - 1)).astype(_oarlock.int64)


@in_own_name
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    /,
    bins: int | str | Sequence[ArrayLike] = 10,
    range: Sequence[Range | None] | None = None,
    density: bool = False,
    weights: ArrayLike | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """How many points lie in each cell of a grid, and the edges of its rows and columns.

    >>> ol.histogram2d([0, 1, 1], [0, 1, 1], bins=2)[0].tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    x, y = (as_exact_floats(expect_real(each)) for each in arrays_of(x, y))
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"expected two vectors of one size, found the shapes {x.shape} and {y.shape}")
    several: Any = bins
    each_bins = several if not isinstance(several, str) and whole_number(several) is None and len(several) == 2 else (bins, bins)
    first, second = (
        histogram_bin_edges(points, edges, within)
        for points, edges, within in zip((x, y), each_bins, range or (None, None), strict=True)
    )
    inside = _inside(x, first) & _inside(y, second)
    rows, columns = (
        _bins_of(where(inside, points, edges[0]), edges, whole_number(each) is not None)
        for points, edges, each in zip((x, y), (first, second), each_bins, strict=True)
    )
    shape = (first.size - 1, second.size - 1)
    added = None if weights is None else asarray(weights, device=x.device)
    counts = reshape(_counted_inside(rows * shape[1] + columns, inside, added, shape[0] * shape[1]), shape)
    counts = counts.astype(x.dtype, copy=False)
    if density:
        widths, heights = (diff(as_exact_floats(edges)) for edges in (first, second))
        counts = counts / (widths[:, None] * heights[None, :]) / sum(counts)
    return counts, first, second
