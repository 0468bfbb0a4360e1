"""Inputs and outputs of runs."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy

from .. import asarray, zeros
from .._oarlock import Device, DType, Tensor
from ._errors import InvalidArgument, NotImplemented

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The dtype numbers of ONNX, in the order of the format.
_NUMBERED = [
    "", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "str", "bool", "float16", "float64", "uint32", "uint64",
    "complex64", "complex128", "bfloat16",
]  # fmt: skip
_WHOLE = ("int32", "int64")
_FLOATS = ("float16", "float32", "float64", "bfloat16")
_ELEMENTS = {"float32": "float", "float64": "double", "str": "string"}


class OrtValue:
    """An array on a device."""

    def __init__(self, array: Tensor, memory: NDArray[Any] | None = None) -> None:
        self._array = array
        # The memory that runs write to, if another object owns it.
        self._memory = memory

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: NDArray[Any], device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """A NumPy array on a device; on the CPU, without a copy."""
        is_here = device_type.lower() == "cpu" and numpy_obj.flags.writeable
        array = asarray(numpy_obj, device=_place(device_type, device_id))
        return OrtValue(array, numpy_obj if is_here else None)

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Zeros of a NumPy dtype or an ONNX dtype number, to be written to."""
        dtype = _named(element_type)
        if device_type.lower() == "cpu" and dtype in _NUMBERED[:-1] and dtype != "str":
            return OrtValue.ortvalue_from_numpy(numpy.zeros(tuple(shape), dtype))
        return OrtValue(zeros(tuple(shape), dtype=dtype, device=_place(device_type, device_id)))

    def numpy(self) -> NDArray[Any]:
        """The elements as a NumPy array."""
        return self._array.numpy()

    def update_inplace(self, np_arr: NDArray[Any]) -> None:
        """Overwrites the elements with others of the same shape and dtype."""
        self._write(asarray(np_arr))

    def shape(self) -> list[int]:
        """The shape."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """The type, such as `tensor(float)`."""
        return type_of(self._array.dtype.name)

    def element_type(self) -> int:
        """The ONNX dtype number."""
        name = self._array.dtype.name
        if name not in _NUMBERED:
            raise NotImplemented(f"expected a dtype whose number is known, found {name}")
        return _NUMBERED.index(name)

    def tensor_size_in_bytes(self) -> int:
        """The size of the elements in bytes."""
        return self._array.nbytes

    def data_ptr(self) -> int:
        """The address of the elements in host memory."""
        if self._array.device.type != "cpu":
            raise NotImplemented(f"expected elements in the memory of the host, found them on {self._array.device}")
        return self._array.numpy().ctypes.data

    def device_name(self) -> str:
        """The type of the device."""
        return self._array.device.type

    def has_value(self) -> bool:
        """Always true."""
        return True

    def is_tensor(self) -> bool:
        """Always true."""
        return True

    def is_sparse_tensor(self) -> bool:
        """Always false."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Always false."""
        return False

    def _write(self, array: Tensor) -> None:
        here = self._array
        if (array.shape, array.dtype) != (here.shape, here.dtype):
            raise InvalidArgument(
                f"expected {here.dtype}{list(here.shape)} for the memory that is there, found {array.dtype}{list(array.shape)}"
            )
        if self._memory is None:
            self._array = array.to_device(here.device)
        else:
            numpy.copyto(self._memory, array.numpy())
            self._array = asarray(self._memory, device=here.device)


class Bound:
    """The target of an output: existing memory, or a new array on a device."""

    def __init__(self, device: Device | str, value: OrtValue | None) -> None:
        self._device = device
        self._value = value

    def take(self, made: Tensor) -> OrtValue:
        """Stores an output in its target."""
        if self._value is None:
            return OrtValue(made.to_device(self._device))
        self._value._write(made)
        return self._value

    @staticmethod
    def at(device_type: str, device_id: int, element_type: Any, shape: Sequence[int], address: int) -> OrtValue:
        """The elements at an address."""
        if device_type.lower() != "cpu":
            raise NotImplemented(
                f"expected an address in the memory of the host, found one of `{device_type}`\nhint: bind an `OrtValue` of the device"
            )
        dtype = numpy.dtype(_named(element_type))
        memory = (ctypes.c_char * (math.prod(shape) * dtype.itemsize)).from_address(address)
        return OrtValue.ortvalue_from_numpy(numpy.ndarray(tuple(shape), dtype, memoryview(memory)), "cpu", device_id)

    @staticmethod
    def on(device_type: str, device_id: int) -> Bound:
        """A new array on a device."""
        return Bound(Device(_place(device_type, device_id)), None)

    @staticmethod
    def within(value: OrtValue) -> Bound:
        """Existing memory."""
        return Bound(value._array.device, value)


def _place(device_type: str, device_id: int) -> str:
    return f"{device_type.lower()}:{device_id}"


def _named(element_type: Any) -> str:
    """The name of a NumPy dtype or of an ONNX dtype number."""
    if isinstance(element_type, int):
        if not 0 < element_type < len(_NUMBERED):
            raise InvalidArgument(f"expected the number of a dtype in ONNX, found {element_type}")
        return _NUMBERED[element_type]
    return element_type if isinstance(element_type, str) else numpy.dtype(element_type).name


def type_of(dtype: str) -> str:
    """The onnxruntime type of arrays with a dtype."""
    return f"tensor({_ELEMENTS.get(dtype, dtype)})"


def fed(value: Any, dtype: DType | None = None) -> Any:
    """Converts an input from onnxruntime's form to ours; `dtype` is that of the input if it is an array."""
    if isinstance(value, OrtValue):
        return value._array
    if is_list(value) and dtype is not None:
        array = asarray(value)
        # Python integers fit any dtype, and so do empty lists.
        is_any = array.size == 0 or (array.dtype.name in _WHOLE and dtype.name in _FLOATS)
        return array.astype(dtype) if is_any else array
    if is_list(value) and value and isinstance(value[0], numpy.ndarray):
        return [asarray(each) for each in value]
    return value


def to_numpy(value: Any) -> Any:
    """Converts an output of ours, which has no other owner, to onnxruntime's form: writable arrays."""
    if isinstance(value, Tensor):
        return value._given_up()
    return [to_numpy(each) for each in value] if is_list(value) else value


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a list."""
    return isinstance(value, list)
