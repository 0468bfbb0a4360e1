"""Examples of names whose docstrings have none: of native functions, whose docstrings are compiled, and of methods.

Each is run when a page is made, and what it shows goes to the page. `ol` is the package, and `x` an array.
"""

import contextlib
import doctest
import io

import oarlock

from .examples_nn import CALLS

BEFORE = "x = ol.asarray([[1.0, 2.0], [3.0, 4.0]])"
"""What precedes each example of a method."""

FUNCTIONS = {
    "DType": "ol.float32.name, ol.float32.itemsize",
    "Device": 'ol.Device("cpu").name',
    "Error": "issubclass(ol.Error, RuntimeError)",
    "Event": 'ol.Stream("cpu").record_event().is_done()',
    "FallbackWarning": "issubclass(ol.FallbackWarning, RuntimeWarning)",
    "Slot": 'ol.load("docs/src/models/digits.onnx").inputs[0].shape',
    "Stream": 'with ol.Stream("cpu") as stream:\n    y = ol.ones(3) + 1\nstream.synchronize()',
    "Tensor": "isinstance(ol.ones(3), ol.Tensor)",
    "Explanation": 'ol.load("docs/src/models/digits.onnx").explain().inputs',
    "Profile": 'len(ol.load("docs/src/models/digits.onnx").profile(runs=1).views())',
    "genfromtxt": 'import io\nol.genfromtxt(io.StringIO("1,2\\n3,"), delimiter=",").tolist()',
    "loadtxt": 'import io\nol.loadtxt(io.StringIO("1 2\\n3 4")).tolist()',
    "save": "import io\nfile = io.BytesIO()\nol.save(file, [1, 2])\nol.load(file.getvalue()).tolist()",
    "savetxt": 'import io\nfile = io.StringIO()\nol.savetxt(file, [[1, 2], [3, 4]], fmt="%d")\nfile.getvalue()',
    "savez": "import io\nfile = io.BytesIO()\nol.savez(file, a=[1, 2], b=[3.5])\nol.load(file.getvalue()).files",
    "savez_compressed": "import io\nfile = io.BytesIO()\nol.savez_compressed(file, a=ol.zeros(1000))\nlen(file.getvalue()) < 1000",
    "abs": "ol.abs([-1, 2]).tolist()",
    "acos": "ol.acos([1.0]).tolist()",
    "acosh": "ol.acosh([1.0]).tolist()",
    "add": "ol.add([1, 2], 10).tolist()",
    "asarray": "ol.asarray([[1, 2], [3, 4]], dtype=ol.float32).tolist()",
    "asin": "ol.asin([0.0]).tolist()",
    "asinh": "ol.asinh([0.0]).tolist()",
    "atan": "ol.atan([0.0]).tolist()",
    "atan2": "ol.atan2([0.0], [1.0]).tolist()",
    "atanh": "ol.atanh([0.0]).tolist()",
    "bitwise_and": "ol.bitwise_and([6, 7], 3).tolist()",
    "bitwise_invert": "ol.bitwise_invert([0, 5]).tolist()",
    "bitwise_left_shift": "ol.bitwise_left_shift([1, 3], 2).tolist()",
    "bitwise_or": "ol.bitwise_or([4, 1], 2).tolist()",
    "bitwise_right_shift": "ol.bitwise_right_shift([4, 12], 2).tolist()",
    "bitwise_xor": "ol.bitwise_xor([6, 7], 3).tolist()",
    "ceil": "ol.ceil([1.2, -1.2]).tolist()",
    "conj": "ol.conj([1 + 2j]).tolist()",
    "copysign": "ol.copysign([1.0, 2.0], [-1.0, 1.0]).tolist()",
    "cos": "ol.cos([0.0]).tolist()",
    "cosh": "ol.cosh([0.0]).tolist()",
    "devices": "ol.devices()[0].type",
    "divide": "ol.divide([1, 2], 4).tolist()",
    "equal": "ol.equal([1, 2], [1, 3]).tolist()",
    "exp": "ol.exp([0.0]).tolist()",
    "expm1": "ol.expm1([0.0]).tolist()",
    "floor": "ol.floor([1.2, -1.2]).tolist()",
    "floor_divide": "ol.floor_divide([7, -7], 2).tolist()",
    "from_dlpack": "import numpy\nol.from_dlpack(numpy.arange(3)).tolist()",
    "get_flags": 'ol.get_flags("deterministic")',
    "greater": "ol.greater([1, 2], 1).tolist()",
    "greater_equal": "ol.greater_equal([1, 2], 2).tolist()",
    "hypot": "ol.hypot([3.0], [4.0]).tolist()",
    "imag": "ol.imag([1 + 2j]).tolist()",
    "isfinite": "ol.isfinite([1.0, ol.inf, ol.nan]).tolist()",
    "isinf": "ol.isinf([1.0, ol.inf, ol.nan]).tolist()",
    "isnan": "ol.isnan([1.0, ol.inf, ol.nan]).tolist()",
    "less": "ol.less([1, 2], 2).tolist()",
    "less_equal": "ol.less_equal([1, 2], 1).tolist()",
    "log": "ol.log([1.0]).tolist()",
    "log10": "ol.log10([1.0]).tolist()",
    "log1p": "ol.log1p([0.0]).tolist()",
    "log2": "ol.log2([1.0]).tolist()",
    "logaddexp": "ol.logaddexp([-ol.inf], [0.0]).tolist()",
    "logical_and": "ol.logical_and([True, True], [True, False]).tolist()",
    "logical_not": "ol.logical_not([True, False]).tolist()",
    "logical_or": "ol.logical_or([True, False], [False, False]).tolist()",
    "logical_xor": "ol.logical_xor([True, False], [True, True]).tolist()",
    "matmul": "ol.matmul([[1, 2], [3, 4]], [1, 1]).tolist()",
    "maximum": "ol.maximum([1, 5], [3, 2]).tolist()",
    "minimum": "ol.minimum([1, 5], [3, 2]).tolist()",
    "multiply": "ol.multiply([1, 2], [3, 4]).tolist()",
    "negative": "ol.negative([1, -2]).tolist()",
    "nextafter": "ol.nextafter([1.0], [2.0]).tolist()",
    "not_equal": "ol.not_equal([1, 2], [1, 3]).tolist()",
    "ones": "ol.ones((2, 3)).shape, ol.ones(2, 3).shape",
    "op": 'ol.op("Relu", [ol.asarray([-1.0, 2.0])]).tolist()\n'
    'ol.op("Gemm", [ol.ones((2, 3)), ol.ones((2, 3))], {"transB": 1}).tolist()',
    "permute_dims": "ol.permute_dims(ol.zeros((2, 3, 4)), (2, 0, 1)).shape",
    "pow": "ol.pow([1, 2, 3], 2).tolist()",
    "real": "ol.real([1 + 2j]).tolist()",
    "reciprocal": "ol.reciprocal([2.0, 4.0]).tolist()",
    "remainder": "ol.remainder([7, -7], 3).tolist()",
    "rint": "ol.rint([0.5, 1.5, 2.7]).tolist()",
    "set_flags": 'ol.set_flags({"threads": 2})',
    "sign": "ol.sign([-3, 0, 5]).tolist()",
    "signbit": "ol.signbit([-1.0, 1.0]).tolist()",
    "sin": "ol.sin([0.0]).tolist()",
    "sinh": "ol.sinh([0.0]).tolist()",
    "sqrt": "ol.sqrt([4.0, 9.0]).tolist()",
    "subtract": "ol.subtract([5, 6], 1).tolist()",
    "tan": "ol.tan([0.0]).tolist()",
    "tanh": "ol.tanh([0.0]).tolist()",
    "trunc": "ol.trunc([1.7, -1.7]).tolist()",
    "extension.Extension": 'acme = ol.extension.load("acme", "swish.c")\nacme.swish(ol.ones(3)), list(acme.ops)',
    "extension.loaded": 'ol.extension.loaded("acme").swish(ol.ones(3))',
    "extension.setup_arguments": 'ol.extension.setup_arguments("acme", ["swish.c"], package="acme", version="1.0")',
    "onnxruntime.install": "ol.onnxruntime.install()\nimport onnxruntime",
    "onnxruntime.print_debug_info": "ol.onnxruntime.print_debug_info()",
    "onnxruntime.set_default_logger_callback": "ol.onnxruntime.set_default_logger_callback(None)",
    "onnxruntime.set_global_thread_pool_sizes": "ol.onnxruntime.set_global_thread_pool_sizes(2, 1)",
    "onnxruntime.set_seed": "ol.onnxruntime.set_seed(7)",
}
"""Of functions and classes of the package."""

