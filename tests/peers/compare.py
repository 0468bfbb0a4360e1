"""Measures CPU kernels and their peers in turn, and prints a comparison.

    compare.py --kernels PROGRAM --peaks PROGRAM [--threads 1,2] [--rounds N] [--seconds S] [--only TEXT] [--json]

Oarlock, onnxruntime, NumPy and the peaks of the machine are programs that wait for requests. In each round, each of them runs
each case in turn, so that other work on the machine affects all. The table has the medians over the rounds of the best times,
and the medians of the ratios. `cases.json` lists the cases.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
# Pool threads keep spinning after a call, those of onnxruntime for 70 ms, which must not slow down the next program.
PAUSE = 0.15
# A result this many times above the peak is impossible.
BUSY = 1.25


class Peer:
    """A program that answers requests."""

    def __init__(self, command, threads):
        count = str(threads)
        limits = {name: count for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | limits
        )

    def ask(self, name, seconds):
        """The best time of the peer, or `None` if it lacks the function."""
        self.process.stdin.write(f"{name}\t{seconds}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            sys.exit(f"error: expected an answer for `{name}` from `{self.process.args[0]}`, found that it ended")
        time.sleep(PAUSE)
        return None if answer == "none" else float(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def work_of(case):
    """The work of a call: operations if the case states them, otherwise bytes read and written."""
    elements = sum(map(math.prod, case["inputs"])) + math.prod(case["output"])
    return case.get("flops", 4 * elements)


def peak_of(case):
    """The peak that bounds a case."""
    if "flops" in case:
        return "fma"
    if math.prod(case["output"]) * 16 < math.prod(case["inputs"][0]):
        return "sum"
    return {"Add": "add"}.get(case["op"], "copy")


def measure(arguments, cases, threads):
    python = [sys.executable, str(HERE / "python_peer.py")]
    peers = {
        "oarlock": Peer([arguments.kernels, "--serve", str(threads)], threads),
        "onnxruntime": Peer([*python, "onnxruntime", str(threads)], threads),
        "numpy": Peer([*python, "numpy", str(threads)], threads),
    }
    peaks = Peer([arguments.peaks], threads)
    rounds = {case["name"]: [] for case in cases}
    for number in range(arguments.rounds + 1):
        # The first round is a warm-up.
        seconds = arguments.seconds if number else 0
        for case in cases:
            name = case["name"]
            found = {peer: program.ask(name, seconds) for peer, program in peers.items()}
            found["peak"] = peaks.ask(peak_of(case), seconds or 0.001)
            if number:
                rounds[name].append(found)
    for program in [*peers.values(), peaks]:
        program.end()
    return [result(case, threads, rounds[case["name"]]) for case in cases]


def result(case, threads, rounds):
    def median(value):
        values = [value(found) for found in rounds]
        return None if None in values else statistics.median(values)

    def times_faster_than(peer):
        return median(lambda found: found[peer] and found[peer] / found["oarlock"])

    work, peak = work_of(case), peak_of(case)
    answer = {
        "case": case["name"],
        "threads": threads,
        "seconds": median(lambda found: found["oarlock"]),
        "onnxruntime_seconds": median(lambda found: found["onnxruntime"]),
        "numpy_seconds": median(lambda found: found["numpy"]),
        "rate": median(lambda found: work / found["oarlock"]),
        "peak": peak,
        "peak_rate": median(lambda found: found["peak"]),
        "of_onnxruntime": times_faster_than("onnxruntime"),
        "of_numpy": times_faster_than("numpy"),
        "of_peak": median(lambda found: work / found["oarlock"] / found["peak"]),
    }
    goal = case.get("goal")
    if goal:
        is_peer = goal["against"] == "onnxruntime"
        ratio = answer["of_onnxruntime" if is_peer else "of_peak"]
        # Nothing is faster than the machine: other work disturbed the measurement of the peak.
        is_known = is_peer or ratio < BUSY
        answer |= {"goal": goal, "reached": ratio >= goal["ratio"] if is_known else None}
    return answer


def row(found):
    def cell(value, form):
        return format(value, form) if value is not None else ""

    goal = ""
    if "goal" in found:
        against = found["goal"]["against"]
        ratio = found["goal"]["ratio"]
        wanted = f"{ratio:.2f} × {against}" if against == "onnxruntime" else f"{ratio:.0%} of {against}"
        verdict = {True: "reached", False: "missed", None: "not known, the machine was busy"}[found["reached"]]
        goal = f"{wanted}: {verdict}"
    cells = [
        found["case"],
        str(found["threads"]),
        cell(found["seconds"] * 1e3, ".3f"),
        cell(found["onnxruntime_seconds"] and found["onnxruntime_seconds"] * 1e3, ".3f"),
        cell(found["numpy_seconds"] and found["numpy_seconds"] * 1e3, ".3f"),
        cell(found["of_onnxruntime"], ".2f"),
        cell(found["of_numpy"], ".2f"),
        f"{found['rate'] / 1e9:.1f} of {found['peak_rate'] / 1e9:.1f}",
        f"{found['of_peak']:.0%}",
        goal,
    ]
    return f"| {' | '.join(cells)} |"


HEAD = """\
| kernel | threads | Oarlock, ms | onnxruntime, ms | NumPy, ms | × onnxruntime | × NumPy | GB/s or GFLOP/s of the peak | | goal |
|---|---|---|---|---|---|---|---|---|---|"""


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--kernels", required=True)
    parser.add_argument("--peaks", required=True)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    cases = [case for case in json.loads((HERE / "cases.json").read_text()) if arguments.only in case["name"]]
    if not cases:
        sys.exit(f"error: expected a part of the name of a case of `tests/peers/cases.json`, found `{arguments.only}`")
    results = []
    for threads in arguments.threads.split(","):
        results += measure(arguments, cases, int(threads))
    if arguments.json:
        print(json.dumps(results, indent=2, ensure_ascii=False))
    else:
        print(HEAD, *map(row, results), sep="\n")


main()
