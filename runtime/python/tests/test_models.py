"""Models: loaded from files, called with arrays of any library, from many threads."""

import threading
from pathlib import Path

import numpy as np
import oarlock as ol
import pytest

MODELS = Path(__file__).parents[3] / "docs/src/models"


@pytest.fixture(scope="module")
def digits():
    return ol.load(MODELS / "digits.onnx")


def test_a_model_says_what_it_takes_and_gives(digits):
    assert [name for name, _ in digits.inputs] == ["image"]
    assert "f32" in digits.inputs[0][1]
    assert [device.name for device in digits.devices] == ["cpu:0"]


def test_a_model_is_called_like_a_function(digits):
    image = np.load(MODELS / "digits.npy")
    made = digits(image)
    by_name = digits.run({"image": ol.asarray(image)})
    assert isinstance(made, ol.Tensor)
    assert list(by_name) == [name for name, _ in digits.outputs]
    assert made.tolist() == by_name[digits.outputs[0][0]].tolist()


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
