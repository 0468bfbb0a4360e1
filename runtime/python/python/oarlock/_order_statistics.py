"""Statistics of sorted elements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from . import _oarlock
from ._arguments import in_own_name, numbers_in
from ._kinds import FLOATS, as_floats, expect_real
from ._manipulation import broadcast_to, moveaxis
from ._oarlock import Tensor, _axes, _axis, _numbers, asarray, floor, full, isnan, logical_not, op
from ._oarlock import permute_dims, reshape, result_type
from ._search import argsort, sort, take_along_axis, where
from ._statistics import all, any, sum

if TYPE_CHECKING:
    from ._typing import ArrayLike, Axes

__all__: list[str] = [
    "argpartition",
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "partition",
    "percentile",
    "quantile",
    "topk",
]

METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


class TopK(NamedTuple):
    """The result of `topk`."""

    values: Tensor
    indices: Tensor


@in_own_name
def topk(x: ArrayLike, k: int, /, axis: int = -1, *, largest: bool = True, sorted: bool = True) -> TopK:
    """The `k` largest or smallest elements along an axis, in order, and their indices.

    >>> values, indices = ol.topk([1, 9, 5], 2)
    >>> values.tolist(), indices.tolist()
    ([9, 5], [1, 2])
    """
    x = expect_real(_numbers(asarray(x)))
    axis = _axis(axis, x.ndim)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"expected a number of 0 to {x.shape[axis]} elements, found {k}")
    whole = x.astype(_oarlock.uint8) if x.dtype == _oarlock.bool else x
    attributes = {"axis": axis, "largest": int(largest), "sorted": int(sorted)}
    values, indices = op("TopK", [whole, asarray([k], dtype=_oarlock.int64, device="cpu")], attributes, outputs=2)
    return TopK(values.astype(x.dtype, copy=False), indices)


@in_own_name
def partition(x: ArrayLike, kth: int | list[int], /, axis: int | None = -1) -> Tensor:
    """The elements along an axis in an order in which the `kth` is where sorting puts it: they are sorted.

    >>> ol.partition([3, 1, 2], 1)[1].item()
    2
    """
    return sort(_with_places(x, kth, axis), axis)


@in_own_name
def argpartition(x: ArrayLike, kth: int | list[int], /, axis: int | None = -1) -> Tensor:
    """The indices that bring the elements along an axis in the order of `partition`.

    >>> ol.argpartition([3, 1, 2], 0)[0].item()
    1
    """
    return argsort(_with_places(x, kth, axis), axis)


def _with_places(x: ArrayLike, kth: int | list[int], axis: int | None) -> Tensor:
    made = asarray(x)
    size = made.size if axis is None else made.shape[_axis(axis, made.ndim)]
    for place in numbers_in(kth):
        if not -size <= place < size:
            raise ValueError(f"expected places among {size} elements, found {place}")
    return made


@in_own_name
def quantile(
    x: ArrayLike, q: ArrayLike, /, axis: Axes | None = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """The elements below which a share of `q` of all elements along some axes lie; NaN if one of them is NaN. Several shares give
    a first axis.

    Between two elements, `method` decides: `linear`, `lower`, `higher`, `nearest` or `midpoint`.

    >>> ol.quantile([1.0, 2.0, 3.0], [0.0, 0.5]).tolist()
    [1.0, 2.0]
    """
    return _quantiles(x, q, axis, method, keepdims, skips_nan=False)


@in_own_name
def percentile(
    x: ArrayLike, q: ArrayLike, /, axis: Axes | None = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """The quantiles for shares in percent.

    >>> ol.percentile([1.0, 2.0, 3.0], 25).item()
    1.5
    """
    return _quantiles(x, _of_percent(q), axis, method, keepdims, skips_nan=False)


@in_own_name
def median(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """The middle of the sorted elements, or the mean of the two in the middle.

    >>> ol.median([1.0, 9.0, 2.0]).item()
    2.0
    """
    return _quantiles(x, 0.5, axis, "midpoint", keepdims, skips_nan=False)


@in_own_name
def nanquantile(
    x: ArrayLike, q: ArrayLike, /, axis: Axes | None = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """The quantiles of the elements that are not NaN.

    >>> ol.nanquantile([1.0, ol.nan, 3.0], 0.5).item()
    2.0
    """
    return _quantiles(x, q, axis, method, keepdims, skips_nan=True)


@in_own_name
def nanpercentile(
    x: ArrayLike, q: ArrayLike, /, axis: Axes | None = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """The quantiles of the elements that are not NaN, for shares in percent.

    >>> ol.nanpercentile([1.0, ol.nan, 3.0], 50).item()
    2.0
    """
    return _quantiles(x, _of_percent(q), axis, method, keepdims, skips_nan=True)


@in_own_name
def nanmedian(x: ArrayLike, /, axis: Axes | None = None, *, keepdims: bool = False) -> Tensor:
    """The median of the elements that are not NaN.

    >>> ol.nanmedian([1.0, ol.nan, 2.0]).item()
    1.5
    """
    return _quantiles(x, 0.5, axis, "midpoint", keepdims, skips_nan=True)


def _of_percent(q: ArrayLike) -> Tensor:
    return asarray(q, dtype=_oarlock.float64) / 100


def _quantiles(x: ArrayLike, q: ArrayLike, axis: Axes | None, method: str, keepdims: bool, *, skips_nan: bool) -> Tensor:
    if method not in METHODS:
        raise ValueError(f"expected {', '.join(f'`{name}`' for name in METHODS)} for `method`, found `{method}`")
    x = expect_real(_numbers(asarray(x)))
    shares = asarray(q, dtype=_oarlock.float64, device=x.device)
    if not bool(all((shares >= 0) & (shares <= 1))):
        raise ValueError(f"expected shares of 0 to 1, or 0 to 100 percent, found {shares.tolist()}")
    axes = _axes(axis, x.ndim)
    kept = tuple(1 if at in axes else size for at, size in enumerate(x.shape) if keepdims or at not in axes)
    # One row of sorted elements for each element of the result, and one column for each share.
    others = [at for at in range(x.ndim) if at not in axes]
    rows = permute_dims(x, (*others, *axes))
    count = math.prod(x.shape[at] for at in axes)
    rows = reshape(rows, (*(x.shape[at] for at in others), count))
    if count == 0:
        return full(shares.shape + kept, float("nan"), dtype=as_floats(x).dtype, device=x.device)
    made = _between(sort(rows), reshape(shares, (-1,)), method, skips_nan)
    return reshape(moveaxis(made, -1, 0), shares.shape + kept)


def _between(ordered: Tensor, shares: Tensor, method: str, skips_nan: bool) -> Tensor:
    """The quantiles of rows that are sorted, with NaN last."""
    is_nan = isnan(ordered) if ordered.dtype in FLOATS else None
    last = ordered.shape[-1] - 1
    lasts = asarray(last, dtype=_oarlock.float64, device=ordered.device)
    if is_nan is not None and skips_nan:
        lasts = sum(logical_not(is_nan), -1, keepdims=True).astype(_oarlock.float64) - 1
        lasts = where(lasts < 0, 0.0, lasts)
    places = broadcast_to(lasts * shares, (*ordered.shape[:-1], shares.size))
    below = floor(places)
    share = places - below
    before, behind = (
        as_floats(take_along_axis(ordered, _oarlock.minimum(place, last).astype(_oarlock.int64)))
        for place in (below, below + (share > 0).astype(places.dtype))
    )
    if method == "linear":
        # Numbers of 16 bits would round the share, and the distance, too.
        wide = result_type(before.dtype, _oarlock.float32)
        parts = (part.astype(wide, copy=False) for part in (before, behind, share))
        made = _mixed(*parts).astype(before.dtype, copy=False)
    elif method == "midpoint":
        # Neither the sum nor the difference of large numbers may be finite.
        made = where(before == behind, before, before * 0.5 + behind * 0.5)
    elif method == "nearest":
        # Of two elements at the same distance, the one at an even place.
        is_behind = (share > 0.5) | ((share == 0.5) & (_oarlock.remainder(below, 2.0) == 1.0))
        made = where(is_behind, behind, before)
    else:
        made = before if method == "lower" else behind
    if is_nan is None or skips_nan:
        return made
    return where(any(is_nan, -1, keepdims=True), float("nan"), made)


def _mixed(before: Tensor, behind: Tensor, share: Tensor) -> Tensor:
    """Numbers between two, computed from the nearer one, so that the result lies between them."""
    distance = behind - before
    from_before, from_behind = before + distance * share, behind - distance * (1 - share)
    return where(before == behind, before, where(share < 0.5, from_before, from_behind))
