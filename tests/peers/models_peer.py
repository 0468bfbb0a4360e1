"""Runs one model in one peer and prints its times as JSON.

    models_peer.py onnxruntime|onnxruntime-plain|openvino|openvino-default|openvino-bf16|pytorch MODEL INPUTS.npz THREADS SECONDS [OUTPUTS.npz]
"""

import json
import logging
import resource
import statistics
import sys
import time

import numpy
import onnx


def onnxruntime(model, threads, plain=False):
    import onnxruntime as peer

    options = peer.SessionOptions()
    if plain:
        options.graph_optimization_level = peer.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = peer.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda feeds: session.run(names, feeds), names


def openvino(model, threads, precision="f32"):
    import openvino as peer

    # Without the hint, OpenVINO uses bf16 on processors that have it, also for f32 models.
    options = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": "1",
        "PERFORMANCE_HINT": "LATENCY",
    }
    if precision:
        options["INFERENCE_PRECISION_HINT"] = precision
    compiled = peer.Core().compile_model(model, "CPU", options)
    request = compiled.create_infer_request()
    names = [output.get_any_name() for output in compiled.outputs]

    def run(feeds):
        for name, array in feeds.items():
            request.set_tensor(name, peer.Tensor(array, shared_memory=True))
        request.infer()
        return [request.get_output_tensor(index).data for index in range(len(names))]

    return run, names


def pytorch(model, threads):
    """The model as onnx2torch converts it, eagerly or compiled with frozen weights, whichever is faster."""
    import torch
    import torch._dynamo
    import torch._inductor.config
    from onnx2torch import convert

    torch.set_num_threads(threads)
    # Parts that cannot be compiled stay eager, and constants may be folded and laid out anew, as in the other runtimes.
    torch._dynamo.config.suppress_errors = True
    torch._inductor.config.freezing = True
    logging.disable(logging.WARNING)
    graph = onnx.load(model, load_external_data=False).graph
    weights = {weight.name for weight in graph.initializer}
    operands = [operand.name for operand in graph.input if operand.name not in weights]
    module = convert(model).eval()
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

    return run, [output.name for output in graph.output]


PEERS = {
    "onnxruntime": onnxruntime,
    "onnxruntime-plain": lambda model, threads: onnxruntime(model, threads, plain=True),
    "openvino": openvino,
    "openvino-default": lambda model, threads: openvino(model, threads, None),
    "pytorch": pytorch,
    "openvino-bf16": lambda model, threads: openvino(model, threads, "bf16"),
}


def main():
    name, model, inputs, threads, seconds = sys.argv[1:6]
    feeds = dict(numpy.load(inputs))
    start = time.perf_counter()
    run, names = PEERS[name](model, int(threads))
    loaded = time.perf_counter()
    outputs = run(feeds)
    first = time.perf_counter()
    if len(sys.argv) > 6:
        numpy.savez(sys.argv[6], **{name: numpy.array(output) for name, output in zip(names, outputs)})
    times = []
    while len(times) < 5 or time.perf_counter() - first < float(seconds):
        begin = time.perf_counter()
        run(feeds)
        times.append(time.perf_counter() - begin)
    report = {
        "load_ms": (loaded - start) * 1e3,
        "first_ms": (first - loaded) * 1e3,
        "median_ms": statistics.median(times) * 1e3,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
