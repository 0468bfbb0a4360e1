"""Linear functions, and rows of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _oarlock
from .._arguments import arrays_of, in_own_name
from .._kinds import whole_numbers
from .._manipulation import broadcast_shapes
from .._oarlock import Tensor, asarray, matmul, permute_dims, reshape
from .._search import take
from .._statistics import max as greatest
from .._statistics import min as least
from .._statistics import sum as total
from ._operands import beside, floats

if TYPE_CHECKING:
    from .._typing import ArrayLike

__all__: list[str] = ["bilinear", "embedding", "linear", "one_hot"]


@in_own_name
def linear(input: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Tensor:
    """The products of the last axis with each row of `weight`, plus `bias`."""
    x, rows = floats(input, weight)
    offset = beside(x, bias)
    if rows.ndim not in (1, 2) or x.ndim == 0 or x.shape[-1] != rows.shape[-1]:
        raise ValueError(f"expected rows of the size of the last axis of {x.shape} for `weight`, found the shape {rows.shape}")
    made = matmul(x, rows if rows.ndim == 1 else rows.mT)
    return made if offset is None else made + _fitting(offset, rows.shape[:-1])


@in_own_name
def bilinear(input1: ArrayLike, input2: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Tensor:
    """The products `input1 @ matrix @ input2` of the last axes with each matrix of `weight`, plus `bias`."""
    x1, x2, matrices = floats(input1, input2, weight)
    offset = beside(x1, bias)
    if matrices.ndim != 3 or x1.ndim == 0 or x2.ndim == 0 or matrices.shape[1:] != (x1.shape[-1], x2.shape[-1]):
        raise ValueError(
            f"expected matrices that fit the last axes of {x1.shape} and {x2.shape} for `weight`, "
            f"found the shape {matrices.shape}"
        )
    broadcast_shapes(x1.shape[:-1], x2.shape[:-1])
    count, first, second = matrices.shape
    flat = reshape(permute_dims(matrices, (1, 0, 2)), (first, count * second))
    rows = reshape(matmul(x1, flat), (*x1.shape[:-1], count, second))
    made = total(rows * x2[..., None, :], axis=-1)
    return made if offset is None else made + _fitting(offset, (count,))


@in_own_name
def embedding(input: ArrayLike, weight: ArrayLike, padding_idx: int | None = None) -> Tensor:
    """The rows of a table at some indices. `padding_idx` matters only for gradients, of which there are none."""
    table, places = arrays_of(weight, input)
    if table.ndim != 2:
        raise ValueError(f"expected a table with rows for `weight`, found the shape {table.shape}")
    return take(table, whole_numbers(places), axis=0)


@in_own_name
def one_hot(tensor: ArrayLike, num_classes: int = -1) -> Tensor:
    """Zeros along a new last axis of `num_classes`, with a 1 at the place of each class; by default, as many as there are."""
    x = whole_numbers(asarray(tensor))
    if x.size == 0 and num_classes < 1:
        raise ValueError(f"expected the number of classes, found {num_classes} and no elements\nhint: give `num_classes`")
    if x.size:
        lowest, highest = int(least(x)), int(greatest(x))
        count = highest + 1 if num_classes == -1 else num_classes
        if lowest < 0 or highest >= count:
            raise ValueError(f"expected classes from 0 to {count - 1}, found {lowest if lowest < 0 else highest}")
        num_classes = count
    depth, values = asarray(num_classes, device="cpu"), asarray([0, 1], dtype=_oarlock.int64, device=x.device)
    return _oarlock.op("OneHot", [x, depth, values])


def _fitting(offset: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The bias, unless it has another shape than the outputs."""
    if offset.shape not in (shape, (), (1,)):
        raise ValueError(f"expected the shape {shape} for `bias`, found {offset.shape}")
    return offset
