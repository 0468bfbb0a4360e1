"""Devices, with the function names of Paddle.

>>> import oarlock
>>> oarlock.device.get_all_device_type()
['cpu']
>>> oarlock.device.get_device()
'cpu:0'
"""

from __future__ import annotations

from . import _oarlock, get_device, set_device
from ._oarlock import Device

__all__ = [
    "Device",
    "get_all_custom_device_type",
    "get_all_device_type",
    "get_available_custom_device",
    "get_available_device",
    "get_device",
    "set_device",
    "synchronize",
]

BUILT_IN = ("cpu",)


def get_all_device_type() -> list[str]:
    """The types of all devices.

    >>> ol.device.get_all_device_type()
    ['cpu']
    """
    return list(dict.fromkeys(device.type for device in _oarlock.devices()))


def get_all_custom_device_type() -> list[str]:
    """The types of devices that plugins provide.

    >>> ol.device.get_all_custom_device_type()
    []
    """
    return [name for name in get_all_device_type() if name not in BUILT_IN]


def get_available_device() -> list[str]:
    """The names of all devices.

    >>> ol.device.get_available_device()
    ['cpu:0']
    """
    return [device.name for device in _oarlock.devices()]


def get_available_custom_device() -> list[str]:
    """The names of the devices that plugins provide.

    >>> ol.device.get_available_custom_device()
    []
    """
    return [device.name for device in _oarlock.devices() if device.type not in BUILT_IN]


def synchronize(device: Device | str | None = None) -> None:
    """Waits until all work on a device has finished.

    >>> ol.device.synchronize()
    """
    chosen = _oarlock.default_device() if device is None else Device(str(device))
    chosen.synchronize()


def __dir__() -> list[str]:
    """The public names."""
    return __all__
