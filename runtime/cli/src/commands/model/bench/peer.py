"""Runs a model with onnxruntime, as often as lines on the standard input say; answers each with a line of JSON.

Each caller runs it as often, all at once. The first caller is the main thread, and every other has a thread of its own.
"""

import json
import sys
import threading
import time

model, inputs, outputs, threads, callers = sys.argv[1:6]
callers = int(callers)

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

# Imported after the memory was read, which is that of the other runtime.
import concurrent.futures

gate = threading.Barrier(callers)
has_failed = threading.Event()
pool = concurrent.futures.ThreadPoolExecutor(callers)


def time_runs(runs):
    """The times of one caller's runs, and when they began and ended. An error ends those of all callers."""
    times = []
    gate.wait()
    began = time.perf_counter()
    try:
        for _ in range(runs):
            if has_failed.is_set():
                break
            start = time.perf_counter()
            session.run(None, feeds)
            times.append((time.perf_counter() - start) * 1e3)
    except BaseException:
        has_failed.set()
        raise
    return times, began, time.perf_counter()


def time_callers(runs):
    try:
        # Each waits at the gate, so no thread takes two of them.
        others = [pool.submit(time_runs, runs) for _ in range(callers - 1)]
    except BaseException:
        # A thread could not be started; the others would wait for it.
        gate.abort()
        raise
    return [time_runs(runs), *(other.result() for other in others)]


for line in sys.stdin:
    all_times, begins, ends = zip(*time_callers(int(line)))
    # The first run of every caller, then the second of every caller, and so on.
    answer(times=[each for runs in zip(*all_times) for each in runs], wall_ms=(max(ends) - min(begins)) * 1e3)
