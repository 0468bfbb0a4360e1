"""Functions that join arrays, and that add elements to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._arguments import arrays_of, in_own_name
from ._manipulation import concat
from ._oarlock import Tensor, reshape
from ._shapes import atleast_1d, atleast_2d, atleast_3d

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._typing import ArrayLike, DtypeLike

__all__: list[str] = ["append", "block", "column_stack", "dstack", "hstack", "vstack"]


@in_own_name
def vstack(arrays: Sequence[ArrayLike], /, *, dtype: DtypeLike | None = None) -> Tensor:
    """Joins arrays along the first axis, converted to a dtype if one is given; vectors become rows.

    >>> ol.vstack([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    return concat([atleast_2d(x) for x in arrays_of(*arrays)], dtype=dtype)


@in_own_name
def hstack(arrays: Sequence[ArrayLike], /, *, dtype: DtypeLike | None = None) -> Tensor:
    """Joins arrays along the second axis, vectors along their only one, converted to a dtype if one is given.

    >>> ol.hstack([[1, 2], [3]]).tolist()
    [1, 2, 3]
    """
    parts = [atleast_1d(x) for x in arrays_of(*arrays)]
    return concat(parts, axis=1 if parts and parts[0].ndim > 1 else 0, dtype=dtype)


@in_own_name
def dstack(arrays: Sequence[ArrayLike], /) -> Tensor:
    """Joins arrays along the third axis.

    >>> ol.dstack([[1, 2], [3, 4]]).shape
    (1, 2, 2)
    """
    return concat([atleast_3d(x) for x in arrays_of(*arrays)], axis=2)


@in_own_name
def column_stack(arrays: Sequence[ArrayLike], /) -> Tensor:
    """Joins arrays along the second axis; vectors become columns.

    >>> ol.column_stack([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    return concat([x if x.ndim > 1 else reshape(x, (-1, 1)) for x in arrays_of(*arrays)], axis=1)


@in_own_name
def append(x: ArrayLike, values: ArrayLike, /, axis: int | None = None) -> Tensor:
    """An array with values behind its own. Without an axis, both are flattened first.

    >>> ol.append([1, 2], [3]).tolist()
    [1, 2, 3]
    """
    return concat(arrays_of(x, values, is_widened=True), axis=axis)


@in_own_name
def block(arrays: ArrayLike, /) -> Tensor:
    """Joins arrays in nested lists: those of the innermost lists along the last axis, those around them along the axis before it.

    >>> ol.block([[ol.eye(2), ol.zeros((2, 1))], [ol.ones((1, 3))]]).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    depth = _depth(arrays)
    leaves = arrays_of(*_leaves(arrays))
    rank = max(depth, *(leaf.ndim for leaf in leaves))
    made = iter([reshape(leaf, (1,) * (rank - leaf.ndim) + leaf.shape) for leaf in leaves])

    def joined(part: ArrayLike, axis: int) -> Tensor:
        return concat([joined(each, axis + 1) for each in part], axis=axis) if isinstance(part, list) else next(made)

    return +joined(arrays, rank - depth)


def _depth(part: ArrayLike) -> int:
    """How many lists are around each array."""
    if not isinstance(part, list):
        return 0
    depths = {_depth(each) for each in part}
    if len(depths) != 1:
        raise ValueError(f"expected lists that are all nested alike, with an array in each, found those of the depths {sorted(depths)}")
    return 1 + depths.pop()


def _leaves(part: ArrayLike) -> list[ArrayLike]:
    return [leaf for each in part for leaf in _leaves(each)] if isinstance(part, list) else [part]
