"""Losses: how far results are from what they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _oarlock
from .._arguments import in_own_name
from .._oarlock import Tensor, op
from .._search import where
from .._statistics import mean
from .._statistics import sum as total
from ._operands import beside, floats

if TYPE_CHECKING:
    from .._typing import ArrayLike

__all__: list[str] = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "smooth_l1_loss",
]


@in_own_name
def l1_loss(input: ArrayLike, target: ArrayLike, *, reduction: str = "mean") -> Tensor:
    """The absolute differences: their `mean`, their `sum`, or with `none` each of them."""
    x, y = _pair(input, target)
    return reduced(_oarlock.abs(x - y), reduction)


@in_own_name
def mse_loss(input: ArrayLike, target: ArrayLike, *, reduction: str = "mean") -> Tensor:
    """The squares of the differences: their `mean`, their `sum`, or with `none` each of them."""
    x, y = _pair(input, target)
    return reduced((x - y) * (x - y), reduction)


@in_own_name
def smooth_l1_loss(input: ArrayLike, target: ArrayLike, *, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """The absolute differences minus `beta / 2`, or where they are less than `beta`, half their squares divided by it."""
    if beta < 0:
        raise ValueError(f"expected a number of at least 0 for `beta`, found {beta}")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return huber_loss(input, target, reduction, beta) / beta


@in_own_name
def huber_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Half the squares of the differences, or where they exceed `delta`, `delta` times their distance from `delta / 2`."""
    if delta <= 0:
        raise ValueError(f"expected a number greater than 0 for `delta`, found {delta}")
    x, y = _pair(input, target)
    distance = _oarlock.abs(x - y)
    return reduced(where(distance < delta, distance * distance * 0.5, (distance - 0.5 * delta) * delta), reduction)


@in_own_name
def binary_cross_entropy(
    input: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, *, reduction: str = "mean"
) -> Tensor:
    """The negative logarithms of the probabilities of what is true; no logarithm is less than -100."""
    x, y = _pair(input, target)
    # A logarithm of -inf times 0 would be no number.
    yes, no = (_oarlock.maximum(each, -100) for each in (_oarlock.log(x), _oarlock.log1p(-x)))
    return reduced(_weighted(-(y * yes + (1 - y) * no), weight), reduction)


@in_own_name
def binary_cross_entropy_with_logits(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    reduction: str = "mean",
    pos_weight: ArrayLike | None = None,
) -> Tensor:
    """The `binary_cross_entropy` of the `sigmoid` of the input, without its rounding. `pos_weight` multiplies what is true."""
    x, y = _pair(input, target)
    positive = beside(x, pos_weight)
    factor = 1 if positive is None else 1 + (positive - 1) * y
    return reduced(_weighted((1 - y) * x + factor * op("Softplus", [-x]), weight), reduction)


@in_own_name
def kl_div(input: ArrayLike, target: ArrayLike, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The divergence `target * (log(target) - input)` of logarithms of probabilities from probabilities, or from logarithms with
    `log_target`. `batchmean` divides the sum by the size of the first axis."""
    x, y = _pair(input, target)
    if log_target:
        made = _oarlock.exp(y) * (y - x)
    else:
        made = where(y == 0, 0, y * _oarlock.log(where(y == 0, 1, y))) - y * x
    if reduction == "batchmean":
        return total(made) / (made.shape[0] if made.ndim else 1)
    return reduced(made, reduction)


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """The losses, or their mean or sum."""
    check_reduction(reduction)
    return losses if reduction == "none" else total(losses) if reduction == "sum" else mean(losses)


def check_reduction(reduction: str) -> None:
    """Refuses an unknown reduction."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"expected `none`, `mean` or `sum` for `reduction`, found `{reduction}`")


def _weighted(losses: Tensor, weight: ArrayLike | None) -> Tensor:
    """The losses times a weight."""
    factor = beside(losses, weight)
    return losses if factor is None else losses * factor


def _pair(input: ArrayLike, target: ArrayLike) -> tuple[Tensor, Tensor]:
    """The input and the target, which have the same shape: broadcasting would hide that one of them is wrong."""
    x, y = floats(input, target)
    if x.shape != y.shape:
        raise ValueError(
            f"expected a target of the shape {x.shape}, found {y.shape}\n"
            "hint: use `reshape`, or `oarlock.broadcast_to` if this is meant"
        )
    return x, y
