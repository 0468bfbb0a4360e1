"""Windows for the ends of signals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import _oarlock
from ._arguments import in_own_name
from ._creation import arange

if TYPE_CHECKING:
    from ._oarlock import Tensor
    from ._typing import DeviceLike

__all__: list[str] = ["bartlett", "blackman", "hamming", "hanning"]


@in_own_name
def bartlett(M: int, /, *, device: DeviceLike | None = None) -> Tensor:
    """A window of `M` numbers that rises from 0 to 1 in a line, and falls again.

    >>> ol.bartlett(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return (1 - abs(_places(M, device))).astype(_oarlock.float32)


@in_own_name
def blackman(M: int, /, *, device: DeviceLike | None = None) -> Tensor:
    """The window of Blackman: `M` numbers, the sum of two cosines.

    >>> ol.round(ol.blackman(5), 2).tolist()
    [-0.0, 0.3400000035762787, 1.0, 0.3400000035762787, -0.0]
    """
    return _cosines(M, (0.42, 0.5, 0.08), device)


@in_own_name
def hamming(M: int, /, *, device: DeviceLike | None = None) -> Tensor:
    """The window of Hamming: `M` numbers, a cosine that ends above 0.

    >>> ol.round(ol.hamming(3), 2).tolist()
    [0.07999999821186066, 1.0, 0.07999999821186066]
    """
    return _cosines(M, (0.54, 0.46), device)


@in_own_name
def hanning(M: int, /, *, device: DeviceLike | None = None) -> Tensor:
    """The window of von Hann: `M` numbers, a cosine that ends at 0.

    >>> ol.hanning(5).tolist()
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    return _cosines(M, (0.5, 0.5), device)


def _places(count: int, device: DeviceLike | None) -> Tensor:
    """Places from -1 to 1 in 64 bits; one alone is in the middle."""
    return arange(1 - count, count, 2, dtype=_oarlock.float64, device=device) / max(count - 1, 1)


def _cosines(count: int, weights: tuple[float, ...], device: DeviceLike | None) -> Tensor:
    """The weighted sum of a constant and of cosines with one period, two and so on, with their middle at 1."""
    angles = math.pi * _places(count, device)
    made = angles * 0 + weights[0]
    for periods, weight in enumerate(weights[1:], 1):
        made = made + weight * _oarlock.cos(periods * angles)
    return made.astype(_oarlock.float32)
