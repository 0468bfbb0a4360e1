"""What a dtype does when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._information import isdtype
from ._oarlock import asarray

if TYPE_CHECKING:
    from ._oarlock import DType, Tensor
    from ._typing import ArrayLike

__all__: list[str] = []


def converted(dtype: DType, value: ArrayLike | None) -> Tensor:
    """A number or an array in a dtype. Numbers have to fit; floats lose what is behind the point in integers."""
    if value is None or isinstance(value, (str, bytes)):
        raise TypeError(f"expected a number or an array to convert to {dtype.name}, found {type(value).__name__}")
    if isinstance(value, float) and isdtype(dtype, "integral"):
        value = int(value)
    if type(value) is int:
        return asarray(value, dtype=dtype)
    return asarray(value).astype(dtype, copy=False)
