"""Programs for onnxruntime with one changed import. If onnxruntime is installed, it must behave the same."""

import importlib
import json
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import oarlock
import pytest
from conftest import node_model as model
from oarlock import onnxruntime as ort

MODELS = Path(__file__).parents[3] / "docs/src/models"


@pytest.fixture(scope="module")
def session():
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    return ort.InferenceSession(str(MODELS / "digits.onnx"), options, providers=["CPUExecutionProvider"])


def test_a_session_runs_on_arrays_of_numpy(session):
    image = np.load(MODELS / "digits.npy")
    (named,) = session.run([session.get_outputs()[0].name], {session.get_inputs()[0].name: image})
    (all_of_them,) = session.run(None, {"image": image})
    assert isinstance(named, np.ndarray)
    np.testing.assert_array_equal(named, all_of_them)


def test_inputs_are_described_as_there(session):
    (image,) = session.get_inputs()
    assert (image.name, image.type, image.shape) == ("image", "tensor(float)", ["batch", 1, 8, 8])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.get_modelmeta().graph_name


def test_providers_that_are_not_there_are_passed_over(caplog):
    session = ort.InferenceSession(MODELS / "digits.onnx", providers=["TensorrtExecutionProvider", "CPUExecutionProvider"])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert "TensorrtExecutionProvider" in caplog.text
    assert "CPUExecutionProvider" in ort.get_available_providers() and ort.get_device() == "CPU"


def test_values_may_stay_where_they_are(session):
    value = ort.OrtValue.ortvalue_from_numpy(np.load(MODELS / "digits.npy"))
    assert (value.device_name(), value.data_type(), value.is_tensor()) == ("cpu", "tensor(float)", True)
    (made,) = session.run_with_ort_values(None, {"image": value})
    np.testing.assert_array_equal(made.numpy(), session.run(None, {"image": value.numpy()})[0])


def test_what_is_given_as_it_is_and_what_is_converted_runs_alike(either, raised_by):
    session = either.InferenceSession(model("Relu"), providers=["CPUExecutionProvider"])
    x = np.array([-1, 2], np.float32)
    given = {"x": x}
    for feeds in (given, {"x": [-1.0, 2.0]}, {"x": x.view(type("Sub", (np.ndarray,), {}))}, {"x": np.flip(np.flip(x))}):
        for names in (None, [], ["y"]):
            (found,) = session.run(names, feeds)
            assert type(found) is np.ndarray and found.flags.writeable and found.tolist() == [0, 2]
    assert list(given) == ["x"] and given["x"] is x
    for wrong, kind in (({"x": x, "z": x}, raised_by.InvalidArgument), ({}, ValueError), ({"x": x.astype(int)}, raised_by.InvalidArgument)):
        with pytest.raises(kind):
            session.run(None, wrong)


def test_outputs_that_are_not_there_are_named(session):
    with pytest.raises(ValueError, match="`nothing`"):
        session.run(["nothing"], {"image": np.load(MODELS / "digits.npy")})


@pytest.fixture
def raised_by(either):
    """The module from which programs import the exceptions."""
    return importlib.import_module(f"{either.__name__}.capi.onnxruntime_pybind11_state")


@pytest.fixture
def digits(either):
    return either.InferenceSession(str(MODELS / "digits.onnx"), providers=["CPUExecutionProvider"])


@pytest.fixture
def images():
    return np.load(MODELS / "digits.npy")


def test_outputs_are_bound_to_what_runs_make(digits, images):
    (expected,) = digits.run(None, {"image": images})
    binding = digits.io_binding()
    binding.bind_cpu_input("image", images)
    (output,) = digits.get_outputs()
    binding.bind_output(output.name)
    digits.run_with_iobinding(binding)
    (value,) = binding.get_outputs()
    assert (value.shape(), value.data_type(), value.device_name()) == (list(expected.shape), "tensor(float)", "cpu")
    np.testing.assert_array_equal(value.numpy(), expected)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], expected)
    images[...] = 0
    digits.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], digits.run(None, {"image": images})[0])
    binding.clear_binding_outputs()
    with pytest.raises(RuntimeError):
        digits.run_with_iobinding(binding)


