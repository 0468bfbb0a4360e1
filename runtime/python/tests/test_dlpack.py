"""Memory that is given out through DLPack: no consumer can change an array of ours."""

import ctypes

import numpy as np
import oarlock as ol
import pytest


def consumer(library, **arguments):
    """A function that takes an array as this library does: the library is known by the module of the code that calls."""
    scope = {"__name__": library}
    exec("def take(array, arguments): return array.__dlpack__(**arguments)", scope)  # noqa: S102
    return lambda array: scope["take"](array, arguments)


class Managed(ctypes.Structure):
    """DLPack's tensor: the address of its elements is all that is needed here."""

    _fields_ = [("data", ctypes.c_void_p)]


def address_in(capsule, name, offset):
    """The address of the elements that a capsule holds."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Managed.from_address(get(capsule, name) + offset).data


VERSIONED, UNVERSIONED = (b"dltensor_versioned", 32), (b"dltensor", 0)


@pytest.mark.parametrize(
    ("library", "version", "capsule"),
    [
        ("torch.utils.dlpack", (1, 0), VERSIONED),
        ("torch", (1, 1), VERSIONED),
        ("paddle.utils.dlpack", (1, 0), VERSIONED),
        ("an_old_library", None, UNVERSIONED),
        ("an_old_library", (0, 8), UNVERSIONED),
    ],
)
def test_a_consumer_that_may_write_gets_a_copy(library, version, capsule):
    ours = ol.asarray([1.0, 2.0, 3.0])
    view = ours[1:]
    arguments = {} if version is None else {"max_version": version}
    given = consumer(library, **arguments)(ours)
    ctypes.memset(address_in(given, *capsule), 0xFF, 12)
    assert (ours.tolist(), view.tolist()) == ([1, 2, 3], [2, 3])
    with pytest.raises(BufferError, match="hint: leave out `copy=False`"):
        consumer(library, **arguments, copy=False)(ours)


def test_a_consumer_that_only_reads_shares_the_memory():
    ours = ol.asarray([1.0, 2.0, 3.0])
    given = consumer("jax.dlpack", max_version=(1, 0))(ours)
    shared = np.from_dlpack(ours)
    assert address_in(given, *VERSIONED) == shared.ctypes.data
    with pytest.raises(ValueError, match="read-only"):
        shared[0] = 7
