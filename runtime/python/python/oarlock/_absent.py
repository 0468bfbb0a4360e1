"""Names of other libraries that are absent here: the error says what to use instead."""

from __future__ import annotations

import re
import sys
from importlib import import_module

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
    "setfield": "x[indices] = …",
    "setflags": "numpy.array(x)` and its `setflags",
    "strides": "x.numpy().strides",
    "tofile": "oarlock.save(file, x)` or `x.numpy().tofile(…)",
    "type": "x.astype(…)",
}
"""Attributes of arrays that are absent here, and what to use; `None` for those of gradients."""

FUNCTIONS = {
    "FloatTensor": "oarlock.asarray(…, dtype=oarlock.float32)",
    "Inf": "oarlock.inf",
    "Infinity": "oarlock.inf",
    "LongTensor": "oarlock.asarray(…, dtype=oarlock.int64)",
    "NAN": "oarlock.nan",
    "NINF": "-oarlock.inf",
    "NaN": "oarlock.nan",
    "PINF": "oarlock.inf",
    "addcdiv": "x + value * x1 / x2",
    "addcmul": "x + value * x1 * x2",
    "addmm": "x + oarlock.matmul(x1, x2)",
    "aminmax": "oarlock.min(x)` and `oarlock.max(x)",
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
    "autocast": "oarlock.load(…, precision=oarlock.bfloat16)",
    "baddbmm": "x + oarlock.matmul(x1, x2)",
    "bernoulli": "oarlock.random.random(x.shape) < x",
    "block_diag": "oarlock.asarray(scipy.linalg.block_diag(…))",
    "bmm": "oarlock.matmul(x1, x2)",
    "bool8": "oarlock.bool",
    "bool_": "oarlock.bool",
    "broadcast_tensors": "oarlock.broadcast_arrays(…)",
    "bucketize": "oarlock.searchsorted(boundaries, x)",
    "byte": "oarlock.int8",
    "cast": "oarlock.astype(x, …)",
    "cdouble": "oarlock.complex128",
    "cfloat": "oarlock.complex128",
    "chain_matmul": "oarlock.einsum(…)",
    "clone": "oarlock.copy(x)",
    "clongdouble": "oarlock.complex128",
    "compile": "oarlock.jit(function)",
    "complex": "oarlock.complex64` or `oarlock.complex128",
    "complex_": "oarlock.complex128",
    "complexfloating": 'oarlock.isdtype(x.dtype, "complex floating")',
    "csingle": "oarlock.complex64",
    "cuda": 'oarlock.Device("cuda")',
    "cummax": "oarlock.asarray(numpy.maximum.accumulate(x))",
    "cummin": "oarlock.asarray(numpy.minimum.accumulate(x))",
    "det": "oarlock.linalg.det(x)",
    "detach": "x",
    "diag_embed": "x[..., None] * oarlock.eye(n)",
    "digamma": "oarlock.asarray(scipy.special.digamma(x))",
    "dist": "oarlock.linalg.norm(x1 - x2)",
    "div": "oarlock.divide(x1, x2)",
    "double": "oarlock.float64",
    "dtype": 'oarlock.float32` or its name, `"float32"',
    "emath": "x.astype(oarlock.complex128)",
    "entr": "-x * oarlock.log(x)",
    "eq": "oarlock.equal(x1, x2)",
    "erf": 'oarlock.op("Erf", [x])',
    "erfc": '1 - oarlock.op("Erf", [x])',
    "erfinv": "oarlock.asarray(scipy.special.erfinv(x))",
    "errstate": None,
    "expit": "oarlock.nn.functional.sigmoid(x)",
    "fft2": "oarlock.fft.fftn(x, axes=(-2, -1))",
    "find_common_type": "oarlock.result_type(…)",
    "float": "oarlock.float32` or `oarlock.float64",
    "float128": "oarlock.float64",
    "float_": "oarlock.float64",
    "floating": 'oarlock.isdtype(x.dtype, "real floating")',
    "fori_loop": "oarlock.while_loop(…)",
    "frac": "x - oarlock.trunc(x)",
    "from_numpy": "oarlock.asarray(…)",
    "frombuffer": "oarlock.asarray(memoryview(buffer).cast(…))",
    "fromfile": "oarlock.load(…)` or `oarlock.asarray(numpy.fromfile(…))",
    "fromiter": "oarlock.asarray(list(…))",
    "frompyfunc": "functions of whole arrays",
    "fromstring": "oarlock.loadtxt([text])",
    "gamma": "oarlock.asarray(scipy.special.gamma(x))",
    "gammaln": "oarlock.asarray(scipy.special.gammaln(x))",
    "gather": "oarlock.take_along_axis(x, indices, axis)",
    "ge": "oarlock.greater_equal(x1, x2)",
    "ger": "oarlock.linalg.outer(x1, x2)",
    "get_default_dtype": "oarlock.float32",
    "gt": "oarlock.greater(x1, x2)",
    "half": "oarlock.float16",
    "histc": "oarlock.histogram(x, bins, (min, max))[0]",
    "ifft2": "oarlock.fft.ifftn(x, axes=(-2, -1))",
    "index_select": "oarlock.take(x, indices, axis)",
    "inference_mode": None,
    "int": "oarlock.int64` or `oarlock.int32",
    "int_": "oarlock.int64",
    "intc": "oarlock.int32",
    "integer": 'oarlock.isdtype(x.dtype, "integral")',
    "intp": "oarlock.int64",
    "inv": "oarlock.linalg.inv(x)",
    "inverse": "oarlock.linalg.inv(x)",
    "is_complex": "oarlock.iscomplexobj(x)",
    "is_floating_point": 'oarlock.isdtype(x.dtype, "real floating")',
    "is_grad_enabled": None,
    "is_nonzero": "bool(x)",
    "is_tensor": "isinstance(x, oarlock.Tensor)",
    "issubdtype": "oarlock.isdtype(x.dtype, …)",
    "kthvalue": "oarlock.sort(x)[..., k - 1]",
    "lax": "oarlock.while_loop(…)` or `oarlock.cond(…)",
    "ldexp": "x1 * 2.0**x2",
    "le": "oarlock.less_equal(x1, x2)",
    "lerp": "x1 + weight * (x2 - x1)",
    "lgamma": "oarlock.asarray(scipy.special.gammaln(x))",
    "lib": "x[oarlock.arange(x.size - n + 1)[:, None] + oarlock.arange(n)]",
    "logdet": "oarlock.linalg.slogdet(x).logabsdet",
    "logit": "oarlock.log(x / (1 - x))",
    "logsumexp": 'oarlock.op("ReduceLogSumExp", [x])',
    "long": "oarlock.int64",
    "longdouble": "oarlock.float64",
    "longfloat": "oarlock.float64",
    "longlong": "oarlock.int64",
    "lt": "oarlock.less(x1, x2)",
    "lu": "scipy.linalg.lu(x)",
    "ma": "oarlock.where(mask, …)` or functions such as `oarlock.nanmean(x)",
    "manual_seed": "oarlock.random.manual_seed(…)",
    "masked_fill": "oarlock.where(mask, value, x)",
    "masked_scatter": "oarlock.where(mask, values, x)",
    "masked_select": "x[mask]",
    "mat": "oarlock.asarray(…)",
    "matrix": "oarlock.asarray(…)",
    "matvec": "oarlock.matmul(…)",
    "memmap": "oarlock.asarray(numpy.memmap(…))",
    "mm": "oarlock.matmul(x1, x2)",
    "mode": "oarlock.unique_counts(x)",
    "movedim": "oarlock.moveaxis(x, …)",
    "msort": "oarlock.sort(x, 0)",
    "mul": "oarlock.multiply(x1, x2)",
    "multinomial": "oarlock.random.choice(n, p=x)",
    "mv": "oarlock.matmul(x1, x2)",
    "narrow": "x[start:stop]",
    "ndarray": "oarlock.Tensor",
    "nditer": "oarlock.ndenumerate(x)",
    "ne": "oarlock.not_equal(x1, x2)",
    "neg": "oarlock.negative(x)",
    "no_grad": None,
    "norm": "oarlock.linalg.norm(x)",
    "normal": "oarlock.random.normal(…)",
    "number": 'oarlock.isdtype(x.dtype, "numeric")',
    "numel": "x.size",
    "object_": "lists of Python",
    "pinverse": "oarlock.linalg.pinv(x)",
    "polar": "x1 * oarlock.exp(1j * x2)",
    "poly1d": "oarlock.polyval(coefficients, x)",
    "polygamma": "oarlock.asarray(scipy.special.polygamma(n, x))",
    "product": "oarlock.prod(x)",
    "rand": "oarlock.random.rand(…)",
    "rand_like": "oarlock.random.random(x.shape)",
    "randint": "oarlock.random.randint(…)",
    "randn": "oarlock.random.randn(…)",
    "randn_like": "oarlock.random.randn(*x.shape)",
    "randperm": "oarlock.random.randperm(…)",
    "relu": "oarlock.nn.functional.relu(x)",
    "repeat_interleave": "oarlock.repeat(x, …)",
    "require": "oarlock.asarray(…)",
    "resize": "oarlock.reshape(…)` or `oarlock.pad(…)",
    "rollaxis": "oarlock.moveaxis(x, …)",
    "row_stack": "oarlock.vstack(…)",
    "rsqrt": "1 / oarlock.sqrt(x)",
    "scan": "oarlock.while_loop(…)",
    "scatter": 'oarlock.op("ScatterElements", [x, indices, updates], {"axis": axis})',
    "scatter_add": 'oarlock.op("ScatterElements", [x, indices, updates], {"axis": axis, "reduction": "add"})',
    "seed": "oarlock.random.seed(…)",
    "set_default_device": "oarlock.set_device(…)",
    "set_default_dtype": None,
    "set_grad_enabled": None,
    "set_seed": "oarlock.random.seed(…)",
    "seterr": None,
    "sgn": "oarlock.sign(x)",
    "short": "oarlock.int16",
    "sigmoid": "oarlock.nn.functional.sigmoid(x)",
    "single": "oarlock.float32",
    "singlecomplex": "oarlock.complex64",
    "softmax": "oarlock.nn.functional.softmax(x, dim)",
    "solve": "oarlock.linalg.solve(…)",
    "special": "oarlock.asarray(scipy.special.…)",
    "std_mean": "oarlock.std(x)` and `oarlock.mean(x)",
    "str_": "str",
    "sub": "oarlock.subtract(x1, x2)",
    "swish": "oarlock.nn.functional.silu(x)",
    "t": "x.T",
    "take_along_dim": "oarlock.take_along_axis(x, indices, axis)",
    "tensor_split": "oarlock.array_split(x, …)",
    "testing": "numpy.testing.assert_allclose(…)",
    "trapz": "oarlock.trapezoid(…)",
    "ubyte": "oarlock.uint8",
    "uint": "oarlock.uint64",
    "uintc": "oarlock.uint32",
    "uintp": "oarlock.uint64",
    "ulonglong": "oarlock.uint64",
    "unbind": "oarlock.unstack(x)",
    "ushort": "oarlock.uint16",
    "var_mean": "oarlock.var(x)` and `oarlock.mean(x)",
    "vecmat": "oarlock.matmul(…)",
    "vectorize": "functions of whole arrays` or `oarlock.apply_along_axis(…)",
    "view_as_complex": "x[..., 0] + 1j * x[..., 1]",
    "view_as_real": "oarlock.stack([x.real, x.imag], -1)",
    "vmap": "functions of whole arrays` or `oarlock.apply_along_axis(…)",
    "xlogy": "x1 * oarlock.log(x2)",
}
"""Functions of NumPy, PyTorch and SciPy that the package lacks, and what to use; `None` for those that set what is not here."""

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

