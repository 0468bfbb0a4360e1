"""Type annotations pass the strictest settings, and the stub matches the native half."""

import json
import subprocess
import sys
from pathlib import Path

import oarlock
import pytest

PACKAGE = Path(oarlock.__file__).parent

USE = """
import numpy as np
import oarlock as ol

a: ol.Tensor = ol.asarray([1.0, 2.0]) * 2 + ol.ones((2,), dtype=ol.float32)
b: ol.Tensor = ol.sum(a @ a.mT, axis=0)[0, ..., None]
shape: tuple[int, ...] = b.shape
one: ol.Tensor = ol.op("Relu", [a])
two: tuple[ol.Tensor, ...] = ol.op("TopK", [a, ol.asarray([1])], outputs=2)
model: ol.Session = ol.load("model.onnx", device="cpu", precision=ol.bfloat16)
name: str = model.inputs[0].name
bytes_: ol.Tensor = ol.astype(a, "int8")[[0, 1]]
rows: list[ol.Tensor] = [row for row in a]
a += 1
made: dict[str, ol.Tensor] = model.run({"x": a})
with ol.Device("cpu") as device, ol.Stream(device) as stream:
    event: ol.Event = stream.record_event()
added: ol.Tensor = ol.extension.load("acme", ["swish.c"], flags=["-O3"]).swish(a, beta=2.0)
@ol.extension.op("acme::twice")
def twice(x: ol.Tensor, /) -> ol.Tensor:
    return x + x
doubled: ol.Tensor = twice(a)
summed: ol.Tensor = a.sum(0).reshape(-1, 1).T.copy() + ol.sum([1, 2]) + ol.concat([a, [1.0]], 0)
halves: tuple[ol.Tensor, ...] = a.float().to("cpu").split(1)
best, places = a.topk(1)
theirs: np.ndarray[tuple[int, ...], np.dtype[np.float64]] = np.ones(2)
of_lists: ol.Tensor = ol.exp([1.0, 2.0]) + ol.add(theirs, [1, 2]) + ol.matmul(theirs, a) + ol.isnan(1.0)
of_theirs: ol.Tensor = a + theirs + [1.0, 2.0] + (theirs @ a > [0.5])
a[0], a[1:] = 1.0, theirs
model = ol.load("model.onnx", fallback="error")
reveal_type(ol.load("model.onnx", precision=ol.bfloat16))
array: ol.Tensor = ol.load("x.npy")
grid, step = ol.linspace(0, [1.0, 2.0], 3, retstep=True)
picked: ol.Tensor = grid.max(initial=3, where=[True, False]).reshape(-1, order="F") + round(a, 1)
reveal_type(ol.fft.fft(a).dtype)
"""


def run(*command, cwd):
    # The type checker is a separate program with its own warnings.
    outcome = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=600, cwd=cwd)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    return outcome.stdout


def test_mypy_finds_nothing_in_its_strict_mode(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    cache = f"--cache-dir={tmp_path / 'cache'}"
    run("-m", "mypy", "--strict", cache, str(PACKAGE), cwd=PACKAGE.parent)
    told = run("-m", "mypy", "--strict", cache, str(tmp_path / "use.py"), cwd=PACKAGE.parent)
    assert "oarlock._oarlock.DType" in told and "oarlock._model.Session" in told


def test_the_stub_says_what_the_native_half_has(tmp_path):
    allowed = tmp_path / "allowed.txt"
    # Attributes that Python adds to modules, to subclassable classes, and from 3.12 on to buffers.
    added = ["__all__", "Session", "Tensor.__buffer__", "Tensor.__getattr__"]
    allowed.write_text("".join(f"oarlock._oarlock.{name}\n" for name in added))
    run("-m", "mypy.stubtest", "--ignore-unused-allowlist", "--allowlist", str(allowed), "oarlock._oarlock", "oarlock._methods", cwd=PACKAGE.parent)


def test_pyright_finds_nothing_in_its_strict_mode(tmp_path):
    pytest.importorskip("basedpyright")
    (tmp_path / "use.py").write_text(USE)
    settings = {
        "include": [str(PACKAGE), str(tmp_path / "use.py")],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(PACKAGE.parent)],
        # Modules of the package use its private names.
        "reportPrivateUsage": False,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    run("-m", "basedpyright", "--pythonpath", sys.executable, "-p", str(tmp_path), cwd=tmp_path)
