"""Handles of inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy

from .. import _oarlock
from .._oarlock import Error
from .._nesting import is_sequence
from .._peers import InvalidValue, Unsupported, is_array
from ._enumerations import DataType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._oarlock import Slot


class Tensor:
    """The handle of an input or an output, which stays valid from run to run.

    >>> import numpy
    >>> inference = ol.paddle_inference
    >>> predictor = inference.create_predictor(inference.Config("docs/src/models/digits.onnx"))
    >>> predictor.get_input_handle("image").copy_from_cpu(numpy.zeros((1, 1, 8, 8), "float32"))
    >>> predictor.run()
    >>> predictor.get_output_handle("probabilities").copy_to_cpu().shape
    (1, 10)
    """

    def __init__(self, slot: Slot, *, is_input: bool) -> None:
        self._slot = slot
        self._is_input = is_input
        self._value: NDArray[Any] | _oarlock.Tensor | None = None
        self._shape = [size if isinstance(size, int) else -1 for size in slot.shape or ()]

    def reshape(self, shape: Sequence[int]) -> None:
        """Announces the shape of an input, which `copy_from_cpu` gives anyway. What was copied before stays if it fits."""
        self._refuse_output("reshape")
        sizes = [int(size) for size in shape]
        if self._value is not None:
            self._value = self._value.reshape(sizes) if self._value.size == numpy.prod(sizes) else None
        self._shape = sizes

    def copy_from_cpu(self, data: NDArray[Any] | list[str]) -> None:
        """Copies a NumPy array or a list of texts into an input."""
        self._refuse_output("copy_from_cpu")
        if not isinstance(data, numpy.ndarray) and not _is_texts(data):
            raise TypeError(f"input `{self._slot.name}`: expected a NumPy array or a list of texts, found {type(data).__name__}")
        self._put(numpy.array(data, order="C"))

    def share_external_data(self, data: Any) -> None:
        """Takes an array of Oarlock, NumPy or a library with DLPack as an input, without a copy if possible."""
        self._refuse_output("share_external_data")
        self._put(as_array(data))

    def copy_to_cpu(self) -> NDArray[Any]:
        """A copy of the elements, as a NumPy array."""
        if self._value is None:
            first = "`copy_from_cpu`" if self._is_input else "`run` of the predictor"
            raise Error(f"{self._title}: expected elements, found none\nhint: call {first} first")
        return numpy.array(self._value if isinstance(self._value, numpy.ndarray) else self._value.numpy())

    def shape(self) -> list[int]:
        """The shape: that of the elements, or before there are any, that of the model with -1 for open sizes."""
        return list(self._shape)

    def type(self) -> DataType:
        """The dtype."""
        dtype = self._slot.dtype if self._value is None else self._value.dtype
        name = dtype.name.upper() if dtype is not None else "nothing"
        if name not in DataType.__members__:
            raise Unsupported(f"{self._title}: expected a dtype of `DataType`, found {name.lower()}")
        return DataType[name]

    def lod(self) -> list[list[int]]:
        """Always empty: there are no sequences of several lengths in a tensor."""
        return []

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Accepts only an empty list."""
        if len(lod) > 0:
            raise Unsupported(f"{self._title}: expected an empty LoD, found {len(lod)} levels\nhint: pad sequences to one length")

    @property
    def _title(self) -> str:
        return f"{'input' if self._is_input else 'output'} `{self._slot.name}`"

    def _put(self, value: NDArray[Any] | _oarlock.Tensor) -> None:
        self._value, self._shape = value, list(value.shape)

    def _refuse_output(self, method: str) -> None:
        if not self._is_input:
            raise InvalidValue(f"{self._title}: expected an input for `{method}`, found an output")


def as_array(data: Any) -> NDArray[Any] | _oarlock.Tensor:
    """An array of Oarlock or NumPy; those of other libraries are shared by DLPack."""
    if isinstance(data, _oarlock.Tensor) or is_array(data):
        return data
    if not hasattr(data, "__dlpack__"):
        raise TypeError(f"expected an array of Oarlock, NumPy or a library with DLPack, found {type(data).__name__}")
    return _oarlock.from_dlpack(data)


def _is_texts(data: object) -> bool:
    """Whether something is a list of texts."""
    return is_sequence(data) and bool(data) and isinstance(data[0], str)
