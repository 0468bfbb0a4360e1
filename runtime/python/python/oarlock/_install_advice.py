"""What to install for devices that this machine could have. `_wheels` lists the wheels."""

from __future__ import annotations

import os
from typing import NamedTuple

from ._oarlock import devices
from ._plugins import announced, bundled
from ._wheels import INDEX, WHEELS, Wheel

Version = tuple[int, int]

MAKERS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
"""The vendors of devices on the bus, by their PCI ids."""

OWN = {"NVIDIA": "cuda", "AMD": "rocm", "Intel": "xpu"}
"""The device type for each vendor's GPUs; OpenCL is for all of them."""


class Machine(NamedTuple):
    """The properties of a machine that decide which wheels fit."""

    makers: tuple[str, ...]
    """The vendors of the GPUs."""
    cuda: Version | None
    """The newest CUDA version that the NVIDIA driver supports."""
    capabilities: tuple[Version, ...] = ()
    """The compute capabilities of the NVIDIA GPUs, as far as they are known."""


def here(root: str = "/") -> Machine:
    """This machine. What cannot be detected counts as absent."""
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
            # Class 3 is a display controller, class 0x12 a processing accelerator.
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
    """The compute capabilities of the GPUs, from the library behind `nvidia-smi`: CUDA itself would have to be initialized,
    and processes forked later could not use it."""
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
    """The installed packages with plugins, by import name, and the plugin files of this package."""
    return {package.package for package in announced()} | {os.path.basename(file) for file in bundled()}


def advice(machine: Machine, there: set[str], installed: set[str]) -> list[str]:
    """A sentence for each vendor whose GPU no device uses, given the present device types and the installed packages."""
    told: list[str] = []
    for maker in machine.makers:
        own = OWN[maker]
        is_used = own in there or (maker != "NVIDIA" and "opencl" in there)
        kind = own if _wheels(own) else "opencl"
        words = None if is_used else _words(kind, machine, installed)
        if words:
            told.append(f"there is an {maker} GPU, and nothing uses it: {words}")
    return told


def hint(device: str) -> str | None:
    """What to install for a device that was requested and is missing; `None` if no wheel provides it."""
    kind = device.partition(":")[0]
    kind = "cuda" if kind == "gpu" else kind
    is_there = any(each.type == kind for each in devices())
    return None if is_there else _words(kind, Machine((), _cuda(), _capabilities()), packages())


def _words(kind: str, machine: Machine, installed: set[str]) -> str | None:
    wheels = _wheels(kind)
    mine = [wheel.distribution for wheel in wheels if wheel.distribution.replace("-", "_") in installed]
    if not wheels or f"liboarlock_plugin_{kind}.so" in installed:
        return None
    if kind != "cuda":
        # An installed plugin reports its own problems elsewhere.
        return None if mine else f"{_install(wheels[0])} provides `{kind}` devices, if their driver is installed"
    cuda, gpus = machine.cuda, machine.capabilities
    if cuda is None:
        return "there is no NVIDIA driver; " + ", ".join(f"`{wheel.distribution}` needs one for CUDA {wheel.version}" for wheel in wheels)
    runs = f"the driver supports CUDA up to {cuda[0]}.{cuda[1]}"
    of_use = [wheel for wheel in wheels if not gpus or _served(wheel, gpus)]
    if not of_use:
        lowest = min(wheel.lowest for wheel in wheels)
        told = ", ".join(_dotted(gpu) for gpu in gpus)
        return f"the plugin needs a GPU of compute capability {_dotted(lowest)} or higher, found {told}"
    driven = [wheel for wheel in of_use if (_major(wheel), 0) <= cuda]
    if not driven:
        return f"{runs}, and the plugin needs {' or '.join(str(wheel.version) for wheel in of_use)}; install a newer driver"
    best = max(driven, key=lambda wheel: (_served(wheel, gpus), _major(wheel)))
    if any(wheel.distribution in mine for wheel in driven):
        return None
    if mine:
        return f"{runs}, and `{mine[0]}` does not fit; {_install(best)} does"
    return f"{_install(best)} provides `cuda` devices; {runs}"


def _wheels(kind: str) -> list[Wheel]:
    """The wheels for this processor that provide a type of device."""
    return [wheel for wheel in WHEELS if (wheel.device, wheel.machine) == (kind, os.uname().machine)]


def _major(wheel: Wheel) -> int:
    return int(wheel.version or 0)


def _served(wheel: Wheel, gpus: tuple[Version, ...]) -> int:
    """The number of GPUs that a wheel supports."""
    return sum(wheel.lowest <= gpu and (wheel.highest is None or gpu <= wheel.highest) for gpu in gpus)


def _dotted(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def _install(wheel: Wheel) -> str:
    # Vendor libraries come from the default index.
    option = "--extra-index-url" if wheel.has_libraries else "--index-url"
    return f"`pip install '{wheel.requirement}' {option} {INDEX}`"
