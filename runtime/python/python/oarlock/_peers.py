"""What the interfaces of other runtimes share: how models are opened and run, and errors that programs for these runtimes catch.

Such programs catch a `RuntimeError` for some mistakes and a `ValueError` for others. The errors here are both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy

from . import _oarlock, _warning
from ._model import Session
from ._oarlock import Error

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import TypeGuard

    from numpy.typing import NDArray

    from ._oarlock import DType, Stop


class InvalidValue(Error, ValueError):
    """A model, an input or a name that is not as expected."""


class MissingFile(InvalidValue, FileNotFoundError):
    """A file that does not exist."""


class Unsupported(InvalidValue, NotImplementedError):
    """Something that Oarlock lacks."""


def as_peer_error(error: Exception) -> Exception:
    """The exception that programs for other runtimes catch."""
    text = str(error)
    match error:
        case Error():
            return error
        case FileNotFoundError():
            return MissingFile(text)
        case NotImplementedError():
            return Unsupported(text)
        case ValueError() | TypeError() | IndexError() | OSError():
            return InvalidValue(text)
        case _:
            return error


def open_model(
    model: str | bytes | PathLike[str], device: str | Sequence[str] | None = None, precision: DType = _oarlock.float32
) -> Session:
    """Loads a model."""
    try:
        return Session(model, device=device, precision=precision)
    except Exception as error:
        raise as_peer_error(error) from error


def run_model(session: Session, feeds: Mapping[str, Any], stop: Stop | None = None) -> dict[str, Any]:
    """Runs a model on arrays by name."""
    try:
        return session.run(feeds, stop=stop)
    except Exception as error:
        raise as_peer_error(error) from error


def choose_threads(count: int, caller: str) -> None:
    """Sets the flag `threads`, unless the runtime has started; then a warning says that it stays."""
    try:
        _oarlock.set_flags({"threads": count})
    except Error:
        if _oarlock.get_flags("threads")["threads"] != str(count):
            _warning.warn(f"{caller} has an effect only before the first model; the flag `threads` stays as it is")


def is_array(value: object) -> TypeGuard[NDArray[Any]]:
    """Whether a value is an array of NumPy."""
    return isinstance(value, numpy.ndarray)


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether a value is a dictionary or the like."""
    return isinstance(value, Mapping)


def quoted(names: Sequence[str]) -> str:
    """Names in a message."""
    return ", ".join(f"`{name}`" for name in names)
