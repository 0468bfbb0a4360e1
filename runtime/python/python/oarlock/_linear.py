"""Products of vectors and matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._arguments import arrays_of, in_own_name, numbers_in, whole_number
from ._manipulation import broadcast_arrays, broadcast_shapes, broadcast_to, moveaxis, stack
from ._oarlock import Tensor, _axis, asarray, conj, matmul, permute_dims, reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._typing import ArrayLike

__all__: list[str] = [
    "cross",
    "matrix_transpose",
    "tensordot",
    "vecdot",
]


@in_own_name
def matrix_transpose(x: ArrayLike, /) -> Tensor:
    """Swaps the rows and columns of matrices.

    >>> ol.matrix_transpose([[1, 2], [3, 4]]).tolist()
    [[1, 3], [2, 4]]
    """
    x = asarray(x)
    return x.mT


@in_own_name
def tensordot(x1: ArrayLike, x2: ArrayLike, /, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sums products over dimensions of two arrays: the last of one and the first of the other, or the given ones.

    >>> ol.tensordot([[1, 2], [3, 4]], [1, 1], axes=1).tolist()
    [3, 7]
    """
    x1, x2 = arrays_of(x1, x2)
    count = whole_number(axes)
    if count is None:
        ours, theirs = axes  # type: ignore[misc]
        first = [_axis(axis, x1.ndim) for axis in numbers_in(ours)]
        second = [_axis(axis, x2.ndim) for axis in numbers_in(theirs)]
    else:
        if not 0 <= count <= min(x1.ndim, x2.ndim):
            raise ValueError(f"expected at least {count} dimensions for `tensordot`, found the shapes {x1.shape} and {x2.shape}")
        first, second = list(range(x1.ndim - count, x1.ndim)), list(range(count))
    if [x1.shape[axis] for axis in first] != [x2.shape[axis] for axis in second]:
        raise ValueError(f"expected dimensions of the same sizes, found {axes} of {x1.shape} and {x2.shape}")
    kept = [axis for axis in range(x1.ndim) if axis not in first], [axis for axis in range(x2.ndim) if axis not in second]
    common = 1
    for axis in first:
        common *= x1.shape[axis]
    left_shape = tuple(x1.shape[axis] for axis in kept[0])
    right_shape = tuple(x2.shape[axis] for axis in kept[1])
    left = reshape(permute_dims(x1, (*kept[0], *first)), (_product(left_shape), common))
    right = reshape(permute_dims(x2, (*second, *kept[1])), (common, _product(right_shape)))
    return reshape(matmul(left, right), left_shape + right_shape)


@in_own_name
def vecdot(x1: ArrayLike, x2: ArrayLike, /, axis: int = -1) -> Tensor:
    """The dot products of two arrays along a dimension.

    >>> ol.vecdot([[1, 2], [3, 4]], [1, 1]).tolist()
    [3, 7]
    """
    x1, x2 = arrays_of(x1, x2)
    if not (-min(x1.ndim, x2.ndim) <= axis < 0):
        raise ValueError(f"expected a dimension of both counted from the last one, found {axis}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"expected vectors of one size, found {x1.shape[axis]} and {x2.shape[axis]}")
    x1, x2 = broadcast_arrays(x1, x2)
    x1, x2 = moveaxis(x1, axis, -1), moveaxis(x2, axis, -1)
    return matmul(conj(x1)[..., None, :], x2[..., None])[..., 0, 0]


@in_own_name
def cross(x1: ArrayLike, x2: ArrayLike, /, axis: int = -1) -> Tensor:
    """The cross product of vectors with three elements.

    >>> ol.cross([1, 0, 0], [0, 1, 0]).tolist()
    [0, 0, 1]
    """
    x1, x2 = arrays_of(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        raise ValueError("expected vectors of three elements for `cross`, found a number")
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"expected vectors of three elements, found {x1.shape[axis]} and {x2.shape[axis]}")
    shape = broadcast_shapes(x1.shape, x2.shape)
    a, b = (moveaxis(broadcast_to(x, shape), axis, -1) for x in (x1, x2))
    parts = [
        a[..., one] * b[..., other] - a[..., other] * b[..., one] for one, other in ((1, 2), (2, 0), (0, 1))
    ]
    return moveaxis(stack(parts, axis=-1), -1, axis)


def _product(sizes: tuple[int, ...]) -> int:
    count = 1
    for size in sizes:
        count *= size
    return count
