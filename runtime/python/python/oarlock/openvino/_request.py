"""Runs of a model, alone and several at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from threading import Condition
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy

from .._absent import name_of_peer
from .._oarlock import Error, Stop, _given_up
from .._oarlock import Tensor as Array
from .._nesting import is_sequence
from .._peers import InvalidValue, is_mapping, quoted, run_model
from ._tensor import Tensor
from ._types import ConstOutput, Type, find_port

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._model import CompiledModel

INSTEAD = {
    "get_profiling_info": "`oarlock.load(…).profile()` times the steps of a model",
    "profiling_info": "`oarlock.load(…).profile()` times the steps of a model",
    "query_state": "a model keeps no state: give it as an input, and read it as an output",
}
"""Names of requests that are not supported, and what to do instead."""

# As many requests as a queue has on its own: one runs while a callback reads the other.
JOBS = 2


class Results(Mapping[ConstOutput, "NDArray[Any]"]):
    """The outputs of a run, found by port, number or name."""

    def __init__(self, arrays: dict[ConstOutput, NDArray[Any]]) -> None:
        self._arrays = arrays

    def __getitem__(self, key: Any) -> NDArray[Any]:
        try:
            return self._arrays[find_port(list(self._arrays), key, "output")]
        except InvalidValue as error:
            raise KeyError(str(error)) from None

    def __iter__(self) -> Iterator[ConstOutput]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def names(self) -> tuple[set[str], ...]:
        """The names of each output."""
        return tuple(port.get_names() for port in self._arrays)

    def to_dict(self) -> dict[ConstOutput, NDArray[Any]]:
        """The outputs by port."""
        return dict(self._arrays)

    def to_tuple(self) -> tuple[NDArray[Any], ...]:
        """The outputs in their order."""
        return tuple(self._arrays.values())

    def __repr__(self) -> str:
        return repr(self._arrays)


class InferRequest:
    """A run of a model that can be repeated, also in the background.

    >>> import numpy
    >>> request = ol.openvino.compile_model("docs/src/models/digits.onnx").create_infer_request()
    >>> request.start_async({"image": numpy.zeros((1, 1, 8, 8), "float32")})
    >>> request.wait()
    >>> request.get_output_tensor(0).data.shape
    (1, 10)
    """

    def __init__(self, compiled: CompiledModel) -> None:
        self.model_inputs, self.model_outputs = compiled.inputs, compiled.outputs
        self.userdata: Any = None
        self.latency = 0.0
        self._compiled = compiled
        self._inputs = dict[ConstOutput, Tensor]()
        self._outputs = {port: Tensor._before_a_run() for port in self.model_outputs}
        self._targets = dict[ConstOutput, Tensor]()
        self._results: Results | None = None
        self._callback: Callable[[Any], object] | None = None
        self._worker: futures.ThreadPoolExecutor | None = None
        self._work: futures.Future[None] | None = None
        self._stop = Stop()

    def infer(
        self, inputs: Any = None, share_inputs: bool = False, share_outputs: bool = False, *, decode_strings: bool = True
    ) -> Results:
        """Runs the model and returns the outputs. Inputs are an array, a list in the order of the inputs, or a dictionary by
        port, number or name; those that are left out are as before."""
        self._refuse_if_busy()
        self._take(inputs, share_inputs)
        self._stop = Stop()
        self._run()
        return self.results

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        """Starts a run in the background."""
        self._refuse_if_busy()
        self._take(inputs, share_inputs)
        self.userdata = userdata if userdata is not None else self.userdata
        self._start(self._call_back)

    def wait(self) -> None:
        """Waits until the run that was started has ended, and raises its error."""
        work, self._work = self._work, None
        if work is not None:
            work.result()

    def wait_for(self, timeout: int) -> bool:
        """Waits for at most so many milliseconds, and says whether the run has ended."""
        if self._work is not None:
            futures.wait([self._work], timeout / 1000)
        return not self._is_busy()

    def cancel(self) -> None:
        """Ends the run that was started before its next step; `wait` then raises an error."""
        self._stop.set()

    def set_callback(self, callback: Callable[[Any], object], userdata: Any = None) -> None:
        """Calls a function with `userdata` after each run in the background."""
        self._callback, self.userdata = callback, userdata

    @property
    def results(self) -> Results:
        """The outputs of the last run."""
        if self._results is None:
            raise Error("expected a run before its results are read, found none\nhint: call `infer`, or `start_async` and `wait`")
        return self._results

    @property
    def input_tensors(self) -> list[Tensor]:
        """The inputs."""
        return [self._input(port) for port in self.model_inputs]

    @property
    def output_tensors(self) -> list[Tensor]:
        """The outputs."""
        return list(self._outputs.values())

    def get_compiled_model(self) -> CompiledModel:
        """The model."""
        return self._compiled

    def get_input_tensor(self, index: int | None = None) -> Tensor:
        """An input, to be filled; sizes that are open begin as 0."""
        return self._input(find_port(self.model_inputs, index, "input"))

    def get_output_tensor(self, index: int | None = None) -> Tensor:
        """An output, which each run fills."""
        return self._outputs[find_port(self.model_outputs, index, "output")]

    def get_tensor(self, name: str | ConstOutput) -> Tensor:
        """An input or an output."""
        port = find_port([*self.model_inputs, *self.model_outputs], name, "tensor")
        return self._outputs[port] if port in self._outputs else self._input(port)

    def set_input_tensor(self, *index_and_tensor: Any) -> None:
        """Takes a tensor as an input, without a copy."""
        *index, tensor = index_and_tensor
        self._set(find_port(self.model_inputs, index[0] if index else None, "input"), tensor)

    def set_output_tensor(self, *index_and_tensor: Any) -> None:
        """Takes a tensor that each run copies an output into."""
        *index, tensor = index_and_tensor
        self._set(find_port(self.model_outputs, index[0] if index else None, "output"), tensor)

    def set_tensor(self, name: str | ConstOutput, tensor: Tensor) -> None:
        """Takes a tensor as an input or for an output."""
        self._set(find_port([*self.model_inputs, *self.model_outputs], name, "tensor"), tensor)

    def reset_state(self) -> None:
        """Has no effect: a model keeps no state."""

    def __getattr__(self, name: str) -> Any:
        raise name_of_peer(self, name, "InferRequest", INSTEAD)

    def _input(self, port: ConstOutput) -> Tensor:
        return self._inputs.setdefault(port, Tensor(port.element_type, port.partial_shape.get_min_shape()))

    def _set(self, port: ConstOutput, tensor: Any) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"`{port.any_name}`: expected a `Tensor`, found {type(tensor).__name__}\nhint: write `Tensor(array)`")
        if port in self._outputs:
            self._outputs[port] = self._targets[port] = tensor
        else:
            self._inputs[port] = tensor

    def _take(self, inputs: Any, is_shared: bool) -> None:
        """Sets inputs in any of the forms that they are given in."""
        if inputs is None:
            return
        if is_mapping(inputs):
            given = dict[Any, Any](inputs)
        elif is_sequence(inputs):
            given = dict(enumerate(inputs))
        else:
            given = {None: inputs}
        for key, value in given.items():
            port = find_port(self.model_inputs, key, "input")
            self._inputs[port] = value if isinstance(value, Tensor) else Tensor(_array_of(port, value), is_shared)

    def _run(self) -> None:
        feeds = dict[str, Any]()
        for port in self.model_inputs:
            if port not in self._inputs:
                names = quoted([each.any_name for each in self.model_inputs])
                raise InvalidValue(f"expected values for all inputs ({names}), found none for `{port.any_name}`")
            array = self._inputs[port].data
            if port.partial_shape.is_static and port.shape != list(array.shape):
                raise InvalidValue(f"input `{port.any_name}`: expected the shape {port.shape}, found {list(array.shape)}")
            feeds[port.any_name] = array
        begin = perf_counter()
        made = run_model(self._compiled._session, feeds, self._stop)
        self.latency = (perf_counter() - begin) * 1000
        arrays = dict[ConstOutput, Any]()
        for port in self.model_outputs:
            value = made[port.any_name]
            arrays[port] = array = _given_up(value) if isinstance(value, Array) else value
            if port not in self._targets:
                self._outputs[port]._array = array
            elif self._targets[port].data.shape == array.shape:
                numpy.copyto(self._targets[port].data, array)
            else:
                found = list(self._targets[port].data.shape)
                raise InvalidValue(f"output `{port.any_name}`: expected a tensor of the shape {list(array.shape)}, found {found}")
        self._results = Results(arrays)

    def _start(self, then: Callable[[], object]) -> futures.Future[None]:
        """Runs the model in the request's own thread, which then calls a function."""
        self._stop = Stop()
        self._worker = self._worker or futures.ThreadPoolExecutor(1, "oarlock start_async")

        def work() -> None:
            self._run()
            then()

        self._work = self._worker.submit(work)
        return self._work

    def _call_back(self) -> None:
        if self._callback is not None:
            self._callback(self.userdata)

    def _is_busy(self) -> bool:
        return self._work is not None and not self._work.done()

    def _refuse_if_busy(self) -> None:
        if self._is_busy():
            hint = "call `wait` first, or use an `AsyncInferQueue`"
            raise Error(f"expected a request that is idle, found one that runs\nhint: {hint}")


