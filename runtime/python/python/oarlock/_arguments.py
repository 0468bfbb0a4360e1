"""Errors of functions of the package: they name the argument that is not an array, and the function instead of an op in it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from types import NoneType
from typing import Any, ParamSpec, TypeVar

from ._oarlock import Tensor, _in_name_of

P = ParamSpec("P")
T = TypeVar("T")


def of_arrays(function: Callable[P, T]) -> Callable[P, T]:
    """Makes a function's errors name the argument that should have been an array. The search starts only after a failure,
    so calls that succeed do not pay for it."""

    @wraps(function)
    def checked(*given: P.args, **named: P.kwargs) -> T:
        try:
            return function(*given, **named)
        except (AttributeError, TypeError) as error:
            wrong = first_wrong(function, given, named)
            if wrong is not None:
                raise TypeError(wrong) from error
            _in_name_of(function.__name__, error)
            raise
        except Exception as error:
            _in_name_of(function.__name__, error)
            raise

    return checked


def in_own_name(function: Callable[P, T]) -> Callable[P, T]:
    """Makes errors of the ops inside a function name the function, which is what the caller knows."""

    @wraps(function)
    def named(*given: P.args, **named: P.kwargs) -> T:
        try:
            return function(*given, **named)
        except Exception as error:
            _in_name_of(function.__name__, error)
            raise

    return named


def first_wrong(function: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """Describes the first argument that should be an array but is not."""
    # Importing it takes longer than importing the whole package.
    from inspect import Parameter, signature

    parameters = signature(function).parameters
    try:
        bound = signature(function).bind(*given, **named).arguments
    except TypeError:
        return None
    for name, value in bound.items():
        parameter = parameters[name]
        says = str(parameter.annotation)
        if "Tensor" not in says:
            continue
        numbers = any(kind in says for kind in ("Number", "int", "float", "complex"))
        fitting: tuple[type, ...] = (Tensor, bool, int, float, complex) if numbers else (Tensor,)
        if "None" in says:
            fitting += (NoneType,)
        values: list[Any] = [value]
        if parameter.kind is Parameter.VAR_POSITIONAL or "[" in says:
            with suppress(TypeError):
                values = list(value)
        for each in values:
            if not isinstance(each, fitting):
                found = type(each).__name__
                return f"`{function.__name__}` expected an array as `{name}`, found {found}\nhint: make it an array with `oarlock.asarray`"
    return None
