"""Functions for neural networks of each element, of rows and of pairs, with formulas in NumPy as the truth."""

import math

import numpy as np
import oarlock as ol
import oarlock.nn.functional as F
import pytest
from conftest import child, same

X = np.concatenate([np.linspace(-30, 30, 35), [0.0, -0.0, 3, 6, -3, 1e-3, -1e-3]]).reshape(6, 7)
SHAPES = [(), (0,), (3,), (2, 0, 3), (3, 4), (2, 3, 4)]


def near(found, expected, tolerance=2e-5):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.asarray(found).astype("float64"), expected, rtol=tolerance, atol=tolerance)


def some(*shape, seed=0, dtype="float64"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def softmax(x, axis):
    shifted = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return shifted / shifted.sum(axis, keepdims=True)


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(x / math.sqrt(2)))


def negative(x, made):
    return np.where(x > 0, x, made(np.minimum(x, 0)))


ACTIVATIONS = {
    "relu": (F.relu, lambda x: np.maximum(x, 0)),
    "relu6": (F.relu6, lambda x: np.clip(x, 0, 6)),
    "hardtanh": (lambda x: F.hardtanh(x, -2, 3.5), lambda x: np.clip(x, -2, 3.5)),
    "leaky_relu": (F.leaky_relu, lambda x: negative(x, lambda y: 0.01 * y)),
    "leaky_relu of a slope": (lambda x: F.leaky_relu(x, 0.3), lambda x: negative(x, lambda y: 0.3 * y)),
    "elu": (lambda x: F.elu(x, 1.5), lambda x: negative(x, lambda y: 1.5 * np.expm1(y))),
    "celu": (lambda x: F.celu(x, 2.0), lambda x: negative(x, lambda y: 2 * np.expm1(y / 2))),
    "selu": (F.selu, lambda x: 1.0507009873554805 * negative(x, lambda y: 1.6732632423543772 * np.expm1(y))),
    "gelu": (F.gelu, gelu),
    "gelu of tanh": (
        lambda x: F.gelu(x, "tanh"),
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    "silu": (F.silu, lambda x: x * sigmoid(x)),
    "mish": (F.mish, lambda x: x * np.tanh(softplus(x))),
    "hardsigmoid": (F.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hardswish": (F.hardswish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "softplus": (F.softplus, softplus),
    "softplus of a beta": (lambda x: F.softplus(x, 2.0, 5.0), lambda x: np.where(2 * x > 5, x, softplus(2 * x) / 2)),
    "softsign": (F.softsign, lambda x: x / (1 + np.abs(x))),
    "sigmoid": (F.sigmoid, sigmoid),
    "logsigmoid": (F.logsigmoid, lambda x: -softplus(-x)),
    "tanh": (F.tanh, np.tanh),
    "tanhshrink": (F.tanhshrink, lambda x: x - np.tanh(x)),
    "hardshrink": (lambda x: F.hardshrink(x, 1.5), lambda x: np.where(np.abs(x) <= 1.5, 0, x)),
    "softshrink": (lambda x: F.softshrink(x, 1.5), lambda x: x - np.clip(x, -1.5, 1.5)),
    "threshold": (lambda x: F.threshold(x, 1.5, -7), lambda x: np.where(x <= 1.5, -7, x)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_its_formula(name):
    found, expected = ACTIVATIONS[name]
    for shape in SHAPES:
        near(found(ol.asarray(5 * some(*shape))), expected(5 * some(*shape)))
    near(found(X), expected(X))
    assert math.isnan(float(found([math.nan])[0]))
    for dtype, tolerance in (("float16", 2e-3), ("bfloat16", 2e-2)):
        x = ol.asarray(some(3, 4)).astype(dtype)
        assert found(x).dtype.name == dtype
        np.testing.assert_allclose(
            found(x).astype("float64").numpy(), expected(x.astype("float64").numpy()), rtol=4 * tolerance, atol=tolerance
        )
    whole = found([[1, -2, 7]])
    assert whole.dtype.name == ("int64" if name in ("relu", "relu6", "threshold") else "float32")
    near(whole, expected(np.array([[1, -2, 7]])))


IN_PLACE = "relu relu6 leaky_relu elu selu celu silu mish hardsigmoid hardswish hardtanh".split()


@pytest.mark.parametrize("name", IN_PLACE)
def test_an_activation_writes_to_its_input_if_asked_to(name):
    x = ol.asarray(some(3, 4))
    expected = getattr(F, name)(x)
    assert getattr(F, name)(x, inplace=True) is x
    same(x, expected.numpy())
    with pytest.raises(TypeError, match=f"^`{name}` expected an array to write to, found list\nhint: leave `inplace` out$"):
        getattr(F, name)([1.0], inplace=True)


def test_prelu_has_a_slope_for_each_channel():
    for shape in [(), (3,), (2, 3), (2, 3, 4), (0, 3, 2), (2, 3, 4, 5)]:
        x = some(*shape)
        near(F.prelu(x, [0.25]), np.where(x > 0, x, 0.25 * x))
        if len(shape) > 1:
            slopes = np.array([0.1, 0.2, -0.3]).reshape(-1, *[1] * (len(shape) - 2))
            near(F.prelu(x, slopes.ravel()), np.where(x > 0, x, slopes * x))
    with pytest.raises(ValueError, match="^`prelu` expected one weight, or one for each of 3 channels, found the shape"):
        F.prelu(some(2, 3), [1.0, 2.0])


@pytest.mark.parametrize("shape", SHAPES)
def test_softmax_shares_along_an_axis(shape):
    x = 10 * some(*shape)
    for dim in range(-max(1, len(shape)), max(1, len(shape))):
        expected = softmax(np.atleast_1d(x), dim).reshape(shape)
        near(F.softmax(x, dim), expected)
        near(F.softmax(x, axis=dim), expected)
        near(ol.asarray(x).softmax(dim), expected)
        near(F.log_softmax(x, dim=dim), np.log(expected))
        near(F.softmin(-x, dim), expected)
    assert F.softmax(x, 0, dtype=ol.float16).dtype == ol.float16
    with pytest.raises(IndexError, match="^`softmax` "):
        F.softmax(x, 5)


def test_softmax_overflows_nowhere():
    near(F.softmax([1e30, -1e30, 1e30], 0), [0.5, 0, 0.5])
    near(F.log_softmax([1000.0, 0.0], 0), [0, -1000])


def test_glu_multiplies_one_half_by_the_other():
    x = some(4, 6)
    near(F.glu(x), x[:, :3] * sigmoid(x[:, 3:]))
    near(F.glu(x, 0), x[:2] * sigmoid(x[2:]))
    with pytest.raises(ValueError, match="^`glu` expected an axis of an even size, found 3"):
        F.glu(some(3))


def test_random_functions_follow_the_seed_and_their_distribution():
    ol.random.seed(3)
    first = F.dropout(np.ones(20000), 0.25)
    ol.random.seed(3)
    same(F.dropout(np.ones(20000), 0.25), first.numpy())
    assert set(np.unique(first.numpy())) == {0, 1 / 0.75} and 4600 < (first.numpy() == 0).sum() < 5400
    x = ol.asarray(some(2, 3, 4, 5))
    channels = F.dropout2d(x, 0.5).numpy().reshape(6, 20)
    assert all((row == 0).all() or (row != 0).all() for row in channels)
    for same_as in (F.dropout(x, training=False), F.dropout(x, 0)):
        same(same_as, x.numpy())
    assert not F.dropout(x, 1.0).numpy().any() and F.dropout(x[:0]).shape == (0, 3, 4, 5)
    logits = np.log([[0.1, 0.2, 0.7]] * 20000)
    hard = F.gumbel_softmax(logits, hard=True).numpy()
    assert ((hard == 0) | (hard == 1)).all() and (hard.sum(1) == 1).all()
    np.testing.assert_allclose(hard.mean(0), [0.1, 0.2, 0.7], atol=0.02)
    near(ol.sum(F.gumbel_softmax(logits[:10].T, 0.5, dim=0), axis=0), np.ones(10))
    assert F.gumbel_softmax(logits[:10].T, 0.5, True, dim=0).numpy().sum(0).tolist() == [1] * 10
    for p in (-0.1, 1.5, math.nan):
        with pytest.raises(ValueError, match="^`dropout` expected a probability from 0 to 1 for `p`, found"):
            F.dropout(x, p)


@pytest.mark.parametrize("lead", [(), (3,), (0,), (2, 3)])
def test_linear_and_bilinear_multiply_the_last_axis(lead):
    x, w, b = some(*lead, 4), some(5, 4, seed=1), some(5, seed=2)
    near(F.linear(x, w), x @ w.T)
    near(F.linear(x, w, b), x @ w.T + b)
    near(F.linear(x, w[0]), x @ w[0])
    y, m = some(*lead, 3, seed=3), some(5, 4, 3, seed=4)
    near(F.bilinear(x, y, m, b), np.einsum("...i,oij,...j->...o", x, m, y) + b)
    with pytest.raises(
        ValueError, match="^`linear` expected rows of the size of the last axis of .* for `weight`, found the shape"
    ):
        F.linear(x, w.T)
    with pytest.raises(ValueError, match="^`linear` expected the shape .* for `bias`, found"):
        F.linear(x, w, b[:3])
    with pytest.raises(ValueError, match="^`bilinear` expected matrices that fit"):
        F.bilinear(x, y, w)


def test_embedding_and_one_hot_look_up_rows():
    table = some(5, 3)
    same(F.embedding([[0, 4], [1, 1]], ol.asarray(table)), table[[[0, 4], [1, 1]]])
    same(F.embedding(np.zeros((0, 2), int), ol.asarray(table), 0), np.zeros((0, 2, 3)))
    same(F.one_hot([[0, 2], [1, 0]]), np.eye(3, dtype=int)[[[0, 2], [1, 0]]])
    same(F.one_hot(1, 4), np.eye(4, dtype=int)[1])
    same(F.one_hot([], 3), np.zeros((0, 3), int))
    for wrong, count, found in (([3], 3, 3), ([-1], -1, -1), ([0, -2], 4, -2)):
        with pytest.raises(ValueError, match=f"^`one_hot` expected classes from 0 to .*, found {found}$"):
            F.one_hot(wrong, count)
    with pytest.raises(TypeError, match="^`embedding` expected whole numbers"):
        F.embedding([0.5], table)
    with pytest.raises(IndexError, match="^`embedding`"):
        F.embedding([5], table)


def test_distances_are_their_formulas():
    a, b = some(4, 3, 5), some(4, 3, 5, seed=1)
    for p in (1, 2, 3.5, math.inf, 0):
        near(F.pairwise_distance(a, b, p), np.apply_along_axis(np.linalg.norm, -1, a - b + 1e-6, p))
        near(F.cdist(a, b[:, :2], p), np.apply_along_axis(np.linalg.norm, -1, a[:, :, None] - b[:, None, :2], p))
    near(F.pairwise_distance(a, b, keepdim=True), np.linalg.norm(a - b + 1e-6, axis=-1, keepdims=True))
    assert F.cdist(a[:, :0], b).shape == (4, 0, 3)
    for dim in range(-3, 3):
        near(F.normalize(a, dim=dim), a / np.linalg.norm(a, axis=dim, keepdims=True))
        lengths = np.linalg.norm(a, axis=dim) * np.linalg.norm(b, axis=dim)
        near(F.cosine_similarity(a, b, dim), (a * b).sum(dim) / lengths)
    near(F.cosine_similarity(a, b[0, 0], -1), (a * b[0, 0]).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b[0, 0]))
    same(F.normalize(np.zeros((2, 3))), np.zeros((2, 3)))
    same(F.cosine_similarity(np.zeros(3), np.ones(3), 0), 0.0)
    with pytest.raises(ValueError, match="^`cdist` expected matrices with as many columns, found"):
        F.cdist(a, b[..., :2])


def test_arrays_have_the_methods_of_pytorch():
    x = ol.asarray([1.0, -1.0])
    same(x.relu(), np.array([1, 0], np.float32))
    near(x.sigmoid(), sigmoid(np.array([1.0, -1.0])))
    near(x.softmax(0), softmax(np.array([1.0, -1.0]), 0))


def test_the_functions_are_loaded_on_first_use_however_they_are_reached():
    assert (
        child("import oarlock as ol, sys; 'oarlock.nn' in sys.modules or print(ol.nn.functional.relu([-1.0]).item())").strip()
        == "0.0"
    )
    assert child("import oarlock.nn.functional as F; print(F.relu([-1.0]).item())").strip() == "0.0"
    assert child("from oarlock.nn import functional as F; print(F.relu([-1.0]).item())").strip() == "0.0"
    with pytest.raises(
        AttributeError, match="^module `oarlock.nn` has no `Linear`\nhint: there are functions without parameters in"
    ):
        ol.nn.Linear  # noqa: B018
    for name in ("relu", "sigmoid", "softmax"):
        with pytest.raises(AttributeError, match=f"^module `oarlock` has no `{name}`\nhint: use `oarlock.nn.functional.{name}"):
            getattr(ol, name)


def test_every_function_says_what_it_returns_and_refuses_complex_numbers():
    for name in dir(F):
        assert getattr(F, name).__doc__.partition("\n")[0].endswith((".", ",")) or "." in getattr(F, name).__doc__
    for name in ("elu", "sigmoid", "mse_loss", "normalize"):
        with pytest.raises(TypeError, match=f"^`{name}` expected real numbers, found complex"):
            getattr(F, name)(*[[1j]] * (2 if "loss" in name else 1))