def test_inputs_and_outputs_are_bound_to_addresses(digits, images):
    (expected,) = digits.run(None, {"image": images})
    (output,) = digits.get_outputs()
    made = np.zeros_like(expected)
    binding = digits.io_binding()
    binding.bind_input("image", "cpu", 0, np.float32, images.shape, images.ctypes.data)
    binding.bind_output(output.name, "cpu", 0, np.float32, made.shape, made.ctypes.data)
    binding.synchronize_inputs()
    digits.run_with_iobinding(binding)
    binding.synchronize_outputs()
    np.testing.assert_array_equal(made, expected)
    assert binding.get_outputs()[0].data_ptr() == made.ctypes.data
    with pytest.raises(ValueError, match="element_type"):
        binding.bind_output(output.name, "cpu", 0, None, None, made.ctypes.data)
    binding.bind_output(output.name, "cpu", 0, np.float32, (1, 10), made.ctypes.data)
    with pytest.raises(RuntimeError):
        digits.run_with_iobinding(binding)


@pytest.mark.parametrize("element_type", [np.float32, 1])
def test_values_are_bound_and_written_in_their_place(either, digits, images, element_type):
    (expected,) = digits.run(None, {"image": images})
    (output,) = digits.get_outputs()
    given = either.OrtValue.ortvalue_from_shape_and_type(images.shape, element_type, "cpu")
    given.update_inplace(images)
    assert (given.element_type(), given.tensor_size_in_bytes(), given.is_tensor(), given.has_value()) == (1, images.nbytes, True, True)
    memory = np.zeros_like(expected)
    for made in [either.OrtValue.ortvalue_from_shape_and_type(expected.shape, element_type), either.OrtValue.ortvalue_from_numpy(memory)]:
        address = made.data_ptr()
        binding = digits.io_binding()
        binding.bind_ortvalue_input("image", given)
        binding.bind_ortvalue_output(output.name, made)
        digits.run_with_iobinding(binding)
        np.testing.assert_array_equal(made.numpy(), expected)
        assert made.data_ptr() == address == binding.get_outputs()[0].data_ptr()
    np.testing.assert_array_equal(memory, expected)
    with pytest.raises(RuntimeError):
        given.update_inplace(np.zeros((1, 1, 9, 9), np.float32))


def test_what_is_bound_is_of_the_session(either, digits, images):
    binding = digits.io_binding()
    with pytest.raises(RuntimeError):
        binding.bind_cpu_input("nothing", images)
    other = either.InferenceSession(str(MODELS / "digits.onnx"), providers=["CPUExecutionProvider"])
    with pytest.raises(ValueError, match="session"):
        other.run_with_iobinding(binding)


def test_a_run_in_the_background_calls_back(digits, images):
    def outcome(names, feeds):
        done, given = threading.Event(), []

        def callback(*arguments):
            given.extend(arguments)
            done.set()

        digits.run_async(names, feeds, callback, {"mine": 1})
        assert done.wait(60)
        return given

    (made,), data, wrong = outcome(None, {"image": images})
    np.testing.assert_array_equal(made, digits.run(None, {"image": images})[0])
    assert (data, wrong) == ({"mine": 1}, "")
    for names, feeds in [(["nothing"], {"image": images}), (None, {"image": images.astype(np.float64)})]:
        made, _, wrong = outcome(names, feeds)
        assert made == [] and wrong
    with pytest.raises(ValueError, match="image"):
        digits.run_async(None, {}, print, None)


def test_models_that_cannot_be_loaded_raise_what_they_raise_there(either, raised_by, tmp_path):
    garbage = tmp_path / "garbage.onnx"
    garbage.write_bytes(b"no model")
    for source, name in [
        (str(tmp_path / "nothing.onnx"), "NoSuchFile"),
        (str(garbage), "InvalidProtobuf"),
        (b"no model", "InvalidProtobuf"),
        (model("Nonsense"), "InvalidGraph"),
        (model("Nonsense", "acme"), "Fail"),
        (model("Relu", nonsense=1), "InvalidGraph"),
    ]:
        with pytest.raises(getattr(raised_by, name)):
            either.InferenceSession(source, providers=["CPUExecutionProvider"])


