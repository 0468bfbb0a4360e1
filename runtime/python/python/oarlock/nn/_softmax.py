"""Shares of a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._arguments import in_own_name
from .._oarlock import Tensor, _axis, op, reshape
from .._splitting import split
from ._operands import one_of_floats

if TYPE_CHECKING:
    from .._typing import ArrayLike, DtypeLike

__all__: list[str] = ["glu", "log_softmax", "softmax", "softmin"]


@in_own_name
def softmax(input: ArrayLike, dim: int, *, dtype: DtypeLike | None = None) -> Tensor:
    """The exponentials of the elements along an axis, divided by their sum. With `dtype`, the array is converted first."""
    return _along("Softmax", input, dim, dtype)


@in_own_name
def softmin(input: ArrayLike, dim: int, *, dtype: DtypeLike | None = None) -> Tensor:
    """The `softmax` of the negative elements."""
    return _along("Softmax", -one_of_floats(input), dim, dtype)


@in_own_name
def log_softmax(input: ArrayLike, dim: int, *, dtype: DtypeLike | None = None) -> Tensor:
    """The logarithm of `softmax`."""
    return _along("LogSoftmax", input, dim, dtype)


@in_own_name
def glu(input: ArrayLike, dim: int = -1) -> Tensor:
    """The first half of an axis, multiplied by the `sigmoid` of the second half."""
    x = one_of_floats(input)
    axis = _axis(dim, x.ndim)
    if x.shape[axis] % 2:
        raise ValueError(f"expected an axis of an even size, found {x.shape[axis]} for the axis {dim} of the shape {x.shape}")
    first, second = split(x, 2, axis)
    return first * op("Sigmoid", [second])


def _along(name: str, input: ArrayLike, dim: int, dtype: DtypeLike | None) -> Tensor:
    """The result of an op along an axis. A number without axes is one of an axis."""
    x = one_of_floats(input)
    x = x if dtype is None else x.astype(dtype)
    axis = _axis(dim, max(x.ndim, 1))
    return op(name, [x], {"axis": axis}) if x.ndim else reshape(op(name, [x[None]], {"axis": 0}), ())
