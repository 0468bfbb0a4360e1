"""Functions that search, sort and find unique elements."""

from __future__ import annotations

from typing import NamedTuple

from . import _oarlock
from ._arguments import of_arrays
from ._creation import arange, full_like, sizes_of
from ._manipulation import broadcast_to, concat, stack
from ._oarlock import Tensor, _axis, _reduced, asarray, op, reshape, result_type
from ._searchsorted import insertion_points
from ._statistics import cumulative_sum


@of_arrays
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first maximum."""
    return _place("ArgMax", x, axis, keepdims)


@of_arrays
def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The index of the first minimum."""
    return _place("ArgMin", x, axis, keepdims)


def _place(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if axis is None:
        made = op(name, [reshape(x, (-1,))], {"axis": 0, "keepdims": 0})
        return reshape(made, (1,) * x.ndim) if keepdims else made
    return op(name, [x], {"axis": _axis(axis, x.ndim), "keepdims": int(keepdims)})


@of_arrays
def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of nonzero elements, one array for each axis."""
    if x.ndim == 0:
        raise ValueError("expected dimensions, found an array without")
    places = op("NonZero", [x])
    return tuple(places[axis] for axis in range(x.ndim))


@of_arrays
def searchsorted(
    x1: Tensor, x2: Tensor | float, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """The positions at which elements would be inserted into a sorted array, before equal ones or behind them (`side="right"`)."""
    if side not in ("left", "right"):
        raise ValueError(f"expected `left` or `right` for `side`, found `{side}`")
    ordered = x1 if sorter is None else take(x1, sorter)
    wanted = x2 if isinstance(x2, Tensor) else asarray(x2, dtype=x1.dtype, device=x1.device)
    if ordered.ndim != 1:
        raise ValueError(f"expected an array of one dimension to search in, found {ordered.ndim}")
    return insertion_points(ordered, wanted, after_equal=side == "right")


@of_arrays
def where(condition: Tensor, x1: Tensor | complex | str, x2: Tensor | complex | str, /) -> Tensor:
    """Elements of one array where a condition is true, elsewhere those of another."""
    x1, x2 = (asarray(x, device=condition.device) if isinstance(x, str) else x for x in (x1, x2))
    dtype = result_type(x1, x2)
    first, second = (
        x.astype(dtype, copy=False) if isinstance(x, Tensor) else asarray(x, dtype=dtype, device=condition.device)
        for x in (x1, x2)
    )
    return op("Where", [condition, first, second])


@of_arrays
def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sorts along an axis."""
    values = op("TopK", *_in_order(x, axis, descending))
    return values.astype(x.dtype, copy=False)


@of_arrays
def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort along an axis. The sort is stable."""
    _, places = op("TopK", *_in_order(x, axis, descending), outputs=2)
    return places


def _in_order(x: Tensor, axis: int, descending: bool) -> tuple[list[Tensor], dict[str, int]]:
    """All elements along an axis, sorted, with their indices."""
    axis = _axis(axis, x.ndim)
    whole = x.astype(_oarlock.uint8) if x.dtype == _oarlock.bool else x
    return [whole, sizes_of([x.shape[axis]])], {"axis": axis, "largest": int(descending), "sorted": 1}


@of_arrays
def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices at some indices of an axis."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"expected an axis for an array of {x.ndim} dimensions, found none")
        axis = 0
    axis = _axis(axis, x.ndim)
    if x.shape[axis] == 0 and indices.size:
        raise IndexError(f"`take` expected an element in dimension {axis}, found none in the shape {x.shape}")
    return op("Gather", [x, indices.astype(_oarlock.int64, copy=False)], {"axis": axis})


@of_arrays
def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at indices along an axis, with separate indices for each position of the other axes."""
    axis = _axis(axis, x.ndim)
    if indices.ndim != x.ndim:
        raise ValueError(f"`take_along_axis` expected indices of as many dimensions as the array, {x.ndim}, found {indices.ndim}")
    shape = tuple(size if at == axis else max(size, indices.shape[at]) for at, size in enumerate(x.shape))
    places = tuple(indices.shape[at] if at == axis else size for at, size in enumerate(shape))
    indices = broadcast_to(indices.astype(_oarlock.int64, copy=False), places)
    return op("GatherElements", [broadcast_to(x, shape), indices], {"axis": axis})


@of_arrays
def isin(x1: Tensor | int, x2: Tensor | int, /, *, invert: bool = False) -> Tensor:
    """Whether each element of one array is in another."""
    first = x1 if isinstance(x1, Tensor) else asarray(x1)
    second = x2 if isinstance(x2, Tensor) else asarray(x2)
    found = _oarlock.equal(first[..., None], reshape(second, (-1,)))
    is_in = _reduced("ReduceMax", found.astype(_oarlock.uint8), -1, False).astype(_oarlock.bool) if second.size else None
    if is_in is None:
        is_in = asarray(False) & (first == first)
    return ~is_in if invert else is_in


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


@of_arrays
def unique_all(x: Tensor, /) -> UniqueAll:
    """The sorted unique elements, with the index of each first occurrence, the inverse indices and the counts."""
    flat = reshape(x, (-1,))
    if x.dtype in (_oarlock.complex64, _oarlock.complex128):
        # A complex number is a row of its parts; NaN also gets its index as a part, because no two NaNs are equal.
        real, imaginary = _oarlock.real(flat), _oarlock.imag(flat)
        places = where(_oarlock.isnan(flat), arange(flat.size, dtype=real.dtype, device=x.device), asarray(0.0, dtype=real.dtype))
        parts = stack([real, imaginary, places], axis=1)
        rows, first, inverse, counts = op("Unique", [parts], {"sorted": 1, "axis": 0}, outputs=4)
        values = op("Complex", [rows[:, 0], rows[:, 1]], domain="oarlock")
    else:
        values, first, inverse, counts = op("Unique", [flat], {"sorted": 1}, outputs=4)
        # The op treats all NaNs as one element, the last.
        if 0 < values.size < flat.size and _oarlock.isnan(values[-1]):
            values, first, inverse, counts = _told_apart(flat, values, first, inverse, counts)
    return UniqueAll(values, first, reshape(inverse, x.shape), counts)


def _told_apart(
    x: Tensor, values: Tensor, first: Tensor, inverse: Tensor, counts: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The result of the op with each NaN as a separate element, because no two NaNs are equal."""
    is_none = _oarlock.isnan(x)
    (places,) = nonzero(is_none)
    numbers = values.size - 1
    order = cumulative_sum(is_none.astype(_oarlock.int64)) - 1
    return (
        concat([values[:numbers], x[places]]),
        concat([first[:numbers], places]),
        where(is_none, order + numbers, inverse),
        concat([counts[:numbers], full_like(places, 1, dtype=counts.dtype)]),
    )


@of_arrays
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The sorted unique elements and their counts."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


@of_arrays
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The sorted unique elements, and the indices that restore the array from them."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


@of_arrays
def unique_values(x: Tensor, /) -> Tensor:
    """The sorted unique elements."""
    return unique_all(x).values
