"""Reductions and cumulative sums."""

from __future__ import annotations

import builtins
import math
from typing import TYPE_CHECKING

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._complex_order import extreme
from ._kinds import COMPLEX, as_floats
from ._manipulation import broadcast_to, concat
from ._oarlock import Tensor, _axes, _axis, _numbers, _reduced, _summands, asarray, full, op, reshape

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._typing import ArrayLike, Axes, DtypeLike, Number

__all__: list[str] = [
    "all",
    "any",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "diff",
    "max",
    "mean",
    "min",
    "prod",
    "ptp",
    "std",
    "sum",
    "var",
]


def _of_parts(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Applies a linear function to both parts of complex numbers."""
    return op("Complex", [function(_oarlock.real(x)), function(_oarlock.imag(x))], domain="oarlock")


def chosen(x: Tensor, where: ArrayLike, otherwise: Number) -> Tensor:
    """The array with a number in place of the elements that `where` leaves out."""
    if where is True:
        return x
    truths = _truths(where, x)
    number = asarray(otherwise, dtype=x.dtype, device=x.device)
    return op("Where", [truths, x, number])


def _truths(where: ArrayLike, x: Tensor) -> Tensor:
    """The argument `where` of a reduction in the shape of the array."""
    truths = _numbers(asarray(where, device=x.device)).astype(_oarlock.bool, copy=False)
    return broadcast_to(truths, x.shape)


@in_own_name
def max(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: ArrayLike = True,
) -> Tensor:
    """The maximum of the elements, and of `initial`. `where` chooses elements. The real parts of complex numbers decide, and the
    imaginary parts between equal ones.

    >>> ol.max([[1, 5], [7, 2]], axis=0).tolist()
    [7, 5]
    """
    return _extreme("ReduceMax", _oarlock.maximum, asarray(x), axis, keepdims, initial, where)


@in_own_name
def min(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: ArrayLike = True,
) -> Tensor:
    """The minimum of the elements, and of `initial`. `where` chooses elements. The real parts of complex numbers decide, and the
    imaginary parts between equal ones.

    >>> ol.min([[1, 5], [7, 2]], axis=0).tolist()
    [1, 2]
    """
    return _extreme("ReduceMin", _oarlock.minimum, asarray(x), axis, keepdims, initial, where)


def _extreme(
    name: str,
    of_two: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    axis: Axes | None,
    keepdims: bool,
    initial: Number | None,
    where: ArrayLike,
) -> Tensor:
    if initial is None:
        if where is not True:
            raise ValueError("expected a number for `initial` beside `where`, found none\nhint: it counts where nothing is chosen")
        return _of_all(name, x, axis, keepdims)
    axes = _axes(axis, x.ndim)
    if 0 in [x.shape[at] for at in axes]:
        return full(_reduced_shape(x, axes, keepdims), initial, dtype=x.dtype, device=x.device)
    first = asarray(initial, dtype=x.dtype, device=x.device)
    made = _of_all(name, chosen(x, where, initial), axis, keepdims)
    if x.dtype in COMPLEX:
        return extreme(name, concat([made[..., None], broadcast_to(first, (*made.shape, 1))], axis=-1), -1, False)
    return of_two(made, first)


def _of_all(name: str, x: Tensor, axis: Axes | None, keepdims: bool) -> Tensor:
    """The extreme of all elements along some axes."""
    return (extreme if x.dtype in COMPLEX else _reduced)(name, x, axis, keepdims)


def _reduced_shape(x: Tensor, axes: list[int], keepdims: bool) -> tuple[int, ...]:
    return tuple(1 if at in axes else size for at, size in enumerate(x.shape) if keepdims or at not in axes)


@in_own_name
def ptp(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """The distance from the minimum to the maximum.

    >>> ol.ptp([1, 5, 3]).item()
    4
    """
    x = asarray(x)
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)


@in_own_name
def mean(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DtypeLike | None = None,
    *,
    keepdims: bool = False,
    where: ArrayLike = True,
) -> Tensor:
    """The arithmetic mean of the elements, or of those that `where` chooses, computed in `dtype`.

    >>> ol.mean([[1.0, 2.0], [3.0, 4.0]], axis=1).tolist()
    [1.5, 3.5]
    """
    return _mean(fractions_of(asarray(x), dtype), axis, keepdims, where)


def fractions_of(x: Tensor, dtype: DtypeLike | None) -> Tensor:
    """Numbers to compute means of."""
    return as_floats(x if dtype is None else _numbers(x).astype(dtype, copy=False))


def _mean(x: Tensor, axis: Axes | None, keepdims: bool, where: ArrayLike) -> Tensor:
    if where is True:
        return _reduced("ReduceMean", x, axis, keepdims)
    total = _reduced("ReduceSum", chosen(x, where, 0), axis, keepdims)
    return total / count_chosen(x, axis, keepdims, where).astype(total.dtype)


def count_chosen(x: Tensor, axis: Axes | None, keepdims: bool, where: ArrayLike) -> Tensor:
    """The number of elements that `where` chooses."""
    return _reduced("ReduceSum", _truths(where, x).astype(_oarlock.int64), axis, keepdims)


@in_own_name
def sum(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DtypeLike | None = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: ArrayLike = True,
) -> Tensor:
    """The sum of the elements, and of `initial`; 0 for no elements. `where` chooses elements.

    >>> ol.sum([[1, 2], [3, 4]], axis=0).tolist()
    [4, 6]
    """
    made = _reduced("ReduceSum", chosen(_summands(asarray(x), dtype), where, 0), axis, keepdims)
    return made if initial is None else made + asarray(initial, dtype=made.dtype, device=made.device)


@in_own_name
def prod(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DtypeLike | None = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: ArrayLike = True,
) -> Tensor:
    """The product of the elements, and of `initial`; 1 for no elements. `where` chooses elements.

    >>> ol.prod([2, 3, 4]).item()
    24
    """
    made = _product(chosen(_summands(asarray(x), dtype), where, 1), axis, keepdims)
    return made if initial is None else made * asarray(initial, dtype=made.dtype, device=made.device)


def _product(x: Tensor, axis: Axes | None, keepdims: bool) -> Tensor:
    if x.dtype not in COMPLEX:
        return _reduced("ReduceProd", x, axis, keepdims)
    for at in _axes(axis, x.ndim):
        x = _halved(x, at)
    axes = _axes(axis, x.ndim)
    return x if keepdims else x[tuple(0 if at in axes else slice(None) for at in range(x.ndim))]


def _halved(x: Tensor, axis: int) -> Tensor:
    """Multiplies complex numbers along an axis down to one element, by halves."""
    front = (slice(None),) * axis
    if x.shape[axis] == 0:
        shape = tuple(1 if at == axis else size for at, size in enumerate(x.shape))
        return full(shape, 1, dtype=x.dtype, device=x.device)
    while (size := x.shape[axis]) > 1:
        half = size // 2
        product = x[(*front, slice(half))] * x[(*front, slice(half, 2 * half))]
        x = concat([product, x[(*front, slice(2 * half, None))]], axis=axis)
    return x


@in_own_name
def var(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DtypeLike | None = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    where: ArrayLike = True,
) -> Tensor:
    """The variance: the mean squared deviation from the mean, computed in `dtype`. `where` chooses elements. Of complex numbers,
    the magnitudes of the deviations are squared.

    `correction` is subtracted from the number of elements; 1 gives the sample variance.

    >>> ol.var([1.0, 3.0], correction=1).item()
    2.0
    """
    x = fractions_of(asarray(x), dtype)
    distances = chosen(x - _mean(x, axis, True, where), where, 0)
    count = math.prod(x.shape[at] for at in _axes(axis, x.ndim))
    try:
        left = float(count - correction)
    except TypeError:
        raise TypeError(f"expected a number for `correction`, found {type(correction).__name__}") from None
    squares = _reduced("ReduceSum", _squares(distances), axis, keepdims)
    if where is not True:
        return squares / _oarlock.maximum(count_chosen(x, axis, keepdims, where).astype(squares.dtype) - correction, 0.0)
    return squares / asarray(builtins.max(left, 0.0), dtype=squares.dtype, device=x.device)


def _squares(x: Tensor) -> Tensor:
    """The squares of magnitudes."""
    if x.dtype not in COMPLEX:
        return x * x
    width, height = _oarlock.real(x), _oarlock.imag(x)
    return width * width + height * height


@in_own_name
def std(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DtypeLike | None = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    where: ArrayLike = True,
) -> Tensor:
    """The standard deviation, computed in `dtype`. `where` chooses elements.

    >>> ol.std([1.0, 3.0]).item()
    1.0
    """
    return _oarlock.sqrt(var(x, axis, dtype, correction=correction, keepdims=keepdims, where=where))


@in_own_name
def cumulative_sum(
    x: ArrayLike, /, axis: int | None = None, dtype: DtypeLike | None = None, *, include_initial: bool = False
) -> Tensor:
    """The cumulative sum.

    >>> ol.cumulative_sum([1, 2, 3], include_initial=True).tolist()
    [0, 1, 3, 6]
    """
    x = asarray(x)
    return _cumulative("CumSum", 0, x, axis, dtype, include_initial)


@in_own_name
def cumulative_prod(
    x: ArrayLike, /, axis: int | None = None, dtype: DtypeLike | None = None, *, include_initial: bool = False
) -> Tensor:
    """The cumulative product.

    >>> ol.cumulative_prod([1, 2, 3]).tolist()
    [1, 2, 6]
    """
    x = asarray(x)
    return _cumulative("CumProd", 1, x, axis, dtype, include_initial)


@in_own_name
def cumsum(x: ArrayLike, /, axis: int | None = None, dtype: DtypeLike | None = None) -> Tensor:
    """The cumulative sum along an axis, by default of the elements in one dimension.

    >>> ol.cumsum([1, 2, 3]).tolist()
    [1, 3, 6]
    """
    return cumulative_sum(_along(x, axis), axis, dtype)


@in_own_name
def cumprod(x: ArrayLike, /, axis: int | None = None, dtype: DtypeLike | None = None) -> Tensor:
    """The cumulative product along an axis, by default of the elements in one dimension.

    >>> ol.cumprod([1, 2, 3]).tolist()
    [1, 2, 6]
    """
    return cumulative_prod(_along(x, axis), axis, dtype)


def _along(x: ArrayLike, axis: int | None) -> Tensor:
    made = asarray(x)
    return reshape(made, (-1,)) if axis is None else made


def _cumulative(
    name: str, first: int, x: Tensor, axis: int | None, dtype: DtypeLike | None, include_initial: bool
) -> Tensor:
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"expected an axis for an array of {x.ndim} dimensions, found none")
        axis = 0
    axis = _axis(axis, x.ndim)
    x = _summands(x, dtype)
    if x.dtype not in COMPLEX:
        made = op(name, [_wide(x), asarray(axis, device=x.device)]).astype(x.dtype, copy=False)
    elif name == "CumSum":
        made = _of_parts(lambda part: op(name, [part, asarray(axis, device=x.device)]), x)
    else:
        made = _scanned(x, axis)
    if include_initial:
        shape = tuple(1 if at == axis else size for at, size in enumerate(x.shape))
        made = concat([full(shape, first, dtype=made.dtype, device=made.device), made], axis=axis)
    return made


def _scanned(x: Tensor, axis: int) -> Tensor:
    """The cumulative product of complex numbers, with distances that double."""
    front, distance = (slice(None),) * axis, 1
    while distance < x.shape[axis]:
        first, later, before = (
            x[(*front, part)] for part in (slice(distance), slice(distance, None), slice(None, -distance))
        )
        x = concat([first, later * before], axis=axis)
        distance *= 2
    return x


def _wide(x: Tensor) -> Tensor:
    """Widens narrow integers to a dtype that kernels can add."""
    wide = {
        _oarlock.int8: _oarlock.int32,
        _oarlock.int16: _oarlock.int32,
        _oarlock.uint8: _oarlock.uint32,
        _oarlock.uint16: _oarlock.uint32,
    }
    return x.astype(wide.get(x.dtype, x.dtype), copy=False)


@in_own_name
def all(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False, where: ArrayLike = True) -> Tensor:
    """Whether all elements are true or nonzero, of those that `where` chooses.

    >>> ol.all([[True, False], [True, True]], axis=1).tolist()
    [False, True]
    """
    return _truth("ReduceMin", 1, asarray(x), axis, keepdims, where)


@in_own_name
def any(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False, where: ArrayLike = True) -> Tensor:
    """Whether any element is true or nonzero, of those that `where` chooses.

    >>> ol.any([[False, False], [True, False]], axis=1).tolist()
    [False, True]
    """
    return _truth("ReduceMax", 0, asarray(x), axis, keepdims, where)


def _truth(name: str, of_none: int, x: Tensor, axis: Axes | None, keepdims: bool, where: ArrayLike) -> Tensor:
    truths = chosen(_numbers(x).astype(_oarlock.bool, copy=False), where, bool(of_none))
    axes = _axes(axis, x.ndim)
    if builtins.any(x.shape[at] == 0 for at in axes):
        return full(_reduced_shape(x, axes, keepdims), bool(of_none), device=x.device)
    return _reduced(name, truths.astype(_oarlock.uint8), axis, keepdims).astype(_oarlock.bool)


@in_own_name
def count_nonzero(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements.

    >>> ol.count_nonzero([0, 5, 6]).item()
    2
    """
    x = asarray(x)
    truths = _numbers(x).astype(_oarlock.bool, copy=False)
    return _reduced("ReduceSum", truths.astype(_oarlock.int64), axis, keepdims)


@in_own_name
def diff(
    x: ArrayLike, /, n: int = 1, axis: int = -1, *, prepend: ArrayLike | None = None, append: ArrayLike | None = None
) -> Tensor:
    """The differences of adjacent elements, taken `n` times.

    >>> ol.diff([1, 4, 9]).tolist()
    [3, 5]
    """
    x = asarray(x)
    at = _axis(axis, x.ndim)
    x = concat([_beside(x, part, at) for part in (prepend, x, append) if part is not None], axis=at)
    front = (slice(None),) * at
    if n < 0:
        raise ValueError(f"expected differences to be taken 0 times or more, found {n}")
    # Each round has one element less, and no elements have no differences.
    for _ in range(n if n < x.shape[at] else x.shape[at]):
        after, before = x[(*front, slice(1, None))], x[(*front, slice(None, -1))]
        x = after - before if x.dtype != _oarlock.bool else _oarlock.not_equal(after, before)
    return x


def _beside(x: Tensor, part: ArrayLike, axis: int) -> Tensor:
    """What is put before or behind an array; a number stands for one slice of it."""
    _, made = arrays_of(x, part, is_widened=True)
    return made if made.ndim else broadcast_to(made, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
