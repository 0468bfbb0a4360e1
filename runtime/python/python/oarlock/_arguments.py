"""Arguments of the package's functions: operands that are no arrays yet, keywords of other libraries, and errors that name the
function that was called."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from ._oarlock import (
    Tensor,
    _in_name_of,
    asarray,
    complex64,
    complex128,
    float32,
    float64,
    result_type,
)

if TYPE_CHECKING:
    from ._oarlock import Device, DType
    from ._typing import ArrayLike, Number

NARROW, WIDE = (float32, complex64), (float64, complex128)
"""The dtypes of fractions in lists, and those beside which they are read anew."""

P = ParamSpec("P")
T = TypeVar("T")

KEYWORDS = {
    "a_max": ("max",),
    "a_min": ("min",),
    "axis": ("dim",),
    "ddof": ("correction",),
    "dim": ("axis",),
    "dims": ("axes", "axis"),
    "keepdim": ("keepdims",),
    "keepdims": ("keepdim",),
    "p": ("ord",),
    "unbiased": ("correction",),
}
"""Keywords of NumPy and PyTorch, and their names here, of which a function has one."""


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
        again: Callable[..., T] = called
        return again(*given, **_translated(function, given, named))

    # From CPython 3.14 on, `wraps` copies what makes annotations, which those that were set do not have.
    called.__annotations__ = function.__annotations__
    return called


def arrays_of(*operands: ArrayLike, device: Device | None = None) -> tuple[Tensor, ...]:
    """The operands as arrays. Those that are not yet arrays go to the device of the first that is one, or else to the given one.
    Plain numbers get the dtype that they have beside the others, and fractions in lists their precision."""
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
        x if isinstance(x, Tensor) else _beside(common, x, each, device) for x, each in zip(operands, made, strict=True)
    )


def _beside(common: DType | None, x: ArrayLike, made: Tensor | Number, device: Device | None) -> Tensor:
    """An operand as an array beside others of a common dtype."""
    if not isinstance(made, Tensor):
        return asarray(made, dtype=None if common is None else result_type(common, made), device=device)
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


def _translated(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Keywords of other libraries under their names here."""
    # Importing it takes longer than importing the whole package.
    from inspect import Parameter, Signature, signature

    parameters = signature(function).parameters.values()
    known = {each.name for each in parameters if each.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)}
    ours = {name: next((each for each in (name, *KEYWORDS.get(name, ())) if each in known), None) for name in named}
    translated = {each or name: named[name] for name, each in ours.items()}
    if None not in ours.values() and len(translated) == len(named) and translated.keys() != named.keys():
        # PyTorch's `unbiased` is a truth value.
        return {name: +each if name == "correction" and isinstance(each, bool) else each for name, each in translated.items()}
    plain = Signature([each.replace(annotation=Parameter.empty) for each in parameters])
    call, hint = f"`{function.__name__}`", f"hint: call it as `{function.__name__}{plain}`"
    unknown = [name for name, each in ours.items() if each is None]
    if unknown:
        others = f"keyword but {', '.join(f'`{name}`' for name in sorted(known))}" if known else "keywords"
        raise TypeError(f"{call} expected no {others}, found `{unknown[0]}`\n{hint}")
    names = "".join(f", `{name}`" for name in named)
    raise TypeError(f"{call} expected other arguments, found {len(given)} without a keyword{names}\n{hint}")
