"""Programs written for `paddle.inference` run on `oarlock.paddle_inference`, with only the import changed."""

import json
import struct

import numpy as np
import oarlock as ol
import pytest
from conftest import REPOSITORY, child, node_model, precisions, result_of
from oarlock import paddle_inference as inference
from oarlock.paddle_inference import INSTEAD as PACKAGE
from oarlock.paddle_inference._config import INSTEAD as CONFIG
from oarlock.paddle_inference._predictor import INSTEAD as PREDICTOR

WEIGHTS = np.float32([[1, -2], [0.5, 0], [-1, 1]])
BIAS = np.float32([0.5, 1])
X = np.arange(6, dtype=np.float32).reshape(2, 3)
EXPECTED = np.maximum(X @ WEIGHTS + BIAS, 0)


def value(number, shape):
    kind = {"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, shape, "NCHW", [], 0]}
    return {"%": number, "TT": kind}


def attribute(name, kind, value):
    return {"AT": {"#": kind, "D": value}, "N": name}


def program():
    """max(x @ weights + bias, 0), as Paddle 3 saves it."""
    gradient = [attribute("stop_gradient", "0.a_array", [{"#": "0.a_bool", "D": False}])]
    parameters = [
        {"#": "p", "A": [0, 1, 1, name], "DA": [], "O": value(number, list(array.shape)), "OA": [1, 0, 1], "QA": []}
        for number, (name, array) in enumerate([("bias", BIAS), ("weights", WEIGHTS)], 1)
    ]
    told = [attribute("name", "0.a_str", "x"), attribute("shape", "1.a_intarray", [-1, 3])]
    told += [attribute("dtype", "1.a_dtype", "float32"), attribute("place", "1.a_place", [0, 0, ""])]
    flags = [attribute(name, "0.a_bool", False) for name in ("transpose_x", "transpose_y")]
    fetched = [attribute("name", "0.a_str", "fetch_name_0"), attribute("col", "0.a_i32", 0)]
    steps = [("data", told, [], 3), ("matmul", flags, [3, 2], 4), ("add", [], [4, 1], 5), ("relu", [], [5], 6), ("fetch", fetched, [6], 7)]
    ops = [
        {"#": f"1.{op}", "A": given, "I": [{"%": each} for each in inputs], "O": [value(made, [-1, 3 if made == 3 else 2])], "OA": gradient}
        for op, given, inputs, made in steps
    ]
    block = {"#": "block_0", "args": [], "ops": parameters + ops}
    return {
        "base_code": {"magic": "pir", "trainable": True, "version": 4},
        "program": {"regions": [{"#": "region_0", "blocks": [block]}]},
    }


def parameter(array):
    """A parameter in the format of Paddle: versions, the length of a message with dtype and shape, the message, and the elements."""
    message = b"\x08\x05" + b"".join(bytes([0x10, size]) for size in array.shape)
    return struct.pack("<IQIi", 0, 0, 0, len(message)) + message + array.tobytes()


@pytest.fixture
def model(tmp_path, monkeypatch):
    """The directory of the model, which is also the current one."""
    (tmp_path / "inference.json").write_text(json.dumps(program()))
    (tmp_path / "inference.pdiparams").write_bytes(parameter(BIAS) + parameter(WEIGHTS))
    monkeypatch.chdir(tmp_path)
    return tmp_path


HANDLES = """
import numpy as np
import paddle.inference as paddle_infer

config = paddle_infer.Config("inference.json", "inference.pdiparams")
predictor = paddle_infer.create_predictor(config)
input_names = predictor.get_input_names()
input_handle = predictor.get_input_handle(input_names[0])
fake_input = np.arange(6, dtype="float32").reshape(2, 3)
input_handle.reshape([2, 3])
input_handle.copy_from_cpu(fake_input)
predictor.run()
output_names = predictor.get_output_names()
output_handle = predictor.get_output_handle(output_names[0])
result = output_handle.copy_to_cpu()
assert output_handle.shape() == [2, 2] and output_handle.type() == paddle_infer.DataType.FLOAT32
"""

SWITCHES = """
import numpy as np
from paddle.inference import Config, PrecisionType, create_predictor

def init_predictor(model_dir, use_gpu=False, use_mkldnn=True, cpu_threads=2):
    config = Config(model_dir, "inference")
    config.disable_glog_info()
    if use_gpu:
        config.enable_use_gpu(1000, 0, PrecisionType.Float32)
    else:
        config.disable_gpu()
        config.set_cpu_math_library_num_threads(cpu_threads)
        if use_mkldnn:
            config.enable_mkldnn()
            config.set_mkldnn_cache_capacity(10)
    config.switch_ir_optim(True)
    config.enable_memory_optim()
    config.switch_use_feed_fetch_ops(False)
    config.switch_specify_input_names(True)
    config.delete_pass("conv_transpose_eltwiseadd_bn_fuse_pass")
    assert not config.use_gpu()
    return create_predictor(config)

def run(predictor, arrays):
    for name, array in zip(predictor.get_input_names(), arrays):
        handle = predictor.get_input_handle(name)
        handle.reshape(array.shape)
        handle.copy_from_cpu(array.copy())
    predictor.run()
    results = [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]
    predictor.clear_intermediate_tensor()
    predictor.try_shrink_memory()
    return results

predictor = init_predictor(".")
run(predictor, [np.zeros((5, 3), "float32")])
result = run(predictor, [np.arange(6, dtype="float32").reshape(2, 3)])[0]
"""

THREADS = """
import threading
import numpy as np
from paddle import inference

config = inference.Config()
config.set_model("inference.json", "inference.pdiparams")
config.disable_glog_info()
pool = inference.PredictorPool(config, 3)
results = [None] * 3

def work(number):
    predictor = pool.retrieve(number)
    predictor.get_input_handle("x").copy_from_cpu(np.arange(6, dtype="float32").reshape(2, 3))
    predictor.run()
    results[number] = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()

threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert all((each == results[0]).all() for each in results)
result = results[-1]
"""

PROGRAMS = {"handles": HANDLES, "switches": SWITCHES, "threads": THREADS}


def ours(text):
    """The program with its import changed."""
    text = text.replace("from paddle import inference", "from oarlock import paddle_inference as inference")
    return text.replace("paddle.inference", "oarlock.paddle_inference")


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_with_another_import(name, model):
    np.testing.assert_allclose(result_of(ours(PROGRAMS[name])), EXPECTED, rtol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_programs_run_on_paddle(name, model):
    pytest.importorskip("paddle.inference")
    # Which Paddle 3.3 does not survive for a program in JSON.
    program = PROGRAMS[name].replace("    config.enable_memory_optim()\n", "")
    np.testing.assert_allclose(result_of(program), EXPECTED, rtol=1e-6)


def computed(config):
    """What a model makes of `X`."""
    predictor = inference.create_predictor(config)
    predictor.get_input_handle(predictor.get_input_names()[0]).copy_from_cpu(X)
    predictor.run()
    return predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()


def test_models_are_found_in_every_form(model):
    program, parameters = "inference.json", "inference.pdiparams"
    found = [inference.Config(program, parameters), inference.Config("."), inference.Config(".", "inference"), inference.Config(program)]
    apart = inference.Config()
    apart.set_prog_file(program)
    apart.set_params_file("renamed")
    (model / "renamed").write_bytes((model / parameters).read_bytes())
    memory, given = inference.Config(), [(model / file).read_bytes() for file in (program, parameters)]
    memory.set_model_buffer(given[0], len(given[0]), given[1], len(given[1]))
    assert memory.model_from_memory() and not apart.model_from_memory()
    for config in [*found, apart, memory]:
        np.testing.assert_allclose(computed(config), EXPECTED, rtol=1e-6)
    assert found[2].prog_file() == "./inference.json" and found[2].params_file() == "./inference.pdiparams"
    assert found[1].model_dir() == "." and found[0].prog_file() == program


def test_parameters_elsewhere_are_used_instead_of_those_beside_the_program(model):
    (model / "other").write_bytes(parameter(BIAS) + parameter(WEIGHTS * 0))
    np.testing.assert_array_equal(computed(inference.Config("inference.json", "other")), [BIAS, BIAS])


def test_a_model_of_onnx_is_a_program_without_parameters():
    predictor = inference.create_predictor(inference.Config(str(REPOSITORY / "docs/src/models/digits.onnx")))
    assert (predictor.get_input_names(), predictor.get_output_names()) == (["image"], ["probabilities"])
    assert predictor.get_input_handle("image").shape() == [-1, 1, 8, 8]


def test_arrays_go_in_and_out_without_handles(model):
    predictor = inference.create_predictor(inference.Config("."))
    for array in (X, ol.asarray(X)):
        (made,) = predictor.run([array])
        assert isinstance(made, ol.Tensor)
        np.testing.assert_allclose(made.numpy(), EXPECTED, rtol=1e-6)
    with pytest.raises(ValueError, match=r"expected 1 inputs \(`x`\), found 0"):
        predictor.run([])
    with pytest.raises(TypeError, match="expected an array of Oarlock, NumPy or a library with DLPack, found str"):
        predictor.run(["text"])


def test_an_input_is_copied_and_a_shared_one_is_not(model):
    predictor = inference.create_predictor(inference.Config("."))
    handle, output = predictor.get_input_handle("x"), predictor.get_output_handle("fetch_name_0")
    array = X.copy()
    for give, expected in [(handle.copy_from_cpu, EXPECTED), (handle.share_external_data, [BIAS, BIAS])]:
        array[:] = X
        give(array)
        array[:] = 0
        predictor.run()
        np.testing.assert_allclose(output.copy_to_cpu(), expected, rtol=1e-6)
    output.copy_to_cpu()[:] = 7
    np.testing.assert_array_equal(output.copy_to_cpu(), [BIAS, BIAS])
    handle.copy_from_cpu(X[:, ::-1])
    np.testing.assert_array_equal(handle.copy_to_cpu(), X[:, ::-1])


def test_a_clone_has_handles_of_its_own(model):
    predictor = inference.create_predictor(inference.Config("."))
    predictor.get_input_handle("x").copy_from_cpu(X)
    with pytest.raises(RuntimeError, match="found none for `x`\nhint: call `copy_from_cpu` first"):
        predictor.clone().run()
    predictor.run()


def test_another_shape_keeps_elements_that_fit(model):
    handle = inference.create_predictor(inference.Config(".")).get_input_handle("x")
    handle.copy_from_cpu(X)
    handle.reshape([3, 2])
    assert handle.copy_to_cpu().tolist() == X.reshape(3, 2).tolist() and handle.shape() == [3, 2]
    handle.reshape([1, 3])
    with pytest.raises(RuntimeError, match="input `x`: expected elements, found none\nhint: call `copy_from_cpu` first"):
        handle.copy_to_cpu()


def test_texts_are_inputs_too():
    predictor = inference.Predictor(ol.load(node_model("Identity", element="STRING")))
    predictor.get_input_handle("x").copy_from_cpu(["a", "bc"])
    predictor.run()
    assert predictor.get_output_handle("y").copy_to_cpu().tolist() == ["a", "bc"]
    with pytest.raises(NotImplementedError, match="output `y`: expected a dtype of `DataType`, found str"):
        predictor.get_output_handle("y").type()


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: inference.Config(), ValueError, r"expected the files of a model, found none\nhint: name them"),
        (lambda: inference.Config("no.json", "inference.pdiparams"), RuntimeError, "`no.json`: expected a file of the model, found none"),
        (lambda: inference.Config("inference.json", "no"), FileNotFoundError, "`no`: expected a file of the model, found none"),
        (lambda: inference.Config("inference.pdiparams", "inference.json"), ValueError, "`inference.pdiparams`: expected a program of Paddle"),
    ],
)
def test_a_model_that_is_not_there_is_named(make, kind, said, model):
    with pytest.raises(kind, match=said) as raised:
        inference.create_predictor(make())
    assert isinstance(raised.value, (RuntimeError, ValueError)) and "oarlock-" not in str(raised.value)


