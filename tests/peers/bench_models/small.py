"""Models whose run takes little more than a call: what they measure is overhead."""

import numpy

from graph import GraphBuilder


def mlp():
    g = GraphBuilder("mlp", 7)
    x = g.input("input", g.normal((1, 784), 1))
    layers = [(784, 256), (256, 256), (256, 10)]
    for number, (inputs, outputs) in enumerate(layers, 1):
        is_last = number == len(layers)
        weights, offsets = g.weight(g.normal((outputs, inputs), numpy.sqrt(2 / inputs))), g.weight(g.normal((outputs,), 0.05))
        x = g.op("Gemm", x, weights, offsets, transB=1, out="output" if is_last else None)
        if not is_last:
            x = g.op("Relu", x)
    g.output("output", [1, 10])
    return g


def add1():
    g = GraphBuilder("add1", 1)
    a = g.input("a", g.normal((1,), 1))
    b = g.input("b", g.normal((1,), 1))
    g.op("Add", a, b, out="output")
    g.output("output", [1])
    return g
