"""Files with weights that are in memory: they are laid beside the model for as long as it is read."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

from ._errors import InvalidArgument


# No weights file has this name.
_MODEL = "oarlock model.onnx"


@contextmanager
def beside_files(model: str | bytes | PathLike[str], files: Mapping[str, bytes]) -> Generator[str | bytes | PathLike[str]]:
    """The model, in a folder with the files if there are some."""
    if not files:
        yield model
        return
    with TemporaryDirectory() as directory:
        folder = Path(directory).resolve()
        for name, content in {**files, _MODEL: model if isinstance(model, bytes) else Path(model).read_bytes()}.items():
            file = (folder / name).resolve()
            if not file.is_relative_to(folder):
                raise InvalidArgument(f"expected the name of a file beside the model, found `{name}`")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        yield folder / _MODEL
