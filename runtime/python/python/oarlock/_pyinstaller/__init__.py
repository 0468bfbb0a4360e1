"""What PyInstaller asks a package for that has files which nothing imports."""

from __future__ import annotations

import os


def hook_directories() -> list[str]:
    """Where the hook lies."""
    return [os.path.dirname(__file__)]
