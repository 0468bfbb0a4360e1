"""Methods of arrays. Most are functions of the namespace: `x.sum(0)` is `sum(x, 0)`.

The class of arrays is native. At run time it gets the methods from the class here; for type checkers it is a subclass of it.
Where NumPy and PyTorch have different methods of one name, the method says which it is.
"""

from __future__ import annotations

import builtins
from functools import wraps
from typing import TYPE_CHECKING, Any

from . import (
    _absent,
    _comparison,
    _conversions,
    _creation,
    _diagonal,
    _elementwise,
    _html,
    _indexing,
    _linear,
    _manipulation,
    _oarlock,
    _order_statistics,
    _products,
    _search,
    _sets,
    _shapes,
    _splitting,
    _statistics,
    _tensor_methods,
)
from ._oarlock import Tensor, asarray
from .nn import _activations, _softmax

if TYPE_CHECKING:
    from collections.abc import Callable


def _of_one(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A native function, which is no descriptor, as a method."""

    @wraps(function)
    def method(x: Tensor, /) -> Tensor:
        return function(x)

    return method


def _of_two(function: Callable[[Tensor, Any], Tensor]) -> Callable[[Tensor, Any], Tensor]:
    """The same for a function of two arrays."""

    @wraps(function)
    def method(x1: Tensor, x2: Any, /) -> Tensor:
        return function(x1, x2)

    return method


class Methods:
    """The methods and properties that arrays get from Python."""

    _repr_html_ = _html.html
    abs = _of_one(_oarlock.abs)
    absolute = _of_one(_oarlock.abs)
    acos = _of_one(_oarlock.acos)
    acosh = _of_one(_oarlock.acosh)
    add = _of_two(_oarlock.add)
    add_ = _tensor_methods.add_
    all = _statistics.all
    allclose = _comparison.allclose
    amax = _statistics.max
    amin = _statistics.min
    any = _statistics.any
    arccos = _of_one(_oarlock.acos)
    arcsin = _of_one(_oarlock.asin)
    arctan = _of_one(_oarlock.atan)
    argmax = _search.argmax
    argmin = _search.argmin
    argpartition = _order_statistics.argpartition
    argsort = _search.argsort
    argwhere = _indexing.argwhere
    asin = _of_one(_oarlock.asin)
    asinh = _of_one(_oarlock.asinh)
    atan = _of_one(_oarlock.atan)
    atan2 = _of_two(_oarlock.atan2)
    atanh = _of_one(_oarlock.atanh)
    bfloat16 = _conversions.bfloat16
    bitwise_and = _of_two(_oarlock.bitwise_and)
    bitwise_or = _of_two(_oarlock.bitwise_or)
    bitwise_xor = _of_two(_oarlock.bitwise_xor)
    bmm = _of_two(_oarlock.matmul)
    bool = _conversions.bool
    ceil = _of_one(_oarlock.ceil)
    choose = _indexing.choose
    chunk = _splitting.chunk
    clamp = _elementwise.clip
    clamp_ = _tensor_methods.clamp_
    clip = _elementwise.clip
    clone = _tensor_methods.clone
    compress = _tensor_methods.compress
    conj = _of_one(_oarlock.conj)
    conjugate = _of_one(_oarlock.conj)
    contiguous = _tensor_methods.contiguous
    copy = _creation.copy
    copy_ = _tensor_methods.copy_
    cos = _of_one(_oarlock.cos)
    cosh = _of_one(_oarlock.cosh)
    count_nonzero = _statistics.count_nonzero
    cpu = _conversions.cpu
    cuda = _conversions.cuda
    cumprod = _statistics.cumprod
    cumsum = _statistics.cumsum
    detach = _tensor_methods.detach
    diagonal = _diagonal.diagonal
    diff = _statistics.diff
    dim = _tensor_methods.dim
    div = _of_two(_oarlock.divide)
    div_ = _tensor_methods.div_
    divide = _of_two(_oarlock.divide)
    dot = _products.dot
    double = _conversions.double
    element_size = _tensor_methods.element_size
    eq = _of_two(_oarlock.equal)
    exp = _of_one(_oarlock.exp)
    expand = _tensor_methods.expand
    expand_as = _tensor_methods.expand_as
    expm1 = _of_one(_oarlock.expm1)
    fill = _tensor_methods.fill
    fill_ = _tensor_methods.fill_
    flatten = _shapes.flatten
    flip = _manipulation.flip
    float = _conversions.float
    floor = _of_one(_oarlock.floor)
    gather = _tensor_methods.gather
    ge = _of_two(_oarlock.greater_equal)
    gt = _of_two(_oarlock.greater)
    half = _conversions.half
    index_select = _tensor_methods.index_select
    inner = _products.inner
    int = _conversions.int
    is_contiguous = _tensor_methods.is_contiguous
    is_floating_point = _tensor_methods.is_floating_point
    isclose = _comparison.isclose
    isfinite = _of_one(_oarlock.isfinite)
    isinf = _of_one(_oarlock.isinf)
    isnan = _of_one(_oarlock.isnan)
    le = _of_two(_oarlock.less_equal)
    log = _of_one(_oarlock.log)
    log10 = _of_one(_oarlock.log10)
    log1p = _of_one(_oarlock.log1p)
    log2 = _of_one(_oarlock.log2)
    log_softmax = _softmax.log_softmax
    logical_and = _of_two(_oarlock.logical_and)
    logical_not = _of_one(_oarlock.logical_not)
    logical_or = _of_two(_oarlock.logical_or)
    logical_xor = _of_two(_oarlock.logical_xor)
    logsumexp = _tensor_methods.logsumexp
    long = _conversions.long
    lt = _of_two(_oarlock.less)
    masked_fill = _tensor_methods.masked_fill
    masked_select = _tensor_methods.masked_select
    matmul = _of_two(_oarlock.matmul)
    max = _statistics.max
    maximum = _of_two(_oarlock.maximum)
    mean = _statistics.mean
    min = _statistics.min
    minimum = _of_two(_oarlock.minimum)
    mm = _of_two(_oarlock.matmul)
    moveaxis = _manipulation.moveaxis
    mul = _of_two(_oarlock.multiply)
    mul_ = _tensor_methods.mul_
    multiply = _of_two(_oarlock.multiply)
    narrow = _tensor_methods.narrow
    ne = _of_two(_oarlock.not_equal)
    neg = _of_one(_oarlock.negative)
    negative = _of_one(_oarlock.negative)
    nelement = _tensor_methods.nelement
    nonzero = _search.nonzero
    norm = _tensor_methods.norm
    numel = _tensor_methods.numel
    outer = _products.outer
    permute = _tensor_methods.permute
    pow = _of_two(_oarlock.pow)
    prod = _statistics.prod
    ptp = _statistics.ptp
    quantile = _order_statistics.quantile
    ravel = _shapes.ravel
    reciprocal = _of_one(_oarlock.reciprocal)
    relu = _activations.relu
    remainder = _of_two(_oarlock.remainder)
    repeat = _manipulation.repeat
    repeat_interleave = _manipulation.repeat
    reshape_as = _tensor_methods.reshape_as
    roll = _manipulation.roll
    round = _elementwise.round
    rsqrt = _tensor_methods.rsqrt
    scatter = _tensor_methods.scatter
    scatter_add = _tensor_methods.scatter_add
    searchsorted = _search.searchsorted
    sigmoid = _activations.sigmoid
    sign = _of_one(_oarlock.sign)
    sin = _of_one(_oarlock.sin)
    sinh = _of_one(_oarlock.sinh)
    softmax = _softmax.softmax
    sort = _tensor_methods.sort
    split = _tensor_methods.split
    sqrt = _of_one(_oarlock.sqrt)
    square = _elementwise.square
    squeeze = _manipulation.squeeze
    std = _statistics.std
    sub = _of_two(_oarlock.subtract)
    sub_ = _tensor_methods.sub_
    subtract = _of_two(_oarlock.subtract)
    sum = _statistics.sum
    swapaxes = _shapes.swapaxes
    t = _tensor_methods.t
    take = _search.take
    tan = _of_one(_oarlock.tan)
    tanh = _of_one(_oarlock.tanh)
    tensordot = _linear.tensordot
    tile = _manipulation.tile
    to = _conversions.to
    tobytes = _tensor_methods.tobytes
    topk = _order_statistics.topk
    trace = _diagonal.trace
    transpose = _tensor_methods.transpose
    tril = _creation.tril
    triu = _creation.triu
    trunc = _of_one(_oarlock.trunc)
    type_as = _tensor_methods.type_as
    unbind = _tensor_methods.unbind
    unique = _sets.unique
    unsqueeze = _manipulation.expand_dims
    var = _statistics.var
    vecdot = _linear.vecdot
    view = _tensor_methods.view
    view_as = _tensor_methods.view_as
    where = _tensor_methods.where
    zero_ = _tensor_methods.zero_
    @property
    def real(self) -> Tensor:
        """The real part; real numbers stay as they are."""
        return _oarlock.real(asarray(self))

    @property
    def imag(self) -> Tensor:
        """The imaginary part; 0 for real numbers."""
        return _oarlock.imag(asarray(self))

    @property
    def itemsize(self) -> builtins.int:
        """The size of an element in bytes."""
        return asarray(self).dtype.itemsize


def add() -> None:
    """Adds the methods to the class of arrays."""
    for name, value in vars(Methods).items():
        if not name.startswith("__"):
            setattr(Tensor, name, value)
    setattr(Tensor, "__getattr__", _absent.attribute)  # noqa: B010