class AsyncInferQueue:
    """Requests that run at once. `start_async` takes the next idle one, and waits if there is none.

    >>> import numpy
    >>> shapes = {}
    >>> queue = ol.openvino.AsyncInferQueue(ol.openvino.compile_model("docs/src/models/digits.onnx"), 2)
    >>> queue.set_callback(lambda request, name: shapes.update({name: request.get_output_tensor(0).data.shape}))
    >>> queue.start_async({"image": numpy.zeros((1, 1, 8, 8), "float32")}, "first")
    >>> queue.wait_all()
    >>> shapes
    {'first': (1, 10)}
    """

    def __init__(self, model: CompiledModel, jobs: int = 0) -> None:
        self._requests = [InferRequest(model) for _ in range(jobs or JOBS)]
        self._idle = list(range(len(self._requests)))
        self._change = Condition()
        self._callback: Callable[[InferRequest, Any], object] | None = None
        self._wrong: BaseException | None = None

    def set_callback(self, callback: Callable[[InferRequest, Any], object]) -> None:
        """Calls a function with the request and its `userdata` after each run."""
        self._callback = callback

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        """Starts a run in the background as soon as a request is idle."""
        with self._change:
            self._change.wait_for(lambda: self._idle)
            number = self._idle.pop(0)
        request = self._requests[number]
        request.userdata = userdata
        try:
            request._take(inputs, share_inputs)
            work = request._start(lambda: self._callback and self._callback(request, userdata))
        except BaseException:
            self._end(number, None)
            raise
        work.add_done_callback(lambda work: self._end(number, work.exception()))

    def wait_all(self) -> None:
        """Waits until all runs have ended, and raises the first error of one."""
        with self._change:
            self._change.wait_for(lambda: len(self._idle) == len(self._requests))
            wrong, self._wrong = self._wrong, None
        if wrong is not None:
            raise wrong

    def is_ready(self) -> bool:
        """Whether a request is idle."""
        return bool(self._idle)

    def get_idle_request_id(self) -> int:
        """The number of an idle request; waits if there is none."""
        with self._change:
            self._change.wait_for(lambda: self._idle)
            return self._idle[0]

    @property
    def userdata(self) -> list[Any]:
        """The `userdata` of each request."""
        return [request.userdata for request in self._requests]

    def __len__(self) -> int:
        return len(self._requests)

    def __getitem__(self, number: int) -> InferRequest:
        return self._requests[number]

    def __iter__(self) -> Iterator[InferRequest]:
        return iter(self._requests)

    def _end(self, number: int, wrong: BaseException | None) -> None:
        with self._change:
            self._wrong = self._wrong or wrong
            self._idle.append(number)
            self._change.notify_all()


def _array_of(port: ConstOutput, value: Any) -> NDArray[Any]:
    """An input as an array of its type, as OpenVINO casts it."""
    try:
        array: NDArray[Any] = numpy.asarray(value)
        kind = port.element_type
        return array if kind in (Type.dynamic, Type.string) else numpy.asarray(array, kind.to_dtype(), order="C")
    except (TypeError, ValueError) as error:
        found = type(value).__name__
        raise InvalidValue(
            f"input `{port.any_name}`: expected numbers that are {port.element_type.name}, found {found}: {error}"
        ) from error
