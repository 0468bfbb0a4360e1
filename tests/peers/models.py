"""Runs models in Oarlock and other runtimes in turn, and prints a comparison.

    models.py --oarlock PROGRAM --models DIR [--threads 1,2] [--rounds N] [--seconds S] [--only TEXT] [--json]
              [--peers onnxruntime,openvino,pytorch] [--precisions f32,bf16] [--instruction-set SET]

DIR contains NAME.onnx with NAME.inputs.npz beside it. Each measurement is a separate process, bound to as many processors as it
has threads; in each round, all runtimes take turns. The table has the medians over the rounds of each runtime's medians, and
the medians of the ratios. Peak memory is that of the whole process, which includes some 45 MB for Python and NumPy in the other
runtimes.

With `--instruction-set`, all runtimes believe that the processor has nothing beyond `sse4.1`, `avx2`, `avx-vnni`, `avx512` or
`avx512-vnni`. That takes gcc and an Intel processor that can trap CPUID; `cpuid_mask.c` says how.

There is a table for each precision. If products may round to bf16, the peer is OpenVINO with default settings, which uses bf16
on processors that have it; the last column is the difference of our outputs from those in f32.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
INSTRUCTION_SETS = ["sse4.1", "avx2", "avx-vnni", "avx512", "avx512-vnni"]
# Pool threads may keep spinning after a run, and the machine does other work.
PAUSE = 0.3


# The peer for each precision.
ROUNDING_PEERS = ["openvino-default"]


def own(arguments, model, inputs, threads, repeat, precision):
    """Measures Oarlock."""
    command = [arguments.oarlock, "bench", model, "-i", inputs, "--threads", str(threads), "--json", "--repeat", str(repeat)]
    command += ["--precision", precision]
    report = answer(command, threads)
    return {
        "load_ms": report["load_ms"],
        "first_ms": report["first_run_ms"],
        "median_ms": report["latency_ms"]["median"],
        "peak_mb": report["memory"]["peak_bytes"] / 2**20,
        "weights_mb": report["memory"]["weights_bytes"] / 2**20,
        "arena_mb": report["memory"]["arena_bytes"] / 2**20,
        "difference": max((it["largest_difference"] or 0 for it in (report["accuracy"] or {}).get("outputs", [])), default=None),
    }


def other(peer, model, inputs, threads, seconds):
    """Measures another runtime."""
    return answer([sys.executable, HERE / "models_peer.py", peer, model, inputs, str(threads), str(seconds)], threads)


def answer(command, threads):
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    last = os.cpu_count() - 1
    processors = f"{last - threads + 1}-{last}" if threads <= os.cpu_count() else f"0-{last}"
    done = subprocess.run(
        ["taskset", "-c", processors, *map(str, command)], env=os.environ | limits, stdout=subprocess.PIPE, text=True
    )
    if done.returncode != 0:
        sys.exit(f"error: expected a measurement of `{' '.join(map(str, command))}`, found exit code {done.returncode}")
    time.sleep(PAUSE)
    return json.loads(done.stdout.splitlines()[-1] if command[0] == sys.executable else done.stdout)


def measure(arguments, model, threads, precision, peers):
    """The rounds of one model: the report of each runtime in each round."""
    inputs = model.with_suffix(".inputs.npz")
    first = own(arguments, model, inputs, threads, 5, precision)
    repeat = max(5, min(100_000, int(arguments.seconds * 1e3 / first["median_ms"])))
    rounds = []
    for _ in range(arguments.rounds):
        found = {"oarlock": own(arguments, model, inputs, threads, repeat, precision)}
        for peer in peers:
            found[peer] = other(peer, model, inputs, threads, arguments.seconds)
        rounds.append(found)
    return rounds


def median(rounds, runtime, what):
    return statistics.median(found[runtime][what] for found in rounds)


def ratio(rounds, peer, what=lambda report: report["median_ms"]):
    return statistics.median(what(found[peer]) / what(found["oarlock"]) for found in rounds)


def ready(report):
    """The time until the first result."""
    return report["load_ms"] + report["first_ms"]


def row(name, threads, rounds, peers):
    shown = f"{median(rounds, 'oarlock', 'median_ms'):.4g}"
    cells = [name, str(threads), shown]
    cells += [f"{median(rounds, peer, 'median_ms'):.4g} ({ratio(rounds, peer):.2f}×)" for peer in peers]
    cells.append(f"{statistics.median(ready(found['oarlock']) for found in rounds):.4g}")
    cells += [f"{ratio(rounds, peer, ready):.2f}×" for peer in peers]
    weights, arena = median(rounds, "oarlock", "weights_mb"), median(rounds, "oarlock", "arena_mb")
    peak = median(rounds, "oarlock", "peak_mb")
    cells.append(f"{peak:.0f} of {weights:.0f} + {arena:.0f}")
    cells += [f"{median(rounds, peer, 'peak_mb'):.0f}" for peer in peers]
    difference = rounds[0]["oarlock"]["difference"]
    return cells if difference is None else [*cells, f"{difference:.1e}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--oarlock", required=True, type=os.path.realpath)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--threads", default="1,2", type=lambda text: [int(count) for count in text.split(",")])
    parser.add_argument("--peers", default=["onnxruntime", "openvino"], type=lambda text: text.split(","))
    parser.add_argument("--precisions", default=["f32", "bf16"], type=lambda text: text.split(","))
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--seconds", default=2.0, type=float)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--instruction-set", choices=INSTRUCTION_SETS)
    arguments = parser.parse_args()
    models = [model for model in sorted(arguments.models.glob("*.onnx")) if arguments.only in model.stem]
    if not models:
        sys.exit(f"error: expected models in `{arguments.models}`, found none")
    with tempfile.TemporaryDirectory() as place:
        if arguments.instruction_set:
            hide_instruction_sets(arguments.instruction_set, place)
        measure_all(arguments, models)


def hide_instruction_sets(best, place):
    """Hides everything beyond a set from the processes that this one starts."""
    mask = f"{place}/cpuid_mask.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", HERE / "cpuid_mask.c", "-o", mask], check=True)
    os.environ.update(CPUID_MASK=best, LD_PRELOAD=mask)


def measure_all(arguments, models):
    everything = {}
    for precision in arguments.precisions:
        peers = arguments.peers if precision == "f32" else ROUNDING_PEERS
        everything[precision] = compare(arguments, models, precision, peers)
    if arguments.json:
        print(json.dumps(everything))


def compare(arguments, models, precision, peers):
    """Measures all models in one precision, prints a table, and returns all rounds by model and threads."""
    everything, ratios = {}, {}
    heads = ["model", "threads", "ms", *peers, "load + first run, ms", *peers]
    heads += ["peak of weights + arena, MB", *peers, *([] if precision == "f32" else ["difference from f32"])]
    if not arguments.json:
        print(f"{precision}:\n\n| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads), flush=True)
    for threads in arguments.threads:
        for model in models:
            rounds = measure(arguments, model, threads, precision, peers)
            everything[f"{model.stem}/{threads}"] = rounds
            for peer in peers:
                ratios.setdefault((peer, threads), []).append(ratio(rounds, peer))
            if not arguments.json:
                print("| " + " | ".join(row(model.stem, threads, rounds, peers)) + " |", flush=True)
    if not arguments.json:
        print()
        for (peer, threads), found in ratios.items():
            mean = math.exp(statistics.fmean(map(math.log, found)))
            print(f"- times of {peer} over ours on {threads} threads, geometric mean: {mean:.2f}×")
        print()
    return everything


if __name__ == "__main__":
    main()