def test_mistakes_are_told_in_words_of_the_program(model):
    predictor = inference.create_predictor(inference.Config("."))
    handle, output = predictor.get_input_handle("x"), predictor.get_output_handle("fetch_name_0")
    for call, kind, said in [
        (lambda: predictor.get_input_handle("y"), RuntimeError, "expected one of the inputs `x`, found `y`"),
        (lambda: predictor.get_output_handle("y"), RuntimeError, "expected one of the outputs `fetch_name_0`, found `y`"),
        (output.copy_to_cpu, RuntimeError, "output `fetch_name_0`: expected elements, found none\nhint: call `run` of the predictor first"),
        (lambda: output.copy_from_cpu(X), ValueError, "output `fetch_name_0`: expected an input for `copy_from_cpu`, found an output"),
        (lambda: handle.copy_from_cpu([1.0]), TypeError, "input `x`: expected a NumPy array or a list of texts, found list"),
        (lambda: handle.set_lod([[0, 2]]), RuntimeError, "expected an empty LoD, found 1 levels\nhint: pad sequences"),
        (lambda: inference.PredictorPool(inference.Config("."), 2).retrieve(2), ValueError, "expected a predictor from 0 to 1, found 2"),
        (lambda: inference.PredictorPool(inference.Config("."), 0), ValueError, "expected a pool of at least 1 predictor, found 0"),
        (lambda: inference.Config(".").set_cpu_math_library_num_threads(0), ValueError, "expected at least 1 thread, found 0"),
    ]:
        with pytest.raises(kind, match=said):
            call()
    for wrong in (X.astype("float64"), X[:, :2]):
        handle.copy_from_cpu(wrong)
        with pytest.raises(ValueError, match=r"input `x`: expected float32\[\?, 3\], found") as raised:
            predictor.run()
        assert isinstance(raised.value, RuntimeError)