PLACES = ("oarlock.nn.functional", "oarlock.linalg", "oarlock.fft", "oarlock.random")
"""Modules whose functions programs look for in the package itself."""


def attribute(array: Any, name: str) -> Any:
    """Tells that arrays lack an attribute. Python calls it after it has not found the name."""
    package = sys.modules["oarlock"]
    instead = ATTRIBUTES.get(name)
    # Most names that others ask for are nowhere, which a dictionary tells sooner than a list.
    namesake = vars(package).get(name)
    is_function = callable(namesake) and not isinstance(namesake, package.DType) and name in package.__all__
    if instead is None and (name in LOADED_ON_USE or is_function):
        instead = f"oarlock.{name}(x, …)"
    if instead is None and "x" in re.findall(r"\w+", FUNCTIONS.get(name) or ""):
        instead = FUNCTIONS[name]
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
        home = next((each for each in PLACES if module == "oarlock" and name in import_module(each).__all__), None)
        if home is not None:
            return f"\nhint: use `{home}.{name}(…)`"
        # NumPy's functions take arrays of ours. It is not loaded for this.
        place = sys.modules.get(module.replace("oarlock", "numpy", 1))
        theirs = getattr(place, "__dict__", {}).get(name)
        is_function = callable(theirs) and not isinstance(theirs, type) and not name.startswith("_")
        return f"\nhint: use `oarlock.asarray({module.replace('oarlock', 'numpy', 1)}.{name}(…))`" if is_function else ""
    instead = table[name]
    return f"\nhint: use `{instead}`" if instead else "\nhint: there is nothing here that it would set; leave it out"
