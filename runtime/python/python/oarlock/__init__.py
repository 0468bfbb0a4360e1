"""Arrays and models on any device.

>>> import oarlock as ol
>>> a = ol.asarray([1.0, 2.0])
>>> a + a
Tensor(shape=[2], dtype=float32, place=Place(cpu:0), stop_gradient=True,
       [2., 4.])

The namespace follows the Python array API standard. Models are loaded with `load` and called like functions.
"""

from __future__ import annotations

import builtins
from importlib import import_module
from typing import TYPE_CHECKING

from . import _install_conflict

# First, before a module of another version can be loaded.
_install_conflict.check(__path__[0])

from . import _missing_methods, _numpy_protocol, _oarlock
from ._arguments import of_arrays
from ._creation import (
    arange,
    empty,
    empty_like,
    eye,
    full_like,
    linspace,
    meshgrid,
    ones_like,
    tril,
    triu,
    zeros_like,
)
from ._elementwise import (
    clip,
    positive,
    round,
    square,
)
from ._information import (
    __array_namespace_info__,
    can_cast,
    finfo,
    iinfo,
    isdtype,
)
from ._linear import (
    matrix_transpose,
    tensordot,
    vecdot,
)
from ._manipulation import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    repeat,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)
from ._model import Session
from ._warning import FallbackWarning
from ._search import (
    UniqueAll,
    UniqueCounts,
    UniqueInverse,
    argmax,
    argmin,
    argsort,
    isin,
    nonzero,
    searchsorted,
    sort,
    take,
    take_along_axis,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    where,
)
from ._statistics import (
    all,
    any,
    count_nonzero,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)
from ._oarlock import (
    DType,
    Device,
    Error,
    Event,
    Slot,
    Stream,
    Tensor,
    __version__,
    abs,
    acos,
    acosh,
    add,
    asarray,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bfloat16,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    bool,
    ceil,
    complex128,
    complex64,
    conj,
    copysign,
    cos,
    cosh,
    devices,
    divide,
    equal,
    exp,
    expm1,
    float16,
    float32,
    float64,
    floor,
    floor_divide,
    from_dlpack,
    full,
    get_flags,
    greater,
    greater_equal,
    hypot,
    imag,
    int16,
    int32,
    int64,
    int8,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log10,
    log1p,
    log2,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    matmul,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    ones,
    op,
    permute_dims,
    pow,
    real,
    reciprocal,
    remainder,
    reshape,
    result_type,
    set_flags,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    subtract,
    tan,
    tanh,
    trunc,
    uint16,
    uint32,
    uint64,
    uint8,
    zeros,
)

__all__ = [
    "DType",
    "Device",
    "Error",
    "Event",
    "FallbackWarning",
    "Session",
    "Slot",
    "Stream",
    "Tensor",
    "UniqueAll",
    "UniqueCounts",
    "UniqueInverse",
    "__array_api_version__",
    "__array_namespace_info__",
    "__version__",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "bfloat16",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "ceil",
    "clip",
    "complex128",
    "complex64",
    "concat",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumulative_prod",
    "cumulative_sum",
    "device",
    "devices",
    "diff",
    "divide",
    "e",
    "empty",
    "empty_like",
    "equal",
    "exp",
    "expand_dims",
    "expm1",
    "extension",
    "eye",
    "fft",
    "finfo",
    "flip",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "from_dlpack",
    "full",
    "full_like",
    "get_device",
    "get_flags",
    "greater",
    "greater_equal",
    "hypot",
    "iinfo",
    "imag",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "isdtype",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "linalg",
    "linspace",
    "load",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nonzero",
    "not_equal",
    "ones",
    "ones_like",
    "onnx_backend",
    "onnxruntime",
    "op",
    "permute_dims",
    "pi",
    "positive",
    "pow",
    "prod",
    "profiler",
    "random",
    "real",
    "reciprocal",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "run_check",
    "searchsorted",
    "set_device",
    "set_flags",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sort",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "to_tensor",
    "tril",
    "triu",
    "trunc",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "var",
    "vecdot",
    "where",
    "zeros",
    "zeros_like",
]

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from types import ModuleType

    from ._typing import DtypeLike

    # Loaded on first use.
    from . import device, extension, fft, linalg, onnx_backend, onnxruntime, profiler, random

to_tensor = asarray


def load(
    model: str | PathLike[str] | bytes,
    /,
    *,
    device: Device | str | Sequence[Device | str] | None = None,
    precision: DType = float32,
    fallback: str | None = None,
) -> Session:
    """Loads a model from an ONNX file or its bytes, or from a Paddle `.pdmodel` with its parameters beside it.

    Call the model with arrays, of Oarlock or of another library, in the order of its inputs; `run` takes and returns them by
    name. With `precision=bfloat16`, matrix products and convolutions may round their operands to bfloat16 if that is faster.

    With several devices, each node runs on the first one that has a kernel for it. If none has, it falls back to the CPU. This
    raises a `FallbackWarning` unless the CPU is one of the devices; with `fallback="error"`, the run fails instead.
    """
    return Session(model, device=device, precision=precision, fallback=fallback)


def run_check() -> None:
    """Tests every device with a small computation, prints the results, and raises an error if one fails."""
    from ._doctor import run_check as check

    check()


def set_device(device: Device | str) -> Device:
    """Sets the default device and returns it."""
    _oarlock.set_default_device(device)
    return _oarlock.default_device()


def get_device() -> str:
    """The name of the default device."""
    return _oarlock.default_device().name


@of_arrays
def astype(x: Tensor, dtype: DtypeLike, /, *, copy: builtins.bool = True, device: Device | None = None) -> Tensor:
    """Converts an array to another dtype, on a device."""
    made = x.astype(dtype, copy=copy)
    return made if device is None else made.to_device(device)


_missing_methods.note()
_numpy_protocol.add_protocols()

e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

__array_api_version__ = "2024.12"


def __dir__() -> list[str]:
    """The public names."""
    return __all__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> ModuleType:
        """Loads parts of the package on first use."""
        if name in ("device", "extension", "fft", "linalg", "onnx_backend", "onnxruntime", "profiler", "random"):
            return import_module(f".{name}", __name__)
        raise AttributeError(f"module `oarlock` has no `{name}`")
