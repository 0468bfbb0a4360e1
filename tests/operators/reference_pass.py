"""Lists the tests of the package onnx that its reference evaluator passes and a device of this tree fails.

    python reference_pass.py target/operator-cases expected/models-cpu.txt

The first argument is the directory that `export_models.py` wrote, which also records omitted tests; the second lists the tests
that a device fails. Tests with random values pass if dtypes and shapes are right, as in `tests/tests/backend`.
"""

import json
import pathlib
import sys
import warnings

import numpy
import onnx
from export import RANDOM_OPS
from export_models import KINDS, plain, stored
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner
from onnx.reference import ReferenceEvaluator


def form(value):
    """The dtype and shape of an array."""
    array = numpy.asarray(value)
    return array.dtype, array.shape


def check(test):
    """Runs a test, and raises an error if the evaluator fails it."""
    if test.model is not None:
        model, sets = test.model, test.data_sets
    else:
        content, sets = stored(test)
        model = onnx.load_from_string(content)
    weights = {weight.name for weight in model.graph.initializer}
    names = [info.name for info in model.graph.input if info.name not in weights]
    evaluator = ReferenceEvaluator(model)
    for inputs, outputs in sets:
        found = evaluator.run(None, dict(zip(names, map(plain, inputs))))
        expected = [plain(output) for output in outputs]
        if any(node.op_type in RANDOM_OPS for node in model.graph.node):
            assert list(map(form, expected)) == list(map(form, found))
        else:
            Runner.assert_similar_outputs(expected, found, rtol=test.rtol, atol=test.atol)


def main():
    """Prints the tests that the evaluator passes and a device does not, with the reasons."""
    directory, failing = map(pathlib.Path, sys.argv[1:])
    gaps = json.loads((directory / "models.left-out.json").read_text())
    gaps.update(line.split(": ", 1) for line in failing.read_text().splitlines() if not line.startswith("#"))
    passed, count = set(), 0
    for kind in KINDS:
        with warnings.catch_warnings(action="ignore"), numpy.errstate(all="ignore"):
            for test in load_model_tests(kind=kind):
                count += 1
                try:
                    check(test)
                except Exception:  # noqa: BLE001 - any exception counts as a failure
                    continue
                passed.add(f"{kind}/{test.name.removeprefix('test_')}")
    missing = sorted(passed & set(gaps))
    print(f"the reference evaluator passes {len(passed)} of {count} tests; of them {len(missing)} are not passed here")
    for name in missing:
        print(f"{name}: {gaps[name]}")


if __name__ == "__main__":
    main()
