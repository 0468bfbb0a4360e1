"""Elements around an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._arguments import in_own_name
from ._creation import arange, full
from ._elementwise import clip
from ._manipulation import broadcast_to, concat
from ._oarlock import Tensor, asarray, zeros
from ._search import take, where

if TYPE_CHECKING:
    from ._typing import ArrayLike

__all__: list[str] = ["pad"]

MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


@in_own_name
def pad(x: ArrayLike, pad_width: ArrayLike, /, mode: str = "constant", *, constant_values: ArrayLike = 0) -> Tensor:
    """An array with elements before and behind each axis: as many as `pad_width` says for all axes, or in a pair for each end,
    or in a list of such pairs for each axis.

    They are constant, those at the edge, those inside in reverse without (`reflect`) or with (`symmetric`) the edge, or those of
    the other end (`wrap`).

    >>> ol.pad([1, 2], (1, 2)).tolist()
    [0, 1, 2, 0, 0]
    """
    x = asarray(x)
    if mode not in MODES:
        raise ValueError(f"expected {', '.join(f'`{name}`' for name in MODES)} for `mode`, found `{mode}`")
    widths = _pairs(pad_width, x.ndim)
    constants = _pairs(constant_values, x.ndim)
    for axis, ((before, behind), values) in enumerate(zip(widths, constants, strict=True)):
        if before < 0 or behind < 0:
            raise ValueError(f"expected widths of at least 0, found {before} and {behind}")
        if not (before or behind):
            continue
        if mode == "constant":
            sides = ((*x.shape[:axis], width, *x.shape[axis + 1 :]) for width in (before, behind))
            first, last = (full(shape, value, x.dtype, device=x.device) for shape, value in zip(sides, values, strict=True))
            x = concat([first, x, last], axis)
        else:
            x = take(x, _sources(x.shape[axis], before, behind, mode, x), axis)
    return x


def _pairs(given: ArrayLike, rank: int) -> list[list[int]]:
    """A pair of numbers for each axis."""
    made = asarray(given, device="cpu")
    # One pair in a list is one of all axes; so is one number in a list.
    if made.ndim == 2 and made.shape[1] == 1 and made.shape[0] == rank:
        made = broadcast_to(made, (rank, 2))
    pairs: list[list[int]] = broadcast_to(made, (rank, 2)).tolist()
    return pairs


def _sources(size: int, before: int, behind: int, mode: str, x: Tensor) -> Tensor:
    """The index along an axis that each element comes from."""
    if size == 0:
        raise ValueError(f"expected elements to pad with in the mode `{mode}`, found an axis of none\nhint: use `constant`")
    places = arange(-before, size + behind, device=x.device)
    if mode == "edge":
        return clip(places, 0, size - 1)
    if mode == "wrap":
        return places % size
    if mode == "symmetric":
        turn = places % (2 * size)
        return where(turn < size, turn, 2 * size - 1 - turn)
    if size == 1:
        return zeros(places.shape, dtype=places.dtype, device=x.device)
    turn = places % (2 * size - 2)
    return where(turn < size, turn, 2 * size - 2 - turn)
