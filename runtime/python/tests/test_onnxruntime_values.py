"""Values, devices and memory of the adapter behave as those of onnxruntime."""

import importlib
import subprocess
import sys

import numpy as np
import oarlock
import pytest
from conftest import node_model
from oarlock import onnxruntime as ort


def sequences(package):
    """A session that makes a sequence of its input and its input."""
    onnx = pytest.importorskip("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    given = helper.make_tensor_value_info("x", types.FLOAT, [None])
    made = helper.make_tensor_sequence_value_info("y", types.FLOAT, None)
    graph = helper.make_graph([helper.make_node("SequenceConstruct", ["x", "x"], ["y"])], "graph", [given], [made])
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    return package.InferenceSession(source, providers=["CPUExecutionProvider"])


def test_a_value_may_be_a_sequence(either):
    session, x = sequences(either), np.array([1, 2], np.float32)
    (made,) = session.run_with_ort_values(None, {"x": either.OrtValue.ortvalue_from_numpy(x)})
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    for value in (made, binding.get_outputs()[0]):
        assert (value.is_tensor(), value.is_tensor_sequence(), value.has_value()) == (False, True, True)
        assert (value.data_type(), value.element_type()) == ("seq(tensor(float))", 1)
        for method in (value.numpy, value.shape, value.data_ptr, value.tensor_size_in_bytes, value.device_name):
            with pytest.raises(RuntimeError):
                method()
    ((first, second),) = binding.copy_outputs_to_cpu()
    np.testing.assert_array_equal(first, x)
    np.testing.assert_array_equal(second, x)


def test_copied_outputs_are_nobody_elses(either):
    session = either.InferenceSession(node_model("Relu"), providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.ones(3, np.float32))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    (copied,) = binding.copy_outputs_to_cpu()
    copied[:] = 5
    assert binding.get_outputs()[0].numpy().tolist() == [1, 1, 1]
    binding.clear_binding_outputs()


def test_values_are_arrays_to_numpy(either):
    value = either.OrtValue.ortvalue_from_numpy(np.array([1, 2], np.float32))
    assert np.asarray(value).tolist() == [1, 2]
    assert np.array(value, np.int8).dtype == np.int8
    copied = np.array(value, copy=True)
    copied[:] = 0
    assert value.numpy().tolist() == [1, 2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint16, np.int64])
def test_values_go_through_dlpack(either, dtype):
    array = np.arange(6, dtype=dtype).reshape(2, 3)
    value = either.OrtValue.from_dlpack(array)
    assert value.shape() == [2, 3]
    np.testing.assert_array_equal(value.numpy(), array)
    np.testing.assert_array_equal(np.from_dlpack(value), array)
    assert value.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize(("bits", "number", "kind"), [(np.uint16, 10, "float16"), (np.uint32, 1, "float"), (np.uint8, 3, "int8")])
