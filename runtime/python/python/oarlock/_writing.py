"""Functions that write into the array that they are given, and return nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._arguments import in_own_name
from ._creation import arange
from ._information import isdtype
from ._manipulation import broadcast_to
from ._oarlock import Tensor, _axis, asarray, op, reshape
from ._search import take, where

if TYPE_CHECKING:
    from ._typing import ArrayLike

KINDS = ("bool", "integral", "real floating", "complex floating")
"""The kinds of dtypes, each of which has the numbers of those before."""

__all__: list[str] = ["copyto", "fill_diagonal", "put", "put_along_axis", "putmask"]


@in_own_name
def copyto(dst: Tensor, src: ArrayLike, /, *, where: ArrayLike = True) -> None:
    """Writes the elements of another array, broadcast to the shape, where a condition is true.

    >>> x = ol.asarray([1, 2, 3])
    >>> ol.copyto(x, 0, where=x > 1)
    >>> x.tolist()
    [1, 0, 0]
    """
    _write_where(_own(dst), where, broadcast_to(asarray(src, device=dst.device), dst.shape))


@in_own_name
def put(x: Tensor, ind: ArrayLike, v: ArrayLike, /) -> None:
    """Writes values to some places among all elements. Fewer values than places are repeated.

    >>> x = ol.zeros((2, 2), dtype="int64")
    >>> ol.put(x, [0, -1], [5, 6])
    >>> x.tolist()
    [[5, 0], [0, 6]]
    """
    shape = _own(x).shape
    places, values = (reshape(asarray(each, device=x.device), (-1,)) for each in (ind, v))
    if places.size and values.size:
        values = take(values, arange(places.size, device=x.device) % values.size)
        flat = reshape(x, (-1,))
        flat[places] = _of_kind(x, values)
        x[...] = reshape(flat, shape)


@in_own_name
def putmask(x: Tensor, mask: ArrayLike, values: ArrayLike, /) -> None:
    """Writes values where a condition is true: each at its own place. Fewer values than elements are repeated.

    >>> x = ol.asarray([1, 2, 3, 4])
    >>> ol.putmask(x, x > 1, [0, 9])
    >>> x.tolist()
    [1, 9, 0, 9]
    """
    put = asarray(values, device=_own(x).device)
    if put.shape != x.shape and put.size != 0:
        put = reshape(take(reshape(put, (-1,)), arange(x.size, device=x.device) % put.size), x.shape)
    if put.size == x.size:
        _write_where(x, mask, put)


@in_own_name
def fill_diagonal(x: Tensor, val: ArrayLike, /) -> None:
    """Writes a number, or a vector of as many numbers as there are, to the diagonal of a matrix. It begins at the first element; an array
    of more dimensions has to have the same size in all.

    >>> x = ol.zeros((2, 3), dtype="int64")
    >>> ol.fill_diagonal(x, 7)
    >>> x.tolist()
    [[7, 0, 0], [0, 7, 0]]
    """
    shape = _own(x).shape
    if len(shape) < 2 or len(shape) > 2 and len({*shape}) > 1:
        raise ValueError(f"expected a matrix, or an array with the same size in all dimensions, found the shape {shape}")
    places = arange(min(shape), device=x.device)
    x[(places,) * len(shape)] = _of_kind(x, asarray(val, device=x.device))


@in_own_name
def put_along_axis(x: Tensor, indices: ArrayLike, values: ArrayLike, /, axis: int | None) -> None:
    """Writes values to the places along an axis that `take_along_axis` would take; without an axis, to those among all elements.

    >>> x = ol.asarray([[3, 1], [2, 5]])
    >>> ol.put_along_axis(x, ol.argmax(x, axis=1, keepdims=True), 0, axis=1)
    >>> x.tolist()
    [[0, 1], [2, 0]]
    """
    shape = _own(x).shape
    places = asarray(indices, device=x.device)
    written = reshape(x, (-1,)) if axis is None else x
    if places.ndim != written.ndim:
        raise ValueError(f"expected indices with {written.ndim} dimensions, found the shape {places.shape}")
    along = _axis(0 if axis is None else axis, written.ndim)
    places = broadcast_to(places, (*written.shape[:along], places.shape[along], *written.shape[along + 1 :]))
    put = broadcast_to(_of_kind(x, asarray(values, device=x.device)), places.shape)
    x[...] = reshape(op("ScatterElements", [written, places, put], {"axis": along}), shape)


def _own(x: object) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"expected an array of Oarlock to write into, found {type(x).__name__}")
    return x


def _write_where(x: Tensor, mask: ArrayLike, values: Tensor) -> None:
    x[...] = where(asarray(mask, device=x.device), _of_kind(x, values), x)


def _of_kind(x: Tensor, values: Tensor) -> Tensor:
    """The values in the dtype of an array; an error if it has none of their kind, as integers have no floats."""
    own, given = (next((at for at, kind in enumerate(KINDS) if isdtype(each.dtype, kind)), len(KINDS)) for each in (x, values))
    if own < given:
        found = values.dtype.name
        raise TypeError(f"expected elements that {x.dtype.name} has, found {found}\nhint: convert them with `astype`")
    return values.astype(x.dtype, copy=False)
