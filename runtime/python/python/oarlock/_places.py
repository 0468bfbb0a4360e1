"""Positions of elements in a sorted array, for functions of several modules."""

from __future__ import annotations

from . import _oarlock
from ._creation import sizes_of
from ._oarlock import Tensor, asarray, op

_FLOATS = (_oarlock.float16, _oarlock.bfloat16, _oarlock.float32, _oarlock.float64)


def places_among(ordered: Tensor, wanted: Tensor, *, behind_equal: bool) -> Tensor:
    """The positions at which elements would be inserted into a sorted array, before or behind equal ones. NaN comes last, as
    in `sort`.

    A binary search sets the bits of each position from the highest: a bit stays set if the element before that position
    comes earlier. So memory grows with the number of elements to insert, not with its product with the size of the array.
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
