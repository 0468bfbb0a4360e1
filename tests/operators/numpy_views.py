"""Building blocks of our own cases: random numbers in awkward shapes and strides.

The seed of a case derives from its name, so that new cases do not change others.
"""

import math
import zlib

import ml_dtypes
import numpy
from case_file import View

OPSET = 28
SHAPES = [(), (1,), (0,), (7,), (33,), (3, 5), (2, 0, 3), (13, 17), (1, 1, 1), (2, 3, 4, 5), (2, 1, 3, 1, 2)]
PAIRS = [
    ((), ()),
    ((5,), ()),
    ((3, 1), (1, 4)),
    ((2, 3, 4), (4,)),
    ((0, 3), (1, 3)),
    ((7, 1, 5), (1, 9, 1)),
    ((19, 31), (19, 31)),
    ((1,), (2, 1, 3, 1, 2)),
]
LAYOUTS = ["contiguous", "transposed", "stepped", "repeated", "offset"]
FLOATS = [numpy.float32, numpy.float64, numpy.float16, ml_dtypes.bfloat16]
INTEGERS = [numpy.int8, numpy.uint8, numpy.int16, numpy.uint16, numpy.int32, numpy.uint32, numpy.int64, numpy.uint64]


def label(shape):
    """A shape as part of a name."""
    return "x".join(map(str, shape)) or "scalar"


def turns(index, choices):
    """Cycles through choices, so that a few cases cover all."""
    return choices[index % len(choices)]


class Writer:
    """Writes cases of one op each."""

    def __init__(self, cases):
        self.cases = cases

    def case(self, op, suffix, build, atol=1e-5):
        """Writes a case: `build` makes inputs, outputs and attributes from a random generator."""
        name = f"{op.lower()}_{suffix}"
        inputs, outputs, attributes = build(numpy.random.default_rng(zlib.crc32(name.encode())))
        outputs = [numpy.asarray(output) for output in outputs]
        self.cases.write(name, op, OPSET, inputs, outputs, attributes=attributes, rtol=1e-5, atol=atol)

    def of_views(self, op, suffix, operands, function, attributes=None, atol=1e-5):
        """Writes a case with the inputs `operands` (shape, dtype, layout, range) and the output of a NumPy function, cast to the
        dtype of the first input unless it is boolean."""

        def build(rng):
            inputs = [view(rng, *operand) for operand in operands]
            answer = numpy.asarray(function(*(widened(value.array()) for value in inputs)))
            if answer.dtype != bool:
                answer = answer.astype(inputs[0].base.dtype)
            return inputs, [answer], attributes

        with numpy.errstate(all="ignore"):
            self.case(op, suffix, build, atol)


def widened(array):
    """Widens floating-point numbers to 64 bits."""
    is_float = array.dtype.kind not in "iub"
    return array.astype(numpy.float64) if is_float else array


def values(rng, shape, dtype, low, high):
    """Random numbers in a range."""
    dtype = numpy.dtype(dtype)
    if dtype == bool:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "u":
        low = max(low, 0)
    if dtype.kind in "iu":
        return numpy.asarray(rng.integers(math.ceil(low), math.floor(high), shape, endpoint=True)).astype(dtype)
    return numpy.asarray(rng.uniform(low, high, shape)).astype(dtype)


def view(rng, shape, dtype, layout="contiguous", low=-4, high=4):
    """Random numbers in a shape, in a layout where strides matter."""
    if not shape or layout == "contiguous":
        return View(values(rng, shape, dtype, low, high))
    if layout == "transposed":
        order = list(reversed(range(len(shape))))
        return View(values(rng, shape[::-1], dtype, low, high), ("transpose", order))
    if layout == "repeated":
        return View(values(rng, (1, *shape[1:]), dtype, low, high), ("expand", list(shape)))
    last, size = len(shape) - 1, shape[-1]
    if layout == "stepped":
        base = values(rng, (*shape[:-1], 2 * size + 1), dtype, low, high)
        return View(base, ("slice", [last, 1, 2 * size + 1, 2]))
    return View(values(rng, (*shape[:-1], size + 3), dtype, low, high), ("slice", [last, 2, size + 2, 1]))
