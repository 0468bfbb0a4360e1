"""Losses of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._arguments import arrays_of, in_own_name
from .._kinds import FLOATS, whole_numbers
from .._oarlock import Tensor, reshape
from .._search import take, take_along_axis, where
from .._statistics import max as greatest
from .._statistics import min as least
from .._statistics import sum as total
from ._losses import check_reduction, reduced
from ._operands import beside, one_of_floats
from ._softmax import log_softmax

if TYPE_CHECKING:
    from .._typing import ArrayLike

__all__: list[str] = ["cross_entropy", "nll_loss"]


@in_own_name
def nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The negative elements, which are logarithms of probabilities, at the classes in `target`: their mean, their sum or each.

    The mean is weighted by the weights of the classes. Where the class is `ignore_index`, the loss is 0.
    """
    x = one_of_floats(input)
    factors = _class_weights(x, weight)
    return _of_classes(x, whole_numbers(arrays_of(x, target)[1]), factors, ignore_index, reduction, 0.0)


@in_own_name
def cross_entropy(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The `nll_loss` of the `log_softmax` of the input along the axis of the classes, which is the second, or the only one.

    The target has classes, or probabilities of each in the shape of the input. All classes share so much of the probability as
    `label_smoothing` says.
    """
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"expected a number from 0 to 1 for `label_smoothing`, found {label_smoothing}")
    x = one_of_floats(input)
    axis = _axis_of_classes(x)
    factors, logs = _class_weights(x, weight), log_softmax(x, axis)
    wanted = arrays_of(x, target)[1]
    if wanted.dtype not in FLOATS or wanted.size == 0 and wanted.shape != x.shape:
        return _of_classes(logs, whole_numbers(wanted), factors, ignore_index, reduction, label_smoothing)
    if wanted.shape != x.shape:
        raise ValueError(
            f"expected probabilities in the shape {x.shape}, found {wanted.shape}\nhint: classes are whole numbers"
        )
    check_reduction(reduction)
    count = x.shape[axis]
    shares = wanted.astype(x.dtype, copy=False) * (1 - label_smoothing) + label_smoothing / count if label_smoothing else wanted
    losses = -total(_per_class(logs, factors, axis) * shares, axis=axis)
    return reduced(losses, reduction)


def _of_classes(
    logs: Tensor, classes: Tensor, factors: Tensor | None, ignore_index: int, reduction: str, label_smoothing: float
) -> Tensor:
    """The loss for classes, some of which are ignored."""
    check_reduction(reduction)
    axis = _axis_of_classes(logs)
    if classes.shape != (*logs.shape[:axis], *logs.shape[axis + 1 :]):
        expected = (*logs.shape[:axis], *logs.shape[axis + 1 :])
        raise ValueError(f"expected classes in the shape {expected} for an input of {logs.shape}, found {classes.shape}")
    is_counted = classes != ignore_index
    places = where(is_counted, classes, 0)
    _check_range(places, logs.shape[axis])
    shares = where(is_counted, 1, 0).astype(logs.dtype)
    if factors is not None:
        shares = shares * reshape(take(factors, reshape(places, (-1,)), axis=0), places.shape)
    index = reshape(places, (*logs.shape[:axis], 1, *logs.shape[axis + 1 :]))
    own = reshape(take_along_axis(logs, index, axis), places.shape)
    # Not a product, because a logarithm may be -inf where it does not count.
    losses = where(is_counted, -own * shares, 0)
    if label_smoothing:
        of_all = where(is_counted, -total(_per_class(logs, factors, axis), axis=axis), 0)
        losses = losses * (1 - label_smoothing) + of_all * (label_smoothing / logs.shape[axis])
    if reduction == "mean":
        return total(losses) / total(shares)
    return reduced(losses, reduction)


def _axis_of_classes(x: Tensor) -> int:
    """The axis of the classes."""
    if x.ndim == 0:
        raise ValueError("expected an axis of classes, found a number")
    return 0 if x.ndim == 1 else 1


def _class_weights(x: Tensor, weight: ArrayLike | None) -> Tensor | None:
    """The weight of each class."""
    count = x.shape[_axis_of_classes(x)]
    factors = beside(x, weight)
    if factors is not None and factors.shape != (count,):
        raise ValueError(f"expected a weight for each of {count} classes, found the shape {factors.shape}")
    return factors


def _per_class(logs: Tensor, factors: Tensor | None, axis: int) -> Tensor:
    """The logarithms times the weights of the classes."""
    return logs if factors is None else logs * reshape(factors, (-1, *[1] * (logs.ndim - axis - 1)))


def _check_range(places: Tensor, count: int) -> None:
    """Refuses classes that there are not."""
    if places.size and (int(least(places)) < 0 or int(greatest(places)) >= count):
        found = int(least(places)) if int(least(places)) < 0 else int(greatest(places))
        raise IndexError(f"expected classes from 0 to {count - 1}, found {found}")
