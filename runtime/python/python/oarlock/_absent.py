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
    "byteswap": "x.numpy().byteswap()",
    "ctypes": "x.numpy().ctypes",
    "data": "x",
    "dump": "oarlock.save(file, x)",
    "dumps": "pickle.dumps(x)",
    "flags": "x.numpy().flags",
    "flat": "x.ravel()",
    "grad": None,
    "put": "oarlock.put(x, indices, …)",
    "requires_grad": None,
    "requires_grad_": None,
    "resize": "x.reshape(…)` or `oarlock.pad(x, …)",
    "resize_": "x.reshape(…)` or `oarlock.pad(x, …)",
    "strides": "x.numpy().strides",
    "tofile": "oarlock.save(file, x)` or `x.numpy().tofile(…)",
    "type": "x.astype(…)",
}
"""Attributes of arrays that are absent here, and what to use; `None` for those of gradients."""

FUNCTIONS = {
    "Inf": "oarlock.inf",
    "Infinity": "oarlock.inf",
    "NAN": "oarlock.nan",
    "NINF": "-oarlock.inf",
    "NaN": "oarlock.nan",
    "PINF": "oarlock.inf",
    "apply_over_axes": "a tuple as `axis`",
    "array2string": "str(x)",
    "array_repr": "repr(x)",
    "array_str": "str(x)",
    "as_tensor": "oarlock.asarray(…)",
    "asanyarray": "oarlock.asarray(…)",
    "asarray_chkfinite": "oarlock.asarray(…)",
    "asfarray": "oarlock.asarray(…, dtype=oarlock.float64)",
    "asfortranarray": "oarlock.asarray(…)",
    "asnumpy": "x.numpy()",
    "bool8": "oarlock.bool",
    "bool_": "oarlock.bool",
    "byte": "oarlock.int8",
    "cast": "oarlock.astype(x, …)",
    "cdouble": "oarlock.complex128",
    "cfloat": "oarlock.complex128",
    "clongdouble": "oarlock.complex128",
    "complex": "oarlock.complex64` or `oarlock.complex128",
    "complex_": "oarlock.complex128",
    "complexfloating": 'oarlock.isdtype(x.dtype, "complex floating")',
    "csingle": "oarlock.complex64",
    "cuda": 'oarlock.Device("cuda")',
    "det": "oarlock.linalg.det(x)",
    "double": "oarlock.float64",
    "dtype": 'oarlock.float32` or its name, `"float32"',
    "emath": "x.astype(oarlock.complex128)",
    "errstate": None,
    "find_common_type": "oarlock.result_type(…)",
    "float": "oarlock.float32` or `oarlock.float64",
    "float128": "oarlock.float64",
    "float_": "oarlock.float64",
    "floating": 'oarlock.isdtype(x.dtype, "real floating")',
    "from_numpy": "oarlock.asarray(…)",
    "frombuffer": "oarlock.asarray(memoryview(buffer).cast(…))",
    "fromfile": "oarlock.load(…)` or `oarlock.asarray(numpy.fromfile(…))",
    "fromiter": "oarlock.asarray(list(…))",
    "frompyfunc": "functions of whole arrays",
    "fromstring": "oarlock.loadtxt([text])",
    "half": "oarlock.float16",
    "inference_mode": None,
    "int": "oarlock.int64` or `oarlock.int32",
    "int_": "oarlock.int64",
    "intc": "oarlock.int32",
    "integer": 'oarlock.isdtype(x.dtype, "integral")',
    "intp": "oarlock.int64",
    "inv": "oarlock.linalg.inv(x)",
    "is_grad_enabled": None,
    "is_tensor": "isinstance(x, oarlock.Tensor)",
    "issubdtype": "oarlock.isdtype(x.dtype, …)",
    "ldexp": "x1 * 2.0**x2",
    "lib": "x[oarlock.arange(x.size - n + 1)[:, None] + oarlock.arange(n)]",
    "long": "oarlock.int64",
    "longdouble": "oarlock.float64",
    "longfloat": "oarlock.float64",
    "longlong": "oarlock.int64",
    "ma": "oarlock.where(mask, …)` or functions such as `oarlock.nanmean(x)",
    "manual_seed": "oarlock.random.manual_seed(…)",
    "mat": "oarlock.asarray(…)",
    "matrix": "oarlock.asarray(…)",
    "matvec": "oarlock.matmul(…)",
    "memmap": "oarlock.asarray(numpy.memmap(…))",
    "msort": "oarlock.sort(x, 0)",
    "ndarray": "oarlock.Tensor",
    "nditer": "oarlock.ndenumerate(x)",
    "no_grad": None,
    "norm": "oarlock.linalg.norm(x)",
    "normal": "oarlock.random.normal(…)",
    "number": 'oarlock.isdtype(x.dtype, "numeric")',
    "numel": "x.size",
    "object_": "lists of Python",
    "poly1d": "oarlock.polyval(coefficients, x)",
    "product": "oarlock.prod(x)",
    "rand": "oarlock.random.rand(…)",
    "randint": "oarlock.random.randint(…)",
    "randn": "oarlock.random.randn(…)",
    "randperm": "oarlock.random.randperm(…)",
    "relu": "oarlock.nn.functional.relu(x)",
    "require": "oarlock.asarray(…)",
    "resize": "oarlock.reshape(…)` or `oarlock.pad(…)",
    "rollaxis": "oarlock.moveaxis(x, …)",
    "row_stack": "oarlock.vstack(…)",
    "seed": "oarlock.random.seed(…)",
    "set_grad_enabled": None,
    "set_seed": "oarlock.random.seed(…)",
    "seterr": None,
    "short": "oarlock.int16",
    "sigmoid": "oarlock.nn.functional.sigmoid(x)",
    "single": "oarlock.float32",
    "singlecomplex": "oarlock.complex64",
    "softmax": "oarlock.nn.functional.softmax(x, dim)",
    "solve": "oarlock.linalg.solve(…)",
    "str_": "str",
    "testing": "numpy.testing.assert_allclose(…)",
    "trapz": "oarlock.trapezoid(…)",
    "ubyte": "oarlock.uint8",
    "uint": "oarlock.uint64",
    "uintc": "oarlock.uint32",
    "uintp": "oarlock.uint64",
    "ulonglong": "oarlock.uint64",
    "ushort": "oarlock.uint16",
    "vecmat": "oarlock.matmul(…)",
    "vectorize": "functions of whole arrays` or `oarlock.apply_along_axis(…)",
}
"""Functions of NumPy and PyTorch that the package lacks, and what to use; `None` for those that set what is not here."""

