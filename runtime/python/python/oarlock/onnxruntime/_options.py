"""Options of sessions and runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import IntEnum
from operator import index
from typing import Any

from ._absent import absent


class GraphOptimizationLevel(IntEnum):
    """How much is optimised there; here it always is."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Whether ops run one after the other there."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


def _itself(value: Any) -> Any:
    return value


# What else may be given for options of a kind: numbers of NumPy, 0 and 1, and paths.
_READ: dict[type, Callable[[Any], Any]] = {int: index, bool: lambda value: bool(index(value)), str: os.fspath}


class _Options:
    """Options, each of which is of the kind that it was made with."""

    def __setattr__(self, name: str, value: Any) -> None:
        known: dict[str, object] = self.__dict__
        # The last one is there when all are.
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


class SessionOptions(_Options):
    """Options of a session. `intra_op_num_threads` counts if it is there before the first session, `enable_profiling` with
    `profile_file_prefix` has the session note what runs, `optimized_model_filepath` is where the model is written as it was
    made ready, and the others are kept."""

    def __init__(self) -> None:
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
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
        self.profile_file_prefix = ""
        self.use_deterministic_compute = False
        self._entries: dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry of a session's configuration."""
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was kept."""
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Keeps the size of a dimension. Shapes are those of the arrays that a run is given."""


class RunOptions(_Options):
    """Options of a run, which are kept."""

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry of a run's configuration."""
        self._entries[key] = value
