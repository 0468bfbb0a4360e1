"""Files: replaced as a whole, and read from paths, objects and memory."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

CHUNK = 1 << 26
"""The most bytes that are asked for at once, because some files allocate before they look how many there are."""


def path_of(file: Any, function: str) -> str:
    """The path of a file."""
    try:
        return os.fsdecode(file)
    except TypeError:
        raise TypeError(f"`{function}` expected the path of a file, found {type(file).__name__}") from None


def replace(path: str, write: Callable[[IO[bytes]], object]) -> None:
    """Replaces a file atomically, so that no reader sees half of it. Pipes and devices are written to: a file in their place would
    break whatever else uses them."""
    # Replaces the target of a link, not the link.
    path = os.path.realpath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with opened(path, "wb") as stream:
            write(stream)
        return
    new = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
    try:
        with open(new, "xb") as stream:
            write(stream)
        os.replace(new, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(new)
        if isinstance(error, OSError) and error.filename == new:
            # The caller knows only the final name.
            raise _refusal(error, path, "write") from None
        raise


def opened(path: str, mode: str, encoding: str | None = None) -> IO[Any]:
    """A file that is open."""
    try:
        return open(path, mode, encoding=encoding)
    except OSError as error:
        raise _refusal(error, path, "write" if "w" in mode else "read") from None


def _refusal(error: OSError, path: str, verb: str) -> OSError:
    """The error of the system about a file in our words."""
    if isinstance(error, (FileNotFoundError, NotADirectoryError)) and verb == "write":
        folder = os.path.dirname(path)
        message = f"expected a directory `{folder}` to write `{os.path.basename(path)}` to, found none\n"
        message += f"hint: make it by `os.makedirs({folder!r})`"
    elif isinstance(error, (FileNotFoundError, NotADirectoryError)):
        message = f"expected a file `{path}`, found none\n"
        message += "hint: name a file that is there; paths that do not begin with `/` begin in the current directory"
    elif isinstance(error, IsADirectoryError):
        message = f"expected a file `{path}`, found a directory\nhint: name a file in it"
    else:
        message = f"expected a file `{path}` to {verb}, found that the system refuses: {error.strerror}"
    told = type(error)(message)
    told.errno = error.errno
    return told


def write_to(file: Any, ending: str, write: Callable[[IO[bytes]], object]) -> None:
    """Replaces the file of a path, which gets an ending, or writes to an object."""
    if hasattr(file, "write"):
        write(file)
        return
    try:
        path = os.fsdecode(file)
    except TypeError:
        raise TypeError(
            f"expected the path of a file, or an object to write to, found {type(file).__name__}\nhint: the file comes first"
        ) from None
    replace(path if path.endswith(ending) else path + ending, write)


def read_bytes(stream: IO[bytes], size: int, what: str) -> bytearray:
    """So many bytes of a file. A size that is wrong costs no more memory than the file has."""
    content = bytearray()
    while len(content) < size:
        part = stream.read(min(size - len(content), CHUNK))
        if not part:
            raise ValueError(f"expected {size} bytes for {what}, found {len(content)}")
        content += part
    return content
