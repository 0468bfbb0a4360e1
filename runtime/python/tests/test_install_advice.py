"""Advice on what to install for devices that this machine could have."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import oarlock as ol
import pytest
from oarlock import _install_advice
from oarlock._install_advice import Machine, advice


@pytest.fixture
def driver(monkeypatch):
    """A function that simulates an NVIDIA driver for a CUDA version, with GPUs of some compute capabilities."""

    def change(cuda, *capabilities):
        monkeypatch.setattr(_install_advice, "_cuda", lambda: cuda)
        monkeypatch.setattr(_install_advice, "_capabilities", lambda: capabilities)

    return change


NVIDIA = ("NVIDIA",)


@pytest.mark.parametrize(
    ("machine", "there", "installed", "words"),
    [
        (Machine((), None), {"cpu"}, set(), None),
        (Machine(NVIDIA, (12, 4)), {"cpu"}, set(), "`pip install 'oarlock[cuda12]=="),
        (Machine(NVIDIA, (13, 1)), {"cpu"}, set(), "`pip install 'oarlock[cuda13]=="),
        (Machine(NVIDIA, (99, 0)), {"cpu"}, set(), "`pip install 'oarlock[cuda13]=="),
        (Machine(NVIDIA, (11, 4)), {"cpu"}, set(), "up to 11.4, and the plugin needs 12 or 13; install a newer driver"),
        (Machine(NVIDIA, None), {"cpu"}, set(), "there is no NVIDIA driver"),
        (Machine(NVIDIA, (12, 4)), {"cpu"}, {"oarlock_cuda13"}, "`oarlock-cuda13` does not fit; `pip install 'oarlock[cuda12]=="),
        (Machine(NVIDIA, (13, 0), ((7, 0),)), {"cpu"}, set(), "`pip install 'oarlock[cuda12]=="),
        (Machine(NVIDIA, (13, 0), ((7, 0),)), {"cpu"}, {"oarlock_cuda13"}, "`oarlock-cuda13` does not fit; `pip install 'oarlock[cuda12]=="),
        (Machine(NVIDIA, (13, 0), ((9, 0), (7, 0))), {"cpu"}, set(), "`pip install 'oarlock[cuda12]=="),
        (Machine(NVIDIA, (13, 0), ((9, 0), (12, 2))), {"cpu"}, set(), "`pip install 'oarlock[cuda13]=="),
        (Machine(NVIDIA, (12, 9), ((12, 2),)), {"cpu"}, set(), "up to 12.9, and the plugin needs 13; install a newer driver"),
        (Machine(NVIDIA, (11, 4), ((3, 7), (3, 5))), {"cpu"}, set(), "a GPU of compute capability 5.0 or higher, found 3.7, 3.5"),
        # A refused plugin is reported elsewhere.
        (Machine(NVIDIA, (12, 4)), {"cpu"}, {"oarlock_cuda12"}, None),
        (Machine(NVIDIA, (13, 0)), {"cpu"}, {"oarlock_cuda12"}, None),
        (Machine(NVIDIA, (12, 4)), {"cpu"}, {"liboarlock_plugin_cuda.so"}, None),
        (Machine(NVIDIA, (12, 4)), {"cpu", "cuda"}, set(), None),
        (Machine(("AMD",), None), {"cpu"}, set(), "an AMD GPU, and nothing uses it: `pip install 'oarlock[opencl]=="),
        (Machine(("Intel",), None), {"cpu"}, set(), "an Intel GPU, and nothing uses it: `pip install 'oarlock[opencl]=="),
        (Machine(("AMD",), None), {"cpu", "opencl"}, set(), None),
        (Machine(("AMD",), None), {"cpu"}, {"oarlock_opencl"}, None),
    ],
)
def test_a_gpu_that_nothing_uses_is_told_of_with_the_wheel_that_would(machine, there, installed, words):
    told = advice(machine, there, installed)
    assert len(told) == (words is not None)
    assert words is None or words in told[0]


def test_wheels_for_other_processors_are_no_advice(monkeypatch):
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="aarch64"))
    assert advice(Machine(NVIDIA, (12, 4)), {"cpu"}, set()) == []


def test_gpus_of_several_makers_are_told_of_one_by_one():
    told = advice(Machine(("AMD", "NVIDIA"), (12, 8)), {"cpu"}, set())
    assert [sentence.split(",")[0] for sentence in told] == ["there is an AMD GPU", "there is an NVIDIA GPU"]


def test_gpus_are_found_on_the_bus_or_by_their_driver(tmp_path, driver):
    for place, kind, maker in [("0", "0x030000", "0x1002"), ("1", "0x060000", "0x8086"), ("2", "0x120000", "0x1002"), ("3", "0x030200", "0x10de")]:
        device = tmp_path / "sys/bus/pci/devices" / place
        device.mkdir(parents=True)
        (device / "class").write_text(f"{kind}\n")
        (device / "vendor").write_text(f"{maker}\n")
    driver(None)
    assert _install_advice.here(str(tmp_path)) == Machine(("AMD", "NVIDIA"), None)
    assert _install_advice.here(str(tmp_path / "nothing")) == Machine((), None)
    driver((12, 2))
    assert _install_advice.here(str(tmp_path / "nothing")) == Machine(("NVIDIA",), (12, 2))


def test_the_library_of_nvidia_says_which_gpus_there_are(monkeypatch):
    import ctypes

    gpus = {1: (9, 0), 2: (7, 5)}

    class Library:
        def __init__(self, name):
            assert name == "libnvidia-ml.so.1"

        def nvmlInit_v2(self):
            return 0

        def nvmlShutdown(self):
            return 0

        def nvmlDeviceGetCount_v2(self, count):
            count._obj.value = 3
            return 0

        def nvmlDeviceGetHandleByIndex_v2(self, place, gpu):
            gpu._obj.value = place
            # This process may not see the first one.
            return 0 if place in gpus else 4

        def nvmlDeviceGetCudaComputeCapability(self, gpu, major, minor):
            major._obj.value, minor._obj.value = gpus[gpu.value]
            return 0

    monkeypatch.setattr(ctypes, "CDLL", Library)
    assert _install_advice._capabilities() == ((9, 0), (7, 5))
    monkeypatch.setattr(Library, "nvmlInit_v2", lambda _: 9)
    assert _install_advice._capabilities() == ()
    monkeypatch.delattr(Library, "nvmlInit_v2")
    assert _install_advice._capabilities() == ()


def test_a_device_that_a_wheel_brings_is_missing_with_the_command_that_installs_it(driver):
    driver((12, 4))
    for name in ["cuda", "cuda:1", "gpu"]:
        for use in (ol.Device, ol.set_device, lambda name: ol.ones(1, device=name), lambda name: ol.load(b"", device=name)):
            with pytest.raises(ValueError, match=r"`pip install 'oarlock\[cuda12\]==.*' --extra-index-url .*` provides `cuda` devices; the driver supports CUDA up to 12\.4$"):
                use(name)
    with pytest.raises(ValueError, match=r"`pip install 'oarlock\[opencl\]==[^ ]*' --index-url [^ ]*` provides"):
        ol.Device("opencl")
    for name in ["cpu:7", "npu"]:
        with pytest.raises(ValueError, match="found") as raised:
            ol.Device(name)
        assert "pip" not in str(raised.value)


def test_a_device_that_was_named_is_brought_by_what_serves_the_gpus(driver):
    driver((13, 0), (7, 0))
    with pytest.raises(ValueError, match=r"`pip install 'oarlock\[cuda12\]=="):
        ol.Device("cuda")


def test_a_device_without_a_driver_is_missing_with_what_needs_one(driver):
    driver(None)
    with pytest.raises(ValueError, match="there is no NVIDIA driver; `oarlock-cuda12` needs one for CUDA 12, `oarlock-cuda13` needs one for CUDA 13$"):
        ol.Device("cuda")


def test_the_doctor_advises_and_finds_nothing_wrong_in_that(monkeypatch, capsys):
    from oarlock import _doctor

    monkeypatch.setattr(_install_advice, "here", lambda: Machine(NVIDIA, (12, 4)))
    assert _doctor.doctor(as_json=True) == 0
    assert "oarlock[cuda12]" in json.loads(capsys.readouterr().out)["advice"][0]
    assert _doctor.doctor(as_json=False) == 0
    assert "what could be used\n  there is an NVIDIA GPU" in capsys.readouterr().out


def test_the_import_reads_nothing_of_it():
    code = "import sys, oarlock as ol; print([name for name in sys.modules if name in ('oarlock._install_advice', 'oarlock._wheels', 'ctypes')])"
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=os.environ)
    assert outcome.stdout == "[]\n", outcome.stderr
