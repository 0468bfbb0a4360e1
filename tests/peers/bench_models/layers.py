"""Layers that several models share."""

import numpy

# Biases of this size keep activations near 1 in deep networks whose activation is not homogeneous, as SiLU and HardSwish are.
STEADY_BIAS = 0.5


def pair(value):
    return [value, value] if isinstance(value, int) else list(value)


def conv(g, x, inputs, outputs, kernel, stride=1, padding=0, groups=1, gain=1.0, bias=0.05):
    """A convolution into which the batch norm after it was folded. `gain` is relative to what keeps the deviation with ReLU."""
    rows, columns = pair(kernel)
    deviation = gain * numpy.sqrt(2.0 / (inputs // groups * rows * columns))
    weights = g.weight(g.normal((outputs, inputs // groups, rows, columns), deviation))
    offsets = g.weight(g.normal((outputs,), bias))
    sizes = {"kernel_shape": [rows, columns], "strides": pair(stride), "pads": pair(padding) * 2, "dilations": [1, 1]}
    return g.op("Conv", x, weights, offsets, **sizes, group=groups)


def conv_transpose(g, x, inputs, outputs):
    """A convolution that doubles height and width."""
    weights = g.weight(g.normal((inputs, outputs, 2, 2), numpy.sqrt(2.0 / inputs)))
    offsets = g.weight(g.normal((outputs,), 0.05))
    sizes = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [0, 0, 0, 0], "dilations": [1, 1]}
    return g.op("ConvTranspose", x, weights, offsets, **sizes, group=1)


def upsample(g, x, factor=2):
    """The nearest pixels, as `torch.nn.Upsample` is exported."""
    scales = g.constant(numpy.array([1, 1, factor, factor], numpy.float32), "scales")
    mode = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    return g.op("Resize", x, "", scales, **mode)


def silu(g, x):
    return g.op("Mul", x, g.op("Sigmoid", x))


def linear(g, x, inputs, outputs, deviation=0.02, bias=True):
    y = g.op("MatMul", x, g.weight(g.normal((inputs, outputs), deviation)))
    return g.op("Add", y, g.weight(g.normal((outputs,), 0.02))) if bias else y


def layer_norm(g, x, width, epsilon):
    scale, offset = g.weight(1 + g.normal((width,), 0.02)), g.weight(g.normal((width,), 0.02))
    return g.op("LayerNormalization", x, scale, offset, axis=-1, epsilon=epsilon)


def gelu_erf(g, x):
    e = g.op("Add", g.op("Erf", g.op("Div", x, g.scalar(numpy.sqrt(2.0)))), g.scalar(1.0))
    return g.op("Mul", g.op("Mul", x, e), g.scalar(0.5))


def gelu_tanh(g, x):
    c = g.op("Mul", g.op("Pow", x, g.scalar(3.0)), g.scalar(0.044715))
    t = g.op("Tanh", g.op("Mul", g.op("Add", x, c), g.scalar(numpy.sqrt(2 / numpy.pi))))
    return g.op("Mul", g.op("Mul", x, g.scalar(0.5)), g.op("Add", t, g.scalar(1.0)))


def axis_size(g, x, axis):
    """The size of an axis, as exporters read it from a tensor with dynamic shapes: an integer without dimensions."""
    return g.op("Gather", g.op("Shape", x), g.index(axis), axis=0)


def shape_of(g, *sizes):
    """A shape from numbers and names of sizes."""
    parts = [g.integers(it) if isinstance(it, int) else g.op("Unsqueeze", it, g.integers(0)) for it in sizes]
    return g.op("Concat", *parts, axis=0)
