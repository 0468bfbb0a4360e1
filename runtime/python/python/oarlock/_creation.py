"""Functions that create arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._information import isdtype
from ._oarlock import Tensor, _axis, _numbers, _steps, asarray, floor, op, permute_dims, reshape, result_type, zeros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._typing import ArrayLike, DeviceLike, DtypeLike, Number, Shape

__all__: list[str] = [
    "arange",
    "array",
    "ascontiguousarray",
    "astype",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones_like",
    "tril",
    "triu",
    "zeros_like",
]


@in_own_name
def array(
    obj: ArrayLike,
    /,
    dtype: DtypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    copy: bool | None = True,
    ndmin: int = 0,
) -> Tensor:
    """A new array of the elements, which it does not share unless `copy` allows it. It has `ndmin` axes at least, the new ones
    first.

    >>> ol.array([1, 2], dtype="float32").dtype
    oarlock.float32
    """
    made = asarray(obj, dtype=dtype, device=device, copy=copy)
    return made[(None,) * (ndmin - made.ndim)] if made.ndim < ndmin else made


@in_own_name
def astype(
    x: ArrayLike, dtype: DtypeLike, /, *, copy: bool = True, device: DeviceLike | None = None
) -> Tensor:
    """Converts an array to another dtype, on a device.

    >>> ol.astype([1.7, -1.7], ol.int32).tolist()
    [1, -1]
    """
    made = asarray(x).astype(dtype, copy=copy)
    return made if device is None else made.to_device(device)


@in_own_name
def copy(x: ArrayLike, /) -> Tensor:
    """A new array of the same elements.

    >>> ol.copy([1, 2]).tolist()
    [1, 2]
    """
    return asarray(x, copy=True)


@in_own_name
def ascontiguousarray(x: ArrayLike, /, dtype: DtypeLike | None = None) -> Tensor:
    """An array of at least one dimension whose elements lie in memory in their order, as those of every result do.

    >>> ol.ascontiguousarray([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    made = asarray(x, dtype=dtype)
    return made if made.ndim else made[None]


@in_own_name
def full(
    shape: Shape, fill_value: ArrayLike, dtype: DtypeLike | None = None, *, device: DeviceLike | None = None
) -> Tensor:
    """An array filled with a number.

    >>> ol.full((2, 2), 7)
    Tensor(shape=[2, 2], dtype=int64, place=Place(cpu:0), stop_gradient=True,
           [[7, 7],
            [7, 7]])
    """
    return _oarlock.full(shape, fill_value, dtype=dtype, device=device)


@in_own_name
def empty(shape: Shape, *sizes: Any, dtype: DtypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """An array whose elements will be written later; until then they are zeros.

    >>> ol.empty((2, 3)).shape
    (2, 3)
    """
    return zeros(shape, *sizes, dtype=dtype, device=device)


@in_own_name
def full_like(
    x: ArrayLike,
    /,
    fill_value: Number,
    dtype: DtypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    shape: Shape | None = None,
) -> Tensor:
    """An array with the shape of another, or with a given one, filled with a number.

    >>> ol.full_like([1, 2], 7).tolist()
    [7, 7]
    """
    x = asarray(x)
    return _oarlock.full(
        x.shape if shape is None else shape,
        fill_value,
        dtype=x.dtype if dtype is None else dtype,
        device=x.device if device is None else device,
    )


@in_own_name
def empty_like(
    x: ArrayLike,
    /,
    dtype: DtypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    shape: Shape | None = None,
) -> Tensor:
    """An array with the shape of another, or with a given one, whose elements will be written later; until then they are zeros.

    >>> ol.empty_like([1, 2, 3]).shape
    (3,)
    """
    return full_like(x, 0, dtype, device=device, shape=shape)


@in_own_name
def zeros_like(
    x: ArrayLike,
    /,
    dtype: DtypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    shape: Shape | None = None,
) -> Tensor:
    """An array of zeros with the shape of another, or with a given one.

    >>> ol.zeros_like([5, 6]).tolist()
    [0, 0]
    """
    return full_like(x, 0, dtype, device=device, shape=shape)


@in_own_name
def ones_like(
    x: ArrayLike,
    /,
    dtype: DtypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    shape: Shape | None = None,
) -> Tensor:
    """An array of ones with the shape of another, or with a given one.

    >>> ol.ones_like([5, 6]).tolist()
    [1, 1]
    """
    return full_like(x, 1, dtype, device=device, shape=shape)


@in_own_name
def arange(
    start: float | SupportsIndex,
    /,
    stop: float | SupportsIndex | None = None,
    step: float | SupportsIndex = 1,
    dtype: DtypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """Numbers from `start` up to but not including `stop`, spaced by `step`.

    >>> ol.arange(3)
    Tensor(shape=[3], dtype=int64, place=Place(cpu:0), stop_gradient=True,
           [0, 1, 2])
    """
    if stop is None and dtype is None and type(start) is int and step == 1:
        # The most common call.
        return _steps(max(0, start), 0, 1, device, False)
    first, last, by = map(_number, (0, start, step) if stop is None else (start, stop, step))
    if by == 0:
        raise ValueError("expected a step other than 0, found 0")
    if dtype is None:
        is_whole = all(isinstance(number, int) for number in (first, last, by))
        dtype = _oarlock.int64 if is_whole else _oarlock.float32
    count = max(0, math.ceil((last - first) / by))
    return _steps(count, first, by, device, dtype is _oarlock.float32).astype(dtype, copy=False)


def _number(given: Any) -> float:
    """A number of any library as one of Python."""
    number: float = given.item() if hasattr(given, "item") else given
    return number


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    /,
    num: int = 50,
    *,
    dtype: DtypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    axis: int = 0,
) -> Tensor: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    /,
    num: int = 50,
    *,
    dtype: DtypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
    retstep: Literal[True],
    axis: int = 0,
) -> tuple[Tensor, Any]: ...
@in_own_name
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    /,
    num: int = 50,
    *,
    dtype: DtypeLike | None = None,
    device: DeviceLike | None = None,
    endpoint: bool = True,
    retstep: bool = False,
    axis: int = 0,
) -> Tensor | tuple[Tensor, Any]:
    """`num` evenly spaced numbers; the last is `stop` unless `endpoint` is false. With `retstep`, also the distance between two.

    Between arrays, the numbers are along a new axis.

    >>> ol.linspace(0, 1, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    gaps = num - 1 if endpoint else num
    if isinstance(start, (int, float, complex)) and isinstance(stop, (int, float, complex)):
        made = _between_numbers(start, stop, num, dtype, device, endpoint)
        return (made, (stop - start) / gaps if gaps > 0 else math.nan) if retstep else made
    first, last = (_numbers(x) for x in arrays_of(start, stop, device=device))
    kind = result_type(first, last, 0.0)
    exact = result_type(kind, _oarlock.float64)
    first, last = first.astype(exact, copy=False), last.astype(exact, copy=False)
    rank = max(first.ndim, last.ndim)
    shares = _between_numbers(0.0, 1.0, num, _oarlock.float64, first.device, endpoint)
    shares = reshape(shares.astype(exact, copy=False), (num, *(1,) * rank))
    # From both ends, so that each is exact.
    made = _as_given(first * (1 - shares) + last * shares, kind if dtype is None else dtype)
    at = _axis(axis, rank + 1)
    made = permute_dims(made, (*range(1, at + 1), 0, *range(at + 1, rank + 1)))
    return (made, (last - first) / (gaps if gaps > 0 else math.nan)) if retstep else made


def _between_numbers(
    start: complex, stop: complex, num: int, dtype: DtypeLike | None, device: DeviceLike | None, endpoint: bool
) -> Tensor:
    if isinstance(start, complex) or isinstance(stop, complex):
        ends = [(complex(start).real, complex(stop).real), (complex(start).imag, complex(stop).imag)]
        parts = [_between_numbers(*each, num, _oarlock.float64, device, endpoint) for each in ends]
        made = op("Complex", parts, domain="oarlock")
        return made.astype(_oarlock.complex64 if dtype is None else dtype, copy=False)
    gaps = num - 1 if endpoint else num
    step = (stop - start) / gaps if gaps > 0 else 0.0
    wide = _oarlock.float64
    made = _steps(num, float(start), step, device)
    if endpoint and num > 1:
        made[-1] = asarray(stop, dtype=wide, device=device)
    return _as_given(made, _oarlock.float32 if dtype is None else dtype)


def _as_given(x: Tensor, dtype: DtypeLike) -> Tensor:
    """Numbers in the dtype that was given. Integers are those below."""
    kind = zeros(0, dtype=dtype).dtype
    return (floor(x) if isdtype(kind, "integral") else x).astype(kind, copy=False)


@in_own_name
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    dtype: DtypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """A matrix of zeros with ones on the `k`-th diagonal; 0 is the main one.

    >>> ol.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    width = n_rows if n_cols is None else n_cols
    # First, so that a matrix that is too large is refused before anything else takes memory.
    flat = reshape(zeros((n_rows, width), _oarlock.float32 if dtype is None else dtype, device=device), (-1,))
    first = k if k >= 0 else -k * width
    length = min(n_rows + min(k, 0), width - max(k, 0))
    if length > 0:
        flat[first : first + length * (width + 1) : width + 1] = True
    return reshape(flat, (n_rows, width))


@in_own_name
def meshgrid(*arrays: ArrayLike, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> tuple[Tensor, ...]:
    """The coordinates of every point of a grid whose axes are the arrays. With `sparse`, arrays that broadcast to them. `copy` has
    no effect.

    >>> x, y = ol.meshgrid([1, 2, 3], [4, 5])
    >>> x.tolist(), y.tolist()
    ([[1, 2, 3], [1, 2, 3]], [[4, 4, 4], [5, 5, 5]])
    """
    return _grid(tuple(x if x.ndim else x[None] for x in arrays_of(*arrays)), indexing, sparse)


def _grid(arrays: tuple[Tensor, ...], indexing: str, is_sparse: bool) -> tuple[Tensor, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError(f"expected `xy` or `ij` for `indexing`, found `{indexing}`")
    if len({x.dtype for x in arrays}) > 1:
        raise ValueError("expected arrays of one dtype, found several")
    if any(x.ndim != 1 for x in arrays):
        raise ValueError(f"expected arrays of one dimension, found shapes {', '.join(str(x.shape) for x in arrays)}")
    rank = len(arrays)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[0], order[1] = 1, 0
    sizes = [0] * rank
    for axis, x in zip(order, arrays, strict=True):
        sizes[axis] = x.size
    target = sizes_of(sizes)
    placed: list[Tensor] = []
    for axis, x in zip(order, arrays, strict=True):
        shape = [1] * rank
        shape[axis] = x.size
        beside = op("Reshape", [x, sizes_of(shape)], {"allowzero": 1})
        placed.append(beside if is_sparse else op("Expand", [beside, target]))
    return tuple(placed)


@in_own_name
def tril(x: ArrayLike, /, k: int = 0) -> Tensor:
    """Matrices with zeros above the `k`-th diagonal.

    >>> ol.tril([[1, 2], [3, 4]]).tolist()
    [[1, 0], [3, 4]]
    """
    x = asarray(x)
    return op("Trilu", [x, asarray(k, device=x.device)], {"upper": 0})


@in_own_name
def triu(x: ArrayLike, /, k: int = 0) -> Tensor:
    """Matrices with zeros below the `k`-th diagonal.

    >>> ol.triu([[1, 2], [3, 4]]).tolist()
    [[1, 2], [0, 4]]
    """
    x = asarray(x)
    return op("Trilu", [x, asarray(k, device=x.device)], {"upper": 1})


def sizes_of(sizes: Sequence[int]) -> Tensor:
    """A list of sizes as an operand of an op."""
    return asarray(list(sizes), dtype=_oarlock.int64, device="cpu")
