"""Elements around an array, in PyTorch's order."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING

from .._arguments import in_own_name
from .._oarlock import Tensor, asarray, op
from ._operands import sizes_on_host

if TYPE_CHECKING:
    from .._typing import ArrayLike, Number

__all__: list[str] = ["pad"]

MODES = {"circular": "wrap", "constant": "constant", "reflect": "reflect", "replicate": "edge"}
"""The names of PyTorch, and those of ONNX."""


@in_own_name
def pad(input: ArrayLike, pad: Sequence[int], mode: str = "constant", value: Number | None = None) -> Tensor:
    """An array with elements before and behind its last axes.

    There is a pair of numbers for the last axis, then one for the axis before it, and so on. Negative numbers remove elements.
    New ones are constant, those inside in reverse without the edge (`reflect`), those at the edge (`replicate`), or those of the
    other end (`circular`).
    """
    x = asarray(input)
    widths = [index(each) for each in pad]
    if mode not in MODES:
        raise ValueError(f"expected {', '.join(f'`{name}`' for name in MODES)} for `mode`, found `{mode}`")
    if len(widths) % 2 or len(widths) > 2 * x.ndim:
        raise ValueError(f"expected a pair of numbers for each of at most {x.ndim} axes, found {widths}")
    if value is not None and mode != "constant":
        raise ValueError(f"expected no `value` in the mode `{mode}`, found {value}")
    axes = [x.ndim - 1 - at for at in range(len(widths) // 2)]
    for axis, before, behind in zip(axes, widths[::2], widths[1::2], strict=True):
        size = x.shape[axis]
        most = {"constant": None, "reflect": size - 1, "circular": size, "replicate": None}[mode]
        if most is not None and max(before, behind) > most:
            found = max(before, behind)
            raise ValueError(f"expected at most {most} elements beside an axis of {size} in the mode `{mode}`, found {found}")
        if size + before + behind < 0 or (mode == "replicate" and not size and max(before, behind) > 0):
            raise ValueError(f"expected an axis that has the elements, found one of {size} for {before} and {behind}")
    if not axes:
        return x
    constant = asarray(0 if value is None else value, dtype=x.dtype, device=x.device) if mode == "constant" else None
    places = sizes_on_host(widths[::2] + widths[1::2])
    return op("Pad", [x, places, constant, sizes_on_host(axes)], {"mode": MODES[mode]})
