"""Runs a model some times with onnxruntime on one thread, with ones as inputs. `scripts/count-aarch64` counts its instructions."""

import sys

import numpy as np
import onnxruntime

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}

path, runs = sys.argv[1], int(sys.argv[2])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
inputs = {
    value.name: np.ones([size if isinstance(size, int) else 1 for size in value.shape], TYPES[value.type])
    for value in session.get_inputs()
}
for _ in range(runs):
    session.run(None, inputs)
