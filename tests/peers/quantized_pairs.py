"""Writes small networks in f32 and the same in 8 bits, for `scripts/check-quantized`.

    quantized_pairs.py DIRECTORY

A network is NAME.f32.onnx and NAME.u8.onnx, in QDQ form (QuantizeLinear and DequantizeLinear), with random weights.
"""

import argparse
import pathlib

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


class Network:
    """A network while it is built, in f32 or in 8 bits. Layers take and return the names of values."""

    def __init__(self, is_quantized, shape):
        self.is_quantized = is_quantized
        self.shape = shape
        self.random = numpy.random.default_rng(7)
        self.nodes, self.constants, self.count = [], [], 0

    def constant(self, value, dtype=numpy.float32):
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.asarray(value, dtype), name))
        return name

    def op(self, kind, *inputs, **attributes):
        self.count += 1
        name = f"{kind}{self.count}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def activation(self, x, zero=128):
        """Quantizes an activation: 0 is the zero point of one that is never negative."""
        if not self.is_quantized:
            return x
        scale, zero = self.constant(0.03), self.constant(zero, numpy.uint8)
        return self.op("DequantizeLinear", self.op("QuantizeLinear", x, scale, zero), scale, zero)

    def weights(self, shape, axis=0):
        """Weights with a scale for each output, which the axis counts."""
        others = tuple(index for index in range(len(shape)) if index != axis)
        values = self.random.standard_normal(shape) / numpy.sqrt(numpy.prod(shape) / shape[axis])
        if not self.is_quantized:
            return self.constant(values)
        scales = numpy.abs(values).max(axis=others, keepdims=True) / 127
        whole = self.constant(numpy.round(values / scales), numpy.int8)
        zeros = self.constant(numpy.zeros(shape[axis]), numpy.int8)
        return self.op("DequantizeLinear", whole, self.constant(scales.reshape(-1)), zeros, axis=axis)

    def conv(self, x, inputs, outputs, kernel, stride=1, group=1):
        weights = self.weights((outputs, inputs // group, kernel, kernel))
        y = self.op("Conv", x, weights, strides=[stride] * 2, pads=[kernel // 2] * 4, group=group)
        return self.activation(self.op("Relu", y), zero=0)

    def product(self, x, inputs, outputs):
        return self.activation(self.op("MatMul", x, self.weights((inputs, outputs), axis=1)))

    def save(self, path, y):
        y = self.op("Identity", y)
        graph = helper.make_graph(
            self.nodes,
            path.name,
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_empty_tensor_value_info(y)],
            self.constants,
        )
        model = onnx.shape_inference.infer_shapes(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        )
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, path)


def separable(network):
    """Depthwise and pointwise convolutions, as in MobileNet."""
    x = network.conv(network.activation("x"), 3, 32, 3, stride=2)
    for inputs, outputs, stride in ((32, 64, 1), (64, 128, 2), (128, 128, 1)):
        x = network.conv(x, inputs, inputs, 3, stride, group=inputs)
        x = network.conv(x, inputs, outputs, 1)
    return classifier(network, x, 128)


def residual(network):
    """Blocks of 3×3 and 1×1 convolutions around a residual, as in ResNet."""
    x = network.conv(network.activation("x"), 3, 64, 7, stride=2)
    x = network.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for _ in range(2):
        y = network.conv(x, 64, 32, 1)
        y = network.conv(y, 32, 32, 3)
        y = network.activation(network.op("Conv", y, network.weights((64, 32, 1, 1))))
        x = network.activation(network.op("Relu", network.op("Add", x, y)), zero=0)
    x = network.conv(x, 64, 96, 3, stride=2)
    x = network.conv(x, 96, 96, 3)
    return classifier(network, x, 96)


def classifier(network, x, channels):
    pooled = network.activation(network.op("GlobalAveragePool", x), zero=0)
    return network.product(network.op("Flatten", pooled), channels, 100)


def transformer(network):
    """Attention and a perceptron, as in BERT."""
    x = network.activation("x")
    heads = network.constant([0, 0, 4, 32], numpy.int64)

    def head_of(name, order):
        return network.op("Transpose", network.op("Reshape", name, heads), perm=order)

    query = head_of(network.product(x, 128, 128), [0, 2, 1, 3])
    key = head_of(network.product(x, 128, 128), [0, 2, 3, 1])
    value = head_of(network.product(x, 128, 128), [0, 2, 1, 3])
    scores = network.op("Div", network.op("MatMul", query, key), network.constant(32**0.5))
    mixed = network.op("MatMul", network.op("Softmax", scores, axis=-1), value)
    mixed = network.op("Transpose", mixed, perm=[0, 2, 1, 3])
    mixed = network.activation(network.op("Reshape", mixed, network.constant([0, 0, 128], numpy.int64)))
    x = normalized(network, network.op("Add", x, network.product(mixed, 128, 128)))
    y = network.product(network.activation(x), 128, 512)
    y = network.activation(network.op("Relu", y), zero=0)
    return normalized(network, network.op("Add", x, network.product(y, 512, 128)))


def normalized(network, x):
    scale, shift = network.constant(numpy.ones(128)), network.constant(numpy.zeros(128))
    return network.op("LayerNormalization", x, scale, shift)


NETWORKS = {
    "separable": (separable, [1, 3, 64, 64]),
    "residual": (residual, [1, 3, 64, 64]),
    "transformer": (transformer, [1, 32, 128]),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    directory = parser.parse_args().directory
    directory.mkdir(parents=True, exist_ok=True)
    for name, (build, shape) in NETWORKS.items():
        for precision, is_quantized in (("f32", False), ("u8", True)):
            network = Network(is_quantized, shape)
            network.save(directory / f"{name}.{precision}.onnx", build(network))


if __name__ == "__main__":
    main()
