"""Methods of arrays that choose a device or a dtype, as PyTorch's do."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from . import _oarlock
from ._arguments import in_own_name
from ._oarlock import Device, Tensor, asarray

if TYPE_CHECKING:
    from ._typing import DeviceLike, DtypeLike


@in_own_name
def to(
    x: Tensor,
    /,
    *places_and_dtypes: Any,
    device: DeviceLike | None = None,
    dtype: DtypeLike | None = None,
    copy: builtins.bool = False,
) -> Tensor:
    """The array on a device, or with a dtype, or both; without a copy if it has them already, unless `copy` is true. Another
    array stands for its device and dtype."""
    for each in places_and_dtypes:
        if isinstance(each, Tensor):
            device, dtype = each.device, each.dtype
        elif isinstance(each, Device) or (isinstance(each, str) and not _is_dtype(each)):
            device = each
        else:
            dtype = each
    made = x if dtype is None else x.astype(dtype, copy=False)
    made = made if device is None else made.to_device(device)
    return asarray(made, copy=True) if copy and made is x else made


def _is_dtype(name: str) -> builtins.bool:
    try:
        _oarlock.zeros(0, dtype=name)
    except (TypeError, ValueError):
        return False
    return True


@in_own_name
def cpu(x: Tensor, /) -> Tensor:
    """The array on the CPU."""
    return x.to_device("cpu")


@in_own_name
def cuda(x: Tensor, device: builtins.int | DeviceLike | None = None, /) -> Tensor:
    """The array on an NVIDIA GPU, by default the first."""
    return x.to_device(f"cuda:{device or 0}" if device is None or isinstance(device, builtins.int) else device)


@in_own_name
def float(x: Tensor, /) -> Tensor:
    """The array as `float32`, as in PyTorch."""
    return x.astype(_oarlock.float32, copy=False)


@in_own_name
def double(x: Tensor, /) -> Tensor:
    """The array as `float64`."""
    return x.astype(_oarlock.float64, copy=False)


@in_own_name
def half(x: Tensor, /) -> Tensor:
    """The array as `float16`."""
    return x.astype(_oarlock.float16, copy=False)


@in_own_name
def bfloat16(x: Tensor, /) -> Tensor:
    """The array as `bfloat16`."""
    return x.astype(_oarlock.bfloat16, copy=False)


@in_own_name
def int(x: Tensor, /) -> Tensor:
    """The array as `int32`, as in PyTorch."""
    return x.astype(_oarlock.int32, copy=False)


@in_own_name
def long(x: Tensor, /) -> Tensor:
    """The array as `int64`."""
    return x.astype(_oarlock.int64, copy=False)


@in_own_name
def bool(x: Tensor, /) -> Tensor:
    """The array as truth values."""
    return x.astype(_oarlock.bool, copy=False)