def test_runs_that_fail_raise_what_they_raise_there(either, raised_by):
    session = either.InferenceSession(model("Gather", inputs=("x", "at")), providers=["CPUExecutionProvider"])
    x, at = np.ones(3, np.float32), np.array([0])
    for names, feeds in [
        (None, {"x": x, "at": at, "z": x}),
        (["z"], {"x": x, "at": at}),
        (None, {"x": x.astype(np.float64), "at": at}),
        (None, {"x": x[None], "at": at}),
        (None, {"x": x, "at": np.array([9])}),
    ]:
        with pytest.raises(raised_by.InvalidArgument):
            session.run(names, feeds)
    with pytest.raises(ValueError, match="at"):
        session.run(None, {"x": x})


def test_exceptions_are_those_of_oarlock_and_of_python_as_well(tmp_path):
    for source, kinds in [
        (str(tmp_path / "nothing.onnx"), (FileNotFoundError, oarlock.Error)),
        (b"no model", (ValueError, oarlock.Error)),
        (model("Nonsense"), (NotImplementedError, ValueError, oarlock.Error)),
    ]:
        for kind in kinds:
            with pytest.raises(kind):
                ort.InferenceSession(source)
    session = ort.InferenceSession(model("Gather", inputs=("x", "at")))
    for kind in (IndexError, ValueError, oarlock.Error):
        with pytest.raises(kind):
            session.run(None, {"x": np.ones(1, np.float32), "at": np.array([9])})


def test_text_is_called_text_as_there(either):
    session = either.InferenceSession(model("Identity", element="STRING"), providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].type == "tensor(string)"


def test_outputs_may_be_written_and_are_nobody_elses(either):
    def runs(source, names, feeds):
        session = either.InferenceSession(source, providers=["CPUExecutionProvider"])
        kept = {name: array.copy() for name, array in feeds.items()}
        first = session.run(names, feeds)
        expected = [array.copy() for array in first]
        for at, array in enumerate(first):
            assert array.flags.writeable
            array += 1
            assert all(np.array_equal(first[i], expected[i] + (i <= at)) for i in range(len(first)))
        assert all(np.array_equal(feeds[name], array) for name, array in kept.items())
        assert all(map(np.array_equal, session.run(names, feeds), expected))

    x = np.ones(6, np.float32)
    runs(model("Relu"), None, {"x": x})
    if either is ort:
        # In onnxruntime, both are the same array.
        runs(model("Relu"), ["y", "y"], {"x": x})
    runs(model("Identity"), None, {"x": x})
    runs(model("Relu"), None, {"x": x[:0]})
    runs(str(MODELS / "digits.onnx"), None, {"image": np.load(MODELS / "digits.npy")})


def test_lists_of_whole_numbers_are_numbers_of_any_kind(either):
    session = either.InferenceSession(model("Relu"), providers=["CPUExecutionProvider"])
    (made,) = session.run(None, {"x": [-1, 2]})
    assert made.dtype == np.float32 and made.tolist() == [0, 2]
    assert session.run(None, {"x": []})[0].shape == (0,)


def test_what_ran_is_written_where_profiling_ends(either, tmp_path):
    options = either.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "what ran")
    session = either.InferenceSession(model("Relu"), options, providers=["CPUExecutionProvider"])
    session.run(None, {"x": np.ones(3, np.float32)})
    file = Path(session.end_profiling())
    assert file.parent == tmp_path and file.name.startswith("what ran_")
    events = json.loads(file.read_text())
    (node,) = [event for event in events if event["cat"] == "Node"]
    assert node["args"]["op_name"] == "Relu" and node["args"]["provider"] == "CPUExecutionProvider"
    assert node["name"].endswith("_kernel_time") and node["ph"] == "X" and node["dur"] >= 0
    (run,) = [event for event in events if event["name"] == "model_run"]
    assert run["cat"] == "Session" and run["ts"] <= node["ts"] and node["ts"] + node["dur"] <= run["ts"] + run["dur"]


