"""Types of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, Protocol, SupportsIndex, TypeAlias, TypedDict

from ._oarlock import Device, DType, Tensor


class HasArray(Protocol):
    """An object that makes a NumPy array of itself, such as a column of a table."""

    def __array__(self) -> Any: ...


class HasDLPack(Protocol):
    """An array of another library."""

    def __dlpack__(self) -> Any: ...


class HasSerializeToString(Protocol):
    """A model of the package `onnx`."""

    def SerializeToString(self) -> bytes: ...  # noqa: N802


Number: TypeAlias = bool | int | float | complex
ArrayLike: TypeAlias = "Tensor | Number | str | HasArray | HasDLPack | Sequence[ArrayLike]"
Shape: TypeAlias = int | Sequence[int]
Axes: TypeAlias = int | Sequence[int]
DtypeLike: TypeAlias = DType | type | str | Any
DeviceLike: TypeAlias = Device | str
Place: TypeAlias = SupportsIndex | slice | EllipsisType | None | Tensor | list[Any]
Index: TypeAlias = Place | tuple[Place, ...]


class UfuncKeywords(TypedDict, total=False):
    """Keywords that NumPy's elementwise functions have."""

    where: ArrayLike
    """The elements of `out` that get results; all others stay."""
    dtype: DtypeLike
    """The operands are converted to it first."""
    casting: str
    """`unsafe` allows conversions that lose something; the default is `same_kind`."""
