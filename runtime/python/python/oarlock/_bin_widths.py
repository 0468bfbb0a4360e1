"""How wide the bins of a histogram should be: the rules that NumPy has, by name."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING

from . import _oarlock
from ._order_statistics import percentile
from ._statistics import max, mean, min, std

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._oarlock import Tensor

    Counts = Callable[[int], Tensor]
    Rule = Callable[[Tensor, float, Counts], float]

LEAST_TRIED = 100
"""As many numbers of bins are compared at least."""


def width_of_bins(rule: str, x: Tensor, counts: Counts) -> float:
    """The width of bins for a vector of floats by a rule; 0 if it finds none. `counts` counts elements in so many bins."""
    if rule not in RULES:
        raise ValueError(f"expected a number of bins, their edges, or one of {', '.join(f'`{name}`' for name in RULES)}, found `{rule}`")
    return RULES[rule](x, float(max(x)) - float(min(x)), counts)


def _sturges(x: Tensor, distance: float, counts: Counts) -> float:
    return distance / (math.log2(x.size) + 1.0)


def _root(x: Tensor, distance: float, counts: Counts) -> float:
    return distance / math.sqrt(x.size)


def _rice(x: Tensor, distance: float, counts: Counts) -> float:
    return distance / (2.0 * math.pow(x.size, 1.0 / 3))


def _scott(x: Tensor, distance: float, counts: Counts) -> float:
    return math.pow(24.0 * math.pi**0.5 / x.size, 1.0 / 3.0) * float(std(x))


def _freedman_diaconis(x: Tensor, distance: float, counts: Counts) -> float:
    upper, lower = percentile(x, [75, 25]).tolist()
    spread: float = upper - lower
    return 2.0 * spread * math.pow(x.size, -1.0 / 3.0)


def _doane(x: Tensor, distance: float, counts: Counts) -> float:
    size, deviation = x.size, float(std(x))
    if size <= 2 or deviation <= 0:
        return 0.0
    skew_of_normal = math.sqrt(6.0 * (size - 2) / ((size + 1.0) * (size + 3)))
    skew = float(mean(_oarlock.pow((x - mean(x)) / deviation, 3)))
    return distance / (1.0 + math.log2(size) + math.log2(1.0 + abs(skew) / skew_of_normal))


def _stone(x: Tensor, distance: float, counts: Counts) -> float:
    size = x.size
    if size <= 1 or distance == 0:
        return 0.0

    def loss(number: int) -> float:
        found: list[int] = counts(number).tolist()
        return (2 - (size + 1) * sum((count / size) ** 2 for count in found)) / (distance / number)

    tried = range(1, builtins.max(LEAST_TRIED, math.isqrt(size)) + 1)
    return distance / builtins.min(tried, key=loss)


def _auto(x: Tensor, distance: float, counts: Counts) -> float:
    # Many equal elements make the spread small, and the bins too many.
    widest = builtins.max(_freedman_diaconis(x, distance, counts), _root(x, distance, counts) / 2)
    return builtins.min(widest, _sturges(x, distance, counts))


RULES: dict[str, Rule] = {
    "auto": _auto,
    "doane": _doane,
    "fd": _freedman_diaconis,
    "rice": _rice,
    "scott": _scott,
    "sqrt": _root,
    "stone": _stone,
    "sturges": _sturges,
}
