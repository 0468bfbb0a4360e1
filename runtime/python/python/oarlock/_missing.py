"""What to install for devices that could be here and are not. Which wheels there are is in `_wheels`."""

from __future__ import annotations

import os
from typing import NamedTuple

from ._oarlock import devices
from ._plugins import announced, bundled
from ._wheels import INDEX, WHEELS, Wheel

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
    capabilities: tuple[Version, ...] = ()
    """What NVIDIA calls so of its GPUs, those of which it is known."""


def here(root: str = "/") -> Machine:
    """This machine. What cannot be found out counts as not there."""
    cuda = _cuda()
    makers = list(dict.fromkeys(_makers(os.path.join(root, "sys/bus/pci/devices"))))
    # A container or a virtual machine may hide the bus.
    if cuda and "NVIDIA" not in makers:
        makers.append("NVIDIA")
    return Machine(tuple(makers), cuda, _capabilities())


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


def _capabilities() -> tuple[Version, ...]:
    """The compute capabilities of the GPUs, by the library behind `nvidia-smi`: to ask CUDA itself it would have to start, and no
    process that is forked off later could use it."""
    import ctypes

    count, gpu = ctypes.c_uint(), ctypes.c_void_p()
    major, minor = ctypes.c_int(), ctypes.c_int()
    found: list[Version] = []
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        if library.nvmlInit_v2() != 0:
            return ()
        if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0:
            for place in range(count.value):
                is_there = library.nvmlDeviceGetHandleByIndex_v2(place, ctypes.byref(gpu)) == 0
                if is_there and library.nvmlDeviceGetCudaComputeCapability(gpu, ctypes.byref(major), ctypes.byref(minor)) == 0:
                    found.append((major.value, minor.value))
        library.nvmlShutdown()
    except (OSError, AttributeError):
        return ()
    return tuple(found)


def packages() -> set[str]:
    """The packages that bring plugins, as they are imported, and the files of those that are part of this one."""
    return {package.package for package in announced()} | {os.path.basename(file) for file in bundled()}


def advice(machine: Machine, there: set[str], installed: set[str]) -> list[str]:
    """A sentence for each maker whose GPU nothing uses, given the types of the devices there are and what is installed."""
    told: list[str] = []
    for maker in machine.makers:
        own = OWN[maker]
        is_used = own in there or (maker != "NVIDIA" and "opencl" in there)
        kind = own if any(wheel.device == own for wheel in WHEELS) else "opencl"
        words = None if is_used else _words(kind, machine, installed)
        if words:
            told.append(f"there is a GPU of {maker}, and nothing uses it: {words}")
    return told


def hint(device: str) -> str | None:
    """What to install for a device that was named and is not there; nothing where no wheel brings it."""
    kind = device.partition(":")[0]
    kind = "cuda" if kind == "gpu" else kind
    is_there = any(each.type == kind for each in devices())
    return None if is_there else _words(kind, Machine((), _cuda(), _capabilities()), packages())


def _words(kind: str, machine: Machine, installed: set[str]) -> str | None:
    wheels = [wheel for wheel in WHEELS if wheel.device == kind]
    mine = [wheel.distribution for wheel in wheels if wheel.distribution.replace("-", "_") in installed]
    if not wheels or f"liboarlock_plugin_{kind}.so" in installed:
        return None
    if kind != "cuda":
        # One that is there has its say elsewhere.
        return None if mine else f"{_install(wheels[0])} brings `{kind}` devices, where a driver of them is"
    cuda, gpus = machine.cuda, machine.capabilities
    if cuda is None:
        return "no driver of NVIDIA is here; " + ", ".join(f"`{wheel.distribution}` needs one for CUDA {wheel.version}" for wheel in wheels)
    runs = f"the driver runs CUDA up to {cuda[0]}.{cuda[1]}"
    of_use = [wheel for wheel in wheels if not gpus or _served(wheel, gpus)]
    if not of_use:
        lowest = min(wheel.lowest for wheel in wheels)
        told = ", ".join(_dotted(gpu) for gpu in gpus)
        return f"it takes a GPU of compute capability {_dotted(lowest)} or higher, and here is {told}"
    driven = [wheel for wheel in of_use if (_major(wheel), 0) <= cuda]
    if not driven:
        return f"{runs}, and it takes one for {' or '.join(str(wheel.version) for wheel in of_use)}; install a newer driver"
    best = max(driven, key=lambda wheel: (_served(wheel, gpus), _major(wheel)))
    if any(wheel.distribution in mine for wheel in driven):
        return None
    if mine:
        return f"{runs}, and `{mine[0]}` is for others; {_install(best)} has what fits"
    return f"{_install(best)} brings `cuda` devices; {runs}"


def _major(wheel: Wheel) -> int:
    return int(wheel.version or 0)


def _served(wheel: Wheel, gpus: tuple[Version, ...]) -> int:
    """How many of the GPUs a wheel serves."""
    return sum(wheel.lowest <= gpu and (wheel.highest is None or gpu <= wheel.highest) for gpu in gpus)


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def _install(wheel: Wheel) -> str:
    # Libraries of a vendor come from the index that pip always looks at.
    option = "--extra-index-url" if wheel.has_libraries else "--index-url"
    return f"`pip install '{wheel.requirement}' {option} {INDEX}`"