def test_a_device_that_is_not_there_is_the_cpu_or_an_error(model):
    config = inference.Config(".")
    with pytest.warns(ol.FallbackWarning, match="`enable_use_gpu`: expected a device .*; the model runs on the CPU"):
        config.enable_use_gpu(100, 0)
    assert not config.use_gpu() and config.gpu_device_id() == 0
    with pytest.raises(ValueError, match="found `xpu:0`"):
        config.enable_xpu()
    with pytest.raises(ValueError, match="found `npu:1`"):
        config.enable_custom_device("npu", 1)
    config.enable_custom_device("cpu", 0, inference.PrecisionType.Bfloat16)
    assert "Bfloat16" in config.summary()
    np.testing.assert_allclose(computed(config), EXPECTED, rtol=1e-2)


def test_a_number_of_threads_is_that_of_the_first_model(model):
    code = """
        import oarlock, warnings
        from oarlock.paddle_inference import Config, create_predictor
        config = Config(".")
        config.set_cpu_math_library_num_threads(1)
        for count in (1, 1, 2):
            config.set_cpu_math_library_num_threads(count)
            with warnings.catch_warnings(record=True) as said:
                create_predictor(config)
            print(oarlock.get_flags("threads")["threads"], [str(each.message).partition(";")[0] for each in said])
    """
    late = "`set_cpu_math_library_num_threads` has an effect only before the first model"
    assert child(code).splitlines() == ["1 []", "1 []", f"1 ['{late}']"]


