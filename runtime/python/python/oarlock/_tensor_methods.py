"""Functions that arrays have as methods only."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, SupportsIndex

from . import _oarlock
from ._arguments import in_own_name
from ._elementwise import clip
from ._indexing import compress as compressed
from ._kinds import FLOATS, as_floats
from ._manipulation import broadcast_shapes, broadcast_to, squeeze, unstack
from ._oarlock import Tensor, _axis, asarray, op, permute_dims
from ._search import sort as sorted_
from ._search import take, take_along_axis
from ._search import where as choose
from ._shapes import swapaxes
from ._splitting import parts_of_sizes
from ._statistics import max, sum

if TYPE_CHECKING:
    from ._typing import ArrayLike, Axes

ONNX_DTYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "complex64": 14,
    "complex128": 15,
    "bfloat16": 16,
}
"""The numbers of dtypes in ONNX."""


def _numbers_of(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Numbers that were given as separate arguments or as one sequence."""
    if len(given) == 1 and not isinstance(given[0], SupportsIndex):
        return tuple(given[0])
    return given


@in_own_name
def view(x: Tensor, /, *shape: Any) -> Tensor:
    """The elements in another shape, or the same bytes as elements of another dtype of that size; without arguments, as they are."""
    if not shape:
        return +x
    if len(shape) != 1 or isinstance(shape[0], (SupportsIndex, tuple, list)):
        return _oarlock.reshape(x, _numbers_of(shape))
    dtype = _oarlock.zeros(0, dtype=shape[0]).dtype
    if dtype.itemsize != x.dtype.itemsize or dtype.name not in ONNX_DTYPES:
        raise TypeError(f"expected a dtype of {x.dtype.itemsize} bytes like {x.dtype.name}, found {dtype.name}")
    return x if dtype == x.dtype else op("BitCast", [x], {"to": ONNX_DTYPES[dtype.name]})


@in_own_name
def transpose(x: Tensor, /, *axes: Any) -> Tensor:
    """The axes in another order: reversed, or as numbers or a tuple say. Of more than two axes, two numbers swap these two."""
    order = _numbers_of(axes) if axes and axes != (None,) else tuple(reversed(range(x.ndim)))
    if len(axes) == 2 and x.ndim > 2:
        return swapaxes(x, *axes)
    return permute_dims(x, order)


@in_own_name
def permute(x: Tensor, /, *dims: Any) -> Tensor:
    """The axes in another order, given as numbers or as a tuple."""
    return permute_dims(x, _numbers_of(dims))


@in_own_name
def expand(x: Tensor, /, *sizes: Any) -> Tensor:
    """The array broadcast to a shape, in which -1 stands for a size that stays."""
    shape = _numbers_of(sizes)
    before = len(shape) - x.ndim
    if before < 0:
        raise ValueError(f"expected {x.ndim} sizes at least, found {shape}")
    return broadcast_to(x, tuple(x.shape[at - before] if size == -1 and at >= before else size for at, size in enumerate(shape)))


@in_own_name
def split(x: Tensor, split_size: Any, /, axis: builtins.int = 0) -> tuple[Tensor, ...]:
    """Parts along an axis: all of one size but the last, or of the sizes in a list. This is PyTorch's method; NumPy's is the
    function `oarlock.split`."""
    return parts_of_sizes(x, split_size, _axis(axis, x.ndim))


@in_own_name
def sort(x: Tensor, /, axis: builtins.int = -1, *, descending: builtins.bool = False) -> None:
    """Sorts the array itself along an axis, as NumPy's method does. `oarlock.sort` makes a new array."""
    x[...] = sorted_(x, axis, descending=descending)


@in_own_name
def fill(x: Tensor, value: ArrayLike, /) -> None:
    """Writes a number to all elements."""
    fill_(x, value)


@in_own_name
def fill_(x: Tensor, value: ArrayLike, /) -> Tensor:
    """Writes a number to all elements, and returns the array."""
    number = asarray(value, device=x.device)
    if number.size != 1:
        raise ValueError(f"expected one number to fill with, found an array of the shape {number.shape}")
    return copy_(x, number)


@in_own_name
def zero_(x: Tensor, /) -> Tensor:
    """Writes 0 to all elements, and returns the array."""
    return fill_(x, 0)


@in_own_name
def copy_(x: Tensor, source: ArrayLike, /) -> Tensor:
    """Writes the elements of another array, broadcast to the shape, and returns the array."""
    x[...] = asarray(source, device=x.device).astype(x.dtype, copy=False)
    return x


