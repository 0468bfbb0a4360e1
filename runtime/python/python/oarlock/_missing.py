"""What to install for devices that could be here and are not. Which wheels there are is in `_wheels`."""

from __future__ import annotations

import os
from typing import NamedTuple

from ._oarlock import devices
from ._plugins import announced
from ._wheels import INDEX, WHEELS

Version = tuple[int, int]

MAKERS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
"""Who made what is on the bus."""

OWN = {"NVIDIA": "cuda", "AMD": "rocm", "Intel": "xpu"}
"""The device that is made for the GPUs of each; OpenCL is for all of them."""


class Machine(NamedTuple):
    """What decides which wheels are of use."""

    makers: tuple[str, ...]
    """Who made the GPUs."""
    cuda: Version | None
    """The newest CUDA that the driver of NVIDIA runs."""


def here(root: str = "/") -> Machine:
    """This machine. What cannot be found out counts as not there."""
    cuda = _cuda()
    makers = list(dict.fromkeys(_makers(os.path.join(root, "sys/bus/pci/devices"))))
    # A container or a virtual machine may hide the bus.
    if cuda and "NVIDIA" not in makers:
        makers.append("NVIDIA")
    return Machine(tuple(makers), cuda)


def _makers(bus: str) -> list[str]:
    found: list[str] = []
    try:
        for device in sorted(os.listdir(bus)):
            kind, maker = (_read(os.path.join(bus, device, name)) for name in ("class", "vendor"))
            # Class 3 is for what shows pictures, and class 0x12 for what only computes.
            if kind.startswith(("0x03", "0x12")) and maker in MAKERS:
                found.append(MAKERS[maker])
    except OSError:
        pass
    return found


def _read(file: str) -> str:
    try:
        with open(file) as opened:
            return opened.read().strip()
    except OSError:
        return ""


def _cuda() -> Version | None:
    import ctypes

    version = ctypes.c_int()
    try:
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return (version.value // 1000, version.value % 1000 // 10) if version.value else None


def packages() -> set[str]:
    """The packages that bring plugins, as they are imported."""
    return {package.package for package in announced()}


def advice(machine: Machine, there: set[str], installed: set[str]) -> list[str]:
    """A sentence for each maker whose GPU nothing uses, given the types of the devices there are and what is installed."""
    told: list[str] = []
    for maker in machine.makers:
        own = OWN[maker]
        is_used = own in there or (maker != "NVIDIA" and "opencl" in there)
        kind = own if any(device == own for device, _, _ in WHEELS) else "opencl"
        words = None if is_used else _words(kind, machine.cuda, installed)
        if words:
            told.append(f"there is a GPU of {maker}, and nothing uses it: {words}")
    return told


def hint(device: str) -> str | None:
    """What to install for a device that was named and is not there; nothing where no wheel brings it."""
    kind = device.partition(":")[0]
    kind = "cuda" if kind == "gpu" else kind
    is_there = any(each.type == kind for each in devices())
    return None if is_there else _words(kind, _cuda(), packages())


def _words(kind: str, cuda: Version | None, installed: set[str]) -> str | None:
    wheels = [(version, name) for device, version, name in WHEELS if device == kind]
    mine = [name for _, name in wheels if name.replace("-", "_") in installed]
    if not wheels or f"oarlock_with_{kind}" in installed:
        return None
    if kind != "cuda":
        # One that is there has its say elsewhere.
        return None if mine else f"{_install(wheels[0][1])} brings `{kind}` devices, where a driver of them is"
    known = [(int(version), name) for version, name in wheels if version]
    if cuda is None:
        return "no driver of NVIDIA is here; " + ", ".join(f"`{name}` needs one for CUDA {major}" for major, name in known)
    runs = f"the driver runs CUDA up to {cuda[0]}.{cuda[1]}"
    fitting = [name for major, name in sorted(known) if (major, 0) <= cuda]
    if not fitting:
        return f"{runs}, and it takes one for {' or '.join(str(major) for major, _ in known)}; install a newer driver"
    if any(name in fitting for name in mine):
        return None
    if mine:
        return f"{runs}, and `{mine[0]}` needs a newer one; {_install(fitting[-1])} has what fits"
    return f"{_install(fitting[-1])} brings `cuda` devices; {runs}"


def _install(name: str) -> str:
    return f"`pip install {name} --index-url {INDEX}`"
