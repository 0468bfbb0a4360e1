"""Python functions as ops."""

from __future__ import annotations

import atexit
import warnings
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _oarlock

if TYPE_CHECKING:
    from collections.abc import Callable


class Registered(NamedTuple):
    """A function that is an op, and its registration in the runtime."""

    function: Callable[..., Any]
    inputs: list[tuple[str, bool, bool]]
    outputs: int
    deterministic: bool


MOST_OUTPUTS = 65536

_registered: dict[str, Registered] = {}
_registering = Lock()

# Otherwise, threads that are inside functions when the interpreter exits would abort the process.
atexit.register(_oarlock._end_functions)


def register(name: str, function: Callable[..., Any], outputs: int, deterministic: bool) -> None:
    """Registers a function as an op, or replaces the function of an existing one."""
    domain, is_there, op = name.partition("::")
    if not (domain and is_there and op):
        raise ValueError(f"expected a domain and an op, such as `acme::swish`, found {name!r}")
    if not 1 <= outputs <= MOST_OUTPUTS:
        raise ValueError(f"expected one output or more, at most {MOST_OUTPUTS}, found {outputs}")
    made = Registered(function, inputs_of(function), outputs, deterministic)
    with _registering:
        known = _registered.get(name)
        if known is None:
            def current(*inputs: Any, **attributes: Any) -> Any:
                return call(name, inputs, attributes)

            _oarlock._add_function(domain, op, made.inputs, outputs, deterministic, current)
        elif known[1:] == made[1:]:
            if place_of(known.function) != place_of(function):
                warnings.warn(
                    f"`{name}` was {place_of(known.function)}, and is {place_of(function)} from now on, in models as well; "
                    "choose another name to have both",
                    # The line of the function, below the decorator.
                    stacklevel=3,
                )
        else:
            raise ValueError(
                f"expected `{name}` with the parameters, outputs and promise that it had, found others\n"
                "hint: start the program anew, or choose another name"
            )
        _registered[name] = made


def place_of(function: Callable[..., Any]) -> str:
    """The location of a function, which is the same when a program or a notebook cell defines it again."""
    kind = type(function)
    return f"{getattr(function, '__module__', kind.__module__)}.{getattr(function, '__qualname__', kind.__qualname__)}"


def call(name: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """Calls the current function of an op. Trailing inputs that are missing are not passed."""
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return _registered[name].function(*inputs, **attributes)


def inputs_of(function: Callable[..., Any]) -> list[tuple[str, bool, bool]]:
    """For each input: its name, whether it is optional, and whether it is variadic."""
    from inspect import Parameter, signature

    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)
    parameters = [each for each in signature(function).parameters.values() if each.kind in kinds]
    return [
        (each.name, each.default is not Parameter.empty, each.kind is Parameter.VAR_POSITIONAL) for each in parameters
    ]
