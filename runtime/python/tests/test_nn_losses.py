"""Losses, with formulas in NumPy as the truth."""

import math

import numpy as np
import oarlock.nn.functional as F
import pytest
from conftest import same
from test_nn import SHAPES, near, sigmoid, softmax, softplus, some


def huber(d, delta):
    return np.where(d < delta, d * d / 2, delta * (d - delta / 2))


LOSSES = {
    "l1_loss": (F.l1_loss, lambda x, y: np.abs(x - y)),
    "mse_loss": (F.mse_loss, lambda x, y: (x - y) ** 2),
    "smooth_l1_loss": (F.smooth_l1_loss, lambda x, y: huber(np.abs(x - y), 1)),
    "smooth_l1_loss of a beta": (
        lambda *a, **k: F.smooth_l1_loss(*a, beta=0.3, **k),
        lambda x, y: huber(np.abs(x - y), 0.3) / 0.3,
    ),
    "smooth_l1_loss of 0": (lambda *a, **k: F.smooth_l1_loss(*a, beta=0, **k), lambda x, y: np.abs(x - y)),
    "huber_loss": (lambda *a, **k: F.huber_loss(*a, delta=0.3, **k), lambda x, y: huber(np.abs(x - y), 0.3)),
    "binary_cross_entropy": (F.binary_cross_entropy, lambda x, y: -(y * np.log(x) + (1 - y) * np.log(1 - x))),
    "binary_cross_entropy_with_logits": (F.binary_cross_entropy_with_logits, lambda x, y: (1 - y) * x + softplus(-x)),
    "kl_div": (F.kl_div, lambda x, y: y * (np.log(y) - x)),
    "kl_div of logarithms": (lambda *a, **k: F.kl_div(*a, log_target=True, **k), lambda x, y: np.exp(y) * (y - x)),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_loss_is_its_formula(name, shape):
    found, formula = LOSSES[name]
    x, y = sigmoid(some(*shape)), sigmoid(some(*shape, seed=1))
    expected = formula(x, y)
    near(found(x, y, reduction="none"), expected)
    near(found(x, y, reduction="sum"), expected.sum())
    near(found(x, y), expected.mean() if expected.size else np.nan)
    with pytest.raises(ValueError, match="expected `none`, `mean` or `sum` for `reduction`, found `all`$"):
        found(x, y, reduction="all")
    with pytest.raises(ValueError, match=r"expected a target of the shape .*, found \(7, 1\)\nhint: "):
        found(x, np.ones((7, 1)))


def test_losses_of_certain_results_are_finite():
    near(F.binary_cross_entropy([0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0], reduction="none"), [0, 0, 100, 100])
    near(F.binary_cross_entropy_with_logits([1e4, -1e4, -1e4], [1.0, 0.0, 1.0], reduction="none"), [0, 0, 1e4])
    near(F.kl_div([-1.0, -2.0], [0.0, 1.0], reduction="none"), [0, 2])


def test_losses_have_weights():
    x, y, w = sigmoid(some(2, 3)), sigmoid(some(2, 3, seed=1)), np.array([1.0, 2, 3])
    near(F.binary_cross_entropy(x, y, w), (w * -(y * np.log(x) + (1 - y) * np.log(1 - x))).mean())
    expected = w * ((1 - y) * x + (1 + (w - 1) * y) * softplus(-x))
    near(F.binary_cross_entropy_with_logits(x, y, w, pos_weight=w), expected.mean())
    near(F.kl_div(x, y, reduction="batchmean"), (y * (np.log(y) - x)).sum() / 2)


def cross_entropy(x, classes, weight, ignore, reduction, smoothing):
    """The loss, one element after another."""
    x, classes = (x[None], classes[None]) if x.ndim == 1 else (x, classes)
    logs, count = np.log(softmax(x, 1)), x.shape[1]
    losses, shares = np.zeros(classes.shape), np.zeros(classes.shape)
    for at in np.ndindex(*classes.shape):
        if (own := classes[at]) == ignore:
            continue
        row = logs[(at[0], slice(None), *at[1:])]
        shares[at] = weight[own]
        losses[at] = -(1 - smoothing) * weight[own] * row[own] - smoothing / count * (weight * row).sum()
    return {"none": losses, "sum": losses.sum(), "mean": losses.sum() / shares.sum()}[reduction]


@pytest.mark.parametrize("smoothing", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("shape", [(6, 4), (2, 4, 3), (2, 4, 3, 5), (0, 4), (4,)])
def test_cross_entropy_is_that_of_each_element(shape, reduction, smoothing):
    x = 3 * some(*shape)
    classes = np.random.default_rng(2).integers(0, 4, (*shape[:1], *shape[2:]) if len(shape) > 1 else ())
    for weight in (np.ones(4), np.array([0.5, 1, 2, 0])):
        for ignore in (-100, 1):
            named = {"ignore_index": ignore, "reduction": reduction}
            expected = cross_entropy(x, classes, weight, ignore, reduction, smoothing)
            expected = expected.reshape(classes.shape) if reduction == "none" else expected
            near(F.cross_entropy(x, classes, weight, label_smoothing=smoothing, **named), expected, 1e-4)
            if not smoothing:
                near(F.nll_loss(F.log_softmax(x, 1 if x.ndim > 1 else 0), classes, weight, **named), expected, 1e-4)


def test_cross_entropy_takes_probabilities():
    x, y = some(5, 4), softmax(some(5, 4, seed=1), 1)
    logs, weight = np.log(softmax(x, 1)), np.array([1.0, 2, 3, 4])
    near(F.cross_entropy(x, y), -(y * logs).sum(1).mean())
    near(F.cross_entropy(x, y, weight, reduction="none"), -(weight * y * logs).sum(1))
    near(F.cross_entropy(x, y, label_smoothing=0.2), -((y * 0.8 + 0.05) * logs).sum(1).mean())
    near(F.cross_entropy(x[0], y[0]), -(y[0] * logs[0]).sum())


def test_losses_of_classes_refuse_what_is_no_class():
    x = some(3, 4)
    for wrong in (4, -1):
        for loss in (F.cross_entropy, F.nll_loss):
            with pytest.raises(IndexError, match=f"^`{loss.__name__}` expected classes from 0 to 3, found {wrong}$"):
                loss(x, [0, wrong, 1])
    with pytest.raises(
        ValueError, match=r"^`cross_entropy` expected classes in the shape \(3,\) for an input of \(3, 4\), found \(2,\)$"
    ):
        F.cross_entropy(x, [0, 1])
    with pytest.raises(
        ValueError, match="^`cross_entropy` expected probabilities in the shape .*\nhint: classes are whole numbers$"
    ):
        F.cross_entropy(x, [0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="^`nll_loss` expected a weight for each of 4 classes"):
        F.nll_loss(x, [0, 1, 2], [1.0])
    same(F.cross_entropy(x, [-100, -100, -100], reduction="sum"), 0.0)
    assert math.isnan(F.cross_entropy(x, [-100, -100, -100]))
    # What is impossible and does not count is no reason for NaN.
    near(F.cross_entropy([[0.0, -math.inf]], [0]), 0)
    near(F.cross_entropy([[-math.inf, 0.0], [0.0, -math.inf]], [-100, 0]), 0)
