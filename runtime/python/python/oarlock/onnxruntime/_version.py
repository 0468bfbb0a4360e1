"""Versions: of the interface of onnxruntime that programs see, and of Oarlock."""

from __future__ import annotations

import platform

from .. import devices
from .._oarlock import __version__ as _ours

oarlock_version = _ours
# Programs compare it with the first version of onnxruntime that has what they need.
__version__ = "1.32.0"
version = __version__
package_name = "onnxruntime"
# onnxruntime names the version of CUDA that it was built for; here, CUDA is found at run time.
cuda_version = ""


def get_version_string() -> str:
    """The version of the interface, with that of Oarlock as its local part.

    >>> ol.onnxruntime.get_version_string().split("+")[0]
    '1.32.0'
    """
    return f"{__version__}+oarlock.{oarlock_version}"


def get_build_info() -> str:
    """Both versions in words.

    >>> "Oarlock" in ol.onnxruntime.get_build_info()
    True
    """
    return f"Oarlock Build Info: version={oarlock_version}, interface=onnxruntime {__version__}"


def print_debug_info() -> None:
    """Prints the versions, the platform and the devices."""
    print(get_build_info())
    print(f"Python {platform.python_version()} on {platform.platform()}")
    for device in devices():
        print(f"{device.name}: {device.description}")
