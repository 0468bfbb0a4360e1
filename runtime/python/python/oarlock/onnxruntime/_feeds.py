"""Inputs of a run: from the forms that onnxruntime accepts to ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy

from .. import asarray
from .._oarlock import Tensor
from ._errors import InvalidArgument
from ._values import NUMPY_DTYPES, OrtValue, is_list

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._oarlock import Slot


class Feeds:
    """The inputs that a model has."""

    def __init__(self, slots: Iterable[Slot]) -> None:
        self._inputs = {slot.name: _Input(slot) for slot in slots}
        self._as_given = frozenset(name for name, known in self._inputs.items() if not known.is_scalar)

    def are_ready(self, given: Mapping[str, Any]) -> bool:
        """Whether a run takes these values as they are: a dictionary of NumPy arrays that need no conversion."""
        if given.__class__ is not dict:
            return False
        for name, value in given.items():
            if type(value) is not numpy.ndarray or value.dtype.hasobject or name not in self._as_given:
                return False
        return True

    def take(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Converts the values of inputs by name. An input that the model does not have is left to the run, which refuses it."""
        if not _is_mapping(given):
            raise TypeError(f"expected a dictionary of inputs by name, found {type(given).__name__}\nhint: {self._example()}")
        taken = dict[str, Any]()
        for name, value in given.items():
            known = self._inputs.get(name)
            # `None` is a value of optional inputs, and says nothing about others.
            if value is not None or (known and known.is_optional):
                taken[name] = known.take(value) if known else value
        return taken

    def _example(self) -> str:
        """What to write, for a model with these inputs."""
        feeds = ", ".join(f'"{name}": …' for name in self._inputs)
        return f"write `run(None, {{{feeds}}})`"


class _Input:
    """An input: its dtype if it is an array, and whether it may be absent."""

    def __init__(self, slot: Slot) -> None:
        self._name = slot.name
        self._dtype = slot.dtype
        self.is_scalar = slot.shape == ()
        self.is_optional = slot.kind.startswith("optional ")

    def take(self, value: Any) -> Any:
        """Converts the value for a run.

        Lists become arrays of the input's dtype, as in onnxruntime. Tuples and numbers do as well, which onnxruntime refuses.
        An array keeps its dtype, which must then be that of the input. One element is a scalar where the model has one, because
        onnxruntime checks no shape there, and programs give `[rate]`.
        """
        taken = self._converted(value)
        return _as_scalar(taken) if self.is_scalar else taken

    def _converted(self, value: Any) -> Any:
        if _is_array(value):
            return _of_text(value) if value.dtype.kind == "O" else value
        if isinstance(value, OrtValue):
            return value._value
        if self._dtype is None:
            return [asarray(each) if _is_array(each) else each for each in value] if is_list(value) else value
        return self._of_list(value) if _is_plain(value) else value

    def _of_list(self, value: Any) -> Tensor:
        """An array of the input's dtype with the elements of nested lists."""
        assert self._dtype is not None
        name = self._dtype.name
        if name == "str":
            return _of_text(numpy.array(value, object))
        try:
            if name in NUMPY_DTYPES:
                return asarray(numpy.array(value, name))
            return asarray(numpy.array(value, numpy.float32)).astype(self._dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidArgument(f"input `{self._name}`: {_trouble(value, name)}") from error


def _trouble(value: Any, dtype: str) -> str:
    """Why nested lists are no array of a dtype."""
    for leaf in _leaves(value):
        try:
            numpy.array(leaf, dtype)
        except (ValueError, TypeError, OverflowError):
            return f"expected elements that {dtype} holds, found `{str(leaf)[:40]}`, which is of type {type(leaf).__name__}"
    return "expected lists of one shape, found lists of different lengths or depths\nhint: pad them to one length"


def _leaves(value: Any) -> Iterator[Any]:
    """The elements of nested lists."""
    if not _is_nested(value):
        yield value
        return
    for each in value:
        yield from _leaves(each)


def _is_nested(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, (list, tuple))


def _of_text(array: NDArray[Any]) -> Tensor:
    """An array of text with the elements of an array of objects, as `str` writes them."""
    texts = numpy.array([str(each) for each in array.flat], object)
    return asarray(texts.reshape(array.shape))


def _as_scalar(value: Any) -> Any:
    """An array of one element without its dimensions; other values as they are."""
    is_one = (_is_array(value) or isinstance(value, Tensor)) and value.ndim and value.size == 1
    return value.reshape(()) if is_one else value


def _is_mapping(value: object) -> bool:
    # Runs call it each time, and most programs give a `dict`, for which this is faster.
    return type(value) is dict or isinstance(value, Mapping)


def _is_array(value: object) -> TypeGuard[NDArray[Any]]:
    return isinstance(value, numpy.ndarray)


def _is_plain(value: object) -> bool:
    """Whether a value is a list or a number of Python; numbers of NumPy have a dtype, like arrays."""
    return isinstance(value, (list, tuple, int, float)) and not isinstance(value, numpy.generic)
