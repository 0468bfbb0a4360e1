"""Functions for images and patches of them, with loops in NumPy as the truth."""

import itertools
import math

import numpy as np
import oarlock as ol
import oarlock.nn.functional as F
import pytest
from conftest import same
from test_nn import near, some


@pytest.mark.parametrize("widths", [(), (1, 2), (2, 0), (1, 2, 0, 1), (-1, 2), (0, -1, 1, -2), (1, 1, 2, 2, 0, 1)])
def test_pad_begins_with_the_last_axis(widths):
    for dtype in ("float64", "int32", "bool", "complex64"):
        x = (10 * some(3, 4, 5)).astype(dtype)
        pairs = [(0, 0)] * (3 - len(widths) // 2) + list(zip(widths[::2], widths[1::2], strict=True))[::-1]
        inner = tuple(slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(pairs, x.shape, strict=True))
        outer = [(max(a, 0), max(b, 0)) for a, b in pairs]
        same(F.pad(x, widths), np.pad(x[inner], outer))
        if dtype != "bool":
            same(F.pad(x, widths, "constant", 7), np.pad(x[inner], outer, constant_values=7))
        if min(widths, default=0) >= 0:
            for mode, numpy_mode in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
                same(F.pad(x, widths, mode=mode), np.pad(x, outer, numpy_mode))


def test_pad_refuses_what_does_not_fit():
    x = some(2, 3)
    for message, call in {
        "expected a pair of numbers for each of at most 2 axes": lambda: F.pad(x, (1,)),
        "expected a pair of numbers for each of at most 2": lambda: F.pad(x, (1,) * 6),
        "expected at most 2 elements beside an axis of 3 in the mode `reflect`, found 3": lambda: F.pad(x, (3, 0), "reflect"),
        "expected at most 3 elements beside an axis of 3 in the mode `circular`, found 4": lambda: F.pad(x, (0, 4), "circular"),
        "expected an axis that has the elements, found one of 3 for -2 and -2": lambda: F.pad(x, (-2, -2)),
        "expected `circular`, `constant`, `reflect`, `replicate` for `mode`, found `edge`": lambda: F.pad(x, (1, 1), "edge"),
        "expected no `value` in the mode `reflect`, found 1": lambda: F.pad(x, (1, 1), "reflect", 1),
    }.items():
        with pytest.raises(ValueError, match=f"^`pad` {message}"):
            call()


def cubic(t, a=-0.75):
    t = abs(t)
    if t <= 1:
        return (a + 2) * t**3 - (a + 3) * t**2 + 1
    return a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a if t < 2 else 0.0


def resized(x, axis, count, factor, mode, corners):
    """One axis at another size, one element after another."""
    size, made = x.shape[axis], []
    for at in range(count):
        if mode == "nearest":
            weights = {min(math.floor(at * factor), size - 1): 1.0}
        elif mode == "nearest-exact":
            weights = {min(math.floor((at + 0.5) * factor), size - 1): 1.0}
        else:
            place = (at * (size - 1) / (count - 1) if count > 1 else 0.0) if corners else (at + 0.5) * factor - 0.5
            weights = {}
            if mode == "cubic":
                low = math.floor(place)
                for near_by in range(low - 1, low + 3):
                    inside = min(max(near_by, 0), size - 1)
                    weights[inside] = weights.get(inside, 0) + cubic(place - near_by)
            else:
                place = min(max(place, 0), size - 1)
                low = math.floor(place)
                weights = {min(low + 1, size - 1): place - low}
                weights[low] = weights.get(low, 0) + 1 - (place - low)
        made.append(sum(w * np.take(x, i, axis) for i, w in weights.items()))
    return np.stack(made, axis)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic"])
def test_interpolate_computes_each_element(mode):
    kind = {"bicubic": "cubic", "bilinear": "linear", "trilinear": "linear"}.get(mode, mode)
    ranks = {"linear": [1], "bilinear": [2], "trilinear": [3], "bicubic": [2]}.get(mode, [1, 2, 3])
    for rank, count in itertools.product(ranks, (1, 2, 5, 8, 13)):
        x = some(2, 3, *(5, 4, 3)[:rank])
        for corners in (None, False, True) if kind in ("linear", "cubic") else (None,):
            expected = x
            for axis in range(2, x.ndim):
                expected = resized(expected, axis, count, x.shape[axis] / count, kind, corners)
            near(F.interpolate(x, count, mode=mode, align_corners=corners), expected, 1e-4)
            near(F.interpolate(x, [count] * rank, None, mode, corners), expected, 1e-4)
    for rank, factor in itertools.product(ranks, (0.5, 1, 1.7, 2, 2.5)):
        x = some(2, 3, *(5, 4, 3)[:rank])
        kept = recomputed = x
        for axis in range(2, x.ndim):
            count = math.floor(x.shape[axis] * factor)
            kept = resized(kept, axis, count, 1 / factor, kind, False)
            recomputed = resized(recomputed, axis, count, x.shape[axis] / count, kind, False)
        near(F.interpolate(x, scale_factor=factor, mode=mode), kept, 1e-4)
        near(F.interpolate(x, scale_factor=[factor] * rank, mode=mode, recompute_scale_factor=True), recomputed, 1e-4)


def test_interpolate_takes_the_mean_of_an_area_and_empty_batches():
    x = some(2, 3, 7, 5)
    near(F.interpolate(x, (3, 2), mode="area"), F.adaptive_avg_pool2d(x, (3, 2)).numpy())
    assert F.interpolate(x[:0], 4, mode="bilinear").shape == (0, 3, 4, 4)
    for dtype in ("float16", "bfloat16", "float32"):
        assert F.interpolate(ol.asarray(x).astype(dtype), 4, mode="bicubic").dtype.name == dtype


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_interpolate_with_antialias_is_that_of_pillow(mode):
    image = pytest.importorskip("PIL.Image")
    x = some(11, 13, dtype="float32")
    for size in [(4, 5), (5, 13), (20, 17), (3, 40), (1, 1), (11, 13)]:
        expected = image.fromarray(x).resize(size[::-1], getattr(image, mode.upper()))
        near(F.interpolate(x[None, None], size, mode=mode, antialias=True), np.asarray(expected)[None, None])
    with pytest.raises(ValueError, match="^`interpolate` expected the mode `bilinear` or `bicubic` .*, found `nearest`$"):
        F.interpolate(x[None, None], 3, antialias=True)
    with pytest.raises(ValueError, match="for `antialias`, found `bilinear` with `align_corners`$"):
        F.interpolate(x[None, None], 3, mode="bilinear", align_corners=True, antialias=True)


def test_interpolate_refuses_what_does_not_fit():
    x = some(1, 2, 4)
    for message, call in {
        "expected one of `size` and `scale_factor`, found none": lambda: F.interpolate(x),
        "expected one of `size` and `scale_factor`, found both": lambda: F.interpolate(x, 2, 2),
        "expected 4 axes for the mode `bilinear`, found the shape": lambda: F.interpolate(x, 2, mode="bilinear"),
        "expected 3 or 4 or 5 axes for the mode `nearest`, found the shape": lambda: F.interpolate(x[0], 2),
        "expected .* for `mode`, found `cubic`": lambda: F.interpolate(x, 2, mode="cubic"),
        "expected no `align_corners` for the mode `nearest`, found True": lambda: F.interpolate(x, 2, align_corners=True),
        "expected a factor greater than 0": lambda: F.interpolate(x, scale_factor=-1.0),
        "expected elements in the input and the result": lambda: F.interpolate(x, scale_factor=0.1),
        "expected a number for each of 1 axes for `size`": lambda: F.interpolate(x, (2, 2)),
    }.items():
        with pytest.raises(ValueError, match=f"^`interpolate` {message}"):
            call()


def unnormalized(place, size, corners):
    return (place + 1) / 2 * (size - 1) if corners else ((place + 1) * size - 1) / 2


def reflected(place, size, corners):
    low, high = (0, size - 1) if corners else (-0.5, size - 0.5)
    if high == low:
        return 0.0
    turn = (place - low) % (2 * (high - low))
    return min(max(low + min(turn, 2 * (high - low) - turn), 0), size - 1)


def sampled(x, grid, mode, padding, corners):
    """The places in a grid, one after another."""
    rank = x.ndim - 2
    made = np.zeros((len(x), x.shape[1], *grid.shape[1:-1]))

    def element(image, place):
        inside = []
        for at, size in zip(place, image.shape[1:], strict=True):
            if padding == "border":
                at = min(max(at, 0), size - 1)
            elif padding == "reflection":
                at = round(reflected(at, size, corners))
            elif not 0 <= at < size:
                return 0.0
            inside.append(at)
        return image[(slice(None), *inside)]

    for at in np.ndindex(len(x), *grid.shape[1:-1]):
        places = [unnormalized(grid[at][rank - 1 - axis], x.shape[axis + 2], corners) for axis in range(rank)]
        if mode != "bicubic":
            if padding == "border":
                places = [min(max(p, 0), n - 1) for p, n in zip(places, x.shape[2:], strict=True)]
            if padding == "reflection":
                places = [reflected(p, n, corners) for p, n in zip(places, x.shape[2:], strict=True)]
        if mode == "nearest":
            made[(at[0], slice(None), *at[1:])] = element(x[at[0]], [round(p) for p in places])
            continue
        reach = range(-1, 3) if mode == "bicubic" else range(2)
        weight_of = cubic if mode == "bicubic" else lambda t: 1 - abs(t)
        for step in itertools.product(reach, repeat=rank):
            near_by = [math.floor(p) + s for p, s in zip(places, step, strict=True)]
            weight = math.prod(weight_of(p - n) for p, n in zip(places, near_by, strict=True))
            made[(at[0], slice(None), *at[1:])] += weight * element(x[at[0]], near_by)
    return made


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_takes_elements_at_places(mode, padding):
    for corners in (False, True):
        x, grid = some(2, 3, 5, 4), np.random.default_rng(1).uniform(-1.6, 1.6, (2, 4, 3, 2))
        near(F.grid_sample(x, grid, mode, padding, corners), sampled(x, grid, mode, padding, corners), 1e-4)
        if mode != "bicubic":
            x, grid = some(1, 2, 4, 3, 5), np.random.default_rng(2).uniform(-1.6, 1.6, (1, 2, 3, 2, 3))
            near(F.grid_sample(x, grid, mode, padding, corners), sampled(x, grid, mode, padding, corners), 1e-4)
    near(F.grid_sample(some(2, 3, 5, 4), np.zeros((2, 0, 3, 2))), np.zeros((2, 3, 0, 3)))


def test_affine_grid_brings_places_to_places():
    theta = some(2, 2, 3)
    for corners in (None, False, True):
        ends = [np.linspace(-1, 1, n) if corners else (np.arange(n) * 2 + 1) / n - 1 for n in (4, 5)]
        ys, xs = np.meshgrid(*ends, indexing="ij")
        near(
            F.affine_grid(theta, (2, 3, 4, 5), corners),
            np.einsum("nij,hwj->nhwi", theta, np.stack([xs, ys, np.ones_like(xs)], -1)),
        )
    x = some(2, 3, 4, 5)
    same_map = np.broadcast_to([[1.0, 0, 0], [0, 1, 0]], (2, 2, 3))
    near(F.grid_sample(x, F.affine_grid(same_map, x.shape)), x)
    assert F.affine_grid(some(1, 3, 4), (1, 2, 3, 4, 5)).shape == (1, 3, 4, 5, 3)
    with pytest.raises(ValueError, match="^`affine_grid` expected a matrix of two rows and three columns"):
        F.affine_grid(theta, (3, 3, 4, 5))
    for message, call in {
        "expected images of 4 or 5 axes and a grid": lambda: F.grid_sample(x, np.zeros((2, 4, 3, 3))),
        "expected `bilinear`, `nearest` or `bicubic` for `mode`, found `linear`": lambda: F.grid_sample(x, x, "linear"),
        "expected `zeros`, `border` or `reflection`": lambda: F.grid_sample(x, x, padding_mode="edge"),
    }.items():
        with pytest.raises(ValueError, match=f"^`grid_sample` {message}"):
            call()


@pytest.mark.parametrize("lead", [(), (2,), (0,), (2, 3)])
def test_pixels_become_channels_and_back(lead):
    x = some(*lead, 8, 3, 5)
    expected = np.zeros((*lead, 2, 6, 10))
    for c, i, j, h, w in np.ndindex(2, 2, 2, 3, 5):
        expected[..., c, h * 2 + i, w * 2 + j] = x[..., c * 4 + i * 2 + j, h, w]
    same(F.pixel_shuffle(ol.asarray(x), 2), expected)
    same(F.pixel_unshuffle(expected, 2), x)
    with pytest.raises(ValueError, match=r"^`pixel_shuffle` expected a number of channels that 3 \* 3 divides"):
        F.pixel_shuffle(x, 3)
    with pytest.raises(ValueError, match="^`pixel_unshuffle` expected images whose height and width 2 divides"):
        F.pixel_unshuffle(x, 2)


@pytest.mark.parametrize(
    ("size", "dilation", "padding", "stride"), list(itertools.product((2, (3, 1)), (1, (1, 2)), (0, (2, 1)), (1, (2, 3))))
)
def test_patches_become_columns_and_back(size, dilation, padding, stride):
    k, d, p, s = ((each, each) if isinstance(each, int) else each for each in (size, dilation, padding, stride))
    for batch in (0, 2):
        x = some(batch, 3, 7, 6)
        wide = np.pad(x, [(0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])])
        counts = [(n - (k[i] - 1) * d[i] - 1) // s[i] + 1 for i, n in enumerate(wide.shape[2:])]
        columns = np.zeros((batch, 3, *k, *counts))
        back = np.zeros(wide.shape)
        for i, j, a, b in np.ndindex(*k, *counts):
            place = (slice(None), slice(None), a * s[0] + i * d[0], b * s[1] + j * d[1])
            columns[:, :, i, j, a, b] = wide[place]
            back[place] += columns[:, :, i, j, a, b]
        columns = columns.reshape(batch, 3 * k[0] * k[1], counts[0] * counts[1])
        same(F.unfold(x, size, dilation, padding, stride), columns)
        expected = back[:, :, p[0] : p[0] + 7, p[1] : p[1] + 6]
        near(F.fold(columns, (7, 6), size, dilation, padding, stride), expected)
        if batch:
            same(F.unfold(x[0], size, dilation, padding, stride), columns[0])
            near(F.fold(columns[0], (7, 6), size, dilation, padding, stride), expected[0])
    with pytest.raises(ValueError, match="^`unfold` expected images that have one patch at least"):
        F.unfold(some(1, 1, 2, 2), 9)
    with pytest.raises(ValueError, match="^`fold` expected a multiple of 4 rows and 4 columns, found the shape"):
        F.fold(some(1, 4, 5), 3, 2)
