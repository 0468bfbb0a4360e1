"""Linear algebra, after the extension of the Python array API standard."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _absent, _oarlock
from ._arguments import arrays_of, in_own_name, whole_number
from ._creation import eye
from ._decompositions import adjoint, cholesky, eig, eigh, eigvals, eigvalsh, qr, slogdet, svd, svdvals
from ._diagonal import last_diagonals
from ._information import finfo
from ._kinds import as_floats
from ._linear import cross, matrix_transpose, tensordot, vecdot
from ._manipulation import broadcast_shapes, broadcast_to, moveaxis
from ._oarlock import Tensor, _axes, abs, asarray, exp, isnan, matmul, op, reshape, result_type, sqrt
from ._search import where
from ._shapes import shape
from ._statistics import any, max, min, sum

if TYPE_CHECKING:
    from ._typing import ArrayLike, Axes, DtypeLike

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def _expect_matrices(function: str, x: Tensor) -> None:
    if x.ndim < 2:
        raise ValueError(f"expected matrices for `{function}`, found the shape {x.shape}")


def _greatest(sizes: Tensor, axis: Axes | None, keepdims: bool = False) -> Tensor:
    """The maximum of nonnegative numbers; 0 for none."""
    has_none = 0 in [sizes.shape[at] for at in _axes(axis, sizes.ndim)]
    return (sum if has_none else max)(sizes, axis=axis, keepdims=keepdims)


@in_own_name
def det(x: ArrayLike, /) -> Tensor:
    """The determinants of matrices.

    >>> ol.linalg.det([[2.0, 0.0], [0.0, 3.0]]).item()
    6.0
    """
    x = as_floats(asarray(x))
    sign, logarithm = slogdet(x)
    return sign * exp(logarithm).astype(sign.dtype, copy=False)


@in_own_name
def diagonal(x: ArrayLike, /, offset: int = 0) -> Tensor:
    """The `offset`-th diagonals of matrices.

    >>> ol.linalg.diagonal([[1, 2], [3, 4]]).tolist()
    [1, 4]
    """
    x = asarray(x)
    _expect_matrices("diagonal", x)
    return last_diagonals(x, offset)


@in_own_name
def inv(x: ArrayLike, /) -> Tensor:
    """The inverses of matrices.

    >>> ol.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    x = as_floats(asarray(x))
    size = x.shape[-1]
    return solve(x, eye(size, dtype=x.dtype, device=x.device))


class LstsqResult(NamedTuple):
    """The result of `lstsq`."""

    solution: Tensor
    residuals: Tensor
    rank: int
    singular_values: Tensor


@in_own_name
def lstsq(x1: ArrayLike, x2: ArrayLike, /, rcond: float | None = None) -> LstsqResult:
    """The solution of `x1 @ x = x2` with the least squares of the differences, or the smallest of several.

    Singular values below `rcond` times the largest count as 0; by default, those of rounding errors. The sums of squares are
    empty unless the solution is the only one and there are more equations than unknowns.

    >>> ol.round(ol.linalg.lstsq([[1.0, 0.0], [0.0, 2.0]], [3.0, 4.0]).solution, 3).tolist()
    [3.0, 2.0]
    """
    solution, squares, is_kept, values = least_squares(x1, x2, rcond)
    rank = int(sum(is_kept.astype(_oarlock.int64)))
    rows, columns = shape(x1)
    is_only = rank == columns < rows
    return LstsqResult(solution, squares if is_only else squares[:0], rank, values)