@in_own_name
def add_(x: Tensor, other: ArrayLike, /, *, alpha: builtins.float = 1) -> Tensor:
    """Adds another array, multiplied by `alpha`, to the array itself, and returns it."""
    added = _operand(other, x)
    x += added if alpha == 1 else added * alpha
    return x


@in_own_name
def sub_(x: Tensor, other: ArrayLike, /, *, alpha: builtins.float = 1) -> Tensor:
    """Subtracts another array, multiplied by `alpha`, from the array itself, and returns it."""
    subtracted = _operand(other, x)
    x -= subtracted if alpha == 1 else subtracted * alpha
    return x


@in_own_name
def mul_(x: Tensor, other: ArrayLike, /) -> Tensor:
    """Multiplies the array itself by another, and returns it."""
    x *= _operand(other, x)
    return x


@in_own_name
def div_(x: Tensor, other: ArrayLike, /) -> Tensor:
    """Divides the array itself by another, and returns it."""
    x /= _operand(other, x)
    return x


@in_own_name
def clamp_(x: Tensor, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    """Limits the elements of the array itself to a range, and returns it."""
    return copy_(x, clip(x, min, max))


def _operand(other: ArrayLike, x: Tensor) -> Any:
    """An operand of an operator: a number stays one, so that it does not change the dtype."""
    return other if isinstance(other, (builtins.int, builtins.float, complex)) else asarray(other, device=x.device)


@in_own_name
def masked_fill(x: Tensor, mask: ArrayLike, value: ArrayLike, /) -> Tensor:
    """The array with a number where a mask is true."""
    return choose(mask, asarray(value, dtype=x.dtype, device=x.device), x)


@in_own_name
def gather(x: Tensor, axis: builtins.int, index: ArrayLike, /) -> Tensor:
    """The elements at indices along an axis, in the shape of the indices. Along other axes these may be fewer than the array
    has; unlike those of `oarlock.take_along_axis`, they are not broadcast."""
    at, places = _axis(axis, x.ndim), asarray(index, device=x.device)
    fitting = places.ndim == x.ndim and all(places.shape[each] <= x.shape[each] for each in range(x.ndim) if each != at)
    if not fitting:
        raise ValueError(f"expected indices with at most the sizes {x.shape} along other axes, found the shape {places.shape}")
    part = x[tuple(slice(None) if each == at else slice(size) for each, size in enumerate(places.shape))]
    return take_along_axis(part, places, at)


@in_own_name
def index_select(x: Tensor, axis: builtins.int, index: ArrayLike, /) -> Tensor:
    """The slices at some indices of an axis."""
    return take(x, index, axis)


@in_own_name
def masked_select(x: Tensor, mask: ArrayLike, /) -> Tensor:
    """The elements where a mask is true, in one dimension. Array and mask are broadcast."""
    chosen = asarray(mask, device=x.device)
    shape = broadcast_shapes(x.shape, chosen.shape)
    return broadcast_to(x, shape)[broadcast_to(chosen, shape)]


@in_own_name
def narrow(x: Tensor, axis: builtins.int, start: builtins.int, length: builtins.int, /) -> Tensor:
    """The part of an axis that begins at an index, and has a length."""
    at = _axis(axis, x.ndim)
    size = x.shape[at]
    first = start + size if start < 0 else start
    if length < 0 or not 0 <= first <= size - length:
        raise IndexError(f"expected a part of the {size} elements along axis {axis}, found {length} from {start} on")
    return x[(slice(None),) * at + (slice(first, first + length),)]


@in_own_name
def unbind(x: Tensor, /, dim: builtins.int = 0) -> tuple[Tensor, ...]:
    """The arrays along an axis, as `oarlock.unstack` gives them."""
    return unstack(x, axis=dim)


@in_own_name
def scatter(x: Tensor, axis: builtins.int, index: ArrayLike, source: ArrayLike, /) -> Tensor:
    """The array with elements of another, or a number, at indices along an axis: the opposite of `gather`."""
    return _scattered(x, axis, index, source, {})


@in_own_name
def scatter_add(x: Tensor, axis: builtins.int, index: ArrayLike, source: ArrayLike, /) -> Tensor:
    """The same as `scatter`, except that elements are added to those that are there, and to each other."""
    return _scattered(x, axis, index, source, {"reduction": "add"})


def _scattered(x: Tensor, axis: builtins.int, index: ArrayLike, source: ArrayLike, attributes: dict[str, Any]) -> Tensor:
    at, places = _axis(axis, x.ndim), asarray(index, device=x.device)
    put = asarray(source, device=x.device).astype(x.dtype, copy=False)
    put = broadcast_to(put, places.shape) if put.ndim == 0 else put
    limits = tuple(put.shape[each] if each == at else size for each, size in enumerate(x.shape)) if put.ndim == x.ndim else ()
    if not places.ndim == len(limits) or any(
        places.shape[each] > limit for each, size in enumerate(limits) for limit in (size, put.shape[each])
    ):
        raise ValueError(
            f"expected indices with at most the sizes {x.shape} along other axes, and those of what is put, {put.shape}, along all, "
            f"found the shape {places.shape}"
        )
    return op("ScatterElements", [x, places, put[tuple(map(slice, places.shape))]], {"axis": at, **attributes})


@in_own_name
def logsumexp(x: Tensor, /, axis: Axes | None = None, *, keepdims: builtins.bool = False) -> Tensor:
    """The logarithm of the sum of the exponentials along axes, by default all; no exponential overflows."""
    floats = as_floats(x)
    largest = max(floats, axis, keepdims=True)
    # The difference of two infinities would be NaN.
    largest = choose(_oarlock.isinf(largest), 0, largest)
    made = _oarlock.log(sum(_oarlock.exp(floats - largest), axis, keepdims=True)) + largest
    return made if keepdims else squeeze(made, tuple(range(x.ndim)) if axis is None else axis)


@in_own_name
def rsqrt(x: Tensor, /) -> Tensor:
    """The reciprocals of the square roots."""
    return _oarlock.reciprocal(_oarlock.sqrt(as_floats(x)))


@in_own_name
def t(x: Tensor, /) -> Tensor:
    """The transpose of a matrix; a vector stays as it is."""
    if x.ndim > 2:
        raise ValueError(f"expected a matrix or a vector, found the shape {x.shape}\nhint: `x.mT` transposes each matrix of a stack")
    return x if x.ndim < 2 else x.T


@in_own_name
def expand_as(x: Tensor, other: ArrayLike, /) -> Tensor:
    """The array, broadcast to the shape of another."""
    return broadcast_to(x, asarray(other).shape)


@in_own_name
def reshape_as(x: Tensor, other: ArrayLike, /) -> Tensor:
    """The elements in the shape of another array."""
    return _oarlock.reshape(x, asarray(other).shape)


@in_own_name
def view_as(x: Tensor, other: ArrayLike, /) -> Tensor:
    """The elements in the shape of another array."""
    return _oarlock.reshape(x, asarray(other).shape)


@in_own_name
def type_as(x: Tensor, other: ArrayLike, /) -> Tensor:
    """The array with the dtype of another, and on its device."""
    like = asarray(other)
    return x.to_device(like.device).astype(like.dtype, copy=False)


def is_floating_point(x: Tensor, /) -> builtins.bool:
    """Whether the elements are real numbers with fractions."""
    return x.dtype in FLOATS


def is_contiguous(x: Tensor, /) -> builtins.bool:
    """True, since the elements lie in memory in their order wherever that matters."""
    return True


def element_size(x: Tensor, /) -> builtins.int:
    """The size of an element in bytes."""
    return x.dtype.itemsize


@in_own_name
def compress(x: Tensor, condition: ArrayLike, /, axis: builtins.int | None = None) -> Tensor:
    """The slices of an axis for which a condition is true; without an axis, of the elements in one dimension."""
    return compressed(condition, x, axis)


@in_own_name
def where(x: Tensor, condition: ArrayLike, other: ArrayLike, /) -> Tensor:
    """The elements where a condition is true, elsewhere those of another array."""
    return choose(condition, x, other)


@in_own_name
def norm(x: Tensor, /, ord: builtins.float | str | None = None, axis: Any = None, *, keepdims: builtins.bool = False) -> Tensor:
    """The norms, as `oarlock.linalg.norm` has them."""
    # Loaded on first use.
    from .linalg import norm as norm_

    return norm_(x, ord, axis, keepdims=keepdims)


def contiguous(x: Tensor, /) -> Tensor:
    """The array itself, since its elements lie in memory in their order wherever that matters."""
    return x


def detach(x: Tensor, /) -> Tensor:
    """The array itself, since arrays have no gradients."""
    return x


def clone(x: Tensor, /) -> Tensor:
    """A new array of the same elements."""
    return asarray(x, copy=True)


def dim(x: Tensor, /) -> builtins.int:
    """The number of axes."""
    return x.ndim


def numel(x: Tensor, /) -> builtins.int:
    """The number of elements."""
    return x.size


def nelement(x: Tensor, /) -> builtins.int:
    """The number of elements."""
    return x.size


@in_own_name
def tobytes(x: Tensor, /) -> bytes:
    """The bytes of the elements in their order."""
    return memoryview(x.to_device("cpu")).tobytes()
