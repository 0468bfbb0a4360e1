"""Programs written for LiteRT, before TensorFlow Lite, run on `oarlock.tflite`, with another import and a model in ONNX."""

import numpy as np
import oarlock as ol
import onnx.parser
import pytest
from conftest import REPOSITORY, child, node_model, result_of
from oarlock import tflite
from oarlock.tflite import INSTEAD

DIGITS = REPOSITORY / "docs/src/models/digits.onnx"
IMAGES = np.load(REPOSITORY / "docs/src/models/digits.npy")
EXPECTED = ol.load(str(DIGITS))(IMAGES).numpy()

CLASSIFIES = """
import numpy as np
from tflite_runtime.interpreter import Interpreter

interpreter = Interpreter(model_path="model.tflite", num_threads=2)
interpreter.allocate_tensors()

input_details = interpreter.get_input_details()
output_details = interpreter.get_output_details()
floating_model = input_details[0]["dtype"] == np.float32
assert floating_model and input_details[0]["quantization"] == (0.0, 0)
height = input_details[0]["shape"][2]
width = input_details[0]["shape"][3]
assert (height, width) == (8, 8)

result = []
for image in np.load("digits.npy"):
    input_data = np.expand_dims(image, axis=0)
    interpreter.set_tensor(input_details[0]["index"], input_data)
    interpreter.invoke()
    output_data = interpreter.get_tensor(output_details[0]["index"])
    results = np.squeeze(output_data)
    top_k = results.argsort()[-5:][::-1]
    result.append(results)
result = np.array(result)
"""

RESIZES = """
import numpy as np
import tflite_runtime.interpreter as tflite

try:
    delegates = [tflite.load_delegate("libedgetpu.so.1")]
except (OSError, ValueError):
    delegates = None
images = np.load("digits.npy")
interpreter = tflite.Interpreter("model.tflite", experimental_delegates=delegates)
index = interpreter.get_input_details()[0]["index"]
assert list(interpreter.get_input_details()[0]["shape_signature"]) == [-1, 1, 8, 8]
interpreter.resize_tensor_input(index, images.shape)
interpreter.allocate_tensors()
assert list(interpreter.get_output_details()[0]["shape"]) == [len(images), 10]

def set_input_tensor(interpreter, images):
    tensor_index = interpreter.get_input_details()[0]["index"]
    input_tensor = interpreter.tensor(tensor_index)()
    input_tensor[:] = images

set_input_tensor(interpreter, images)
interpreter.invoke()
result = interpreter.tensor(interpreter.get_output_details()[0]["index"])()
"""

SIGNATURES = """
import numpy as np
from ai_edge_litert.interpreter import Interpreter

with open("model.tflite", "rb") as file:
    interpreter = Interpreter(model_content=file.read())
signatures = interpreter.get_signature_list()
(key,) = signatures
runner = interpreter.get_signature_runner(key)
(name,) = runner.get_input_details()
output = runner(**{name: np.load("digits.npy")})
result = output[signatures[key]["outputs"][0]]
"""

