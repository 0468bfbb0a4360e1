"""The adapter has the names of onnxruntime, or says what to do instead."""

import importlib
import inspect
import logging
import re
import time

import numpy as np
import oarlock
import pytest
from conftest import child, node_model
from oarlock import onnxruntime as ort
from oarlock.onnxruntime._absent import INSTEAD

MODULES = ["", ".capi._pybind_state", ".capi.onnxruntime_pybind11_state", ".capi.onnxruntime_inference_collection"]
CLASSES = [
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtHardwareDeviceType",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtMemoryInfoDeviceType",
    "OrtSparseFormat",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
]
# Names that are only there because a module of onnxruntime uses them.
USED = {
    "Any", "C", "Callable", "IntEnum", "Sequence", "annotations", "collections", "contextlib", "np", "onnxruntime_validation",
    "os", "platform", "typing", "warnings", "weakref",
}  # fmt: skip
# Names for its own Python half, and aliases for type checkers.
INTERNAL = {
    "GetInitializerLocationFunc", "GetInitializerLocationWrapperFunc", "Session", "check_and_normalize_provider_args",
    "get_vendor_id_for_device_type", "import_capi_exception", "make_get_initializer_location_func_wrapper",
}  # fmt: skip


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")} - USED - INTERNAL


@pytest.mark.parametrize("module", MODULES)
def test_names_of_modules_are_there_or_say_what_to_do(module):
    theirs = pytest.importorskip(f"onnxruntime{module}")
    ours = importlib.import_module(f"oarlock.onnxruntime{module}")
    assert {name for name in public(theirs) if not hasattr(ours, name)} <= set(INSTEAD)
    for name in public(theirs) & set(INSTEAD):
        with pytest.raises(AttributeError, match=re.escape(f"found `{name}`\nhint: {INSTEAD[name]}")):
            getattr(ours, name)


def an_instance(package, name):
    """An object of a class; of an enumeration, its first."""
    session = package.InferenceSession(node_model("Relu"), providers=["CPUExecutionProvider"])
    made = {
        "IOBinding": session.io_binding,
        "InferenceSession": lambda: session,
        "ModelMetadata": session.get_modelmeta,
        "NodeArg": lambda: session.get_inputs()[0],
        "OrtArenaCfg": lambda: package.OrtArenaCfg({}),
        "OrtDevice": lambda: package.OrtDevice.make("cpu", 0),
        "OrtMemoryInfo": lambda: session.get_input_memory_infos()[0],
        "OrtValue": lambda: package.OrtValue.ortvalue_from_numpy(np.ones(1, np.float32)),
    }
    options = {"RunOptions": package.RunOptions, "SessionOptions": package.SessionOptions}
    return (made | options).get(name, lambda: next(iter(getattr(package, name).__members__.values())))()


@pytest.mark.parametrize("name", CLASSES)
def test_names_of_classes_are_there_or_say_what_to_do(name):
    theirs, ours = an_instance(pytest.importorskip("onnxruntime"), name), an_instance(ort, name)
    assert {each for each in public(theirs) if not hasattr(ours, each)} <= set(INSTEAD)


def test_no_supported_name_is_among_the_others():
    for thing in [ort, ort.capi.onnxruntime_pybind11_state, *(an_instance(ort, name) for name in CLASSES)]:
        assert not public(thing) & set(INSTEAD)


@pytest.mark.parametrize("kind", ["InferenceSession", "OrtValue", "IOBinding"])
def test_parameters_have_the_names_that_onnxruntime_has(kind):
    theirs, ours = getattr(pytest.importorskip("onnxruntime"), kind), getattr(ort, kind)
    for name in public(theirs) - set(INSTEAD):
        method = getattr(theirs, name)
        if not inspect.isfunction(method) and not inspect.ismethod(method):
            continue
        expected, found = (list(inspect.signature(each).parameters) for each in (method, getattr(ours, name)))
        assert found == expected, name


def test_numbers_of_enumerations_are_those_of_onnxruntime():
    theirs = pytest.importorskip("onnxruntime")
    for name in public(ort):
        if inspect.isclass(getattr(ort, name)) and hasattr(getattr(ort, name), "__members__"):
            expected = {each: int(value) for each, value in getattr(theirs, name).__members__.items()}
            assert {each: int(value) for each, value in getattr(ort, name).__members__.items()} == expected, name


