"""The order of complex numbers, which is NumPy's: real parts decide, and imaginary parts between equal ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import _oarlock
from ._creation import sizes_of
from ._oarlock import Tensor, _axes, _reduced, imag, isnan, op, permute_dims, real, reshape

if TYPE_CHECKING:
    from ._typing import Axes


def sorting_places(x: Tensor, axis: int, descending: bool) -> Tensor:
    """The indices that sort along an axis. The sort is stable."""
    parts = real(x), imag(x)
    # NaN lies behind all numbers, even as an imaginary part, and as a real part behind that.
    rank = isnan(parts[0]).astype(_oarlock.uint8) * 2 + isnan(parts[1]).astype(_oarlock.uint8)
    size, order = sizes_of([x.shape[axis]]), {"axis": axis, "largest": int(descending), "sorted": 1}
    places: Tensor | None = None
    for key in (parts[1], parts[0], rank):
        _, next_places = op("TopK", [key if places is None else _along(key, places, axis), size], order, outputs=2)
        places = next_places if places is None else _along(places, next_places, axis)
    assert places is not None
    return places


def extreme_places(reduction: str, x: Tensor, axis: int) -> Tensor:
    """The index of the first extreme along an axis, which stays. The first NaN counts as the extreme.

    The reduction is `ReduceMax` or `ReduceMin`.
    """
    parts = real(x), imag(x)
    is_level = _oarlock.equal(parts[0], _reduced(reduction, parts[0], axis, True))
    out_of_reach = -math.inf if reduction == "ReduceMax" else math.inf
    second = op("Where", [is_level, parts[1], _oarlock.asarray(out_of_reach, dtype=parts[1].dtype, device=x.device)])
    is_extreme = _oarlock.logical_and(is_level, _oarlock.equal(second, _reduced(reduction, second, axis, True)))
    is_none = isnan(x)
    has_none = _reduced("ReduceMax", is_none.astype(_oarlock.uint8), axis, True).astype(_oarlock.bool)
    wanted = op("Where", [has_none, is_none, is_extreme])
    return op("ArgMax", [wanted.astype(_oarlock.uint8)], {"axis": axis, "keepdims": 1})


def extreme(reduction: str, x: Tensor, axis: Axes | None, keepdims: bool) -> Tensor:
    """The extreme of the elements along some axes."""
    axes = _axes(axis, x.ndim)
    kept = [at for at in range(x.ndim) if at not in axes]
    size = math.prod(x.shape[at] for at in axes)
    rows = reshape(permute_dims(x, (*kept, *axes)), (*(x.shape[at] for at in kept), size))
    made = _along(rows, extreme_places(reduction, rows, len(kept)), len(kept))
    return reshape(made, tuple(1 if at in axes else size for at, size in enumerate(x.shape) if keepdims or at in kept))


def _along(x: Tensor, places: Tensor, axis: int) -> Tensor:
    return op("GatherElements", [x, places], {"axis": axis})
