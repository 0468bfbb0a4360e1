"""Arrays and models on any device.

>>> import oarlock as ol
>>> a = ol.asarray([1.0, 2.0])
>>> a + a
Tensor(shape=[2], dtype=float32, place=Place(cpu:0), stop_gradient=True,
       [2., 4.])

The namespace follows the Python array API standard. Models are loaded with `load` and called like functions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ._creation import (
    arange,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from ._elementwise import (
    clip,
    positive,
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
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)
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
    Session,
    Tensor,
    abs,
    acos,
    acosh,
    add,
    asarray,
    asin,
    asinh,
    atan,
    atanh,
    bfloat16,
    bitwise_and,
    bitwise_invert,
    bitwise_or,
    bitwise_xor,
    bool,
    ceil,
    conj,
    complex128,
    complex64,
    cos,
    cosh,
    devices,
    divide,
    equal,
    exp,
    float16,
    float32,
    float64,
    floor,
    from_dlpack,
    greater,
    greater_equal,
    int16,
    int32,
    int64,
    int8,
    less,
    less_equal,
    log,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    matmul,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    op,
    pow,
    real,
    reciprocal,
    result_type,
    round,
    sign,
    sin,
    sinh,
    sqrt,
    subtract,
    tan,
    tanh,
    uint16,
    uint32,
    uint64,
    uint8,
    atan2,
    bitwise_left_shift,
    bitwise_right_shift,
    copysign,
    expm1,
    floor_divide,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    log10,
    log1p,
    log2,
    logaddexp,
    nextafter,
    remainder,
    signbit,
    trunc,
    __version__,
)

if TYPE_CHECKING:
    from os import PathLike
    from types import ModuleType

to_tensor = asarray


def load(file: str | PathLike[str], /, *, device: Device | str | None = None) -> Session:
    """A model of a file, ready to run: of ONNX, or Paddle's `.pdmodel` with its parameters beside it.

    It is called with arrays in the order of its inputs, or of other libraries; `run` takes and gives them by name.
    """
    return Session(file, device=device)


def set_device(device: Device | str) -> Device:
    """Makes a device the one that is used when none is named, and gives it."""
    set_default_device(device)
    return default_device()


def get_device() -> str:
    """The name of the device that is used when none is named."""
    return default_device().name


def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Device | None = None) -> Tensor:
    """The elements of an array as another dtype, on a device."""
    made = x.astype(dtype, copy=copy)
    return made if device is None else made.to_device(device)


e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None
pi = 3.141592653589793

__array_api_version__ = "2024.12"


def __getattr__(name: str) -> ModuleType:
    """Parts of the package that are loaded when they are used."""
    if name in ("fft", "linalg"):
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module `oarlock` has no `{name}`")
