"""Functions that insert and delete elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._creation import arange
from ._kinds import whole_numbers
from ._manipulation import broadcast_to, concat, moveaxis
from ._oarlock import Tensor, _axis, asarray, logical_not, ones, op, reshape, zeros
from ._search import argsort, nonzero, take, where
from ._statistics import any, cumulative_sum

if TYPE_CHECKING:
    from ._typing import ArrayLike

__all__: list[str] = ["delete", "insert", "trim_zeros"]


@in_own_name
def insert(x: ArrayLike, obj: ArrayLike | slice, values: ArrayLike, /, axis: int | None = None) -> Tensor:
    """An array with values inserted before some indices of an axis; without an axis, of the elements in one dimension.

    >>> ol.insert([1, 3], 1, 2).tolist()
    [1, 2, 3]
    """
    x, added = arrays_of(x, values)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = _axis(axis, x.ndim)
    size = x.shape[axis]
    places = _places(obj, size, size + 1, x)
    count = places.size
    if not places.ndim and added.ndim:
        # The first axis of what is put before one index is that of the array.
        added = moveaxis(broadcast_to(added, (1,) * (x.ndim - added.ndim) + added.shape), 0, axis)
        count = added.shape[axis]
    before, behind = x.shape[:axis], x.shape[axis + 1 :]
    added = broadcast_to(added, (*before, count, *behind)).astype(x.dtype, copy=False)
    # Places in the result of what is inserted; all other places have the elements of the array in their order.
    places = broadcast_to(reshape(places, (-1,)), (count,))
    order = argsort(places)
    targets = take(places, order) + arange(count, device=x.device)
    is_new = _marked(size + count, targets)
    sources = cumulative_sum(logical_not(is_new), dtype=_oarlock.int64) - 1
    sources = op("ScatterElements", [sources, targets, order + size], {"axis": 0})
    return take(concat([x, added], axis), sources, axis)


def _marked(size: int, places: Tensor) -> Tensor:
    """Truth values of which those at some places are true."""
    nothing = zeros(size, dtype=_oarlock.bool, device=places.device)
    return op("ScatterElements", [nothing, places, ones(places.shape, dtype=_oarlock.bool, device=places.device)], {"axis": 0})


@in_own_name
def delete(x: ArrayLike, obj: ArrayLike | slice, /, axis: int | None = None) -> Tensor:
    """An array without some indices of an axis; without an axis, of the elements in one dimension.

    >>> ol.delete([1, 2, 3], 1).tolist()
    [1, 3]
    """
    x = asarray(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = _axis(axis, x.ndim)
    size = x.shape[axis]
    places = _places(obj, size, size, x)
    return op("Compress", [x, logical_not(_marked(size, reshape(places, (-1,))))], {"axis": axis})


def _places(obj: ArrayLike | slice, size: int, count: int, x: Tensor) -> Tensor:
    """Indices of at least 0 among `count`, of which negative ones count from behind an axis; truth values stand for indices."""
    if isinstance(obj, slice):
        return arange(*obj.indices(size), device=x.device)
    made = asarray(obj, device=x.device)
    if made.dtype == _oarlock.bool and made.ndim:
        return nonzero(made)[0]
    made = whole_numbers(made)
    if bool(any((made < -size) | (made >= count))):
        raise IndexError(f"expected indices of -{size} to before {count}, found {made.tolist()}")
    return where(made < 0, made + size, made)


@in_own_name
def trim_zeros(x: ArrayLike, /, trim: str = "fb") -> Tensor:
    """A vector without the zeros at its front (`f`), its back (`b`) or both.

    >>> ol.trim_zeros([0, 1, 2, 0]).tolist()
    [1, 2]
    """
    x = asarray(x)
    if x.ndim != 1:
        raise ValueError(f"expected a vector, found the shape {x.shape}")
    if trim not in ("f", "b", "fb", "bf"):
        raise ValueError(f"expected `f`, `b` or `fb` for `trim`, found `{trim}`")
    places = nonzero(x)[0]
    if places.size == 0:
        return x[:0]
    first, last = int(places[0]), int(places[-1]) + 1
    return x[first if "f" in trim else 0 : last if "b" in trim else x.size]
