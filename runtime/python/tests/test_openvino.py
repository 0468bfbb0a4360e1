"""Programs written for OpenVINO run on `oarlock.openvino`, with only the import changed."""

import io
import threading

import numpy as np
import oarlock as ol
import onnx
import onnx.parser
import pytest
from conftest import REPOSITORY, child, node_model, precisions, result_of
from oarlock import openvino as ov
from oarlock.openvino import INSTEAD as PACKAGE, properties as props
from oarlock.openvino._model import INSTEAD as MODEL
from oarlock.openvino._request import INSTEAD as REQUEST
from oarlock.openvino.properties import hint as hints

DIGITS = str(REPOSITORY / "docs/src/models/digits.onnx")
IMAGES = np.load(REPOSITORY / "docs/src/models/digits.npy")
EXPECTED = ol.load(DIGITS)(IMAGES).numpy()

TWO = """
    <ir_version: 10, opset_import: ["": 20]>
    two (float[n, 3] a, int64[n, 3] b) => (float[n, 3] sum, int64[n, 3] twice) { c = Cast<to = 1>(b) sum = Add(a, c) twice = Add(b, b) }
"""

CALLS = """
import numpy as np
import openvino as ov

core = ov.Core()
model = core.read_model(model="digits.onnx")
compiled_model = core.compile_model(model=model, device_name="CPU")

input_layer = compiled_model.input(0)
output_layer = compiled_model.output(0)
assert input_layer.any_name == "image" and input_layer.element_type == ov.Type.f32
assert input_layer.partial_shape[0].is_dynamic and input_layer.partial_shape[2].get_length() == 8

images = np.load("digits.npy")
result = compiled_model([images])[output_layer]
for inputs in (images, {"image": images}, {0: images}, {input_layer: images}, {input_layer.any_name: images}):
    results = compiled_model(inputs)
    assert (results[0] == result).all() and (results["probabilities"] == result).all()
    assert (next(iter(results.values())) == result).all()
"""

REQUESTS = """
import numpy as np
import openvino as ov

core = ov.Core()
model = core.read_model("digits.onnx")
images = np.load("digits.npy")
model.reshape([len(images), 1, 8, 8])
if len(model.inputs) != 1 or len(model.outputs) != 1:
    raise SystemExit("Sample supports only single input and output topologies")
compiled_model = core.compile_model(model, "AUTO")
N, C, H, W = compiled_model.input().shape
assert (C, H, W) == (1, 8, 8) and list(compiled_model.output().shape) == [N, 10]

infer_request = compiled_model.create_infer_request()
input_tensor = ov.Tensor(array=images.copy(), shared_memory=True)
infer_request.set_input_tensor(input_tensor)
infer_request.start_async()
infer_request.wait()
output = infer_request.get_output_tensor()
result = output.data.copy()
assert output.shape == [N, 10] and (infer_request.results[compiled_model.output(0)] == result).all()

infer_request.get_input_tensor().data[:] = 0
infer_request.infer()
assert not (infer_request.get_tensor("probabilities").data == result).all()
infer_request.infer({"image": images})
result = infer_request.get_output_tensor(0).data
"""

QUEUE = """
import numpy as np
import openvino as ov
import openvino.properties as props
import openvino.properties.hint as hints

core = ov.Core()
core.set_property("CPU", {props.inference_num_threads: 2})
config = {hints.performance_mode: hints.PerformanceMode.THROUGHPUT, hints.inference_precision: ov.Type.f32}
compiled_model = core.compile_model("digits.onnx", "CPU", config)
images = np.load("digits.npy")
result = np.zeros((len(images), 10))

def completion_callback(infer_request: ov.InferRequest, index: int) -> None:
    result[index] = infer_request.get_output_tensor().data[0]

infer_queue = ov.AsyncInferQueue(compiled_model, 2)
infer_queue.set_callback(completion_callback)
for index, image in enumerate(images):
    infer_queue.start_async({0: image[None]}, index)
infer_queue.wait_all()
assert len(infer_queue) == 2 and infer_queue.is_ready()
"""

DEVICES = """
import numpy as np
from openvino import Core, compile_model

core = Core()
for device in core.available_devices:
    print(f"{device}: {core.get_property(device, 'FULL_DEVICE_NAME')}")
device = "GPU" if "GPU" in core.available_devices else "CPU"
try:
    core.read_model("model.xml")
except RuntimeError as error:
    print(error)
compiled = compile_model("digits.onnx", device)
result = compiled(np.load("digits.npy"))[compiled.output("probabilities")]
"""

