"""Writing models to files."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

from ._files import path_of, replace

if TYPE_CHECKING:
    from os import PathLike

    from ._oarlock import Session


def save(model: Session, file: str | PathLike[str]) -> None:
    """Writes the weights before the model, which is useless without them."""
    path = path_of(file, "save")
    beside = f"{path}.data"
    content, parts = model._onnx(os.path.basename(beside))

    def put(stream: IO[bytes]) -> None:
        for place, part in parts:
            stream.seek(place)
            stream.write(part)

    if parts:
        replace(beside, put)
    replace(path, lambda stream: stream.write(content))
