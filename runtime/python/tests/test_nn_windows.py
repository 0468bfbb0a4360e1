"""Functions for neural networks along axes of images and sequences, with loops in NumPy as the truth."""

import itertools
import math

import numpy as np
import oarlock.nn.functional as F
import pytest
from test_nn import near, some


def windows(x, sizes, strides, spacings, counts):
    """The elements of each window, as axes behind those of the windows."""
    made = np.zeros((*x.shape[:2], *counts, *sizes), x.dtype)
    for at in np.ndindex(*counts):
        for inside in np.ndindex(*sizes):
            place = tuple(a * s + i * d for a, s, i, d in zip(at, strides, inside, spacings, strict=True))
            made[(slice(None), slice(None), *at, *inside)] = x[(slice(None), slice(None), *place)]
    return made


def widened(x, pads, value=0.0):
    return np.pad(x, [(0, 0), (0, 0), *pads], constant_values=value)


def convolved(x, w, strides, pads, spacings, groups):
    x = widened(x, pads)
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], w.shape[2:], strides, spacings, strict=True)]
    parts = []
    for group in range(groups):
        own = slice(group * w.shape[1], (group + 1) * w.shape[1])
        kernels = w[group * len(w) // groups : (group + 1) * len(w) // groups]
        found = windows(x[:, own], w.shape[2:], strides, spacings, counts)
        found = found.reshape(len(x), w.shape[1], *counts, math.prod(w.shape[2:]))
        parts.append(np.einsum("nc...k,ock->no...", found, kernels.reshape(*kernels.shape[:2], -1)))
    return np.concatenate(parts, 1)


CONVOLUTIONS = [F.conv1d, F.conv2d, F.conv3d]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_convolution_multiplies_windows_by_kernels(rank):
    function, kernel = CONVOLUTIONS[rank - 1], (3, 2, 1)[:rank]
    for batch, groups, stride, padding, dilation in itertools.product((0, 2), (1, 2), (1, 2), (0, 1), (1, 2)):
        x, w, b = some(batch, 4, *(7, 6, 3)[:rank]), some(6, 4 // groups, *kernel, seed=1), some(6, seed=2)
        expected = convolved(x, w, [stride] * rank, [(padding, padding)] * rank, [dilation] * rank, groups)
        near(function(x, w, None, stride, padding, dilation, groups), expected)
        near(function(x, w, b, stride, padding, dilation, groups), expected + b.reshape(-1, *[1] * rank))
        if batch:
            near(function(x[0], w, None, (stride,) * rank, [padding] * rank, dilation, groups), expected[0])


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_padding_same_keeps_the_size(size):
    x, w = some(2, 3, 9), some(5, 3, size, seed=1)
    for dilation in (1, 2, 3):
        total = dilation * (size - 1)
        expected = convolved(x, w, [1], [(total // 2, total - total // 2)], [dilation], 1)
        near(F.conv1d(x, w, padding="same", dilation=dilation), expected)
        assert expected.shape == (2, 5, 9)
    near(F.conv1d(x, w, padding="valid"), convolved(x, w, [1], [(0, 0)], [1], 1))


def transposed(x, w, stride, padding, more, groups, dilation):
    rank, share = x.ndim - 2, w.shape[1]
    sizes = [(n - 1) * stride + dilation * (k - 1) + 1 + more for n, k in zip(x.shape[2:], w.shape[2:], strict=True)]
    made = np.zeros((len(x), share * groups, *sizes))
    for channel in range(x.shape[1]):
        group = channel // (x.shape[1] // groups)
        for at in np.ndindex(*x.shape[2:]):
            for inside in np.ndindex(*w.shape[2:]):
                place = tuple(a * stride + i * dilation for a, i in zip(at, inside, strict=True))
                for out in range(share):
                    made[(slice(None), group * share + out, *place)] += (
                        x[(slice(None), channel, *at)] * w[(channel, out, *inside)]
                    )
    inner = tuple(slice(padding, size - padding) for size in sizes)
    return made[(slice(None), slice(None), *inner[:rank])]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_a_transposed_convolution_spreads_each_element(rank):
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
    for batch, groups, stride, padding, dilation in itertools.product((0, 2), (1, 2), (1, 2), (0, 1), (1, 2)):
        x, w, b = some(batch, 4, *(4, 3, 2)[:rank]), some(4, 3, *(3, 2, 3)[:rank], seed=1), some(3 * groups, seed=2)
        more = 1 if max(stride, dilation) > 1 else 0
        expected = transposed(x, w, stride, padding, more, groups, dilation)
        near(function(x, w, None, stride, padding, more, groups, dilation), expected)
        near(function(x, w, b, stride, padding, more, groups, dilation), expected + b.reshape(-1, *[1] * rank))
        if batch:
            near(function(x[0], w, None, stride, padding, more, groups, dilation), expected[0])


def test_convolutions_refuse_what_does_not_fit():
    x, w = some(2, 4, 8), some(6, 4, 3)
    for message, call in {
        r"expected weights with 3 axes, found the shape \(6, 4\)": lambda: F.conv1d(x, w[..., 0]),
        "expected a number that divides 6 kernels for `groups`, found 4": lambda: F.conv1d(x, w, groups=4),
        "expected 4 channels, as in the input": lambda: F.conv1d(x, w, groups=2),
        "expected axes for the batch": lambda: F.conv1d(x[0, 0], w),
        r"expected the shape \(6,\) for `bias`, found \(5,\)": lambda: F.conv1d(x, w, np.ones(5)),
        "expected an axis of at least 9 elements for the kernel, found 8": lambda: F.conv1d(x, w, dilation=4),
        "expected numbers of at least 1 for `stride`, found 0": lambda: F.conv1d(x, w, stride=0),
        "expected a number for each of 1 axes for `dilation`, found": lambda: F.conv1d(x, w, dilation=(1, 2)),
        "expected a stride of 1 for the padding `same`, found 2": lambda: F.conv1d(x, w, stride=2, padding="same"),
        "expected numbers, `same` or `valid` for `padding`, found `full`": lambda: F.conv1d(x, w, padding="full"),
    }.items():
        with pytest.raises(ValueError, match=f"^`conv1d` {message}"):
            call()
    with pytest.raises(TypeError, match="^`conv1d` expected a whole number, or 1 of them, for `stride`, found 1.5"):
        F.conv1d(x, w, stride=1.5)
    with pytest.raises(ValueError, match="^`conv_transpose1d` expected kernels for 4 channels"):
        F.conv_transpose1d(x, w)
    with pytest.raises(ValueError, match="^`conv_transpose1d` expected less than the stride 1 or the dilation 1"):
        F.conv_transpose1d(x, w[:4], output_padding=1)


def pooled(x, size, stride, padding, dilation, ceil, reduce):
    """Windows of PyTorch: with `ceil`, the last may end behind the padding, but not begin there."""
    pads, counts = [], []
    for n in x.shape[2:]:
        whole = n + 2 * padding - dilation * (size - 1) - 1
        count = (-(-whole // stride) if ceil else whole // stride) + 1
        if ceil and (count - 1) * stride >= n + padding:
            count -= 1
        pads.append((padding, max(padding, (count - 1) * stride + dilation * (size - 1) + 1 - n - padding)))
        counts.append(count)
    rank = x.ndim - 2
    return reduce(
        lambda y, value: windows(widened(y, pads, value), [size] * rank, [stride] * rank, [dilation] * rank, counts), pads
    )


CASES = list(itertools.product((2, 3), (1, 2, 3), (0, 1), (False, True)))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pooling_takes_the_greatest_or_the_mean_of_windows(rank):
    greatest, means = getattr(F, f"max_pool{rank}d"), getattr(F, f"avg_pool{rank}d")
    inner = tuple(range(-rank, 0))
    for batch, (size, stride, padding, ceil) in itertools.product((0, 2), CASES):
        x = some(batch, 3, *(7, 6, 5)[:rank])
        for dilation in (1, 2):
            expected = pooled(x, size, stride, padding, dilation, ceil, lambda of, _, x=x: of(x, -np.inf).max(inner))
            near(greatest(x, size, stride, padding, dilation, ceil), expected)
        sums = pooled(x, size, stride, padding, 1, ceil, lambda of, _, x=x: of(x, 0).sum(inner))
        inside = pooled(x, size, stride, padding, 1, ceil, lambda of, _, x=x: of(np.ones_like(x), 0).sum(inner))
        near(means(x, size, stride, padding, ceil, False), sums / inside)

        def with_padding(of, pads, x=x, padding=padding):
            # What lies beyond the padding does not count.
            wide = np.zeros((*x.shape[:2], *(n + sum(p) for n, p in zip(x.shape[2:], pads, strict=True))))
            wide[(slice(None), slice(None), *(slice(0, n + 2 * padding) for n in x.shape[2:]))] = 1
            bare = [(0, 0)] * len(pads)
            pads[:], kept = bare, list(pads)
            found = of(wide, 0).sum(inner)
            pads[:] = kept
            return found

        near(means(x, size, stride, padding, ceil), sums / pooled(x, size, stride, padding, 1, ceil, with_padding))
        if rank > 1:
            near(means(x, size, stride, padding, ceil, True, 5), sums / 5)
    x = some(2, 3, *(7, 6, 5)[:rank])
    near(greatest(x[0], 2), greatest(x, 2).numpy()[0])
    near(means(x[0], [2] * rank), means(x, 2, 2).numpy()[0])


def test_pooling_refuses_what_does_not_fit():
    for function in (F.max_pool1d, F.avg_pool1d):
        name = function.__name__
        with pytest.raises(ValueError, match=f"^`{name}` expected at most half of the window of 3 for `padding`, found 2"):
            function(some(1, 2, 9), 3, padding=2)
        with pytest.raises(ValueError, match=f"^`{name}` expected an axis of at least 3 elements, found 2"):
            function(some(1, 2, 2), 3)
        with pytest.raises(ValueError, match=f"^`{name}` expected numbers of at least 1 for `kernel_size`, found 0"):
            function(some(1, 2, 2), 0)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 7, 9])
def test_adaptive_pooling_shares_an_axis(rank, count):
    x = some(2, 3, *(7, 6, 5)[:rank])
    x[0, 0].flat[0] = np.inf
    for name, reduce in (("avg", np.mean), ("max", np.max)):
        expected = x
        for axis in range(2, x.ndim):
            size = x.shape[axis]
            parts = [
                reduce(np.take(expected, range(i * size // count, -(-(i + 1) * size // count)), axis), axis)
                for i in range(count)
            ]
            expected = np.stack(parts, axis) if parts else np.zeros((*expected.shape[:axis], 0, *expected.shape[axis + 1 :]))
        function = getattr(F, f"adaptive_{name}_pool{rank}d")
        near(function(x, count), expected)
        near(function(x[1], [count] * rank), expected[1])
        near(function(x, [None] * rank), x)
        with pytest.raises(ValueError, match="expected a size for each of"):
            function(x, [1] * (rank + 1))
