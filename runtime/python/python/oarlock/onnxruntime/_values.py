"""What goes into runs and comes out of them."""

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

# The numbers that ONNX has for dtypes, in the order of the format.
_NUMBERED = [
    "", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "str", "bool", "float16", "float64", "uint32", "uint64",
    "complex64", "complex128", "bfloat16",
]  # fmt: skip
_WHOLE = ("int32", "int64")
_FLOATS = ("float16", "float32", "float64", "bfloat16")
_ELEMENTS = {"float32": "float", "float64": "double", "str": "string"}


class OrtValue:
    """An array that lies where runs use it."""

    def __init__(self, array: Tensor, memory: NDArray[Any] | None = None) -> None:
        self._array = array
        # What runs write into, if it is the memory of somebody else.
        self._memory = memory

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: NDArray[Any], device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """The elements of an array of NumPy on a device; in its own memory on the CPU."""
        is_here = device_type.lower() == "cpu" and numpy_obj.flags.writeable
        array = asarray(numpy_obj, device=_place(device_type, device_id))
        return OrtValue(array, numpy_obj if is_here else None)

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        """Zeros to write into, of a type of NumPy or a number that ONNX has for one."""
        dtype = _named(element_type)
        if device_type.lower() == "cpu" and dtype in _NUMBERED[:-1] and dtype != "str":
            return OrtValue.ortvalue_from_numpy(numpy.zeros(tuple(shape), dtype))
        return OrtValue(zeros(tuple(shape), dtype=dtype, device=_place(device_type, device_id)))

    def numpy(self) -> NDArray[Any]:
        """Its elements as an array of NumPy."""
        return self._array.numpy()

    def update_inplace(self, np_arr: NDArray[Any]) -> None:
        """Writes other elements of the same shape and type into it."""
        self._write(asarray(np_arr))

    def shape(self) -> list[int]:
        """The sizes of its dimensions."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """What it is, such as `tensor(float)`."""
        return type_of(self._array.dtype.name)

    def element_type(self) -> int:
        """The number that ONNX has for its dtype."""
        name = self._array.dtype.name
        if name not in _NUMBERED:
            raise NotImplemented(f"expected a dtype whose number is known, found {name}")
        return _NUMBERED.index(name)

    def tensor_size_in_bytes(self) -> int:
        """The bytes of its elements."""
        return self._array.nbytes

    def data_ptr(self) -> int:
        """The address of its elements, which lie in the memory of the host."""
        if self._array.device.type != "cpu":
            raise NotImplemented(f"expected elements in the memory of the host, found them on {self._array.device}")
        return self._array.numpy().ctypes.data

    def device_name(self) -> str:
        """The type of the device that it lies on."""
        return self._array.device.type

    def has_value(self) -> bool:
        """Whether there is something in it, which there always is."""
        return True

    def is_tensor(self) -> bool:
        """Whether it is an array, which it always is."""
        return True

    def is_sparse_tensor(self) -> bool:
        """Whether most of its elements are left out, which they never are."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether it is a list of arrays, which it never is."""
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
    """What a run writes an output to: memory that is there, or what is made on a device."""

    def __init__(self, device: Device | str, value: OrtValue | None) -> None:
        self._device = device
        self._value = value

    def take(self, made: Tensor) -> OrtValue:
        """Has an output lie where it was to be."""
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
        """What is made on a device."""
        return Bound(Device(_place(device_type, device_id)), None)

    @staticmethod
    def within(value: OrtValue) -> Bound:
        """Memory that is there."""
        return Bound(value._array.device, value)


def _place(device_type: str, device_id: int) -> str:
    return f"{device_type.lower()}:{device_id}"


def _named(element_type: Any) -> str:
    """The name of a dtype of NumPy, or of one that has a number in ONNX."""
    if isinstance(element_type, int):
        if not 0 < element_type < len(_NUMBERED):
            raise InvalidArgument(f"expected the number of a dtype in ONNX, found {element_type}")
        return _NUMBERED[element_type]
    return element_type if isinstance(element_type, str) else numpy.dtype(element_type).name


def type_of(dtype: str) -> str:
    """What onnxruntime calls arrays of a dtype."""
    return f"tensor({_ELEMENTS.get(dtype, dtype)})"


def fed(value: Any, dtype: DType | None = None) -> Any:
    """What a run of ours is given for what a run is given there, for an input of a dtype if it is an array."""
    if isinstance(value, OrtValue):
        return value._array
    if is_list(value) and dtype is not None:
        array = asarray(value)
        # Whole numbers are numbers of any dtype, and no numbers are as well.
        is_any = array.size == 0 or (array.dtype.name in _WHOLE and dtype.name in _FLOATS)
        return array.astype(dtype) if is_any else array
    if is_list(value) and value and isinstance(value[0], numpy.ndarray):
        return [asarray(each) for each in value]
    return value


def to_numpy(value: Any) -> Any:
    """What a run gives there for what a run of ours gives, which is nobody else's: arrays that may be written."""
    if isinstance(value, Tensor):
        return value._given_up()
    return [to_numpy(each) for each in value] if is_list(value) else value


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether it is a list."""
    return isinstance(value, list)
