"""Files that a program with Oarlock needs besides its imports: the CPU device and other plugins of the package, and modules that
the native half imports for the first array. PyInstaller reads these names."""

from __future__ import annotations

from oarlock._plugins import bundled

binaries = [(file, "oarlock/plugins") for file in bundled()]
hiddenimports = ["oarlock._plugins"]
