"""What programs for onnxruntime call, on Oarlock: change `import onnxruntime` into `from oarlock import onnxruntime`.

Sessions take and give arrays of NumPy, as there. Options that choose how onnxruntime works inside, such as the level of
optimisation, are kept and change nothing. Providers are devices: `CUDAExecutionProvider` is `cuda`, and what is not there is
passed over for the next, with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import IntEnum
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy

from . import Error, _oarlock, asarray, devices, set_flags
from ._oarlock import Slot, Tensor, __version__
from ._model import Session

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "ExecutionMode",
    "GraphOptimizationLevel",
    "InferenceSession",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "set_default_logger_severity",
    "__version__",
]

_log = logging.getLogger(__name__)
_SUFFIX = "ExecutionProvider"

_ELEMENTS = {
    "bool": "bool",
    "string": "string",
    "float16": "float16",
    "float32": "float",
    "float64": "double",
    "bfloat16": "bfloat16",
    "complex64": "complex64",
    "complex128": "complex128",
}


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


class SessionOptions:
    """Options of a session. `intra_op_num_threads` counts if it is there before the first session; the others are kept."""

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


class RunOptions:
    """Options of a run, which are kept."""

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry of a run's configuration."""


class NodeArg:
    """An input or output of a model."""

    def __init__(self, slot: Slot) -> None:
        self.name = slot.name
        self.type = _type(slot)
        self.shape = None if slot.shape is None else list(slot.shape)

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


class ModelMetadata:
    """What a model says about itself."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.producer_name: str = facts["producer"]
        self.custom_metadata_map: dict[str, str] = dict(facts["metadata"])
        self.graph_name: str = facts["graph"]


class OrtValue:
    """An array that lies where runs use it."""

    def __init__(self, array: Tensor) -> None:
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: NDArray[Any], device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        """The elements of an array of NumPy on a device."""
        return OrtValue(asarray(numpy_obj, device=f"{device_type}:{device_id}"))

    def numpy(self) -> NDArray[Any]:
        """Its elements as an array of NumPy."""
        return self._array.numpy()

    def shape(self) -> list[int]:
        """The sizes of its dimensions."""
        return list(self._array.shape)

    def data_type(self) -> str:
        """What it is, such as `tensor(float)`."""
        return f"tensor({_element(self._array.dtype.name)})"

    def device_name(self) -> str:
        """The type of the device that it lies on."""
        return self._array.device.type

    def is_tensor(self) -> bool:
        """Whether it is an array, which it always is."""
        return True


class InferenceSession:
    """A model that is ready to run."""

    def __init__(
        self,
        path_or_bytes: str | bytes | PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **_others: Any,
    ) -> None:
        self._options = sess_options or SessionOptions()
        _choose_threads(self._options)
        self._providers = _available(providers, provider_options)
        name, options = self._providers[0]
        self._session = Session(path_or_bytes, device=f"{_device_of(name)}:{options.get('device_id', 0)}")

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Runs the model; gives the outputs of these names, or all, as arrays of NumPy."""
        made = self._run(output_names, input_feed)
        return [_numpy(value) for value in made]

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """The same with values that lie where runs use them."""
        feeds = {name: value._array for name, value in input_dict_ort_values.items()}
        return [OrtValue(value) for value in self._run(output_names, feeds)]

    def _run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        made = self._session.run({name: _fed(value) for name, value in feeds.items() if value is not None})
        wanted = output_names or list(made)
        for name in wanted:
            if name not in made:
                raise ValueError(f"expected one of the outputs {', '.join(made)}, found `{name}`")
        return [made[name] for name in wanted]

    def get_inputs(self) -> list[NodeArg]:
        """What a run is to be given."""
        return [NodeArg(slot) for slot in self._session.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """What a run gives."""
        return [NodeArg(slot) for slot in self._session.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """What a run may be given beside."""
        return [NodeArg(slot) for slot in self._session.optional_inputs]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says about itself."""
        return ModelMetadata(self._session._about)

    def get_providers(self) -> list[str]:
        """The providers that its nodes may run on."""
        return [name for name, _ in self._providers]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of the providers."""
        return {name: {key: str(value) for key, value in options.items()} for name, options in self._providers}

    def get_session_options(self) -> SessionOptions:
        """The options that it was made with."""
        return self._options

    def disable_fallback(self) -> None:
        """Nothing: there is no second attempt that could be disabled."""


def get_available_providers() -> list[str]:
    """The providers for which there is a device."""
    types = dict.fromkeys(device.type for device in devices())
    return [_provider_of(name) for name in sorted(types, key=lambda name: name == "cpu")]


def get_all_providers() -> list[str]:
    """The same: what a plugin could bring is not known before it is there."""
    return get_available_providers()


def get_device() -> str:
    """The type of the device that is used when none is named."""
    return _oarlock.default_device().type.upper()


def set_default_logger_severity(severity: int) -> None:
    """Nothing: what goes wrong is raised."""


def _provider_of(device: str) -> str:
    return {"cpu": "CPU", "cuda": "CUDA", "rocm": "ROCM", "xpu": "XPU", "opencl": "OpenCL"}.get(device, device) + _SUFFIX


def _device_of(provider: str) -> str:
    return provider.removesuffix(_SUFFIX).lower()


def _available(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
    options: Sequence[Mapping[str, Any]] | None,
) -> list[tuple[str, Mapping[str, Any]]]:
    """The providers of a list that are there, with their options."""
    if not providers:
        default = _oarlock.default_device()
        return [(_provider_of(default.type), {"device_id": default.index})]
    given: list[tuple[str, Mapping[str, Any]]] = []
    for at, provider in enumerate(providers):
        beside: Mapping[str, Any] = options[at] if options and at < len(options) else {}
        given.append((provider, beside) if isinstance(provider, str) else (provider[0], provider[1]))
    types = {device.type for device in devices()}
    found = [pair for pair in given if _device_of(pair[0]) in types]
    for name, _ in given:
        if _device_of(name) not in types:
            _log.warning("there is no device for %s, only for %s", name, ", ".join(get_available_providers()))
    return found or [("CPU" + _SUFFIX, {})]


def _choose_threads(options: SessionOptions) -> None:
    if options.intra_op_num_threads > 0:
        try:
            set_flags({"threads": options.intra_op_num_threads})
        except Error:
            _log.warning("`intra_op_num_threads` is chosen by the first session; this one uses the same threads")


def _element(name: str) -> str:
    return _ELEMENTS.get(name, name)


def _type(slot: Slot) -> str:
    if slot.dtype is not None:
        return f"tensor({_element(slot.dtype.name)})"
    return slot.kind.replace("sequence of ", "seq(") + (")" if slot.kind.startswith("sequence") else "")


def _fed(value: Any) -> Any:
    if isinstance(value, OrtValue):
        return value._array
    if _is_list(value) and value and isinstance(value[0], numpy.ndarray):
        return [asarray(each) for each in value]
    return value


def _numpy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.numpy()
    return [_numpy(each) for each in value] if _is_list(value) else value


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
