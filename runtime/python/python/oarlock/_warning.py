"""Warnings that point to the line that called the package, from whichever part of it they come."""

from __future__ import annotations

import os
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_PACKAGE = os.path.dirname(__file__) + os.sep


class FallbackWarning(RuntimeWarning):
    """Nodes of a model fall back to the CPU because the requested device has no kernel for them."""


FallbackWarning.__module__ = "oarlock"


def warn(message: str, category: type[RuntimeWarning] = RuntimeWarning) -> None:
    """Warns at the line that called the package."""
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
