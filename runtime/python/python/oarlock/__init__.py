"""Arrays and models on any device.

>>> import oarlock as ol
>>> a = ol.asarray([1.0, 2.0])
>>> a + a
Tensor(shape=[2], dtype=float32, place=Place(cpu:0), stop_gradient=True,
       [2., 4.])

The namespace follows the Python array API standard; it also has functions of NumPy and PyTorch that the standard lacks, and
arrays have their methods. Models are loaded with `load` and called like functions.
"""

from __future__ import annotations

# Not from `typing`, which takes longer to import than the whole package.
TYPE_CHECKING = False

from . import _install_conflict

# First, before a module of another version can be loaded.
_install_conflict.check(__path__[0])

from . import _loading, _names, _numpy_protocol, _oarlock
from ._model import Session
from ._warning import FallbackWarning
from ._oarlock import (
    DType,
    Device,
    Error,
    Event,
    Slot,
    Stream,
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

__all__: list[str] = [
    "DType",
    "Device",
    "Error",
    "Event",
    "FallbackWarning",
    "Session",
    "Slot",
    "Stream",
    "Tensor",
    "__array_api_version__",
    "__version__",
    "abs",
    "acos",
    "acosh",
    "add",
    "asarray",
    "asin",
    "asinh",
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
    "ceil",
    "complex128",
    "complex64",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "device",
    "devices",
    "divide",
    "e",
    "equal",
    "exp",
    "expm1",
    "extension",
    "fft",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "from_dlpack",
    "get_device",
    "get_flags",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "linalg",
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
    "maximum",
    "minimum",
    "multiply",
    "nan",
    "negative",
    "newaxis",
    "nextafter",
    "nn",
    "not_equal",
    "ones",
    "onnx_backend",
    "onnxruntime",
    "op",
    "openvino",
    "paddle_inference",
    "permute_dims",
    "pi",
    "pow",
    "profiler",
    "random",
    "real",
    "reciprocal",
    "remainder",
    "result_type",
    "run_check",
    "set_device",
    "set_flags",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "tflite",
    "to_tensor",
    "trunc",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "zeros",
]

if TYPE_CHECKING:
    from typing import Any

    from ._oarlock import Tensor

    # Loaded on first use, all of it.
    from . import (
        _aliases,
        _calculus,
        _comparison,
        _control_flow,
        _creation,
        _diagonal,
        _editing,
        _einsum,
        _elementwise,
        _grids,
        _histogram,
        _indexing,
        _information,
        _jit,
        _joining,
        _linear,
        _load,
        _manipulation,
        _mathematics,
        _nan_statistics,
        _npy,
        _order_statistics,
        _padding,
        _polynomials,
        _printing,
        _products,
        _search,
        _sequences,
        _sets,
        _shapes,
        _splitting,
        _statistics,
        _text_files,
        _weighted,
        _windows,
        _writing,
        device,
        extension,
        fft,
        linalg,
        nn,
        onnx_backend,
        onnxruntime,
        openvino,
        paddle_inference,
        profiler,
        random,
        tflite,
    )
    from ._aliases import *
    from ._calculus import *
    from ._comparison import *
    from ._control_flow import *
    from ._creation import *
    from ._diagonal import *
    from ._editing import *
    from ._einsum import *
    from ._elementwise import *
    from ._grids import *
    from ._histogram import *
    from ._indexing import *
    from ._information import *
    from ._jit import *
    from ._joining import *
    from ._linear import *
    from ._load import *
    from ._manipulation import *
    from ._mathematics import *
    from ._nan_statistics import *
    from ._npy import *
    from ._order_statistics import *
    from ._padding import *
    from ._polynomials import *
    from ._printing import *
    from ._products import *
    from ._search import *
    from ._sequences import *
    from ._sets import *
    from ._shapes import *
    from ._splitting import *
    from ._statistics import *
    from ._text_files import *
    from ._weighted import *
    from ._windows import *
    from ._writing import *

    __all__ += _aliases.__all__
    __all__ += _calculus.__all__
    __all__ += _comparison.__all__
    __all__ += _control_flow.__all__
    __all__ += _creation.__all__
    __all__ += _diagonal.__all__
    __all__ += _editing.__all__
    __all__ += _einsum.__all__
    __all__ += _elementwise.__all__
    __all__ += _grids.__all__
    __all__ += _histogram.__all__
    __all__ += _indexing.__all__
    __all__ += _information.__all__
    __all__ += _jit.__all__
    __all__ += _joining.__all__
    __all__ += _linear.__all__
    __all__ += _load.__all__
    __all__ += _manipulation.__all__
    __all__ += _mathematics.__all__
    __all__ += _nan_statistics.__all__
    __all__ += _npy.__all__
    __all__ += _order_statistics.__all__
    __all__ += _padding.__all__
    __all__ += _polynomials.__all__
    __all__ += _printing.__all__
    __all__ += _products.__all__
    __all__ += _search.__all__
    __all__ += _sequences.__all__
    __all__ += _sets.__all__
    __all__ += _shapes.__all__
    __all__ += _splitting.__all__
    __all__ += _statistics.__all__
    __all__ += _text_files.__all__
    __all__ += _weighted.__all__
    __all__ += _windows.__all__
    __all__ += _writing.__all__
else:
    __all__ += _names.LOADED_ON_USE

to_tensor = asarray


def run_check() -> None:
    """Tests every device with a small computation, prints the results, and raises an error if one fails.

    >>> ol.run_check()
    Oarlock works well on 1 cpu.
    Oarlock is installed successfully!
    """
    from ._doctor import run_check as check

    check()


def set_device(device: Device | str) -> Device:
    """Sets the default device and returns it.

    >>> ol.set_device("cpu")
    Place(cpu:0)
    """
    _oarlock.set_default_device(device)
    return _oarlock.default_device()


def get_device() -> str:
    """The name of the default device.

    >>> ol.get_device()
    'cpu:0'
    """
    return _oarlock.default_device().name


_loading.prepare_arrays()
_numpy_protocol.add_protocols()

e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

__array_api_version__ = "2025.12"


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Loads a part of the package on first use, or a function with the module it is in."""
        found = _loading.load_name(name)
        if name in __all__:
            globals()[name] = found
        return found
