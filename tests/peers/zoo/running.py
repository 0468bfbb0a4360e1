"""Runs a model in Oarlock and in onnxruntime, compares their outputs, and measures both in turns.

Each process is bound to as many processors as it has threads. Timing is that of `oarlock bench --compare`: both runtimes take
turns within one measurement, on the same inputs.
"""

import json
import os
import pathlib
import statistics
import sys

import numpy

from common.processes import RunError, ask

HERE = pathlib.Path(__file__).parent
# The largest accepted difference over the largest element of an output.
TOLERANCE = 1e-3
# For an evaluation in float64, which takes hours where a graph has large convolutions.
DOUBLE_TIME_LIMIT = 120
TOP_OPS = 4


def own_outputs(program, model, inputs, folder):
    """The outputs of Oarlock, in order."""
    made = folder / "own.npz"
    ask([program, "run", model, "-i", inputs, "-o", made], os.cpu_count())
    return list(tensors(made))


def peer_outputs(model, inputs, folder, peer="onnxruntime", threads=os.cpu_count()):
    """The outputs of onnxruntime, in order."""
    made = folder / "peer.npz"
    ask([sys.executable, HERE.parent / "models_peer.py", peer, model, inputs, threads, 0, made], threads)
    return list(tensors(made))


def double_outputs(model, inputs, folder):
    """The outputs of an evaluation in float64, in order."""
    made = folder / "double.npz"
    ask([sys.executable, HERE / "double.py", model, inputs, made], 1, DOUBLE_TIME_LIMIT)
    return list(tensors(made))


def tensors(path):
    """The arrays of an archive; `None` for what is no tensor, such as a sequence of maps."""
    with numpy.load(path) as archive:
        for name in archive.files:
            try:
                yield archive[name]
            except ValueError:
                yield None


def difference(ours, theirs):
    """The largest difference over the largest element of each output; `None` if shapes or special values differ."""
    worst = 0.0
    compared = [(own, peer) for own, peer in zip(ours, theirs) if own is not None and peer is not None]
    if not compared:
        raise RunError("expected tensors to compare, found none")
    for own, peer in compared:
        if own.shape != peer.shape:
            return None
        own, peer = own.astype(numpy.float64), peer.astype(numpy.float64)
        special = ~numpy.isfinite(peer)
        if not numpy.array_equal(own[special], peer[special], equal_nan=True) or not numpy.isfinite(own[~special]).all():
            return None
        gap, largest = numpy.abs(own - peer)[~special], numpy.abs(peer[~special])
        if gap.size and gap.max() > 0:
            worst = max(worst, gap.max() / (largest.max() or 1.0))
    return float(worst)


def measure(program, model, inputs, threads, rounds, seconds):
    """Times and memory of both runtimes: medians over the rounds."""
    bench = [program, "bench", model, "-i", inputs, "--threads", threads, "--json", "--warmup", 2]
    first = json.loads(ask([*bench, "--repeat", 1], threads))
    repeat = max(3, min(20_000, int(seconds * 1e3 / first["latency_ms"]["median"])))
    compare = ["--repeat", repeat, "--compare", "onnxruntime", "--python", sys.executable]
    reports = [json.loads(ask([*bench, *compare], threads)) for _ in range(rounds)]
    middle = lambda value: statistics.median(value(report) for report in reports)
    start = lambda it: it["load_ms"] + it["first_run_ms"]
    return {
        "ms": middle(lambda it: it["latency_ms"]["median"]),
        "ratio": middle(lambda it: it["compared"]["ratio"]),
        "start_ms": middle(start),
        "start_ratio": middle(lambda it: start(it["compared"]) / start(it)),
        "peak_mb": middle(lambda it: it["memory"]["peak_bytes"] / 2**20),
        "peer_peak_mb": middle(lambda it: it["compared"]["peak_bytes"] / 2**20),
        "ops": [{"op": it["op"], "share": it["share"], "count": it["count"]} for it in reports[0]["ops"][:TOP_OPS]],
    }
