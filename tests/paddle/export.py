"""Writes Paddle models with inputs and the outputs of Paddle, for `tests/tests/paddle`.

Each model is a program and its parameters in two files, as Paddle saves them. A line of `models.jsonl` describes the inputs and
expected outputs of a model; the numbers are in `models.bin`.
"""

import json
import os
import pathlib
import sys
import warnings

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "operators"))
warnings.filterwarnings("ignore")
os.environ["FLAGS_enable_pir_api"] = "0"
os.environ["GLOG_minloglevel"] = "2"

import algebra_cases
import layer_cases
import networks
import numpy
import op_cases
import paddle
from case_file import CaseFile
from writing import write_all

# Ops with random results.
RANDOM = {"bernoulli", "empty", "gaussian_random", "uniform_random"}


class ModelFile(CaseFile):
    """Writes models with their inputs and outputs."""

    def __init__(self, directory):
        super().__init__(directory / "unfinished")
        self.directory = directory
        self.cpu = paddle.static.Executor(paddle.CPUPlace())

    def model(self, name, inputs, *, atol=1e-5, rtol=1e-4):
        """Records the outputs of a saved model that Paddle computes."""
        with paddle.static.scope_guard(paddle.static.Scope()):
            program, names, fetched = paddle.static.load_inference_model(str(self.directory / name), self.cpu)
            outputs = self.cpu.run(program, dict(zip(names, inputs)), fetched)
        ops = sorted({op.type for block in program.blocks for op in block.ops})
        line = {
            "name": name,
            "ops": ops,
            "inputs": [self._tensor(numpy.asarray(value)) for value in inputs],
            "outputs": [self._tensor(numpy.asarray(value)) for value in outputs],
            "rtol": rtol,
            "atol": atol,
            "only_shape": not RANDOM.isdisjoint(ops),
        }
        self.lines.write(json.dumps(line, allow_nan=False) + "\n")
        self.written += 1

    def op(self, name, op, operands, outputs, attributes):
        """Writes a program with one op."""
        program, begin = paddle.static.Program(), paddle.static.Program()
        fed, inputs = [], []

        def feed(value):
            variable = paddle.static.data(f"x{len(fed)}", value.shape, str(value.dtype))
            fed.append(variable)
            inputs.append(value)
            return variable

        with paddle.static.program_guard(program, begin), paddle.static.scope_guard(paddle.static.Scope()):
            block = program.global_block()
            lists = {key: [feed(it) for it in (value if isinstance(value, list) else [value])] for key, value in operands.items()}
            made = {}
            for output in outputs:
                made.setdefault(output, []).append(block.create_var(name=f"y{len(block.vars)}", dtype="float32"))
            if op == "batch_norm":
                made["MeanOut"], made["VarianceOut"] = lists["Mean"], lists["Variance"]
            if op.startswith("max_pool"):
                made.setdefault("Mask", [block.create_var(name="mask", dtype="int32")])
            block.append_op(type=op, inputs=lists, outputs=made, attrs=attributes)
            wanted = [made[output][at] for output, at in fetches(op, outputs)]
            paddle.static.save_inference_model(str(self.directory / name), fed, wanted, self.cpu, program=program)
        self.model(name, inputs)

    def network(self, name, layer, specs, inputs):
        """Writes a layer as a program."""
        layer.eval()
        paddle.jit.save(layer, str(self.directory / name), input_spec=specs)
        paddle.enable_static()
        self.model(name, inputs)
        paddle.disable_static()


def fetches(op, outputs):
    """The outputs of an op to compare: not those that only training needs."""
    aside = {"XShape", "Mask", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance", "Mean", "Variance", "Means", "Scales"}
    aside |= {"Norm", "MidOut", "OutScale", "InnerCache"}
    if op.startswith("max_pool"):
        aside = set() if outputs[1:] else {"Mask"}
    seen = {}
    for output in outputs:
        seen[output] = seen.get(output, -1) + 1
        if output not in aside:
            yield output, seen[output]


def all_models():
    """Programs of one op, built by hand, and then networks, which Paddle traces."""
    for group in op_cases.GROUPS + layer_cases.GROUPS + algebra_cases.GROUPS:
        for at, row in enumerate(group()):
            name = f"{row[0]}-{group.__name__}-{at}"
            yield name, lambda file: file.op(name, *row)
    paddle.disable_static()
    for name, *network in networks.all_networks():
        yield name, lambda file: file.network(name, *network)


if __name__ == "__main__":
    paddle.seed(1)
    paddle.enable_static()
    write_all(ModelFile, all_models(), "models")
