"""Functions that choose elements, and that compute with indices."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING, Any

from . import _oarlock
from ._arguments import arrays_of, in_own_name, numbers_in
from ._creation import arange
from ._kinds import whole_numbers
from ._manipulation import broadcast_arrays, broadcast_to, moveaxis, stack
from ._oarlock import Tensor, _axis, asarray, reshape, result_type, zeros
from ._search import argsort, inside, nonzero, take, take_along_axis, where
from ._shapes import has_first_axis_last
from ._statistics import any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ._typing import ArrayLike, DeviceLike, Shape

__all__: list[str] = [
    "apply_along_axis",
    "argwhere",
    "choose",
    "compress",
    "diag_indices",
    "extract",
    "flatnonzero",
    "ix_",
    "lexsort",
    "ndenumerate",
    "ndindex",
    "piecewise",
    "ravel_multi_index",
    "select",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
    "unravel_index",
]


@in_own_name
def argwhere(x: ArrayLike, /) -> Tensor:
    """The indices of nonzero elements, a row for each.

    >>> ol.argwhere([[0, 1], [1, 0]]).tolist()
    [[0, 1], [1, 0]]
    """
    x = asarray(x)
    if x.ndim == 0:
        return zeros((int(bool(x)), 0), dtype=_oarlock.int64, device=x.device)
    return stack(nonzero(x), 1)


@in_own_name
def flatnonzero(x: ArrayLike, /) -> Tensor:
    """The indices of nonzero elements among all in one dimension.

    >>> ol.flatnonzero([[0, 1], [1, 0]]).tolist()
    [1, 2]
    """
    return nonzero(reshape(asarray(x), (-1,)))[0]


@in_own_name
def compress(condition: ArrayLike, x: ArrayLike, /, axis: int | None = None) -> Tensor:
    """The slices of an axis for which a condition is true; without an axis, of the elements in one dimension.

    >>> ol.compress([True, False, True], [1, 2, 3]).tolist()
    [1, 3]
    """
    chosen, x = asarray(condition), asarray(x)
    if chosen.ndim != 1:
        raise ValueError(f"expected a vector as condition, found the shape {chosen.shape}")
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    return take(x, flatnonzero(chosen), axis)


@in_own_name
def extract(condition: ArrayLike, x: ArrayLike, /) -> Tensor:
    """The elements for which a condition is true, in one dimension.

    >>> ol.extract([True, False, True], [1, 2, 3]).tolist()
    [1, 3]
    """
    return compress(reshape(asarray(condition), (-1,)), x)


@in_own_name
def choose(x: ArrayLike, choices: Sequence[ArrayLike], /, mode: str = "raise") -> Tensor:
    """Elements of several arrays: each is that of the array whose number stands at its place. Numbers beyond the arrays are an
    error, or count from the start (`wrap`), or are the first or last (`clip`).

    >>> ol.choose([0, 1, 0], [[1, 2, 3], [10, 20, 30]]).tolist()
    [1, 20, 3]
    """
    number = asarray(x)
    number = whole_numbers(number.astype(_oarlock.int64) if number.dtype == _oarlock.bool else number)
    number, *made = broadcast_arrays(number, *arrays_of(*choices))
    if mode == "raise" and bool(any((number < 0) | (number >= len(made)))):
        raise ValueError(f"expected numbers of 0 to before {len(made)}, found others\nhint: `mode` may be `wrap` or `clip`")
    if mode != "raise":
        number = inside(number, len(made), mode)
    return take_along_axis(stack(made), number[None], 0)[0]


@in_own_name
def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], /, default: ArrayLike = 0) -> Tensor:
    """Elements of the first array whose condition is true, or the default.

    >>> ol.select([[True, False], [False, False]], [[1, 2], [3, 4]], default=9).tolist()
    [1, 9]
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(f"expected as many conditions as arrays, found {len(condlist)} and {len(choicelist)}")
    *choices, made = arrays_of(*choicelist, default)
    dtype = result_type(*choices, made)
    made = made.astype(dtype, copy=False)
    for condition, choice in zip(reversed(condlist), reversed(choices), strict=True):
        made = where(condition, choice, made)
    return made