PROGRAMS = {"classifies": CLASSIFIES, "resizes": RESIZES, "signatures": SIGNATURES}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_with_another_import_and_a_model_in_onnx(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # What a file is, is said by what is in it.
    (tmp_path / "model.tflite").symlink_to(DIGITS)
    np.save("digits.npy", IMAGES)
    program = PROGRAMS[name].replace("tflite_runtime.interpreter", "oarlock.tflite")
    program = program.replace("ai_edge_litert.interpreter", "oarlock.tflite")
    np.testing.assert_allclose(result_of(program), EXPECTED, rtol=1e-5, atol=1e-7)


TWO = """
    <ir_version: 10, opset_import: ["": 20]>
    two (float[n, 3] a, int64[n, m] b) => (float[n, 3] twice, int64[n, m] same, int64[?] rest) {
        twice = Add(a, a)
        same = Identity(b)
        c = Constant<value_ints = [-1]>()
        rest = Reshape(b, c)
    }
"""


@pytest.fixture
def two():
    """An interpreter of a model with two inputs and three outputs."""
    return tflite.Interpreter(model_content=onnx.parser.parse_model(TWO).SerializeToString())


def shapes(details):
    return [each["shape"].tolist() for each in details]


def test_details_have_the_fields_of_litert(two):
    inputs, outputs = two.get_input_details(), two.get_output_details()
    assert [(each["name"], each["index"]) for each in inputs + outputs] == [("a", 0), ("b", 1), ("twice", 2), ("same", 3), ("rest", 4)]
    assert [each["dtype"] for each in inputs] == [np.float32, np.int64]
    assert [each["shape_signature"].tolist() for each in inputs + outputs] == [[-1, 3], [-1, -1], [-1, 3], [-1, -1], [-1]]
    for each in inputs + outputs:
        assert each["quantization"] == (0.0, 0) and each["sparsity_parameters"] == {} and each["shape"].dtype == np.int32
        parameters = each["quantization_parameters"]
        assert parameters["scales"].size == parameters["zero_points"].size == parameters["quantized_dimension"] == 0


def test_shapes_follow_those_of_the_inputs(two):
    assert shapes(two.get_input_details() + two.get_output_details()) == [[1, 3], [1, 1], [1, 3], [1, 1], [1]]
    two.resize_tensor_input(0, [2, 3])
    two.resize_tensor_input(1, (2, 5), strict=True)
    assert shapes(two.get_input_details() + two.get_output_details()) == [[2, 3], [2, 5], [2, 3], [2, 5], [1]]
    two.allocate_tensors()
    two.invoke()
    assert shapes(two.get_output_details()) == [[2, 3], [2, 5], [10]]
    two.resize_tensor_input(1, (2, 4))
    assert shapes(two.get_output_details()) == [[2, 3], [2, 4], [1]]
    two.allocate_tensors()
    with pytest.raises(ValueError, match="output 4, `rest`: expected a run before, found none\nhint: call `invoke` first"):
        two.get_tensor(4)


def test_inputs_are_copied_and_outputs_too(two):
    two.allocate_tensors()
    a = np.ones((1, 3), np.float32)
    two.set_tensor(0, a)
    a[:] = 7
    two.invoke()
    made = two.get_tensor(2)
    made[:] = 0
    assert two.get_tensor(2).tolist() == [[2.0] * 3] and two.get_tensor(0).tolist() == [[1.0] * 3]
    two.tensor(0)()[:] = 5
    two.invoke()
    assert two.tensor(2)().tolist() == [[10.0] * 3] and made.sum() == 0
    two.allocate_tensors()
    assert two.get_tensor(0).tolist() == [[5.0] * 3] and two.get_tensor(2).tolist() == [[10.0] * 3]


def test_a_signature_is_a_function_of_names(two):
    assert two.get_signature_list() == {"serving_default": {"inputs": ["a", "b"], "outputs": ["twice", "same", "rest"]}}
    run = two.get_signature_runner()
    made = run(a=np.ones((2, 3), np.float32), b=np.zeros((2, 4), np.int64))
    assert {name: array.shape for name, array in made.items()} == {"twice": (2, 3), "same": (2, 4), "rest": (8,)}
    assert set(run.get_input_details()) == {"a", "b"} and run.get_output_details()["rest"]["shape"].tolist() == [8]
    with pytest.raises(ValueError, match="expected the inputs `a`, `b`, found `a`"):
        run(a=np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match="expected the signature `serving_default`, found `other`"):
        two.get_signature_runner("other")


def test_texts_are_inputs_too():
    interpreter = tflite.Interpreter(model_content=node_model("Identity", element="STRING"))
    interpreter.resize_tensor_input(0, [2])
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array(["a", "bc"]))
    interpreter.invoke()
    assert interpreter.get_tensor(1).tolist() == ["a", "bc"] and interpreter.get_input_details()[0]["dtype"] == np.object_


