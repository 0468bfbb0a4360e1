"""Writing models to files."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from ._oarlock import Session


def save(model: Session, file: str | PathLike[str]) -> None:
    """Writes the weights before the model, which is useless without them."""
    try:
        path = os.fsdecode(file)
    except TypeError:
        raise TypeError(f"`save` expected the path of a file, found {type(file).__name__}") from None
    beside = f"{path}.data"
    content, parts = model._onnx(os.path.basename(beside))

    def put(stream: IO[bytes]) -> None:
        for place, part in parts:
            stream.seek(place)
            stream.write(part)

    if parts:
        _replace(beside, put)
    _replace(path, lambda stream: stream.write(content))


def _replace(path: str, write: Callable[[IO[bytes]], object]) -> None:
    """Replaces a file atomically, so that no reader sees half of it."""
    # Replaces the target of a link, not the link.
    path = os.path.realpath(path)
    new = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
    try:
        with open(new, "xb") as stream:
            write(stream)
        os.replace(new, path)
    except BaseException as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        if isinstance(error, OSError) and error.filename == new:
            # The caller knows only the final name.
            raise OSError(error.errno, error.strerror, path) from None
        raise
