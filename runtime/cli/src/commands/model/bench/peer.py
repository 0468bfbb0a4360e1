"""Runs a model with onnxruntime, as often as lines on the standard input say; answers each with a line of JSON."""

import json
import sys
import time

model, inputs, outputs, threads = sys.argv[1:5]

import numpy
import onnxruntime


def peak_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def answer(**values):
    print(json.dumps(values), flush=True)


options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(threads)
options.inter_op_num_threads = 1
options.log_severity_level = 3
began = time.perf_counter()
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
loaded = time.perf_counter()
names = [value.name for value in session.get_inputs()]
with numpy.load(inputs) as arrays:
    feeds = {name: arrays[name] for name in names if name in arrays}
ready = time.perf_counter()
made = session.run(None, feeds)
first = time.perf_counter()
peak = peak_bytes()
# Texts are objects of Python, and are not compared.
tensors = {str(index): value for index, value in enumerate(made) if getattr(value, "dtype", object) != object}
numpy.savez(outputs, **tensors)
answer(
    version=onnxruntime.__version__,
    load_ms=(loaded - began) * 1e3,
    first_run_ms=(first - ready) * 1e3,
    peak_bytes=peak,
)
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        began = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - began) * 1e3)
    answer(times=times)
