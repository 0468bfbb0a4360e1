"""Inputs of a run: from the forms that onnxruntime accepts to ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy

from .. import asarray
from ._errors import InvalidArgument
from ._values import NUMPY_DTYPES, OrtValue, is_list

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._oarlock import DType, Slot, Tensor


def to_feeds(given: Mapping[str, Any], slots: Mapping[str, Slot]) -> dict[str, Any]:
    """Converts the values of inputs; `slots` describes all inputs of the model. `None` counts for optional values alone."""
    return {
        name: _fed(name, value, slots.get(name))
        for name, value in given.items()
        if value is not None or (name in slots and slots[name].kind.startswith("optional "))
    }


def _fed(name: str, value: Any, slot: Slot | None) -> Any:
    """Converts the value of an input; `slot` describes it, if the model has an input with this name.

    Lists become arrays of the input's dtype, as in onnxruntime. Tuples and numbers do as well, which onnxruntime refuses. An
    array keeps its dtype, which must then be that of the input.
    """
    if isinstance(value, OrtValue):
        return value._value
    # Numbers of NumPy have a dtype, like arrays.
    if slot is None or _is_scalar(value):
        return value
    if slot.dtype is None:
        return [asarray(each) if _is_array(each) else each for each in value] if is_list(value) else value
    if isinstance(value, (list, tuple, int, float)):
        return _of_list(name, value, slot.dtype)
    if _is_array(value) and value.dtype.kind == "O":
        return _of_text(value)
    return value


def _of_list(name: str, value: Any, dtype: DType) -> Tensor:
    """An array of a dtype with the elements of nested lists."""
    if dtype.name == "str":
        return _of_text(numpy.array(value, object))
    named = dtype.name if dtype.name in NUMPY_DTYPES else "float32"
    try:
        return asarray(numpy.array(value, named)).astype(dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidArgument(
            f"input `{name}`: expected lists of one shape, with elements that {dtype} holds, found others: {error}"
        ) from error


def _of_text(array: NDArray[Any]) -> Tensor:
    """An array of text with the elements of an array of objects, as `str` writes them."""
    texts = numpy.array([str(each) for each in array.flat], object)
    return asarray(texts.reshape(array.shape))


def _is_array(value: object) -> TypeGuard[NDArray[Any]]:
    return isinstance(value, numpy.ndarray)


def _is_scalar(value: object) -> bool:
    return isinstance(value, numpy.generic)
