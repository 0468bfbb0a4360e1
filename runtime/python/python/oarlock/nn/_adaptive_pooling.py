"""Pooling to a given size: windows that share an axis evenly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .. import _oarlock
from .._arguments import in_own_name
from .._oarlock import Tensor, asarray, reshape
from .._search import take, where
from .._statistics import max as greatest
from .._statistics import sum as total
from ._operands import batched, of_batch, one_of_floats

if TYPE_CHECKING:
    from .._typing import ArrayLike

    OpenSizes = int | Sequence[int | None] | None

__all__: list[str] = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
]


@in_own_name
def adaptive_avg_pool1d(input: ArrayLike, output_size: OpenSizes) -> Tensor:
    """The means of as many windows along the last axis."""
    return _pooled(1, input, output_size, is_mean=True)


@in_own_name
def adaptive_avg_pool2d(input: ArrayLike, output_size: OpenSizes) -> Tensor:
    """The means of as many windows along the last two axes; an axis for which the size is `None` stays as it is."""
    return _pooled(2, input, output_size, is_mean=True)


@in_own_name
def adaptive_avg_pool3d(input: ArrayLike, output_size: OpenSizes) -> Tensor:
    """The means of as many windows along the last three axes; an axis for which the size is `None` stays as it is."""
    return _pooled(3, input, output_size, is_mean=True)


@in_own_name
def adaptive_max_pool1d(input: ArrayLike, output_size: OpenSizes) -> Tensor:
    """The greatest elements of as many windows along the last axis."""
    return _pooled(1, input, output_size, is_mean=False)


@in_own_name
def adaptive_max_pool2d(input: ArrayLike, output_size: OpenSizes) -> Tensor:
    """The greatest elements of as many windows along the last two axes; an axis for which the size is `None` stays as it is."""
    return _pooled(2, input, output_size, is_mean=False)


@in_own_name
def adaptive_max_pool3d(input: ArrayLike, output_size: OpenSizes) -> Tensor:
    """The greatest elements of as many windows along the last three axes; an axis for which the size is `None` stays as it is."""
    return _pooled(3, input, output_size, is_mean=False)


def _pooled(rank: int, input: ArrayLike, output_size: OpenSizes, *, is_mean: bool) -> Tensor:
    """One axis after another: the mean of means, like the greatest of the greatest, is that of the whole window."""
    given = one_of_floats(input)
    x = batched(given, rank)
    wanted = list(output_size) if isinstance(output_size, Sequence) else [output_size] * rank
    if len(wanted) != rank:
        raise ValueError(f"expected a size for each of {rank} axes for `output_size`, found {wanted}")
    for axis, count in enumerate(wanted, 2):
        if count is not None and count != x.shape[axis]:
            x = _along(x, axis, count, is_mean)
    return of_batch(x, given)


def _along(x: Tensor, axis: int, count: int, is_mean: bool) -> Tensor:
    """The means or the greatest elements of windows along an axis."""
    size = x.shape[axis]
    if count < 0 or size == 0:
        raise ValueError(f"expected elements, and a size of at least 0, found {size} elements and the size {count}")
    windows = [range(at * size // count, -(-(at + 1) * size // count)) for at in range(count)]
    width = max(map(len, windows), default=1)
    # A shorter window has its last element several times.
    places = [min(window.start + at, window.stop - 1) for window in windows for at in range(width)]
    split = (*x.shape[:axis], count, width, *x.shape[axis + 1 :])
    parts = reshape(take(x, asarray(places, dtype=_oarlock.int64, device=x.device), axis=axis), split)
    if not is_mean:
        return greatest(parts, axis=axis + 1)
    behind = [1] * (x.ndim - axis - 1)
    counts = asarray([len(window) for window in windows], dtype=x.dtype, device=x.device)
    if any(len(window) < width for window in windows):
        inside = asarray([[at < len(window) for at in range(width)] for window in windows], device=x.device)
        parts = where(reshape(inside, (count, width, *behind)), parts, 0)
    return total(parts, axis=axis + 1) / reshape(counts, (count, *behind))
