"""What `importlib.metadata` says of onnxruntime where this package takes its place."""

from __future__ import annotations

from importlib.metadata import Distribution
from os import PathLike
from pathlib import Path

from ._version import __version__, package_name


class AdapterDistribution(Distribution):
    """An installed package of the name and version that programs see; it has no files."""

    def read_text(self, filename: str) -> str | None:
        """The text of a file of metadata."""
        return f"Metadata-Version: 2.1\nName: {package_name}\nVersion: {__version__}\n" if filename == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> Path:
        """The path of a file, if there were one."""
        return Path(__file__).parent / path
