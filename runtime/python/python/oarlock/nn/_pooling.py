"""The greatest or the mean element of windows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from .._arguments import in_own_name
from .._oarlock import Tensor, op
from ._operands import batched, of_batch, one_of_floats, per_axis, sizes_on_host

if TYPE_CHECKING:
    from .._typing import ArrayLike

    Sizes = int | Sequence[int]

__all__: list[str] = [
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]


@in_own_name
def max_pool1d(
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The greatest element of each window along the last axis. By default, windows are side by side."""
    return _greatest(1, input, kernel_size, stride, padding, dilation, ceil_mode)


@in_own_name
def max_pool2d(
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The greatest element of each window along the last two axes. By default, windows are side by side.

    With `ceil_mode`, a window that the end cuts off counts too.
    """
    return _greatest(2, input, kernel_size, stride, padding, dilation, ceil_mode)


@in_own_name
def max_pool3d(
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The greatest element of each window along the last three axes. By default, windows are side by side."""
    return _greatest(3, input, kernel_size, stride, padding, dilation, ceil_mode)


@in_own_name
def avg_pool1d(
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window along the last axis. By default, windows are side by side."""
    return _mean(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@in_own_name
def avg_pool2d(
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window along the last two axes. By default, windows are side by side.

    The zeros of the padding count unless `count_include_pad` is false; with `divisor_override`, sums are divided by this number.
    """
    return _mean(2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


@in_own_name
def avg_pool3d(
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window along the last three axes. By default, windows are side by side."""
    return _mean(3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def _greatest(
    rank: int,
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> Tensor:
    """The greatest element of each window along the last axes."""
    given = one_of_floats(input)
    x = batched(given, rank)
    spacings = per_axis("dilation", dilation, rank, 1)
    attributes = _windows(x, kernel_size, stride, padding, spacings, ceil_mode)
    return of_batch(op("MaxPool", [x], attributes), given)


def _mean(
    rank: int,
    input: ArrayLike,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensor:
    """The mean of each window along the last axes."""
    given = one_of_floats(input)
    x = batched(given, rank)
    attributes = _windows(x, kernel_size, stride, padding, [1] * rank, ceil_mode)
    if divisor_override is None:
        return of_batch(op("AveragePool", [x], attributes | {"count_include_pad": int(count_include_pad)}), given)
    if divisor_override == 0:
        raise ValueError("expected a number other than 0 for `divisor_override`, found 0")
    # With all zeros in place, the mean of a window is its sum divided by its size.
    sizes, steps, edges = attributes["kernel_shape"], attributes["strides"], attributes["pads"]
    counts = op("MaxPool", [x[:1, :1]], attributes).shape[2:]
    needed = [(count - 1) * step + size for count, step, size in zip(counts, steps, sizes, strict=True)]
    behind = [max(need - size - edge, edge) for need, size, edge in zip(needed, x.shape[2:], edges, strict=False)]
    wide = op("Pad", [x, sizes_on_host([0, 0, *edges[:rank], 0, 0, *behind])])
    made = op("AveragePool", [wide], {"kernel_shape": sizes, "strides": steps})
    return of_batch(made * (prod(sizes) / divisor_override), given)


def _windows(
    x: Tensor, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, spacings: list[int], ceil_mode: bool
) -> dict[str, Any]:
    """The attributes of an op that say where windows are."""
    rank = x.ndim - 2
    sizes = per_axis("kernel_size", kernel_size, rank, 1)
    steps = sizes if stride is None else per_axis("stride", stride, rank, 1)
    edges = per_axis("padding", padding, rank, 0)
    for size, extent, edge, spacing in zip(x.shape[2:], sizes, edges, spacings, strict=True):
        if edge > extent // 2:
            raise ValueError(f"expected at most half of the window of {extent} for `padding`, found {edge}")
        if size + 2 * edge < (extent - 1) * spacing + 1:
            raise ValueError(f"expected an axis of at least {(extent - 1) * spacing + 1} elements, found {size + 2 * edge}")
    attributes: dict[str, Any] = {
        "kernel_shape": sizes,
        "strides": steps,
        "pads": edges * 2,
        "ceil_mode": int(ceil_mode),
    }
    return attributes | ({"dilations": spacings} if max(spacings) > 1 else {})
