"""How arrays are printed."""

import math
import sys
import threading
import time

import oarlock as ol
import pytest


def body(x):
    return repr(x).split("\n", 1)[1].strip().removesuffix(")")


def test_fewer_digits_are_printed_if_they_are_asked_for():
    x = ol.asarray([math.pi, 0.5, 100.0, 1.2345e-9, 2e20])
    with ol.printoptions(precision=2):
        assert body(x) == "[   3.14,     0.5,    100., 1.23e-9,    2e20]"
    with ol.printoptions(precision=0):
        assert body(x[:3]) == "[  3.,   0., 100.]"
    with ol.printoptions(precision=3, suppress=True):
        assert body(x[:4]) == "[3.142,   0.5,  100.,    0.]"
    with ol.printoptions(precision=20):
        assert body(ol.asarray([0.1])) == "[0.1]"
    with ol.printoptions(precision=1):
        assert body(ol.asarray([0.25 + 1 / 3 * 1j])) == "[0.2+0.3j]"


def test_long_arrays_are_abbreviated_as_asked_for():
    x = ol.arange(20)
    with ol.printoptions(threshold=5, edgeitems=2):
        assert body(x) == "[ 0,  1, ..., 18, 19]"
    with ol.printoptions(threshold=0, edgeitems=1):
        assert body(ol.reshape(x, (4, 5))).split() == "[[ 0, ..., 4], ..., [15, ..., 19]]".split()
    with ol.printoptions(threshold=sys.maxsize):
        assert "..." not in body(ol.arange(3000))
    with ol.printoptions(linewidth=12):
        assert len(body(x).splitlines()) > 5


def test_the_settings_are_kept_and_come_back():
    before = ol.get_printoptions()
    assert before == {"precision": -1, "threshold": 1000, "edgeitems": 3, "linewidth": 88, "suppress": False}
    with pytest.raises(KeyError), ol.printoptions(precision=4) as options:
        assert options["precision"] == 4 and options["threshold"] == 1000
        raise KeyError
    assert ol.get_printoptions() == before
    ol.set_printoptions(edgeitems=5)
    ol.set_printoptions(precision=3)
    assert ol.get_printoptions() == before | {"edgeitems": 5, "precision": 3}
    ol.set_printoptions(**before)
    assert ol.get_printoptions() == before
    for wrong in [{"precision": 1.5}, {"threshold": -1}, {"linewidth": "a"}]:
        with pytest.raises(ValueError, match="expected a whole number of at least"):
            ol.set_printoptions(**wrong)


def test_other_threads_run_while_a_long_list_is_made():
    x, ticks, is_done = ol.zeros(8_000_000), [], threading.Event()

    def tick():
        while not is_done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    assert len(x.tolist()) == 8_000_000
    end = time.monotonic()
    is_done.set()
    thread.join()
    assert sum(begin < moment < end for moment in ticks) >= 2
