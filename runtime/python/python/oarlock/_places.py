"""Where elements go among ordered ones, for functions of several modules."""

from __future__ import annotations

from . import _oarlock
from ._creation import sizes_of
from ._oarlock import Tensor, asarray, op


def places_among(ordered: Tensor, wanted: Tensor, *, behind_equal: bool) -> Tensor:
    """Where elements go among those of an ordered array, before equal ones or behind them. What is no number comes last, as
    `sort` has it.

    Each place is found bit by bit, from the highest: it moves on as long as the last element up to there comes before. So
    memory grows with what is looked for, not with its product with what it is looked for in.
    """
    is_no_number = _oarlock.isnan(wanted)

    def comes_before(last: Tensor) -> Tensor:
        if behind_equal:
            return _oarlock.logical_or(last <= wanted, is_no_number)
        return _oarlock.logical_or(last < wanted, _oarlock.logical_and(is_no_number, last == last))

    places = op("Expand", [asarray(0, device=wanted.device), sizes_of(wanted.shape)])
    for bit in reversed(range(ordered.size.bit_length())):
        further = places + (1 << bit)
        last = op("Gather", [ordered, _oarlock.minimum(further, ordered.size) - 1])
        moves = _oarlock.logical_and(further <= ordered.size, comes_before(last))
        places = op("Where", [moves, further, places])
    return places
