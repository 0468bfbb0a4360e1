"""Images of another size or shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import TYPE_CHECKING

from .. import _oarlock
from .._arguments import in_own_name
from .._oarlock import Tensor, asarray, op
from ._adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from ._operands import floats, one_of_floats, per_axis, sizes_on_host

if TYPE_CHECKING:
    from .._typing import ArrayLike

__all__: list[str] = ["affine_grid", "grid_sample", "interpolate"]

RANKS = {
    "area": (1, 2, 3),
    "bicubic": (2,),
    "bilinear": (2,),
    "linear": (1,),
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "trilinear": (3,),
}
"""The numbers of axes behind the channels for each mode."""

SMOOTH = ("bicubic", "bilinear", "linear", "trilinear")


@in_own_name
def interpolate(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """The array at another size, or multiplied by a factor, of the axes behind the channels.

    Elements are the `nearest` ones, the means of an `area`, or on a line (`linear`, `bilinear`, `trilinear`) or a cubic curve
    (`bicubic`) through the elements around. With `align_corners`, the ends are in the same places; with
    `recompute_scale_factor`, places follow from the sizes and not from the factor. With `antialias`, the modes `bilinear` and
    `bicubic` weigh all elements that a smaller image shows in one, as Pillow does.
    """
    x = one_of_floats(input)
    rank = x.ndim - 2
    if mode not in RANKS:
        raise ValueError(f"expected {', '.join(f'`{name}`' for name in RANKS)} for `mode`, found `{mode}`")
    if rank not in RANKS[mode]:
        axes = " or ".join(str(each + 2) for each in RANKS[mode])
        raise ValueError(f"expected {axes} axes for the mode `{mode}`, found the shape {x.shape}")
    if (size is None) == (scale_factor is None):
        raise ValueError("expected one of `size` and `scale_factor`, found " + ("none" if size is None else "both"))
    if align_corners is not None and mode not in SMOOTH:
        raise ValueError(f"expected no `align_corners` for the mode `{mode}`, found {align_corners}")
    if antialias and (mode not in ("bilinear", "bicubic") or align_corners):
        found = f"`{mode}`{' with `align_corners`' if align_corners else ''}"
        raise ValueError(f"expected the mode `bilinear` or `bicubic` without `align_corners` for `antialias`, found {found}")
    factors = None if scale_factor is None else _factors(scale_factor, rank)
    if size is not None:
        if recompute_scale_factor:
            raise ValueError("expected a `scale_factor` for `recompute_scale_factor`, found `size`")
        sizes = per_axis("size", size, rank, 1)
    else:
        sizes = [floor(each * factor) for each, factor in zip(x.shape[2:], factors or [], strict=True)]
    if min(sizes) < 1 or min(x.shape[2:]) < 1:
        raise ValueError(f"expected elements in the input and the result, found the sizes {x.shape[2:]} and {tuple(sizes)}")
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[rank - 1](x, sizes)
    attributes = _attributes(mode, bool(align_corners), antialias)
    if factors is not None and not recompute_scale_factor:
        scales = asarray([1.0, 1.0, *factors], dtype=_oarlock.float32, device="cpu")
        return op("Resize", [x, None, scales], attributes)
    return op("Resize", [x, None, None, sizes_on_host([*x.shape[:2], *sizes])], attributes)


@in_own_name
def grid_sample(
    input: ArrayLike,
    grid: ArrayLike,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The elements at the places in a grid, from -1 at one end to 1 at the other; the last axis has x first.

    Beside the array are zeros, its edge (`border`), or its elements in reverse (`reflection`). The ends are in the middle of the
    outer elements with `align_corners`, and else at their edges.
    """
    x, places = floats(input, grid)
    modes = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}
    if mode not in modes:
        raise ValueError(f"expected `bilinear`, `nearest` or `bicubic` for `mode`, found `{mode}`")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"expected `zeros`, `border` or `reflection` for `padding_mode`, found `{padding_mode}`")
    if x.ndim not in (4, 5) or places.ndim != x.ndim or places.shape[-1] != x.ndim - 2 or places.shape[0] != x.shape[0]:
        raise ValueError(
            "expected images of 4 or 5 axes and a grid of as many, with a place for each image axis, "
            f"found {x.shape} and {places.shape}"
        )
    if mode == "bicubic" and x.ndim == 5:
        raise ValueError(f"expected images with 4 axes for the mode `bicubic`, found the shape {x.shape}")
    attributes = {"mode": modes[mode], "padding_mode": padding_mode, "align_corners": int(bool(align_corners))}
    return op("GridSample", [x, places], attributes)


@in_own_name
def affine_grid(theta: ArrayLike, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The places in images of a size that affine maps bring to those of a grid, for `grid_sample`."""
    maps = one_of_floats(theta)
    rank = len(size) - 2
    if rank not in (2, 3) or maps.shape != (size[0], rank, rank + 1):
        raise ValueError(
            "expected a matrix of two rows and three columns, or three and four, for each image, "
            f"found {maps.shape} for {tuple(size)}"
        )
    return op("AffineGrid", [maps, sizes_on_host(size)], {"align_corners": int(bool(align_corners))})


def _factors(given: float | Sequence[float], rank: int) -> list[float]:
    """A factor for each axis."""
    factors = [float(each) for each in given] if isinstance(given, Sequence) else [float(given)] * rank
    if len(factors) != rank or not all(0 < each < float("inf") for each in factors):
        raise ValueError(f"expected a factor greater than 0 for each of {rank} axes for `scale_factor`, found {given}")
    return factors


def _attributes(mode: str, align_corners: bool, antialias: bool) -> dict[str, str | float]:
    """The attributes of the op for a mode."""
    if mode == "nearest":
        return {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    if mode == "nearest-exact":
        return {"mode": "nearest", "coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"}
    places: dict[str, str | float] = {"coordinate_transformation_mode": "align_corners" if align_corners else "half_pixel"}
    if antialias:
        # With the filter of Pillow, and its weights at the edges.
        places |= {"antialias": 1, "exclude_outside": 1}
    if mode == "bicubic":
        return {"mode": "cubic", "cubic_coeff_a": -0.5 if antialias else -0.75, **places}
    return {"mode": "linear", **places}
