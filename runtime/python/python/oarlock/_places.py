"""Where elements go among ordered ones, for functions of several modules."""

from __future__ import annotations

from . import _oarlock
from ._creation import sizes_of
from ._oarlock import Tensor, asarray, op

_FLOATS = (_oarlock.float16, _oarlock.bfloat16, _oarlock.float32, _oarlock.float64)


def places_among(ordered: Tensor, wanted: Tensor, *, behind_equal: bool) -> Tensor:
    """Where elements go among those of an ordered array, before equal ones or behind them. What is no number comes last, as
    `sort` has it.

    Each place is found bit by bit, from the highest: it moves on as long as the last element up to there comes before. So
    memory grows with what is looked for, not with its product with what it is looked for in.
    """
    compare = _oarlock.less_equal if behind_equal else _oarlock.less
    is_no_number = _oarlock.isnan(wanted) if wanted.dtype in _FLOATS else None

    def comes_before(last: Tensor) -> Tensor:
        is_before = compare(last, wanted)
        if is_no_number is None:
            return is_before
        return _oarlock.logical_or(is_before, is_no_number if behind_equal else _oarlock.logical_and(is_no_number, last == last))

    places = op("Expand", [asarray(0, device=wanted.device), sizes_of(wanted.shape)])
    for bit in reversed(range(ordered.size.bit_length())):
        further = places + (1 << bit)
        last = op("Gather", [ordered, _oarlock.minimum(further, ordered.size) - 1])
        moves = _oarlock.logical_and(further <= ordered.size, comes_before(last))
        places = op("Where", [moves, further, places])
    return places
