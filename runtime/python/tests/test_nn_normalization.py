"""Normalization and attention, with formulas in NumPy as the truth."""

import math

import numpy as np
import oarlock as ol
import oarlock.nn.functional as F
import pytest
from test_nn import near, softmax, some


def shaped(values, rank):
    return values.reshape(-1, *[1] * (rank - 2))


@pytest.mark.parametrize("shape", [(4, 6), (0, 6), (2, 6, 3), (2, 6, 3, 4), (2, 6, 3, 2, 2)])
def test_normalization_subtracts_the_mean_and_divides_by_the_deviation(shape):
    x, rank = 3 * some(*shape) + 1, len(shape)
    w, b, m, v = some(6), some(6, seed=1), some(6, seed=2), np.abs(some(6, seed=3)) + 0.1
    expected = (x - shaped(m, rank)) / np.sqrt(shaped(v, rank) + 1e-3)
    near(F.batch_norm(x, m, v, eps=1e-3), expected)
    near(F.batch_norm(x, m, v, w, b, eps=1e-3), expected * shaped(w, rank) + shaped(b, rank))
    if shape[0]:
        axes = (0, *range(2, rank))
        own = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
        near(F.batch_norm(x, None, None, w, b, True), own * shaped(w, rank) + shaped(b, rank))
    for groups in (1, 2, 3, 6):
        parts = x.reshape(shape[0], groups, math.prod(shape[1:]) // groups)
        own = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
        near(F.group_norm(x, groups, w, b), own.reshape(shape) * shaped(w, rank) + shaped(b, rank), 1e-4)
        near(F.group_norm(x, groups), own.reshape(shape), 1e-4)
    if rank > 2:
        axes = tuple(range(2, rank))
        own = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
        near(F.instance_norm(x, weight=w, bias=b), own * shaped(w, rank) + shaped(b, rank), 1e-4)
        near(F.instance_norm(x, m, v, w, b, False), F.batch_norm(x, m, v, w, b).numpy())
    for count in range(1, rank):
        inner, axes = shape[-count:], tuple(range(-count, 0))
        scale, offset = some(*inner, seed=4), some(*inner, seed=5)
        own = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
        near(F.layer_norm(x, inner), own)
        near(F.layer_norm(x, list(inner), scale, offset), own * scale + offset)
        root = np.sqrt((x * x).mean(axes, keepdims=True) + np.finfo("float64").eps)
        near(F.rms_norm(x, inner), x / root)
        near(F.rms_norm(x, inner, scale, 0.1), x / np.sqrt((x * x).mean(axes, keepdims=True) + 0.1) * scale)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_local_response_norm_divides_by_the_channels_around(size):
    for shape in [(2, 5, 3), (2, 5, 3, 4), (0, 5, 2), (1, 5, 2, 2, 2)]:
        x = some(*shape)
        wide = np.pad(x * x, [(0, 0), (size // 2, (size - 1) // 2), *[(0, 0)] * (x.ndim - 2)])
        mean = sum(wide[:, at : at + 5] for at in range(size)) / size
        near(F.local_response_norm(x, size, 0.1, 0.5, 2.0), x / (2 + 0.1 * mean) ** 0.5)


def test_normalization_refuses_what_does_not_fit():
    x = some(2, 6, 3)
    for message, call in {
        r"`layer_norm` expected the sizes of the last axes of \(2, 6, 3\) for `normalized_shape`, found \(6,\)": lambda: (
            F.layer_norm(x, 6)
        ),
        r"`layer_norm` expected the shape \(3,\) for `weight`, found \(6,\)": lambda: F.layer_norm(x, 3, np.ones(6)),
        r"`rms_norm` expected the sizes of the last axes .*, found \(\)": lambda: F.rms_norm(x, []),
        "`group_norm` expected a number that divides 6 channels for `num_groups`, found 4": lambda: F.group_norm(x, 4),
        r"`batch_norm` expected the shape \(6,\) for `running_mean`, found \(5,\)": lambda: F.batch_norm(
            x, np.ones(5), np.ones(6)
        ),
        "`batch_norm` expected a mean and a variance of each channel, found `None`\nhint": lambda: F.batch_norm(x, None, None),
        "`batch_norm` expected no running mean and variance": lambda: F.batch_norm(x, np.ones(6), np.ones(6), training=True),
        "`instance_norm` expected 3 axes at least": lambda: F.instance_norm(x[0]),
    }.items():
        with pytest.raises(ValueError, match=f"^{message}"):
            call()


def attention(q, k, v, mask=None, scale=None):
    products = q @ np.swapaxes(k, -1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if mask is not None:
        products = np.where(mask, products, -np.inf) if mask.dtype == bool else products + mask
    return softmax(products, -1) @ v


@pytest.mark.parametrize("lead", [(), (3,), (2, 4), (2, 3, 4), (0, 4)])
def test_attention_is_the_mean_of_values_that_fit(lead):
    q, k, v = some(*lead, 5, 8), some(*lead, 7, 8, seed=1), some(*lead, 7, 6, seed=2)
    near(F.scaled_dot_product_attention(q, k, v), attention(q, k, v))
    near(F.scaled_dot_product_attention(q, k, v, scale=0.3), attention(q, k, v, scale=0.3))
    near(F.scaled_dot_product_attention(q, k, v, scale=0), attention(q, k, v, scale=0))
    causal = np.tril(np.ones((5, 7), bool))
    near(F.scaled_dot_product_attention(q, k, v, is_causal=True), attention(q, k, v, causal))
    three = v[..., :3, :], k[..., :3, :]
    near(F.scaled_dot_product_attention(v, *three, None, 0.0, True), attention(v, *three, np.tril(np.ones((7, 3), bool))))
    for shape in ((5, 7), (1, 7), (7,), (*lead, 5, 7), (*lead[:-1], *[1] * len(lead[-1:]), 5, 7)):
        added = some(*shape, seed=3)
        near(F.scaled_dot_product_attention(q, k, v, added), attention(q, k, v, added))
        allowed = added > -0.5
        allowed[..., 0] = True
        near(F.scaled_dot_product_attention(q, k, v, allowed), attention(q, k, v, allowed))
    with pytest.raises(ValueError, match="^`scaled_dot_product_attention` expected no mask with `is_causal`, found both\nhint"):
        F.scaled_dot_product_attention(q, k, v, causal, is_causal=True)
    with pytest.raises(ValueError, match="^`scaled_dot_product_attention` expected queries and keys of the same features"):
        F.scaled_dot_product_attention(q, k[..., :5], v)
    with pytest.raises(ValueError, match="^`scaled_dot_product_attention` .*shape"):
        F.scaled_dot_product_attention(q, k, v, causal[:4])


def test_attention_shares_heads_and_drops_out():
    q, k, v = some(2, 6, 5, 8), some(2, 2, 7, 8, seed=1), some(2, 2, 7, 8, seed=2)
    expected = attention(q, k.repeat(3, 1), v.repeat(3, 1))
    near(F.scaled_dot_product_attention(q, k, v, enable_gqa=True), expected)
    near(F.scaled_dot_product_attention(q, k[:, :1], v[:, :1]), attention(q, k[:, :1], v[:, :1]))
    with pytest.raises(ValueError, match="^`scaled_dot_product_attention` expected heads of the query that share"):
        F.scaled_dot_product_attention(q[:, :5], k, v, enable_gqa=True)
    with pytest.raises(ValueError, match="^`scaled_dot_product_attention` "):
        F.scaled_dot_product_attention(q, k, v)
    for named in ({"is_causal": True}, {"attn_mask": np.tril(np.ones((5, 7), bool))}, {}):
        ol.random.seed(5)
        total = sum(
            F.scaled_dot_product_attention(q, k, v, dropout_p=0.3, enable_gqa=True, **named).numpy() for _ in range(300)
        )
        without = F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **named).numpy()
        np.testing.assert_allclose(total / 300, without, atol=0.25)
