"""Names of other libraries that are absent here: the error says what to use instead."""

from __future__ import annotations

import sys
from ._names import LOADED_ON_USE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ATTRIBUTES = {
    "backward": None,
    "ctypes": "x.numpy().ctypes",
    "data": "x",
    "flags": "x.numpy().flags",
    "flat": "x.ravel()",
    "grad": None,
    "put": "x[indices] = …",
    "requires_grad": None,
    "requires_grad_": None,
    "resize": "x.reshape(…)` or `oarlock.pad(x, …)",
    "resize_": "x.reshape(…)` or `oarlock.pad(x, …)",
    "strides": "x.numpy().strides",
    "tofile": "oarlock.save(file, x)` or `x.numpy().tofile(…)",
    "type": "x.astype(…)",
    "type_as": "x.to(other)",
    "unbind": "oarlock.unstack(x)",
    "view_as": "x.view(other.shape)",
}
"""Attributes of arrays that are absent here, and what to use; `None` for those of gradients."""

FUNCTIONS = {
    "apply_over_axes": "a tuple as `axis`",
    "as_tensor": "oarlock.asarray(…)",
    "block": "oarlock.concat(…)",
    "bool_": "oarlock.bool",
    "c_": "oarlock.column_stack(…)",
    "cast": "oarlock.astype(x, …)",
    "copyto": "x[...] = …",
    "cuda": 'oarlock.Device("cuda")',
    "det": "oarlock.linalg.det(x)",
    "dtype": 'oarlock.float32` or its name, `"float32"',
    "find_common_type": "oarlock.result_type(…)",
    "from_numpy": "oarlock.asarray(…)",
    "frombuffer": "oarlock.asarray(memoryview(buffer).cast(…))",
    "fromfile": "oarlock.load(…)` or `oarlock.asarray(numpy.fromfile(…))",
    "frompyfunc": "functions of whole arrays",
    "fromstring": "oarlock.loadtxt([text])",
    "inv": "oarlock.linalg.inv(x)",
    "manual_seed": "oarlock.random.manual_seed(…)",
    "mat": "oarlock.asarray(…)",
    "matrix": "oarlock.asarray(…)",
    "mgrid": 'oarlock.meshgrid(…, indexing="ij")',
    "msort": "oarlock.sort(x, 0)",
    "ndarray": "oarlock.Tensor",
    "norm": "oarlock.linalg.norm(x)",
    "normal": "oarlock.random.normal(…)",
    "numel": "x.size",
    "ogrid": "oarlock.indices(…, sparse=True)",
    "product": "oarlock.prod(x)",
    "put": "x[indices] = …",
    "put_along_axis": "oarlock.where(…)",
    "putmask": "oarlock.where(mask, values, x)",
    "r_": "oarlock.concat(…)",
    "rand": "oarlock.random.rand(…)",
    "randint": "oarlock.random.randint(…)",
    "randn": "oarlock.random.randn(…)",
    "randperm": "oarlock.random.randperm(…)",
    "relu": "oarlock.nn.functional.relu(x)",
    "resize": "oarlock.reshape(…)` or `oarlock.pad(…)",
    "rollaxis": "oarlock.moveaxis(x, …)",
    "row_stack": "oarlock.vstack(…)",
    "seed": "oarlock.random.seed(…)",
    "sigmoid": "oarlock.nn.functional.sigmoid(x)",
    "softmax": "oarlock.nn.functional.softmax(x, dim)",
    "solve": "oarlock.linalg.solve(…)",
    "trapz": "oarlock.trapezoid(…)",
    "vectorize": "functions of whole arrays` or `oarlock.apply_along_axis(…)",
}
"""Functions of NumPy and PyTorch that the package lacks, and what to use."""


MATRICES = {
    "multi_dot": "oarlock.einsum(…)",
    "tensorinv": "oarlock.linalg.inv(…)",
    "tensorsolve": "oarlock.linalg.solve(…)",
}
"""The same for the functions of linear algebra."""


def attribute(array: Any, name: str) -> Any:
    """Tells that arrays lack an attribute. Python calls it after it has not found the name."""
    package = sys.modules["oarlock"]
    instead = ATTRIBUTES.get(name)
    # Most names that others ask for are nowhere, which a dictionary tells sooner than a list.
    if instead is None and (name in LOADED_ON_USE or callable(vars(package).get(name)) and name in package.__all__):
        instead = f"oarlock.{name}(x, …)"
    if instead is not None:
        message = f"expected an attribute that arrays have, found `{name}`\nhint: use `{instead}`"
    elif name in ATTRIBUTES:
        message = f"expected an attribute that arrays have, found `{name}`\nhint: there are no gradients; leave it out"
    else:
        message = f"'{type(array).__name__}' object has no attribute '{name}'"
    raise AttributeError(message, name=name, obj=array)


def name_of_peer(where: object, name: str, title: str, instead: Mapping[str, str]) -> AttributeError:
    """The error that the interface of another runtime lacks a name."""
    hint = f"\nhint: {instead[name]}" if name in instead else ""
    return AttributeError(f"expected a name that `{title}` has, found `{name}`{hint}", name=name, obj=where)


def function(name: str, module: str = "oarlock") -> AttributeError:
    """The error that a module lacks a name."""
    instead = (FUNCTIONS if module == "oarlock" else MATRICES).get(name)
    hint = f"\nhint: use `{instead}`" if instead else ""
    return AttributeError(f"module `{module}` has no `{name}`{hint}", name=name, obj=sys.modules[module])
