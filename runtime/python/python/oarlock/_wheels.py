"""The wheels that bring devices. `OARLOCK_WRITE=1 cargo test -p oarlock-pack` makes this of `packaging/matrix.toml`."""

from __future__ import annotations

INDEX = "https://oarlock.example/wheels/simple/"
"""Where they are."""

WHEELS = (
    ("cuda", "12", "oarlock-cuda12"),
    ("cuda", "13", "oarlock-cuda13"),
    ("opencl", None, "oarlock-opencl"),
)
"""What each is for: a type of device, and the version of what drives it."""
