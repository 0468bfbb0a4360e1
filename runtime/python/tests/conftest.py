"""What the tests share."""

import atexit
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

REPOSITORY = Path(__file__).parents[3]
# The instruction set that kernels of the CPU have to use: `scripts/test-isa` forces one.
FORCED_ISA = os.environ.get("OARLOCK_TEST_ISA")


def _force_isa():
    """Has every runtime use the set, here and in child processes, unless a test has a configuration of its own."""
    directory = tempfile.TemporaryDirectory()
    atexit.register(directory.cleanup)
    file = Path(directory.name) / "config.toml"
    file.write_text(f'[plugin.oarlock-cpu]\nisa = "{FORCED_ISA}"\n')
    os.environ["OARLOCK_CONFIG"] = str(file)


if FORCED_ISA:
    _force_isa()

# How long a call takes is up to what else the machine does, so no test fails because of it.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def _errors_of_numpy():
    # What NumPy warns of, such as a division by 0, is what is compared.
    with np.errstate(all="ignore"):
        yield


def same(found, expected):
    """Whether an array is what NumPy says: dtype, shape, and every element."""
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype.name == expected.dtype.name
    np.testing.assert_array_equal(np.asarray(found), expected)


def child(code, **variables):
    """What a program in another process prints."""
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


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


def c_template():
    """What a compiler is told to make the template for plugins in C."""
    sources = sorted((REPOSITORY / "device-sdk/templates/c").glob("*.c"))
    return ["-std=c11", f"-I{REPOSITORY / 'device-sdk/include'}", *sources]


@pytest.fixture(scope="session")
def with_custom_cpu(tmp_path_factory):
    """The variables of a process that finds the device of the template for plugins in C, `CustomCPU`."""
    directory = tmp_path_factory.mktemp("plugins")
    library = directory / "libcustom_cpu.so"
    subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-o", library, *c_template()], check=True)
    return os.environ | {"OARLOCK_PLUGIN_PATH": str(directory)}
