"""Diagonals of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._arguments import in_own_name
from ._manipulation import concat, moveaxis
from ._oarlock import Tensor, _axes, asarray, op, reshape, zeros
from ._statistics import sum

if TYPE_CHECKING:
    from ._typing import ArrayLike, DtypeLike

__all__: list[str] = ["diag", "diagflat", "diagonal", "trace"]


def last_diagonals(x: Tensor, offset: int) -> Tensor:
    """The `offset`-th diagonals of the matrices in the last two axes."""
    rows, columns = x.shape[-2:]
    count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    first = offset if offset >= 0 else -offset * columns
    flat = reshape(x, (*x.shape[:-2], rows * columns))
    # Beyond the matrix there is no diagonal, and its first place may not be a number of 64 bits.
    ends = (first, first + count * (columns + 1), columns + 1) if count else (0, 0, 1)
    places = op("Range", [asarray(number, device=x.device) for number in ends])
    return op("Gather", [flat, places], {"axis": flat.ndim - 1})


@in_own_name
def diagonal(x: ArrayLike, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The `offset`-th diagonals of the matrices in two axes; they become the last axis.

    >>> ol.diagonal([[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    return last_diagonals(_with_matrices_last(x, axis1, axis2), offset)


@in_own_name
def trace(x: ArrayLike, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DtypeLike | None = None) -> Tensor:
    """The sums of the `offset`-th diagonals of the matrices in two axes.

    >>> ol.trace([[1, 2], [3, 4]]).item()
    5
    """
    return sum(last_diagonals(_with_matrices_last(x, axis1, axis2), offset), -1, dtype)


def _with_matrices_last(x: ArrayLike, axis1: int, axis2: int) -> Tensor:
    made = asarray(x)
    if made.ndim < 2:
        raise ValueError(f"expected an array with two dimensions at least, found the shape {made.shape}")
    return moveaxis(made, tuple(_axes((axis1, axis2), made.ndim)), (-2, -1))


@in_own_name
def diag(x: ArrayLike, /, k: int = 0) -> Tensor:
    """The matrix with a vector as its `k`-th diagonal and zeros elsewhere; of a matrix, its `k`-th diagonal.

    >>> ol.diag([1, 2]).tolist(), ol.diag([[1, 2], [3, 4]]).tolist()
    ([[1, 0], [0, 2]], [1, 4])
    """
    x = asarray(x)
    if x.ndim == 2:
        return last_diagonals(x, k)
    if x.ndim != 1:
        raise ValueError(f"expected a vector or a matrix, found the shape {x.shape}")
    size = x.size + abs(k)
    # In a flat matrix, the elements of a diagonal are `size + 1` apart: each is followed by `size` zeros.
    beside = concat([reshape(x, (-1, 1)), zeros((x.size, size), dtype=x.dtype, device=x.device)], 1)
    before, after = (k, k * size) if k >= 0 else (-k * size, -k)
    first, last = (zeros(count, dtype=x.dtype, device=x.device) for count in (before, after))
    flat = concat([first, reshape(beside, (-1,)), last])
    return reshape(flat[: size * size], (size, size))


@in_own_name
def diagflat(x: ArrayLike, /, k: int = 0) -> Tensor:
    """The matrix with all elements of an array as its `k`-th diagonal, and zeros elsewhere.

    >>> ol.diagflat([1, 2]).tolist()
    [[1, 0], [0, 2]]
    """
    return diag(reshape(asarray(x), (-1,)), k)
