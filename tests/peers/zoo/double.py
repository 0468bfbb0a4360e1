"""Evaluates an ONNX model in float64, to tell which of two runtimes is closer to it.

    double.py MODEL INPUTS.npz OUTPUTS.npz

All f32 and f16 tensors, attributes and casts of the graph become f64. onnxruntime evaluates it where it has such kernels, and
onnx's reference evaluator, which is slow, everything else.
"""

import sys

import numpy
import onnx
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from double_ops import OPS

ROUNDED = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)


def widen_tensor(tensor):
    if tensor.data_type in ROUNDED:
        wide = numpy_helper.from_array(numpy_helper.to_array(tensor).astype(numpy.float64), tensor.name)
        tensor.CopyFrom(wide)


def widen_type(kind):
    if kind.HasField("tensor_type") and kind.tensor_type.elem_type in ROUNDED:
        kind.tensor_type.elem_type = TensorProto.DOUBLE
    elif kind.HasField("sequence_type"):
        widen_type(kind.sequence_type.elem_type)


def widen_node(node):
    for attribute in node.attribute:
        if attribute.HasField("t"):
            widen_tensor(attribute.t)
        if attribute.HasField("g"):
            widen_graph(attribute.g)
        if attribute.name in ("to", "dtype") and attribute.i in ROUNDED:
            attribute.i = TensorProto.DOUBLE
        if node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            value = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            attribute.CopyFrom(onnx.helper.make_attribute("value", numpy_helper.from_array(numpy.array(value, numpy.float64))))
    if node.op_type == "ConstantOfShape" and not node.attribute:
        node.attribute.append(onnx.helper.make_attribute("value", numpy_helper.from_array(numpy.zeros(1))))


def widen_graph(graph):
    for tensor in graph.initializer:
        widen_tensor(tensor)
    for value in (*graph.input, *graph.output):
        widen_type(value.type)
    del graph.value_info[:]
    for node in graph.node:
        widen_node(node)


def widen(model):
    """Changes a model to compute in f64."""
    widen_graph(model.graph)
    for function in model.functions:
        for node in function.node:
            widen_node(node)
    return model


def evaluate(model, feeds):
    try:
        import onnxruntime

        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, feeds)
    except Exception:
        return ReferenceEvaluator(model, new_ops=OPS).run(None, feeds)


def main():
    path, inputs, outputs = sys.argv[1:4]
    model = widen(onnx.load(path))
    with numpy.load(inputs) as arrays:
        feeds = {name: arrays[name] for name in arrays.files}
    kinds = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    for name, array in feeds.items():
        if kinds[name] == TensorProto.DOUBLE:
            feeds[name] = array.astype(numpy.float64)
    made = evaluate(model, feeds)
    numpy.savez(outputs, **{f"{index:03}": numpy.asarray(it) for index, it in enumerate(made) if not isinstance(it, list)})


if __name__ == "__main__":
    main()
