"""Functions of NumPy that are called with arrays of ours: the functions here that have their names answer, with arrays of ours.

NumPy asks for this by two protocols: `__array_ufunc__` for elementwise functions, among them the operators of its own arrays, and
`__array_function__` for most others. A function that has no namesake here gets arrays of NumPy, and its result stays NumPy's.
"""

from __future__ import annotations


from ._oarlock import Tensor, asarray

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from collections.abc import Callable

REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
"""Elementwise functions, and what reduces with them."""

ACCUMULATIONS = {"add": "cumulative_sum", "multiply": "cumulative_prod"}


def answer_ufunc(self: Tensor, function: Any, method: str, /, *inputs: Any, **named: Any) -> Any:
    """The result of an elementwise function of NumPy, or of its `reduce` or `accumulate`."""
    name = function.__name__
    out = named.get("out", None)
    is_call = method == "__call__"
    if out is not None and not (is_call and isinstance(out[0], Tensor) and namesake(name)):
        raise TypeError(
            f"expected no `out` for `numpy.{name}` of arrays of Oarlock, found one\nhint: assign the result instead: `x[...] = …`"
        )
    dtype = None if out is not None else named.pop("dtype", None)
    if is_call:
        found = namesake(name)
    elif method == "reduce":
        found = namesake(REDUCTIONS.get(name, ""))
        named.setdefault("axis", 0)
    elif method == "accumulate":
        found = namesake(ACCUMULATIONS.get(name, ""))
        named.setdefault("axis", 0)
    elif method == "outer" and (of_pair := namesake(name)) is not None:
        return outer(of_pair, *inputs)
    else:
        found = None
    if found is None:
        return on_numpy(function if is_call else getattr(function, method), inputs, named)
    if not is_call:
        made = found(*inputs, **named)
        return made if dtype is None else made.astype(dtype)
    # An array of NumPy is no array of ours, and the operands go to the device of those that are.
    place = self.device
    inputs = tuple(x if isinstance(x, (Tensor, bool, int, float, complex)) else asarray(x, device=place) for x in inputs)
    if out is not None:
        from . import _ufunc_keywords

        return _ufunc_keywords.call(found, name, inputs, named, is_elementwise=True)
    if named.pop("where", True) is not True:
        raise TypeError(
            f"expected no `where` for `numpy.{name}` of arrays of Oarlock, found one\n"
            "hint: choose between the result and another array by `oarlock.where`"
        )
    # Which conversions are allowed, and an order in memory, change no result.
    named = {key: value for key, value in named.items() if key not in ("casting", "order", "subok")}
    made = found(*inputs, **named)
    return made if dtype is None else made.astype(dtype)


def outer(function: Callable[..., Any], x1: Any, x2: Any) -> Any:
    """The function of every pair of elements."""
    first, second = asarray(x1), asarray(x2)
    return function(first[(..., *(None,) * second.ndim)], second)


def answer_function(self: Tensor, function: Any, kinds: Any, inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of another function of NumPy."""
    part = (getattr(function, "__module__", None) or "numpy").removeprefix("numpy").removeprefix(".")
    found = namesake(function.__name__, part)
    if found is None:
        return on_numpy(function, inputs, named)
    return found(*inputs, **{name: value for name, value in named.items() if not is_default(name, value)})


def is_default(name: str, value: Any) -> bool:
    """True for arguments that NumPy's functions pass along although nobody gave them."""
    return (name == "out" and value is None) or type(value).__name__ == "_NoValueType"


def namesake(name: str, part: str = "") -> Callable[..., Any] | None:
    """The function here that has a name of NumPy's, in the package or in a part of it such as `linalg`."""
    import oarlock

    if part not in ("", "linalg", "fft"):
        return None
    place = getattr(oarlock, part) if part else oarlock
    found = getattr(place, name, None) if name in place.__all__ else None
    return found if callable(found) and not isinstance(found, (type, oarlock.DType)) else None


def on_numpy(function: Callable[..., Any], inputs: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of a function of NumPy on arrays of NumPy."""
    return function(*map(to_numpy, inputs), **{name: to_numpy(value) for name, value in named.items()})


def to_numpy(value: Any) -> Any:
    """NumPy's arrays instead of ours, also in lists."""
    if isinstance(value, Tensor):
        return value.numpy()
    if type(value) in (list, tuple):
        return type(value)(map(to_numpy, value))
    return value


def add_protocols() -> None:
    """Adds the protocols to the class of arrays."""
    setattr(Tensor, "__array_ufunc__", answer_ufunc)  # noqa: B010
    setattr(Tensor, "__array_function__", answer_function)  # noqa: B010
