"""Arguments of the package's functions: operands that are no arrays yet, whole numbers, and errors that name the function that was
called."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import index
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from ._oarlock import (
    Tensor,
    _in_name_of,
    asarray,
    complex64,
    complex128,
    float32,
    float64,
    int64,
    result_type,
)

if TYPE_CHECKING:
    from ._oarlock import DType
    from ._typing import ArrayLike, DeviceLike, Number

NARROW, WIDE = (float32, complex64), (float64, complex128)
"""The dtypes of fractions in lists, and those beside which they are read anew."""

P = ParamSpec("P")
T = TypeVar("T")


def in_own_name(function: Callable[P, T]) -> Callable[P, T]:
    """Makes a function understand the keywords of other libraries, and its errors name it instead of the ops inside it. Both
    cost nothing unless a call fails."""

    @wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> T:
        try:
            return function(*given, **named)
        except Exception as error:
            if not _is_refusal(error):
                _tell(function.__name__, error)
                raise
        # Loaded on first use, as most calls need no translation.
        from . import _ufunc_keywords
        from ._keywords import translated

        again: Callable[..., T] = called
        if _ufunc_keywords.is_wanted(function.__name__, named):
            made: T = _ufunc_keywords.call(again, function.__name__, given, named)
            return made
        moved, renamed = translated(function, given, named)
        return again(*moved, **renamed)

    # From CPython 3.14 on, `wraps` copies what makes annotations, which those that were set do not have.
    called.__annotations__ = function.__annotations__
    return called


def whole_number(given: Any) -> int | None:
    """A whole number of any library as one of Python; `None` for anything else, arrays of one element among it."""
    if isinstance(given, int):
        return given
    try:
        return None if getattr(given, "ndim", 0) else index(given)
    except TypeError:
        return None


def numbers_in(given: Any) -> tuple[int, ...]:
    """Whole numbers of which there may be one alone, or several in a sequence."""
    alone = whole_number(given)
    return tuple(given) if alone is None else (alone,)


def arrays_of(
    *operands: ArrayLike, device: DeviceLike | None = None, is_widened: bool = False
) -> tuple[Tensor, ...]:
    """The operands as arrays. Those that are not yet arrays go to the device of the first that is one, or else to the given one.
    Plain numbers get the dtype that they have beside the others, and fractions in lists their precision. Where arrays of several
    dtypes have one result, numbers out of the range of the others are widened."""
    for x in operands:
        if type(x) is not Tensor:
            break
    else:
        return cast("tuple[Tensor, ...]", operands)
    first = next((x for x in operands if isinstance(x, Tensor)), None)
    device = device if first is None else first.device
    made = [x if isinstance(x, (Tensor, int, float, complex)) else asarray(x, device=device) for x in operands]
    dtypes = [x for x in made if isinstance(x, Tensor)]
    common = result_type(*dtypes) if dtypes else None
    return tuple(
        x if isinstance(x, Tensor) else _beside(common, x, each, device, is_widened)
        for x, each in zip(operands, made, strict=True)
    )


def _beside(
    common: DType | None, x: ArrayLike, made: Tensor | Number, device: DeviceLike | None, is_widened: bool
) -> Tensor:
    """An operand as an array beside others of a common dtype."""
    if not isinstance(made, Tensor):
        try:
            return asarray(made, dtype=None if common is None else result_type(common, made), device=device)
        except OverflowError:
            if not is_widened or not isinstance(made, int):
                raise
            return asarray(made, dtype=int64 if -(2**63) <= made < 2**63 else float64, device=device)
    if common in WIDE and made.dtype in NARROW and not hasattr(x, "dtype"):
        return asarray(x, dtype=WIDE[NARROW.index(made.dtype)], device=device)
    return made


def _is_refusal(error: Exception) -> bool:
    """Whether Python refused the arguments, so that the call never began."""
    return isinstance(error, TypeError) and error.__traceback__ is not None and error.__traceback__.tb_next is None


def _tell(function: str, error: Exception) -> None:
    """Makes an error name the function."""
    _in_name_of(function, error)
    message = str(error)
    if message.startswith("expected ") and f"`{function}`" not in message.partition("\n")[0]:
        error.args = (f"`{function}` {message}",)
        # A function that calls this one replaces the name by its own.
        setattr(error, "_op", function)  # noqa: B010
