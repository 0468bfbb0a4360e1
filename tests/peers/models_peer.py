"""Runs one model in one peer and prints its times as JSON.

    models_peer.py onnxruntime|openvino|openvino-default|openvino-bf16 MODEL INPUTS.npz THREADS SECONDS [OUTPUTS.npz]
"""

import json
import resource
import statistics
import sys
import time

import numpy


def onnxruntime(model, threads):
    import onnxruntime as peer

    options = peer.SessionOptions()
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


PEERS = {
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "openvino-default": lambda model, threads: openvino(model, threads, None),
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
