"""Shared fixtures and helpers."""

import atexit
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import oarlock as ol
import onnx
import pytest
from hypothesis import HealthCheck, settings
from oarlock import _peers

REPOSITORY = Path(__file__).parents[3]
# The instruction set of CPU kernels that `scripts/test-isa` forces.
FORCED_ISA = os.environ.get("OARLOCK_TEST_ISA")


def _force_isa():
    """Makes every runtime use this set, also in child processes, unless a test has its own configuration."""
    directory = tempfile.TemporaryDirectory()
    atexit.register(directory.cleanup)
    file = Path(directory.name) / "config.toml"
    file.write_text(f'[plugin.oarlock-cpu]\nisa = "{FORCED_ISA}"\n')
    os.environ["OARLOCK_CONFIG"] = str(file)


if FORCED_ISA:
    _force_isa()

# The duration of a call depends on other work on the machine, so no test fails because of it.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def _errors_of_numpy():
    # Tests compare cases that NumPy warns about, such as a division by 0.
    with np.errstate(all="ignore"):
        yield


def same(found, expected):
    """Checks that an array equals NumPy's in dtype, shape and every element."""
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype.name == expected.dtype.name
    np.testing.assert_array_equal(np.asarray(found), expected)


def child(code, **variables):
    """The output of a program in another process."""
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


def result_of(program):
    """What a program leaves as `result`, from a process of its own, because some settings are for a whole process."""
    return np.array(json.loads(child(f"{program}\nimport json; print(json.dumps(result.tolist()))").splitlines()[-1]))


def precisions(monkeypatch, module):
    """The precisions that a module opens models with, from now on. Whether bfloat16 changes a result depends on the processor."""
    asked, open_model = [], _peers.open_model

    def spy(model, device=None, precision=ol.float32):
        asked.append(precision)
        return open_model(model, device, precision)

    monkeypatch.setattr(f"{module}.open_model", spy)
    return asked


def model_with(domain, op, **attributes):
    """-op(max(x, 0)), for any number of elements."""
    nodes = [
        onnx.helper.make_node("Relu", ["x"], ["a"]),
        onnx.helper.make_node(op, ["a"], ["b"], domain=domain, **attributes),
        onnx.helper.make_node("Neg", ["b"], ["y"]),
    ]
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid(domain, 1)]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n"]) for name in "xy"]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:])
    return ol.load(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())


def node_model(op, domain="", inputs=("x",), element="FLOAT", **attributes):
    """The file of a model of one node, which computes `y`; each input has one axis, and `at` has whole numbers."""
    helper, types = onnx.helper, onnx.TensorProto
    node = helper.make_node(op, list(inputs), ["y"], domain=domain, **attributes)
    given = [helper.make_tensor_value_info(name, types.INT64 if name == "at" else types.DataType.Value(element), [None]) for name in inputs]
    graph = helper.make_graph([node], "graph", given, [helper.make_tensor_value_info("y", types.DataType.Value(element), None)])
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.fixture(params=["oarlock.onnxruntime", "onnxruntime"])
def either(request):
    """Oarlock's adapter, and onnxruntime itself."""
    return pytest.importorskip(request.param)


def c_template():
    """The compiler arguments for the C plugin template."""
    sources = sorted((REPOSITORY / "device-sdk/templates/c").glob("*.c"))
    return ["-std=c11", f"-I{REPOSITORY / 'device-sdk/include'}", *sources]


@pytest.fixture(scope="session")
def with_custom_cpu(tmp_path_factory):
    """The environment of a process that finds `CustomCPU`, the device of the C plugin template."""
    directory = tmp_path_factory.mktemp("plugins")
    library = directory / "libcustom_cpu.so"
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-o", library, *c_template()], check=True)
    return os.environ | {"OARLOCK_PLUGIN_PATH": str(directory)}
