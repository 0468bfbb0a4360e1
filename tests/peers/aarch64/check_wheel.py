"""Compares Oarlock's wheel for ARM with onnxruntime: the outputs of models of `float` inputs. `scripts/test-aarch64 --wheel` runs it."""

import sys

import numpy as np
import oarlock.onnxruntime as ours
import onnxruntime as theirs

PERMITTED = 2e-6
"""The largest difference, relative to the largest output."""

for path in sys.argv[1:]:
    session = theirs.InferenceSession(path, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    shapes = {value.name: [size if isinstance(size, int) else 1 for size in value.shape] for value in session.get_inputs()}
    inputs = {name: random.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    for found, wanted in zip(ours.InferenceSession(path).run(None, inputs), session.run(None, inputs), strict=True):
        difference = np.abs(found - wanted).max() / max(1, np.abs(wanted).max())
        if not difference <= PERMITTED:
            sys.exit(f"{path}: expected outputs of onnxruntime within {PERMITTED}, found a difference of {difference}")
        print(f"{path}: outputs of onnxruntime within {difference:.1e}")
