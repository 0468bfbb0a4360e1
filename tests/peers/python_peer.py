"""Measures onnxruntime or NumPy, the Python peers of `compare.py`.

    python python_peer.py onnxruntime|numpy THREADS

Each line of the input is the name of a case of `cases.json` and a number of seconds to spend on it, with a tab between them.
The answer is the shortest time of a call in seconds, or `none` if the peer lacks the function. Outputs are written to existing
memory, which is the fastest way in these libraries.
"""

import json
import pathlib
import sys
import time

import numpy as np

CASES = json.loads(pathlib.Path(__file__).with_name("cases.json").read_text())
OPSET = 22


def numbers(dims):
    """Unordered numbers from -4 to 4, the same as in `tests/benches/kernels.rs`."""
    index = np.arange(np.prod(dims, dtype=np.int64))
    return ((index * 7919 % 2003).astype(np.float32) * np.float32(8 / 2003) - np.float32(4)).reshape(dims)


def with_onnxruntime(case, threads):
    import onnx
    import onnxruntime as ort

    names = [f"input{index}" for index in range(len(case["inputs"]))]
    arrays = [numbers(dims) for dims in case["inputs"]]
    floats = onnx.TensorProto.FLOAT
    outputs = ["output", "places"][: case.get("outputs", 1)]
    types = [floats, onnx.TensorProto.INT64]
    node = onnx.helper.make_node(case["op"], names, outputs, **case.get("attributes", {}))
    graph = onnx.helper.make_graph(
        [node],
        case["op"],
        [onnx.helper.make_tensor_value_info(name, floats, dims) for name, dims in zip(names, case["inputs"])],
        [onnx.helper.make_tensor_value_info(name, kind, case["output"]) for name, kind in zip(outputs, types)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", case.get("opset", OPSET))], ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in zip(names, arrays):
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    for name, kind in zip(outputs, [np.float32, np.int64]):
        binding.bind_ortvalue_output(name, ort.OrtValue.ortvalue_from_shape_and_type(case["output"], kind))
    return lambda: session.run_with_iobinding(binding)


def with_numpy(case, _threads):
    functions = {
        "Add": np.add,
        "Exp": np.exp,
        "Identity": lambda x, out: np.copyto(out, x),
        "MatMul": np.matmul,
        "Neg": np.negative,
        "ReduceMax": np.max,
        "ReduceSum": np.sum,
        "Relu": lambda x, out: np.maximum(x, 0, out=out),
        "Tanh": np.tanh,
    }
    function = functions.get(case["op"])
    if function is None:
        return None
    arrays = [numbers(dims) for dims in case["inputs"]]
    output = np.empty(case["output"], np.float32)
    axes = case.get("attributes", {}).get("axes")
    axes = {"axis": tuple(axes)} if axes else {}
    return lambda: function(*arrays, out=output, **axes)


def shortest(call, seconds):
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin <= seconds:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def main():
    peer, threads = sys.argv[1], int(sys.argv[2])
    prepare = {"onnxruntime": with_onnxruntime, "numpy": with_numpy}[peer]
    cases = {case["name"]: case for case in CASES}
    prepared = {}
    for line in sys.stdin:
        name, seconds = line.rstrip("\n").split("\t")
        if name not in prepared:
            prepared[name] = prepare(cases[name], threads)
        call = prepared[name]
        print(shortest(call, float(seconds)) if call else "none", flush=True)


main()
