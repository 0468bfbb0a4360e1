"""Measures the overhead of the Python package in turn with its peers, and prints tables.

    package.py --program PROGRAM [--wheel FILE] [--rounds N] [--seconds S]

PROGRAM is `run_model.c`, which runs a model through the C API. In each round, all take turns, so that other work on the machine
affects all. The tables have the medians over the rounds, of ratios and differences too.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

IN_A_ROW = 2000
# The peak memory of a process in KiB, which it prints at its end.
PEAK = "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')).split()[1])"
IMPORTED = ["oarlock", "numpy", "onnxruntime"]


def started(module):
    """The milliseconds and the peak KiB of an interpreter that imports a module."""
    code = f"import {module}\n{PEAK}" if module else PEAK
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return (time.perf_counter() - begin) * 1e3, int(done.stdout)


def best(call, seconds):
    """The shortest time of a call in nanoseconds, as the mean of many in a row."""
    least, end = float("inf"), time.perf_counter() + seconds
    row = range(IN_A_ROW)
    while time.perf_counter() < end:
        begin = time.perf_counter_ns()
        for _ in row:
            call()
        least = min(least, (time.perf_counter_ns() - begin) / IN_A_ROW)
    return least


def imports(rounds):
    """The cost of importing each module."""
    for module in IMPORTED:
        started(module)
    found = [{module: started(module) for module in ["", *IMPORTED]} for _ in range(rounds)]
    print("| import | ms over the interpreter | MiB over it |\n| --- | --- | --- |")
    for module in IMPORTED:
        took = statistics.median(one[module][0] - one[""][0] for one in found)
        held = statistics.median(one[module][1] - one[""][1] for one in found) / 1024
        print(f"| `{module}` | {took:.1f} | {held:.1f} |")
    bare = [statistics.median(one[""][at] for one in found) for at in (0, 1)]
    print(f"\nThe bare interpreter takes {bare[0]:.1f} ms and {bare[1] / 1024:.1f} MiB.\n")


def calls(program, rounds, seconds):
    """The times of single calls."""
    import numpy as np
    import onnx
    import onnxruntime as ort

    import oarlock as ol

    floats = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "x"], ["y"])],
        "add",
        [onnx.helper.make_tensor_value_info("x", floats, ["n"])],
        [onnx.helper.make_tensor_value_info("y", floats, ["n"])],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=10)
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory, "add.onnx")
        file.write_bytes(model.SerializeToString())
        beside = subprocess.Popen([program, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def in_c():
            beside.stdin.write(f"{seconds}\n")
            beside.stdin.flush()
            return float(beside.stdout.readline()) * 1e9

        a, b = np.ones(1, np.float32), np.ones(1, np.float32)
        x, y = ol.asarray(a), ol.asarray(b)
        loaded = ol.load(file)
        session = ort.InferenceSession(file, providers=["CPUExecutionProvider"])
        asked = {
            "`a + b` in NumPy": lambda: best(lambda: a + b, seconds),
            "`a + b` in Oarlock": lambda: best(lambda: x + y, seconds),
            "the model `Add` through the C API": in_c,
            "`m(x)` in Oarlock": lambda: best(lambda: loaded(x), seconds),
            "`session.run` in onnxruntime": lambda: best(lambda: session.run(None, {"x": a}), seconds),
        }
        found = [{name: measure() for name, measure in asked.items()} for _ in range(rounds)]
        beside.stdin.close()
        beside.wait()
    print("| call, 1 element of f32 | ns |\n| --- | --- |")
    for name in asked:
        print(f"| {name} | {statistics.median(one[name] for one in found):.0f} |")
    numpy, ours, c, python, _ = asked
    ratio = statistics.median(one[ours] / one[numpy] for one in found)
    over = statistics.median(one[python] - one[c] for one in found)
    print(f"\n`a + b` takes {ratio:.2f} times NumPy's time; `m(x)` takes {over:.0f} ns more than the C API.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--wheel", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.1)
    options = parser.parse_args()
    if options.wheel:
        print(f"The wheel has {os.path.getsize(options.wheel) / 1e6:.2f} MB.\n")
    imports(options.rounds)
    calls(options.program, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
