"""Detection and recognition of text, after the small models of PP-OCR, with images of any size."""

from graph import BATCH, LARGE_BATCH, GraphBuilder
from layers import STEADY_BIAS, conv, conv_transpose, linear, upsample
from recurrent import lstm

CHARACTERS = 6625


def rounded(channels):
    """Channels of a narrow network in steps of 8, as MobileNet rounds them."""
    return max(8, int(channels + 4) // 8 * 8)


def active(g, x, kind):
    return g.op(kind, x) if kind else x


def conv_active(g, x, inputs, outputs, kernel, stride=1, groups=1, kind="HardSwish"):
    bias = STEADY_BIAS if kind == "HardSwish" else 0.05
    return active(g, conv(g, x, inputs, outputs, kernel, stride, kernel // 2, groups, bias=bias), kind)


def squeeze_excite(g, x, channels):
    """Scales each channel by a gate that depends on the means of all."""
    hidden = rounded(channels // 4)
    y = g.op("Relu", conv(g, g.op("GlobalAveragePool", x), channels, hidden, 1))
    gate = g.op("HardSigmoid", conv(g, y, hidden, channels, 1, bias=STEADY_BIAS), alpha=1 / 6, beta=0.5)
    return g.op("Mul", x, gate)


# MobileNetV3 large. Of each block: kernel, hidden channels, channels, whether it has gates, activation, stride.
DETECTOR_BLOCKS = [
    (3, 16, 16, False, "Relu", 1),
    (3, 64, 24, False, "Relu", 2),
    (3, 72, 24, False, "Relu", 1),
    (5, 72, 40, True, "Relu", 2),
    (5, 120, 40, True, "Relu", 1),
    (5, 120, 40, True, "Relu", 1),
    (3, 240, 80, False, "HardSwish", 2),
    (3, 200, 80, False, "HardSwish", 1),
    (3, 184, 80, False, "HardSwish", 1),
    (3, 184, 80, False, "HardSwish", 1),
    (3, 480, 112, True, "HardSwish", 1),
    (3, 672, 112, True, "HardSwish", 1),
    (5, 672, 160, True, "HardSwish", 2),
    (5, 960, 160, True, "HardSwish", 1),
    (5, 960, 160, True, "HardSwish", 1),
]
WIDTH = 0.5


def detector_maps(g, x):
    """Maps at strides 4, 8, 16 and 32, with their channels."""
    inputs, maps = rounded(16 * WIDTH), []
    x = conv_active(g, x, 3, inputs, 3, 2)
    for place, (kernel, hidden, outputs, has_gates, kind, stride) in enumerate(DETECTOR_BLOCKS):
        if stride == 2 and place > 1:
            maps.append((x, inputs))
        hidden, outputs = rounded(hidden * WIDTH), rounded(outputs * WIDTH)
        y = conv_active(g, x, inputs, hidden, 1, kind=kind)
        y = conv_active(g, y, hidden, hidden, kernel, stride, hidden, kind=kind)
        if has_gates:
            y = squeeze_excite(g, y, hidden)
        y = conv(g, y, hidden, outputs, 1, gain=0.7)
        x = g.op("Add", x, y) if stride == 1 and inputs == outputs else y
        inputs = outputs
    last = rounded(960 * WIDTH)
    return [*maps, (conv_active(g, x, inputs, last, 1), last)]


def text_detector(width=96, height=480, length=640):
    """A pyramid over four maps, and a map of probabilities as large as the image."""
    g = GraphBuilder("text_detector", 33)
    x = g.batched("x", g.normal((LARGE_BATCH, 3, height, length), 1), symbols={2: "height", 3: "width"})
    sides = [conv(g, level, channels, width, 1) for level, channels in detector_maps(g, x)]
    pyramid = [sides.pop()]
    for side in reversed(sides):
        pyramid.append(g.op("Add", side, upsample(g, pyramid[-1])))
    parts = []
    for level, factor in zip(pyramid, (8, 4, 2, 1)):
        part = conv(g, level, width, width // 4, 3, 1, 1, gain=0.7)
        parts.append(part if factor == 1 else upsample(g, part, factor))
    x = conv_active(g, g.op("Concat", *parts, axis=1), width, width // 4, 3, kind="Relu")
    x = g.op("Relu", conv_transpose(g, x, width // 4, width // 4))
    g.op("Sigmoid", conv_transpose(g, x, width // 4, 1), out="map")
    g.output("map", [BATCH, 1, None, None])
    return g


# MobileNetV1 with the strides of PP-OCR: of each block, kernel, channels, stride, whether it has gates.
RECOGNIZER_BLOCKS = [
    (3, 64, 1, False),
    (3, 128, 1, False),
    (3, 128, 1, False),
    (3, 256, (2, 1), False),
    (3, 256, 1, False),
    (3, 512, (2, 1), False),
    (5, 512, 1, False),
    (5, 512, 1, False),
    (5, 512, 1, False),
    (5, 512, 1, False),
    (5, 512, 1, False),
    (5, 1024, (2, 1), True),
    (5, 1024, 1, True),
]


def text_recognizer(hidden=128, height=48, length=320):
    """Columns of an image through two bidirectional layers, and the probability of each character."""
    g = GraphBuilder("text_recognizer", 48)
    x = g.batched("x", g.normal((LARGE_BATCH, 3, height, length), 1), symbols={3: "width"})
    inputs = rounded(32 * WIDTH)
    x = conv_active(g, x, 3, inputs, 3, 2)
    for kernel, outputs, stride, has_gates in RECOGNIZER_BLOCKS:
        outputs = rounded(outputs * WIDTH)
        x = conv_active(g, x, inputs, inputs, kernel, stride, inputs)
        if has_gates:
            x = squeeze_excite(g, x, inputs)
        x, inputs = conv_active(g, x, inputs, outputs, 1), outputs
    # One row is left, and half of the columns.
    x = g.op("AveragePool", x, kernel_shape=[3, 2], strides=[3, 2])
    x = g.op("Transpose", g.op("Squeeze", x, g.integers(2)), perm=[2, 0, 1])
    x = lstm(g, x, inputs, hidden, 2)
    x = lstm(g, x, 2 * hidden, hidden, 2)
    x = linear(g, g.op("Transpose", x, perm=[1, 0, 2]), 2 * hidden, CHARACTERS, 0.1)
    g.op("Softmax", x, axis=-1, out="characters")
    g.output("characters", [BATCH, None, CHARACTERS])
    return g
