"""What the reference says about one name."""

import enum
import inspect

import oarlock
from oarlock import DType

from . import examples, sources, texts

CONSTANTS = {
    "__array_api_version__": "The version of the array API standard that the namespace follows, as text.",
    "__version__": "The version of the package, as text.",
    "c_": "Joins what is in the brackets after it as columns: arrays, numbers and ranges, as in `oarlock.c_[x, y, 0:3]`.",
    "cuda_version": "An empty text: the package is not built for one version of CUDA.",
    "e": "The base of the natural logarithm, 2.718281828459045.",
    "inf": "Infinity.",
    "mgrid": "The coordinates of all places of a grid, as in `oarlock.mgrid[0:2, 0:3]`: an array for each axis. "
    "With an imaginary step, as in `0:1:5j`, it is how many there are, with both ends.",
    "nan": "Not a number.",
    "newaxis": "`None`, which adds an axis where it is an index.",
    "oarlock_version": "The version of Oarlock, as text.",
    "ogrid": "The same as `mgrid`, with arrays that have to be broadcast, as in `y, x = oarlock.ogrid[0:2, 0:3]`.",
    "package_name": "The name of onnxruntime's package, as text.",
    "pi": "The circumference of a circle whose diameter is 1, 3.141592653589793.",
    "r_": "Joins what is in the brackets after it along the first axis: arrays, numbers and ranges, as in `oarlock.r_[x, 7, 0:3]`.",
    "s_": "What is in the brackets after it, so that an index can have a name, as in `oarlock.s_[::2]`.",
    "version": "The same as `__version__`.",
}
"""What constants are, which have no docstrings."""

PEERS = {"onnxruntime": "onnxruntime", "openvino": "OpenVINO"}
"""The adapters that have a version of their own, and whose interface it is."""


def constant(name, value):
    """The sentence for a constant or a dtype; `None` for anything else."""
    if isinstance(value, DType):
        size = f"{value.itemsize} bytes" if value.itemsize > 1 else "1 byte"
        return f"The dtype `{value.name}`, {size} for each element."
    if callable(value) or inspect.ismodule(value):
        return None
    adapter, _, last = name.rpartition(".")
    if last == "__version__" and adapter in PEERS:
        return f"The version of {PEERS[adapter]} whose interface this is, as text."
    return CONSTANTS[last]


def entry(name, value, links):
    """The section of a name: a heading, how it is called, what it says about itself, and an example."""
    told = constant(name, value)
    if told is not None:
        return [texts.heading(2, name), "", told, ""]
    if links.home(value) != name:
        return [texts.heading(2, name), "", f"The same as {links.to(links.home(value))}.", ""]
    if inspect.isclass(value):
        return class_entry(name, value, links)
    return function_entry(name, value)


def function_entry(name, function):
    """The section of a function."""
    called = sources.signatures(function, name)
    told = texts.described(function) if sources.is_ours(function) else ["It is inherited from the package `onnx`."]
    example = texts.exemplified(function) or examples.of_function(name)
    return section(2, name, called, told, example)


def section(level, name, called, told, example):
    """The lines of a section."""
    parts = [texts.fenced([line for each in called for line in each.splitlines()]), told, texts.fenced(example)]
    return [texts.heading(level, name), "", *(line for part in parts if part for line in [*part, ""])]


def class_entry(name, cls, links):
    """The section of a class, and those of its methods and properties."""
    made = [] if issubclass(cls, enum.Enum) else constructor(name, cls)
    lines = section(2, name, made, texts.described(cls), texts.exemplified(cls) or examples.of_function(name))
    if issubclass(cls, enum.Enum):
        return [*lines, f"Members: {', '.join(f'`{each.name}` = {each.value}' for each in cls)}.", ""]
    found = sources.members(cls)
    fields = {field: kind for field, kind in sources.fields(cls).items() if field not in found}
    if fields:
        listed = ", ".join(f"`{field}: {kind}`" if kind else f"`{field}`" for field, kind in fields.items())
        lines += [f"Fields: {listed}.", ""]
    same = [member for member in found if links.is_function_of(name, member)]
    if same:
        part = name.rpartition(".")[0]
        listed = ", ".join(links.to(f"{part}.{member}", member) for member in sorted(same))
        lines += [f"Methods that are functions of the module too: {listed}.", ""]
    if cls is oarlock.Tensor:
        return [*lines, "[Properties and methods](tensor.md) have a page, and so have [functions as methods](methods.md).", ""]
    for member, definition in sorted(found.items()):
        if member not in same:
            lines += member_entry(f"{name}.{member}", definition, inspect.getattr_static(cls, member))
    return lines


def constructor(name, cls):
    """How an object of a class is made, if programs make it."""
    definition = sources.constructor(cls)
    if definition is None or not is_made_by_programs(name):
        return []
    return [sources.signature(definition, name, without_first=True, returns=False)]


def is_made_by_programs(name):
    """Whether programs make objects of a class themselves."""
    return name not in {
        "Explanation", "Profile", "extension.Extension", "onnxruntime.NodeArg", "onnxruntime.ModelMetadata", "openvino.CompiledModel",
        "openvino.ConstOutput", "openvino.InferRequest", "openvino.Model", "paddle_inference.Predictor", "paddle_inference.Tensor",
        "tflite.SignatureRunner",
    }  # fmt: skip


def member_entry(name, definition, value, example=(), level=3):
    """The section of a method or property."""
    described = getattr(value, "__func__", value)
    if sources.is_property(definition):
        called = [f"{name}: {sources.spoken(definition.returns)}"]
    else:
        is_static = any(getattr(each, "id", "") == "staticmethod" for each in definition.decorator_list)
        called = [sources.signature(definition, name, without_first=not is_static)]
    return section(level, name, called, texts.described(described), texts.exemplified(described) or list(example))