OLD = """
import numpy as np
from openvino.runtime import AsyncInferQueue, Core

ie = Core()
model = ie.read_model(model="digits.onnx")
compiled_model = ie.compile_model(model=model, device_name="CPU", config={"PERFORMANCE_HINT": "LATENCY"})
input_key = next(iter(compiled_model.inputs))
request = compiled_model.create_infer_request()
request.infer(inputs={input_key.any_name: np.load("digits.npy")})
result = request.get_output_tensor(0).data
"""

PROGRAMS = {"calls": CALLS, "requests": REQUESTS, "queue": QUEUE, "devices": DEVICES, "old": OLD}


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A directory with a model and its input, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits.onnx").symlink_to(DIGITS)
    np.save("digits.npy", IMAGES)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_with_another_import(name, files):
    program = PROGRAMS[name].replace("import openvino", "import oarlock.openvino").replace("from openvino", "from oarlock.openvino")
    np.testing.assert_allclose(result_of(program), EXPECTED, rtol=1e-5, atol=1e-7)


# `openvino.runtime` is gone there.
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "old"])
def test_the_same_programs_run_on_openvino(name, files):
    pytest.importorskip("openvino")
    # Where the processor has AMX, it rounds to bfloat16.
    np.testing.assert_allclose(result_of(PROGRAMS[name]), EXPECTED, atol=0.05)


@pytest.fixture
def two():
    """A model with two inputs and two outputs."""
    return ov.Core().read_model(onnx.parser.parse_model(TWO).SerializeToString())


def test_models_come_from_files_and_bytes(files, tmp_path):
    core = ov.Core()
    content = (tmp_path / "digits.onnx").read_bytes()
    for source in ["digits.onnx", tmp_path / "digits.onnx", content, io.BytesIO(content)]:
        model = core.read_model(source)
        assert model.friendly_name == model.get_friendly_name() == "digits"
        np.testing.assert_array_equal(core.compile_model(model)(IMAGES)[0], EXPECTED)


def test_models_are_converted_from_files_and_from_the_package_onnx(files, tmp_path):
    for source in ["digits.onnx", tmp_path / "digits.onnx", onnx.load("digits.onnx")]:
        np.testing.assert_array_equal(ov.compile_model(ov.convert_model(source, verbose=True))(IMAGES)[0], EXPECTED)
    with pytest.raises(RuntimeError, match="expected the path of a model of ONNX or Paddle, found function\nhint: export it to ONNX"):
        ov.convert_model(lambda x: x)


def test_ports_are_found_by_number_name_and_port(two):
    compiled = ov.compile_model(two)
    assert [port.any_name for port in compiled.inputs] == ["a", "b"]
    assert [port.get_any_name() for port in compiled.outputs] == ["sum", "twice"]
    port = compiled.output("twice")
    assert port is compiled.output(1) and port.names == {"twice"} and port.element_type == ov.Type.i64
    assert repr(port) == "<ConstOutput: names[twice] shape[?,3] type: i64>" and repr(port) in repr(compiled)
    a, b = np.ones((2, 3), np.float32), np.full((2, 3), 2)
    for inputs in [[a, b], (a, b), {"a": a, 1: b}, {two.input("b"): b, 0: ov.Tensor(a)}, [a.tolist(), b.astype("int32")]]:
        results = compiled(inputs)
        assert len(results) == 2 and list(results) == compiled.outputs and results.names() == ({"sum"}, {"twice"})
        assert results[port].tolist() == results["twice"].tolist() == results.to_tuple()[1].tolist() == [[4] * 3] * 2
        assert results[0].dtype == np.float32 and results.to_dict()[compiled.output(0)].tolist() == [[3.0] * 3] * 2
        assert "sum" in results and "other" not in results


def test_sizes_that_are_fixed_are_those_of_outputs_too(two):
    assert two.is_dynamic() and two.input(0).partial_shape == ov.PartialShape([-1, 3])
    two.reshape({"a": [4, 3], "b": ov.PartialShape([4, 3])})
    assert not two.is_dynamic() and two.output(1).shape == (4, 3) and two.output(1).get_partial_shape() == [4, 3]
    compiled = ov.compile_model(two)
    two.reshape({"a": [-1, 3], "b": [-1, 3]})
    assert two.is_dynamic()
    with pytest.raises(RuntimeError, match=r"input `a`: expected the shape \[4,3\], found \[2, 3\]"):
        compiled([np.ones((2, 3)), np.ones((2, 3))])
    for shape in ([4, 3, 1], [4, 2]):
        with pytest.raises(RuntimeError, match=r"input `a`: expected a shape that fits float32\[n, 3\], found \[4,"):
            two.reshape({"a": shape})


