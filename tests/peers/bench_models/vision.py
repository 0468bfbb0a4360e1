"""Classification and segmentation of images."""

from graph import BATCH, LARGE_BATCH, GraphBuilder
from layers import axis_size, conv, conv_transpose, gelu_erf, layer_norm, linear, shape_of


def classify(g, x, inputs, deviation):
    """The head of a convolutional classifier."""
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    weights, offsets = g.weight(g.normal((1000, inputs), deviation)), g.weight(g.normal((1000,), 0.02))
    g.op("Gemm", x, weights, offsets, transB=1, out="output")
    g.output("output", [1, 1000])


def resnet50():
    g = GraphBuilder("resnet50", 50)
    x = g.input("input", g.normal((1, 3, 224, 224), 1))
    x = g.op("Relu", conv(g, x, 3, 64, 7, 2, 3))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    inputs = 64
    for stage, (middle, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        outputs = middle * 4
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            shortcut = conv(g, x, inputs, outputs, 1, stride, gain=0.7) if block == 0 else x
            y = g.op("Relu", conv(g, x, inputs, middle, 1))
            y = g.op("Relu", conv(g, y, middle, middle, 3, stride, 1))
            y = conv(g, y, middle, outputs, 1, gain=0.3)
            x = g.op("Relu", g.op("Add", y, shortcut))
            inputs = outputs
    classify(g, x, 2048, 0.02)
    return g


# Of each stage: how far blocks widen, channels, blocks, stride.
MOBILENET_STAGES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def mobilenetv2():
    g = GraphBuilder("mobilenetv2", 22)
    bounds = g.scalar(0.0), g.scalar(6.0)
    x = g.input("input", g.normal((1, 3, 224, 224), 1))
    x = g.op("Clip", conv(g, x, 3, 32, 3, 2, 1), *bounds)
    inputs = 32
    for factor, outputs, blocks, first_stride in MOBILENET_STAGES:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            y, hidden = x, inputs * factor
            if factor != 1:
                y = g.op("Clip", conv(g, y, inputs, hidden, 1), *bounds)
            y = g.op("Clip", conv(g, y, hidden, hidden, 3, stride, 1, groups=hidden), *bounds)
            y = conv(g, y, hidden, outputs, 1, gain=0.5)
            x = g.op("Add", x, y) if stride == 1 and inputs == outputs else y
            inputs = outputs
    x = g.op("Clip", conv(g, x, inputs, 1280, 1), *bounds)
    classify(g, x, 1280, 0.03)
    return g


def unet():
    """A U-Net for images of 256 × 256 with 32 channels at the top and 512 at the bottom."""
    g = GraphBuilder("unet", 31)
    x = g.batched("input", g.normal((LARGE_BATCH, 3, 256, 256), 1))

    def twice(x, inputs, outputs):
        x = g.op("Relu", conv(g, x, inputs, outputs, 3, 1, 1))
        return g.op("Relu", conv(g, x, outputs, outputs, 3, 1, 1))

    inputs, kept = 3, []
    for outputs in (32, 64, 128, 256):
        kept.append((twice(x, inputs, outputs), outputs))
        x = g.op("MaxPool", kept[-1][0], kernel_shape=[2, 2], strides=[2, 2])
        inputs = outputs
    x, inputs = twice(x, inputs, 512), 512
    for level, outputs in reversed(kept):
        x = g.op("Concat", conv_transpose(g, x, inputs, outputs), level, axis=1)
        x, inputs = twice(x, 2 * outputs, outputs), outputs
    g.op("Sigmoid", conv(g, x, inputs, 1, 1), out="output")
    g.output("output", [BATCH, 1, 256, 256])
    return g


def vit(width=384, layers=12, heads=6, patch=16, side=224):
    """ViT-S/16."""
    g = GraphBuilder("vit", 16)
    tokens, size = (side // patch) ** 2 + 1, width // heads
    x = g.batched("input", g.normal((LARGE_BATCH, 3, side, side), 1))
    batch = axis_size(g, x, 0)
    patches = g.op("Reshape", conv(g, x, 3, width, patch, patch), g.integers(0, width, -1))
    patches = g.op("Transpose", patches, perm=[0, 2, 1])
    first = g.op("Expand", g.weight(g.normal((1, 1, width), 0.02)), shape_of(g, batch, 1, width))
    x = g.op("Concat", first, patches, axis=1)
    x = g.op("Add", x, g.weight(g.normal((1, tokens, width), 0.02)))
    # Exporters scale queries and keys, each by the root.
    root = g.scalar(size**-0.25)
    for _ in range(layers):
        y = linear(g, layer_norm(g, x, width, 1e-6), width, 3 * width, 0.05)
        y = g.op("Reshape", y, g.integers(0, tokens, 3, heads, size))
        y = g.op("Transpose", y, perm=[2, 0, 3, 1, 4])
        parts = g.op("Split", y, g.integers(1, 1, 1), outputs=3, axis=0)
        q, k, v = (g.op("Squeeze", part, g.integers(0)) for part in parts)
        k = g.op("Transpose", k, perm=[0, 1, 3, 2])
        scores = g.op("MatMul", g.op("Mul", q, root), g.op("Mul", k, root))
        y = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
        y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.integers(0, tokens, width))
        x = g.op("Add", x, linear(g, y, width, width, 0.02))
        y = linear(g, layer_norm(g, x, width, 1e-6), width, 4 * width, 0.05)
        x = g.op("Add", x, linear(g, gelu_erf(g, y), 4 * width, width, 0.01))
    x = g.op("Gather", layer_norm(g, x, width, 1e-6), g.index(0), axis=1)
    weights, offsets = g.weight(g.normal((1000, width), 0.05)), g.weight(g.normal((1000,), 0.02))
    g.op("Gemm", x, weights, offsets, transB=1, out="output")
    g.output("output", [BATCH, 1000])
    return g