def test_bfloat16_is_a_permission(model, monkeypatch):
    asked = precisions(monkeypatch, "oarlock.paddle_inference._config")
    for switch in ("enable_mkldnn_bfloat16", "enable_onednn_bfloat16", "enable_mkldnn"):
        config = inference.Config(".")
        getattr(config, switch)()
        np.testing.assert_allclose(computed(config), EXPECTED, rtol=1e-2)
    assert asked == [ol.bfloat16, ol.bfloat16, ol.float32]


@pytest.mark.parametrize("name", ["", "Config", "Predictor", "PredictorPool", "Tensor"])
def test_names_are_those_of_paddle_or_say_what_to_do(name):
    theirs = pytest.importorskip("paddle.inference")
    ours = {"": inference, "Config": inference.Config()}.get(name) or getattr(inference, name)
    # Members of enumerations that stand among methods, its own modules, and one address of memory.
    apart = {*inference.PrecisionType.__members__, "wrapper", "share_external_data_by_ptr_name"}
    names = {each for each in dir(getattr(theirs, name) if name else theirs) if each[0] != "_"} - apart
    told = {"": PACKAGE, "Config": CONFIG, "Predictor": PREDICTOR}.get(name, {})
    assert names - set(dir(ours)) - set(told) == set()
    assert not set(told) & set(dir(ours))


def test_enumerations_are_those_of_paddle():
    theirs = pytest.importorskip("paddle.inference")
    for name in ("DataType", "PlaceType", "PrecisionType"):
        expected = {each: value.value for each, value in getattr(theirs, name).__members__.items()}
        assert {each: int(value) for each, value in getattr(inference, name).__members__.items()} == expected


class Foreign:
    """An array of a library with DLPack."""

    def __init__(self):
        self.__dlpack__, self.__dlpack_device__ = ol.asarray(X).__dlpack__, ol.asarray(X).__dlpack_device__


def test_handles_tell_what_they_hold(model):
    predictor = inference.PredictorPool(inference.Config(".")).retrieve(0)
    handle, output = predictor.get_input_handle("x"), predictor.get_output_handle("fetch_name_0")
    assert handle.type() is output.type() is inference.DataType.FLOAT32 and output.shape() == [-1, 2]
    handle.copy_from_cpu(X.astype("int64"))
    assert handle.type() is inference.DataType.INT64 and handle.lod() == []
    handle.set_lod([])
    handle.share_external_data(Foreign())
    predictor.run()
    assert output.shape() == [2, 2] and predictor.try_shrink_memory() >= 0
    with pytest.raises(AttributeError, match="found `register_output_hook`\nhint: `oarlock.load"):
        predictor.register_output_hook


def test_names_without_support_say_what_to_do():
    with pytest.raises(AttributeError, match="expected a name that `Config` has, found `enable_ipu`\nhint: name the device"):
        inference.Config().enable_ipu()
    with pytest.raises(AttributeError, match="found `convert_to_mixed_precision`\nhint: `enable_mkldnn_bfloat16`"):
        inference.convert_to_mixed_precision
    with pytest.raises(AttributeError, match="found `nothing`$"):
        inference.Config().nothing
    config = inference.Config()
    assert {"switch_ir_optim", "ir_optim", "prog_file"} <= set(dir(config))
    assert config.ir_optim() and not config.tensorrt_engine_enabled()


def test_the_version_is_one_of_paddle_and_ours_is_beside_it():
    assert inference.get_version() == f"version: 3.3.1+oarlock.{ol.__version__}\n"