def test_shapes_types_and_sizes_are_as_in_openvino():
    for module in (ov, pytest.importorskip("openvino")):
        shape, partial = module.Shape([1, 3]), module.PartialShape([-1, 3])
        assert (str(shape), repr(shape), shape == [1, 3], shape == (1, 3), shape == [3]) == ("[1,3]", "<Shape: [1,3]>", True, True, False)
        assert (str(partial), repr(partial), len(partial)) == ("[?,3]", "<PartialShape: [?,3]>", 2)
        assert [str(size) for size in partial] == ["?", "3"] and repr(partial[0]) == "<Dimension: ?>"
        assert partial.is_dynamic and not partial.is_static and partial.rank == 2 and partial.get_min_shape() == [0, 3]
        assert partial[0].is_dynamic and partial[1].is_static and partial[1] == 3 and partial[0] != partial[1]
        assert module.PartialShape([2, 3]).to_shape() == [2, 3] and module.PartialShape(["?", module.Dimension(3)]) == partial
        for call in (partial.to_shape, partial.get_shape, partial[0].get_length):
            with pytest.raises(RuntimeError):
                call()
        assert str(module.Type.f32) == "<Type: 'float32'>" and module.Type.i64.to_dtype() == np.int64
        assert module.Type(np.float16) == module.Type.f16 and module.Type(np.dtype("uint8")).get_type_name() == "u8"


def test_tensors_are_as_in_openvino():
    for module in (ov, pytest.importorskip("openvino")):
        array = np.zeros((2, 3), np.float32)
        copied, shared = module.Tensor(array), module.Tensor(array, shared_memory=True)
        array[:] = 1
        assert copied.data.sum() == 0 and shared.data.sum() == 6
        assert (copied.shape, copied.size, copied.byte_size, copied.element_type) == ([2, 3], 6, 24, module.Type.f32)
        assert (copied.get_shape(), copied.get_size(), copied.get_byte_size()) == ([2, 3], 6, 24)
        assert repr(copied) == "<Tensor: shape[2,3] type: f32>" and module.Tensor([1, 2]).element_type == module.Type.i64
        zeros = module.Tensor(module.Type.u8, module.Shape([2, 2]))
        assert zeros.data.dtype == np.uint8 and module.Tensor(np.int32, [4]).shape == [4]
        zeros.shape = [3]
        assert zeros.data.shape == (3,)
        copied.copy_from(shared)
        assert copied.data.sum() == 6
        zeros = module.Tensor(array * 0)
        copied.copy_to(zeros)
        assert zeros.data.sum() == 6
        assert module.Tensor(np.array(["a", "b"])).str_data.tolist() == ["a", "b"]
        with pytest.raises(RuntimeError):
            module.Tensor(array[:, ::2], shared_memory=True)
        with pytest.raises(TypeError):
            module.Tensor(5.0)


def test_inputs_stay_from_run_to_run_and_are_copied(two):
    request = ov.compile_model(two).create_infer_request()
    a = np.ones((1, 3), np.float32)
    first = request.infer({"a": a, "b": np.zeros((1, 3))})
    a[:] = 9
    assert request.infer({"b": np.full((1, 3), 5)})["sum"].tolist() == [[6.0] * 3]
    assert first["sum"].tolist() == [[1.0] * 3] and request.latency > 0
    assert request.get_compiled_model().input(0) is request.model_inputs[0]
    assert [tensor.data.sum() for tensor in (*request.input_tensors, *request.output_tensors)] == [3, 15, 18, 30]


