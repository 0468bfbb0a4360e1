"""What functions of the package take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

from ._oarlock import Device, DType

Number = Union[bool, int, float, complex]
Shape = Union[int, Sequence[int]]
Axes = Union[int, Sequence[int]]
DtypeLike = Union[DType, type, str, Any]
DeviceLike = Union[Device, str]
