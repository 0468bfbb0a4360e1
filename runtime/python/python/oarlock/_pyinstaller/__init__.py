"""Tells PyInstaller about files that no module imports."""

from __future__ import annotations

import os


def hook_directories() -> list[str]:
    """The directory of the hook."""
    return [os.path.dirname(__file__)]
