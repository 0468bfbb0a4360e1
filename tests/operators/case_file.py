"""The case file format that the export writes and `tests/tests/operators` reads.

Each line of JSON is a case; the bytes of its tensors are in a file beside it, so that reading them needs no decoding.
"""

import json

import numpy

# Oarlock's names for the dtypes of NumPy and the package ml_dtypes.
DTYPES = {
    "bool": "bool",
    "int2": "i2",
    "uint2": "u2",
    "int4": "i4",
    "uint4": "u4",
    "float4_e2m1fn": "f4e2m1",
    "int8": "i8",
    "uint8": "u8",
    "int16": "i16",
    "uint16": "u16",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "uint64": "u64",
    "float8_e4m3fn": "f8e4m3",
    "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2": "f8e5m2",
    "float8_e5m2fnuz": "f8e5m2fnuz",
    "float8_e8m0fnu": "f8e8m0",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "c64",
    "complex128": "c128",
}


# The bits of an element, for dtypes whose elements share bytes.
PACKED = {"i2": 2, "u2": 2, "i4": 4, "u4": 4, "f4e2m1": 4}


class LeftOut(Exception):
    """Why a case cannot be in the file."""


class View:
    """A view of a tensor through steps: `transpose` an order, `slice` an axis, begin, end and step, `expand` dims."""

    def __init__(self, base, *steps):
        self.base = numpy.asarray(base)
        self.steps = steps

    def array(self):
        """The elements of the view."""
        seen = self.base
        for kind, values in self.steps:
            if kind == "transpose":
                seen = seen.transpose(values)
            elif kind == "slice":
                axis, begin, end, step = values
                seen = seen[(slice(None),) * axis + (slice(begin, end, step),)]
            else:
                seen = numpy.broadcast_to(seen, values)
        return seen


def within_rounding(atol, outputs):
    """An absolute tolerance for 32-bit floats. Where numbers cancel out, the rounding error of the largest one remains, and it
    depends on the order of the sum."""
    arrays = [output for output in outputs if isinstance(output, numpy.ndarray) and output.dtype in (numpy.float32, numpy.complex64)]
    largest = [numpy.abs(array).max(initial=0, where=numpy.isfinite(array)) for array in arrays]
    return max([atol, *(float(numpy.finfo(numpy.float32).eps * most) for most in largest)])


class CaseFile:
    """Writes cases, and counts omitted ones by reason."""

    def __init__(self, path):
        self.lines = open(path.with_suffix(".jsonl"), "w", encoding="utf-8")
        self.bytes = open(path.with_suffix(".bin"), "wb")
        self.written = 0
        self.names = set()
        self.left_out = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lines.close()
        self.bytes.close()

    def leave_out(self, reason):
        """Counts an omitted case."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def write(self, name, op, opset, inputs, outputs, *, domain="", attributes=None, rtol=1e-3, atol=1e-7, only_shape=False):
        """Writes a case. Inputs and outputs are arrays, views, or `None`; with `only_shape`, the values of outputs are random."""
        if name in self.names:
            raise SystemExit(f"error: two cases are called `{name}`")
        case = {
            "name": name,
            "op": op,
            "domain": domain,
            "opset": opset,
            "attributes": {key: self._attribute(value) for key, value in (attributes or {}).items()},
            "inputs": [self._tensor(value) for value in inputs],
            "outputs": [self._tensor(value) for value in outputs],
            "rtol": rtol,
            "atol": within_rounding(atol, outputs),
            "only_shape": only_shape,
        }
        self.lines.write(json.dumps(case, allow_nan=False) + "\n")
        self.names.add(name)
        self.written += 1

    def _attribute(self, value):
        if isinstance(value, numpy.ndarray):
            return {"tensor": self._tensor(value)}
        of_list = isinstance(value, list)
        first = value[0] if of_list and value else value
        kinds = {int: "int", float: "float", str: "string", list: "int"}
        return {kinds[type(first)] + ("s" if of_list else ""): value}

    def _tensor(self, value):
        if value is None:
            return None
        steps = []
        if isinstance(value, View):
            steps, value = [{kind: values} for kind, values in value.steps], value.base
        if value.dtype.kind in "OU":
            texts = [text.decode() if isinstance(text, bytes) else str(text) for text in value.flatten()]
            return {"dtype": "string", "dims": value.shape, "texts": texts}
        dtype = DTYPES.get(value.dtype.name)
        if dtype is None:
            raise LeftOut(f"elements of {value.dtype.name}")
        content = packed(value, PACKED[dtype]) if dtype in PACKED else numpy.ascontiguousarray(value).tobytes()
        at = self.bytes.tell()
        self.bytes.write(content)
        return {"dtype": dtype, "dims": value.shape, "at": at, "size": len(content), "steps": steps}


def packed(array, bits):
    """Packs elements into bytes, the first in the lowest bits."""
    shared = 8 // bits
    parts = array.flatten().view(numpy.uint8) & ((1 << bits) - 1)
    parts = numpy.append(parts, numpy.zeros(-parts.size % shared, numpy.uint8)).reshape(-1, shared)
    return (parts << numpy.arange(0, 8, bits, dtype=numpy.uint8)).sum(axis=1, dtype=numpy.uint8).tobytes()