def test_sizes_with_names_are_what_options_say(either):
    parser = pytest.importorskip("onnx.parser")
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n, k, 2] x) => (float[n, k, 2] y) { y = Relu(x) }'
    options = either.SessionOptions()
    options.add_free_dimension_override_by_name("n", 3)
    options.add_free_dimension_override_by_name("m", 4)
    session = either.InferenceSession(parser.parse_model(text).SerializeToString(), options, providers=["CPUExecutionProvider"])
    assert [end.shape for end in [*session.get_inputs(), *session.get_outputs()]] == [[3, "k", 2], [3, "k", 2]]


def test_packages_can_ask_a_session_for_its_model(either, tmp_path):
    """By names that are private, which some use."""
    (tmp_path / "model.onnx").write_bytes(model("Relu"))
    session = either.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    assert session._model_path == str(tmp_path / "model.onnx")
    assert session._providers == ["CPUExecutionProvider"] and "CPUExecutionProvider" in session._provider_options
    assert either.InferenceSession(model("Relu"), providers=["CPUExecutionProvider"])._model_bytes == model("Relu")


def test_choices_are_printed_by_name(either):
    assert str(either.GraphOptimizationLevel.ORT_ENABLE_ALL) == "GraphOptimizationLevel.ORT_ENABLE_ALL"
    assert f"{either.ExecutionMode.ORT_PARALLEL}" == "ExecutionMode.ORT_PARALLEL"
    assert int(either.ExecutionMode.ORT_PARALLEL) == 1


def test_a_model_says_about_itself_what_its_file_says(either):
    onnx = pytest.importorskip("onnx")
    proto = onnx.load_from_string(model("Relu"))
    said = {"producer_name": "somebody", "domain": "org.example", "version": 7, "description": "a model", "graph_description": "a graph"}
    proto.producer_name, proto.producer_version, proto.domain, proto.model_version = "somebody", "2.1", "org.example", 7
    proto.doc_string, proto.graph.doc_string = "a model", "a graph"
    onnx.helper.set_model_props(proto, {"key": "value"})
    session = either.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    about = session.get_modelmeta()
    assert {name: getattr(about, name) for name in said} == said
    assert (about.graph_name, about.custom_metadata_map) == ("graph", {"key": "value"})


def test_what_a_model_does_not_declare_is_inferred(either):
    onnx = pytest.importorskip("onnx")
    proto = onnx.load_from_string(model("Relu"))
    proto.ClearField("model_version")
    proto.graph.output[0].ClearField("type")
    session = either.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    [output] = session.get_outputs()
    assert (output.type, len(output.shape)) == ("tensor(float)", len(session.get_inputs()[0].shape))
    assert session.get_modelmeta().version == 2**63 - 1


def test_a_run_ends_where_its_options_say_so(either, digits, images, raised_by):
    options = either.RunOptions()
    options.terminate = True
    value = either.OrtValue.ortvalue_from_numpy(images)
    for run in (
        lambda: digits.run(None, {"image": images}, options),
        lambda: digits.run_with_ort_values(None, {"image": value}, options),
    ):
        with pytest.raises(raised_by.Fail) as raised:
            run()
        assert raised.type is raised_by.Fail
    options.terminate = False
    assert digits.run(None, {"image": images}, options)[0].shape[0] == len(images)


def test_providers_may_be_among_the_options(either):
    options = either.SessionOptions()
    assert not options.has_providers()
    options.add_provider("CPUExecutionProvider", {})
    assert options.has_providers()
    session = either.InferenceSession(model("Relu"), options)
    assert session.get_providers() == ["CPUExecutionProvider"]


