"""Elements around an array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _oarlock
from ._arguments import in_own_name, whole_number
from ._creation import arange, full
from ._elementwise import clip
from ._information import isdtype
from ._kinds import as_exact_floats
from ._manipulation import broadcast_to, concat
from ._oarlock import Tensor, asarray, reshape, zeros
from ._order_statistics import median
from ._search import take, where
from ._statistics import max, mean, min

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._typing import ArrayLike

__all__: list[str] = ["pad"]

STATISTICS: dict[str, Callable[..., Tensor]] = {"maximum": max, "mean": mean, "median": median, "minimum": min}

MODES = ("constant", "edge", "empty", "linear_ramp", *STATISTICS, "reflect", "symmetric", "wrap")


@in_own_name
def pad(
    x: ArrayLike,
    pad_width: ArrayLike | dict[int, Any],
    /,
    mode: str = "constant",
    *,
    constant_values: ArrayLike = 0,
    end_values: ArrayLike = 0,
    stat_length: ArrayLike | None = None,
    reflect_type: str = "even",
) -> Tensor:
    """An array with elements before and behind each axis: as many as `pad_width` says for all axes, or in a pair for each end,
    or in a list of such pairs for each axis, or in a dictionary by axis.

    They are constant (`empty`: zeros), those at the edge, those inside in reverse without (`reflect`) or with (`symmetric`) the
    edge, or those of the other end (`wrap`). `linear_ramp` goes from the edge to `end_values`. `maximum`, `mean`, `median` and
    `minimum` are those along the axis, or of the `stat_length` elements at the edge. With `reflect_type="odd"`, what is in reverse
    is also mirrored at the value of the edge.

    >>> ol.pad([1, 2], (1, 2)).tolist()
    [0, 1, 2, 0, 0]
    """
    x = asarray(x)
    if mode not in MODES:
        hint = "\nhint: `oarlock.asarray(numpy.pad(…))` calls a function" if callable(mode) else ""
        raise ValueError(f"expected {', '.join(f'`{name}`' for name in MODES)} for `mode`, found `{mode}`{hint}")
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"expected `even` or `odd` for `reflect_type`, found `{reflect_type}`")
    widths = _pairs(_by_axis(pad_width, x.ndim) if isinstance(pad_width, dict) else pad_width, x.ndim)
    constants, ends = _pairs(constant_values, x.ndim), _pairs(end_values, x.ndim)
    lengths = [[None, None]] * x.ndim if stat_length is None else _pairs(stat_length, x.ndim)
    for axis, (before, behind) in enumerate(widths):
        if before < 0 or behind < 0:
            raise ValueError(f"expected widths of at least 0, found {before} and {behind}")
        if not (before or behind):
            continue
        if mode not in ("constant", "empty") and not x.shape[axis]:
            raise ValueError(f"expected elements to pad with in the mode `{mode}`, found an axis of none\nhint: use `constant`")
        if mode in STATISTICS:
            sides = [_statistic(x, axis, mode, length, at_end) for at_end, length in enumerate(lengths[axis])]
        elif mode == "linear_ramp":
            sides = [_ramp(x, axis, width, end, at_end) for at_end, (width, end) in enumerate(zip(widths[axis], ends[axis], strict=True))]
        elif mode in ("constant", "empty"):
            values = constants[axis] if mode == "constant" else (0, 0)
            sides = [full((1,) * x.ndim, value, x.dtype, device=x.device) for value in values]
        elif reflect_type == "odd" and mode in ("reflect", "symmetric"):
            x = _mirrored(x, axis, (before, behind), mode)
            continue
        else:
            x = take(x, _sources(x.shape[axis], before, behind, mode, x), axis)
            continue
        shapes = ((*x.shape[:axis], width, *x.shape[axis + 1 :]) for width in (before, behind))
        first, last = (broadcast_to(side, shape) for side, shape in zip(sides, shapes, strict=True))
        x = concat([first, x, last], axis)
    return x


def _by_axis(widths: dict[int, Any], rank: int) -> list[list[int]]:
    """The pairs for all axes; there are none for axes that a dictionary lacks."""
    pairs = [[0, 0] for _ in range(rank)]
    for axis, width in widths.items():
        if not -rank <= axis < rank:
            raise ValueError(f"expected an axis from {-rank} to {rank - 1} in `pad_width`, found {axis}")
        alone = whole_number(width)
        pairs[axis] = list(width) if alone is None else [alone, alone]
    return pairs


def _pairs(given: ArrayLike, rank: int) -> list[list[Any]]:
    """A pair of numbers for each axis."""
    made = asarray(given, device="cpu")
    # One pair in a list is one of all axes; so is one number in a list.
    if made.ndim == 2 and made.shape[1] == 1 and made.shape[0] == rank:
        made = broadcast_to(made, (rank, 2))
    pairs: list[list[Any]] = broadcast_to(made, (rank, 2)).tolist()
    return pairs


def _statistic(x: Tensor, axis: int, mode: str, length: int | None, at_end: int) -> Tensor:
    """The statistic of so many elements at an end of an axis."""
    size = x.shape[axis]
    if length is not None and length < 1:
        raise ValueError(f"expected one element at least for `stat_length`, found {length}")
    kept = size if length is None or length > size else length
    part = x[(slice(None),) * axis + (slice(size - kept, None) if at_end else slice(kept),)]
    if mode in ("maximum", "minimum"):
        return STATISTICS[mode](part, axis, keepdims=True)
    made = STATISTICS[mode](as_exact_floats(part), axis, keepdims=True)
    return (_oarlock.round(made) if isdtype(x.dtype, "integral") else made).astype(x.dtype, copy=False)


def _ramp(x: Tensor, axis: int, width: int, end: Any, at_end: int) -> Tensor:
    """Elements that go from a number to the edge of an axis in equal steps, without the edge."""
    edge = x[(slice(None),) * axis + (slice(-1, None) if at_end else slice(1),)]
    wide = edge.astype(_oarlock.complex128 if isdtype(x.dtype, "complex floating") else _oarlock.float64)
    steps = arange(width, dtype=_oarlock.float64, device=x.device)
    steps = reshape(steps[::-1] if at_end else steps, (width,) + (1,) * (x.ndim - axis - 1))
    made = (wide - end) / (width or 1) * steps + end
    return (_oarlock.floor(made) if isdtype(x.dtype, "integral") else made).astype(x.dtype, copy=False)


def _sources(size: int, before: int, behind: int, mode: str, x: Tensor) -> Tensor:
    """The index along an axis that each element comes from."""
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


def _mirrored(x: Tensor, axis: int, widths: tuple[int, int], mode: str) -> Tensor:
    """An array that goes on at both ends of an axis in reverse, mirrored at the values of the edges."""
    size = x.shape[axis]
    made = take(x, _sources(size, *widths, mode, x), axis)
    if size == 1:
        return made
    places = arange(-widths[0], size + widths[1], device=x.device)
    period = 2 * size - (2 if mode == "reflect" else 0)
    first, last = (x[(slice(None),) * axis + (slice(at, at + 1),)] for at in (0, size - 1))
    sides = (-1,) + (1,) * (x.ndim - axis - 1)
    is_reverse = reshape(places % period >= size, sides)
    rounds = reshape(places // period, sides).astype(x.dtype)
    return where(is_reverse, 2 * last - made, made) + 2 * rounds * (last - first)
