"""Products of arrays as NumPy defines them for any number of dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._arguments import arrays_of, in_own_name
from ._linear import tensordot
from ._oarlock import Tensor, conj, matmul, reshape

if TYPE_CHECKING:
    from ._typing import ArrayLike

__all__: list[str] = ["dot", "inner", "kron", "outer", "vdot"]


@in_own_name
def dot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The product of vectors or matrices; of more dimensions, the sums of products over the last of one and the last but one of
    the other. A number multiplies every element.

    >>> ol.dot([1, 2], [3, 4]).item()
    11
    """
    x1, x2 = arrays_of(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        return x1 * x2
    if x1.ndim <= 2 and x2.ndim <= 2:
        return matmul(x1, x2)
    return tensordot(x1, x2, ([x1.ndim - 1], [max(0, x2.ndim - 2)]))


@in_own_name
def vdot(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The sum of the products of all elements, with the conjugates of the first array.

    >>> ol.vdot([1j, 1], [1j, 1]).item()
    (2+0j)
    """
    x1, x2 = arrays_of(x1, x2)
    return matmul(reshape(conj(x1), (-1,)), reshape(x2, (-1,)))


@in_own_name
def inner(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The sums of products over the last axes of two arrays. A number multiplies every element.

    >>> ol.inner([[1, 2], [3, 4]], [1, 1]).tolist()
    [3, 7]
    """
    x1, x2 = arrays_of(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0:
        return x1 * x2
    return tensordot(x1, x2, ([x1.ndim - 1], [x2.ndim - 1]))


@in_own_name
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The products of every element of one array with every element of another, as a matrix.

    >>> ol.outer([1, 2], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    x1, x2 = arrays_of(x1, x2)
    return reshape(x1, (-1, 1)) * reshape(x2, (1, -1))


@in_own_name
def kron(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The Kronecker product: a block of the second array, multiplied, for each element of the first.

    >>> ol.kron([1, 10], [1, 2]).tolist()
    [1, 2, 10, 20]
    """
    x1, x2 = arrays_of(x1, x2)
    rank = max(x1.ndim, x2.ndim)
    outside = (1,) * (rank - x1.ndim) + x1.shape
    inside = (1,) * (rank - x2.ndim) + x2.shape
    first = reshape(x1, tuple(size for each in outside for size in (each, 1)))
    second = reshape(x2, tuple(size for each in inside for size in (1, each)))
    return reshape(first * second, tuple(one * other for one, other in zip(outside, inside, strict=True)))