def test_entries_of_options_are_kept(either):
    for options, kind in [(either.SessionOptions(), "session"), (either.RunOptions(), "run")]:
        getattr(options, f"add_{kind}_config_entry")("key", "value")
        assert getattr(options, f"get_{kind}_config_entry")("key") == "value"
        with pytest.raises(RuntimeError, match="nothing"):
            getattr(options, f"get_{kind}_config_entry")("nothing")


def test_the_model_is_written_as_it_was_made_ready(either, tmp_path):
    options = either.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "ready.onnx")
    either.InferenceSession(model("Relu"), options, providers=["CPUExecutionProvider"])
    session = either.InferenceSession(str(tmp_path / "ready.onnx"), providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": np.array([-1, 1], np.float32)})[0].tolist() == [0, 1]


def test_options_that_are_not_there_or_of_another_kind_are_refused(either):
    options = either.SessionOptions()
    options.intra_op_num_threads = np.int64(1)
    assert options.intra_op_num_threads == 1
    for name, value in [("intra_op_num_threads", "x"), ("graph_optimization_level", "all"), ("enable_profiling", "x"), ("logid", 1)]:
        with pytest.raises(TypeError):
            setattr(options, name, value)
    with pytest.raises(AttributeError):
        options.optimized_model_file_path = "x"


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (ort, "get_ep_devices"),
        (ort.SessionOptions(), "register_custom_ops_library"),
        ("session", "get_tuning_results"),
        (ort.SessionOptions(), "add_initializer"),
        (ort.RunOptions(), "add_active_adapter"),
    ],
)
def test_what_is_not_there_is_said_with_what_to_do(session, where, name):
    where = session if where == "session" else where
    with pytest.raises(AttributeError, match=f"found `{name}`\nhint: "):
        getattr(where, name)
    with pytest.raises(AttributeError, match="found `nonsense`$"):
        getattr(where, "nonsense")  # noqa: B009


def test_a_sequence_may_be_empty(either):
    onnx = pytest.importorskip("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    given = helper.make_tensor_sequence_value_info("s", types.FLOAT, None)
    made = helper.make_tensor_value_info("n", types.INT64, [])
    graph = helper.make_graph([helper.make_node("SequenceLength", ["s"], ["n"])], "graph", [given], [made])
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    session = either.InferenceSession(source, providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].type == "seq(tensor(float))"
    for sequence in ([], [np.ones(2, np.float32)]):
        assert session.run(None, {"s": sequence})[0] == len(sequence)


def test_providers_come_in_a_list(caplog):
    session = ort.InferenceSession(model("Relu"), providers="CPUExecutionProvider")
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert 'found text; write `providers=["CPUExecutionProvider"]`' in caplog.text


def test_calls_that_are_wrong_say_what_to_write():
    session, x = ort.InferenceSession(model("Relu")), np.ones(3, np.float32)
    for call, told in [
        (lambda: session.run("y", {"x": x}), r'expected a list of outputs, found text\nhint: write `\["y"\]`'),
        (lambda: session.run(None, [x]), r'expected a dictionary .*, found list\nhint: write `run\(None, {"x": …}\)`'),
        (lambda: session.run(None, {"x": x}, {}), "expected `RunOptions`, found dict"),
        (lambda: session.run_with_ort_values(None, {"x": x}), "expected an `OrtValue` for the input `x`, found ndarray\nhint: `run`"),
        (lambda: ort.OrtValue.ortvalue_from_numpy([1.0]), "expected an array of NumPy, found list\nhint: make one with"),
    ]:
        with pytest.raises(TypeError, match=told):
            call()


def test_what_is_sent_and_built_can_be_asked_for(either):
    either.enable_telemetry_events()
    either.disable_telemetry_events()
    assert "Build Info: " in either.get_build_info()


def test_exceptions_can_be_named_after_the_one_import_that_changes():
    code = "from oarlock import onnxruntime as ort; print(ort.capi.{}.InvalidArgument.__name__)"
    for module in ("onnxruntime_pybind11_state", "_pybind_state"):
        said = subprocess.run([sys.executable, "-c", code.format(module)], capture_output=True, text=True, timeout=60, check=True)
        assert said.stdout == "InvalidArgument\n"
