"""Pickling and copying arrays."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import oarlock as ol
import pytest
from conftest import REPOSITORY, same


def arrays():
    yield ol.asarray(1.5)
    yield ol.zeros((2, 0, 3), dtype=ol.int16)
    yield ol.asarray([True, False])
    yield ol.asarray([1 + 2j])
    yield ol.reshape(ol.arange(24), (2, 3, 4))[:, ::-1, 1:].mT
    yield ol.asarray([float("nan"), -0.0, float("inf")])


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_array_is_the_same_after_it_was_pickled(protocol):
    for array in arrays():
        made = pickle.loads(pickle.dumps(array, protocol))
        same(made, np.asarray(array))
        assert made.device == array.device


def test_dtypes_that_numpy_has_not_are_pickled_too():
    for array in [ol.asarray(["a", "", "ü"]), ol.asarray([1.5, 2.0]).astype(ol.bfloat16)]:
        made = pickle.loads(pickle.dumps(array))
        assert (made.dtype, made.tolist()) == (array.dtype, array.tolist())


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: copy.deepcopy([x])[0]])
def test_a_copy_has_memory_of_its_own(copied):
    theirs = np.arange(3.0)
    ours = ol.from_dlpack(theirs)
    made = copied(ours)
    made[0] = 7
    theirs[1] = 9
    assert (ours.tolist(), made.tolist()) == ([0, 9, 2], [7, 1, 2])


def test_a_device_that_is_not_there_is_named_where_an_array_is_loaded(with_custom_cpu, tmp_path):
    file = tmp_path / "array"
    write = f"import oarlock, pickle; pickle.dump(oarlock.ones(2, device='CustomCPU'), open({str(file)!r}, 'wb'))"
    subprocess.run([sys.executable, "-c", write], env=with_custom_cpu, check=True)
    read = f"import oarlock, pickle; print(pickle.load(open({str(file)!r}, 'rb')).device)"
    outcome = subprocess.run([sys.executable, "-c", read], env=with_custom_cpu, capture_output=True, text=True)
    assert outcome.stdout == "CustomCPU:0\n"
    with pytest.raises(ValueError, match=r"found `CustomCPU:0`\n(.*\n)*hint: the array lay there when it was pickled.*to_device"):
        pickle.loads(file.read_bytes())


def test_devices_and_dtypes_are_pickled_by_their_names():
    assert pickle.loads(pickle.dumps(ol.Device("cpu"))) == ol.Device("cpu")
    for dtype in [ol.float32, ol.asarray("a").dtype, ol.asarray([1.5]).astype("float8_e5m2").dtype]:
        assert copy.deepcopy(dtype) is dtype and pickle.loads(pickle.dumps(dtype)) is dtype


@pytest.mark.parametrize("refused", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_model_is_not_pickled_and_says_what_to_do(refused):
    with pytest.raises(TypeError, match="its path"):
        refused(ol.load(REPOSITORY / "docs/src/models/digits.onnx"))


def test_bytes_that_are_no_array_are_refused():
    from oarlock._oarlock import _restored

    with pytest.raises(ValueError):
        _restored(ol.float32, (2,), "cpu:0", b"123")
    with pytest.raises(TypeError):
        _restored(ol.float32, (2,), "cpu:0", 7)