def test_options_begin_with_the_values_that_they_have_there():
    theirs = pytest.importorskip("onnxruntime")
    for name in ["SessionOptions", "RunOptions"]:
        expected, found = getattr(theirs, name)(), getattr(ort, name)()
        for each in public(expected) - set(INSTEAD):
            if not callable(getattr(expected, each)):
                value = getattr(expected, each)
                assert getattr(found, each) == (int(value) if hasattr(value, "value") else value), each


def test_the_version_is_one_of_onnxruntime_and_ours_is_beside_it():
    assert tuple(map(int, ort.__version__.split("."))) >= (1, 32)
    assert ort.version == ort.__version__ and ort.package_name == "onnxruntime"
    assert ort.oarlock_version == oarlock.__version__
    for said in [ort.get_version_string(), ort.get_build_info()]:
        assert ort.__version__ in said and oarlock.__version__ in said
    validation = importlib.import_module("oarlock.onnxruntime.capi.onnxruntime_validation")
    assert validation.get_package_name_and_version_info() == ("onnxruntime", ort.__version__, "")
    validation.check_distro_info()


def test_debug_information_names_versions_and_devices(capsys):
    ort.print_debug_info()
    said = capsys.readouterr().out
    assert oarlock.__version__ in said and "cpu:0" in said


def test_calls_that_have_nothing_to_do_do_nothing(either):
    either.preload_dlls()
    either.preload_dlls(cuda=False, cudnn=False, msvc=False, directory="")
    either.set_default_logger_verbosity(1)
    either.set_default_logger_verbosity(0)
    assert either.has_collective_ops() is False
    session = either.InferenceSession(node_model("Relu"), providers=["CPUExecutionProvider"])
    session.release_captured_graph()
    session.disable_fallback()
    session.enable_fallback()


def test_allocators_are_described_and_have_no_effect():
    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(info, None)
    ort.create_and_register_allocator_v2("CPUExecutionProvider", info, {}, ort.OrtArenaCfg(0, -1, -1, -1))


def test_random_numbers_repeat_after_a_seed():
    code = """
        import oarlock, oarlock.onnxruntime as ort
        ort.set_seed({seed})
        print(oarlock.op("RandomNormal", [], {{"shape": [3]}}).tolist())
    """
    assert child(code.format(seed=0)) == child(code.format(seed=0)) != child(code.format(seed=7))
    assert child(code.format(seed=-1)) == child(code.format(seed=-1))


def test_a_seed_that_comes_too_late_is_said(caplog):
    oarlock.asarray([1])
    ort.set_seed(1)
    ort.set_global_thread_pool_sizes(1, 1)
    assert "`set_seed` has an effect only before the first session" in caplog.text
    assert "`threads` stays as it is" in caplog.text


def test_severities_are_those_of_the_logger():
    log = logging.getLogger("oarlock.onnxruntime")
    try:
        ort.set_default_logger_severity(3)
        assert log.getEffectiveLevel() == logging.ERROR
        for severity in (-1, 5):
            with pytest.raises(RuntimeError, match="0 to 4"):
                ort.set_default_logger_severity(severity)
    finally:
        log.setLevel(logging.NOTSET)


def test_messages_go_to_a_callback(capsys):
    log, said = logging.getLogger("oarlock.onnxruntime"), []
    try:
        ort.set_default_logger_callback(lambda *message: said.append(message), 2)
        log.warning("a message")
        log.info("another")
        ((severity, *_, text),) = said
        assert (severity, text) == (2, "a message")
        ort.set_default_logger_callback(None)
        log.warning("a third")
        assert len(said) == 1
    finally:
        ort.set_default_logger_callback(None)
        log.setLevel(logging.NOTSET)


def test_profiling_tells_when_it_began(either, tmp_path):
    options = either.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "trace")
    before = time.time_ns()
    session = either.InferenceSession(node_model("Relu"), options, providers=["CPUExecutionProvider"])
    assert before <= session.get_profiling_start_time_ns() <= time.time_ns()
    session.end_profiling()
    other = either.InferenceSession(node_model("Relu"), providers=["CPUExecutionProvider"])
    assert other.get_profiling_start_time_ns() == 0


def test_sparse_tensors_are_refused():
    for make in [ort.SparseTensor, ort.SparseTensor.sparse_coo_from_numpy, ort.SparseTensor.sparse_csr_from_numpy]:
        with pytest.raises(NotImplementedError, match="sparse tensor\nhint: use NumPy arrays"):
            make(np.array([2]), np.array([1]), np.array([0]))
    assert not isinstance(np.ones(1), ort.SparseTensor)
