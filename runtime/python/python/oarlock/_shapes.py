"""Functions that change the shape of an array or the order of its axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, SupportsIndex, overload

from . import _oarlock
from ._arguments import in_own_name
from ._manipulation import flip
from ._oarlock import Tensor, _axes, _axis, asarray, permute_dims

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._typing import ArrayLike, Shape

__all__: list[str] = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "flatten",
    "fliplr",
    "flipud",
    "ndim",
    "ravel",
    "reshape",
    "rot90",
    "shape",
    "size",
    "swapaxes",
    "transpose",
]


@in_own_name
def transpose(x: ArrayLike, /, axes: Sequence[int] | None = None) -> Tensor:
    """Permutes the axes of an array; by default, reverses them.

    >>> ol.transpose([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    x = asarray(x)
    return permute_dims(x, tuple(reversed(range(x.ndim))) if axes is None else tuple(axes))


@in_own_name
def swapaxes(x: ArrayLike, axis1: int, axis2: int, /) -> Tensor:
    """Swaps two axes.

    >>> ol.swapaxes(ol.zeros((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = asarray(x)
    first, second = _axis(axis1, x.ndim), _axis(axis2, x.ndim)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return permute_dims(x, tuple(order))


@in_own_name
def reshape(x: ArrayLike, /, shape: Shape, order: str = "C", *, copy: bool | None = None) -> Tensor:
    """Changes the shape; one size may be -1 and is then inferred. The result shares memory unless the elements are not contiguous
    or `copy` is true. With the order `F`, the first axis is that of neighbors, and not the last.

    >>> ol.reshape([1, 2, 3, 4], (2, 2)).tolist(), ol.reshape([1, 2, 3, 4], (2, 2), order="F").tolist()
    ([[1, 2], [3, 4]], [[1, 3], [2, 4]])
    """
    if not has_first_axis_last(order):
        return _oarlock.reshape(x, shape, copy=copy)
    sizes = (shape,) if isinstance(shape, SupportsIndex) else tuple(shape)
    return asarray(_oarlock.reshape(asarray(x).T, sizes[::-1], copy=copy)).T


def has_first_axis_last(order: str) -> bool:
    """Whether the elements that are neighbors along the first axis follow each other."""
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"expected `C` for elements row by row or `F` for columns for `order`, found {order!r}")
    return order == "F"


@in_own_name
def ravel(x: ArrayLike, /, order: str = "C") -> Tensor:
    """The elements in one dimension, row by row, or column by column with the order `F`.

    >>> ol.ravel([[1, 2], [3, 4]]).tolist(), ol.ravel([[1, 2], [3, 4]], "F").tolist()
    ([1, 2, 3, 4], [1, 3, 2, 4])
    """
    return reshape(x, (-1,), order)


@in_own_name
def flatten(x: ArrayLike, /, start_dim: int = 0, end_dim: int = -1, *, order: str = "C") -> Tensor:
    """Merges the axes from one to another, by default all, into one; column by column with the order `F`.

    >>> ol.flatten([[1, 2], [3, 4]]).tolist()
    [1, 2, 3, 4]
    """
    x = asarray(x)
    if isinstance(start_dim, str):
        # The first argument of NumPy's method.
        start_dim, order = 0, start_dim
    if x.ndim == 0:
        return _oarlock.reshape(x, (1,), copy=True)
    first, last = _axis(start_dim, x.ndim), _axis(end_dim, x.ndim)
    if first > last:
        raise ValueError(f"expected a first axis before the last one, found {start_dim} and {end_dim} of {x.ndim}")
    if has_first_axis_last(order):
        x = permute_dims(x, (*range(first), *reversed(range(first, last + 1)), *range(last + 1, x.ndim)))
    merged = (*x.shape[:first], math.prod(x.shape[first : last + 1]), *x.shape[last + 1 :])
    return _oarlock.reshape(x, merged, copy=True)


@overload
def atleast_1d(x: ArrayLike, /) -> Tensor: ...
@overload
def atleast_1d(*arrays: ArrayLike) -> Tensor | tuple[Tensor, ...]: ...
@in_own_name
def atleast_1d(*arrays: ArrayLike) -> Tensor | tuple[Tensor, ...]:
    """Arrays with at least one axis; a tuple of them if several are given.

    >>> ol.atleast_1d(5).shape
    (1,)
    """
    made = tuple(x if x.ndim else _oarlock.reshape(x, (1,)) for x in map(asarray, arrays))
    return made[0] if len(made) == 1 else made


@overload
def atleast_2d(x: ArrayLike, /) -> Tensor: ...
@overload
def atleast_2d(*arrays: ArrayLike) -> Tensor | tuple[Tensor, ...]: ...
@in_own_name
def atleast_2d(*arrays: ArrayLike) -> Tensor | tuple[Tensor, ...]:
    """Arrays with at least two axes, the new ones first; a tuple of them if several are given.

    >>> ol.atleast_2d([1, 2]).shape
    (1, 2)
    """
    made = tuple(_oarlock.reshape(x, (1,) * (2 - x.ndim) + x.shape) if x.ndim < 2 else x for x in map(asarray, arrays))
    return made[0] if len(made) == 1 else made


@overload
def atleast_3d(x: ArrayLike, /) -> Tensor: ...
@overload
def atleast_3d(*arrays: ArrayLike) -> Tensor | tuple[Tensor, ...]: ...
@in_own_name
def atleast_3d(*arrays: ArrayLike) -> Tensor | tuple[Tensor, ...]:
    """Arrays with at least three axes: vectors get one before and one behind, matrices one behind.

    >>> ol.atleast_3d([1, 2]).shape
    (1, 2, 1)
    """
    made = tuple(
        x if x.ndim > 2 else x[..., None] if x.ndim == 2 else _oarlock.reshape(x, (1, -1, 1)) for x in map(asarray, arrays)
    )
    return made[0] if len(made) == 1 else made


@in_own_name
def rot90(x: ArrayLike, /, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """Rotates an array by 90 degrees in the plane of two axes, `k` times, from the first towards the second.

    >>> ol.rot90([[1, 2], [3, 4]]).tolist()
    [[2, 4], [1, 3]]
    """
    x = asarray(x)
    first, second = _axes(tuple(axes), x.ndim)
    turns = k % 4
    if turns == 2:
        return flip(x, (first, second))
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second) if turns else x


@in_own_name
def fliplr(x: ArrayLike, /) -> Tensor:
    """Reverses the elements along the second axis.

    >>> ol.fliplr([[1, 2], [3, 4]]).tolist()
    [[2, 1], [4, 3]]
    """
    return flip(x, 1)


@in_own_name
def flipud(x: ArrayLike, /) -> Tensor:
    """Reverses the elements along the first axis.

    >>> ol.flipud([[1, 2], [3, 4]]).tolist()
    [[3, 4], [1, 2]]
    """
    return flip(x, 0)


@in_own_name
def shape(x: ArrayLike, /) -> tuple[int, ...]:
    """The shape of an array.

    >>> ol.shape([[1, 2], [3, 4]])
    (2, 2)
    """
    return asarray(x).shape


@in_own_name
def ndim(x: ArrayLike, /) -> int:
    """The number of axes of an array.

    >>> ol.ndim([[1, 2], [3, 4]])
    2
    """
    return asarray(x).ndim


@in_own_name
def size(x: ArrayLike, /, axis: int | None = None) -> int:
    """The number of elements of an array, or of one axis.

    >>> ol.size([[1, 2], [3, 4]])
    4
    """
    x = asarray(x)
    return x.size if axis is None else x.shape[_axis(axis, x.ndim)]
