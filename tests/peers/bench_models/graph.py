"""Builds a model with seeded weights, and the inputs that it is measured with.

The files are the same on every machine: weights and inputs come from one seeded generator, in the order in which a model asks for
them, and names are numbered in that order too.
"""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8
DOMAINS = {"com.microsoft": 1, "ai.onnx.ml": 3}
# Part of the bytes of the models that the older figures are about.
PRODUCER = "peers/make_models.py"
# The symbol of the batch dimension, and its size in the second file of inputs.
BATCH = "batch"
LARGE_BATCH = 8


class GraphBuilder:
    """A graph that grows node by node."""

    def __init__(self, name, seed):
        self.name, self.generator = name, numpy.random.default_rng(seed)
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.last_number, self.constants = 0, {}
        # Values of the inputs with batch 1 and with a large one.
        self.feeds, self.large_feeds = {}, {}

    def fresh(self, prefix):
        """A new name."""
        self.last_number += 1
        return f"{prefix}_{self.last_number}"

    def weight(self, array, prefix="w"):
        name = self.fresh(prefix)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def constant(self, array, prefix="c"):
        """A weight that nodes with equal values share."""
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = self.weight(array, prefix)
        return self.constants[key]

    def integers(self, *values):
        return self.constant(numpy.array(values, numpy.int64), "shape")

    def index(self, value):
        """An integer without dimensions."""
        return self.constant(numpy.array(value, numpy.int64))

    def scalar(self, value):
        return self.constant(numpy.array(value, numpy.float32), "scalar")

    def normal(self, shape, deviation):
        return self.generator.standard_normal(shape, dtype=numpy.float32) * numpy.float32(deviation)

    def uniform(self, shape, bound):
        return self.generator.uniform(-bound, bound, shape).astype(numpy.float32)

    def op(self, kind, *inputs, out=None, outputs=1, domain=None, **attributes):
        """Adds a node, and returns the name of its output, or the names of its outputs."""
        names = [out] if out else [self.fresh(kind.lower()) for _ in range(outputs)]
        return self.node(kind, inputs, names, domain, **attributes)

    def node(self, kind, inputs, names, domain=None, **attributes):
        """Adds a node whose outputs have these names; an empty one is left out."""
        made = helper.make_node(kind, list(inputs), names, name=self.fresh("n_" + kind), domain=domain, **attributes)
        self.nodes.append(made)
        return names[0] if len(names) == 1 else names

    def input(self, name, array):
        """An input of one fixed shape."""
        self.declare_input(name, array, array.shape)
        self.feeds[name] = array
        return name

    def batched(self, name, array, axis=0, symbols=None):
        """An input with a symbolic batch along an axis, given the values for the large batch; `symbols` names other axes."""
        shape = list(array.shape)
        for place, symbol in {**(symbols or {}), axis: BATCH}.items():
            shape[place] = symbol
        self.declare_input(name, array, shape)
        self.feeds[name] = numpy.ascontiguousarray(numpy.take(array, [0], axis))
        self.large_feeds[name] = array
        return name

    def declare_input(self, name, array, shape):
        dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def output(self, name, shape, dtype=TensorProto.FLOAT):
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def save(self, folder):
        """Writes the model and its inputs into a folder, and returns the path of the model."""
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        used = {node.domain for node in self.nodes} & set(DOMAINS)
        imports = [helper.make_opsetid("", OPSET), *(helper.make_opsetid(it, DOMAINS[it]) for it in sorted(used))]
        model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION, producer_name=PRODUCER)
        # The checker refuses ops that onnxruntime added to the domain of ONNX.
        if all(node.domain or onnx.defs.has(node.op_type) for node in self.nodes):
            onnx.checker.check_model(model, full_check=True)
        path = folder / f"{self.name}.onnx"
        onnx.save(model, path)
        numpy.savez(path.with_suffix(".inputs.npz"), **self.feeds)
        if self.large_feeds:
            numpy.savez(path.with_suffix(f".batch{LARGE_BATCH}.npz"), **self.large_feeds)
        return path