def test_bits_become_elements_of_another_dtype(either, bits, number, kind):
    array = np.array([0, 1, 100, np.iinfo(bits).max // 3], bits)
    value = either.OrtValue.ortvalue_from_numpy_with_onnx_type(array, number)
    assert (value.data_type(), value.element_type()) == (f"tensor({kind})", number)
    assert value.numpy().tobytes() == array.tobytes()


def test_bits_become_bfloat16():
    array = np.array([0x3F80, 0xC000, 0x7F80, 0x0001], np.uint16)
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, 16)
    assert value.data_type() == "tensor(bfloat16)"
    assert value._array.astype(oarlock.float32).tolist() == [1, -2, float("inf"), 2.0**-133]


def test_values_are_copied_in_place(either):
    one = either.OrtValue.ortvalue_from_numpy(np.array([1, 2], np.float32))
    others = [either.OrtValue.ortvalue_from_shape_and_type([2], np.float32) for _ in range(2)]
    others[0].update_inplace(one)
    if either is ort:
        # onnxruntime copies with a provider's help only.
        either.copy_tensors([one], [others[1]])
    else:
        others[1].update_inplace(one)
    assert [other.numpy().tolist() for other in others] == [[1, 2], [1, 2]]
    wide = either.OrtValue.ortvalue_from_shape_and_type([3], np.float32)
    with pytest.raises(RuntimeError):
        wide.update_inplace(one)


def test_devices_have_the_numbers_of_onnxruntime(either):
    for name, number in [("cpu", 0), ("cuda", 1), ("gpu", 1), ("npu", 3), ("cann", 3), ("webgpu", 1)]:
        device = either.OrtDevice.make(name, 2)
        assert (device.device_type(), device.device_id(), device.device_mem_type()) == (number, 2, 0)
    assert either.OrtDevice.make("cuda", 0).device_vendor_id() == either.OrtDeviceVendorId.NVIDIA
    assert either.OrtDevice.make("gpu", 0, 0x1002).device_vendor_id() == either.OrtDeviceVendorId.AMD
    with pytest.raises(Exception, match="abacus"):
        either.OrtDevice.make("abacus", 0)


def test_the_native_class_of_devices_counts_as_there(either):
    native = either.capi._pybind_state.OrtDevice
    device = native(native.cuda(), native.default_memory(), 3)
    assert (device.device_type(), device.device_id(), device.vendor_id(), device.mem_type()) == (1, 3, 0, 0)
    device = native(native.npu(), native.default_memory(), 0x8086, 1)
    assert (device.device_type(), device.device_id(), device.vendor_id()) == (3, 1, 0x8086)
    assert [native.cpu(), native.gpu(), native.fpga(), native.cann(), native.dml(), native.webgpu()] == [0, 1, 2, 3, 4, 1]


def test_memory_is_described(either):
    made = either.OrtMemoryInfo("Cpu", either.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, either.OrtMemType.DEFAULT)
    named = either.OrtMemoryInfo.create_v2(
        "Cpu",
        either.OrtMemoryInfoDeviceType.CPU,
        0,
        0,
        either.OrtDeviceMemoryType.DEFAULT,
        0,
        either.OrtAllocatorType.ORT_ARENA_ALLOCATOR,
    )
    session = either.InferenceSession(node_model("Relu"), providers=["CPUExecutionProvider"])
    for info in [made, named, *session.get_input_memory_infos(), *session.get_output_memory_infos()]:
        assert (info.name, info.device_id) == ("Cpu", 0)
        assert info.mem_type == either.OrtMemType.DEFAULT
        assert info.device_mem_type == either.OrtDeviceMemoryType.DEFAULT
        assert info.device_vendor_id == 0
    assert made.allocator_type == either.OrtAllocatorType.ORT_ARENA_ALLOCATOR
    if either is ort:
        # onnxruntime wants an allocator that a program registered.
        value = either.OrtValue.ortvalue_from_shape_and_type([2], np.int32, memory_info=made)
        assert (value.device_name(), value.data_type()) == ("cpu", "tensor(int32)")
    value = session.create_ortvalue_from_shape_and_type([2], np.float32, "cpu")
    assert (value.shape(), value.data_type()) == ([2], "tensor(float)")


def test_arenas_are_described(either):
    names = [
        "max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk",
        "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes",
    ]  # fmt: skip
    for arena, numbers in [
        (either.OrtArenaCfg(1, 2, 3, 4), [1, 2, 3, 4, -1, -1]),
        (either.OrtArenaCfg({}), [0, -1, -1, -1, -1, -1]),
        (either.OrtArenaCfg({"max_mem": 9, "initial_growth_chunk_size_bytes": 8}), [9, -1, -1, -1, 8, -1]),
    ]:
        assert [getattr(arena, name) for name in names] == numbers
    with pytest.raises((ValueError, RuntimeError), match="nonsense"):
        either.OrtArenaCfg({"nonsense": 1})


def test_other_providers_are_set_afterwards(either):
    session = either.InferenceSession(node_model("Relu"), providers=["CPUExecutionProvider"])
    session.set_providers(["CPUExecutionProvider"], [{}])
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert session.run(None, {"x": [-1, 1]})[0].tolist() == [0, 1]


@pytest.mark.filterwarnings("ignore:Duplicate provider")
def test_providers_and_their_options_belong_together(either, caplog):
    cpu = "CPUExecutionProvider"

    def load(providers, options=None):
        return either.InferenceSession(node_model("Relu"), None, providers, options)

    for providers, options in [([cpu], []), ([cpu], [{}, {}]), ([cpu], ["x"]), ([(cpu, 1)], None)]:
        assert load(providers, options).get_provider_options() == {cpu: {}}
        if either is ort:
            assert "options" in caplog.text
            caplog.clear()
    session = load([cpu, (cpu, {"arena_extend_strategy": "kSameAsRequested"})])
    assert session.get_provider_options() == {cpu: {}}
    assert load([cpu], [{}]).get_providers() == [cpu]
    if either.get_device() == "CPU":
        assert load(None).get_provider_options() == {cpu: {}}


def test_options_without_an_effect_are_named_once(caplog):
    options = {"device_id": "0", "gpu_mem_limit": 1, "arena_extend_strategy": "kSameAsRequested"}
    for _ in range(2):
        session = ort.InferenceSession(node_model("Relu"), providers=[("CPUExecutionProvider", options)])
    assert caplog.text.count("the option `gpu_mem_limit` of CPUExecutionProvider has no effect") == 1
    assert "arena_extend_strategy" not in caplog.text and "option `device_id`" not in caplog.text
    assert session.get_provider_options() == {"CPUExecutionProvider": {name: str(value) for name, value in options.items()}}


def test_values_stay_on_a_device_of_a_plugin(with_custom_cpu, tmp_path):
    model = tmp_path / "model.onnx"
    model.write_bytes(node_model("Add", inputs=("x", "z")))
    code = f"""
import logging, numpy as np
from oarlock import onnxruntime as ort
logging.disable()
session = ort.InferenceSession({str(model)!r}, providers=["CustomCPUExecutionProvider", "CPUExecutionProvider"])
assert session.get_providers()[0] == ort.get_available_providers()[0] == "CustomCPUExecutionProvider"
x = np.ones(2, np.float32)
values = [ort.OrtValue.ortvalue_from_numpy(x, name, 0) for name in ("CustomCPU", "customcpu")]
binding = session.io_binding()
for name, value in zip("xz", values):
    binding.bind_ortvalue_input(name, value)
binding.bind_output("y", values[0].device_name())
session.run_with_iobinding(binding)
print([value.device_name() for value in [*values, *binding.get_outputs()]], binding.copy_outputs_to_cpu()[0].tolist())
session.set_providers(["CPUExecutionProvider"])
print(session.get_providers(), session.get_input_memory_infos()[0].name, session.run(None, {{"x": x, "z": x}})[0].tolist())
"""
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=with_custom_cpu).stdout.splitlines()
    assert said == ["['CustomCPU', 'CustomCPU', 'CustomCPU'] [2.0, 2.0]", "['CPUExecutionProvider'] Cpu [2.0, 2.0]"]