def test_tensors_of_a_request_are_filled_and_read_in_place(two):
    request = ov.compile_model(two).create_infer_request()
    given, made = request.get_input_tensor(0), request.get_output_tensor(0)
    assert given.shape == [0, 3] and repr(made) == "<Tensor: before a run>"
    given.shape = [2, 3]
    given.data[:] = 1
    request.set_input_tensor(1, ov.Tensor(np.full((2, 3), 2)))
    target = np.zeros((2, 3), np.int64)
    request.set_output_tensor(1, ov.Tensor(target, shared_memory=True))
    for number in (1, 2):
        given.data[:] = number
        request.infer()
        assert made.data.tolist() == [[number + 2.0] * 3] * 2 and target.tolist() == [[4] * 3] * 2
    request.set_tensor("b", ov.Tensor(np.zeros((2, 3), np.int64)))
    request.infer()
    assert request.get_tensor("twice").data is target and target.sum() == 0
    request.set_tensor("twice", ov.Tensor(np.zeros((1, 1), np.int64)))
    with pytest.raises(RuntimeError, match=r"output `twice`: expected a tensor of the shape \[2, 3\], found \[1, 1\]"):
        request.infer()


def test_a_callback_gets_its_data_and_its_error_comes_with_wait():
    request, said = ov.compile_model(DIGITS).create_infer_request(), []
    request.set_callback(lambda data: said.append((data, request.get_output_tensor().data.shape)), "data")
    request.start_async(IMAGES)
    request.wait()
    assert said == [("data", (len(IMAGES), 10))] and request.userdata == "data" and request.wait_for(1000)
    request.set_callback(lambda data: {}["missing"])
    request.start_async()
    with pytest.raises(KeyError, match="missing"):
        request.wait()
    request.wait()
    request.start_async(IMAGES[:, :, :4])
    with pytest.raises(RuntimeError, match="input `image`: expected float32"):
        request.wait()


def test_a_request_that_runs_is_refused():
    request, begun, ended = ov.compile_model(DIGITS).create_infer_request(), threading.Event(), threading.Event()
    request.set_callback(lambda _: (begun.set(), ended.wait(60)))
    request.start_async(IMAGES)
    assert begun.wait(60) and not request.wait_for(0)
    for call in (request.infer, request.start_async):
        with pytest.raises(RuntimeError, match="expected a request that is idle, found one that runs\nhint: call `wait` first"):
            call(IMAGES)
    ended.set()
    request.wait()
    request.infer(IMAGES)


def test_a_run_that_is_canceled_ends_with_an_error():
    text = """
        <ir_version: 10, opset_import: ["": 20]>
        endless (float x) => (float y) {
            y = Loop (, , x) <body = body (int64 i, bool before, float a) => (bool after, float b) { after = Identity(before) b = Neg(a) }>
        }
    """
    request = ov.compile_model(onnx.parser.parse_model(text).SerializeToString()).create_infer_request()
    request.start_async(np.float32(1))
    assert not request.wait_for(50)
    request.cancel()
    with pytest.raises(RuntimeError, match="stop"):
        request.wait()
    # What was canceled is that run, not the next.
    request.start_async()
    assert not request.wait_for(50)
    request.cancel()
    with pytest.raises(RuntimeError, match="stop"):
        request.wait()


def test_a_queue_runs_all_and_raises_the_first_error():
    queue, said = ov.AsyncInferQueue(ov.compile_model(DIGITS), 3), []
    queue.set_callback(lambda request, number: said.append((number, request.results[0].argmax())))
    for number, image in enumerate(IMAGES):
        queue.start_async(image[None], number)
    queue.wait_all()
    assert sorted(said) == list(enumerate(EXPECTED.argmax(1))) and len(queue) == len(list(queue)) == 3
    assert queue.get_idle_request_id() in range(3) and set(queue.userdata) <= {None, *range(len(IMAGES))}
    assert queue[0].get_output_tensor().data.shape == (1, 10)
    with pytest.raises(RuntimeError, match="expected one of the inputs `image`, by name, number or port, found `x`"):
        queue.start_async({"x": IMAGES})
    queue.set_callback(lambda request, number: {}["missing"])
    queue.start_async(IMAGES)
    queue.start_async(IMAGES)
    with pytest.raises(KeyError, match="missing"):
        queue.wait_all()
    queue.wait_all()
    assert queue.is_ready() and len(ov.AsyncInferQueue(ov.compile_model(DIGITS))) == 2


def test_texts_are_inputs_too():
    compiled = ov.compile_model(node_model("Identity", element="STRING"))
    assert compiled.input().element_type == ov.Type.string and compiled([["a", "bc"]])[0].tolist() == ["a", "bc"]


