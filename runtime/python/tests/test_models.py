"""Models: loaded from files, called with arrays of any library, from many threads."""

import asyncio
import os
import signal
import threading
from pathlib import Path

import numpy as np
import oarlock as ol
import onnx
import pytest
from oarlock import onnxruntime
from onnx import TensorProto, helper, numpy_helper

MODELS = Path(__file__).parents[3] / "docs/src/models"


@pytest.fixture(scope="module")
def digits():
    return ol.load(MODELS / "digits.onnx")


def test_a_model_says_what_it_takes_and_gives(digits):
    assert [slot.name for slot in digits.inputs] == ["image"]
    assert [device.name for device in digits.devices] == ["cpu:0"]


def test_a_model_is_called_like_a_function(digits):
    image = np.load(MODELS / "digits.npy")
    made = digits(image)
    by_name = digits.run({"image": ol.asarray(image)})
    assert isinstance(made, ol.Tensor)
    assert list(by_name) == [slot.name for slot in digits.outputs]
    assert made.tolist() == by_name[digits.outputs[0].name].tolist()


def test_a_file_that_is_not_there_is_the_error_that_python_has_for_it(tmp_path):
    for load in (ol.load, onnxruntime.InferenceSession):
        with pytest.raises(FileNotFoundError, match="nothing.onnx"):
            load(tmp_path / "nothing.onnx")
        with pytest.raises(IsADirectoryError, match="expected a directory with a Paddle program"):
            load(str(tmp_path))
    (tmp_path / "empty.onnx").touch()
    with pytest.raises(ValueError, match="empty.onnx"):
        ol.load(tmp_path / "empty.onnx")


def test_wrong_inputs_are_named(digits):
    with pytest.raises(ValueError, match="image"):
        digits()
    with pytest.raises(ValueError, match="picture"):
        digits.run({"picture": np.zeros(1, np.float32)})
    with pytest.raises(ValueError, match="image"):
        digits(np.zeros((1, 1), np.float64))


