"""Arrays of requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy

from .._oarlock import Error
from .._nesting import is_sequence
from .._peers import InvalidValue, is_array
from ._types import Shape, Type

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Tensor:
    """Elements of an input or output: a copy of an array or list, the array itself with `shared_memory`, or zeros of a type and a
    shape. `shape`, `element_type`, `size` and `byte_size` are also properties.

    >>> ol.openvino.Tensor(ol.openvino.Type.f32, [2, 3])
    <Tensor: shape[2,3] type: f32>
    """

    def __init__(self, array: Any, shared_memory: bool | Iterable[int] = False) -> None:
        self._array: NDArray[Any] | None
        if isinstance(array, (Type, type, numpy.dtype)):
            if isinstance(shared_memory, bool):
                raise TypeError(f"expected a shape after the type {array}, found none")
            self._array = numpy.zeros(tuple(shared_memory), Type(array).to_dtype())
        elif is_array(array) or is_sequence(array):
            made: NDArray[Any] = numpy.asarray(array)
            if shared_memory and not made.flags.c_contiguous:
                raise InvalidValue(
                    "expected a contiguous array to share, found one with gaps\nhint: leave out `shared_memory`, which copies it"
                )
            self._array = made if shared_memory else numpy.array(made, order="C")
        else:
            raise TypeError(f"expected an array of NumPy, a list, or a type and a shape, found {type(array).__name__}")

    @classmethod
    def _before_a_run(cls) -> Tensor:
        """The elements of an output, which the first run makes."""
        tensor = cls.__new__(cls)
        tensor._array = None
        return tensor

    @property
    def data(self) -> NDArray[Any]:
        """The elements, in the memory of the tensor."""
        if self._array is None:
            raise Error("expected a run before an output is read, found none\nhint: call `infer`, or `start_async` and `wait`")
        return self._array

    @property
    def str_data(self) -> NDArray[Any]:
        """Elements that are text."""
        return self.data

    def get_shape(self) -> Shape:
        """The shape."""
        return Shape(self.data.shape)

    def set_shape(self, shape: Iterable[int]) -> None:
        """Changes the shape. If the number of elements changes, they become zeros."""
        sizes = tuple(shape)
        fits = self.data.size == numpy.prod(sizes)
        self._array = self.data.reshape(sizes) if fits else numpy.zeros(sizes, self.data.dtype)

    shape = property(get_shape, set_shape)

    def get_element_type(self) -> Type:
        """The type of the elements."""
        return Type(self.data.dtype)

    def get_size(self) -> int:
        """The number of elements."""
        return self.data.size

    def get_byte_size(self) -> int:
        """The size of the elements in bytes."""
        return self.data.nbytes

    element_type = property(get_element_type)
    size = property(get_size)
    byte_size = property(get_byte_size)

    def copy_from(self, source: Any) -> None:
        """Takes over the elements of another tensor or of an array."""
        self._array = numpy.array(source.data if isinstance(source, Tensor) else source)

    def copy_to(self, target: Tensor) -> None:
        """Gives another tensor a copy of the elements."""
        target.copy_from(self)

    def __repr__(self) -> str:
        return "<Tensor: before a run>" if self._array is None else f"<Tensor: shape{self.shape} type: {self.element_type.name}>"
