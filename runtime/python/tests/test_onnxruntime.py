"""Programs for onnxruntime, which change one import."""

from pathlib import Path

import numpy as np
import pytest
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


def test_outputs_that_are_not_there_are_named(session):
    with pytest.raises(ValueError, match="`nothing`"):
        session.run(["nothing"], {"image": np.load(MODELS / "digits.npy")})
