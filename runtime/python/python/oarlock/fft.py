"""Fourier transforms, after the extension of the Python array API standard."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from . import _absent, _oarlock
from ._arguments import in_own_name
from ._creation import arange
from ._kinds import COMPLEX
from ._manipulation import concat, roll
from ._oarlock import Tensor, _axes, _axis, _of_parts, _parts, asarray, conj, op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._typing import ArrayLike, DeviceLike, DtypeLike

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]

@in_own_name
def fft(x: ArrayLike, /, n: int | None = None, axis: int = -1, *, norm: str | None = "backward") -> Tensor:
    """The transform along an axis, truncated or padded with zeros to `n` elements.

    >>> ol.fft.fft([1.0, 0.0, 0.0, 0.0]).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    x = asarray(x)
    return _transformed(x, n, axis, norm, is_inverse=False)


@in_own_name
def ifft(x: ArrayLike, /, n: int | None = None, axis: int = -1, *, norm: str | None = "backward") -> Tensor:
    """The inverse transform along an axis.

    >>> ol.fft.ifft([4.0, 0.0, 0.0, 0.0]).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    x = asarray(x)
    return _transformed(x, n, axis, norm, is_inverse=True)


@in_own_name
def fftn(
    x: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, *, norm: str | None = "backward"
) -> Tensor:
    """The transform along several axes.

    >>> ol.fft.fftn([[1.0, 0.0], [0.0, 0.0]]).real.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    x = asarray(x)
    for axis, n in _each(x, s, axes):
        x = fft(x, n=n, axis=axis, norm=norm)
    return x


@in_own_name
def ifftn(
    x: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, *, norm: str | None = "backward"
) -> Tensor:
    """The inverse transform along several axes.

    >>> ol.fft.ifftn([[4.0, 0.0], [0.0, 0.0]]).real.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    x = asarray(x)
    for axis, n in _each(x, s, axes):
        x = ifft(x, n=n, axis=axis, norm=norm)
    return x


@in_own_name
def rfft(x: ArrayLike, /, n: int | None = None, axis: int = -1, *, norm: str | None = "backward") -> Tensor:
    """The non-redundant half of the transform of real numbers.

    >>> ol.fft.rfft([1.0, 0.0, 0.0, 0.0]).real.tolist()
    [1.0, 1.0, 1.0]
    """
    x = asarray(x)
    if x.dtype in COMPLEX:
        raise TypeError(f"expected real numbers, found {x.dtype}\nhint: `fft` takes complex ones")
    return _transformed(x, n, axis, norm, is_onesided=True)


@in_own_name
def irfft(x: ArrayLike, /, n: int | None = None, axis: int = -1, *, norm: str | None = "backward") -> Tensor:
    """The inverse of `rfft`: `n` real numbers.

    >>> ol.fft.irfft([4.0, 0.0, 0.0]).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    x = asarray(x)
    size = 2 * (x.shape[axis] - 1) if n is None else n
    if size < 1:
        raise ValueError(f"expected one number at least to be made, found {size}")
    return _transformed(_as_complex(x), size, axis, norm, is_inverse=True, is_onesided=True)


@in_own_name
def rfftn(
    x: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, *, norm: str | None = "backward"
) -> Tensor:
    """The transform of real numbers along several axes, of which the last is halved.

    >>> ol.fft.rfftn([[1.0, 0.0], [0.0, 0.0]]).real.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    x = asarray(x)
    *others, (axis, n) = _each(x, s, axes)
    x = rfft(x, n=n, axis=axis, norm=norm)
    for axis, n in others:
        x = fft(x, n=n, axis=axis, norm=norm)
    return x


@in_own_name
def irfftn(
    x: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, *, norm: str | None = "backward"
) -> Tensor:
    """The inverse of `rfftn`.

    >>> ol.fft.irfftn([[4.0, 0.0], [0.0, 0.0]]).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    x = asarray(x)
    *others, (axis, n) = _each(x, s, axes)
    for other, size in others:
        x = ifft(x, n=size, axis=other, norm=norm)
    return irfft(x, n=n if s is not None else None, axis=axis, norm=norm)


@in_own_name
def fft2(x: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), *, norm: str | None = "backward") -> Tensor:
    """The transform along two axes, by default the last.

    >>> ol.fft.fft2([[1.0, 0.0], [0.0, 0.0]]).real.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return fftn(x, s, axes, norm=norm)


@in_own_name
def ifft2(x: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), *, norm: str | None = "backward") -> Tensor:
    """The inverse transform along two axes, by default the last.

    >>> ol.fft.ifft2([[4.0, 0.0], [0.0, 0.0]]).real.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return ifftn(x, s, axes, norm=norm)


@in_own_name
def rfft2(x: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), *, norm: str | None = "backward") -> Tensor:
    """The transform of real numbers along two axes, by default the last, of which the second is halved.

    >>> ol.fft.rfft2([[1.0, 0.0], [0.0, 0.0]]).real.tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return rfftn(x, s, axes, norm=norm)


@in_own_name
def irfft2(x: ArrayLike, /, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), *, norm: str | None = "backward") -> Tensor:
    """The inverse of `rfft2`.

    >>> ol.fft.irfft2([[4.0, 0.0], [0.0, 0.0]]).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    return irfftn(x, s, axes, norm=norm)


