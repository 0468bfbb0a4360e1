"""Models and arrays from files."""

from __future__ import annotations

from contextlib import nullcontext
from io import BytesIO, TextIOBase
from os import PathLike, fsdecode
from typing import IO, TYPE_CHECKING, Any, overload

from ._model import Session
from ._npy_format import MAGIC, read_array
from ._npz import NpzFile
from ._oarlock import Device, float32
from ._progress import progress_function

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._oarlock import DType
    from ._progress import ProgressFunction
    from ._typing import HasSerializeToString

    File = str | PathLike[str] | bytes | bytearray | memoryview | IO[bytes]
    Progress = bool | ProgressFunction | None
    Devices = Device | str | Sequence[Device | str] | None

__all__: list[str] = ["load"]

ZIP = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of a ZIP, and of one without members."""

OF_TABLES = {
    ".csv": 'oarlock.loadtxt(file, delimiter=",")',
    ".dat": "oarlock.loadtxt(file)",
    ".mat": "oarlock.asarray(scipy.io.loadmat(file)[name])",
    ".parquet": "oarlock.asarray(pandas.read_parquet(file).to_numpy())",
    ".tsv": 'oarlock.loadtxt(file, delimiter="\\t")',
    ".txt": "oarlock.loadtxt(file)",
}
"""What reads files of numbers that are no models, by the ends of their names."""


# Which of a model and arrays a file has, its name does not tell type checkers; what is given with it may.
@overload
def load(
    file: HasSerializeToString,
    /,
    *,
    device: Devices = None,
    precision: DType = float32,
    fallback: str | None = None,
    progress: Progress = None,
) -> Session: ...
@overload
def load(
    file: File, /, *, device: Devices = None, precision: DType, fallback: str | None = None, progress: Progress = None
) -> Session: ...
@overload
def load(
    file: File, /, *, device: Devices = None, precision: DType = float32, fallback: str, progress: Progress = None
) -> Session: ...
@overload
def load(
    file: File,
    /,
    mmap_mode: None = None,
    allow_pickle: bool = False,
    *,
    device: Devices = None,
    precision: DType = float32,
    fallback: str | None = None,
    progress: Progress = None,
) -> Any: ...
def load(
    file: File | HasSerializeToString,
    /,
    mmap_mode: None = None,
    allow_pickle: bool = False,
    *,
    device: Devices = None,
    precision: DType = float32,
    fallback: str | None = None,
    progress: Progress = None,
) -> Any:
    """Loads a model or arrays from a file, its bytes, or an object to read from.

    From a file of ONNX, or a Paddle `.pdmodel` with its parameters beside it, it makes a `Session`; a `ModelProto` of the package
    `onnx` is understood too. Call the model with arrays, of Oarlock or of another library, in the order of its inputs; `run`
    takes and returns them by name. With `precision=bfloat16`, matrix products and convolutions may round their operands to
    bfloat16 if that is faster.

    With several devices, each node runs on the first one that has a kernel for it. If none has, it falls back to the CPU. This
    raises a `FallbackWarning` unless the CPU is one of the devices; with `fallback="error"`, the run fails instead.

    Work that takes longer than a second shows a bar in a terminal or a notebook: when the model is read, and when a run with inputs
    of new shapes prepares its kernels. With `progress=False` it does not. A function is called with what is done, all there is to
    do, and `"reading"` or `"preparing kernels"`.

    From a file of NumPy's format `.npy`, it makes the array on the device, and from one of `.npz` a mapping of names to arrays,
    which reads each when it is asked for and closes the file as a context manager. Pickled objects are refused, whatever
    `allow_pickle` says.

    >>> ol.load("docs/src/models/digits.onnx").outputs
    [Slot("probabilities", float32[batch, 10])]
    """
    if mmap_mode is not None:
        raise ValueError(
            f"`load` expected no `mmap_mode`, found {mmap_mode!r}\n"
            "hint: `oarlock.asarray(numpy.load(…, mmap_mode=…))` shares the memory of a mapped file"
        )
    source = _source(file)
    start = _start(source)
    if start == MAGIC:
        with open(source, "rb") if isinstance(source, str) else nullcontext(source) as stream:
            return read_array(stream, _one_of(device))
    if start.startswith(ZIP):
        return NpzFile(source, _one_of(device))
    model = source if isinstance(source, str) else source.read()
    told = progress_function(progress)
    try:
        return Session(model, device=device, precision=precision, fallback=fallback, progress=told)
    except ValueError as error:
        ending, reader = next(((each, reader) for each, reader in OF_TABLES.items() if _ends_in(source, each)), ("", ""))
        if not ending:
            raise
        message = str(error).partition("\n")[0]
        raise ValueError(f"{message}\nhint: `{reader}` reads the numbers in a file whose name ends in `{ending}`") from None


def _ends_in(source: str | IO[bytes], ending: str) -> bool:
    return isinstance(source, str) and source.lower().endswith(ending)


def _source(file: Any) -> str | IO[bytes]:
    """The path of a file, or an object to read from, in which one can go back."""
    content: Any = file
    if isinstance(file, (str, PathLike)):
        return fsdecode(content)
    if isinstance(file, (bytes, bytearray, memoryview)):
        return BytesIO(content)
    if hasattr(file, "SerializeToString"):
        return BytesIO(file.SerializeToString())
    if not hasattr(file, "read"):
        found = type(file).__name__
        hint = "write the path as text, as in `oarlock.load(\"model.onnx\")`"
        if found in ("list", "tuple"):
            hint = "load one file after the other: `[oarlock.load(file) for file in files]`"
        raise TypeError(f"expected the path of a model or its bytes for `load`, found {found}\nhint: {hint}")
    if isinstance(file, TextIOBase):
        raise TypeError('expected a file of bytes for `load`, found one of text\nhint: open it in the mode "rb"')
    # One who cannot go back has no `seekable`, or says so by it.
    can_go_back: bool = hasattr(file, "seekable") and file.seekable()
    return file if can_go_back else BytesIO(file.read())


def _start(source: str | IO[bytes]) -> bytes:
    """The first bytes, which say what it is."""
    if not isinstance(source, str):
        place = source.tell()
        start = source.read(len(MAGIC))
        source.seek(place)
        return start
    try:
        with open(source, "rb") as stream:
            return stream.read(len(MAGIC))
    except OSError:
        # A directory may have a model, whose loader also says why a file cannot be read.
        return b""


def _one_of(device: Devices) -> Device | str | None:
    """The first device, which is that of arrays."""
    return device if device is None or isinstance(device, (Device, str)) else next(iter(device), None)
