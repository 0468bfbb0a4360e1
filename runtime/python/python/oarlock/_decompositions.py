"""Decompositions of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ._arguments import in_own_name
from ._oarlock import Tensor, asarray, conj, op

if TYPE_CHECKING:
    from ._typing import ArrayLike


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


def adjoint(x: Tensor) -> Tensor:
    return conj(x).mT


@in_own_name
def cholesky(x: ArrayLike, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factor of positive definite matrices."""
    x = asarray(x)
    # The op reads one triangle only, so the other is copied there.
    (lower,) = _own("Cholesky", adjoint(x) if upper else x, 1)
    return adjoint(lower) if upper else lower


@in_own_name
def eigh(x: ArrayLike, /) -> EighResult:
    """The eigenvalues of Hermitian matrices in ascending order, and the eigenvectors as columns."""
    x = asarray(x)
    return EighResult(*_own("Eigh", x, 2))


@in_own_name
def eigvalsh(x: ArrayLike, /) -> Tensor:
    """The eigenvalues of Hermitian matrices in ascending order."""
    x = asarray(x)
    return _own("Eigvalsh", x, 1)[0]


@in_own_name
def qr(x: ArrayLike, /, mode: str = "reduced") -> QRResult:
    """The QR decomposition."""
    x = asarray(x)
    if mode not in ("reduced", "complete"):
        raise ValueError(f"expected `reduced` or `complete` for `mode`, found `{mode}`")
    return QRResult(*_own("Qr", x, 2, complete=int(mode == "complete")))


@in_own_name
def slogdet(x: ArrayLike, /) -> SlogdetResult:
    """The signs of determinants, and the logarithms of their magnitudes, which cannot overflow."""
    x = asarray(x)
    return SlogdetResult(*_own("SlogDet", x, 2))


@in_own_name
def svd(x: ArrayLike, /, full_matrices: bool = True) -> SVDResult:
    """The singular value decomposition, with singular values in descending order."""
    x = asarray(x)
    return SVDResult(*_own("Svd", x, 3, complete=int(full_matrices)))


@in_own_name
def svdvals(x: ArrayLike, /) -> Tensor:
    """The singular values of matrices in descending order."""
    x = asarray(x)
    return _own("Svdvals", x, 1)[0]