def least_squares(x1: ArrayLike, x2: ArrayLike, rcond: float | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The solution, the sums of squares, which singular values do not count as 0, and these values. No element is looked at."""
    matrix, right = (as_floats(x) for x in arrays_of(x1, x2))
    if matrix.ndim != 2 or right.ndim not in (1, 2) or matrix.shape[0] != right.shape[0]:
        raise ValueError(f"expected a matrix and a value for each row, found the shapes {matrix.shape} and {right.shape}")
    dtype = result_type(matrix, right)
    matrix, right = matrix.astype(dtype, copy=False), right.astype(dtype, copy=False)
    left, values, rows = svd(matrix, full_matrices=False)
    bound = builtins.max(matrix.shape) * finfo(values.dtype).eps if rcond is None else rcond
    is_kept = values > _greatest(values, axis=-1) * bound
    inverse = where(is_kept, 1 / where(is_kept, values, 1.0), 0.0).astype(dtype, copy=False)
    solution = matmul(adjoint(rows), matmul(adjoint(left), right) * (inverse if right.ndim == 1 else inverse[:, None]))
    squares = reshape(sum(abs(right - matmul(matrix, solution)) ** 2, axis=0), (-1,))
    return solution, squares, is_kept, values


@in_own_name
def cond(x: ArrayLike, /, ord: float | str | None = None) -> Tensor:
    """The condition numbers of matrices: the norms times those of the inverses, by default from singular values.

    >>> ol.round(ol.linalg.cond([[2.0, 0.0], [0.0, 1.0]]), 3).item()
    2.0
    """
    x = as_floats(asarray(x))
    _expect_matrices("cond", x)
    if ord in (None, 2, -2):
        values = svdvals(x)
        largest, smallest = values[..., 0], values[..., -1]
        made = smallest / largest if ord == -2 else largest / smallest
    else:
        is_singular = (slogdet(x).sign == 0)[..., None, None]
        inverse = inv(where(is_singular, eye(x.shape[-1], dtype=x.dtype, device=x.device), x))
        made = matrix_norm(x, ord=ord) * matrix_norm(where(is_singular, math.inf, inverse), ord=ord)
    # A matrix of zeros has no quotient, and no inverse either.
    return where(isnan(made) & ~any(isnan(x), axis=(-2, -1)), math.inf, made)


@in_own_name
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: float | str = "fro") -> Tensor:
    """The norms of matrices: Frobenius, from singular values, or from sums of rows or columns.

    >>> ol.round(ol.linalg.matrix_norm([[3.0, 0.0], [0.0, 4.0]]), 3).item()
    5.0
    """
    x = asarray(x)
    _expect_matrices("matrix_norm", x)
    if ord == "fro":
        made = sqrt(sum(abs(x) ** 2, axis=(-2, -1)))
    elif ord == "nuc":
        made = sum(svdvals(x), axis=-1)
    elif ord in (2, -2):
        made = (_greatest if ord == 2 else min)(svdvals(x), axis=-1)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = sum(abs(x), axis=-2 if ord in (1, -1) else -1)
        made = (_greatest if ord > 0 else min)(sums, axis=-1)
    else:
        raise ValueError(f"expected `fro`, `nuc`, 1, 2, infinity or one of them below 0 for `ord`, found {ord}")
    return made[..., None, None] if keepdims else made


@in_own_name
def matrix_power(x: ArrayLike, n: int, /) -> Tensor:
    """The `n`-th powers of matrices; of their inverses if `n` is negative.

    >>> ol.linalg.matrix_power([[1, 1], [0, 1]], 3).tolist()
    [[1, 3], [0, 1]]
    """
    x = asarray(x)
    _expect_matrices("matrix_power", x)
    power = whole_number(n)
    if power is None:
        raise TypeError(f"expected a whole number as a power, found {type(n).__name__}")
    if power < 0:
        x, power = inv(x), -power
    if power == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype, device=x.device), x.shape)
    # Without a product with the identity, whose zeros would make NaN of infinities.
    made: Tensor | None = None
    while True:
        if power & 1:
            made = +x if made is None else made @ x
        power >>= 1
        if made is not None and power == 0:
            return made
        x = x @ x


@in_own_name
def matrix_rank(x: ArrayLike, /, rtol: ArrayLike | None = None) -> Tensor:
    """The number of singular values above rounding error.

    >>> ol.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).item()
    1
    """
    x = as_floats(asarray(x))
    values = svdvals(x)
    if rtol is None:
        rtol = builtins.max(x.shape[-2:]) * finfo(values.dtype).eps
    bound = rtol if isinstance(rtol, (int, float)) else asarray(rtol, device=x.device)[..., None]
    return sum((values > _greatest(values, axis=-1, keepdims=True) * bound).astype(_oarlock.int64), axis=-1)


@in_own_name
def norm(
    x: ArrayLike, /, ord: float | str | None = None, axis: Axes | None = None, *, keepdims: bool = False
) -> Tensor:
    """The norms of vectors along one axis, or of the matrices in two; without axes, that of the whole vector or matrix.

    Without an order, the root of the sum of the squares of all elements along the axes, however many.

    >>> ol.linalg.norm([3.0, 4.0]).item()
    5.0
    """
    x = asarray(x)
    if axis is None and (ord is None or x.ndim == 1 and ord == 2 or x.ndim == 2 and ord in ("f", "fro")):
        return vector_norm(x, keepdims=keepdims)
    axes = _axes(axis, x.ndim)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"expected a number for the norm of vectors, found `{ord}`\nhint: matrices have two axes")
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError(f"expected one axis for norms of vectors or two for those of matrices, found {len(axes)}")
    made = matrix_norm(moveaxis(x, tuple(axes), (-2, -1)), ord="fro" if ord in (None, "f") else ord)
    return reshape(made, tuple(1 if at in axes else size for at, size in enumerate(x.shape))) if keepdims else made


@in_own_name
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The outer product of two vectors.

    >>> ol.linalg.outer([1, 2], [3, 4]).tolist()
    [[3, 4], [6, 8]]
    """
    x1, x2 = arrays_of(x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"expected vectors, found {x1.shape} and {x2.shape}")
    return x1[:, None] * x2[None, :]


