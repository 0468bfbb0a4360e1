"""Inputs and outputs of runs."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

import numpy

from .. import asarray, from_dlpack, zeros
from .._oarlock import Device, Tensor, _given_up
from ._errors import InvalidArgument, NotImplemented, expect_type
from ._providers import place_of
from ._sparse import refuse_sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._memory import OrtMemoryInfo
    from ._sparse import SparseTensor

# An array, a sequence of arrays, or an optional value that is absent.
Value = Tensor | list[Tensor] | None

# The dtype numbers of ONNX, in the order of the format.
_NUMBERED = [
    "", "float32", "uint8", "int8", "uint16", "int16", "int32", "int64", "str", "bool", "float16", "float64", "uint32", "uint64",
    "complex64", "complex128", "bfloat16",
]  # fmt: skip
# Those that NumPy has.
NUMPY_DTYPES = frozenset(_NUMBERED[1:-1]) - {"str"}
_ELEMENTS = {
    "float32": "float", "float64": "double", "str": "string", "float8_e4m3fn": "float8e4m3fn", "float8_e4m3fnuz": "float8e4m3fnuz",
    "float8_e5m2": "float8e5m2", "float8_e5m2fnuz": "float8e5m2fnuz",
}  # fmt: skip


class OrtValue:
    """An array on a device, a sequence of arrays, or an optional value that is absent.

    >>> import numpy
    >>> ol.onnxruntime.OrtValue.ortvalue_from_numpy(numpy.ones((2, 3), "float32")).data_type()
    'tensor(float)'
    """

    def __init__(self, value: Value, memory: NDArray[Any] | None = None) -> None:
        self._value = value
        # The memory that runs write to, if another object owns it.
        self._memory = memory

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: NDArray[Any], /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """A NumPy array on a device; on the CPU, without a copy."""
        expect_type(numpy_obj, numpy.ndarray, "an array of NumPy", "make one with `numpy.array`")
        is_here = device_type.lower() == "cpu" and numpy_obj.flags.writeable
        array = asarray(numpy_obj, device=_place(device_type, device_id))
        return cls(array, numpy_obj if is_here else None)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: NDArray[Any], /, onnx_element_type: int) -> OrtValue:
        """The bits of a NumPy array as elements of an ONNX dtype number, such as 16 for bfloat16, which NumPy does not have."""
        dtype = _named(onnx_element_type)
        if dtype == "bfloat16":
            # The upper half of a float32 is a bfloat16.
            wide = (data.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
            return cls(asarray(wide).astype(dtype))
        return cls.ortvalue_from_numpy(data.view(dtype))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls,
        shape: Sequence[int],
        element_type: Any,
        device_type: str = "cpu",
        device_id: int = 0,
        vendor_id: int = -1,
        memory_info: OrtMemoryInfo | None = None,
    ) -> OrtValue:
        """Zeros of a NumPy dtype or an ONNX dtype number, to be written to."""
        if memory_info is not None:
            device_type, device_id = memory_info.name, memory_info.device_id
        dtype = _named(element_type)
        if device_type.lower() == "cpu" and dtype in NUMPY_DTYPES:
            return cls.ortvalue_from_numpy(numpy.zeros(tuple(shape), dtype))
        return cls(zeros(tuple(shape), dtype=dtype, device=_place(device_type, device_id)))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """Another library's array, whose memory is shared if possible."""
        return cls(from_dlpack(data))

    @classmethod
    def ort_value_from_sparse_tensor(cls, sparse_tensor: SparseTensor, /) -> NoReturn:
        """Is not supported."""
        refuse_sparse()

    def as_sparse_tensor(self) -> NoReturn:
        """Is not supported."""
        refuse_sparse()

    def numpy(self) -> NDArray[Any]:
        """The elements as a NumPy array."""
        return self._array.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        elements = self.numpy()
        return numpy.array(elements, dtype) if copy else numpy.asarray(elements, dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def update_inplace(self, data: NDArray[Any] | OrtValue) -> None:
        """Overwrites the elements with others of the same shape and dtype."""
        self._write(data._array if isinstance(data, OrtValue) else asarray(data))

    def shape(self) -> list[int]:
        """The shape."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """The type, such as `tensor(float)` or `seq(tensor(float))`."""
        text = type_of(self._first.dtype.name)
        return f"seq({text})" if is_list(self._value) else text

    def element_type(self) -> int:
        """The ONNX dtype number of an array, or of the arrays of a sequence."""
        name = self._first.dtype.name
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
        """Whether there is a value, which is always so unless a model's output is optional."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Whether it is an array."""
        return isinstance(self._value, Tensor)

    def is_sparse_tensor(self) -> bool:
        """Always false."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence of arrays."""
        return is_list(self._value)

    @property
    def _array(self) -> Tensor:
        if isinstance(self._value, Tensor):
            return self._value
        raise InvalidArgument(f"expected a value that is an array, found {'a sequence' if is_list(self._value) else 'nothing'}")

    @property
    def _first(self) -> Tensor:
        """The array, or the first of a sequence, which tells the dtype of all."""
        if not isinstance(self._value, list):
            return self._array
        if not self._value:
            raise InvalidArgument("expected a sequence whose arrays tell their dtype, found an empty one")
        return self._value[0]

    def _write(self, array: Tensor) -> None:
        here = self._array
        if (array.shape, array.dtype) != (here.shape, here.dtype):
            raise InvalidArgument(
                f"expected {here.dtype}{list(here.shape)} for the memory that is there, found {array.dtype}{list(array.shape)}"
            )
        if self._memory is None:
            self._value = array.to_device(here.device)
        else:
            numpy.copyto(self._memory, array.numpy())
            self._value = asarray(self._memory, device=here.device)


class Bound:
    """The target of an output: existing memory, or a new array on a device."""

    def __init__(self, device: Device | str, value: OrtValue | None) -> None:
        self._device = device
        self._value = value

    def take(self, made: Value) -> OrtValue:
        """Stores an output in its target."""
        if not isinstance(made, Tensor):
            return OrtValue(made)
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
        return Bound(_place(device_type, device_id), None)

    @staticmethod
    def within(value: OrtValue) -> Bound:
        """Existing memory."""
        return Bound(value._array.device, value)


def _place(device_type: str, device_id: int) -> Device:
    try:
        return Device(place_of(device_type, device_id))
    except ValueError as error:
        raise InvalidArgument(str(error)) from error


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


def to_numpy(value: Any, *, is_owned: bool) -> Any:
    """Converts an output of ours to onnxruntime's form: writable arrays, without a copy if it has no other owner."""
    if isinstance(value, Tensor):
        return _given_up(value) if is_owned else value.numpy().copy()
    return [to_numpy(each, is_owned=is_owned) for each in value] if is_list(value) else value


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a value is a list."""
    return isinstance(value, list)


def copy_tensors(src: Sequence[OrtValue], dst: Sequence[OrtValue], stream: object = None) -> None:
    """Overwrites the elements of values with those of others.

    >>> import numpy
    >>> one, two = (ol.onnxruntime.OrtValue.ortvalue_from_numpy(numpy.full(2, number)) for number in (1, 2))
    >>> ol.onnxruntime.copy_tensors([one], [two])
    >>> two.numpy().tolist()
    [1, 1]
    """
    for one, other in zip(src, dst, strict=True):
        other.update_inplace(one)
