"""Classifiers say the score of each class by its label, as in onnxruntime."""

import numpy as np
import onnx
import pytest
from oarlock import onnxruntime as ort

SCORES = np.array([[0.25, 0.75, 0], [0.1, 0.2, 0.7]], np.float32)
LABELS = {"text": ["cat", "dog", ""], "whole numbers": [7, -1, 2**40]}


def zip_map(labels):
    """A model that pairs scores with labels, beside one output that is an array."""
    helper, types = onnx.helper, onnx.TensorProto
    name, key = ("strings", types.STRING) if isinstance(labels[0], str) else ("int64s", types.INT64)
    nodes = [
        helper.make_node("ZipMap", ["x"], ["maps"], domain="ai.onnx.ml", **{f"classlabels_{name}": labels}),
        helper.make_node("Identity", ["x"], ["scores"]),
    ]
    tensor = helper.make_tensor_type_proto(types.FLOAT, [])
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(key, tensor))
    given = helper.make_tensor_value_info("x", types.FLOAT, [None, len(labels)])
    made = [helper.make_value_info("maps", kind), helper.make_tensor_value_info("scores", types.FLOAT, [None, len(labels)])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    graph = helper.make_graph(nodes, "graph", [given], made)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def session_of(package, labels):
    return package.InferenceSession(zip_map(labels), providers=["CPUExecutionProvider"])


@pytest.fixture(params=LABELS)
def labels(request):
    return LABELS[request.param]


def test_scores_come_in_maps(either, labels):
    session = session_of(either, labels)
    key = "string" if isinstance(labels[0], str) else "int64"
    assert next((end.name, end.type) for end in session.get_outputs()) == ("maps", f"seq(map({key},tensor(float)))")
    maps, scores = session.run(None, {"x": SCORES})
    assert maps == [dict(zip(labels, row, strict=True)) for row in SCORES.tolist()]
    assert {type(each) for row in maps for each in [*row, *row.values()]} == {type(labels[0]), float}
    np.testing.assert_array_equal(scores, SCORES)
    assert session.run(["maps"], {"x": SCORES[:0]}) == [[]]
    assert session.run(["maps"], {"x": SCORES[:1]}) == [maps[:1]]


def test_bound_maps_are_copied_as_maps(either, labels):
    session = session_of(either, labels)
    binding = session.io_binding()
    binding.bind_cpu_input("x", SCORES)
    for name in ("scores", "maps"):
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    scores, maps = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(scores, SCORES)
    assert maps == session.run(["maps"], {"x": SCORES})[0]


def test_labels_are_those_of_the_model(labels):
    assert session_of(ort, labels).run(["maps"], {"x": SCORES})[0][0] == dict(zip(labels, SCORES[0].tolist(), strict=True))
