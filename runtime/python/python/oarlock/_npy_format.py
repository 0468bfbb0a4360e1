"""NumPy's format `.npy`: a header in plain text, and then the elements of an array."""

from __future__ import annotations

import re
import sys
from array import array
from math import prod
from typing import IO, TYPE_CHECKING, Any

from . import _oarlock
from ._files import read_bytes
from ._oarlock import Tensor, asarray, full, permute_dims, reshape, zeros

if TYPE_CHECKING:
    from ._oarlock import Device, DType

MAGIC = b"\x93NUMPY"

LONGEST_HEADER = 10000
"""No array has a longer one, as in NumPy."""

NATIVE = "<" if sys.byteorder == "little" else ">"

CODES = {
    "b1": _oarlock.bool,
    "c16": _oarlock.complex128,
    "c8": _oarlock.complex64,
    "f2": _oarlock.float16,
    "f4": _oarlock.float32,
    "f8": _oarlock.float64,
    "i1": _oarlock.int8,
    "i2": _oarlock.int16,
    "i4": _oarlock.int32,
    "i8": _oarlock.int64,
    "u1": _oarlock.uint8,
    "u2": _oarlock.uint16,
    "u4": _oarlock.uint32,
    "u8": _oarlock.uint64,
    # As `ml_dtypes` writes it, which has no code of its own.
    "V2": _oarlock.bfloat16,
}
"""The dtypes by their codes, without the order of bytes."""

FORMATS: dict[str, Any] = {
    "b1": "?",
    "f4": "f",
    "f8": "d",
    "i1": "b",
    "i2": "h",
    "i4": "i",
    "i8": "q",
    "u1": "B",
    "u2": "H",
    "u4": "I",
    "u8": "Q",
}
"""The formats of buffers for codes. Elements of the others are read as numbers of the same size, or as their parts."""

ENTRY = re.compile(
    r"""\s*(?P<quote>['"])(?P<key>descr|fortran_order|shape)(?P=quote)\s*:\s*"""
    r"""(?:(?P<mark>['"])(?P<text>[^'"\\]*)(?P=mark)|(?P<truth>True|False)|\((?P<sizes>[\d\s,L]*)\))\s*(?:,|(?=\}))"""
)

WRONG_HEADER = "expected the header of an array, with `descr`, `fortran_order` and `shape`, found"


def write_array(stream: IO[bytes], x: Tensor) -> None:
    """Writes an array in the first version of the format, byte by byte as NumPy does."""
    x = x.to_device("cpu")
    if x.dtype == _oarlock.str:
        code, content = _code_and_content_of_text(x)
    else:
        code, content = _code(x.dtype), _content(x)
    shape = f"({', '.join(map(str, x.shape))}{',' if x.ndim == 1 else ''})"
    header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}"
    # NumPy leaves space for a first axis that grows.
    header += " " * (21 - len(str(x.shape[0]))) if x.ndim else ""
    header += " " * (-(len(header) + 11) % 64) + "\n"
    stream.write(MAGIC + b"\x01\x00" + len(header).to_bytes(2, "little") + header.encode("latin1"))
    if x.size:
        # Not of an empty array, which has no address: zlib would begin its sum of the bytes anew.
        stream.write(content)


def read_array(stream: IO[bytes], device: Device | str | None = None) -> Tensor:
    """Reads an array, in any version of the format and any order of axes and bytes."""
    descr, is_reversed, shape = _header(stream)
    order, code = (descr[:1], descr[1:]) if descr[:1] in ("<", ">", "|", "=") else ("=", descr)
    is_swapped = order in "<>" and order != NATIVE
    if code[:1] == "U" and code[1:].isdecimal():
        x = _text(stream, int(code[1:]), shape, "utf-32-be" if is_swapped == (NATIVE == "<") else "utf-32-le")
    elif code in CODES:
        x = _numbers(stream, code, shape, is_swapped)
    else:
        raise TypeError(_refusal(descr))
    if is_reversed and x.ndim > 1:
        x = permute_dims(reshape(x, shape[::-1]), tuple(range(len(shape)))[::-1])
    return x if device is None else x.to_device(device)


