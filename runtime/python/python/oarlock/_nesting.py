"""Arrays in nested containers: the arguments and results of traced functions."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any, TypeGuard

from ._oarlock import Tensor, asarray

if TYPE_CHECKING:
    from collections.abc import Iterator

ARRAY = "array"
"""Marks an array in a structure."""

Structure = tuple[Any, ...]
"""What is around arrays: hashable, and equal for values that only differ in their arrays."""


def flatten(value: object, arrays: list[Tensor], path: str, names: list[str]) -> Structure:
    """Adds the arrays in a value to a list, with names after their places, and returns what is around them."""
    if isinstance(value, Tensor):
        arrays.append(value)
        names.append(path)
        return (ARRAY,)
    if is_sequence(value):
        parts = tuple(flatten(part, arrays, f"{path}_{at}", names) for at, part in enumerate(value))
        return (type(value), parts)
    if is_dictionary(value):
        parts = tuple(flatten(part, arrays, f"{path}_{key}", names) for key, part in value.items())
        # 1 and True are equal, but no two keys of a dictionary are.
        return (dict, tuple(value), tuple(map(type, value)), parts)
    if is_foreign_array(value):
        return flatten(asarray(value), arrays, path, names)
    if type(value) is float:
        # 0.0 and -0.0 are equal, and NaN equals nothing.
        return (float, value.hex())
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"expected arrays, numbers, texts and containers of them for `{path}`, found {type(value).__name__}\n"
            "hint: what is no array has to be hashable, because each value of it gets a graph of its own"
        ) from None
    # 1, 1.0 and True are equal, and so are 0j and -0j, but functions treat them differently.
    return (type(value), value, repr(value))


def is_foreign_array(value: object) -> bool:
    """Whether a value is an array of another library."""
    # A scalar of NumPy is a number.
    return not isinstance(value, (type, Number)) and (hasattr(value, "__dlpack__") or hasattr(value, "__array_interface__"))


def rebuild(structure: Structure, arrays: Iterator[Tensor]) -> Any:
    """The value of a structure with other arrays."""
    kind: Any = structure[0]
    if kind is ARRAY:
        return next(arrays)
    if kind is dict:
        return dict(zip(structure[1], [rebuild(part, arrays) for part in structure[3]], strict=True))
    if kind is float:
        return float.fromhex(structure[1])
    if issubclass(kind, (list, tuple)):
        return sequence_of(kind, [rebuild(part, arrays) for part in structure[1]])
    return structure[1]


def is_sequence(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """Whether a value is a list or a tuple."""
    return isinstance(value, (list, tuple))


def is_dictionary(value: object) -> TypeGuard[dict[Any, Any]]:
    """Whether a value is a dictionary."""
    return type(value) is dict


def own_handles(arrays: list[Tensor]) -> list[Tensor]:
    """The same arrays as other objects, so that assignments to them change no array of a caller. Nothing is copied."""
    return [array.to_device(array.device) for array in arrays]


def sequence_of(kind: Any, parts: list[Any]) -> Any:
    """A list or tuple of a type. A named tuple takes its fields one by one."""
    return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
