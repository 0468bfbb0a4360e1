"""Patches of images as columns, and channels as pixels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from .. import _oarlock
from .._arguments import in_own_name
from .._oarlock import Tensor, asarray, op, permute_dims, reshape
from .._search import take
from ._operands import batched, per_axis, sizes_on_host

if TYPE_CHECKING:
    from .._typing import ArrayLike

    Sizes = int | Sequence[int]

__all__: list[str] = ["fold", "pixel_shuffle", "pixel_unshuffle", "unfold"]


@in_own_name
def pixel_shuffle(input: ArrayLike, upscale_factor: int) -> Tensor:
    """Images that are larger by a factor, whose pixels come from as many channels."""
    x, r = asarray(input), upscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-3] % (r * r):
        raise ValueError(f"expected a number of channels that {r} * {r} divides, found the shape {x.shape}")
    lead, (channels, height, width) = x.shape[:-3], x.shape[-3:]
    parts = reshape(x, (prod(lead), channels // (r * r), r, r, height, width))
    return reshape(permute_dims(parts, (0, 1, 4, 2, 5, 3)), (*lead, channels // (r * r), height * r, width * r))


@in_own_name
def pixel_unshuffle(input: ArrayLike, downscale_factor: int) -> Tensor:
    """Images that are smaller by a factor, with as many more channels: the inverse of `pixel_shuffle`."""
    x, r = asarray(input), downscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-2] % r or x.shape[-1] % r:
        raise ValueError(f"expected images whose height and width {r} divides, found the shape {x.shape}")
    lead, (channels, height, width) = x.shape[:-3], x.shape[-3:]
    parts = reshape(x, (prod(lead), channels, height // r, r, width // r, r))
    return reshape(permute_dims(parts, (0, 1, 3, 5, 2, 4)), (*lead, channels * r * r, height // r, width // r))


@in_own_name
def unfold(input: ArrayLike, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """The patches of images as columns: an axis for the elements of a patch in each channel, and one for the patches."""
    given = asarray(input)
    x = batched(given, 2)
    sizes, spacings, edges, steps = _windows(kernel_size, dilation, padding, stride)
    if max(edges):
        x = op("Pad", [x, sizes_on_host([0, 0, *edges] * 2)])
    counts = _counts(x.shape[2:], sizes, spacings, steps)
    for axis in (1, 0):
        places = [at * spacings[axis] + patch * steps[axis] for at in range(sizes[axis]) for patch in range(counts[axis])]
        x = take(x, asarray(places, dtype=_oarlock.int64, device=x.device), axis=axis + 2)
    batch, channels = x.shape[:2]
    parts = reshape(x, (batch, channels, sizes[0], counts[0], sizes[1], counts[1]))
    made = reshape(permute_dims(parts, (0, 1, 2, 4, 3, 5)), (batch, channels * prod(sizes), prod(counts)))
    return made if given.ndim == 4 else made[0]


@in_own_name
def fold(
    input: ArrayLike,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """Images from patches as columns, in which overlapping elements are added up."""
    given = asarray(input)
    x = batched(given, 1)
    wanted = per_axis("output_size", output_size, 2, 1)
    sizes, spacings, edges, steps = _windows(kernel_size, dilation, padding, stride)
    counts = _counts([size + 2 * edge for size, edge in zip(wanted, edges, strict=True)], sizes, spacings, steps)
    if x.shape[1] % prod(sizes) or x.shape[2] != prod(counts):
        raise ValueError(f"expected a multiple of {prod(sizes)} rows and {prod(counts)} columns, found the shape {given.shape}")
    attributes = {"dilations": spacings, "pads": edges * 2, "strides": steps}
    made = op("Col2Im", [x, sizes_on_host(wanted), sizes_on_host(sizes)], attributes)
    return made if given.ndim == 3 else made[0]


def _windows(kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> tuple[list[int], ...]:
    """The numbers for both axes."""
    return (
        per_axis("kernel_size", kernel_size, 2, 1),
        per_axis("dilation", dilation, 2, 1),
        per_axis("padding", padding, 2, 0),
        per_axis("stride", stride, 2, 1),
    )


def _counts(sizes: Sequence[int], kernel: list[int], spacings: list[int], steps: list[int]) -> list[int]:
    """The number of patches along each axis."""
    counts = [
        (size - (extent - 1) * spacing - 1) // step + 1
        for size, extent, spacing, step in zip(sizes, kernel, spacings, steps, strict=True)
    ]
    if min(counts) < 1:
        found = f"the size {tuple(sizes)} for patches of {tuple(kernel)}"
        raise ValueError(f"expected images that have one patch at least, found {found}")
    return counts
