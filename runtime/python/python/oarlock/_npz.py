"""Several arrays in one file, NumPy's format `.npz`."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from errno import EINVAL
from typing import IO, TYPE_CHECKING, Any

from . import _oarlock
from ._npy_format import read_array

if TYPE_CHECKING:
    from typing import Self

    from ._oarlock import Device, Tensor

BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, OverflowError, RuntimeError, ValueError, struct.error)
"""What the standard library raises for files that are no ZIP, broken, encrypted, or compressed in another way."""

HEADER = 30
"""The size of what is before the name of a file in a ZIP."""

OTHER = ("", "export a model of another library to ONNX, and load that")

OTHER_ZIPS = {
    "data.pkl": (
        "a file of PyTorch",
        "export a model by `torch.onnx.export`; write tensors by `numpy.savez(file, **{name: x.numpy() for name, x in tensors.items()})`",
    ),
    "model.weights.h5": ("a model of Keras", 'load it with Keras, and call `model.export("model.onnx", format="onnx")`'),
    ".onnx": ("an ONNX model in it", "unpack the ZIP, and load the model"),
    "[Content_Types].xml": ("a document of an office program", "read tables by `pandas.read_excel`"),
}
"""What other ZIPs are, by the end of a name in them, and what to do."""


class NpzFile(Mapping[str, "Tensor"]):
    """The arrays of a file by name; each is read when it is asked for. As a context manager, it closes the file."""

    def __init__(self, file: str | IO[bytes], device: Device | str | None = None) -> None:
        try:
            self._archive = zipfile.ZipFile(file)
        except BROKEN as error:
            what, instead = _other_zip([_start(file)])
            if what:
                again = f"write or download the file again; then {instead}"
                raise _meant(error, f"expected a whole file, found {what} that is broken", again) from None
            raise _meant(error, "expected a file in the format `.npz`, found one that is broken") from None
        self._members = {name.removesuffix(".npy"): name for name in self._archive.namelist() if name.endswith(".npy")}
        self._device = device
        self._name = self._archive.filename or "a file object"
        if not self._members and self._archive.namelist():
            names = self._archive.namelist()
            self._archive.close()
            what, instead = _other_zip(names)
            raise ValueError(f"expected a ZIP of arrays in the format `.npy`, found {what or f'`{names[0]}` in it'}\nhint: {instead}")

    @property
    def files(self) -> list[str]:
        """The names of the arrays."""
        return list(self._members)

    def close(self) -> None:
        """Closes the file. Arrays that were read stay."""
        self._archive.close()

    def __getitem__(self, name: str, /) -> Tensor:
        member = self._members.get(name, name if name in self._members.values() else None)
        if member is None:
            raise KeyError(f"expected one of {', '.join(f'`{each}`' for each in self._members) or 'no arrays'}, found `{name}`")
        if self._archive.fp is None:
            raise ValueError("expected a file that is open, found one that was closed\nhint: read the arrays before `close`")
        try:
            with self._archive.open(member) as stream:
                return read_array(stream, self._device)
        except BROKEN as error:
            raise _meant(error, f"expected the array `{name}`, found a broken part of the file") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: object, /) -> bool:
        return name in self._members or name in self._members.values()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"NpzFile({self._name!r}: {', '.join(self._members)})"


def _other_zip(names: Iterable[str]) -> tuple[str, str]:
    """What a ZIP with such names in it is, and what to do."""
    return next((told for ending, told in OTHER_ZIPS.items() if any(name.endswith(ending) for name in names)), OTHER)


def _start(file: str | IO[bytes]) -> str:
    """The name of the first file in a ZIP, which is before its content, and so in a file that was cut."""
    with open(file, "rb") if isinstance(file, str) else nullcontext(file) as stream:
        stream.seek(0)
        header = stream.read(HEADER)
        size = int.from_bytes(header[26:28], "little")
        return stream.read(size).decode("utf-8", "replace")


def _meant(error: Exception, message: str, advice: str = "") -> Exception:
    """The error with a message, unless it is one of the operating system, of a device, or already says what was expected."""
    # A place before the beginning of the file is a wrong argument for the system.
    is_own = isinstance(error, OSError) and error.errno != EINVAL or isinstance(error, _oarlock.Error)
    hint = f"\nhint: {advice}" if advice else ""
    return error if is_own or str(error).startswith("expected") else ValueError(f"{message}: {error}{hint}")