@in_own_name
def piecewise(
    x: ArrayLike,
    condlist: ArrayLike | Sequence[ArrayLike],
    funclist: Sequence[Callable[..., Any] | complex],
    /,
    *more: Any,
    **named: Any,
) -> Tensor:
    """What the function, or the number, of the last true condition is for each element. One more than conditions is for elements
    without a true one, by default 0.

    >>> ol.piecewise([-1.0, 2.0], [[True, False], [False, True]], [0, lambda x: x * 10]).tolist()
    [0.0, 20.0]
    """
    x = asarray(x)
    several = isinstance(condlist, (list, tuple)) and (not condlist or not isinstance(condlist[0], (bool, int)))
    conditions = [asarray(each, device=x.device) for each in (condlist if several else [condlist])]  # type: ignore[union-attr]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"expected a function for each of {len(conditions)} conditions, found {len(funclist)}")
    made = zeros(x.shape, dtype=x.dtype, device=x.device)
    pieces = [
        (each(x, *more, **named) if callable(each) else each) for each in funclist
    ]
    if len(pieces) > len(conditions):
        made = broadcast_to(asarray(pieces[-1], device=x.device), x.shape).astype(x.dtype)
    for condition, piece in zip(conditions, pieces, strict=False):
        made = where(condition, asarray(piece, device=x.device).astype(x.dtype), made)
    return made


@in_own_name
def lexsort(keys: Sequence[ArrayLike] | Tensor, /, axis: int = -1) -> Tensor:
    """The indices that sort by several keys along an axis; the last key counts first.

    >>> ol.lexsort([[1, 0, 1], [2, 2, 1]]).tolist()
    [2, 1, 0]
    """
    first, *others = arrays_of(*keys)
    order = argsort(first, axis)
    for key in others:
        order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis), axis)
    return order


@in_own_name
def ix_(*vectors: ArrayLike) -> tuple[Tensor, ...]:
    """Indices for each axis that broadcast to a grid: `x[ix_(rows, columns)]`. Truth values stand for indices of true ones.

    >>> ol.arange(9).reshape(3, 3)[ol.ix_([0, 2], [0, 1])].tolist()
    [[0, 1], [6, 7]]
    """
    made = list[Tensor]()
    for at, each in enumerate(vectors):
        x = asarray(each)
        if x.ndim != 1:
            raise ValueError(f"expected vectors of indices, found the shape {x.shape}")
        x = nonzero(x)[0] if x.dtype == _oarlock.bool else x if x.size else x.astype(_oarlock.int64)
        made.append(reshape(x, (1,) * at + (-1,) + (1,) * (len(vectors) - at - 1)))
    return tuple(made)


@in_own_name
def unravel_index(indices: ArrayLike, shape: int | Sequence[int], /, order: str = "C") -> tuple[Tensor, ...]:
    """The indices along each axis of a shape, of elements given by their index among all, row by row, or column by column with the
    order `F`.

    >>> [each.tolist() for each in ol.unravel_index([2, 3], (2, 3))]
    [[0, 1], [2, 0]]
    """
    sizes = numbers_in(shape)
    if has_first_axis_last(order):
        return unravel_index(indices, sizes[::-1])[::-1]
    rest = whole_numbers(asarray(indices))
    count = math.prod(sizes)
    if bool(any((rest < 0) | (rest >= count))):
        raise ValueError(f"expected indices of 0 to before {count}, found others")
    made = list[Tensor]()
    for size in reversed(sizes):
        made.insert(0, rest % size)
        rest = rest // size
    return tuple(made)


@in_own_name
def ravel_multi_index(
    multi_index: Sequence[ArrayLike], dims: Sequence[int], /, mode: str = "raise", order: str = "C"
) -> Tensor:
    """The index among all elements of a shape, row by row, or column by column with the order `F`, of elements given by their indices
    along each axis. Those beyond the shape are treated as by `take`.

    >>> ol.ravel_multi_index(([0, 1], [2, 0]), (2, 3)).tolist()
    [2, 3]
    """
    if len(multi_index) != len(dims):
        raise ValueError(f"expected indices for each of {len(dims)} axes, found {len(multi_index)}")
    if has_first_axis_last(order):
        multi_index, dims = multi_index[::-1], dims[::-1]
    made: Tensor | None = None
    for each, size in zip(multi_index, dims, strict=True):
        places = whole_numbers(asarray(each))
        if mode != "raise":
            places = inside(places, size, mode)
        elif bool(any((places < 0) | (places >= size))):
            raise ValueError(f"expected indices of 0 to before {size}, found others")
        made = places if made is None else made * size + places
    return asarray(0) if made is None else made


