"""Makes up the inputs of a model, the same ones each time.

Without a rule, floats come from a normal distribution, 8-bit images have all values, other integers are 0 or 1, and booleans
are true. A rule of `zoo.toml` names what a model needs instead:

    { below = 100 }             whole numbers from 0 to 99, also as floats; the bound may be the symbol of a dimension
    { below = 9, sorted = true }   the same in order, such as the graph that each node belongs to
    { from = 0.0, to = 1.0 }    floats from an interval
    { spread = 0.1 }            floats from a normal distribution of this deviation, such as quiet sound
    { is = 16000 }              one value everywhere; it may be the symbol of a dimension, such as a length
"""

import zlib

import numpy
import onnx
from onnx.helper import tensor_dtype_to_np_dtype


class InputError(Exception):
    """A shape or a rule that the model does not fit."""


def operands(path):
    """The inputs of an ONNX model without default values: name, dtype, and the size or symbol of each dimension."""
    graph = onnx.load(path, load_external_data=False).graph
    constants = {constant.name for constant in graph.initializer}
    found = []
    for value in graph.input:
        if value.name not in constants:
            tensor = value.type.tensor_type
            sizes = [size(dimension) for dimension in tensor.shape.dim]
            found.append((value.name, tensor_dtype_to_np_dtype(tensor.elem_type), sizes))
    return found


def size(dimension):
    """The size of a dimension, its symbol, or `None` if it has neither."""
    if dimension.HasField("dim_value") and dimension.dim_value >= 0:
        return dimension.dim_value
    return dimension.dim_param or None


def make(model, path, index):
    """The arrays of one run by name."""
    run = model.runs[index]
    generator = numpy.random.default_rng(zlib.crc32(f"{model.name} {index}".encode()))
    arrays, used = {}, set()
    for name, dtype, sizes in operands(path):
        shape = run.get(name, sizes)
        used |= {name, *(it for it in shape if isinstance(it, str))}
        shape = [run.get(it) if isinstance(it, str) else it for it in shape]
        if None in shape:
            raise InputError(f"`{model.name}`: expected sizes for `{name}` {sizes} in `runs`, found {run}")
        arrays[name] = elements(model.values.get(name, {}), dtype, shape, run, generator)
    unknown = (set(run) | set(model.values)) - used
    if unknown:
        raise InputError(f"`{model.name}`: expected inputs or symbols of the model, found {sorted(unknown)}")
    return arrays


def elements(rule, dtype, shape, run, generator):
    """An array of made-up elements."""
    bound = lambda it: run[it] if isinstance(it, str) else it
    if "is" in rule:
        return numpy.full(shape, bound(rule["is"]), dtype)
    if "below" in rule:
        whole = generator.integers(0, bound(rule["below"]), shape)
        return (numpy.sort(whole, axis=-1) if rule.get("sorted") else whole).astype(dtype)
    if "from" in rule:
        return generator.uniform(rule["from"], rule["to"], shape).astype(dtype)
    if numpy.issubdtype(dtype, numpy.floating):
        return (generator.standard_normal(shape) * rule.get("spread", 1.0)).astype(dtype)
    if dtype == numpy.bool_:
        return numpy.ones(shape, dtype)
    return generator.integers(0, 256 if dtype == numpy.uint8 else 2, shape).astype(dtype)


def shown(arrays):
    """Shapes for a table, such as `x 1×3×48×320`; only the first of many inputs."""
    texts = [f"{name} {'×'.join(map(str, array.shape)) or 'scalar'}" for name, array in arrays.items()]
    return ", ".join(texts[:3]) + (f" and {len(texts) - 3} more" if len(texts) > 3 else "")
