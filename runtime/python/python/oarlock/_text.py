"""Tables and sizes as text."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST = 60


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with titles; text that is too long for its column is cut."""
    cut = [[cell if len(cell) <= LONGEST else cell[: LONGEST - 1] + "…" for cell in row] for row in [titles, *rows]]
    widths = [max(map(len, column)) for column in zip(*cut, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cut)


def bytes_of(size: int) -> str:
    """A number of bytes with a unit."""
    amount, units = float(size), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{size} bytes" if units[0] == "bytes" else f"{amount:.1f} {units[0]}"