def test_devices_have_the_names_that_openvino_gives_them():
    core = ov.Core()
    assert core.get_available_devices() == core.available_devices == ["CPU"]
    for name in (None, "CPU", "CPU.0", "AUTO", "AUTO:GPU,CPU", "HETERO:CPU", "MULTI:CPU(2)", {"PERFORMANCE_HINT": "LATENCY"}):
        assert core.compile_model(DIGITS, name).get_property("EXECUTION_DEVICES") == ["CPU"]
    for name in ("GPU", "NPU", "AUTO:GPU", "HETERO:GPU,CPU", "cpu"):
        with pytest.raises(RuntimeError, match=f"expected devices among CPU, found `{name}`\nhint: `oarlock.devices"):
            core.compile_model(DIGITS, name)


def test_other_devices_are_gpus_or_have_their_own_names(with_custom_cpu):
    code = f"""
        import oarlock.openvino as ov, warnings
        core = ov.Core()
        warnings.simplefilter("ignore")
        compiled = core.compile_model({DIGITS!r}, "HETERO:CustomCPU,CPU")
        print(core.available_devices, compiled.get_property("EXECUTION_DEVICES"), core.get_property("CustomCPU.0", "DEVICE_ID"))
    """
    printed = child(code, OARLOCK_PLUGIN_PATH=with_custom_cpu["OARLOCK_PLUGIN_PATH"])
    assert printed.strip() == "['CPU', 'CustomCPU'] ['CustomCPU.0', 'CPU'] 0"


def test_properties_are_named_stored_and_known():
    assert props.inference_num_threads == props.inference_num_threads() == "INFERENCE_NUM_THREADS"
    assert hints.performance_mode("LATENCY") == ("PERFORMANCE_HINT", "LATENCY") and props.hint is hints
    core = ov.Core()
    core.set_property({props.cache_dir: "cache"})
    core.set_property("CPU", {hints.performance_mode: hints.PerformanceMode.LATENCY})
    compiled = core.compile_model(DIGITS, "CPU", {props.streams.num: 2})
    assert compiled.get_property(props.cache_dir) == core.get_property(props.cache_dir) == "cache"
    assert compiled.get_property(hints.performance_mode) is core.get_property("CPU", hints.performance_mode) is hints.PerformanceMode.LATENCY
    assert compiled.get_property("NUM_STREAMS") == 2 and compiled.get_property("PERF_COUNT") is None
    assert compiled.get_property(props.model_name) == "digits" and compiled.get_property(props.optimal_number_of_infer_requests) == 2
    assert core.get_property("CPU", props.device.full_name) == ol.devices()[0].description
    assert compiled.get_property("SUPPORTED_PROPERTIES").items() >= {"NETWORK_NAME": "RO", "NUM_STREAMS": "RW"}.items()
    for name in core.get_property("CPU", "SUPPORTED_PROPERTIES"):
        core.get_property("CPU", name)
    unknown = r"expected a property that `get_property\(\"SUPPORTED_PROPERTIES\"\)` lists, found `NO`"
    for call in (lambda: core.get_property("CPU", "NO"), lambda: compiled.get_property("NO"), lambda: core.set_property({"NO": 1})):
        with pytest.raises(RuntimeError, match=unknown):
            call()


def test_properties_have_the_names_that_openvino_gives_them():
    theirs, their_hints = pytest.importorskip("openvino.properties"), pytest.importorskip("openvino.properties.hint")
    for ours, module in ((props, theirs), (hints, their_hints), (props.device, theirs.device), (props.streams, theirs.streams)):
        for name, value in vars(ours).items():
            if isinstance(value, str) and name[0] != "_":
                assert getattr(module, name)() == value, name


