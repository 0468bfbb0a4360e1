"""Lists as inputs become what NumPy makes of them, as in onnxruntime."""

import numpy as np
import pytest
from conftest import node_model
from oarlock import onnxruntime as ort

LISTS = {
    "whole numbers": [1, -2, 3],
    "small ones": [1, 2],
    "nested": [[1, 2], [3, 4]],
    "deep": [[[1.0]], [[2.0]]],
    "more than a byte": [300],
    "more than 32 bits": [2**40],
    "more than 64 bits": [2**70],
    "floats": [1.5, -2.5],
    "floats and whole numbers": [1.5, 2],
    "no number": [float("nan"), float("inf")],
    "a large float": [1e300],
    "booleans": [True, False],
    "text": ["a", ""],
    "text of digits": ["1", "2"],
    "text beside numbers": [1, "a"],
    "ragged": [[1], [2, 3]],
    "ragged in depth": [1, [2]],
    "arrays": [np.ones(2, np.float32), np.zeros(2, np.float32)],
    "arrays of another dtype": [np.ones(2), np.zeros(2)],
    "arrays of whole numbers": [np.array([1, 2]), np.array([3, 4])],
    "arrays beside lists": [[1, 2], np.array([3, 4])],
    "numbers of NumPy": [np.float32(1.5), np.int8(2)],
    "tuples within": [(1, 2), [3, 4]],
    "nothing": [],
    "lists of nothing": [[], []],
    "None": [None],
    "a complex number": [1j],
    "bytes": [b"ab"],
}
DTYPES = {"FLOAT": "float32", "DOUBLE": "float64"}
ELEMENTS = ["FLOAT", "DOUBLE", "FLOAT16", "INT8", "UINT8", "INT16", "INT32", "INT64", "UINT64", "BOOL", "STRING"]


