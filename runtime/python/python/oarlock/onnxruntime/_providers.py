"""Providers, which are devices: `CUDAExecutionProvider` is `cuda`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import _oarlock, devices
from ._logger import log

# Names of providers, each alone or with its options.
Providers = Sequence[str | tuple[str, Mapping[str, Any]]]

_SUFFIX = "ExecutionProvider"

# Options that tune how onnxruntime works inside. Results without them are as good, so they are passed over in silence.
_TUNING = frozenset({
    "arena_extend_strategy", "cudnn_conv1d_pad_to_nc1d", "cudnn_conv_algo_search", "cudnn_conv_use_max_workspace",
    "do_copy_in_default_stream", "enable_cuda_graph", "fuse_conv_bias", "initial_chunk_size_bytes", "prefer_nhwc", "sdpa_kernel",
    "tunable_op_enable", "tunable_op_max_tuning_duration_ms", "tunable_op_tuning_enable", "use_arena",
    "use_ep_level_unified_stream",
})  # fmt: skip

# What was warned of, so that it is said once.
_warned: set[tuple[str, str]] = set()


def get_available_providers() -> list[str]:
    """The providers that have a device.

    >>> ol.onnxruntime.get_available_providers()
    ['CPUExecutionProvider']
    """
    types = dict.fromkeys(device.type for device in devices())
    return [provider_of(name) for name in sorted(types, key=lambda name: name == "cpu")]


def get_all_providers() -> list[str]:
    """The providers that have a device, because devices of plugins that are not installed are unknown.

    >>> ol.onnxruntime.get_all_providers()
    ['CPUExecutionProvider']
    """
    return get_available_providers()


def get_device() -> str:
    """The type of the default device.

    >>> ol.onnxruntime.get_device()
    'CPU'
    """
    return _oarlock.default_device().type.upper()


def provider_of(device: str) -> str:
    return {"cpu": "CPU", "cuda": "CUDA", "rocm": "ROCM", "xpu": "XPU", "opencl": "OpenCL"}.get(device, device) + _SUFFIX


def device_of(provider: str) -> str:
    name = provider.removesuffix(_SUFFIX).lower()
    # The device type of a plugin may have capitals.
    return next((device.type for device in devices() if device.type.lower() == name), name)


def place_of(provider: str, number: Any) -> str:
    """The device of a provider or a device type. Programs number the CPU as they number their GPU, and there is one."""
    name = device_of(provider)
    return f"{name}:{0 if name == 'cpu' or number is None else number}"


def available(
    providers: Providers | None,
    options: Sequence[Mapping[str, Any]] | None,
) -> list[tuple[str, Mapping[str, Any]]]:
    """The available providers of a list, with their options."""
    if not providers:
        default = _oarlock.default_device()
        return [(provider_of(default.type), {"device_id": default.index})]
    given = _with_options(providers, options)
    types = {device.type for device in devices()}
    found = [pair for pair in given if device_of(pair[0]) in types]
    for name, _ in given:
        if device_of(name) not in types:
            log.warning("there is no device for %s, only for %s", name, ", ".join(get_available_providers()))
    for name, chosen in found:
        _warn_of_options(name, chosen)
    return found or [("CPU" + _SUFFIX, {})]


def _with_options(
    providers: Providers, options: Sequence[Mapping[str, Any]] | None
) -> list[tuple[str, Mapping[str, Any]]]:
    """Each provider once, with its options from either argument. Options that do not belong to one are left out, because
    onnxruntime runs such programs as well: after a message, on the CPU."""
    if isinstance(providers, str):
        log.warning('expected a list of providers, found text; write `providers=["%s"]`', providers)
        providers = [providers]
    if options is not None and len(options) != len(providers):
        log.warning("expected options for each of %d providers, found %d", len(providers), len(options))
    given: dict[str, Mapping[str, Any]] = {}
    for at, provider in enumerate(providers):
        beside: Mapping[str, Any] = options[at] if options and at < len(options) else {}
        name, chosen = (provider, beside) if isinstance(provider, str) else provider
        if not _is_mapping(chosen):
            log.warning("expected a dictionary with the options of %s, found %s", name, type(chosen).__name__)
            chosen = {}
        if name in given:
            log.warning("the provider %s is named twice; its first options count", name)
        given.setdefault(name, chosen)
    return list(given.items())


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _warn_of_options(provider: str, options: Mapping[str, Any]) -> None:
    """Names the options that programs may miss, each once."""
    for option in options:
        if option != "device_id" and option not in _TUNING and (provider, option) not in _warned:
            _warned.add((provider, option))
            log.warning("the option `%s` of %s has no effect; of the options, `device_id` has one", option, provider)
