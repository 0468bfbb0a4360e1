"""Sessions and the metadata of models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import datetime
from os import PathLike, fspath
from threading import Thread
from time import time_ns
from typing import TYPE_CHECKING, Any

from .._model import Session
from .._oarlock import Tensor, _given_up
from ..profiler import Profiler
from ._absent import absent
from ._binding import IOBinding
from ._description import ModelMetadata, NodeArg
from ._enumerations import OrtAllocatorType, OrtMemType
from ._environment import choose_threads
from ._errors import InvalidArgument, expect_type, of_load, of_run
from ._feeds import Feeds
from ._files import beside_files
from ._logger import log
from ._maps import labels_of, to_maps
from ._memory import OrtMemoryInfo
from ._options import RunOptions, SessionOptions
from ._providers import Providers, available, place_of
from ._trace import write_trace
from ._values import OrtValue, to_numpy

if TYPE_CHECKING:
    from .._oarlock import Slot

# The entry of onnxruntime that forbids the fallback to the CPU.
_NO_FALLBACK = "session.disable_cpu_ep_fallback"


class _LoggedSession(Session):
    """A model that logs fallbacks to the CPU, as onnxruntime does, instead of raising a warning."""

    def _tell_fallback(self, sentence: str) -> None:
        log.warning("Some nodes were not assigned to the preferred execution providers: %s", sentence)


class InferenceSession:
    """A model that is ready to run.

    >>> import numpy
    >>> session = ol.onnxruntime.InferenceSession("docs/src/models/digits.onnx")
    >>> outputs = session.run(None, {"image": numpy.zeros((1, 1, 8, 8), "float32")})
    >>> outputs[0].shape
    (1, 10)
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Providers | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **_others: Any,
    ) -> None:
        self._options = sess_options or SessionOptions()
        choose_threads(self._options.intra_op_num_threads, "`intra_op_num_threads`")
        is_path = isinstance(path_or_bytes, (str, PathLike))
        self._source = path_or_bytes
        # Packages read these two, to find files beside the model or to write it again.
        self._model_path = fspath(path_or_bytes) if is_path else None
        self._model_bytes = None if is_path else path_or_bytes
        self._load(providers or self._options._providers, provider_options)
        if self._options.optimized_model_filepath:
            self._session.save(self._options.optimized_model_filepath)
        self._profiler = Profiler() if self._options.enable_profiling else None
        self._profiling_start = 0
        if self._profiler:
            self._profiling_start = time_ns()
            self._profiler.start()

    def _load(self, providers: Providers | None, options: Sequence[Mapping[str, Any]] | None) -> None:
        """Loads the model for these providers."""
        chosen = available(providers, options)
        named = [place_of(name, options.get("device_id")) for name, options in chosen]
        fallback = "error" if self._options._entries.get(_NO_FALLBACK) == "1" else None
        try:
            with beside_files(self._source, self._options._files) as source:
                self._session = _LoggedSession(source, device=list(dict.fromkeys(named)), fallback=fallback)
        except Exception as error:
            raise of_load(error) from error
        self._providers = [name for name, _ in chosen]
        # The number of a device that nobody gave is no option.
        self._provider_options = {
            name: {key: str(value) for key, value in options.items()} if providers else {} for name, options in chosen
        }
        self._names = [slot.name for slot in self._session.outputs]
        self._feeds = Feeds([*self._session.inputs, *self._session.optional_inputs])
        self._labels = labels_of(self._session._about)
        # A dictionary of outputs has each name once.
        self._gives_each_once = not self._labels and len(set(self._names)) == len(self._names)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Runs the model and returns the named outputs, or all of them, as NumPy arrays."""
        if not output_names and run_options is None and self._gives_each_once and self._feeds.are_ready(input_feed):
            # What most programs call, again and again.
            try:
                ready = self._session.run(input_feed)
            except Exception as error:
                raise of_run(error) from error
            return [_given_up(value) if type(value) is Tensor else to_numpy(value, is_owned=True) for value in ready.values()]
        names = output_names or self._names
        made = self._run(names, input_feed, run_options)
        given = list[Any]()
        for at, value in enumerate(made):
            # An output that is named twice becomes two arrays.
            same = at and next((before for before in range(at) if made[before] is value), at)
            given.append(self._given(names[at], value) if same == at else deepcopy(given[same]))
        return given

    def _given(self, name: str, value: Any, *, is_owned: bool = True) -> Any:
        """An output in onnxruntime's form; `is_owned` says that it has no other owner."""
        return to_maps(value, self._labels[name]) if name in self._labels else to_numpy(value, is_owned=is_owned)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Runs the model on values that are already on a device."""
        for name, value in input_dict_ort_values.items():
            expect_type(value, OrtValue, f"an `OrtValue` for the input `{name}`", "`run` takes arrays and lists")
        feeds = {name: value._value for name, value in input_dict_ort_values.items()}
        return [OrtValue(value) for value in self._run(output_names, feeds, run_options)]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], object],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Runs the model in another thread, which calls `callback` with the outputs, `user_data`, and the error as text, if
        there is one."""
        missing = [slot.name for slot in self._session.inputs if slot.name not in input_feed]
        if missing:
            raise InvalidArgument(f"expected all inputs, found none for {', '.join(missing)}")
        feeds = dict(input_feed)

        def work() -> None:
            made, wrong = list[Any](), ""
            try:
                made = self.run(output_names, feeds, run_options)
            except Exception as error:
                wrong = str(error)
            callback(made, user_data, wrong)

        Thread(target=work, name="oarlock run_async").start()

    def io_binding(self) -> IOBinding:
        """A binding of inputs and outputs to memory."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs the model on the bound inputs and writes the bound outputs."""
        if iobinding._session is not self:
            raise ValueError("expected a binding of this session, found one of another")
        iobinding._run(run_options)

    def _devices(self) -> list[str]:
        return [device.name for device in self._session.devices]

    def _run(
        self, output_names: Sequence[str] | None, feeds: Mapping[str, Any], options: RunOptions | None
    ) -> list[Any]:
        if isinstance(output_names, str):
            raise TypeError(f'expected a list of outputs, found text\nhint: write `["{output_names}"]`')
        if options is not None:
            expect_type(options, RunOptions, "`RunOptions`", "make them with `RunOptions()`")
        for name in output_names or ():
            if name not in self._names:
                raise InvalidArgument(f"expected one of the outputs {', '.join(self._names)}, found `{name}`")
        try:
            made = self._session.run(self._feeds.take(feeds), stop=options._stop if options else None)
        except Exception as error:
            raise of_run(error) from error
        return [made[name] for name in output_names or self._names]

    def get_inputs(self) -> list[NodeArg]:
        """The required inputs."""
        return [self._described(slot) for slot in self._session.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return [self._described(slot) for slot in self._session.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The optional inputs."""
        return [self._described(slot) for slot in self._session.optional_inputs]

    def _described(self, slot: Slot) -> NodeArg:
        return NodeArg(slot, self._labels.get(slot.name), self._options._sizes)

    def get_modelmeta(self) -> ModelMetadata:
        """The metadata of the model."""
        return ModelMetadata(self._session._about)

    def get_providers(self) -> list[str]:
        """The providers that its nodes may run on."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of the providers."""
        return {name: dict(options) for name, options in self._provider_options.items()}

    def set_providers(
        self, providers: Providers | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Loads the model again, for other providers."""
        self._load(providers, provider_options)

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where inputs are taken from without a copy."""
        return [self._memory_info() for _ in self._session.inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where outputs are made."""
        return [self._memory_info() for _ in self._session.outputs]

    def _memory_info(self) -> OrtMemoryInfo:
        device = self._session.devices[0]
        return OrtMemoryInfo(device.type.capitalize(), OrtAllocatorType.ORT_ARENA_ALLOCATOR, device.index, OrtMemType.DEFAULT)

    def create_ortvalue_from_shape_and_type(
        self, shape: Sequence[int], element_type: Any, device_type: str, device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Zeros to be written to, as `OrtValue.ortvalue_from_shape_and_type` makes them."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id, vendor_id)

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Has no effect: runs are not captured."""

    def get_session_options(self) -> SessionOptions:
        """The options that the session was created with."""
        return self._options

    def get_profiling_start_time_ns(self) -> int:
        """When `enable_profiling` began to record, in nanoseconds, as `time.time_ns` counts, or 0."""
        return self._profiling_start

    def end_profiling(self) -> str:
        """Ends the profiling that `enable_profiling` began: writes a trace of everything that ran since the session was created,
        other sessions included, and returns the path of the file, or an empty string if nothing was recorded."""
        if self._profiler is None:
            log.warning("nothing was noted: the session was made without `enable_profiling`, or its profiling has ended")
            return ""
        profiler, self._profiler = self._profiler, None
        profiler.stop()
        file = f"{self._options.profile_file_prefix}_{datetime.now():%Y-%m-%d_%H-%M-%S_%f}.json"
        write_trace(profiler.profile, file)
        return file

    def __getattr__(self, name: str) -> Any:
        raise absent(self, name, type(self).__name__)

    def enable_fallback(self) -> None:
        """Has no effect: after a failure, no other provider is tried."""

    def disable_fallback(self) -> None:
        """Has no effect: after a failure, no other provider is tried."""