def outcome(package, element, value):
    """What a model that returns its input says: dtype, shape and elements, or that it refuses."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(node_model("Identity", element=element))
    for end in [*model.graph.input, *model.graph.output]:
        end.type.tensor_type.ClearField("shape")
    session = package.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    try:
        (made,) = session.run(None, {"x": value})
    except RuntimeError:
        return "refused"
    return made.dtype.name, made.shape, str(made.tolist())


def by_numpy(element, value):
    """What NumPy makes of a list, in the same form."""
    try:
        if element == "STRING":
            array = np.array(value, object)
            array = np.array([str(each) for each in array.flat], object).reshape(array.shape)
        else:
            array = np.array(value, DTYPES.get(element, element.lower()))
    except (ValueError, TypeError, OverflowError):
        return "refused"
    return array.dtype.name, array.shape, str(array.tolist())


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize("name", LISTS)
# NumPy warns about numbers that become infinite, wherever it is asked.
@pytest.mark.filterwarnings("ignore:overflow encountered in cast", "ignore:invalid value encountered in cast")
def test_lists_become_what_numpy_makes_of_them(either, name, element):
    assert outcome(either, element, LISTS[name]) == by_numpy(element, LISTS[name])


def test_lists_fit_the_dtype_of_the_input():
    assert outcome(ort, "INT32", [[1, 2]]) == ("int32", (1, 2), "[[1, 2]]")
    assert outcome(ort, "BFLOAT16", [1, 2.5]) == ("bfloat16", (2,), "[1.0, 2.5]")
    session = ort.InferenceSession(node_model("Identity", element="UINT8"))
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match="input `x`: .* that uint8 holds"):
        session.run(None, {"x": [300]})


@pytest.mark.parametrize("element", ELEMENTS)
def test_tuples_and_numbers_are_taken_as_lists_are(element):
    assert outcome(ort, element, (1, 0)) == outcome(ort, element, [1, 0])
    dtype, shape, made = outcome(ort, element, 1)
    assert (dtype, shape) == (outcome(ort, element, [1])[0], ())
    assert f"[{made}]" == outcome(ort, element, [1])[2] or element == "STRING"


@pytest.mark.parametrize("element", ELEMENTS)
@pytest.mark.parametrize(
    "array",
    [np.array([1, 2]), np.array([1, 2], np.int32), np.array([1.0]), np.array([1], np.float32), np.array([True]), np.array(["a"])],
    ids=lambda array: array.dtype.name,
)
def test_arrays_keep_their_dtype(either, element, array):
    session = either.InferenceSession(node_model("Identity", element=element), providers=["CPUExecutionProvider"])
    expected = (DTYPES | {"STRING": "str32"}).get(element, element.lower())
    if array.dtype.name == expected:
        assert session.run(None, {"x": array})[0].tolist() == array.tolist()
        return
    with pytest.raises(either.capi.onnxruntime_pybind11_state.InvalidArgument):
        session.run(None, {"x": array})


def test_objects_in_arrays_become_text(either):
    session = either.InferenceSession(node_model("Identity", element="STRING"), providers=["CPUExecutionProvider"])
    for given in [np.array(["a", "bc"], object), np.array([1, 2.5], object), np.array([], object)]:
        assert session.run(None, {"x": given})[0].tolist() == [str(each) for each in given]
    numbers = either.InferenceSession(node_model("Relu"), providers=["CPUExecutionProvider"])
    with pytest.raises(either.capi.onnxruntime_pybind11_state.InvalidArgument):
        numbers.run(None, {"x": np.array([1, 2], object)})


def test_optional_inputs_may_be_none(either):
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [2]))
    ends = [helper.make_value_info(name, kind) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "graph", ends[:1], ends[1:])
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    session = either.InferenceSession(source, providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].type == "optional(tensor(float))"
    assert session.run(None, {"x": None}) == [None]
    assert session.run(None, {"x": np.ones(2, np.float32)})[0].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([[1], [2, 3]], "input `x`: expected lists of one shape, found lists of different lengths or depths\nhint: pad them"),
        ([1, [2]], "input `x`: expected lists of one shape, found lists of different"),
        ([1, "a"], "input `x`: expected elements that float32 holds, found `a`, which is of type str"),
        ([[1j]], "input `x`: expected elements that float32 holds, found `1j`, which is of type complex"),
        ([b"ab"], "input `x`: expected elements that float32 holds, found `b'ab'`, which is of type bytes"),
    ],
)
def test_messages_say_what_is_wrong_with_a_list(value, told):
    session = ort.InferenceSession(node_model("Identity"))
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument) as caught:
        session.run(None, {"x": value})
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    "value",
    [
        {1}, object(), iter([1]), {"a": 1}, [[1], [2, 3]], b"ab", "a", ["a"], np.array(["2024-01-01"], "datetime64[s]"),
        np.ones(1, np.complex64),
    ],  # fmt: skip
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_input_raises_what_programs_catch(either, value):
    session = either.InferenceSession(node_model("Identity"), providers=["CPUExecutionProvider"])
    with pytest.raises((RuntimeError, either.capi.onnxruntime_pybind11_state.InvalidArgument)):
        session.run(None, {"x": value})


def test_one_element_is_a_scalar(either):
    session = either.InferenceSession(scalar_model(), providers=["CPUExecutionProvider"])
    value = either.OrtValue.ortvalue_from_numpy(np.array([3.0], np.float32))
    for given in [np.array(3.0, np.float32), np.array([3.0], np.float32), np.array([[3.0]], np.float32), [3.0], [[3.0]]]:
        assert session.run(None, {"x": given})[0].item() == 4
    assert session.run_with_ort_values(None, {"x": value})[0].numpy().item() == 4
    assert ort.InferenceSession(scalar_model()).run(None, {"x": [3.0]})[0].shape == ()
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match=r"expected float32\[\], found float32\[2\]"):
        ort.InferenceSession(scalar_model()).run(None, {"x": [3.0, 4.0]})


def scalar_model():
    """A model that adds one to a scalar."""
    parser = pytest.importorskip("onnx.parser")
    text = '<ir_version: 8, opset_import: ["": 17]> g (float x) => (float y) <float one = {1}> { y = Add(x, one) }'
    return parser.parse_model(text).SerializeToString()
