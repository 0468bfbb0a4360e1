"""Calls leave no memory behind."""

import gc
import os
import statistics
import threading
from pathlib import Path

import numpy as np
import oarlock as ol
import pytest

MODELS = Path(__file__).parents[3] / "docs/src/models"
CALLS = int(os.environ.get("OARLOCK_LEAK_CALLS", "100000"))


def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grows(call, times):
    """The median growth of the process over several rounds, in bytes per call.

    A leak grows every round; pages that are allocated once, at any time, grow only one.
    """
    rounds, sizes = 4, [resident()]
    for _ in range(rounds):
        for _ in range(times // rounds):
            call()
        sizes.append(resident())
    return statistics.median_low(after - before for before, after in zip(sizes, sizes[1:])) / (times // rounds)


def refused():
    with pytest.raises(ValueError, match="shapes that are equal"):
        ol.ones(2) + ol.ones(3)


a, b = ol.ones(1), ol.ones((20, 30))
model, image = ol.load(MODELS / "digits.onnx"), np.load(MODELS / "digits.npy")
WAYS = {
    "add": (lambda: a + a, 1),
    "numbers": (lambda: a * 2.0 - 1, 2),
    "compose": (lambda: ol.mean(b, axis=1)[1:, None].tolist(), 20),
    "numpy": (lambda: np.asarray(ol.asarray(np.ones((20, 30), np.float32))).sum(), 4),
    "dlpack": (lambda: ol.from_dlpack(np.ones(3)), 4),
    "lists": (lambda: ol.asarray([[1.5, 2.0], [3.0, 4.0]]), 4),
    "texts": (lambda: ol.asarray(["text", "and more"]).tolist(), 10),
    "write": (lambda: ol.ones(8).__setitem__(slice(2, 4), 5.0), 10),
    "model": (lambda: model(image), 100),
    "named": (lambda: model.run({"image": image}), 100),
    "errors": (refused, 100),
    "described": (lambda: (repr(b), model.inputs, model.outputs[0].shape, b.device.memory_stats()), 20),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_call_leaves_nothing(way):
    call, dearer = WAYS[way]
    # A leak is at least several bytes per call.
    assert grows(call, CALLS // dearer) < 4


def test_threads_that_end_leave_nothing():
    def one():
        thread = threading.Thread(target=lambda: (a + a, model(image)))
        thread.start()
        thread.join()

    assert grows(one, CALLS // 200) < 512
