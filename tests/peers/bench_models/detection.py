"""A detector after YOLOv8n, with its head as exporters write it."""

import numpy

from graph import BATCH, LARGE_BATCH, GraphBuilder
from layers import STEADY_BIAS, conv, silu, upsample

SIDE = 640
CLASSES = 80
# A box is four distances, each the mean of a distribution over this many bins.
BINS = 16


def block(g, x, inputs, outputs, kernel, stride=1):
    """A convolution with its activation."""
    return silu(g, conv(g, x, inputs, outputs, kernel, stride, kernel // 2, bias=STEADY_BIAS))


def c2f(g, x, inputs, outputs, depth, is_residual):
    """Halves of the channels, bottlenecks on one of them, and all of their results side by side."""
    half = outputs // 2
    parts = list(g.op("Split", block(g, x, inputs, outputs, 1), g.integers(half, half), outputs=2, axis=1))
    for _ in range(depth):
        y = block(g, block(g, parts[-1], half, half, 3), half, half, 3)
        parts.append(g.op("Add", parts[-1], y) if is_residual else y)
    return block(g, g.op("Concat", *parts, axis=1), half * len(parts), outputs, 1)


def sppf(g, x, channels):
    """Pooling over windows of three sizes, by pooling again and again."""
    parts = [block(g, x, channels, channels // 2, 1)]
    for _ in range(3):
        parts.append(g.op("MaxPool", parts[-1], kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2]))
    return block(g, g.op("Concat", *parts, axis=1), 2 * channels, channels, 1)


def levels(g, x):
    """The backbone and the pyramid: maps at strides 8, 16 and 32 with their channels."""
    x = block(g, x, 3, 16, 3, 2)
    x = c2f(g, block(g, x, 16, 32, 3, 2), 32, 32, 1, True)
    fine = c2f(g, block(g, x, 32, 64, 3, 2), 64, 64, 2, True)
    middle = c2f(g, block(g, fine, 64, 128, 3, 2), 128, 128, 2, True)
    x = c2f(g, block(g, middle, 128, 256, 3, 2), 256, 256, 1, True)
    coarse = sppf(g, x, 256)
    middle = c2f(g, g.op("Concat", upsample(g, coarse), middle, axis=1), 384, 128, 1, False)
    fine = c2f(g, g.op("Concat", upsample(g, middle), fine, axis=1), 192, 64, 1, False)
    middle = c2f(g, g.op("Concat", block(g, fine, 64, 64, 3, 2), middle, axis=1), 192, 128, 1, False)
    coarse = c2f(g, g.op("Concat", block(g, middle, 128, 128, 3, 2), coarse, axis=1), 384, 256, 1, False)
    return [(fine, 64), (middle, 128), (coarse, 256)]


def head(g, x, channels, outputs, hidden):
    y = block(g, block(g, x, channels, hidden, 3), hidden, hidden, 3)
    return conv(g, y, hidden, outputs, 1)


def anchors():
    """Centers of all cells in cells, and the stride of each."""
    centers, strides = [], []
    for stride in (8, 16, 32):
        places = numpy.arange(SIDE // stride, dtype=numpy.float32) + 0.5
        y, x = numpy.meshgrid(places, places, indexing="ij")
        centers.append(numpy.stack([x.ravel(), y.ravel()]))
        strides.append(numpy.full((1, x.size), stride, numpy.float32))
    return numpy.concatenate(centers, 1)[None], numpy.concatenate(strides, 1)


def yolo():
    g = GraphBuilder("yolo", 8)
    x = g.batched("images", g.uniform((LARGE_BATCH, 3, SIDE, SIDE), 0.5) + numpy.float32(0.5))
    maps = []
    for level, channels in levels(g, x):
        both = head(g, level, channels, 4 * BINS, 64), head(g, level, channels, CLASSES, 80)
        maps.append(g.op("Reshape", g.op("Concat", *both, axis=1), g.integers(0, 4 * BINS + CLASSES, -1)))
    centers, strides = anchors()
    cells = strides.shape[1]
    boxes, scores = g.op("Split", g.op("Concat", *maps, axis=2), g.integers(4 * BINS, CLASSES), outputs=2, axis=1)
    bins = g.op("Transpose", g.op("Reshape", boxes, g.integers(0, 4, BINS, cells)), perm=[0, 2, 1, 3])
    means = g.weight(numpy.arange(BINS, dtype=numpy.float32).reshape(1, BINS, 1, 1))
    sizes = {"kernel_shape": [1, 1], "strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1], "group": 1}
    distances = g.op("Reshape", g.op("Conv", g.op("Softmax", bins, axis=1), means, **sizes), g.integers(0, 4, cells))
    before = g.op("Slice", distances, g.integers(0), g.integers(2), g.integers(1))
    behind = g.op("Slice", distances, g.integers(2), g.integers(4), g.integers(1))
    centers = g.weight(centers)
    first, last = g.op("Sub", centers, before), g.op("Add", behind, centers)
    middles = g.op("Div", g.op("Add", first, last), g.scalar(2.0))
    boxes = g.op("Concat", middles, g.op("Sub", last, first), axis=1)
    boxes = g.op("Mul", boxes, g.weight(strides))
    g.op("Concat", boxes, g.op("Sigmoid", scores), axis=1, out="output0")
    g.output("output0", [BATCH, 4 + CLASSES, cells])
    return g
