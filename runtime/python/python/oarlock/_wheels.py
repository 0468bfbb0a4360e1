"""The wheels that provide devices. `OARLOCK_WRITE=1 cargo test -p oarlock-pack` makes this of `packaging/matrix.toml`."""

from __future__ import annotations

from typing import NamedTuple

INDEX = "https://oarlock.example/wheels/simple/"
"""Where they are."""


class Wheel(NamedTuple):
    """A wheel that provides a device."""

    device: str
    """The type of the device."""
    version: str | None
    """That of what drives it."""
    distribution: str
    requirement: str
    """The core with what provides it."""
    has_libraries: bool
    """Whether libraries of a vendor come along."""
    lowest: tuple[int, int]
    """The compute capability of the first GPU that it serves."""
    highest: tuple[int, int] | None
    """That of the last, where it is known."""


WHEELS = (
    Wheel("cuda", "12", "oarlock-cuda12", "oarlock[cuda12]==0.1.0", True, (5, 0), (12, 1)),
    Wheel("cuda", "13", "oarlock-cuda13", "oarlock[cuda13]==0.1.0", True, (7, 5), None),
    Wheel("opencl", None, "oarlock-opencl", "oarlock[opencl]==0.1.0", False, (0, 0), None),
)
