"""Activations: functions of each element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _oarlock
from .._arguments import in_own_name
from .._elementwise import clip
from .._kinds import expect_real
from .._oarlock import Tensor, asarray, op, reshape
from .._search import where
from ._operands import floats, one_of_floats, put

if TYPE_CHECKING:
    from .._typing import ArrayLike, Number

__all__: list[str] = [
    "celu",
    "elu",
    "gelu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]


@in_own_name
def relu(input: ArrayLike, inplace: bool = False) -> Tensor:
    """Each element, or 0 if it is negative."""
    return put(input, op("Relu", [asarray(input)]), inplace)


@in_own_name
def relu6(input: ArrayLike, inplace: bool = False) -> Tensor:
    """Each element, limited to numbers from 0 to 6."""
    return put(input, clip(input, 0, 6), inplace)


@in_own_name
def hardtanh(input: ArrayLike, min_val: Number = -1.0, max_val: Number = 1.0, inplace: bool = False) -> Tensor:
    """Each element, limited to a range."""
    x = one_of_floats(input)
    return put(input, clip(x, min_val, max_val), inplace)


@in_own_name
def leaky_relu(input: ArrayLike, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Each element, multiplied by `negative_slope` if it is negative."""
    return put(input, op("LeakyRelu", [one_of_floats(input)], {"alpha": float(negative_slope)}), inplace)


@in_own_name
def prelu(input: ArrayLike, weight: ArrayLike) -> Tensor:
    """Each element, multiplied by the weight of its channel, which is the second axis, if it is negative."""
    x, slopes = floats(input, weight)
    channels = x.shape[1] if x.ndim > 1 else 1
    if slopes.ndim > 1 or slopes.size not in (1, channels):
        raise ValueError(f"expected one weight, or one for each of {channels} channels, found the shape {slopes.shape}")
    return op("PRelu", [x, reshape(slopes, (-1, *[1] * (x.ndim - 2)) if x.ndim > 1 else [1] * x.ndim)])


@in_own_name
def elu(input: ArrayLike, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element, or `alpha * (exp(x) - 1)` if it is negative."""
    return put(input, op("Elu", [one_of_floats(input)], {"alpha": float(alpha)}), inplace)


@in_own_name
def selu(input: ArrayLike, inplace: bool = False) -> Tensor:
    """The scaled `elu` of each element that normalizes a network by itself."""
    return put(input, op("Selu", [one_of_floats(input)]), inplace)


@in_own_name
def celu(input: ArrayLike, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Each element, or `alpha * (exp(x / alpha) - 1)` if it is negative."""
    return put(input, op("Celu", [one_of_floats(input)], {"alpha": float(alpha)}), inplace)


@in_own_name
def gelu(input: ArrayLike, approximate: str = "none") -> Tensor:
    """Each element, multiplied by the share of the normal distribution below it; approximately with `approximate="tanh"`."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"expected `none` or `tanh` for `approximate`, found `{approximate}`")
    return op("Gelu", [one_of_floats(input)], {"approximate": approximate})


@in_own_name
def silu(input: ArrayLike, inplace: bool = False) -> Tensor:
    """Each element, multiplied by its `sigmoid`."""
    return put(input, op("Swish", [one_of_floats(input)]), inplace)


@in_own_name
def mish(input: ArrayLike, inplace: bool = False) -> Tensor:
    """Each element, multiplied by the `tanh` of its `softplus`."""
    return put(input, op("Mish", [one_of_floats(input)]), inplace)


@in_own_name
def hardsigmoid(input: ArrayLike, inplace: bool = False) -> Tensor:
    """The line `x / 6 + 1 / 2`, limited to numbers from 0 to 1."""
    return put(input, op("HardSigmoid", [one_of_floats(input)], {"alpha": 1 / 6, "beta": 0.5}), inplace)


@in_own_name
def hardswish(input: ArrayLike, inplace: bool = False) -> Tensor:
    """Each element, multiplied by its `hardsigmoid`."""
    return put(input, op("HardSwish", [one_of_floats(input)]), inplace)


@in_own_name
def softplus(input: ArrayLike, beta: float = 1, threshold: float = 20) -> Tensor:
    """The smooth `relu` `log(1 + exp(beta * x)) / beta`; the element itself where `beta * x` is greater than `threshold`."""
    x = one_of_floats(input)
    scaled = x * beta
    return where(scaled > threshold, x, op("Softplus", [scaled]) / beta)


@in_own_name
def softsign(input: ArrayLike) -> Tensor:
    """Each element, divided by 1 plus its absolute value."""
    return op("Softsign", [one_of_floats(input)])


@in_own_name
def sigmoid(input: ArrayLike) -> Tensor:
    """The logistic function `1 / (1 + exp(-x))`."""
    return op("Sigmoid", [one_of_floats(input)])


@in_own_name
def logsigmoid(input: ArrayLike) -> Tensor:
    """The logarithm of `sigmoid`."""
    return -op("Softplus", [-one_of_floats(input)])


@in_own_name
def tanh(input: ArrayLike) -> Tensor:
    """The hyperbolic tangent."""
    return _oarlock.tanh(one_of_floats(input))


@in_own_name
def tanhshrink(input: ArrayLike) -> Tensor:
    """Each element minus its `tanh`."""
    x = one_of_floats(input)
    return x - _oarlock.tanh(x)


@in_own_name
def hardshrink(input: ArrayLike, lambd: float = 0.5) -> Tensor:
    """Each element, or 0 if its absolute value is at most `lambd`."""
    x = one_of_floats(input)
    return where(_oarlock.abs(x) <= lambd, 0, x)


@in_own_name
def softshrink(input: ArrayLike, lambd: float = 0.5) -> Tensor:
    """Each element brought nearer to 0 by `lambd`, at most to 0."""
    if lambd < 0:
        raise ValueError(f"expected a number of at least 0 for `lambd`, found {lambd}")
    x = one_of_floats(input)
    return x - clip(x, -lambd, lambd)


@in_own_name
def threshold(input: ArrayLike, threshold: Number, value: Number, inplace: bool = False) -> Tensor:
    """Each element that is greater than a threshold, or else `value`."""
    x = expect_real(asarray(input))
    return put(input, where(x <= threshold, value, x), inplace)
