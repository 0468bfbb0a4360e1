"""The keywords that all elementwise functions of NumPy have: `out`, `where`, `dtype` and `casting`.

They cost nothing until a call is refused because of one. Then it is made again, by the function here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _oarlock
from ._information import isdtype
from ._manipulation import broadcast_shapes
from ._oarlock import Tensor, asarray, result_type, zeros

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeGuard

    from ._oarlock import DType

ELEMENTWISE = frozenset(
    "cbrt clip deg2rad exp2 float_power fmax fmin fmod heaviside positive rad2deg round square vecdot".split()
)
"""The functions here that have all of the keywords. Others have `out` only."""

WITHOUT_EFFECT = frozenset(("order", "subok"))

KINDS = ("bool", "unsigned integer", "signed integer", "real floating", "complex floating")
"""The kinds of dtypes. NumPy converts a result to a later one, or to another size."""


def is_wanted(function: str, named: dict[str, Any]) -> bool:
    """Whether the keywords of a call are among those here."""
    return named.get("out") is not None or function in ELEMENTWISE and not named.keys().isdisjoint(("where", "dtype", "casting"))


def call(
    function: Callable[..., Any], name: str, given: tuple[Any, ...], named: dict[str, Any], *, is_elementwise: bool | None = None
) -> Any:
    """The result of a function with these keywords, which it does not have itself."""
    is_elementwise = name in ELEMENTWISE if is_elementwise is None else is_elementwise
    own = dict(named)
    out = _output(name, own.pop("out", None))
    where, casting = True, "same_kind"
    if is_elementwise:
        where, casting = own.pop("where", True), own.pop("casting", "same_kind")
        dtype = own.pop("dtype", None)
        own = {key: value for key, value in own.items() if key not in WITHOUT_EFFECT}
        if casting not in ("same_kind", "unsafe"):
            hint = "convert the arrays with `astype` first"
            raise ValueError(f"`{name}` expected `same_kind` or `unsafe` for `casting`, found `{casting}`\nhint: {hint}")
        if dtype is not None:
            kind = zeros((), dtype=dtype, device="cpu").dtype
            given = tuple(_converted(name, x, kind, casting) for x in given)
    made = function(*given, **own)
    if out is None:
        if where is not True:
            raise TypeError(
                f"`{name}` expected `out` beside `where`, found none\n"
                f"hint: `oarlock.where(mask, oarlock.{name}(…), x)` has the elements of `x` where the mask is false"
            )
        return made
    if not isinstance(made, Tensor):
        raise TypeError(f"`{name}` expected no `out`, found one\nhint: there are several results; assign each instead: `x[...] = …`")
    _expect_kind(name, made.dtype, out.dtype, casting if is_elementwise else None)
    try:
        fits = out.shape == (broadcast_shapes(made.shape, out.shape) if is_elementwise else made.shape)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"`{name}` expected an `out` of the shape {made.shape}, found {out.shape}")
    made = made.astype(out.dtype, copy=False)
    out[...] = made if where is True else _oarlock.op("Where", [asarray(where, dtype=_oarlock.bool, device=out.device), made, out])
    return out


def _output(name: str, given: Any) -> Tensor | None:
    """The array that the result goes to."""
    alone = given[0] if _is_tuple(given) and len(given) == 1 else given
    if alone is None or isinstance(alone, Tensor):
        return alone
    found = type(alone).__name__
    raise TypeError(f"`{name}` expected an array of Oarlock for `out`, found {found}\nhint: assign the result instead: `x[...] = …`")


def _is_tuple(value: object) -> TypeGuard[tuple[Any, ...]]:
    return isinstance(value, tuple)


def _converted(name: str, x: Any, dtype: DType, casting: str) -> Any:
    """An operand in the dtype that the result is to have."""
    if isinstance(x, (bool, int, float, complex)) and result_type(dtype, x) == dtype:
        return asarray(x, dtype=dtype)
    made = asarray(x)
    _expect_kind(name, made.dtype, dtype, casting)
    return made.astype(dtype, copy=False)


def _expect_kind(name: str, dtype: DType, wanted: DType, casting: str | None) -> None:
    """Refuses conversions that NumPy makes only if `casting`, which some functions have, is `unsafe`."""
    before, behind = (next((at for at, kind in enumerate(KINDS) if isdtype(each, kind)), len(KINDS)) for each in (dtype, wanted))
    if casting != "unsafe" and before > behind:
        hint = '`casting="unsafe"` converts them all the same' if casting else f"give an `out` of {dtype.name}"
        raise TypeError(f"`{name}` expected numbers that {wanted.name} has, found {dtype.name}\nhint: {hint}")
