"""Methods of arrays. Most are functions of the namespace: `x.sum(0)` is `sum(x, 0)`.

Where NumPy and PyTorch have different methods of one name, each says which it is.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from . import (
    _absent,
    _aliases,
    _comparison,
    _creation,
    _diagonal,
    _elementwise,
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
from ._oarlock import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

FUNCTIONS: dict[object, str] = {
    _comparison: "allclose isclose",
    _creation: "copy tril triu",
    _diagonal: "diagonal trace",
    _elementwise: "clip round square",
    _aliases: "clamp unsqueeze",
    _indexing: "argwhere choose compress",
    _linear: "tensordot vecdot",
    _manipulation: "flip moveaxis repeat roll squeeze tile",
    _order_statistics: "argpartition quantile topk",
    _products: "dot inner outer",
    _search: "argmax argmin argsort nonzero searchsorted take",
    _sets: "unique",
    _shapes: "flatten ravel swapaxes",
    _splitting: "chunk",
    _statistics: "all any count_nonzero cumprod cumsum diff max mean min prod ptp std sum var",
    _tensor_methods: " ".join(_tensor_methods.__all__),
}
"""Functions whose first argument is the array, by module."""

NATIVE = """
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_or bitwise_xor ceil conj cos cosh exp expm1 floor
    isfinite isinf isnan log log10 log1p log2 logical_and logical_not logical_or logical_xor matmul maximum minimum multiply
    pow reciprocal remainder sign sin sinh sqrt subtract tan tanh trunc
""".split()
"""Functions of the native half, which are no descriptors."""

SHORT = {
    "absolute": "abs",
    "arccos": "acos",
    "arcsin": "asin",
    "arctan": "atan",
    "bmm": "matmul",
    "conjugate": "conj",
    "div": "divide",
    "divide": "divide",
    "eq": "equal",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "lt": "less",
    "mm": "matmul",
    "mul": "multiply",
    "ne": "not_equal",
    "neg": "negative",
    "negative": "negative",
    "sub": "subtract",
}
"""Methods that the native half has under another name."""

PROPERTIES = ("imag", "real")
"""Functions of the native half that arrays have as attributes."""


def _method(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A native function as a method. Its name is that of the function it calls, which errors speak of."""

    @wraps(function)
    def method(self: Tensor, *others: Any) -> Tensor:
        return function(self, *others)

    del method.__wrapped__
    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    return method


def add() -> None:
    """Adds the methods to the class of arrays."""
    for module, names in FUNCTIONS.items():
        for name in names.split():
            setattr(Tensor, name, getattr(module, name))
    for name, function in (dict.fromkeys(NATIVE) | SHORT).items():
        setattr(Tensor, name, _method(name, getattr(_oarlock, function or name)))
    for name in PROPERTIES:
        function = getattr(_oarlock, name)
        setattr(Tensor, name, property(function, doc=function.__doc__))
    setattr(Tensor, "itemsize", property(lambda x: x.dtype.itemsize, doc="The size of an element in bytes."))  # noqa: B010
    setattr(Tensor, "__getattr__", _absent.attribute)  # noqa: B010