MATRICES = {
    "multi_dot": "oarlock.einsum(…)",
    "tensorinv": "oarlock.linalg.inv(…)",
    "tensorsolve": "oarlock.linalg.solve(…)",
}
"""The same for the functions of linear algebra."""

DISTRIBUTIONS = {
    "MT19937": "oarlock.random.default_rng(…)",
    "PCG64": "oarlock.random.default_rng(…)",
    "Philox": "oarlock.random.default_rng(…)",
    "RandomState": "oarlock.random.default_rng(…)",
    "SFC64": "oarlock.random.default_rng(…)",
    "SeedSequence": "oarlock.random.default_rng(…)",
    "bit_generator": "rng.state",
    "hypergeometric": "oarlock.asarray(numpy.random.default_rng().hypergeometric(…))",
    "logseries": "oarlock.asarray(numpy.random.default_rng().logseries(…))",
    "multivariate_hypergeometric": "oarlock.asarray(numpy.random.default_rng().multivariate_hypergeometric(…))",
    "noncentral_chisquare": "oarlock.asarray(numpy.random.default_rng().noncentral_chisquare(…))",
    "noncentral_f": "oarlock.asarray(numpy.random.default_rng().noncentral_f(…))",
    "random_integers": "oarlock.random.integers(…, endpoint=True)",
    "ranf": "oarlock.random.random(…)",
    "sample": "oarlock.random.random(…)",
    "vonmises": "oarlock.asarray(numpy.random.default_rng().vonmises(…))",
    "zipf": "oarlock.asarray(numpy.random.default_rng().zipf(…))",
}
"""The same for random numbers, and for generators of them."""

OF_MODULES: dict[str, dict[str, str | None] | dict[str, str]] = {
    "oarlock": FUNCTIONS,
    "oarlock.fft": {},
    "oarlock.linalg": MATRICES,
    "oarlock.random": DISTRIBUTIONS,
}
"""The table of each module."""


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
    found = sys.modules[module]
    return AttributeError(f"module `{module}` has no `{name}`{_hint(name, module)}", name=name, obj=found)


def method(generator: object, name: str) -> AttributeError:
    """The error that a generator of random numbers lacks a method."""
    kind = type(generator).__name__
    return AttributeError(f"'{kind}' object has no attribute '{name}'{_hint(name, 'oarlock.random')}", name=name, obj=generator)


def _hint(name: str, module: str) -> str:
    """What to use in place of a name that a module lacks."""
    table = OF_MODULES[module]
    if name not in table:
        # NumPy's functions take arrays of ours. It is not loaded for this.
        place = sys.modules.get(module.replace("oarlock", "numpy", 1))
        theirs = getattr(place, "__dict__", {}).get(name)
        is_function = callable(theirs) and not isinstance(theirs, type) and not name.startswith("_")
        return f"\nhint: use `oarlock.asarray({module.replace('oarlock', 'numpy', 1)}.{name}(…))`" if is_function else ""
    instead = table[name]
    return f"\nhint: use `{instead}`" if instead else "\nhint: there is nothing here that it would set; leave it out"
