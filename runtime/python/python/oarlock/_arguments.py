"""Arguments of the package's functions: operands that are no arrays yet, keywords of other libraries, and errors that name the
function that was called."""

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

KEYWORDS = {
    "A": ("x",),
    "M": ("n_cols",),
    "N": ("n_rows", "n"),
    "a": ("x", "x1"),
    "a1": ("x1",),
    "a2": ("x2",),
    "a_max": ("max",),
    "a_min": ("min",),
    "ar": ("x",),
    "ar1": ("x1",),
    "ar2": ("x2",),
    "arr": ("x",),
    "array": ("x",),
    "ary": ("x",),
    "axis": ("dim",),
    "b": ("x2",),
    "ddof": ("correction",),
    "dim": ("axis",),
    "dims": ("axes", "axis"),
    "element": ("x1",),
    "f": ("x",),
    "func1d": ("function",),
    "input": ("x", "x1"),
    "keepdim": ("keepdims",),
    "keepdims": ("keepdim",),
    "m": ("x",),
    "newshape": ("shape",),
    "object": ("obj",),
    "other": ("x2",),
    "p": ("ord",),
    "rcond": ("rtol",),
    "reps": ("repetitions",),
    "tensors": ("arrays",),
    "test_elements": ("x2",),
    "tup": ("arrays",),
    "unbiased": ("correction",),
    "v": ("x", "x2"),
    "z": ("x",),
}
"""Names of arguments in NumPy and PyTorch, and those here, of which a function has one."""

WITHOUT_EFFECT: dict[str, tuple[tuple[Any, ...] | None, str]] = {
    "assume_unique": (None, ""),
    "axisa": ((-1,), "move the axes of vectors by `oarlock.moveaxis` first"),
    "axisb": ((-1,), "move the axes of vectors by `oarlock.moveaxis` first"),
    "axisc": ((-1,), "move the axis of the result by `oarlock.moveaxis`"),
    "casting": (("same_kind", "safe", "unsafe"), "convert the arrays with `astype` first"),
    "compute_uv": ((True,), "`oarlock.linalg.svdvals` computes the singular values alone"),
    "copy": ((True,), "assign the result instead: `x[...] = …`"),
    "cov": ((False,), "compute the covariances by NumPy"),
    "dtype": ((), "convert the result with `astype`, or the arrays first"),
    "full": ((False,), "`oarlock.linalg.lstsq` has the residuals, too"),
    "hermitian": (None, ""),
    "kind": (None, ""),
    "like": (None, ""),
    "mean": ((), "leave it out, as the mean is computed from the elements"),
    "optimize": (None, ""),
    "order": (("C", "K", "A"), "leave it out, as elements lie in memory row by row; `x.T` has the axes reversed"),
    "out": ((), "assign the result instead: `x[...] = …`"),
    "overwrite_input": (None, ""),
    "sorted": (None, ""),
    "stable": (None, ""),
    "subok": (None, ""),
    "tol": ((), "give `rtol`, a share of the largest singular value"),
    "weights": ((), "repeat the elements with `oarlock.repeat`, if the weights are whole numbers"),
}
"""Keywords of NumPy that change nothing here: the values that are ignored (`None` for any), and what to do about others. `None` is
what NumPy has by default."""


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
        moved, translated = _translated(function, given, named)
        return again(*moved, **translated)

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


def _translated(
    function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments under their names in other libraries as they are here."""
    # Importing it takes longer than importing the whole package.
    from inspect import Parameter, Signature, signature

    parameters = signature(function).parameters.values()
    # Other libraries have names for the first arguments, too.
    places = [each.name for each in parameters if each.kind is Parameter.POSITIONAL_ONLY][len(given) :]
    known = {each.name for each in parameters if each.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)}
    plain = Signature([each.replace(annotation=Parameter.empty) for each in parameters])
    call, hint = f"`{function.__name__}`", f"hint: call it as `{function.__name__}{plain}`"
    translated: dict[str, Any] = {}
    is_each_once = True
    for name, value in named.items():
        ours = next((each for each in (name, *KEYWORDS.get(name, ())) if each in known or each in places), None)
        if ours is not None:
            is_each_once &= ours not in translated
            # PyTorch's `unbiased` is a truth value.
            translated[ours] = +value if ours == "correction" and isinstance(value, bool) else value
        elif name in WITHOUT_EFFECT:
            _expect_no_effect(call, name, value)
        else:
            others = f"keyword but {', '.join(f'`{each}`' for each in sorted(known))}" if known else "keywords"
            raise TypeError(f"{call} expected no {others}, found `{name}`\n{hint}")
    moved = list(given)
    while places and places[0] in translated:
        moved.append(translated.pop(places.pop(0)))
    # What was given as it is here was refused already.
    if is_each_once and (len(moved) > len(given) or translated.keys() != named.keys()):
        return tuple(moved), translated
    names = "".join(f", `{name}`" for name in named)
    raise TypeError(f"{call} expected other arguments, found {len(given)} without a keyword{names}\n{hint}")


def _expect_no_effect(call: str, name: str, value: Any) -> None:
    """Refuses a keyword that would change something in NumPy."""
    harmless, instead = WITHOUT_EFFECT[name]
    is_simple = isinstance(value, (bool, int, float, str))
    if harmless is None or value is None or is_simple and value in harmless:
        return
    expected = f"{' or '.join(f'`{each}`' for each in harmless)} for `{name}`" if harmless else f"no `{name}`"
    raise TypeError(f"{call} expected {expected}, found {f'`{value}`' if is_simple else type(value).__name__}\nhint: {instead}")
