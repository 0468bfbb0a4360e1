"""The module in which onnxruntime says which of its packages is installed."""

from __future__ import annotations

from .._version import cuda_version, package_name, version


def get_package_name_and_version_info() -> tuple[str, str, str]:
    """The name of the package, its version, and the version of CUDA that it was built for."""
    return package_name, version, cuda_version


def check_distro_info() -> None:
    """Does nothing: an unsupported operating system is one that no wheel fits."""
