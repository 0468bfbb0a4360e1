"""Functions of Python as ops."""

from __future__ import annotations

import atexit
import warnings
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _oarlock

if TYPE_CHECKING:
    from collections.abc import Callable


class Registered(NamedTuple):
    """A function that is an op, with what the runtime knows of it."""

    function: Callable[..., Any]
    inputs: list[tuple[str, bool, bool]]
    outputs: int
    deterministic: bool


MOST_OUTPUTS = 65536

_registered: dict[str, Registered] = {}
_registering = Lock()

# Threads that are in functions when the interpreter ends would end the process otherwise.
atexit.register(_oarlock._end_functions)


def register(name: str, function: Callable[..., Any], outputs: int, deterministic: bool) -> None:
    """Makes a function the op of a name, or puts it in the place of the one that was."""
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
                    # Where the function is, below the decorator.
                    stacklevel=3,
                )
        else:
            raise ValueError(
                f"expected `{name}` with the parameters, outputs and promise that it had, found others\n"
                "hint: start the program anew, or choose another name"
            )
        _registered[name] = made


def place_of(function: Callable[..., Any]) -> str:
    """Where a function is, which stays where a program or a cell of a notebook makes it anew."""
    kind = type(function)
    return f"{getattr(function, '__module__', kind.__module__)}.{getattr(function, '__qualname__', kind.__qualname__)}"


def call(name: str, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    """Calls the function that is an op now. Inputs behind the last that is there are as if they had not been named."""
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return _registered[name].function(*inputs, **attributes)


def inputs_of(function: Callable[..., Any]) -> list[tuple[str, bool, bool]]:
    """The name of each input, whether it may be left out, and whether it stands for all further ones."""
    from inspect import Parameter, signature

    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.VAR_POSITIONAL)
    parameters = [each for each in signature(function).parameters.values() if each.kind in kinds]
    return [
        (each.name, each.default is not Parameter.empty, each.kind is Parameter.VAR_POSITIONAL) for each in parameters
    ]
