"""What inputs and outputs are: types, shapes and ports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy

from .._oarlock import _dtype
from .._nesting import is_sequence
from .._peers import InvalidValue

if TYPE_CHECKING:
    from .._oarlock import DType


class Type(Enum):
    """The type of elements, made from a dtype of NumPy too.

    >>> import numpy
    >>> ol.openvino.Type(numpy.float32)
    <Type: 'float32'>
    """

    dynamic = "dynamic"
    boolean = "bool"
    string = "str"
    f16 = "float16"
    f32 = "float32"
    f64 = "float64"
    bf16 = "bfloat16"
    f8e4m3 = "float8_e4m3fn"
    f8e5m2 = "float8_e5m2"
    i4 = "int4"
    i8 = "int8"
    i16 = "int16"
    i32 = "int32"
    i64 = "int64"
    u4 = "uint4"
    u8 = "uint8"
    u16 = "uint16"
    u32 = "uint32"
    u64 = "uint64"

    @classmethod
    def _missing_(cls, value: object) -> Type:
        kind: Any = value
        dtype = numpy.dtype(kind)
        return cls("str" if dtype.kind in "UOT" else dtype.name)

    def to_dtype(self) -> numpy.dtype[Any]:
        """The dtype of NumPy."""
        if self is Type.dynamic:
            raise InvalidValue("expected a type that is known, found a dynamic one")
        made: numpy.dtype[Any] = numpy.dtype(_dtype(self.value).__numpy_dtype__)
        return made

    def get_type_name(self) -> str:
        """The name, such as `f32`."""
        return self.name

    def __repr__(self) -> str:
        return f"<Type: '{self.value}'>"

    __str__ = __repr__


class Dimension:
    """A size that is a number or, as `-1`, any number.

    >>> ol.openvino.Dimension(-1).is_dynamic
    True
    """

    def __init__(self, length: int | str | Dimension = -1) -> None:
        if isinstance(length, Dimension):
            self._length: int | None = length._length
        else:
            self._length = int(length) if length != "?" and int(length) >= 0 else None

    @property
    def is_dynamic(self) -> bool:
        """Whether it is any number."""
        return self._length is None

    @property
    def is_static(self) -> bool:
        """Whether it is one number."""
        return self._length is not None

    def get_length(self) -> int:
        """The number."""
        if self._length is None:
            raise InvalidValue("expected a size that is a number, found an open one\nhint: `is_dynamic` tells them apart")
        return self._length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (int, str, Dimension)) and self._length == Dimension(other)._length

    def __hash__(self) -> int:
        return hash(self._length)

    def __str__(self) -> str:
        return "?" if self._length is None else str(self._length)

    def __repr__(self) -> str:
        return f"<Dimension: {self}>"


class Shape(list[int]):
    """The sizes of an array.

    >>> print(ol.openvino.Shape([1, 3]))
    [1,3]
    """

    def __eq__(self, other: object) -> bool:
        return is_sequence(other) and list(self) == list(other)

    def __str__(self) -> str:
        return f"[{','.join(map(str, self))}]"

    def __repr__(self) -> str:
        return f"<Shape: {self}>"


class PartialShape:
    """A shape with sizes of which some may be open, as `-1`.

    >>> print(ol.openvino.PartialShape([-1, 3]))
    [?,3]
    """

    def __init__(self, shape: Iterable[int | str | Dimension]) -> None:
        self._sizes = [Dimension(size) for size in shape]

    @property
    def is_dynamic(self) -> bool:
        """Whether a size is open."""
        return any(size.is_dynamic for size in self._sizes)

    @property
    def is_static(self) -> bool:
        """Whether all sizes are numbers."""
        return not self.is_dynamic

    @property
    def rank(self) -> Dimension:
        """The number of sizes."""
        return Dimension(len(self._sizes))

    def to_shape(self) -> Shape:
        """The sizes, all of which must be numbers."""
        if self.is_dynamic:
            raise InvalidValue(
                f"expected a shape whose sizes are numbers, found {self}\n"
                "hint: use `partial_shape`, or `reshape` the model before it is compiled"
            )
        return Shape(size.get_length() for size in self._sizes)

    get_shape = to_shape

    def get_min_shape(self) -> Shape:
        """The sizes, with 0 for open ones."""
        return Shape(0 if size.is_dynamic else size.get_length() for size in self._sizes)

    def __getitem__(self, index: int) -> Dimension:
        return self._sizes[index]

    def __len__(self) -> int:
        return len(self._sizes)

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self._sizes)

    def __eq__(self, other: object) -> bool:
        return (is_sequence(other) or isinstance(other, PartialShape)) and self._sizes == PartialShape(other)._sizes

    def __str__(self) -> str:
        return f"[{','.join(map(str, self._sizes))}]"

    def __repr__(self) -> str:
        return f"<PartialShape: {self}>"


class ConstOutput:
    """An input or output of a model. `any_name`, `names`, `element_type`, `partial_shape` and `shape` are also properties.

    >>> model = ol.openvino.Core().read_model("docs/src/models/digits.onnx")
    >>> model.input(0)
    <ConstOutput: names[image] shape[?,1,8,8] type: f32>
    """

    def __init__(self, name: str, dtype: DType | None, shape: PartialShape) -> None:
        self._name = name
        self._type = Type.dynamic if dtype is None else Type(dtype.name)
        self._shape = shape

    def get_any_name(self) -> str:
        """The name."""
        return self._name

    def get_names(self) -> set[str]:
        """The names, of which there is one."""
        return {self._name}

    def get_element_type(self) -> Type:
        """The type of the elements."""
        return self._type

    def get_partial_shape(self) -> PartialShape:
        """The shape, with open sizes."""
        return self._shape

    def get_shape(self) -> Shape:
        """The shape, all of whose sizes must be numbers."""
        return self._shape.to_shape()

    any_name = property(get_any_name)
    names = property(get_names)
    element_type = property(get_element_type)
    partial_shape = property(get_partial_shape)
    shape = property(get_shape)

    def __repr__(self) -> str:
        return f"<ConstOutput: names[{self._name}] shape{self._shape} type: {self._type.name}>"


def find_port(ports: list[ConstOutput], key: object, what: str) -> ConstOutput:
    """The port that a number, a name or a port means; with `None`, the only one."""
    if key is None and len(ports) == 1:
        return ports[0]
    if isinstance(key, int) and 0 <= key < len(ports):
        return ports[key]
    name = key._name if isinstance(key, ConstOutput) else key
    found = next((port for port in ports if port._name == name), None)
    if found is None:
        names = ", ".join(f"`{port._name}`" for port in ports)
        shown = "none" if key is None else f"`{name}`"
        raise InvalidValue(f"expected one of the {what}s {names}, by name, number or port, found {shown}")
    return found
