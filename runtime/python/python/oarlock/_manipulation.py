"""Functions that move elements and change shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _oarlock
from ._arguments import arrays_of, in_own_name, numbers_in, whole_number
from ._creation import sizes_of
from ._oarlock import Tensor, _axes, _axis, _joined, asarray, op, permute_dims, reshape
from ._searchsorted import insertion_points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._typing import ArrayLike, Axes, DtypeLike, Shape

__all__: list[str] = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "moveaxis",
    "repeat",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]


def broadcast_shapes(*shapes: Shape) -> tuple[int, ...]:
    """The shape that these shapes broadcast to.

    >>> ol.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    sizes = [numbers_in(shape) for shape in shapes]
    rank = max(map(len, sizes), default=0)
    found = [1] * rank
    for shape in sizes:
        for at, size in enumerate(shape, rank - len(shape)):
            if size not in (1, found[at]) and found[at] != 1:
                raise ValueError(f"expected shapes that repeat to a common one, found {', '.join(map(str, sizes))}")
            found[at] = found[at] if size == 1 else size
    return tuple(found)


@in_own_name
def broadcast_to(x: ArrayLike, /, shape: Shape) -> Tensor:
    """Broadcasts an array to a shape.

    >>> ol.broadcast_to([1, 2], (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    x, sizes = asarray(x), numbers_in(shape)
    if broadcast_shapes(x.shape, sizes) != sizes:
        raise ValueError(f"expected a shape that {x.shape} repeats to, found {sizes}")
    return op("Expand", [x, sizes_of(sizes)]) if x.shape != sizes else x


@in_own_name
def broadcast_arrays(*arrays: ArrayLike) -> tuple[Tensor, ...]:
    """Broadcasts arrays against each other.

    >>> [each.shape for each in ol.broadcast_arrays([1, 2], [[3], [4]])]
    [(2, 2), (2, 2)]
    """
    made = arrays_of(*arrays)
    shape = broadcast_shapes(*(x.shape for x in made))
    return tuple(broadcast_to(x, shape) for x in made)


@in_own_name
def concat(arrays: Sequence[ArrayLike], /, axis: int | None = 0, *, dtype: DtypeLike | None = None) -> Tensor:
    """Joins arrays along an axis, converted to a dtype if one is given; with `axis=None`, flattens them first.

    >>> ol.concat([[1, 2], [3]]).tolist()
    [1, 2, 3]
    """
    parts = _of_dtype(arrays, dtype)
    if axis is None:
        parts, axis = [reshape(x, (-1,)) for x in parts], 0
    return _joined(parts, _axis(axis, parts[0].ndim) if parts else 0, False)


def _of_dtype(arrays: Sequence[ArrayLike], dtype: DtypeLike | None) -> list[Tensor]:
    made = arrays_of(*arrays)
    return [x if dtype is None else x.astype(dtype, copy=False) for x in made]


@in_own_name
def expand_dims(x: ArrayLike, /, axis: Axes = 0) -> Tensor:
    """Inserts axes of size 1 at these positions of the result.

    >>> ol.expand_dims([1, 2]).shape
    (1, 2)
    """
    x = asarray(x)
    axes = numbers_in(axis)
    places = _axes(axes, x.ndim + len(axes))
    key: list[slice | None] = [slice(None)] * (x.ndim + len(axes))
    for place in places:
        key[place] = None
    return x[tuple(key)]


@in_own_name
def squeeze(x: ArrayLike, /, axis: Axes | None = None) -> Tensor:
    """Removes axes of size 1, by default all.

    >>> ol.squeeze(ol.zeros((1, 3, 1))).shape
    (3,)
    """
    x = asarray(x)
    places = [at for at, size in enumerate(x.shape) if size == 1] if axis is None else _axes(axis, x.ndim)
    for place in places:
        if x.shape[place] != 1:
            raise ValueError(f"expected dimensions of one element to leave out, found {x.shape[place]} in {x.shape}")
    return x[tuple(0 if at in places else slice(None) for at in range(x.ndim))]


@in_own_name
def flip(x: ArrayLike, /, axis: Axes | None = None) -> Tensor:
    """Reverses the elements along some axes.

    >>> ol.flip([1, 2, 3]).tolist()
    [3, 2, 1]
    """
    x = asarray(x)
    places = _axes(axis, x.ndim)
    return x[tuple(slice(None, None, -1 if at in places else None) for at in range(x.ndim))]


@in_own_name
def moveaxis(x: ArrayLike, source: Axes, destination: Axes, /) -> Tensor:
    """Moves axes to other positions; the rest keep their order.

    >>> ol.moveaxis(ol.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = asarray(x)
    sources, destinations = _axes(source, x.ndim), _axes(destination, x.ndim)
    if len(sources) != len(destinations):
        raise ValueError(f"expected as many places as dimensions, found {destination} for {source}")
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(destinations, sources, strict=True)):
        order.insert(place, axis)
    return permute_dims(x, tuple(order))


