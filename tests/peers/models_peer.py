"""Runs one model in one peer and prints its times as JSON.

    models_peer.py [--callers N] onnxruntime|onnxruntime-plain|openvino|openvino-default|openvino-bf16|pytorch
                   MODEL INPUTS.npz THREADS SECONDS [OUTPUTS.npz]

With several callers, so many threads of Python call the one loaded model at once, as those of a server would. The peers release
Python's lock while they run.
"""

import argparse
import concurrent.futures
import json
import logging
import resource
import threading
import time

import numpy
import onnx

# Of each caller, however long they take.
LEAST_RUNS = 5


def onnxruntime(options, feeds, plain=False):
    import onnxruntime as peer

    settings = peer.SessionOptions()
    if plain:
        settings.graph_optimization_level = peer.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.intra_op_num_threads = options.threads
    settings.inter_op_num_threads = 1
    session = peer.InferenceSession(options.model, settings, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    run = lambda feeds: session.run(names, feeds)
    return lambda: run, names


def openvino(options, feeds, precision="f32"):
    import openvino as peer

    settings = {"INFERENCE_NUM_THREADS": options.threads, "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": "1"}
    if options.callers > 1:
        # OpenVINO chooses how many runs share the threads.
        settings = {"INFERENCE_NUM_THREADS": options.threads, "PERFORMANCE_HINT": "THROUGHPUT"}
    # Without the hint, OpenVINO uses bf16 on processors that have it, also for f32 models.
    if precision:
        settings["INFERENCE_PRECISION_HINT"] = precision
    core = peer.Core()
    model = core.read_model(options.model)
    if model.is_dynamic():
        # OpenVINO is faster if it knows the shapes before it compiles, and all runs here have the same ones. Of models with
        # grouped-query attention it may only know the batch.
        is_grouped = any(op.get_type_name() == "GroupQueryAttention" for op in model.get_ops())
        shapes = {name: peer.PartialShape(list(array.shape)) for name, array in feeds.items()}
        if is_grouped:
            shapes = {name: model.input(name).partial_shape for name in feeds}
            for name, array in feeds.items():
                shapes[name][0] = array.shape[0]
        model.reshape(shapes)
    compiled = core.compile_model(model, "CPU", settings)
    names = [output.get_any_name() for output in compiled.outputs]

    def new_call():
        request = compiled.create_infer_request()

        def run(feeds):
            for name, array in feeds.items():
                request.set_tensor(name, peer.Tensor(array, shared_memory=True))
            request.infer()
            return [request.get_output_tensor(index).data for index in range(len(names))]

        return run

    return new_call, names


def pytorch(options, feeds):
    """The model as onnx2torch converts it, eagerly or compiled with frozen weights, whichever is faster."""
    import torch
    import torch._dynamo
    import torch._inductor.config
    from onnx2torch import convert

    torch.set_num_threads(options.threads)
    # Parts that cannot be compiled stay eager, and constants may be folded and laid out anew, as in the other runtimes.
    torch._dynamo.config.suppress_errors = True
    torch._inductor.config.freezing = True
    logging.disable(logging.WARNING)
    graph = onnx.load(options.model, load_external_data=False).graph
    weights = {weight.name for weight in graph.initializer}
    operands = [operand.name for operand in graph.input if operand.name not in weights]
    module = convert(options.model).eval()
    fastest = None

    def timed(call, arguments):
        call(*arguments)
        begin = time.perf_counter()
        for _ in range(3):
            call(*arguments)
        return time.perf_counter() - begin

    def run(feeds):
        nonlocal fastest
        arguments = [torch.from_numpy(feeds[name]) for name in operands]
        with torch.inference_mode():
            if fastest is None:
                fastest = min(module, torch.compile(module), key=lambda call: timed(call, arguments))
            outputs = fastest(*arguments)
        outputs = outputs if isinstance(outputs, tuple | list) else [outputs]
        return [output.numpy() for output in outputs]

    return lambda: run, [output.name for output in graph.output]


# Each loads a model, and returns what makes a function for a caller, and the names of the outputs.
PEERS = {
    "onnxruntime": onnxruntime,
    "onnxruntime-plain": lambda options, feeds: onnxruntime(options, feeds, plain=True),
    "openvino": openvino,
    "openvino-default": lambda options, feeds: openvino(options, feeds, None),
    "pytorch": pytorch,
    "openvino-bf16": lambda options, feeds: openvino(options, feeds, "bf16"),
}


def measure(calls, feeds, seconds):
    """The times of the runs of all callers, and the seconds from the first run to the end of the last."""
    for call in calls:
        call(feeds)
    barrier = threading.Barrier(len(calls))

    def run_until_the_end(call):
        times = []
        barrier.wait()
        start = end = time.perf_counter()
        while len(times) < LEAST_RUNS or end - start < seconds:
            begin = time.perf_counter()
            call(feeds)
            end = time.perf_counter()
            times.append(end - begin)
        return start, times, end

    if len(calls) == 1:
        # In the thread that loaded the model, to which some settings of PyTorch are limited.
        found = [run_until_the_end(calls[0])]
    else:
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            found = list(pool.map(run_until_the_end, calls))
    starts, times, ends = zip(*found)
    return numpy.concatenate(times), max(ends) - min(starts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("model")
    parser.add_argument("inputs")
    parser.add_argument("threads", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("outputs", nargs="?")
    parser.add_argument("--callers", type=int, default=1)
    options = parser.parse_args()
    with numpy.load(options.inputs) as arrays:
        feeds = {name: arrays[name] for name in arrays.files}
    start = time.perf_counter()
    new_call, names = PEERS[options.peer](options, feeds)
    call = new_call()
    loaded = time.perf_counter()
    outputs = call(feeds)
    first = time.perf_counter()
    if options.outputs:
        numpy.savez(options.outputs, **{name: numpy.array(output) for name, output in zip(names, outputs)})
    times, taken = measure([call, *(new_call() for _ in range(options.callers - 1))], feeds, options.seconds)
    median, p90, p99 = numpy.percentile(times * 1e3, [50, 90, 99])
    report = {
        "load_ms": (loaded - start) * 1e3,
        "first_ms": (first - loaded) * 1e3,
        "median_ms": median,
        "p90_ms": p90,
        "p99_ms": p99,
        "per_s": len(times) / taken,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