@pytest.mark.parametrize(("given", "expected"), [(ov.Type.bf16, ol.bfloat16), ("bf16", ol.bfloat16), ("f32", ol.float32), (None, ol.float32)])
def test_bfloat16_is_a_permission(given, expected, monkeypatch):
    asked = precisions(monkeypatch, "oarlock.openvino._model")
    compiled = ov.compile_model(DIGITS, "CPU", {hints.inference_precision: given})
    np.testing.assert_allclose(compiled(IMAGES)[0], EXPECTED, atol=0.1)
    assert asked[-1] == expected


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: ov.Core().read_model("no.onnx"), RuntimeError, "`no.onnx`: expected a file, found none"),
        (lambda: ov.compile_model("model.xml"), RuntimeError, "`model.xml`: expected a model of ONNX or Paddle, .*\nhint: give the `.onnx`"),
        (lambda: ov.Core().read_model(b"text"), RuntimeError, "expected an ONNX model"),
        (lambda: ov.compile_model(DIGITS)(IMAGES)["no"], KeyError, "expected one of the outputs `probabilities`, .* found `no`"),
        (lambda: ov.compile_model(DIGITS)(IMAGES)[1], KeyError, "expected one of the outputs `probabilities`, .* found `1`"),
        (lambda: ov.compile_model(DIGITS)({"no": IMAGES}), RuntimeError, "expected one of the inputs `image`, .* found `no`"),
        (lambda: ov.compile_model(DIGITS)([IMAGES, IMAGES]), RuntimeError, "expected one of the inputs `image`, .* found `1`"),
        (lambda: ov.compile_model(DIGITS)(), RuntimeError, r"expected values for all inputs \(`image`\), found none for `image`"),
        (lambda: ov.compile_model(DIGITS)("text"), ValueError, "input `image`: expected numbers that are f32, found str"),
        (lambda: ov.compile_model(DIGITS)(IMAGES[0]), RuntimeError, r"input `image`: expected float32\[batch, 1, 8, 8\], found"),
        (lambda: ov.compile_model(DIGITS).input(0).shape, RuntimeError, r"expected a shape whose sizes are numbers, found \[\?,1,8,8\]"),
        (lambda: ov.compile_model(DIGITS).input("no"), RuntimeError, "expected one of the inputs `image`, .* found `no`"),
        (lambda: ov.compile_model(DIGITS).create_infer_request().get_output_tensor().data, RuntimeError, "expected a run before an output is"),
        (lambda: ov.compile_model(DIGITS).create_infer_request().results, RuntimeError, "expected a run before its results are read"),
        (lambda: ov.compile_model(DIGITS).create_infer_request().set_input_tensor(IMAGES), TypeError, "`image`: expected a `Tensor`, found nd"),
        (lambda: ov.Type.dynamic.to_dtype(), RuntimeError, "expected a type that is known, found a dynamic one"),
        (lambda: ov.Tensor(ov.Type.f32), TypeError, "expected a shape after the type .*, found none"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_words_of_the_program(call, kind, said):
    with pytest.raises(kind, match=said):
        call()


def test_only_one_input_may_be_meant_without_a_name(two):
    with pytest.raises(RuntimeError, match="expected one of the inputs `a`, `b`, by name, number or port, found none"):
        two.input()


def test_names_without_support_say_what_to_do(two):
    compiled = ov.compile_model(two)
    for where, name, hint in [
        (ov, "save_model", "`oarlock.load"),
        (ov, "preprocess", "prepare inputs with NumPy"),
        (ov.Core(), "import_model", "give the ONNX file"),
        (two, "get_ops", "`oarlock.load"),
        (compiled, "export_model", "`oarlock.load"),
        (compiled.create_infer_request(), "profiling_info", "`oarlock.load"),
    ]:
        with pytest.raises(AttributeError, match=f"expected a name that `.*` has, found `{name}`\nhint: {hint}"):
            getattr(where, name)
    assert not set(PACKAGE) & set(dir(ov)) and not set(MODEL) & {*dir(compiled), *dir(two), *dir(ov.Core())}
    assert not set(REQUEST) & set(dir(ov.InferRequest))


def test_the_version_is_one_of_openvino_and_ours_is_beside_it():
    assert ov.get_version() == f"{ov.__version__}+oarlock.{ol.__version__}"


def test_descriptions_show_what_they_describe(two):
    assert repr(two) == (
        "<Model:\ninputs[<ConstOutput: names[a] shape[?,3] type: f32>, <ConstOutput: names[b] shape[?,3] type: i64>]\n"
        "outputs[<ConstOutput: names[sum] shape[?,3] type: f32>, <ConstOutput: names[twice] shape[?,3] type: i64>]>"
    )
    results = ov.compile_model(two)([np.ones((1, 3)), np.ones((1, 3))])
    assert "names[sum]" in repr(results) and "2." in repr(results)
    assert len({ov.Dimension(3), ov.Dimension("3"), ov.Dimension(-1), ov.Dimension("?")}) == 2


def test_memory_is_given_back_and_requests_keep_no_state():
    compiled = ov.compile_model(DIGITS)
    compiled.release_memory()
    compiled.create_infer_request().reset_state()
    assert compiled.infer_new_request(IMAGES)[0].shape == EXPECTED.shape
