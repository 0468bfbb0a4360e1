"""Enumerations of onnxruntime, with its numbers."""

from __future__ import annotations

from enum import Enum, IntEnum


class _Enumeration(IntEnum):
    """Numbers that are printed by name."""

    __str__ = Enum.__str__


class GraphOptimizationLevel(_Enumeration):
    """How much onnxruntime optimizes. Oarlock always optimizes.

    >>> ol.onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL.name
    'ORT_ENABLE_ALL'
    """

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Enumeration):
    """Whether onnxruntime runs ops in sequence.

    >>> ol.onnxruntime.ExecutionMode.ORT_SEQUENTIAL.name
    'ORT_SEQUENTIAL'
    """

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Enumeration):
    """The order in which onnxruntime runs ready ops.

    >>> ol.onnxruntime.ExecutionOrder.DEFAULT.name
    'DEFAULT'
    """

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class OrtAllocatorType(_Enumeration):
    """Whether an allocator keeps freed memory. That of Oarlock always does.

    >>> ol.onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR.value
    1
    """

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemType(_Enumeration):
    """What memory is for, as seen by a provider.

    >>> ol.onnxruntime.OrtMemType.DEFAULT.value
    0
    """

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtDeviceMemoryType(_Enumeration):
    """Whether the host can read memory of a device.

    >>> ol.onnxruntime.OrtDeviceMemoryType.DEFAULT.value
    0
    """

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(_Enumeration):
    """The kind of device that memory belongs to.

    >>> ol.onnxruntime.OrtMemoryInfoDeviceType.CPU.value
    0
    """

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtHardwareDeviceType(_Enumeration):
    """The kind of a device.

    >>> ol.onnxruntime.OrtHardwareDeviceType.GPU.value
    1
    """

    CPU = 0
    GPU = 1
    NPU = 2


class OrtDeviceVendorId(_Enumeration):
    """The vendor of a device, as PCI numbers it.

    >>> ol.onnxruntime.OrtDeviceVendorId.NVIDIA.value
    4318
    """

    NONE = 0
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtSparseFormat(_Enumeration):
    """How a sparse tensor is stored.

    >>> ol.onnxruntime.OrtSparseFormat.ORT_SPARSE_COO.value
    1
    """

    ORT_SPARSE_UNDEFINED = 0
    ORT_SPARSE_COO = 1
    ORT_SPARSE_CSRC = 2
    ORT_SPARSE_BLOCK_SPARSE = 4
