"""Devices: listed, chosen, and where arrays are made."""

import contextvars
import subprocess
import sys
from threading import Barrier

import oarlock as ol
import pytest
from oarlock import _doctor


def test_devices_have_types_and_names():
    assert [device.name for device in ol.devices()] == ["cpu:0"]
    assert ol.Device("cpu") == ol.devices()[0] == ol.set_device("cpu")
    assert (ol.get_device(), ol.device.get_all_device_type()) == ("cpu:0", ["cpu"])
    assert ol.device.get_all_custom_device_type() == ol.device.get_available_custom_device() == []
    ol.device.synchronize()


def test_a_device_that_is_not_there_is_named_with_those_that_are():
    for wrong in ["cuda:7", "cpu:1", "nonsense"]:
        with pytest.raises((ValueError, IndexError), match="cpu"):
            ol.Device(wrong)
        with pytest.raises((ValueError, IndexError), match="cpu"):
            ol.ones(1, device=wrong)


def test_a_block_chooses_the_device_and_leaves_it_again():
    with ol.Device("cpu:0") as outer:
        with outer as inner:
            assert ol.ones(1).device == inner
        assert contextvars.copy_context().run(lambda: ol.ones(1).device) == outer
    assert ol.ones(1).device == outer


def test_a_plugin_brings_a_device(with_custom_cpu):
    code = """
import oarlock as ol
assert ol.device.get_all_custom_device_type() == ["CustomCPU"], ol._oarlock._plugins()
with ol.Device("CustomCPU:0"):
    x = ol.to_tensor([1])
print(x + x)
try: x + ol.ones(1, dtype=x.dtype)
except ValueError as error: print(str(error).replace("\\n", " "))
try: x + ol.ones(1, dtype=ol.float32)
except ValueError as error: print(str(error).replace("\\n", " "))
try: ol.concat([x, ol.ones(1, dtype=x.dtype)])
except ValueError as error: print(str(error).replace("\\n", " "))
for key in [ol.asarray([0]), ol.asarray([True])]:
    for pick in (lambda: x[key], lambda: x.__setitem__(key, 0)):
        try: pick()
        except ValueError as error: print(str(error).replace("\\n", " "))
ol.set_device("CustomCPU")
print(ol.to_tensor([2.5]).place, ol.get_device())
"""
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=with_custom_cpu)
    assert outcome.returncode == 0, outcome.stderr
    first, *others = outcome.stdout.splitlines()
    assert first == "Tensor(shape=[1], dtype=int64, place=Place(CustomCPU:0), stop_gradient=True,"
    for refused in others[1:8]:
        assert "CustomCPU:0" in refused and "`cpu:0" in refused and "`to_device`" in refused, others
    assert others[-1] == "CustomCPU:0 CustomCPU:0"


def test_flags_are_chosen_before_the_first_array():
    code = """
import oarlock as ol
ol.set_flags({"threads": 1, "deterministic": True})
assert ol.ones(1).tolist() == [1.0]
assert (ol.get_flags()["threads"], ol.get_flags()["deterministic"]) == ("1", "true"), ol.get_flags()
try: ol.set_flags({"threads": 2})
except ol.Error as error: print(error)
"""
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "has started" in outcome.stdout, outcome.stderr


def test_work_in_streams_is_done_in_its_order(with_custom_cpu):
    code = """
import oarlock as ol
one, other = ol.Stream("CustomCPU"), ol.Stream("CustomCPU", priority=1)
x = ol.ones(1000, device="CustomCPU")
begin, end = ol.Event("CustomCPU"), ol.Event("CustomCPU")
begin.record(one)
with one:
    assert ol.zeros(1).device == one.device
    y = x + x
    for _ in range(10):
        y = y + x
one.record_event(end)
other.wait_event(end)
other.wait_stream(one)
with other:
    z = y + y
other.synchronize()
assert z.tolist() == [24.0] * 1000 and one.is_done() and end.is_done()
print(begin.elapsed_time(end))
"""
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=with_custom_cpu)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout == "None\n" or float(outcome.stdout) >= 0


def test_streams_of_the_cpu_are_done_at_once():
    with ol.Stream() as stream:
        assert (ol.ones(3) + 1).tolist() == [2.0, 2.0, 2.0]
    assert stream.is_done() and stream.record_event().is_done() and repr(stream) == "Stream(cpu:0)"


def test_devices_of_a_kind_are_tried_at_the_same_time(monkeypatch):
    gate = Barrier(2)
    (cpu,) = ol.devices()
    tried = []

    def check(device, place=0):
        if len(tried) >= 2:
            gate.wait(timeout=30)
        tried.append(place)
        return _doctor.Checked(device.name, device.description, "it mixes them up" if place == _doctor.ROUNDS else None)

    monkeypatch.setattr(_doctor, "check", check)
    alone, beside = _doctor.check_all([cpu, cpu])
    assert alone.problem is None and beside.problem == "beside the others of its kind, it mixes them up"
    assert sorted(tried) == sorted([0, 0, *range(2 * _doctor.ROUNDS)])


@pytest.mark.parametrize("name", ["rocm", "hip", "dcu", "xpu", "npu", "ipu"])
def test_a_device_whose_plugin_is_planned_is_told_so(name):
    with pytest.raises((ValueError, IndexError), match="planned: there is no plugin for it yet"):
        ol.set_device(name)
