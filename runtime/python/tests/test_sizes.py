"""Sizes beyond memory raise a MemoryError, invalid shapes a ValueError, and both quickly."""

import numpy as np
import oarlock as ol
import pytest
from conftest import child, same

BEYOND = [(2**62,), (2**40, 2**40), (2**62, 2), (2**63 - 1,) * 3, (10**15,), (2**33, 2**31)]
NO_SHAPE = [(-1,), (3, -1), (0, -1), (1,) * 65]
three = ol.asarray([1.0, 2.0, 3.0])
one = ol.asarray(1.0)


@pytest.mark.parametrize("shape", BEYOND)
@pytest.mark.parametrize(
    "make",
    [
        ol.zeros,
        ol.ones,
        ol.empty,
        lambda shape: ol.full(shape, 3),
        lambda shape: ol.zeros(shape, dtype=ol.int8),
        lambda shape: ol.broadcast_to(one, shape),
        lambda shape: ol.tile(three, shape),
        lambda shape: ol.concat([ol.broadcast_to(one, shape)] * 2),
    ],
)
def test_a_shape_that_no_memory_holds_is_a_memory_error(make, shape):
    with pytest.raises(MemoryError, match="expected"):
        make(shape)


@pytest.mark.parametrize("shape", NO_SHAPE)
@pytest.mark.parametrize("make", [ol.zeros, ol.ones, ol.empty, lambda shape: ol.broadcast_to(one, shape)])
def test_what_is_no_shape_is_a_value_error(make, shape):
    with pytest.raises(ValueError, match="expected"):
        make(shape)


@pytest.mark.parametrize("size", [2**62, 2**61 + 1, 10**13])
@pytest.mark.parametrize(
    "make",
    [
        ol.arange,
        ol.eye,
        lambda size: ol.arange(0.0, float(size)),
        lambda size: ol.linspace(0, 1, size),
        lambda size: ol.repeat(three, size),
        lambda size: ol.repeat(three, ol.asarray([size, size, size])),
        lambda size: ol.repeat(three, ol.asarray([0, size, 1])),
        lambda size: ol.linalg.outer(ol.broadcast_to(one, (size,)), three),
        lambda size: ol.fft.fftfreq(size),
    ],
)
def test_more_elements_than_memory_holds_are_a_memory_error(make, size):
    with pytest.raises(MemoryError, match="expected|out of memory"):
        make(size)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ol.repeat(three, -1),
        lambda: ol.repeat(three, ol.asarray([1, -1, 1])),
        lambda: ol.eye(-1),
        lambda: ol.eye(3, -1),
        lambda: ol.linspace(0, 1, -1),
        lambda: ol.diff(three, n=-1),
        lambda: ol.fft.fftfreq(-1),
        lambda: ol.fft.rfftfreq(0),
        lambda: ol.searchsorted(ol.ones((2, 2)), three),
    ],
)
def test_a_count_below_0_is_a_value_error(make):
    with pytest.raises(ValueError, match="expected"):
        make()


def test_an_index_that_64_bits_do_not_hold_is_named():
    with pytest.raises(IndexError, match=f"found {2**63}"):
        three[2**63]


def test_differences_of_differences_end_when_none_are_left():
    assert ol.diff(three, n=10**15).shape == (0,)
    assert np.asarray(ol.diff(three, n=2)).tolist() == [0.0]


def test_memory_grows_with_what_is_repeated_and_looked_for_and_not_with_their_product():
    many = ol.arange(200_000)
    assert int(ol.repeat(many, 3)[-1]) == 199_999
    assert ol.repeat(many, ol.ones(200_000, dtype=ol.int64)).shape == (200_000,)
    assert int(ol.searchsorted(many, many, side="right")[-1]) == 200_000


def test_matrices_that_memory_cannot_hold_are_refused_before_they_take_any():
    code = """
        import resource
        import oarlock as ol
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for make in [lambda: ol.eye(10**9), lambda: ol.identity(10**9), lambda: ol.tri(10**9), lambda: ol.zeros(10**9, 10**9)]:
            try:
                make()
            except MemoryError:
                pass
            else:
                raise SystemExit("no error")
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000)
    """
    assert child(code).strip() == "True"


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (1, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize("k", [0, 1, -1, 2, -4, 7])
def test_the_diagonal_of_eye_is_that_of_numpy(shape, k):
    for dtype in ["float32", "int8", "bool", "complex64"]:
        same(ol.eye(*shape, k=k, dtype=dtype), np.eye(*shape, k=k, dtype=dtype))
