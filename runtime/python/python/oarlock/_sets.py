"""Arrays as sets of their elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._arguments import arrays_of, in_own_name
from ._kinds import COMPLEX
from ._manipulation import concat
from ._oarlock import Tensor, _axis, asarray, isnan, op, reshape, result_type
from ._search import isin, nonzero, sort, unique_all, where
from ._statistics import cumulative_sum, sum

if TYPE_CHECKING:
    from ._typing import ArrayLike

__all__: list[str] = ["in1d", "intersect1d", "setdiff1d", "setxor1d", "union1d", "unique"]


@in_own_name
def unique(
    x: ArrayLike,
    /,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Tensor | tuple[Tensor, ...]:
    """The sorted unique elements, or the unique slices of an axis. All NaNs are one element, unless `equal_nan` is false.

    Asked for, a tuple also has the indices of the first occurrences, those that restore the array, and the counts.

    >>> values, counts = ol.unique([5, 3, 5], return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([3, 5], [1, 2])
    """
    x = asarray(x)
    if axis is None and (x.dtype in COMPLEX or not equal_nan):
        found = unique_all(x)
        values, first, inverse, counts = _with_one_nan(*found) if equal_nan else found
    else:
        whole, along = (reshape(x, (-1,)), 0) if axis is None else (x, _axis(axis, x.ndim))
        values, first, inverse, counts = op("Unique", [whole], {"sorted": 1, "axis": along}, outputs=4)
        inverse = reshape(inverse, x.shape) if axis is None else inverse
    asked = [made for made, is_asked in ((first, return_index), (inverse, return_inverse), (counts, return_counts)) if is_asked]
    return (values, *asked) if asked else values


def _with_one_nan(values: Tensor, first: Tensor, inverse: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Unique complex numbers of which all with NaN are one, the last."""
    is_none = isnan(values)
    (nans,) = nonzero(is_none)
    if nans.size == 0:
        return values, first, inverse, counts
    (numbers,) = nonzero(~is_none)
    order = concat([numbers, nans[:1]])
    places = where(is_none, numbers.size, cumulative_sum((~is_none).astype(counts.dtype)) - 1)
    total = concat([counts[numbers], sum(counts[nans], keepdims=True)])
    return values[order], first[order], places[inverse], total


def _values(x: Tensor) -> Tensor:
    """The sorted unique elements."""
    made = unique(x)
    return made if isinstance(made, Tensor) else made[0]


@in_own_name
def in1d(x1: ArrayLike, x2: ArrayLike, /, *, invert: bool = False) -> Tensor:
    """Whether each element of one array, in one dimension, is in another.

    >>> ol.in1d([1, 2, 3], [2]).tolist()
    [False, True, False]
    """
    return reshape(isin(x1, x2, invert=invert), (-1,))


@in_own_name
def union1d(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The sorted unique elements of two arrays.

    >>> ol.union1d([1, 2], [2, 3]).tolist()
    [1, 2, 3]
    """
    return _values(concat(arrays_of(x1, x2), None))


@in_own_name
def intersect1d(x1: ArrayLike, x2: ArrayLike, /, *, return_indices: bool = False) -> Tensor | tuple[Tensor, ...]:
    """The sorted unique elements that are in both arrays; with `return_indices`, also where each is first in both.

    >>> ol.intersect1d([1, 2, 3], [2, 3, 4]).tolist()
    [2, 3]
    """
    x1, x2 = arrays_of(x1, x2)
    dtype = result_type(x1, x2)
    first, second = (unique_all(x.astype(dtype, copy=False)) for x in (x1, x2))
    in_first, in_second = isin(first.values, second.values), isin(second.values, first.values)
    common = first.values[in_first]
    return (common, first.indices[in_first], second.indices[in_second]) if return_indices else common


@in_own_name
def setdiff1d(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The sorted unique elements of one array that are not in another.

    >>> ol.setdiff1d([1, 2, 3], [2]).tolist()
    [1, 3]
    """
    x1, x2 = arrays_of(x1, x2)
    values = _values(x1)
    return values[isin(values, x2, invert=True)]


@in_own_name
def setxor1d(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The sorted unique elements that are in one of two arrays only.

    >>> ol.setxor1d([1, 2], [2, 3]).tolist()
    [1, 3]
    """
    x1, x2 = arrays_of(x1, x2)
    first, second = _values(x1), _values(x2)
    return sort(concat([first[isin(first, second, invert=True)], second[isin(second, first, invert=True)]]))
