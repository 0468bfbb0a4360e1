"""Convolutions and pools of awkward shapes, computed with windows over a padded input."""

import numpy
from numpy.lib.stride_tricks import sliding_window_view
from numpy_views import LAYOUTS, label, turns, view, widened

# Input, output channels, kernel, strides, pads, dilations and groups. The last two inputs are large enough for several threads.
CONVOLUTIONS = [
    ((1, 1, 5, 5), 1, (3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((2, 3, 7, 9), 5, (3, 2), (2, 1), (1, 0, 2, 1), (1, 2), 1),
    ((1, 6, 8, 5), 9, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 3),
    ((2, 4, 6, 6), 4, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 4),
    ((1, 4, 9, 9), 8, (3, 3), (2, 2), (1, 1, 1, 1), (1, 1), 4),
    ((3, 2, 13), 3, (5,), (3,), (2, 4), (2,), 1),
    ((1, 2, 5, 4, 6), 4, (2, 3, 2), (1, 2, 1), (1, 0, 0, 0, 1, 1), (1, 1, 2), 2),
    ((0, 3, 5, 5), 2, (3, 3), (1, 1), (0, 0, 0, 0), (1, 1), 1),
    ((1, 17, 33, 35), 19, (3, 3), (1, 1), (1, 1, 1, 1), (1, 1), 1),
    ((2, 32, 19, 19), 33, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1), 1),
]
POOLS = [
    ((1, 1, 4, 4), (2, 2), (2, 2), (0, 0, 0, 0), (1, 1)),
    ((2, 3, 7, 9), (3, 2), (2, 1), (1, 0, 1, 1), (1, 1)),
    ((1, 2, 9, 8), (3, 3), (1, 2), (1, 1, 1, 1), (2, 1)),
    ((3, 2, 13), (5,), (3,), (2, 2), (1,)),
    ((1, 17, 33, 35), (3, 3), (2, 2), (1, 1, 1, 1), (1, 1)),
]


def windows(x, kernel, strides, pads, dilations, filler):
    """The window of each output element, in trailing dimensions."""
    count = len(kernel)
    around = [(0, 0), (0, 0), *zip(pads[:count], pads[count:], strict=True)]
    reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    every = sliding_window_view(numpy.pad(x, around, constant_values=filler), reach, tuple(range(2, 2 + count)))
    places = tuple(slice(None, None, step) for step in strides)
    seen = tuple(slice(None, None, step) for step in dilations)
    return every[(slice(None), slice(None), *places, *seen)]


def convolution(x, weight, bias, kernel, strides, pads, dilations, groups):
    """The weighted sum of each window over the channels of its group."""
    seen = windows(x, kernel, strides, pads, dilations, 0)
    outer, inner = range(2, 2 + len(kernel)), range(2 + len(kernel), 2 + 2 * len(kernel))
    axes = ([1, *inner], range(1, 2 + len(kernel)))
    parts = zip(numpy.split(seen, groups, 1), numpy.split(weight, groups, 0), strict=True)
    made = numpy.concatenate([numpy.tensordot(part, weights, axes) for part, weights in parts], axis=-1)
    return (made + bias).transpose(0, 1 + len(outer), *range(1, 1 + len(outer)))


def write_windows(writer):
    """Writes all cases."""
    for turn, (shape, channels, kernel, strides, pads, dilations, groups) in enumerate(CONVOLUTIONS):
        for dtype in (numpy.float32, numpy.float64):
            layout, weights = turns(turn, LAYOUTS), (channels, shape[1] // groups, *kernel)
            operands = [(shape, dtype, layout, -1, 1), (weights, dtype, turns(turn + 1, LAYOUTS), -1, 1)]
            operands.append(((channels,), dtype))
            attributes = {"strides": list(strides), "pads": list(pads), "dilations": list(dilations), "group": groups}

            def convolve(x, weight, bias, turn=turn):
                return convolution(x, weight, bias, *CONVOLUTIONS[turn][2:])

            suffix = f"{turn}_{numpy.dtype(dtype).name}_{label(shape)}_{layout}"
            writer.of_views("Conv", suffix, operands, convolve, attributes, atol=1e-4)
    for turn, (shape, kernel, strides, pads, dilations) in enumerate(POOLS):
        for at, (op, pick) in enumerate({"MaxPool": numpy.nanmax, "AveragePool": numpy.nanmean}.items()):
            layout = turns(turn + at, LAYOUTS)
            attributes = {"kernel_shape": list(kernel), "strides": list(strides), "pads": list(pads)}
            attributes["dilations"] = list(dilations)

            def pool(rng, turn=turn, layout=layout, pick=pick, attributes=attributes):
                given = view(rng, POOLS[turn][0], numpy.float32, layout)
                seen = windows(widened(given.array()), *POOLS[turn][1:], numpy.nan)
                inner = tuple(range(seen.ndim - len(POOLS[turn][1]), seen.ndim))
                return [given], [pick(seen, axis=inner).astype(numpy.float32)], attributes

            writer.case(op, f"{turn}_{label(shape)}_{layout}", pool)
