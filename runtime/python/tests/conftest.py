"""What the tests share."""

import numpy as np
import pytest


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
