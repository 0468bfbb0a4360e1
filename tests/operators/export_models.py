"""Writes the tests of the package onnx as whole models, for `tests/tests/backend`.

Each line of JSON is a test: the positions of its model and tensors in the file beside it. A value is a tensor, a list (a
sequence), or `null` (an empty optional).
"""

import json
import pathlib
import sys
import warnings

import numpy
import onnx
from case_file import CaseFile, LeftOut, within_rounding
from export import RANDOM_OPS
from onnx.backend.test.loader import load_model_tests

KINDS = ["node", "simple", "pytorch-converted", "pytorch-operator"]


def kind_of(kind):
    """The kind of an ONNX type: `tensor`, `sequence`, `optional` or another."""
    return kind.WhichOneof("value").removesuffix("_type")


def parsed(content, kind):
    """Parses a value from a file beside a model."""
    protos = {"tensor": onnx.TensorProto, "sequence": onnx.SequenceProto, "optional": onnx.OptionalProto}
    proto = protos.get(kind_of(kind))
    if proto is None:
        raise LeftOut("values of the kind " + kind_of(kind))
    proto = proto()
    proto.ParseFromString(content)
    return proto


def plain(value):
    """Converts a protobuf value to an array or a list."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return onnx.numpy_helper.to_optional(value)
    return value


class ModelFile(CaseFile):
    """Writes tests of whole models."""

    def value(self, value, kind):
        """The JSON form of a value."""
        value = plain(value)
        if kind_of(kind) == "optional":
            return None if value is None else self.value(value, kind.optional_type.elem_type)
        if kind_of(kind) == "sequence":
            return [self.value(element, kind.sequence_type.elem_type) for element in value]
        if kind_of(kind) != "tensor":
            raise LeftOut("values of the kind " + kind_of(kind))
        array = numpy.asarray(value)
        declared = onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
        if array.dtype != declared and array.dtype.kind not in "OUS":
            raise LeftOut("values of another dtype than the model declares")
        return self._tensor(array)

    def model(self, kind, test, content, data_sets):
        """Writes a test with all its data sets."""
        model = onnx.ModelProto()
        model.ParseFromString(content)
        weights = {weight.name for weight in model.graph.initializer}
        given = [info for info in model.graph.input if info.name not in weights]
        sets = []
        for inputs, outputs in data_sets:
            pairs = [(given, inputs), (model.graph.output, outputs)]
            sets.append([[self.value(*pair) for pair in zip(values, (i.type for i in infos))] for infos, values in pairs])
        at = self.bytes.tell()
        self.bytes.write(content)
        line = {
            "name": f"{kind}/{test.name.removeprefix('test_')}",
            "at": at,
            "size": len(content),
            "sets": sets,
            "rtol": test.rtol,
            "atol": within_rounding(test.atol, [plain(value) for _, outputs in data_sets for value in outputs]),
            "only_shape": any(node.op_type in RANDOM_OPS for node in model.graph.node),
        }
        self.lines.write(json.dumps(line, allow_nan=False) + "\n")
        self.written += 1


def stored(test):
    """The model and the data of a test in a directory."""
    directory = pathlib.Path(test.model_dir)
    content = (directory / "model.onnx").read_bytes()
    model = onnx.load_from_string(content)
    weights = {weight.name for weight in model.graph.initializer}
    given = [info for info in model.graph.input if info.name not in weights]
    sets = []
    for data in sorted(directory.glob("test_data_set*")):
        read = lambda what, infos: [parsed((data / f"{what}_{at}.pb").read_bytes(), i.type) for at, i in enumerate(infos)]
        sets.append((read("input", given), read("output", model.graph.output)))
    return content, sets


def main():
    """Writes the file."""
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    reasons = {}
    with ModelFile(directory / "models") as cases:
        for kind in KINDS:
            with warnings.catch_warnings(action="ignore"):
                tests = load_model_tests(kind=kind)
            for test in tests:
                try:
                    if test.model is not None:
                        content, sets = test.model.SerializeToString(), test.data_sets
                    else:
                        content, sets = stored(test)
                    cases.model(kind, test, content, sets)
                except LeftOut as reason:
                    cases.leave_out(str(reason))
                    reasons[f"{kind}/{test.name.removeprefix('test_')}"] = str(reason)
        print(f"models: {cases.written} tests")
        for reason, count in sorted(cases.left_out.items(), key=lambda entry: -entry[1]):
            print(f"models: left out {count} with {reason}")
    (directory / "models.left-out.json").write_text(json.dumps(reasons, indent=1))


if __name__ == "__main__":
    main()
