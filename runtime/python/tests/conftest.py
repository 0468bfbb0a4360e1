"""What the tests share."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

REPOSITORY = Path(__file__).parents[3]


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


@pytest.fixture(scope="session")
def with_custom_cpu(tmp_path_factory):
    """The variables of a process that finds the device of the template for plugins in C, `CustomCPU`."""
    directory = tmp_path_factory.mktemp("plugins")
    sources = sorted((REPOSITORY / "device-sdk/templates/c").glob("*.c"))
    include = REPOSITORY / "device-sdk/include"
    library = directory / "libcustom_cpu.so"
    subprocess.run(["cc", "-std=c11", "-O2", "-fPIC", "-shared", f"-I{include}", "-o", library, *sources], check=True)
    return os.environ | {"OARLOCK_PLUGIN_PATH": str(directory)}
