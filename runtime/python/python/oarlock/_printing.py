"""How arrays are printed: NumPy's functions for it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from operator import index
from typing import TYPE_CHECKING

from ._oarlock import _print_options, _set_print_options

if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = ["get_printoptions", "printoptions", "set_printoptions"]

NAMES = ("precision", "threshold", "edgeitems", "linewidth", "suppress")


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    suppress: bool | None = None,
) -> None:
    """Sets how arrays are printed: at most `precision` digits behind the point, in lines of `linewidth` characters, without exponents if
    `suppress` is true, and with `edgeitems` elements at both ends of an axis if there are more than `threshold`.

    What is left out stays as it is. By default, numbers have the digits that tell them from their neighbors (`precision=-1`).

    >>> import oarlock as ol
    >>> with ol.printoptions(precision=2):
    ...     print(ol.asarray([1 / 3]))
    Tensor(shape=[1], dtype=float32, place=Place(cpu:0), stop_gradient=True,
           [0.33])
    """
    given = (precision, threshold, edgeitems, linewidth, suppress)
    for name, value in zip(NAMES, given, strict=True):
        least = -1 if name == "precision" else 0
        if value is not None and (index(value) if hasattr(value, "__index__") else least - 1) < least:
            raise ValueError(f"expected a whole number of at least {least} as `{name}`, found {value!r}")
    chosen = {name: value for name, value in zip(NAMES, given, strict=True) if value is not None}
    _apply(get_printoptions() | chosen)


def get_printoptions() -> dict[str, Any]:
    """The settings of `set_printoptions`; a `precision` of -1 stands for as many digits as a number needs."""
    precision, *others = _print_options()
    return dict(zip(NAMES, (-1 if precision is None else precision, *others), strict=True))


@contextmanager
def printoptions(**options: Any) -> Generator[dict[str, Any]]:
    """Sets how arrays are printed within a `with` statement."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield get_printoptions()
    finally:
        _apply(before)


def _apply(options: dict[str, Any]) -> None:
    precision, threshold, edge_items, line_width, suppress = (options[name] for name in NAMES)
    _set_print_options(None if precision == -1 else precision, threshold, edge_items, line_width, bool(suppress))
