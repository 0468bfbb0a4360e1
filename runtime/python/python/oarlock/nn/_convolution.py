"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._arguments import in_own_name
from .._oarlock import Tensor, op
from ._operands import batched, beside, floats, of_batch, per_axis

if TYPE_CHECKING:
    from .._typing import ArrayLike

    Sizes = int | Sequence[int]

__all__: list[str] = [
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
]


@in_own_name
def conv1d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution along one axis, which follows those of the batch, which may be missing, and of the channels."""
    return _convolved(1, input, weight, bias, stride, padding, dilation, groups)


@in_own_name
def conv2d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution along two axes, which follow those of the batch, which may be missing, and of the channels.

    `padding` is the number of zeros at each end, `"valid"` for none, or `"same"` for as many as keep the size.
    """
    return _convolved(2, input, weight, bias, stride, padding, dilation, groups)


@in_own_name
def conv3d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution along three axes, which follow those of the batch, which may be missing, and of the channels."""
    return _convolved(3, input, weight, bias, stride, padding, dilation, groups)


@in_own_name
def conv_transpose1d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transposed convolution along one axis."""
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@in_own_name
def conv_transpose2d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transposed convolution along two axes."""
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@in_own_name
def conv_transpose3d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """The transposed convolution along three axes."""
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def _convolved(
    rank: int,
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    stride: Sizes,
    padding: Sizes | str,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    """The convolution along the last axes."""
    given, kernels = floats(input, weight)
    x, offset = batched(given, rank), beside(given, bias)
    _check_kernels(kernels, rank)
    _check_groups(groups, kernels.shape[0], "kernels")
    if x.shape[1] != kernels.shape[1] * groups:
        raise ValueError(
            f"expected {x.shape[1]} channels, as in the input of the shape {given.shape}, found {kernels.shape[1]} for each of "
            f"{groups} groups in the weights of the shape {kernels.shape}"
        )
    _check_bias(offset, kernels.shape[0])
    steps, spacings = per_axis("stride", stride, rank, 1), per_axis("dilation", dilation, rank, 1)
    extents = [(size - 1) * spacing + 1 for size, spacing in zip(kernels.shape[2:], spacings, strict=True)]
    before, behind = _paddings(padding, extents, steps)
    for size, extent, first, last in zip(x.shape[2:], extents, before, behind, strict=True):
        if size + first + last < extent:
            raise ValueError(f"expected an axis of at least {extent} elements for the kernel, found {size + first + last}")
    attributes = {"strides": steps, "dilations": spacings, "pads": before + behind, "group": groups}
    return of_batch(op("Conv", [x, kernels, offset], attributes), given)


def _transposed(
    rank: int,
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
) -> Tensor:
    """The transposed convolution along the last axes."""
    given, kernels = floats(input, weight)
    x, offset = batched(given, rank), beside(given, bias)
    _check_kernels(kernels, rank)
    _check_groups(groups, kernels.shape[0], "channels")
    if x.shape[1] != kernels.shape[0]:
        raise ValueError(
            f"expected kernels for {x.shape[1]} channels, as in the input of the shape {given.shape}, "
            f"found the shape {kernels.shape}"
        )
    _check_bias(offset, kernels.shape[1] * groups)
    steps, spacings = per_axis("stride", stride, rank, 1), per_axis("dilation", dilation, rank, 1)
    removed, added = per_axis("padding", padding, rank, 0), per_axis("output_padding", output_padding, rank, 0)
    for more, step, spacing in zip(added, steps, spacings, strict=True):
        if more >= max(step, spacing):
            raise ValueError(
                f"expected less than the stride {step} or the dilation {spacing} for `output_padding`, found {more}"
            )
    attributes = {
        "strides": steps,
        "dilations": spacings,
        "pads": removed * 2,
        "output_padding": added,
        "group": groups,
    }
    return of_batch(op("ConvTranspose", [x, kernels, offset], attributes), given)


def _paddings(padding: Sizes | str, extents: list[int], steps: list[int]) -> tuple[list[int], list[int]]:
    """The numbers of zeros before and behind each axis."""
    if not isinstance(padding, str):
        each = per_axis("padding", padding, len(extents), 0)
        return each, each
    if padding == "valid":
        return [0] * len(extents), [0] * len(extents)
    if padding != "same":
        raise ValueError(f"expected numbers, `same` or `valid` for `padding`, found `{padding}`")
    if max(steps) > 1:
        raise ValueError(f"expected a stride of 1 for the padding `same`, found {max(steps)}")
    # The odd zero is behind, as in PyTorch.
    return [(extent - 1) // 2 for extent in extents], [extent // 2 for extent in extents]


def _check_kernels(kernels: Tensor, rank: int) -> None:
    """Refuses weights of another number of axes."""
    if kernels.ndim != rank + 2:
        raise ValueError(f"expected weights with {rank + 2} axes, found the shape {kernels.shape}")


def _check_groups(groups: int, count: int, what: str) -> None:
    """Refuses a number of groups that does not divide what it groups."""
    if groups < 1 or count % groups:
        raise ValueError(f"expected a number that divides {count} {what} for `groups`, found {groups}")


def _check_bias(offset: Tensor | None, count: int) -> None:
    """Refuses a bias for another number of channels."""
    if offset is not None and offset.shape != (count,):
        raise ValueError(f"expected the shape {(count,)} for `bias`, found {offset.shape}")
