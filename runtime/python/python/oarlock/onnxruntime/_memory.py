"""Descriptions of devices and their memory.

Oarlock manages memory by itself, so descriptions of allocators are stored and have no effect.
"""

from __future__ import annotations

from collections.abc import Mapping

from ._errors import InvalidArgument
from ._enumerations import OrtAllocatorType, OrtDeviceMemoryType, OrtDeviceVendorId, OrtMemoryInfoDeviceType, OrtMemType

# The numbers of device types in onnxruntime, and the vendors that their names imply.
_TYPES = {"cpu": 0, "cuda": 1, "rocm": 1, "gpu": 1, "webgpu": 1, "fpga": 2, "cann": 3, "npu": 3, "dml": 4}
_VENDORS = {
    "cuda": OrtDeviceVendorId.NVIDIA,
    "rocm": OrtDeviceVendorId.AMD,
    "dml": OrtDeviceVendorId.MICROSOFT,
    "cann": OrtDeviceVendorId.HUAWEI,
}


class OrtDevice:
    """A device by number: its type, the type of memory, the vendor if one is given, and which of them it is.

    >>> ol.onnxruntime.OrtDevice.make("cpu", 0).device_id()
    0
    """

    def __init__(self, device_type: int, memory: int, vendor_or_id: int, device_id: int | None = None, /) -> None:
        self._type = device_type
        self._memory = memory
        self._vendor, self._id = (0, vendor_or_id) if device_id is None else (vendor_or_id, device_id)

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """A device by name, such as `cpu` or `cuda`."""
        number = get_ort_device_type(ort_device_name)
        vendor = int(_VENDORS.get(ort_device_name, 0)) if vendor_id < 0 else int(vendor_id)
        return OrtDevice(number, OrtDevice.default_memory(), vendor, device_id)

    def device_type(self) -> int:
        """The number of the type."""
        return self._type

    def device_id(self) -> int:
        """Which device of its type it is."""
        return self._id

    def device_vendor_id(self) -> int:
        """The number of the vendor, 0 if it is unknown."""
        return self._vendor

    def device_mem_type(self) -> int:
        """The number of the type of memory."""
        return self._memory

    # The native module of onnxruntime has a class with the same purpose, which calls the last two so.
    vendor_id = device_vendor_id
    mem_type = device_mem_type

    @staticmethod
    def default_memory() -> int:
        """The number of ordinary memory."""
        return int(OrtDeviceMemoryType.DEFAULT)

    @staticmethod
    def cpu() -> int:
        """The number of the type `cpu`."""
        return _TYPES["cpu"]

    @staticmethod
    def cuda() -> int:
        """The number of the type `cuda`."""
        return _TYPES["cuda"]

    @staticmethod
    def gpu() -> int:
        """The number of all types of GPU."""
        return _TYPES["gpu"]

    @staticmethod
    def npu() -> int:
        """The number of the type `npu`."""
        return _TYPES["npu"]

    @staticmethod
    def cann() -> int:
        """The number of the type `cann`."""
        return _TYPES["cann"]

    @staticmethod
    def dml() -> int:
        """The number of the type `dml`."""
        return _TYPES["dml"]

    @staticmethod
    def webgpu() -> int:
        """The number of the type `webgpu`."""
        return _TYPES["webgpu"]

    @staticmethod
    def fpga() -> int:
        """The number of the type `fpga`."""
        return _TYPES["fpga"]


class OrtMemoryInfo:
    """A description of memory of a device.

    >>> ort = ol.onnxruntime
    >>> ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, ort.OrtMemType.DEFAULT).name
    'Cpu'
    """

    def __init__(self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType, /) -> None:
        self.name = name
        self.allocator_type = allocator_type
        self.device_id = device_id
        self.mem_type = mem_type
        self.device_mem_type = OrtDeviceMemoryType.DEFAULT
        self.device_vendor_id = 0

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        device_mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
        /,
    ) -> OrtMemoryInfo:
        """A description that names the vendor too."""
        made = OrtMemoryInfo(name, allocator_type, device_id, OrtMemType.DEFAULT)
        made.device_mem_type = device_mem_type
        made.device_vendor_id = vendor_id
        return made


class OrtArenaCfg:
    """How onnxruntime keeps freed memory: four numbers, or a dictionary with some of the names below. Unset numbers are -1,
    which lets onnxruntime choose; memory is unlimited.

    >>> ol.onnxruntime.OrtArenaCfg({"max_mem": 1024}).max_mem
    1024
    """

    def __init__(self, max_mem: int | Mapping[str, int], *numbers: int) -> None:
        self.max_mem = 0
        self.arena_extend_strategy = -1
        self.initial_chunk_size_bytes = -1
        self.max_dead_bytes_per_chunk = -1
        self.initial_growth_chunk_size_bytes = -1
        self.max_power_of_two_extend_bytes = -1
        known = list(self.__dict__)
        if isinstance(max_mem, int):
            given: Mapping[str, int] = dict(zip(known[:4], (max_mem, *numbers), strict=True))
        else:
            given = max_mem
        for name, number in given.items():
            if name not in known:
                raise InvalidArgument(f"expected one of {', '.join(known)}, found `{name}`")
            setattr(self, name, int(number))


def get_ort_device_type(device_type: str) -> int:
    """The number of a device type that is given by name."""
    if device_type not in _TYPES:
        raise InvalidArgument(f"expected a device type that onnxruntime numbers, {', '.join(_TYPES)}, found `{device_type}`")
    return _TYPES[device_type]
