"""Settings of onnxruntime's environment, that is of the whole process. Those that Oarlock does not need have no effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import Error, set_flags
from ._logger import log
from ._memory import OrtArenaCfg, OrtMemoryInfo

def set_seed(seed: int) -> None:
    """Sets the flag `random_seed`. After the first session, it logs a warning instead, because the flag can no longer change."""
    # The flag has no negative numbers, and 0 would ask for a new seed in every run.
    _set_flag("random_seed", seed % 2**64 or 1, "`set_seed`")


def set_global_thread_pool_sizes(intra_op_num_threads: int = 0, inter_op_num_threads: int = 0) -> None:
    """Chooses the number of threads, which all sessions share. It must precede the first session."""
    choose_threads(intra_op_num_threads, "`set_global_thread_pool_sizes`")


def choose_threads(count: int, caller: str) -> None:
    """Chooses the number of threads, unless it is 0."""
    if count > 0:
        _set_flag("threads", count, caller)


def _set_flag(name: str, value: int, caller: str) -> None:
    try:
        set_flags({name: value})
    except Error:
        log.warning("%s has an effect only before the first session; `%s` stays as it is", caller, name)


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Has no effect: libraries are loaded when a device needs them.

    >>> ol.onnxruntime.preload_dlls()
    """


def enable_telemetry_events() -> None:
    """Has no effect: there is no telemetry.

    >>> ol.onnxruntime.enable_telemetry_events()
    """


def disable_telemetry_events() -> None:
    """Has no effect: there is no telemetry.

    >>> ol.onnxruntime.disable_telemetry_events()
    """


def create_and_register_allocator(memory_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None, /) -> None:
    """Has no effect: memory is managed by itself.

    >>> ort = ol.onnxruntime
    >>> memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    >>> ort.create_and_register_allocator(memory, None)
    """


def create_and_register_allocator_v2(
    provider_type: str, memory_info: OrtMemoryInfo, options: Mapping[str, Any], arena_cfg: OrtArenaCfg | None, /
) -> None:
    """Has no effect: memory is managed by itself.

    >>> ort = ol.onnxruntime
    >>> memory = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    >>> ort.create_and_register_allocator_v2("CPUExecutionProvider", memory, {}, None)
    """


def has_collective_ops() -> bool:
    """Always false: no op works on several processes.

    >>> ol.onnxruntime.has_collective_ops()
    False
    """
    return False
