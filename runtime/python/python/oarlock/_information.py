"""Information about dtypes and the namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _oarlock
from ._oarlock import Device, DType, Tensor, asarray, devices

if TYPE_CHECKING:
    from ._typing import DtypeLike

__all__: list[str] = ["__array_namespace_info__", "can_cast", "finfo", "iinfo", "isdtype", "promote_types"]

_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
# Beyond the standard: these are floats too.
_OTHER_FLOATS = ("float16", "bfloat16")

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}

_FLOATS = {
    # bits, eps, max, smallest_normal
    "float16": (16, 2.0**-10, 65504.0, 2.0**-14),
    "bfloat16": (16, 2.0**-7, 3.3895313892515355e38, 2.0**-126),
    "float32": (32, 2.0**-23, 3.4028234663852886e38, 2.0**-126),
    "float64": (64, 2.0**-52, 1.7976931348623157e308, 2.0**-1022),
}


class finfo_object(NamedTuple):
    """The limits of a floating-point dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType

    @property
    def tiny(self) -> float:
        """Another name of `smallest_normal`."""
        return self.smallest_normal


class iinfo_object(NamedTuple):
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def dtype_of(of: Any) -> DType:
    """A dtype from a dtype, its name or an array."""
    if isinstance(of, Tensor):
        return of.dtype
    return of if isinstance(of, DType) else asarray(0, dtype=of).dtype


def finfo(type: Any, /) -> finfo_object:
    """The limits of a floating-point dtype; for complex numbers, of their parts.

    >>> ol.finfo(ol.float32).bits
    32
    """
    dtype = dtype_of(type)
    parts = {"complex64": _oarlock.float32, "complex128": _oarlock.float64}.get(dtype.name, dtype)
    if parts.name not in _FLOATS:
        raise ValueError(f"expected a dtype of floats, found {dtype}")
    bits, eps, largest, smallest = _FLOATS[parts.name]
    return finfo_object(bits, eps, largest, -largest, smallest, parts)


def iinfo(type: Any, /) -> iinfo_object:
    """The limits of an integer dtype.

    >>> ol.iinfo(ol.int8).max
    127
    """
    dtype = dtype_of(type)
    if dtype.name not in _SIGNED + _UNSIGNED:
        raise ValueError(f"expected a dtype of integers, found {dtype}")
    bits = dtype.itemsize * 8
    if dtype.name in _SIGNED:
        return iinfo_object(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), dtype)
    return iinfo_object(bits, 2**bits - 1, 0, dtype)


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """Whether a dtype equals another, or is of a kind such as `"real floating"`.

    >>> ol.isdtype(ol.float32, "real floating")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, DType):
        return dtype == kind
    if kind not in _KINDS:
        raise ValueError(f"expected a kind of dtypes ({', '.join(_KINDS)}), found `{kind}`")
    of_floats = _OTHER_FLOATS if kind in ("real floating", "numeric") else ()
    return dtype.name in _KINDS[kind] + of_floats


def can_cast(from_: DType | Tensor, to: DType, /) -> bool:
    """Whether promotion can convert one dtype to another.

    >>> ol.can_cast(ol.int32, ol.int64), ol.can_cast(ol.float64, ol.float32)
    (True, False)
    """
    try:
        return _oarlock.result_type(dtype_of(from_), to) == to
    except TypeError:
        return False


def promote_types(first: DtypeLike, second: DtypeLike, /) -> DType:
    """The dtype that two dtypes promote to.

    >>> ol.promote_types(ol.int8, ol.float32)
    oarlock.float32
    """
    return _oarlock.result_type(*(_oarlock.zeros(0, dtype=dtype).dtype for dtype in (first, second)))


class Info:
    """The inspection interface of the array API standard."""

    def capabilities(self) -> dict[str, Any]:
        """Which optional parts of the standard are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> Device:
        """The default device."""
        return _oarlock.default_device()

    def default_dtypes(self, *, device: Device | None = None) -> dict[str, DType]:
        """The dtypes of Python numbers."""
        return {
            "real floating": _oarlock.float32,
            "complex floating": _oarlock.complex64,
            "integral": _oarlock.int64,
            "indexing": _oarlock.int64,
        }

    def devices(self) -> tuple[Device, ...]:
        """All devices."""
        return tuple(devices())

    def dtypes(
        self, *, device: Device | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The dtypes of the standard, or of some kinds."""
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        found: dict[str, DType] = {}
        for one in kinds:
            if one not in _KINDS:
                raise ValueError(f"expected a kind of dtypes ({', '.join(_KINDS)}), found `{one}`")
            for name in _KINDS[one]:
                found[name] = getattr(_oarlock, name)
        return found


def __array_namespace_info__() -> Info:
    """The inspection interface of the array API standard.

    >>> ol.__array_namespace_info__().default_dtypes()["real floating"]
    oarlock.float32
    """
    return Info()
