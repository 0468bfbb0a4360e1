"""What is loaded on first use: the modules of the package, and the methods of arrays."""

from __future__ import annotations

from importlib import import_module

from ._names import LOADED_ON_USE, METHODS, PARTS
from ._oarlock import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def load_name(name: str) -> Any:
    """A public name of the package; an error with a hint if there is none."""
    if name in PARTS:
        return import_module(f".{name}", __package__)
    if name == "Tensor":
        # Whoever asks for the class may look at its methods.
        return array_class()
    if name in LOADED_ON_USE:
        return getattr(import_module(f".{LOADED_ON_USE[name]}", __package__), name)
    if name.startswith("_"):
        # Python asks for each module before it imports it.
        raise AttributeError(f"module `oarlock` has no `{name}`")
    from ._absent import function

    raise function(name)


def array_class() -> type[Tensor]:
    """The class of arrays, with all its methods."""
    from ._methods import add

    add()
    return Tensor


def attribute(array: Tensor, name: str) -> Any:
    """A method before the methods are loaded. Python calls it after it has not found the name."""
    if name in METHODS:
        array_class()
        return getattr(array, name)
    from ._absent import attribute as absent_attribute

    return absent_attribute(array, name)


def public(names: Iterable[str]) -> list[str]:
    """The names without those that begin with one underscore, which are the package's own."""
    return sorted(name for name in names if name.startswith("__") or not name.startswith("_"))


def attributes(array: Tensor) -> list[str]:
    """The names of the public attributes of an array, whether or not its methods are loaded."""
    return public({*object.__dir__(array), *METHODS})


class PublicNames(type):
    """The type of classes on which completion offers public names only."""

    def __dir__(cls) -> list[str]:
        """The names of the public attributes of instances."""
        return public(type.__dir__(cls))


def rounded(array: Tensor, ndigits: int | None = None) -> Tensor:
    """The array rounded to so many decimals, for Python's `round`."""
    from ._elementwise import round

    return round(array, ndigits or 0)


def prepare_arrays() -> None:
    """Makes arrays load their methods when one is used."""
    setattr(Tensor, "__getattr__", attribute)  # noqa: B010
    setattr(Tensor, "__dir__", attributes)  # noqa: B010
    setattr(Tensor, "__round__", rounded)  # noqa: B010
