"""Writes models of Paddle 3 as programs in JSON, like `export.py` for Paddle 2."""

import json
import os
import pathlib
import sys
import warnings

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "operators"))
warnings.filterwarnings("ignore")
os.environ["GLOG_minloglevel"] = "2"

import api_cases
import networks
import numpy
import paddle
from case_file import CaseFile
from writing import write_all


class Call(paddle.nn.Layer):
    """A function as a network. Paddle needs a fixed number of operands."""

    def __init__(self, function):
        super().__init__()
        self.function = function


class One(Call):
    """A function of one operand."""

    def forward(self, a):
        """Calls it."""
        return self.function(a)


class Two(Call):
    """A function of two operands."""

    def forward(self, a, b):
        """Calls it."""
        return self.function(a, b)


class Three(Call):
    """A function of three operands."""

    def forward(self, a, b, c):
        """Calls it."""
        return self.function(a, b, c)


class Four(Call):
    """A function of four operands."""

    def forward(self, a, b, c, d):
        """Calls it."""
        return self.function(a, b, c, d)


class Five(Call):
    """A function of five operands."""

    def forward(self, a, b, c, d, e):
        """Calls it."""
        return self.function(a, b, c, d, e)


CALLS = [One, Two, Three, Four, Five]


def flat(value):
    """All tensors in the result of a network."""
    return [each for part in value for each in flat(part)] if isinstance(value, (list, tuple)) else [value]


def ops_of(region):
    """The ops of a program and of its nested blocks."""
    for block in region["blocks"]:
        for op in block["ops"]:
            yield op["#"]
            for inner in op.get("regions", []):
                yield from ops_of(inner)


class ModelFile(CaseFile):
    """Writes models with their inputs and outputs."""

    def __init__(self, directory):
        super().__init__(directory / "unfinished")
        self.directory = directory

    def network(self, name, layer, specs, inputs, rtol=1e-4, reference=None):
        """Writes a layer as a program, with inputs and outputs: Paddle's, or those of a reference where Paddle does not run."""
        layer.eval()
        paddle.jit.save(layer, str(self.directory / name), input_spec=specs)
        with open(self.directory / f"{name}.json", encoding="utf-8") as program:
            ops = {op for region in json.load(program)["program"]["regions"] for op in ops_of(region)}
        if reference:
            outputs = reference(*inputs)
        else:
            saved = paddle.jit.load(str(self.directory / name))
            outputs = [value.numpy() for value in flat(saved(*[paddle.to_tensor(value) for value in inputs]))]
        line = {
            "name": name,
            "ops": sorted(ops),
            "inputs": [self._tensor(numpy.asarray(value)) for value in inputs],
            "outputs": [self._tensor(numpy.asarray(value)) for value in outputs],
            "rtol": rtol,
            "atol": 1e-5,
            "only_shape": False,
        }
        self.lines.write(json.dumps(line, allow_nan=False) + "\n")
        self.written += 1


def all_models():
    """Single function calls, and then networks."""
    for group in api_cases.GROUPS:
        for name, function, inputs, *reference in group():
            specs = [paddle.static.InputSpec(value.shape, str(value.dtype), f"x{at}") for at, value in enumerate(inputs)]
            name = f"{group.__name__}-{name}"
            layer = CALLS[len(inputs) - 1](function)
            yield name, lambda file: file.network(name, layer, specs, inputs, reference=reference[0] if reference else None)
    for name, *network in networks.all_networks():
        yield name, lambda file: file.network(name, *network)


if __name__ == "__main__":
    paddle.seed(1)
    write_all(ModelFile, all_models(), "models in JSON")
