"""Positions of elements in a sorted array, for functions of several modules."""

from __future__ import annotations

from . import _oarlock
from ._creation import sizes_of
from ._kinds import FLOATS
from ._oarlock import Tensor, asarray, op


def insertion_points(ordered: Tensor, values: Tensor, *, after_equal: bool) -> Tensor:
    """The positions at which elements would be inserted into a sorted array, before or behind equal ones. NaN comes last, as
    in `sort`.

    A binary search sets the bits of each position from the highest: a bit stays set if the element before that position
    comes earlier. So memory grows with the number of elements to insert, not with its product with the size of the array.
    """
    compare = _oarlock.less_equal if after_equal else _oarlock.less
    is_nan = _oarlock.isnan(values) if values.dtype in FLOATS else None

    def comes_before(last: Tensor) -> Tensor:
        is_before = compare(last, values)
        if is_nan is None:
            return is_before
        return _oarlock.logical_or(is_before, is_nan if after_equal else _oarlock.logical_and(is_nan, last == last))

    positions = op("Expand", [asarray(0, device=values.device), sizes_of(values.shape)])
    for bit in reversed(range(ordered.size.bit_length())):
        further = positions + (1 << bit)
        last = op("Gather", [ordered, _oarlock.minimum(further, ordered.size) - 1])
        moves = _oarlock.logical_and(further <= ordered.size, comes_before(last))
        positions = op("Where", [moves, further, positions])
    return positions
