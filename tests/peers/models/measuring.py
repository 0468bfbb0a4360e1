"""Measures one model in Oarlock and in its peers, which take turns."""

import dataclasses
import json
import pathlib
import statistics
import sys
import time

from common.processes import RunError, ask

PEER_PROGRAM = pathlib.Path(__file__).parents[1] / "models_peer.py"
# Pool threads may keep spinning after a run, and the machine does other work.
PAUSE = 0.3
# Runs of the first measurement, which says how many the others have.
FIRST_RUNS = 5
RUN_LIMITS = (5, 100_000)
# Which time of a run a table of percentiles has.
PERCENTILES = ["median_ms", "p90_ms", "p99_ms"]
# If products may round to bf16, the peer is OpenVINO with default settings, which does so on processors that have it.
ROUNDING_PEERS = ["openvino-default"]


@dataclasses.dataclass(frozen=True)
class MeasuredCase:
    """What one row is about."""

    model: str
    precision: str
    batch: int
    threads: int
    callers: int


def inputs_of(path, batch):
    """The file with the inputs of a model for a batch."""
    return path.with_suffix(".inputs.npz" if batch == 1 else f".batch{batch}.npz")


def own(options, path, case, repeat):
    """Measures Oarlock; `repeat` counts the runs of each caller."""
    command = [options.oarlock, "bench", path, "-i", inputs_of(path, case.batch), "--threads", case.threads, "--json"]
    command += ["--repeat", repeat, "--precision", case.precision]
    if case.callers > 1:
        command += ["--callers", case.callers]
    report = json.loads(ask(command, case.threads))
    time.sleep(PAUSE)
    differences = [it["largest_difference"] or 0 for it in (report["accuracy"] or {}).get("outputs", [])]
    return {
        "load_ms": report["load_ms"],
        "first_ms": report["first_run_ms"],
        "median_ms": report["latency_ms"]["median"],
        "p90_ms": report["latency_ms"]["p90"],
        "p99_ms": report["latency_ms"]["p99"],
        "per_s": report["throughput_per_s"],
        "peak_mb": report["memory"]["peak_bytes"] / 2**20,
        "weights_mb": report["memory"]["weights_bytes"] / 2**20,
        "arena_mb": report["memory"]["arena_bytes"] / 2**20,
        "difference": max(differences, default=None),
    }


def other(options, peer, path, case):
    """Measures another runtime."""
    command = [sys.executable, PEER_PROGRAM, peer, path, inputs_of(path, case.batch), case.threads, options.seconds]
    said = ask([*command, "--callers", case.callers], case.threads)
    time.sleep(PAUSE)
    return json.loads(said.splitlines()[-1])


def measure(options, path, case):
    """The figures of one row: medians over the rounds, and of each peer the median of its ratios to ours."""
    row = dataclasses.asdict(case) | {"date": time.strftime("%Y-%m-%d"), "rounds": options.rounds, "seconds": options.seconds}
    row |= {"oarlock": None, "peers": {}, "refused": {}, "error": ""}
    peers, refused = peers_for(options, case.precision), row["refused"]
    rounds = []
    try:
        first = own(options, path, case, FIRST_RUNS)
        repeat = int(options.seconds * 1e3 / first["median_ms"])
        repeat = min(max(repeat, RUN_LIMITS[0]), RUN_LIMITS[1])
        for _ in range(options.rounds):
            found = {"oarlock": own(options, path, case, repeat)}
            for peer in peers:
                if peer not in refused:
                    try:
                        found[peer] = other(options, peer, path, case)
                    except RunError as problem:
                        refused[peer] = str(problem)
                        print(f"==> {peer} did not run {case.model}: {problem}", file=sys.stderr, flush=True)
            rounds.append(found)
    except RunError as problem:
        print(f"==> Oarlock did not run {case.model}: {problem}", file=sys.stderr, flush=True)
        return row | {"error": str(problem)}
    row["oarlock"] = medians([found["oarlock"] for found in rounds])
    for peer in peers:
        if peer not in refused:
            start = statistics.median(ready(found[peer]) / ready(found["oarlock"]) for found in rounds)
            times = statistics.median(ratio(found[peer], found["oarlock"], case.callers) for found in rounds)
            row["peers"][peer] = medians([found[peer] for found in rounds]) | {"ratio": times, "start_ratio": start}
    return row


def peers_for(options, precision):
    """Whom Oarlock is compared with."""
    return options.peers if precision == "f32" else ROUNDING_PEERS


def medians(reports):
    middle = lambda values: None if None in values else statistics.median(values)
    return {key: middle([report[key] for report in reports]) for key in reports[0]}


def ready(report):
    """The time until the first result."""
    return report["load_ms"] + report["first_ms"]


def ratio(peer, ours, callers):
    """How many times as fast Oarlock is: for one caller by the time of a run, for several by the runs in a second."""
    return peer["median_ms"] / ours["median_ms"] if callers == 1 else ours["per_s"] / peer["per_s"]


def find_models(folder, only):
    """The models of a directory with some text in their names."""
    found = []
    for path in sorted(it for it in folder.glob("*.onnx") if only in it.stem):
        if inputs_of(path, 1).exists():
            found.append(path)
        else:
            print(f"==> `{path}` is left out: expected `{inputs_of(path, 1).name}` beside it, found none", file=sys.stderr)
    return found