def _header(stream: IO[bytes]) -> tuple[str, bool, tuple[int, ...]]:
    """The description of the dtype, whether the first axis is that of neighbors, and the shape."""
    start = read_bytes(stream, 8, "the start of an array")
    if bytes(start[:6]) != MAGIC:
        raise ValueError(f"expected the start `\\x93NUMPY` of an array, found {bytes(start[:6])!r}")
    if start[6] not in (1, 2, 3):
        raise ValueError(f"expected a version of the format from 1 to 3, found {start[6]}")
    length = int.from_bytes(read_bytes(stream, 2 if start[6] == 1 else 4, "the size of a header"), "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"expected a header of at most {LONGEST_HEADER} bytes, found {length}")
    text = read_bytes(stream, length, "a header").decode("utf-8" if start[6] == 3 else "latin1", "replace").strip()
    if re.search(r"""['"]descr['"]\s*:\s*[\[(]""", text):
        raise TypeError("expected elements of one dtype, found several fields\nhint: save each field as an array with NumPy")
    found: dict[str, Any] = {}
    at = 1 if text.startswith("{") else len(text)
    while entry := ENTRY.match(text, at):
        values = [entry["text"], entry["truth"], entry["sizes"]]
        found[entry["key"]] = next((each for each in values if each is not None), None)
        at = entry.end()
    sizes = [size.strip().rstrip("L") for size in str(found.get("shape")).split(",")]
    sizes = sizes if sizes[-1] else sizes[:-1]
    if text[at:].strip() != "}" or len(found) != 3 or found["fortran_order"] not in ("True", "False"):
        raise ValueError(f"{WRONG_HEADER} {text[:200]!r}")
    if not all(size.isdecimal() for size in sizes) or prod(shape := tuple(int(size) for size in sizes)) >= 1 << 62:
        raise ValueError(f"expected a shape that memory has, found ({found['shape'][:200]})")
    return found["descr"], found["fortran_order"] == "True", shape


def _numbers(stream: IO[bytes], code: str, shape: tuple[int, ...], is_swapped: bool) -> Tensor:
    """The elements in the order of the file."""
    dtype, count = CODES[code], prod(shape)
    content = read_bytes(stream, count * dtype.itemsize, f"elements of the shape {shape}")
    if not count:
        return zeros(shape, dtype=dtype, device="cpu")
    is_complex = code[0] == "c"
    # The name of an unsigned number of the size of each element, or of each part of a complex one.
    width = dtype.itemsize // 2 if is_complex else dtype.itemsize
    if is_swapped and width > 1:
        swapped = array({2: "H", 4: "I", 8: "Q"}[width], bytes(content))
        swapped.byteswap()
        content = bytearray(swapped.tobytes())
    if is_complex:
        parts = asarray(memoryview(content).cast("f" if width == 4 else "d"), device="cpu")
        return _oarlock._of_parts(reshape(parts, (*shape, 2)))
    if code == "b1":
        # A byte that is neither 0 nor 1 is true, as in NumPy.
        return reshape(asarray(memoryview(content), device="cpu"), shape) != 0
    x = asarray(memoryview(content).cast(FORMATS.get(code, "H")), device="cpu")
    return reshape(x if code in FORMATS else x.view(dtype), shape)


def _text(stream: IO[bytes], width: int, shape: tuple[int, ...], encoding: str) -> Tensor:
    """Text, of which each element has the same width, with zeros at its end."""
    count = prod(shape)
    content = read_bytes(stream, 4 * width * count, f"text of the shape {shape}")
    if not count:
        return full(shape, "", device="cpu")
    try:
        texts = [content[at : at + 4 * width].decode(encoding).rstrip("\0") for at in range(0, len(content), 4 * width)]
    except UnicodeDecodeError as error:
        raise ValueError(f"expected text, found {error.object[error.start : error.end].hex()}") from None
    return reshape(asarray(texts if width else [""] * count, device="cpu"), shape)


def _code(dtype: DType) -> str:
    """The code of a dtype, with the order of bytes."""
    code = next((code for code, each in CODES.items() if each == dtype), None)
    if code is None:
        raise TypeError(f"expected a dtype that NumPy's format has, found {dtype.name}\nhint: convert it with `astype` first")
    return ("|" if dtype.itemsize == 1 else NATIVE) + code


def _content(x: Tensor) -> memoryview | bytes:
    """The elements in their order, without a copy if they are in it."""
    view = memoryview(x.view("uint16") if x.dtype == _oarlock.bfloat16 else x)
    return view if view.c_contiguous else view.tobytes()


def _code_and_content_of_text(x: Tensor) -> tuple[str, memoryview | bytes]:
    """The code and the elements of text, each as wide as the longest."""
    texts: list[str] = reshape(x, (-1,)).tolist()
    width = max(map(len, texts), default=0) or 1
    encoding = "utf-32-le" if NATIVE == "<" else "utf-32-be"
    return f"{NATIVE}U{width}", b"".join(text.ljust(width, "\0").encode(encoding) for text in texts)


def _refusal(descr: str) -> str:
    """Why a dtype is refused."""
    if "O" in descr:
        return (
            "expected numbers or text, found pickled objects, which may run any code\n"
            "hint: if you trust the file, read it with `numpy.load(…, allow_pickle=True)`, and save the numbers in it"
        )
    return f"expected a dtype of numbers or text, found `{descr[:50]}`\nhint: convert the array with NumPy and save it again"