@in_own_name
def pinv(x: ArrayLike, /, *, rtol: ArrayLike | None = None) -> Tensor:
    """The pseudoinverses of matrices.

    >>> ol.round(ol.linalg.pinv([[2.0, 0.0], [0.0, 0.0]]), 3).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    x = as_floats(asarray(x))
    left, values, right = svd(x, full_matrices=False)
    if rtol is None:
        rtol = builtins.max(x.shape[-2:]) * finfo(values.dtype).eps
    bound = rtol if isinstance(rtol, (int, float)) else asarray(rtol, device=x.device)[..., None]
    is_kept = values > _greatest(values, axis=-1, keepdims=True) * bound
    inverse = where(is_kept, 1 / where(is_kept, values, 1.0), 0.0).astype(x.dtype, copy=False)
    return matmul(adjoint(right) * inverse[..., None, :], adjoint(left))


@in_own_name
def solve(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Solves `x1 @ x = x2`, where `x2` is a vector or matrices.

    >>> ol.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 4.0]).tolist()
    [1.0, 1.0]
    """
    x1, x2 = arrays_of(x1, x2)
    dtype = result_type(x1, x2)
    x1, x2 = x1.astype(dtype, copy=False), x2.astype(dtype, copy=False)
    is_vector = x2.ndim == 1
    right = x2[:, None] if is_vector else x2
    stack_ = broadcast_shapes(x1.shape[:-2], right.shape[:-2])
    left = broadcast_to(x1, stack_ + x1.shape[-2:])
    right = broadcast_to(right, stack_ + right.shape[-2:])
    made = op("Solve", [as_floats(left), as_floats(right)], domain="oarlock")
    return made[..., 0] if is_vector else made


@in_own_name
def trace(x: ArrayLike, /, offset: int = 0, dtype: DtypeLike | None = None) -> Tensor:
    """The traces of matrices.

    >>> ol.linalg.trace([[1, 2], [3, 4]]).item()
    5
    """
    x = asarray(x)
    _expect_matrices("trace", x)
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


@in_own_name
def vector_norm(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The norms of vectors: the p-th root of the sum of p-th powers, or the largest or smallest magnitude.

    >>> ol.linalg.vector_norm([[3.0, 4.0], [6.0, 8.0]], axis=1).tolist()
    [5.0, 10.0]
    """
    x = asarray(x)
    size = abs(x)
    if ord == math.inf:
        return _greatest(size, axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return sum((size != 0).astype(size.dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis=axis, keepdims=keepdims)
    if ord == 2:
        return sqrt(sum(size * size, axis=axis, keepdims=keepdims))
    return sum(size**ord, axis=axis, keepdims=keepdims) ** (1 / ord)


def __dir__() -> list[str]:
    """The public names."""
    return __all__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Tells what to use in place of functions that are absent here."""
        raise _absent.function(name, "oarlock.linalg")
