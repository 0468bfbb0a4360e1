"""Decompositions of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, overload

from ._arguments import in_own_name
from ._creation import eye
from ._kinds import COMPLEX, as_floats
from ._oarlock import Tensor, _numbers, asarray, complex64, complex128, conj, float64, imag, matmul, op, real
from ._oarlock import bool as bool_
from ._search import where
from ._statistics import sum

if TYPE_CHECKING:
    from typing import Literal

    from ._typing import ArrayLike


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Tensor
    eigenvectors: Tensor


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
    made = op(name, [as_floats(x)], attributes, outputs=outputs, domain="oarlock")
    return made if isinstance(made, tuple) else (made,)


def adjoint(x: Tensor) -> Tensor:
    return conj(x).mT


@in_own_name
def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factor of positive definite matrices.

    >>> ol.linalg.cholesky([[4.0, 0.0], [0.0, 9.0]]).tolist()
    [[2.0, 0.0], [0.0, 3.0]]
    """
    x = asarray(x)
    # The op reads one triangle only, so the other is copied there.
    (lower,) = _own("Cholesky", adjoint(x) if upper else x, 1)
    return adjoint(lower) if upper else lower


@in_own_name
def eig(x: ArrayLike, /) -> EigResult:
    """The eigenvalues of square matrices, in no particular order, and the eigenvectors as columns of length 1; all are complex.

    >>> ol.round(ol.linalg.eig([[2.0, 0.0], [0.0, 2.0]]).eigenvalues.real, 3).tolist()
    [2.0, 2.0]
    """
    x = asarray(x)
    narrow = x.dtype not in (float64, complex128)
    wide = _numbers(x).astype(complex128, copy=False)
    (vectors,) = _own("Eigenvectors", wide, 1)
    # A vector of length 1 times what the matrix makes of it.
    values = sum(conj(vectors) * matmul(wide, vectors), -2)
    dtype = complex64 if narrow else complex128
    return EigResult(values.astype(dtype, copy=False), vectors.astype(dtype, copy=False))


@in_own_name
def eigvals(x: ArrayLike, /) -> Tensor:
    """The eigenvalues of square matrices, in no particular order; all are complex.

    >>> ol.round(ol.linalg.eigvals([[2.0, 0.0], [0.0, 2.0]]).real, 3).tolist()
    [2.0, 2.0]
    """
    return eig(x).eigenvalues


def _lower(x: Tensor, UPLO: str) -> Tensor:  # noqa: N803
    """Hermitian matrices of which the lower triangle counts. Nothing imaginary on the diagonal does."""
    if UPLO not in ("L", "U", "l", "u"):
        raise ValueError(f"expected `L` for the lower triangle or `U` for the upper for `UPLO`, found `{UPLO}`")
    x = x if UPLO in "Ll" else adjoint(x)
    if x.dtype not in COMPLEX or x.ndim < 2:
        return x
    is_diagonal = eye(x.shape[-2], x.shape[-1], dtype=bool_, device=x.device)
    return op("Complex", [real(x), where(is_diagonal, 0.0, imag(x))], domain="oarlock")


@in_own_name
def eigh(x: ArrayLike, /, UPLO: str = "L") -> EighResult:  # noqa: N803
    """The eigenvalues of Hermitian matrices in ascending order, and the eigenvectors as columns. Only one triangle is read: the
    lower, or the upper with `UPLO="U"`.

    >>> ol.round(ol.linalg.eigh([[2.0, 0.0], [0.0, 1.0]]).eigenvalues, 3).tolist()
    [1.0, 2.0]
    """
    return EighResult(*_own("Eigh", _lower(asarray(x), UPLO), 2))


@in_own_name
def eigvalsh(x: ArrayLike, /, UPLO: str = "L") -> Tensor:  # noqa: N803
    """The eigenvalues of Hermitian matrices in ascending order. Only one triangle is read, as by `eigh`.

    >>> ol.round(ol.linalg.eigvalsh([[2.0, 0.0], [0.0, 1.0]]), 3).tolist()
    [1.0, 2.0]
    """
    return _own("Eigvalsh", _lower(asarray(x), UPLO), 1)[0]


@overload
def qr(x: ArrayLike, /, mode: Literal["r"]) -> Tensor: ...
@overload
def qr(x: ArrayLike, /, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@in_own_name
def qr(x: ArrayLike, /, mode: str = "reduced") -> QRResult | Tensor:
    """The QR decomposition: `reduced`, `complete`, or the triangle R alone with `mode="r"`.

    >>> ol.linalg.qr([[1.0, 0.0], [0.0, 1.0]]).R.shape
    (2, 2)
    """
    x = asarray(x)
    if mode not in ("reduced", "complete", "r"):
        hint = "\nhint: `scipy.linalg.lapack` has the reflections" if mode == "raw" else ""
        raise ValueError(f"expected `reduced`, `complete` or `r` for `mode`, found `{mode}`{hint}")
    made = QRResult(*_own("Qr", x, 2, complete=int(mode == "complete")))
    return made.R if mode == "r" else made


@in_own_name
def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """The signs of determinants, and the logarithms of their magnitudes, which cannot overflow.

    >>> ol.linalg.slogdet([[1.0, 0.0], [0.0, -1.0]]).sign.item()
    -1.0
    """
    x = asarray(x)
    return SlogdetResult(*_own("SlogDet", x, 2))


@in_own_name
def svd(x: ArrayLike, /, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition, with singular values in descending order.

    >>> ol.round(ol.linalg.svd([[2.0, 0.0], [0.0, 1.0]]).S, 3).tolist()
    [2.0, 1.0]
    """
    x = asarray(x)
    return SVDResult(*_own("Svd", x, 3, complete=int(full_matrices)))


@in_own_name
def svdvals(x: ArrayLike, /) -> Tensor:
    """The singular values of matrices in descending order.

    >>> ol.round(ol.linalg.svdvals([[2.0, 0.0], [0.0, 1.0]]), 3).tolist()
    [2.0, 1.0]
    """
    x = asarray(x)
    return _own("Svdvals", x, 1)[0]
