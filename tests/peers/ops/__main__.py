"""Runs models of one op each in turns with onnxruntime, and prints a comparison; `scripts/bench --help` explains the options.

Inputs and outputs are those of a whole model: where a kernel wants another layout, such as channels last, its conversions count.
Each measurement is a process of its own, bound to as many processors as it has threads. Times are medians.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

# What other benchmarks need too.
sys.path.append(os.fspath(pathlib.Path(__file__).parent.parent))

from common.markdown import geometric_mean, table
from common.processes import RunError, ask

from cases import all_cases

IR_VERSION = 10


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench", usage="scripts/bench --ops [OPTION…]; see scripts/bench --help")
    parser.add_argument("--oarlock", required=True, type=os.path.realpath)
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--below", type=float, default=float("inf"))
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def model_of(case):
    """The model of a case, and its inputs by name."""
    names, inputs, constants, arrays = [], [], [], {}
    for index, array in enumerate(case.inputs):
        name = "" if array is None else f"input{index}"
        names.append(name)
        if index in case.constants:
            constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        elif name:
            arrays[name] = array
            inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
    outputs = [f"output{index}" for index in range(case.outputs)]
    node = helper.make_node(case.op, names, outputs, domain=case.domain, **case.attributes)
    graph = helper.make_graph([node], "op", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], constants)
    opsets = [helper.make_opsetid("", case.opset)] + ([helper.make_opsetid(case.domain, 1)] if case.domain else [])
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION))
    for output in model.graph.output:
        # Only the ops of ONNX have inference; the others return what they get.
        if not output.type.HasField("tensor_type"):
            output.type.tensor_type.elem_type = inputs[0].type.tensor_type.elem_type
    return model, arrays


def measure(case, options, place):
    """Milliseconds of Oarlock and of onnxruntime."""
    model, arrays = model_of(case)
    model_file, inputs_file = place / "op.onnx", place / "op.npz"
    onnx.save(model, model_file)
    np.savez(inputs_file, **arrays)
    command = [options.oarlock, "bench", model_file, "-i", inputs_file, "--threads", options.threads, "--repeat", options.repeat]
    report = json.loads(ask([*command, "--compare", "onnxruntime", "--python", sys.executable, "--json"], options.threads))
    return report["latency_ms"]["median"], report["compared"]["latency_ms"]["median"]


def main():
    options = arguments()
    rows, failures = [], []
    with tempfile.TemporaryDirectory() as directory:
        for case in all_cases():
            if options.only.lower() not in case.name.lower():
                continue
            print(f"==> {case.name}", file=sys.stderr)
            try:
                ours, theirs = measure(case, options, pathlib.Path(directory))
            except RunError as error:
                failures.append({"case": case.name, "error": str(error)})
                continue
            rows.append({"case": case.name, "ms": ours, "onnxruntime_ms": theirs, "ratio": theirs / ours})
    if not rows and not failures:
        sys.exit(f"expected `--only` to be a part of a case's name, found `{options.only}`")
    shown = sorted((row for row in rows if row["ratio"] < options.below), key=lambda row: row["ratio"])
    if options.json:
        print(json.dumps({"threads": options.threads, "rows": shown, "failures": failures}, indent=1))
    else:
        cells = [[row["case"], f"{row['ms']:.4g}", f"{row['ratio']:.2f}"] for row in shown]
        print(table(["op", "ms", "× onnxruntime"], cells))
        if rows:
            behind = sum(row["ratio"] < 1 for row in rows)
            mean = geometric_mean(row["ratio"] for row in rows)
            print(f"\n{len(rows)} rows, geometric mean {mean:.2f}, {behind} below 1; threads: {options.threads}")
        for failure in failures:
            print(f"not measured: {failure['case']}: {failure['error']}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
