"""Types of arguments."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, SupportsIndex, TypeAlias

from ._oarlock import Device, DType, Tensor

Number: TypeAlias = bool | int | float | complex
Shape: TypeAlias = int | Sequence[int]
Axes: TypeAlias = int | Sequence[int]
DtypeLike: TypeAlias = DType | type | str | Any
DeviceLike: TypeAlias = Device | str
Place: TypeAlias = SupportsIndex | slice | EllipsisType | None | Tensor | list[Any]
Index: TypeAlias = Place | tuple[Place, ...]
