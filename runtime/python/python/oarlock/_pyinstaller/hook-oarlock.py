"""What a program with Oarlock in it needs beside what it imports: the CPU device and other plugins of the package, and what the
native half imports when the first array is made. PyInstaller reads these names."""

from __future__ import annotations

from oarlock._plugins import bundled

binaries = [(file, "oarlock/plugins") for file in bundled()]
hiddenimports = ["oarlock._plugins"]
