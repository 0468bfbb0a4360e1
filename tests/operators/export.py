"""Writes the cases of the operator tests to a directory.

`onnx` are the node tests of the package onnx with the results of its reference; `numpy` are our own with the results of NumPy.
"""

import pathlib
import sys
import warnings

import numpy
import numpy_cases
import onnx
from case_file import CaseFile, LeftOut
from onnx.backend.test.loader import load_model_tests

RANDOM_OPS = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


def attribute(value):
    """An attribute as a Python value."""
    if value.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
        raise LeftOut("an attribute that is a graph")
    if value.type in (onnx.AttributeProto.TYPE_PROTO, onnx.AttributeProto.TYPE_PROTOS):
        raise LeftOut("an attribute that is a type")
    if value.type in (onnx.AttributeProto.SPARSE_TENSOR, onnx.AttributeProto.SPARSE_TENSORS):
        raise LeftOut("an attribute that is a sparse tensor")
    found = onnx.helper.get_attribute_value(value)
    if isinstance(found, onnx.TensorProto):
        return onnx.numpy_helper.to_array(found)
    if isinstance(found, bytes):
        return found.decode()
    if isinstance(found, (int, float)):
        return found
    return [item.decode() if isinstance(item, bytes) else item for item in found]


def array(value, kind):
    """Converts a value of a test to an array with the dtype that the model declares."""
    if kind.WhichOneof("value") != "tensor_type":
        raise LeftOut("an operand of the kind " + kind.WhichOneof("value").removesuffix("_type"))
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    value = numpy.asarray(value)
    declared = onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
    if value.dtype != declared and value.dtype.kind not in "OU":
        raise LeftOut("values of another dtype than the model declares")
    return value


def draws(node, arrays):
    """True if the values of the outputs are random."""
    if node.op_type == "Dropout" and len(arrays) == 3:
        ratio = arrays[1]
        return bool(arrays[2]) and (ratio is None or bool(ratio != 0))
    return node.op_type in RANDOM_OPS


def write_onnx(cases, test):
    """Writes one test of the package onnx."""
    graph = test.model.graph
    if len(graph.node) != 1:
        raise LeftOut("more than one node")
    [node], [(given, wanted)] = graph.node, test.data_sets
    values = {info.name: (value, info.type) for info, value in zip(graph.input, given, strict=True)}
    results = {info.name: (value, info.type) for info, value in zip(graph.output, wanted, strict=True)}
    if not set(filter(None, node.input)) <= set(values) or not set(filter(None, node.output)) <= set(results):
        raise LeftOut("operands that are no inputs and outputs of the model")
    inputs = [array(*values[name]) if name else None for name in node.input]
    outputs = [array(*results[name]) if name else None for name in node.output]
    opsets = {entry.domain: entry.version for entry in test.model.opset_import}
    cases.write(
        test.name.removeprefix("test_"),
        node.op_type,
        opsets[node.domain],
        inputs,
        outputs,
        domain=node.domain,
        attributes={value.name: attribute(value) for value in node.attribute},
        rtol=test.rtol,
        atol=test.atol,
        only_shape=draws(node, inputs),
    )


def main():
    """Writes both sets of cases."""
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    with CaseFile(directory / "onnx") as cases:
        # Some tests overflow on purpose.
        with warnings.catch_warnings(action="ignore"):
            tests = load_model_tests(kind="node")
        for test in tests:
            try:
                write_onnx(cases, test)
            except LeftOut as reason:
                cases.leave_out(str(reason))
        report("onnx", cases)
    with CaseFile(directory / "numpy") as cases:
        numpy_cases.write(cases)
        report("numpy", cases)


def report(source, cases):
    """Prints how many cases were written and omitted."""
    print(f"{source}: {cases.written} cases")
    for reason, count in sorted(cases.left_out.items(), key=lambda entry: -entry[1]):
        print(f"{source}: left out {count} with {reason}")


if __name__ == "__main__":
    main()
