"""Options of sessions and runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any

from .._oarlock import Stop
from ._absent import absent
from ._enumerations import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
from ._errors import Fail


def _itself(value: Any) -> Any:
    return value


# Other types that options accept: NumPy numbers, 0 and 1, and paths.
_READ: dict[type, Callable[[Any], Any]] = {int: index, bool: lambda value: bool(index(value)), str: os.fspath}


class _Options:
    """Options that keep the type they were created with, and entries, which are stored."""

    _entries: dict[str, str]

    def __setattr__(self, name: str, value: Any) -> None:
        known: dict[str, object] = self.__dict__
        # The last one is set when all are.
        if "_entries" in known:
            if name not in known:
                raise absent(self, name, type(self).__name__)
            kind = type(known[name])
            found = type(value).__name__
            try:
                value = _READ.get(kind, _itself)(value)
            except TypeError:
                value = None
            if not isinstance(value, kind):
                raise TypeError(f"expected {kind.__name__} as `{name}`, found {found}")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        raise absent(self, name, type(self).__name__)

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise Fail(f"expected an entry of `{type(self).__name__}` that was added, found `{key}`")
        return self._entries[key]


class SessionOptions(_Options):
    """Options of a session. `intra_op_num_threads` takes effect if it is set before the first session. `enable_profiling`
    records runs, and `profile_file_prefix` names the file. `optimized_model_filepath` is the file that the optimized model is
    written to. Added providers are used by sessions that name none. The other options are stored and have no effect. Of the
    entries, `session.disable_cpu_ep_fallback` set to `1` makes a fallback to the CPU an error.

    >>> options = ol.onnxruntime.SessionOptions()
    >>> options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    >>> options.get_session_config_entry("session.disable_cpu_ep_fallback")
    '1'
    """

    def __init__(self) -> None:
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.enable_profiling = False
        self.enable_mem_pattern = True
        self.enable_cpu_mem_arena = True
        self.enable_mem_reuse = True
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._sizes: dict[str, int] = {}
        self._files: dict[str, bytes] = {}
        self._providers: list[tuple[str, Mapping[str, Any]]] = []
        self._entries = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Stores an entry of the session's configuration. `session.disable_cpu_ep_fallback` takes effect."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """A stored entry."""
        return self._entry(key)

    def add_provider(self, provider: str, options: Mapping[str, Any]) -> None:
        """Adds a provider for sessions that name none."""
        self._providers.append((provider, options))

    def add_external_initializers_from_files_in_memory(
        self, file_names: Sequence[str], file_buffers: Sequence[bytes], file_lengths: Sequence[int]
    ) -> None:
        """Gives the contents of files with weights that the model names, in place of the files."""
        for name, buffer, length in zip(file_names, file_buffers, file_lengths, strict=True):
            self._files[name] = bytes(memoryview(buffer)[:length])

    def has_providers(self) -> bool:
        """Whether a provider was added."""
        return bool(self._providers)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Chooses what `get_inputs` and `get_outputs` say for a size that has a name. The shapes of a run are those of its inputs."""
        self._sizes[name] = size

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Has no effect: shapes are those of the inputs of a run."""


class RunOptions(_Options):
    """Options of a run. `terminate`, also from another thread, stops it before its next step; the others are stored.

    >>> options = ol.onnxruntime.RunOptions()
    >>> options.terminate = True
    """

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self._stop = Stop()
        self.terminate = False
        self._entries = {}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "terminate" and self.terminate:
            self._stop.set()
        elif name == "terminate":
            self._stop = Stop()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Stores an entry of the run's configuration."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """A stored entry."""
        return self._entry(key)
