"""Linear algebra, after the extension of the Python array API standard."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING, NamedTuple

from . import _oarlock
from ._arguments import of_arrays
from ._creation import eye
from ._information import finfo
from ._linear import matrix_transpose, tensordot, vecdot
from ._manipulation import broadcast_shapes, broadcast_to, moveaxis, stack
from ._oarlock import Tensor, _axes, abs, asarray, conj, exp, matmul, op, reshape, result_type, sqrt
from ._search import where
from ._statistics import max, min, sum

if TYPE_CHECKING:
    from ._typing import Axes, DtypeLike

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
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


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _own(name: str, x: Tensor, outputs: int, **attributes: int) -> tuple[Tensor, ...]:
    made = op(name, [x], attributes, outputs=outputs, domain="oarlock")
    return made if isinstance(made, tuple) else (made,)


def _adjoint(x: Tensor) -> Tensor:
    return conj(x).mT


def _expect_matrices(function: str, x: Tensor) -> None:
    if x.ndim < 2:
        raise ValueError(f"expected matrices for `{function}`, found the shape {x.shape}")


def _greatest(sizes: Tensor, axis: Axes | None, keepdims: bool = False) -> Tensor:
    """The maximum of nonnegative numbers; 0 for none."""
    has_none = 0 in [sizes.shape[at] for at in _axes(axis, sizes.ndim)]
    return (sum if has_none else max)(sizes, axis=axis, keepdims=keepdims)


@of_arrays
def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factor of positive definite matrices."""
    # The op reads one triangle only, so the other is copied there.
    (lower,) = _own("Cholesky", _adjoint(x) if upper else x, 1)
    return _adjoint(lower) if upper else lower


@of_arrays
def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors with three elements."""
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


@of_arrays
def det(x: Tensor, /) -> Tensor:
    """The determinants of matrices."""
    sign, logarithm = slogdet(x)
    return sign * exp(logarithm).astype(sign.dtype, copy=False)


@of_arrays
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The `offset`-th diagonals of matrices."""
    _expect_matrices("diagonal", x)
    rows, columns = x.shape[-2:]
    count = builtins.max(0, builtins.min(rows, columns - offset) if offset >= 0 else builtins.min(rows + offset, columns))
    first = offset if offset >= 0 else -offset * columns
    flat = reshape(x, (*x.shape[:-2], rows * columns))
    places = [first + at * (columns + 1) for at in range(count)]
    return op("Gather", [flat, asarray(places, dtype=_oarlock.int64)], {"axis": flat.ndim - 1})


@of_arrays
def eigh(x: Tensor, /) -> EighResult:
    """The eigenvalues of Hermitian matrices in ascending order, and the eigenvectors as columns."""
    return EighResult(*_own("Eigh", x, 2))


@of_arrays
def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of Hermitian matrices in ascending order."""
    return _own("Eigvalsh", x, 1)[0]


@of_arrays
def inv(x: Tensor, /) -> Tensor:
    """The inverses of matrices."""
    size = x.shape[-1]
    return solve(x, eye(size, dtype=x.dtype, device=x.device))


@of_arrays
def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | str = "fro") -> Tensor:
    """The norms of matrices: Frobenius, from singular values, or from sums of rows or columns."""
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


@of_arrays
def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The `n`-th powers of matrices; of their inverses if `n` is negative."""
    _expect_matrices("matrix_power", x)
    if n < 0:
        x, n = inv(x), -n
    made = broadcast_to(eye(x.shape[-1], dtype=x.dtype, device=x.device), x.shape)
    while n:
        if n & 1:
            made = made @ x
        x = x @ x
        n >>= 1
    return made


@of_arrays
def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The number of singular values above rounding error."""
    values = svdvals(x)
    if rtol is None:
        rtol = builtins.max(x.shape[-2:]) * finfo(values.dtype).eps
    bound = rtol[..., None] if isinstance(rtol, Tensor) and rtol.ndim else rtol
    return sum((values > _greatest(values, axis=-1, keepdims=True) * bound).astype(_oarlock.int64), axis=-1)


@of_arrays
def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The outer product of two vectors."""
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"expected vectors, found {x1.shape} and {x2.shape}")
    return x1[:, None] * x2[None, :]


@of_arrays
def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudoinverses of matrices."""
    left, values, right = svd(x, full_matrices=False)
    if rtol is None:
        rtol = builtins.max(x.shape[-2:]) * finfo(values.dtype).eps
    bound = rtol[..., None] if isinstance(rtol, Tensor) and rtol.ndim else rtol
    is_kept = values > _greatest(values, axis=-1, keepdims=True) * bound
    inverse = where(is_kept, 1 / where(is_kept, values, 1.0), 0.0).astype(x.dtype, copy=False)
    return matmul(_adjoint(right) * inverse[..., None, :], _adjoint(left))


@of_arrays
def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """The QR decomposition."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"expected `reduced` or `complete` for `mode`, found `{mode}`")
    return QRResult(*_own("Qr", x, 2, complete=int(mode == "complete")))


@of_arrays
def slogdet(x: Tensor, /) -> SlogdetResult:
    """The signs of determinants, and the logarithms of their magnitudes, which cannot overflow."""
    return SlogdetResult(*_own("SlogDet", x, 2))


@of_arrays
def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Solves `x1 @ x = x2`, where `x2` is a vector or matrices."""
    dtype = result_type(x1, x2)
    x1, x2 = x1.astype(dtype, copy=False), x2.astype(dtype, copy=False)
    is_vector = x2.ndim == 1
    right = x2[:, None] if is_vector else x2
    stack_ = broadcast_shapes(x1.shape[:-2], right.shape[:-2])
    left = broadcast_to(x1, stack_ + x1.shape[-2:])
    right = broadcast_to(right, stack_ + right.shape[-2:])
    made = op("Solve", [left, right], domain="oarlock")
    return made[..., 0] if is_vector else made


@of_arrays
def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition, with singular values in descending order."""
    return SVDResult(*_own("Svd", x, 3, complete=int(full_matrices)))


@of_arrays
def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of matrices in descending order."""
    return _own("Svdvals", x, 1)[0]


@of_arrays
def trace(x: Tensor, /, *, offset: int = 0, dtype: DtypeLike | None = None) -> Tensor:
    """The traces of matrices."""
    _expect_matrices("trace", x)
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


@of_arrays
def vector_norm(x: Tensor, /, *, axis: Axes | None = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The norms of vectors: the p-th root of the sum of p-th powers, or the largest or smallest magnitude."""
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