def test_threads_run_one_model_at_once(digits):
    image = np.load(MODELS / "digits.npy")
    expected = digits(image).tolist()
    found = []
    threads = [
        threading.Thread(target=lambda: found.extend(digits(image).tolist() == expected for _ in range(20)))
        for _ in range(4)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == [True] * 80


def test_a_file_that_is_no_model_is_refused(tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(ValueError, match=r"bad\.onnx"):
        ol.load(tmp_path / "bad.onnx")


def test_inputs_and_outputs_have_names_dtypes_and_shapes(digits):
    (image,) = digits.inputs
    assert (image.name, image.dtype, image.shape) == ("image", ol.float32, ("batch", 1, 8, 8))
    assert image.kind == "float32[batch, 1, 8, 8]"
    assert digits.optional_inputs == []


def test_a_model_may_be_bytes(digits):
    image = np.load(MODELS / "digits.npy")
    model = ol.load((MODELS / "digits.onnx").read_bytes())
    assert model(image).tolist() == digits(image).tolist()


def test_only_known_precisions_are_taken():
    with pytest.raises(ValueError, match="bfloat16"):
        ol.load(MODELS / "digits.onnx", precision=ol.float16)


def test_a_run_can_be_awaited(digits):
    image = np.load(MODELS / "digits.npy")

    async def both():
        return await asyncio.gather(digits.arun({"image": image}), digits.arun({"image": image}))

    first, second = asyncio.run(both())
    assert first[digits.outputs[0].name].tolist() == second[digits.outputs[0].name].tolist() == digits(image).tolist()


def test_an_explanation_names_passes_and_kernels(digits):
    told = digits.explain()
    assert {step.device for step in told.steps} == {"cpu:0"}
    assert any(step.kernel for step in told.steps) and sum(told.arenas.values()) > 0
    text = str(told)
    assert "image" in text and all(step.op in text for step in told.steps)


def endless():
    """A model that counts for a very long time."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Add", ["sum", "one"], ["more"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("more", TensorProto.FLOAT, [1]),
        ],
        [helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])],
    )
    loop = helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)
    graph = helper.make_graph(
        [loop],
        "endless",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
        [helper.make_tensor("count", TensorProto.INT64, [], [2**62])],
    )
    opset = helper.make_opsetid("", 21)
    return helper.make_model(graph, ir_version=10, opset_imports=[opset]).SerializeToString()


def test_a_signal_ends_a_run_and_the_model_can_be_used_again(digits):
    model = ol.load(endless())

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            model(np.zeros(1, np.float32))
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            model.run({"x": np.zeros(1, np.float32)})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_task_that_is_cancelled_ends_its_run():
    model = ol.load(endless())

    async def impatient():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(model.arun({"x": np.zeros(1, np.float32)}), 0.2)

    # If the run continued, its thread would keep `asyncio.run` from returning.
    asyncio.run(impatient())


def test_a_model_that_is_saved_gives_the_same(digits, tmp_path):
    file = tmp_path / "ready.onnx"
    file.write_bytes(b"something else")
    digits.save(file)
    image = np.load(MODELS / "digits.npy")
    again = ol.load(file)
    assert [slot.name for slot in again.inputs] == ["image"]
    assert again(image).tolist() == digits(image).tolist()
    # A file may be overwritten while it is loaded as a model.
    again.save(file)
    assert ol.load(file)(image).tolist() == digits(image).tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["ready.onnx"]


def test_a_model_that_cannot_be_saved_leaves_nothing(digits, tmp_path):
    (tmp_path / "directory").mkdir()
    with pytest.raises(IsADirectoryError):
        digits.save(tmp_path / "directory")
    with pytest.raises(FileNotFoundError):
        digits.save(tmp_path / "none" / "ready.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["directory"]


def test_arguments_of_another_kind_are_named_with_what_takes_them(digits, tmp_path):
    with pytest.raises(TypeError, match="`run` expected names of inputs, found int"):
        digits.run({5: ol.ones(1)})
    with pytest.raises(TypeError, match="`profile` expected a whole number for `runs`, found str"):
        digits.profile(runs="x")
    with pytest.raises(TypeError, match="`save` expected the path of a file, found int"):
        digits.save(5)
    with pytest.raises(FileNotFoundError, match=r"^expected a directory `.*nowhere` to write `x\.onnx` to, found none\nhint: make it"):
        digits.save(tmp_path / "nowhere" / "x.onnx")


def _sized_model(path, size):
    """A product with a square matrix, saved to a file."""
    weight = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", size]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:], [numpy_helper.from_array(weight, "w")])
    opsets = [onnx.helper.make_opsetid("", 20)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


@pytest.mark.parametrize("size", [30, 200, 1000])
@pytest.mark.parametrize("rows_before", [0, 2, 64])
def test_a_loaded_model_does_not_need_its_file(tmp_path, size, rows_before):
    path = tmp_path / "model.onnx"
    for harm in ["truncate", "overwrite", "delete"]:
        _sized_model(path, size)
        expected = np.asarray(ol.load(path)(np.ones((2, size), np.float32)))
        model = ol.load(path)
        if rows_before:
            model(np.ones((rows_before, size), np.float32))
        if harm == "truncate":
            os.truncate(path, 100)
        elif harm == "overwrite":
            path.write_bytes(bytes(path.stat().st_size))
        else:
            path.unlink()
        # Also with another shape, for which weights are packed again.
        for rows in [2, 1, 64]:
            found = np.asarray(model(np.ones((rows, size), np.float32)))
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-4, atol=1e-4)


def test_a_weight_that_was_packed_is_read_again_to_be_saved(tmp_path):
    path, other = tmp_path / "model.onnx", tmp_path / "other.onnx"
    _sized_model(path, 500)
    model, x = ol.load(path), np.ones((64, 500), np.float32)
    expected = model(x).tolist()
    # A file that was replaced is still there for those who opened it.
    other.write_bytes(b"another model")
    other.rename(path)
    model.save(other)
    assert ol.load(other)(x).tolist() == expected


def test_a_weight_that_was_packed_and_is_gone_from_its_file_is_missed(tmp_path):
    path = tmp_path / "model.onnx"
    _sized_model(path, 500)
    model, x = ol.load(path), np.ones((64, 500), np.float32)
    expected = model(x).tolist()
    path.write_bytes(bytes(path.stat().st_size))
    os.utime(path, (1, 1))
    with pytest.raises(RuntimeError, match=r"(?s)model\.onnx.*found that it changed.*load the model again"):
        model.save(tmp_path / "other.onnx")
    assert model(x).tolist() == expected
    assert model(np.ones((128, 500), np.float32)).shape == (128, 500)
