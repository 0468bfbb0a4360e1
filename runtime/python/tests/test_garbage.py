"""Garbage arguments to public functions raise exceptions of a fitting type with a message."""

import inspect
import operator

import numpy as np
import oarlock as ol
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FITTING = (TypeError, ValueError, IndexError, OverflowError, MemoryError, NotImplementedError, BufferError, OSError, ol.Error)
# They accept functions, start other parts of the package, or close what other tests use.
APART = {"run_check", "set_device", "set_flags", "device", "fft", "onnx_backend", "onnxruntime", "profiler", "load"}


def arrays():
    return [
        ol.asarray([[1.5, -2.0], [float("nan"), float("inf")]]),
        ol.asarray([3, 0, -1]),
        ol.asarray([True, False]),
        ol.asarray([1 + 2j]),
        ol.asarray(["text"]),
        ol.asarray(7, dtype=ol.uint8),
        ol.zeros((0, 3)),
        ol.ones((2, 3, 4), dtype=ol.float64),
        ol.ones(2).astype(ol.bfloat16),
    ]


GARBAGE = [
    *arrays(), None, True, 0, -1, 3, 2**70, -(2**63), 1.5, float("nan"), 1j, "", "cpu", "sum", b"x", (), (0, 1), (-1,), [1, [2]], [[]],
    {"a": 1}, object(), ol.float32, "int8", np.float32(2), np.zeros((2, 2)), np.array(["x"], object), slice(None), Ellipsis, range(3),
    ol.Device("cpu"), int, len,
]  # fmt: skip
NAMES = sorted(name for name in ol.__all__ if name not in APART and callable(getattr(ol, name)))
NAMES += [f"linalg.{name}" for name in ol.linalg.__all__] + [f"fft.{name}" for name in ol.fft.__all__]
NAMES += [f"nn.functional.{name}" for name in ol.nn.functional.__all__]
METHODS = sorted(name for name in dir(ol.Tensor) if callable(getattr(ol.Tensor, name)) and not name.startswith("__"))
SPECIAL = ["__getitem__", "__add__", "__rsub__", "__pow__", "__matmul__", "__lshift__", "__dlpack__", "__array_namespace__", "__eq__"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    # Some functions write files, and some change how arrays are printed.
    monkeypatch.chdir(tmp_path)
    with ol.printoptions():
        yield


def call(function, positional, named):
    try:
        function(*positional, **named)
    except FITTING as error:
        assert str(error), f"{type(error).__name__} without a word"


garbage = st.sampled_from(GARBAGE)
several = st.lists(garbage, max_size=4)


def keywords(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return st.just({})
    names = [one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    return st.dictionaries(st.sampled_from(names), garbage) if names else st.just({})


LIMITS = settings(max_examples=40, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.parametrize("name", NAMES)
def test_a_function_takes_anything(name):
    function = operator.attrgetter(name)(ol)

    @LIMITS
    @given(several, keywords(function))
    def ends_well(positional, named):
        call(function, positional, named)

    ends_well()


@pytest.mark.parametrize("name", METHODS + SPECIAL)
def test_a_method_takes_anything(name):
    @LIMITS
    @given(st.sampled_from(arrays()), several, keywords(getattr(ol.Tensor, name)))
    def ends_well(array, positional, named):
        call(getattr(array, name), positional, named)

    ends_well()
