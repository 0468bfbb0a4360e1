"""Normalization to a mean of 0 and a variance of 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._arguments import in_own_name
from .._information import finfo
from .._manipulation import flip
from .._oarlock import Tensor, op, ones, zeros
from .._statistics import mean, var
from ._operands import beside, one_of_floats

if TYPE_CHECKING:
    from .._typing import ArrayLike

__all__: list[str] = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


@in_own_name
def batch_norm(
    input: ArrayLike,
    running_mean: ArrayLike | None,
    running_var: ArrayLike | None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel, which is the second axis, normalized by a given mean and variance, times `weight`, plus `bias`.

    With `training`, they are those of the input. There is no training here, so `momentum` has no effect, and no running ones are
    updated.
    """
    x = one_of_floats(input)
    _expect_axes(x, 2)
    if training:
        if running_mean is not None or running_var is not None:
            raise ValueError(
                "expected no running mean and variance with `training`, which would update them, found some\n"
                "hint: leave `training` out, or give `None`"
            )
        axes = (0, *range(2, x.ndim))
        running_mean, running_var = mean(x, axis=axes), var(x, axis=axes)
    if running_mean is None or running_var is None:
        raise ValueError(
            "expected a mean and a variance of each channel, found `None`\nhint: `training=True` takes those of the input"
        )
    center, spread = _channels(x, running_mean, "running_mean", 0), _channels(x, running_var, "running_var", 1)
    scale, offset = _channels(x, weight, "weight", 1), _channels(x, bias, "bias", 0)
    return op("BatchNormalization", [x, scale, offset, center, spread], {"epsilon": float(eps)})


@in_own_name
def instance_norm(
    input: ArrayLike,
    running_mean: ArrayLike | None = None,
    running_var: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Each channel of each element of the batch, normalized by its own mean and variance, times `weight`, plus `bias`.

    Without `use_input_stats`, they are the given ones. `momentum` has no effect, as in `batch_norm`.
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    x = one_of_floats(input)
    _expect_axes(x, 3)
    scale, offset = _channels(x, weight, "weight", 1), _channels(x, bias, "bias", 0)
    return op("InstanceNormalization", [x, scale, offset], {"epsilon": float(eps)})


@in_own_name
def layer_norm(
    input: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The last axes, which have `normalized_shape`, normalized by their mean and variance, times `weight`, plus `bias`."""
    x = one_of_floats(input)
    shape = _normalized(x, normalized_shape)
    scale, offset = _of_shape(x, weight, shape, "weight"), _of_shape(x, bias, shape, "bias")
    scale = ones(shape, dtype=x.dtype, device=x.device) if scale is None else scale
    return op("LayerNormalization", [x, scale, offset], {"axis": -len(shape), "epsilon": float(eps)})


@in_own_name
def rms_norm(
    input: ArrayLike, normalized_shape: int | Sequence[int], weight: ArrayLike | None = None, eps: float | None = None
) -> Tensor:
    """The last axes, which have `normalized_shape`, divided by the root of their mean square, times `weight`.

    By default, `eps` is that of the dtype.
    """
    x = one_of_floats(input)
    shape = _normalized(x, normalized_shape)
    scale = _of_shape(x, weight, shape, "weight")
    scale = ones(shape, dtype=x.dtype, device=x.device) if scale is None else scale
    epsilon = float(finfo(x.dtype).eps if eps is None else eps)
    return op("RMSNormalization", [x, scale], {"axis": -len(shape), "epsilon": epsilon})


@in_own_name
def group_norm(
    input: ArrayLike,
    num_groups: int,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Each group of channels, normalized by its mean and variance, times the `weight` and plus the `bias` of each channel."""
    x = one_of_floats(input)
    _expect_axes(x, 2)
    if num_groups < 1 or x.shape[1] % num_groups:
        raise ValueError(f"expected a number that divides {x.shape[1]} channels for `num_groups`, found {num_groups}")
    scale, offset = _channels(x, weight, "weight", 1), _channels(x, bias, "bias", 0)
    # The op needs an axis behind the channels.
    given = x if x.ndim > 2 else x[..., None]
    made = op("GroupNormalization", [given, scale, offset], {"num_groups": num_groups, "epsilon": float(eps)})
    return made if x.ndim > 2 else made[..., 0]


@in_own_name
def local_response_norm(input: ArrayLike, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Each element, divided by `(k + alpha * mean) ** beta` with the mean square of `size` channels around it."""
    x = one_of_floats(input)
    _expect_axes(x, 3)
    if size < 1:
        raise ValueError(f"expected at least one channel for `size`, found {size}")
    attributes = {"size": size, "alpha": float(alpha), "beta": float(beta), "bias": float(k)}
    # Of an even number, PyTorch has one more channel before the element, and the op behind it.
    return op("LRN", [x], attributes) if size % 2 else flip(op("LRN", [flip(x, axis=1)], attributes), axis=1)


def _expect_axes(x: Tensor, least: int) -> None:
    """Refuses an array with too few axes."""
    if x.ndim < least:
        raise ValueError(f"expected {least} axes at least, the second for channels, found the shape {x.shape}")


def _channels(x: Tensor, given: ArrayLike | None, name: str, otherwise: int) -> Tensor:
    """A number for each channel."""
    made = _of_shape(x, given, (x.shape[1],), name)
    if made is None:
        return (ones if otherwise else zeros)((x.shape[1],), dtype=x.dtype, device=x.device)
    return made


def _of_shape(x: Tensor, given: ArrayLike | None, shape: tuple[int, ...], name: str) -> Tensor | None:
    """An optional operand of a certain shape."""
    made = beside(x, given)
    if made is not None and made.shape != shape:
        raise ValueError(f"expected the shape {shape} for `{name}`, found {made.shape}")
    return made


def _normalized(x: Tensor, given: int | Sequence[int]) -> tuple[int, ...]:
    """The shape of the last axes, of which there is one at least."""
    shape = (given,) if isinstance(given, int) else tuple(given)
    if not shape or x.shape[-len(shape) :] != shape:
        raise ValueError(f"expected the sizes of the last axes of {x.shape} for `normalized_shape`, found {shape}")
    return shape
