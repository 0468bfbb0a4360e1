"""Arrays as tables, for notebooks."""

from __future__ import annotations

from html import escape

from ._oarlock import Tensor, reshape
from ._printing import get_printoptions


WIDER = {"int2": "int8", "int4": "int8", "uint2": "uint8", "uint4": "uint8", "float4_e2m1fn": "float32"}
"""Dtypes whose elements share bytes, and others that have the same numbers."""


def html(x: Tensor, /) -> str:
    """A table of one or two axes, with the shape, the dtype and the device below; arrays of other axes as text."""
    host = x.to_device("cpu")
    if host.ndim not in (1, 2) or not host.size:
        return f"<pre>{escape(repr(x))}</pre>"
    rows, columns = (1, *host.shape)[-2:]
    matrix = reshape(host.astype(WIDER.get(x.dtype.name, x.dtype), copy=False), (rows, columns))
    down, across = (_shown(size, host.size) for size in (rows, columns))
    lines = "".join(f"<tr>{''.join(_cell(matrix, row, column) for column in across)}</tr>" for row in down)
    below = escape(f"shape {x.shape}, {x.dtype.name}, {x.device.name}")
    return f"<table><tbody>{lines}</tbody></table><p>{below}</p>"


def _shown(size: int, elements: int) -> list[int | None]:
    """The places that are shown along an axis, as `set_printoptions` says, with `None` for those between."""
    options = get_printoptions()
    most, ends = options["threshold"], options["edgeitems"]
    if elements <= most or size <= 2 * ends:
        return list(range(size))
    return [*range(ends), None, *range(size - ends, size)]


def _cell(matrix: Tensor, row: int | None, column: int | None) -> str:
    """An element, as `repr` shows it."""
    if row is None or column is None:
        return "<td>…</td>"
    # The text of an array without axes is that of its element, behind a line about the array.
    text = repr(matrix[row, column]).partition("\n")[2].strip()[:-1]
    return f"<td>{escape(text)}</td>"
