"""The wheels that provide devices. `OARLOCK_WRITE=1 cargo test -p oarlock-pack` generates this from `packaging/matrix.toml`."""

from __future__ import annotations

from typing import NamedTuple

INDEX = "https://oarlock.example/wheels/simple/"
"""The address of the package index."""


class Wheel(NamedTuple):
    """A wheel that provides a device."""

    device: str
    """The type of the device."""
    version: str | None
    """The version of the driver interface, such as that of CUDA."""
    distribution: str
    requirement: str
    """The requirement for pip: the core with the extra."""
    has_libraries: bool
    """Whether it includes vendor libraries."""
    lowest: tuple[int, int]
    """The lowest compute capability that it supports."""
    highest: tuple[int, int] | None
    """The highest one, if it is known."""
    machine: str
    """The processor that it is for."""


WHEELS = (
    Wheel("cuda", "12", "oarlock-cuda12", "oarlock[cuda12]==0.1.0", True, (5, 0), (12, 1), "x86_64"),
    Wheel("cuda", "13", "oarlock-cuda13", "oarlock[cuda13]==0.1.0", True, (7, 5), None, "x86_64"),
    Wheel("opencl", None, "oarlock-opencl", "oarlock[opencl]==0.1.0", False, (0, 0), None, "x86_64"),
)