def test_mistakes_are_told_in_words_of_the_program(two):
    fresh = "expected tensors that are allocated, found none\nhint: call `allocate_tensors` first"
    for call in (two.invoke, lambda: two.get_tensor(0), lambda: two.set_tensor(0, np.ones((1, 3), np.float32)), two.tensor(0)):
        with pytest.raises(ValueError, match=fresh) as raised:
            call()
        assert isinstance(raised.value, RuntimeError)
    two.allocate_tensors()
    for call, said in [
        (lambda: two.set_tensor(0, np.ones((1, 3))), "input 0, `a`: expected float32, found float64\nhint: convert it"),
        (lambda: two.set_tensor(0, np.ones(3, np.float32)), r"input 0, `a`: expected the shape \[1, 3\], found \[3\]\nhint: choose"),
        (lambda: two.set_tensor(2, np.ones(3)), r"expected the number of an input, 0 \(`a`\), 1 \(`b`\), found 2"),
        (lambda: two.get_tensor(5), "expected the number of a tensor from 0 to 4, found 5"),
        (lambda: two.get_tensor(2), "output 2, `twice`: expected a run before, found none\nhint: call `invoke` first"),
        (lambda: two.resize_tensor_input(0, [2, 4]), r"input 0, `a`: expected a shape that fits float32\[n, 3\], found \[2, 4\]"),
        (lambda: two.resize_tensor_input(0, [3]), r"input 0, `a`: expected a shape that fits float32\[n, 3\], found \[3\]"),
    ]:
        with pytest.raises(ValueError, match=said):
            call()
    two.resize_tensor_input(0, [2, 3])
    with pytest.raises(RuntimeError, match="again after `resize_tensor_input`"):
        two.invoke()
    two.allocate_tensors()


def test_a_file_of_tensorflow_lite_says_how_to_convert_it(tmp_path):
    content = b"\x1c\0\0\0TFL3" + bytes(64)
    (tmp_path / "model.tflite").write_bytes(content)
    for given in ({"model_path": tmp_path / "model.tflite"}, {"model_content": content}):
        with pytest.raises(ValueError, match="found a model of TensorFlow Lite\nhint: convert it: `python -m tf2onnx.convert --tflite"):
            tflite.Interpreter(**given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model_path": "no.onnx"}, "`no.onnx`: expected a file, found none"),
        ({}, "expected either `model_path` or `model_content`, found none"),
        ({"model_path": "no.onnx", "model_content": b""}, "expected either `model_path` or `model_content`, found both"),
        ({"model_path": "no.onnx", "num_threads": 0}, "expected at least 1 thread for `num_threads`, found 0"),
        ({"model_path": "no.onnx", "experimental_delegates": ["one"]}, "expected no delegates, found 1\nhint: choose the device"),
    ],
)
def test_an_interpreter_that_cannot_be_made_says_why(given, said):
    with pytest.raises(ValueError, match=said):
        tflite.Interpreter(**given)


def test_a_model_with_an_unknown_op_or_a_sequence_is_not_supported():
    with pytest.raises(NotImplementedError, match="Nothing") as raised:
        tflite.Interpreter(model_content=node_model("Nothing", "acme"))
    assert isinstance(raised.value, ValueError)
    text = '<ir_version: 10, opset_import: ["": 20]> g (seq(float[n]) x) => (int64 y) { y = SequenceLength(x) }'
    with pytest.raises(NotImplementedError, match=r"`x`: expected an array, found sequence of float32\[n\]\nhint: run the model with"):
        tflite.Interpreter(model_content=onnx.parser.parse_model(text).SerializeToString()).allocate_tensors()


def test_delegates_are_refused_as_programs_expect():
    with pytest.raises(ValueError, match="expected no delegates, found `libedgetpu.so.1`\nhint: choose the device with `oarlock.set_device`"):
        tflite.load_delegate("libedgetpu.so.1")


def test_a_number_of_threads_counts_before_the_first_model(tmp_path):
    code = f"""
        import oarlock
        from oarlock.tflite import Interpreter
        Interpreter({str(DIGITS)!r}, num_threads=1)
        print(oarlock.get_flags("threads")["threads"])
    """
    assert child(code).strip() == "1"


def test_names_are_those_of_litert_or_say_what_to_do(two):
    theirs = pytest.importorskip("ai_edge_litert.interpreter")
    # What its module imports, and a switch that changes nothing.
    apart = {"ctypes", "enum", "metrics", "np", "os", "platform", "sys", "warnings", "experimental_compress_quantization_zero_points"}
    for one, other in [(theirs, tflite), (theirs.Interpreter, two), (theirs.SignatureRunner, tflite.SignatureRunner)]:
        names = {name for name in dir(one) if name[0] != "_"} - apart
        assert names - set(dir(other)) <= set(INSTEAD)
        assert not set(INSTEAD) & set(dir(other))


def test_names_without_support_say_what_to_do(two):
    for where, name in [(tflite, "Delegate"), (two, "get_tensor_details")]:
        with pytest.raises(AttributeError, match=f"expected a name that `.*` has, found `{name}`\nhint: "):
            getattr(where, name)
    assert two.num_subgraphs() == 1