@in_own_name
def repeat(x: ArrayLike, repeats: ArrayLike, /, axis: int | None = None) -> Tensor:
    """Repeats each element.

    >>> ol.repeat([1, 2], 2).tolist()
    [1, 1, 2, 2]
    """
    x = asarray(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = _axis(axis, x.ndim)
    if isinstance(repeats, int):
        return _repeat_each(x, repeats, axis)
    counts = broadcast_to(asarray(repeats, dtype=_oarlock.int64, device=x.device), (x.shape[axis],))
    if _has_negative(counts):
        raise ValueError(f"expected numbers of at least 0 to repeat by, found {counts.tolist()}")
    ends = op("CumSum", [counts, asarray(0, device=x.device)])
    # The first sum that overflows 64 bits is negative.
    if _has_negative(ends):
        raise MemoryError("expected an array that memory can hold, found 2^63 elements or more")
    # The element at a position is the first whose end lies behind it.
    start, step = (asarray(number, device=x.device) for number in (0, 1))
    places = op("Range", [start, ends[-1] if ends.size else start, step])
    return op("Gather", [x, insertion_points(ends, places, after_equal=True)], {"axis": axis})


def _has_negative(numbers: Tensor) -> bool:
    return numbers.size > 0 and int(op("ReduceMin", [numbers], {"keepdims": 0})) < 0


def _repeat_each(x: Tensor, times: int, axis: int) -> Tensor:
    if times < 0:
        raise ValueError(f"expected a number of at least 0 to repeat by, found {times}")
    before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    beside = reshape(x, (*before, size, 1, *after))
    return reshape(broadcast_to(beside, (*before, size, times, *after)), (*before, size * times, *after))


@in_own_name
def roll(x: ArrayLike, /, shift: Axes, axis: Axes | None = None) -> Tensor:
    """Shifts elements along axes; those past the end wrap around to the beginning.

    >>> ol.roll([1, 2, 3], 1).tolist()
    [3, 1, 2]
    """
    x = asarray(x)
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    axes = numbers_in(axis)
    try:
        alone = whole_number(shift)
        shifts = numbers_in(shift) if alone is None else (alone,) * len(axes)
    except TypeError:
        raise TypeError(f"expected whole numbers to `roll` by, found {shift!r}") from None
    if len(shifts) != len(axes):
        raise ValueError(f"expected as many distances as dimensions for `roll`, found {shift} for {axis}")
    for by, at in zip(shifts, axes, strict=True):
        at = _axis(at, x.ndim)
        size = x.shape[at]
        by = by % size if size else 0
        if by:
            front = (slice(None),) * at
            x = concat([x[(*front, slice(size - by, None))], x[(*front, slice(None, size - by))]], axis=at)
    return x


@in_own_name
def stack(arrays: Sequence[ArrayLike], /, axis: int = 0, *, dtype: DtypeLike | None = None) -> Tensor:
    """Joins arrays of the same shape along a new axis, converted to a dtype if one is given.

    >>> ol.stack([[1, 2], [3, 4]], axis=1).tolist()
    [[1, 3], [2, 4]]
    """
    parts = _of_dtype(arrays, dtype)
    return _joined(parts, _axis(axis, parts[0].ndim + 1) if parts else 0, True)


@in_own_name
def tile(x: ArrayLike, repetitions: int | tuple[int, ...], /) -> Tensor:
    """Repeats an array along each axis.

    >>> ol.tile([1, 2], (2,)).tolist()
    [1, 2, 1, 2]
    """
    x = asarray(x)
    repetitions = numbers_in(repetitions)
    rank = max(x.ndim, len(repetitions))
    x = reshape(x, (1,) * (rank - x.ndim) + x.shape)
    return op("Tile", [x, sizes_of((1,) * (rank - len(repetitions)) + repetitions)])


@in_own_name
def unstack(x: ArrayLike, /, axis: int = 0) -> tuple[Tensor, ...]:
    """Splits an array along an axis, which the parts do not have.

    >>> [row.tolist() for row in ol.unstack([[1, 2], [3, 4]])]
    [[1, 2], [3, 4]]
    """
    x = asarray(x)
    at = _axis(axis, x.ndim)
    front = (slice(None),) * at
    return tuple(x[(*front, index)] for index in range(x.shape[at]))
