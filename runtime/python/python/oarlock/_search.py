"""Functions that search, sort and find unique elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, overload

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._complex_order import extreme_places, sorting_places
from ._creation import arange, full_like, sizes_of
from ._kinds import COMPLEX, whole_numbers
from ._manipulation import broadcast_to, concat, stack
from ._oarlock import Tensor, _axis, _numbers, _reduced, asarray, op, reshape, result_type
from ._searchsorted import insertion_points
from ._statistics import cumulative_sum

if TYPE_CHECKING:
    from ._typing import ArrayLike

__all__: list[str] = [
    "UniqueAll",
    "UniqueCounts",
    "UniqueInverse",
    "argmax",
    "argmin",
    "argsort",
    "isin",
    "nonzero",
    "searchsorted",
    "sort",
    "take",
    "take_along_axis",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "where",
]

FEW = 16
"""So many elements are compared with each other one by one."""


@in_own_name
def argmax(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the first maximum.

    >>> ol.argmax([1.0, 3.0, 2.0]).item()
    1
    """
    return _place("ArgMax", asarray(x), axis, keepdims)


@in_own_name
def argmin(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the first minimum.

    >>> ol.argmin([1.0, 3.0, 2.0]).item()
    0
    """
    return _place("ArgMin", asarray(x), axis, keepdims)


def _place(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    if x.dtype in COMPLEX:
        return _place_of_complex(name, x, axis, keepdims)
    x = _countable(x)
    if axis is None:
        made = op(name, [reshape(x, (-1,))], {"axis": 0, "keepdims": 0})
        return reshape(made, (1,) * x.ndim) if keepdims else made
    return op(name, [x], {"axis": _axis(axis, x.ndim), "keepdims": int(keepdims)})


def _place_of_complex(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    rows, at = _with_axis(x, axis)
    made = extreme_places(f"Reduce{name.removeprefix('Arg')}", rows, at)
    if keepdims:
        return reshape(made, (1,) * x.ndim) if axis is None else made
    return reshape(made, rows.shape[:at] + rows.shape[at + 1 :])


def _countable(x: Tensor) -> Tensor:
    """Truth values as numbers, which have an order."""
    return x.astype(_oarlock.uint8) if x.dtype == _oarlock.bool else x


@in_own_name
def nonzero(x: ArrayLike, /) -> tuple[Tensor, ...]:
    """The indices of nonzero elements, one array for each axis.

    >>> ol.nonzero([0, 5, 6])[0].tolist()
    [1, 2]
    """
    x = asarray(x)
    if x.ndim == 0:
        raise ValueError("expected dimensions, found an array without\nhint: `atleast_1d` gives it one")
    places = op("NonZero", [x])
    return tuple(places[axis] for axis in range(x.ndim))


@in_own_name
def searchsorted(x1: ArrayLike, x2: ArrayLike, /, side: str = "left", sorter: ArrayLike | None = None) -> Tensor:
    """The positions at which elements would be inserted into a sorted array, before equal ones or (`side="right"`) behind them.

    >>> ol.searchsorted([1, 3, 5], [2, 5]).tolist()
    [1, 2]
    """
    if side not in ("left", "right"):
        raise ValueError(f"expected `left` or `right` for `side`, found `{side}`")
    ordered, wanted = arrays_of(x1, x2, is_widened=True)
    if sorter is not None:
        ordered = take(ordered, sorter)
    if ordered.ndim != 1:
        raise ValueError(f"expected an array of one dimension to search in, found {ordered.ndim}")
    return insertion_points(ordered, wanted, after_equal=side == "right")


@overload
def where(condition: ArrayLike, /) -> tuple[Tensor, ...]: ...
@overload
def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> Tensor: ...
@in_own_name
def where(condition: ArrayLike, x1: ArrayLike | None = None, x2: ArrayLike | None = None, /) -> Tensor | tuple[Tensor, ...]:
    """Elements of one array where a condition is true, elsewhere those of another. With the condition alone, the indices of its
    nonzero elements, as `nonzero`.

    >>> ol.where([True, False], [1, 2], [10, 20]).tolist()
    [1, 20]
    """
    condition = asarray(condition)
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise TypeError("expected two arrays to choose from or none, found one")
    first, second = arrays_of(x1, x2, device=condition.device)
    dtype = result_type(first, second)
    condition = _numbers(condition).astype(_oarlock.bool, copy=False)
    return op("Where", [condition, first.astype(dtype, copy=False), second.astype(dtype, copy=False)])


@in_own_name
def sort(x: ArrayLike, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Sorts along an axis; with `axis=None`, all elements in one dimension. The real parts of complex numbers decide, and the
    imaginary parts between equal ones.

    >>> ol.sort([3, 1, 2], descending=True).tolist()
    [3, 2, 1]
    """
    x = asarray(x)
    if x.dtype in COMPLEX:
        x, axis = _with_axis(x, axis)
        return op("GatherElements", [x, sorting_places(x, axis, descending)], {"axis": axis})
    values = op("TopK", *_in_order(x, axis, descending))
    return values.astype(x.dtype, copy=False)


@in_own_name
def argsort(x: ArrayLike, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort along an axis; with `axis=None`, all elements in one dimension. The sort is stable.

    >>> ol.argsort([3, 1, 2]).tolist()
    [1, 2, 0]
    """
    x = asarray(x)
    if x.dtype in COMPLEX:
        return sorting_places(*_with_axis(x, axis), descending)
    _, places = op("TopK", *_in_order(x, axis, descending), outputs=2)
    return places


def _in_order(x: Tensor, axis: int | None, descending: bool) -> tuple[list[Tensor], dict[str, int]]:
    """All elements along an axis, sorted, with their indices."""
    x, axis = _with_axis(x, axis)
    return [_countable(x), sizes_of([x.shape[axis]])], {"axis": axis, "largest": int(descending), "sorted": 1}


def _with_axis(x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    """The array and an axis; without one, the elements in one dimension."""
    return (reshape(x, (-1,)), 0) if axis is None else (x, _axis(axis, x.ndim))


@in_own_name
def take(x: ArrayLike, indices: ArrayLike, /, axis: int | None = None, *, mode: str = "raise") -> Tensor:
    """The slices at some indices of an axis; without one, of the elements in one dimension. Indices beyond the array are an error, or
    count from the start (`wrap`), or are the first or last (`clip`).

    >>> ol.take([10, 20, 30], [2, 0]).tolist()
    [30, 10]
    """
    x, axis = _with_axis(asarray(x), axis)
    indices = _indices_beside(x, indices)
    if mode != "raise" and x.shape[axis]:
        indices = inside(indices, x.shape[axis], mode)
    if x.shape[axis] == 0 and indices.size:
        raise IndexError(f"`take` expected an element in dimension {axis}, found none in the shape {x.shape}")
    return op("Gather", [x, indices], {"axis": axis})


def inside(indices: Tensor, size: int, mode: str) -> Tensor:
    """Indices among so many elements, of any numbers."""
    if mode not in ("wrap", "clip"):
        raise ValueError(f"expected `raise`, `wrap` or `clip` for `mode`, found `{mode}`")
    return indices % size if mode == "wrap" else _oarlock.minimum(_oarlock.maximum(indices, 0), size - 1)


def _indices_beside(x: Tensor, indices: ArrayLike) -> Tensor:
    return whole_numbers(indices if isinstance(indices, Tensor) else asarray(indices, device=x.device))


@in_own_name
def take_along_axis(x: ArrayLike, indices: ArrayLike, /, axis: int = -1) -> Tensor:
    """The elements at indices along an axis, with separate indices for each position of the other axes.

    >>> ol.take_along_axis([[3, 1], [1, 2]], [[1], [0]], axis=1).tolist()
    [[1], [1]]
    """
    x = asarray(x)
    axis = _axis(axis, x.ndim)
    indices = _indices_beside(x, indices)
    if indices.ndim != x.ndim:
        raise ValueError(f"`take_along_axis` expected indices of as many dimensions as the array, {x.ndim}, found {indices.ndim}")
    shape = tuple(size if at == axis else max(size, indices.shape[at]) for at, size in enumerate(x.shape))
    places = tuple(indices.shape[at] if at == axis else size for at, size in enumerate(shape))
    indices = broadcast_to(indices, places)
    return op("GatherElements", [broadcast_to(x, shape), indices], {"axis": axis})


@in_own_name
def isin(x1: ArrayLike, x2: ArrayLike, /, *, invert: bool = False) -> Tensor:
    """Whether each element of one array is in another.

    >>> ol.isin([1, 2, 3], [2, 5]).tolist()
    [False, True, False]
    """
    first, second = arrays_of(x1, x2, is_widened=True)
    if second.size > FEW and result_type(first, second) not in COMPLEX + (_oarlock.str,):
        # A search in sorted elements needs less memory than the comparison of all with all.
        ordered = sort(reshape(second, (-1,)))
        places = _oarlock.minimum(insertion_points(ordered, first, after_equal=False), ordered.size - 1)
        is_in = _oarlock.equal(op("Gather", [ordered, places]), first)
    elif second.size:
        found = _oarlock.equal(first[..., None], reshape(second, (-1,)))
        is_in = _reduced("ReduceMax", found.astype(_oarlock.uint8), -1, False).astype(_oarlock.bool)
    else:
        is_in = _oarlock.not_equal(first, first) & asarray(False, device=first.device)
    return ~is_in if invert else is_in


class UniqueAll(NamedTuple):
    """The result of `unique_all`.

    >>> ol.unique_all([5, 3, 5]).indices.tolist()
    [1, 0]
    """

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`.

    >>> ol.unique_counts([5, 3, 5]).counts.tolist()
    [1, 2]
    """

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`.

    >>> ol.unique_inverse([5, 3, 5]).inverse_indices.tolist()
    [1, 0, 1]
    """

    values: Tensor
    inverse_indices: Tensor


@in_own_name
def unique_all(x: ArrayLike, /) -> UniqueAll:
    """The sorted unique elements, with the index of each first occurrence, the inverse indices and the counts.

    >>> [each.tolist() for each in ol.unique_all([5, 3, 5])]
    [[3, 5], [1, 0], [1, 0, 1], [1, 2]]
    """
    x = asarray(x)
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


@in_own_name
def unique_counts(x: ArrayLike, /) -> UniqueCounts:
    """The sorted unique elements and their counts.

    >>> [each.tolist() for each in ol.unique_counts([5, 3, 5])]
    [[3, 5], [1, 2]]
    """
    x = asarray(x)
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


@in_own_name
def unique_inverse(x: ArrayLike, /) -> UniqueInverse:
    """The sorted unique elements, and the indices that restore the array from them.

    >>> [each.tolist() for each in ol.unique_inverse([5, 3, 5])]
    [[3, 5], [1, 0, 1]]
    """
    x = asarray(x)
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


@in_own_name
def unique_values(x: ArrayLike, /) -> Tensor:
    """The sorted unique elements.

    >>> ol.unique_values([5, 3, 5]).tolist()
    [3, 5]
    """
    x = asarray(x)
    if x.dtype in (_oarlock.complex64, _oarlock.complex128):
        return unique_all(x).values
    flat = reshape(x, (-1,))
    # Without the other outputs, the op sorts no indices.
    values = op("Unique", [flat], {"sorted": 1})
    if 0 < values.size < flat.size and _oarlock.isnan(values[-1]):
        values = concat([values[:-1], flat[_oarlock.isnan(flat)]])
    return values
