"""Functions that create arrays from rules."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from . import _oarlock
from ._arguments import in_own_name
from ._creation import arange, eye, linspace, meshgrid, tril
from ._manipulation import flip, stack
from ._oarlock import Tensor, asarray, reshape, result_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._typing import ArrayLike, DeviceLike, DtypeLike

__all__: list[str] = [
    "fromfunction",
    "geomspace",
    "identity",
    "indices",
    "logspace",
    "tri",
    "vander",
]


@in_own_name
def identity(n: int, /, dtype: DtypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
    """A square matrix of zeros with ones on the diagonal."""
    return eye(n, dtype=dtype, device=device)


@in_own_name
def logspace(
    start: complex,
    stop: complex,
    /,
    num: int = 50,
    *,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: DtypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """`num` numbers from `base**start` to `base**stop`, of which each is the one before times the same factor."""
    is_complex = isinstance(start, complex) or isinstance(stop, complex)
    wide, narrow = (_oarlock.complex128, _oarlock.complex64) if is_complex else (_oarlock.float64, _oarlock.float32)
    exponents = linspace(start, stop, num, dtype=wide, device=device, endpoint=endpoint)
    made = _oarlock.pow(asarray(base, dtype=wide, device=device), exponents)
    return made.astype(narrow if dtype is None else dtype, copy=False)


@in_own_name
def geomspace(
    start: float,
    stop: float,
    /,
    num: int = 50,
    *,
    endpoint: bool = True,
    dtype: DtypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """`num` numbers from `start` to `stop`, of which each is the one before times the same factor."""
    if not start * stop > 0:
        raise ValueError(f"expected two numbers of the same sign other than 0, found {start} and {stop}")
    sign = math.copysign(1.0, start)
    made = logspace(
        math.log10(abs(start)), math.log10(abs(stop)), num, endpoint=endpoint, dtype=_oarlock.float64, device=device
    )
    # Logarithms are rounded, but the ends are exact.
    if num > 0:
        made[0] = abs(start)
    if num > 1 and endpoint:
        made[-1] = abs(stop)
    return (made * sign).astype(_oarlock.float32 if dtype is None else dtype, copy=False)


@in_own_name
def tri(
    n_rows: int,
    n_cols: int | None = None,
    /,
    k: int = 0,
    dtype: DtypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Tensor:
    """A matrix of ones up to the `k`-th diagonal and zeros above it."""
    return tril(_oarlock.ones((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype, device=device), k=k)


@in_own_name
def vander(x: ArrayLike, n: int | None = None, /, increasing: bool = False) -> Tensor:
    """The first `n` powers of each element in a row, by default as many as there are elements, from the highest to 1."""
    x = asarray(x)
    if x.ndim != 1:
        raise ValueError(f"expected a vector, found the shape {x.shape}")
    count = x.size if n is None else n
    x = x.astype(result_type(x, 1), copy=False)
    columns = [_oarlock.ones(x.shape, dtype=x.dtype, device=x.device)]
    while len(columns) < count:
        columns.append(columns[-1] * x)
    made = stack(columns[:count], 1) if count > 0 else reshape(x[:0], (x.size, 0)) if x.size == 0 else columns[0][:, None][:, :0]
    return made if increasing else flip(made, 1)


@in_own_name
def indices(
    dimensions: Sequence[int], dtype: DtypeLike | None = None, *, sparse: bool = False, device: DeviceLike | None = None
) -> Tensor | tuple[Tensor, ...]:
    """The indices of every element of a shape, along each axis, joined along a first axis. With `sparse`, a tuple of arrays that
    broadcast to them."""
    kind = _oarlock.int64 if dtype is None else dtype
    axes = [arange(size, dtype=kind, device=device) for size in dimensions]
    rank = len(axes)
    if sparse:
        return tuple(reshape(x, (1,) * at + (-1,) + (1,) * (rank - at - 1)) for at, x in enumerate(axes))
    if not axes:
        return _oarlock.zeros(0, dtype=kind, device=device)
    return stack(meshgrid(*axes, indexing="ij"))


@in_own_name
def fromfunction(
    function: Callable[..., Any],
    shape: Sequence[int],
    /,
    *,
    dtype: DtypeLike | None = None,
    device: DeviceLike | None = None,
    **more: Any,
) -> Any:
    """What a function makes of the indices of every element of a shape, given as an array for each axis."""
    kind = _oarlock.float32 if dtype is None else dtype
    made = indices(shape, kind, device=device)
    return function(*(made[at] for at in range(len(shape))), **more)