def test_the_cpu_has_any_number(either):
    """Programs give it that of their GPU."""
    x = np.ones(3, np.float32)
    for number in (1, "2", None):
        session = either.InferenceSession(node_model("Relu"), providers=[("CPUExecutionProvider", {"device_id": number})])
        assert session.run(None, {"x": x})[0].tolist() == [1, 1, 1]
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 1, np.float32, [3], x.ctypes.data)
    binding.bind_output("y", "cpu", 2)
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [1, 1, 1]
    assert either.OrtValue.ortvalue_from_numpy(x, "cpu", 3).shape() == [3]
    assert either.OrtValue.ortvalue_from_shape_and_type([2], np.float32, "cpu", 4).shape() == [2]


def test_devices_that_are_not_there_raise_what_programs_catch(either):
    if "cuda" in [device.type for device in oarlock.devices()]:
        pytest.skip("there is one")
    with pytest.raises(RuntimeError):
        either.OrtValue.ortvalue_from_numpy(np.ones(2), "cuda", 0)
    with pytest.raises(RuntimeError):
        either.OrtValue.ortvalue_from_shape_and_type([2], np.float32, "cuda")


def test_weights_may_be_in_memory(either, tmp_path):
    onnx = pytest.importorskip("onnx")
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] y) { y = Mul(x, w) }'
    model, weights = onnx.parser.parse_model(text), np.arange(64, dtype=np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    content = (tmp_path / "weights.bin").read_bytes()
    (tmp_path / "weights.bin").unlink()
    options = either.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["weights.bin"], [content], [len(content)])
    for source in [(tmp_path / "model.onnx").read_bytes(), str(tmp_path / "model.onnx")]:
        session = either.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        assert session.run(None, {"x": np.ones(64, np.float32)})[0].tolist() == weights.tolist()


def test_bytes_with_weights_in_a_file_say_what_to_do(either, tmp_path, monkeypatch):
    raised_by = importlib.import_module(f"{either.__name__}.capi.onnxruntime_pybind11_state")
    onnx = pytest.importorskip("onnx")
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] y) { y = Mul(x, w) }'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(64, np.float32), "w"))
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(raised_by.Fail, match=r"weights\.bin") as raised:
        either.InferenceSession((tmp_path / "model.onnx").read_bytes(), providers=["CPUExecutionProvider"])
    if either is ort:
        assert "\nhint: the files of a model are expected in its folder" in str(raised.value)


def test_weights_in_memory_stay_beside_the_model():
    options = ort.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["../weights.bin"], [b""], [0])
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match="beside the model, found `../weights.bin`"):
        ort.InferenceSession(node_model("Relu"), options)