@in_own_name
def apply_along_axis(function: Callable[..., Any], axis: int, x: ArrayLike, /, *more: Any, **named: Any) -> Tensor:
    """What a function makes of each vector along an axis. Its result takes the place of the axis.

    >>> ol.apply_along_axis(ol.sum, 1, [[1, 2], [3, 4]]).tolist()
    [3, 7]
    """
    x = asarray(x)
    axis = _axis(axis, x.ndim)
    last = moveaxis(x, axis, -1)
    rows = reshape(last, (-1, x.shape[axis]))
    if rows.shape[0] == 0:
        raise ValueError(f"expected vectors to apply a function to, found none in the shape {x.shape}")
    made = stack([asarray(function(rows[at], *more, **named)) for at in range(rows.shape[0])])
    whole = reshape(made, last.shape[:-1] + made.shape[1:])
    # The axes of a result stand where the axis was.
    count = made.ndim - 1
    return moveaxis(whole, tuple(range(whole.ndim - count, whole.ndim)), tuple(range(axis, axis + count)))


@in_own_name
def diag_indices(n: int, /, ndim: int = 2, *, device: DeviceLike | None = None) -> tuple[Tensor, ...]:
    """The indices of the diagonal of an array of `ndim` dimensions of size `n`.

    >>> x = ol.zeros((2, 2))
    >>> x[ol.diag_indices(2)] = [1, 2]
    >>> x.tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """
    return (arange(n, device=device),) * ndim


@in_own_name
def tril_indices(n: int, /, k: int = 0, m: int | None = None, *, device: DeviceLike | None = None) -> tuple[Tensor, ...]:
    """The indices of the elements of a matrix with `n` rows and `m` columns up to its `k`-th diagonal.

    >>> [x.tolist() for x in ol.tril_indices(2)]
    [[0, 1, 1], [0, 0, 1]]
    """
    return nonzero(_is_below(n, n if m is None else m, k, device))


@in_own_name
def triu_indices(n: int, /, k: int = 0, m: int | None = None, *, device: DeviceLike | None = None) -> tuple[Tensor, ...]:
    """The indices of the elements of a matrix with `n` rows and `m` columns from its `k`-th diagonal on.

    >>> [x.tolist() for x in ol.triu_indices(2)]
    [[0, 0, 1], [0, 1, 1]]
    """
    return nonzero(_oarlock.logical_not(_is_below(n, n if m is None else m, k - 1, device)))


@in_own_name
def tril_indices_from(x: ArrayLike, /, k: int = 0) -> tuple[Tensor, ...]:
    """The indices of the elements of a matrix up to its `k`-th diagonal.

    >>> [x.tolist() for x in ol.tril_indices_from([[1, 2], [3, 4]])]
    [[0, 1, 1], [0, 0, 1]]
    """
    made = asarray(x)
    return nonzero(_is_below(*_sizes(made), k, made.device))


@in_own_name
def triu_indices_from(x: ArrayLike, /, k: int = 0) -> tuple[Tensor, ...]:
    """The indices of the elements of a matrix from its `k`-th diagonal on.

    >>> [x.tolist() for x in ol.triu_indices_from([[1, 2], [3, 4]])]
    [[0, 0, 1], [0, 1, 1]]
    """
    made = asarray(x)
    return nonzero(_oarlock.logical_not(_is_below(*_sizes(made), k - 1, made.device)))


def _is_below(rows: int, columns: int, k: int, device: DeviceLike | None) -> Tensor:
    """Whether each place of a matrix is on its `k`-th diagonal or below."""
    return arange(columns, device=device) <= arange(k, rows + k, device=device)[:, None]


def _sizes(x: Tensor) -> tuple[int, int]:
    if x.ndim != 2:
        raise ValueError(f"expected a matrix, found the shape {x.shape}")
    rows, columns = x.shape
    return rows, columns


@in_own_name
def ndindex(*shape: Shape) -> Iterator[tuple[int, ...]]:
    """The indices of all elements of an array of a shape, as tuples.

    >>> list(ol.ndindex(2, 2))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    sizes = numbers_in(shape[0] if len(shape) == 1 else shape)
    return product(*map(range, sizes))


@in_own_name
def ndenumerate(x: ArrayLike, /) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """The indices and the elements of an array, each as an array without dimensions.

    >>> [(at, element.item()) for at, element in ol.ndenumerate([[1, 2]])]
    [((0, 0), 1), ((0, 1), 2)]
    """
    made = asarray(x)
    return zip(ndindex(made.shape), reshape(made, (-1,)), strict=True)
