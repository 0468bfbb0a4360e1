"""Statistics of the elements that are not NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._arguments import in_own_name
from ._kinds import COMPLEX, FLOATS
from ._oarlock import Tensor, asarray, isnan, logical_not, sqrt
from ._search import argmax, argmin
from ._search import where as where_
from ._statistics import all, any, chosen, count_chosen, cumprod, cumsum, fractions_of, max, mean, min, prod, sum, var

if TYPE_CHECKING:
    from ._typing import ArrayLike, Axes, DtypeLike, Number

__all__: list[str] = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


def _replaced(x: Tensor, number: float) -> Tensor:
    """The array with a number in place of NaN."""
    return where_(isnan(x), number, x) if x.dtype in FLOATS + COMPLEX else x


@in_own_name
def nansum(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DtypeLike | None = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: ArrayLike = True,
) -> Tensor:
    """The sum of the elements that are not NaN, and of `initial`. `where` chooses elements.

    >>> ol.nansum([ol.nan, 1.0, 3.0]).item()
    4.0
    """
    return sum(_replaced(asarray(x), 0.0), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@in_own_name
def nanprod(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DtypeLike | None = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: ArrayLike = True,
) -> Tensor:
    """The product of the elements that are not NaN, and of `initial`. `where` chooses elements.

    >>> ol.nanprod([ol.nan, 2.0, 3.0]).item()
    6.0
    """
    return prod(_replaced(asarray(x), 1.0), axis, dtype, keepdims=keepdims, initial=initial, where=where)


@in_own_name
def nancumsum(x: ArrayLike, /, axis: int | None = None, dtype: DtypeLike | None = None) -> Tensor:
    """The cumulative sum along an axis, in which NaN counts as 0, by default of the elements in one dimension.

    >>> ol.nancumsum([1.0, ol.nan, 3.0]).tolist()
    [1.0, 1.0, 4.0]
    """
    return cumsum(_replaced(asarray(x), 0.0), axis, dtype)


@in_own_name
def nancumprod(x: ArrayLike, /, axis: int | None = None, dtype: DtypeLike | None = None) -> Tensor:
    """The cumulative product along an axis, in which NaN counts as 1, by default of the elements in one dimension.

    >>> ol.nancumprod([2.0, ol.nan, 3.0]).tolist()
    [2.0, 2.0, 6.0]
    """
    return cumprod(_replaced(asarray(x), 1.0), axis, dtype)


@in_own_name
def nanmax(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: ArrayLike = True,
) -> Tensor:
    """The maximum of the elements that are not NaN; NaN if there is nothing but NaN. `initial` counts too, and `where` chooses elements.

    >>> ol.nanmax([ol.nan, 1.0, 3.0]).item()
    3.0
    """
    x = asarray(x)
    made = max(_replaced(x, -float("inf")), axis, keepdims=keepdims, initial=initial, where=where)
    if x.dtype not in FLOATS + COMPLEX or initial is not None:
        return made
    return where_(all(isnan(x), axis, keepdims=keepdims), float("nan"), made)


@in_own_name
def nanmin(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    *,
    keepdims: bool = False,
    initial: Number | None = None,
    where: ArrayLike = True,
) -> Tensor:
    """The minimum of the elements that are not NaN; NaN if there is nothing but NaN. `initial` counts too, and `where` chooses elements.

    >>> ol.nanmin([ol.nan, 1.0, 3.0]).item()
    1.0
    """
    x = asarray(x)
    made = min(_replaced(x, float("inf")), axis, keepdims=keepdims, initial=initial, where=where)
    if x.dtype not in FLOATS + COMPLEX or initial is not None:
        return made
    return where_(all(isnan(x), axis, keepdims=keepdims), float("nan"), made)


@in_own_name
def nanargmax(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the first maximum; NaN does not count.

    >>> ol.nanargmax([ol.nan, 1.0, 3.0]).item()
    2
    """
    x = _with_numbers(x, axis)
    return argmax(_replaced(x, -float("inf")), axis, keepdims=keepdims)


@in_own_name
def nanargmin(x: ArrayLike, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the first minimum; NaN does not count.

    >>> ol.nanargmin([ol.nan, 1.0, 3.0]).item()
    1
    """
    x = _with_numbers(x, axis)
    return argmin(_replaced(x, float("inf")), axis, keepdims=keepdims)


def _with_numbers(x: ArrayLike, axis: int | None) -> Tensor:
    made = asarray(x)
    if made.dtype in FLOATS + COMPLEX and any(all(isnan(made), axis)):
        raise ValueError("expected a number among the elements to compare, found nothing but NaN")
    return made


@in_own_name
def nanmean(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DtypeLike | None = None,
    *,
    keepdims: bool = False,
    where: ArrayLike = True,
) -> Tensor:
    """The arithmetic mean of the elements that are not NaN; NaN if there is nothing but NaN. `where` chooses elements.

    >>> ol.nanmean([ol.nan, 1.0, 3.0]).item()
    2.0
    """
    x = fractions_of(asarray(x), dtype)
    return mean(x, axis, keepdims=keepdims, where=_numbers_among(x, where))


def _numbers_among(x: Tensor, where: ArrayLike) -> Tensor:
    """Which elements are numbers, of those that `where` chooses."""
    return chosen(logical_not(isnan(x)), where, False)


@in_own_name
def nanvar(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DtypeLike | None = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    where: ArrayLike = True,
) -> Tensor:
    """The variance of the elements that are not NaN. `correction` is subtracted from the number of elements, which
    `where` chooses.

    >>> ol.nanvar([ol.nan, 1.0, 3.0]).item()
    1.0
    """
    x = fractions_of(asarray(x), dtype)
    numbers = _numbers_among(x, where)
    made = var(x, axis, correction=correction, keepdims=keepdims, where=numbers)
    return where_(count_chosen(x, axis, keepdims, numbers) <= correction, float("nan"), made)


@in_own_name
def nanstd(
    x: ArrayLike,
    /,
    axis: Axes | None = None,
    dtype: DtypeLike | None = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    where: ArrayLike = True,
) -> Tensor:
    """The standard deviation of the elements that are not NaN. `correction` is subtracted from the number of elements, which
    `where` chooses.

    >>> ol.nanstd([ol.nan, 1.0, 3.0]).item()
    1.0
    """
    return sqrt(nanvar(x, axis, dtype, correction=correction, keepdims=keepdims, where=where))