NOT_RUN = {
    "extension.Extension",
    "extension.loaded",
    "extension.setup_arguments",
    "onnxruntime.install",
    "onnxruntime.print_debug_info",
    "onnxruntime.set_global_thread_pool_sizes",
    "onnxruntime.set_seed",
    "set_flags",
}
"""What they do depends on files or on the machine, stays for the whole process, or has to happen before the first array."""

FUNCTIONS |= {f"nn.functional.{name}": f"ol.nn.functional.{call}" for name, call in CALLS.items()}

METHODS = {
    "T": "x.T.tolist()",
    "abs": "(-x).abs().tolist()",
    "acos": "(x - x + 1).acos().tolist()",
    "acosh": "(x - x + 1).acosh().tolist()",
    "_repr_html_": "x._repr_html_()[:7]",
    "add": "x.add(1).tolist()",
    "add_": "x.add_(1, alpha=10).tolist()",
    "all": "(x > 1).all(1).tolist()",
    "allclose": "x.allclose(x + 1e-9)",
    "any": "(x > 3).any(1).tolist()",
    "argmax": "x.argmax(1).tolist()",
    "argmin": "x.argmin(1).tolist()",
    "argpartition": "x.argpartition(0, axis=1)[:, 0].tolist()",
    "argsort": "(-x).argsort(1).tolist()",
    "argwhere": "(x > 2).argwhere().tolist()",
    "asin": "(x - x).asin().tolist()",
    "asinh": "(x - x).asinh().tolist()",
    "astype": "x.astype(ol.int32).tolist()",
    "atan": "(x - x).atan().tolist()",
    "atan2": "(x - x).atan2(x).tolist()",
    "atanh": "(x - x).atanh().tolist()",
    "bfloat16": "x.bfloat16().dtype",
    "bitwise_and": "x.int().bitwise_and(1).tolist()",
    "bitwise_or": "x.int().bitwise_or(1).tolist()",
    "bitwise_xor": "x.int().bitwise_xor(1).tolist()",
    "bool": "(x - 1).bool().tolist()",
    "ceil": "(x / 2).ceil().tolist()",
    "choose": "ol.asarray([0, 1]).choose([[1, 2], [10, 20]]).tolist()",
    "chunk": "[part.tolist() for part in x.chunk(2)]",
    "clamp_": "x.clamp_(2, 3).tolist()",
    "clip": "x.clip(2, 3).tolist()",
    "clone": "x.clone().tolist()",
    "compress": "x.compress([False, True], axis=0).tolist()",
    "conj": "(x * 1j).conj().imag.tolist()",
    "contiguous": "x.contiguous() is x",
    "copy": "x.copy().tolist()",
    "copy_": "x.copy_([7, 8]).tolist()",
    "cos": "(x - x).cos().tolist()",
    "cosh": "(x - x).cosh().tolist()",
    "count_nonzero": "(x - 1).count_nonzero().item()",
    "cpu": "x.cpu() is x",
    "cuda": "x.cuda()",
    "cumprod": "x.cumprod(1).tolist()",
    "cumsum": "x.cumsum(1).tolist()",
    "detach": "x.detach() is x",
    "device": "x.device",
    "diagonal": "x.diagonal().tolist()",
    "diff": "x.diff().tolist()",
    "dim": "x.dim()",
    "div_": "x.div_(2).tolist()",
    "divide": "x.divide(2).tolist()",
    "dot": "x.dot([1.0, 1.0]).tolist()",
    "double": "x.double().dtype",
    "dtype": "x.dtype",
    "element_size": "x.element_size()",
    "eq": "x.eq(1).tolist()",
    "exp": "(x - x).exp().tolist()",
    "expand": "ol.asarray([[1], [2]]).expand(-1, 3).tolist()",
    "expand_as": "x[:1].expand_as(x).tolist()",
    "expm1": "(x - x).expm1().tolist()",
    "fill": "x.fill(7)\nx.tolist()",
    "fill_": "x.fill_(7).tolist()",
    "flatten": "x.flatten().tolist()",
    "flip": "x.flip(0).tolist()",
    "float": "x.int().float().dtype",
    "floor": "(x / 2).floor().tolist()",
    "gather": "x.gather(1, [[1], [0]]).tolist()",
    "ge": "x.ge(2).tolist()",
    "gt": "x.gt(2).tolist()",
    "half": "x.half().dtype",
    "imag": "x.imag.tolist()",
    "index_select": "x.index_select(1, [1]).tolist()",
    "inner": "x.inner([1.0, 1.0]).tolist()",
    "int": "x.int().dtype",
    "is_contiguous": "x.T.is_contiguous()",
    "is_floating_point": "x.is_floating_point()",
    "isclose": "x.isclose(x + 1e-9).tolist()",
    "isfinite": "x.isfinite().tolist()",
    "isinf": "x.isinf().tolist()",
    "isnan": "x.isnan().tolist()",
    "item": "x[0, 1].item()",
    "itemsize": "x.itemsize",
    "le": "x.le(2).tolist()",
    "log": "(x - x + 1).log().tolist()",
    "log10": "(x - x + 1).log10().tolist()",
    "log1p": "(x - x).log1p().tolist()",
    "log2": "(x - x + 1).log2().tolist()",
    "log_softmax": "x.log_softmax(1).tolist()",
    "logical_and": "(x > 1).logical_and(x < 4).tolist()",
    "logical_not": "(x > 1).logical_not().tolist()",
    "logical_or": "(x > 3).logical_or(x < 2).tolist()",
    "logical_xor": "(x > 1).logical_xor(x > 2).tolist()",
    "logsumexp": "x.logsumexp(1).tolist()",
    "long": "x.long().dtype",
    "lt": "x.lt(2).tolist()",
    "mT": "x.mT.tolist()",
    "masked_fill": "x.masked_fill(x > 2, 0).tolist()",
    "masked_select": "x.masked_select(x > 2).tolist()",
    "matmul": "x.matmul([1.0, 1.0]).tolist()",
    "max": "x.max(0).tolist()",
    "maximum": "x.maximum(2).tolist()",
    "mean": "x.mean(0).tolist()",
    "min": "x.min(0).tolist()",
    "minimum": "x.minimum(2).tolist()",
    "moveaxis": "x.moveaxis(0, 1).tolist()",
    "mul_": "x.mul_(2).tolist()",
    "multiply": "x.multiply(2).tolist()",
    "narrow": "x.narrow(1, 1, 1).tolist()",
    "nbytes": "x.nbytes",
    "ndim": "x.ndim",
    "ne": "x.ne(1).tolist()",
    "negative": "x.negative().tolist()",
    "nelement": "x.nelement()",
    "nonzero": "[each.tolist() for each in (x > 2).nonzero()]",
    "norm": "ol.asarray([3.0, 4.0]).norm().item()",
    "numel": "x.numel()",
    "numpy": "x.numpy()",
    "outer": "ol.asarray([1, 2]).outer([3, 4]).tolist()",
    "permute": "x.permute(1, 0).tolist()",
    "place": "x.place",
    "pow": "x.pow(2).tolist()",
    "prod": "x.prod(0).tolist()",
    "ptp": "x.ptp(0).tolist()",
    "quantile": "x.quantile(0.5).item()",
    "ravel": "x.ravel().tolist()",
    "real": "x.real.tolist()",
    "reciprocal": "(x * 0 + 2).reciprocal().tolist()",
    "relu": "(x - 2).relu().tolist()",
    "remainder": "x.remainder(2).tolist()",
    "repeat": "x.repeat(2, axis=1).tolist()",
    "reshape": "x.reshape(4).tolist(), x.reshape(-1, 1).shape",
    "reshape_as": "x.reshape_as(ol.ones(4)).tolist()",
    "roll": "x.roll(1, axis=1).tolist()",
    "round": "(x / 2).round().tolist()",
    "rsqrt": "x.rsqrt().tolist()",
    "scatter": "x.scatter(1, [[0], [1]], 0).tolist()",
    "scatter_add": "x.scatter_add(1, [[0], [1]], [[10.0], [20.0]]).tolist()",
    "searchsorted": "ol.asarray([1, 3, 5]).searchsorted([2, 5]).tolist()",
    "shape": "x.shape",
    "sigmoid": "(x - x).sigmoid().tolist()",
    "sign": "(x - 2).sign().tolist()",
    "sin": "(x - x).sin().tolist()",
    "sinh": "(x - x).sinh().tolist()",
    "size": "x.size",
    "softmax": "(x - x).softmax(1).tolist()",
    "sort": "y = ol.asarray([3, 1, 2])\ny.sort()\ny.tolist()",
    "split": "[part.tolist() for part in ol.arange(5).split(2)]",
    "sqrt": "(x * 0 + 4).sqrt().tolist()",
    "square": "x.square().tolist()",
    "squeeze": "x[None].squeeze().shape",
    "std": "x.std(0).tolist()",
    "stop_gradient": "x.stop_gradient",
    "sub_": "x.sub_(1).tolist()",
    "subtract": "x.subtract(1).tolist()",
    "sum": "x.sum(0).tolist(), x.sum().item()",
    "swapaxes": "x.swapaxes(0, 1).tolist()",
    "t": "x.t().tolist()",
    "take": "x.take([1], axis=1).tolist()",
    "tan": "(x - x).tan().tolist()",
    "tanh": "(x - x).tanh().tolist()",
    "tensordot": "x.tensordot(x, 2).item()",
    "tile": "x.tile((1, 2)).tolist()",
    "to": 'x.to(ol.float64).dtype, x.to("cpu").device',
    "to_device": 'x.to_device("cpu") is x',
    "tobytes": "ol.asarray([1, 2], dtype=ol.uint8).tobytes()",
    "tolist": "x.tolist()",
    "topk": "x.topk(1, axis=1).values.tolist()",
    "trace": "x.trace().item()",
    "transpose": "x.transpose().tolist()",
    "tril": "x.tril().tolist()",
    "triu": "x.triu().tolist()",
    "trunc": "(x / 2).trunc().tolist()",
    "type_as": "x.type_as(ol.arange(2)).dtype",
    "unbind": "[row.tolist() for row in x.unbind(0)]",
    "unique": "ol.asarray([3, 1, 3]).unique().tolist()",
    "unsqueeze": "x.unsqueeze(0).shape",
    "var": "x.var(0).tolist()",
    "vecdot": "x.vecdot([1.0, 1.0]).tolist()",
    "view": "x.view(4).tolist(), x.view(ol.int32)[0, 0].item()",
    "view_as": "x.view_as(ol.ones(4)).tolist()",
    "where": "x.where(x > 2, 0).tolist()",
    "zero_": "x.zero_().tolist()",
}
"""Of methods and properties of arrays."""

