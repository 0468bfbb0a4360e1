"""Providers, which are devices: `CUDAExecutionProvider` is `cuda`."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _oarlock, devices

log = logging.getLogger("oarlock.onnxruntime")

_SUFFIX = "ExecutionProvider"


def get_available_providers() -> list[str]:
    """The providers that have a device."""
    types = dict.fromkeys(device.type for device in devices())
    return [provider_of(name) for name in sorted(types, key=lambda name: name == "cpu")]


def get_all_providers() -> list[str]:
    """The same: devices of plugins that are not installed are unknown."""
    return get_available_providers()


def get_device() -> str:
    """The type of the default device."""
    return _oarlock.default_device().type.upper()


def set_default_logger_severity(severity: int) -> None:
    """Has no effect: errors are raised as exceptions."""


def enable_telemetry_events() -> None:
    """Has no effect: there is no telemetry."""


def disable_telemetry_events() -> None:
    """Has no effect: there is no telemetry."""


def get_build_info() -> str:
    """The version of Oarlock that replaces onnxruntime."""
    return f"Oarlock Build Info: version={_oarlock.__version__}"


def provider_of(device: str) -> str:
    return {"cpu": "CPU", "cuda": "CUDA", "rocm": "ROCM", "xpu": "XPU", "opencl": "OpenCL"}.get(device, device) + _SUFFIX


def device_of(provider: str) -> str:
    name = provider.removesuffix(_SUFFIX).lower()
    # The device type of a plugin may have capitals.
    return next((device.type for device in devices() if device.type.lower() == name), name)


def available(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
    options: Sequence[Mapping[str, Any]] | None,
) -> list[tuple[str, Mapping[str, Any]]]:
    """The available providers of a list, with their options."""
    if not providers:
        default = _oarlock.default_device()
        return [(provider_of(default.type), {"device_id": default.index})]
    if isinstance(providers, str):
        raise ValueError(f'expected a list of providers, found text\nhint: write `providers=["{providers}"]`')
    given: list[tuple[str, Mapping[str, Any]]] = []
    for at, provider in enumerate(providers):
        beside: Mapping[str, Any] = options[at] if options and at < len(options) else {}
        given.append((provider, beside) if isinstance(provider, str) else (provider[0], provider[1]))
    types = {device.type for device in devices()}
    found = [pair for pair in given if device_of(pair[0]) in types]
    for name, _ in given:
        if device_of(name) not in types:
            log.warning("there is no device for %s, only for %s", name, ", ".join(get_available_providers()))
    return found or [("CPU" + _SUFFIX, {})]
