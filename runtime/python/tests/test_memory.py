"""Memory of loaded models, measured in processes of their own."""

import os
import subprocess
import sys

import numpy as np
import oarlock as ol
import onnx
import pytest
from onnx import numpy_helper

PRODUCTS, SIZE = 6, 2000

PROGRAM = """
import re, sys
import numpy as np, oarlock as ol

def megabytes(name):
    return int(re.search(name + r":\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1000

x = np.ones((64, {size}), np.float32)
ol.asarray(x) @ ol.asarray(x.T)
before = megabytes("VmRSS")
model = ol.load(sys.argv[1])
for rows in {rows}:
    model(x[:rows])
print(megabytes("VmHWM") - before, megabytes("VmRSS") - before)
"""


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    """A file of six products with matrices of 16 MB each."""
    path = tmp_path_factory.mktemp("memory") / "products.onnx"
    matrix = np.eye(SIZE, dtype=np.float32)
    weights = [numpy_helper.from_array(matrix + index, f"w{index}") for index in range(PRODUCTS)]
    nodes = [onnx.helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(PRODUCTS)]
    ends = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", SIZE])
        for name in ("x0", f"x{PRODUCTS}")
    ]
    graph = onnx.helper.make_graph(nodes, "products", ends[:1], ends[1:], weights)
    opsets = [onnx.helper.make_opsetid("", 20)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


def _growth(path, rows):
    """How much a process grew at most, and at the end, in sizes of the weights."""
    program = PROGRAM.format(size=SIZE, rows=rows)
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    return [float(number) / (path.stat().st_size / 1e6) for number in done.stdout.split()]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("rows", [[64], [2], [64, 32, 48]])
def test_weights_are_in_memory_once(products, rows):
    peak, after = _growth(products, rows)
    # While one matrix is packed, it is in memory twice.
    assert peak < 1.3, peak
    assert after < 1.15, after


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_weights_that_are_also_read_in_place_are_read_again(products):
    _, after = _growth(products, [64, 2])
    assert 1.8 < after < 2.2, after


@pytest.mark.parametrize("change", ["content", "times too", "name", "nothing"])
def test_weights_that_are_read_again_are_those_that_were_loaded(products, tmp_path, change):
    path = tmp_path / "model.onnx"
    path.write_bytes(products.read_bytes())
    before = path.stat()
    model = ol.load(path)
    x = np.ones((64, SIZE), np.float32)
    expected = model(x).numpy()[:2]
    if change == "name":
        path.rename(tmp_path / "other.onnx")
    elif change != "nothing":
        with path.open("r+b") as file:
            file.seek(5_000_000)
            file.write(b"A" * 60_000_000)
        if change == "times too":
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    # Runs with other shapes find what was packed.
    np.testing.assert_allclose(model(x[:2]).numpy(), expected, rtol=1e-4)
    if change in ("name", "nothing"):
        model.save(tmp_path / "saved.onnx")
        np.testing.assert_allclose(ol.load(tmp_path / "saved.onnx")(x[:2]).numpy(), expected, rtol=1e-4)
        return
    with pytest.raises(ol.Error, match="expected the content that was loaded, to read weights again, found that it changed"):
        model.save(tmp_path / "saved.onnx")