NOT_RUN_METHODS = {"cuda"}
"""It needs an NVIDIA GPU."""


def shown(code, before=""):
    """The lines of a session at the prompt in which code was typed, with what it shows."""
    names = {"ol": oarlock}
    exec(before, names)
    lines = []
    for statement in statements(code):
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            exec(compile(statement, "example", "single"), names)
        lines += typed(statement) + told.getvalue().splitlines()
    return lines


def statements(code):
    """The statements of code, each with its end of line."""
    marked = "\n".join(("... " if line.startswith(" ") else ">>> ") + line for line in code.splitlines())
    return [each.source for each in doctest.DocTestParser().get_examples(marked)]


def typed(statement):
    """A statement as it is typed at the prompt."""
    first, *rest = statement.splitlines()
    return [f">>> {first}", *(f"... {line}" for line in rest)]


def of_function(name):
    """The lines of the example of a native function or class, none if there is none."""
    if name in NOT_RUN:
        return [line for statement in statements(FUNCTIONS[name]) for line in typed(statement)]
    return shown(FUNCTIONS[name]) if name in FUNCTIONS else []


def of_method(name):
    """The lines of the example of a method of arrays, none if there is none."""
    if name in NOT_RUN_METHODS:
        return typed(METHODS[name])
    return shown(METHODS[name], BEFORE) if name in METHODS else []