@in_own_name
def hfft(x: ArrayLike, /, n: int | None = None, axis: int = -1, *, norm: str | None = "backward") -> Tensor:
    """The real transform of Hermitian-symmetric numbers.

    >>> ol.fft.hfft([1.0, 0.0, 0.0]).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    x = asarray(x)
    return irfft(conj(_as_complex(x)), n=n, axis=axis, norm=_OPPOSITE[_known(norm)])


@in_own_name
def ihfft(x: ArrayLike, /, n: int | None = None, axis: int = -1, *, norm: str | None = "backward") -> Tensor:
    """The inverse of `hfft`.

    >>> ol.fft.ihfft([4.0, 0.0, 0.0, 0.0]).real.tolist()
    [1.0, 1.0, 1.0]
    """
    x = asarray(x)
    return conj(rfft(x, n=n, axis=axis, norm=_OPPOSITE[_known(norm)]))


@in_own_name
def fftfreq(
    n: int, /, d: float = 1.0, *, dtype: DtypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The frequencies of the elements of a transform, for samples at a distance of `d`.

    >>> ol.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    places = concat([arange((n - 1) // 2 + 1, device=device), arange(-(n // 2), 0, device=device)])
    return _frequencies(places, n, d, dtype)


@in_own_name
def rfftfreq(
    n: int, /, d: float = 1.0, *, dtype: DtypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """The frequencies of the elements that `rfft` gives, for samples at a distance of `d`.

    >>> ol.fft.rfftfreq(4).tolist()
    [0.0, 0.25, 0.5]
    """
    return _frequencies(arange(n // 2 + 1, device=device), n, d, dtype)


@in_own_name
def fftshift(x: ArrayLike, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """Moves the frequency 0 to the middle.

    >>> ol.fft.fftshift([0, 1, -2, -1]).tolist()
    [-2, -1, 0, 1]
    """
    x = asarray(x)
    places = _axes(axes, x.ndim)
    return roll(x, tuple(x.shape[at] // 2 for at in places), axis=tuple(places))


@in_own_name
def ifftshift(x: ArrayLike, /, axes: int | Sequence[int] | None = None) -> Tensor:
    """Moves the frequency 0 back to the beginning.

    >>> ol.fft.ifftshift([-2, -1, 0, 1]).tolist()
    [0, 1, -2, -1]
    """
    x = asarray(x)
    places = _axes(axes, x.ndim)
    return roll(x, tuple(-(x.shape[at] // 2) for at in places), axis=tuple(places))


_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _known(norm: str | None) -> str:
    """The scale, by default that of NumPy."""
    if norm is None:
        return "backward"
    if norm not in _OPPOSITE:
        raise ValueError(f"expected `backward`, `ortho` or `forward` for `norm`, found `{norm}`")
    return norm


def _transformed(
    x: Tensor, n: int | None, axis: int, norm: str | None, *, is_inverse: bool = False, is_onesided: bool = False
) -> Tensor:
    norm = _known(norm)
    axis = _axis(axis, x.ndim)
    size = x.shape[axis] if n is None else n
    if size < 1:
        raise ValueError(f"expected one element at least to transform, found {size}")
    # The op has the parts of complex numbers as the last dimension; it truncates or pads the transformed one.
    parts = _parts(x) if x.dtype in COMPLEX else _as_float(x)[..., None]
    attributes = {"inverse": int(is_inverse), "onesided": int(is_onesided)}
    lengths = [asarray(number, dtype=_oarlock.int64, device="cpu") for number in (size, axis)]
    made = op("DFT", [parts, *lengths], attributes)
    # In the inverse, the op divides by the size, as `backward` does.
    factor = 1.0
    if norm == "ortho":
        factor = math.sqrt(size) if is_inverse else 1 / math.sqrt(size)
    elif norm == "forward":
        factor = float(size) if is_inverse else 1 / size
    made = made if factor == 1.0 else made * factor
    return made[..., 0] if is_inverse and is_onesided else _of_parts(made)


def _as_float(x: Tensor) -> Tensor:
    return x if x.dtype in (_oarlock.float32, _oarlock.float64) else x.astype(_oarlock.float32)


def _as_complex(x: Tensor) -> Tensor:
    if x.dtype in COMPLEX:
        return x
    return x.astype(_oarlock.complex128 if x.dtype == _oarlock.float64 else _oarlock.complex64)


def _each(x: Tensor, s: Sequence[int] | None, axes: Sequence[int] | None) -> list[tuple[int, int | None]]:
    """The transformed axes, each with its requested size."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    sizes = [None] * len(axes) if s is None else list(s)
    if len(sizes) != len(axes):
        raise ValueError(f"expected a size for each dimension, found {sizes} for {list(axes)}")
    return list(zip(_axes(tuple(axes), x.ndim), sizes, strict=True))


def _frequencies(places: Tensor, n: int, d: float, dtype: DtypeLike | None) -> Tensor:
    if n < 1:
        raise ValueError(f"expected a transform of 1 element or more, found {n}")
    wide = places.astype(_oarlock.float64) / asarray(n * d, dtype=_oarlock.float64, device=places.device)
    return wide.astype(_oarlock.float32 if dtype is None else dtype, copy=False)


def __dir__() -> list[str]:
    """The public names."""
    return __all__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Tells what to use in place of functions that are absent here."""
        raise _absent.function(name, "oarlock.fft")
