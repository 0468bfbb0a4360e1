"""Predictors, which are models with a handle for each input and output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import _oarlock
from .._absent import name_of_peer
from .._oarlock import Error
from .._peers import InvalidValue, quoted, run_model
from ._config import Config
from ._tensor import Tensor, as_array

if TYPE_CHECKING:
    from .._model import Session

# The version of Paddle whose interface this is.
_INTERFACE = "3.3.1"

_HOOK = "`oarlock.load(…).profile()` and the command `oarlock trace` tell about the steps of a run"
INSTEAD = {"register_input_hook": _HOOK, "register_output_hook": _HOOK}
"""Names of predictors that are not supported, and what to do instead."""


class Predictor:
    """A model with a handle for each input and output. Threads that run it at once need a clone each.

    >>> inference = ol.paddle_inference
    >>> predictor = inference.create_predictor(inference.Config("docs/src/models/digits.onnx"))
    >>> predictor.get_input_names(), predictor.get_output_names()
    (['image'], ['probabilities'])
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._inputs = {slot.name: Tensor(slot, is_input=True) for slot in session.inputs}
        self._outputs = {slot.name: Tensor(slot, is_input=False) for slot in session.outputs}

    def get_input_names(self) -> list[str]:
        """The names of the inputs."""
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """The names of the outputs."""
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Tensor:
        """The handle of an input."""
        return _handle(self._inputs, name, "inputs")

    def get_output_handle(self, name: str) -> Tensor:
        """The handle of an output."""
        return _handle(self._outputs, name, "outputs")

    def run(self, inputs: Sequence[Any] | None = None) -> list[_oarlock.Tensor] | None:
        """Runs the model on what the handles hold. With a list of arrays, in the order of the inputs, it returns a list of
        arrays of Oarlock."""
        if inputs is not None:
            if len(inputs) != len(self._inputs):
                raise InvalidValue(f"expected {len(self._inputs)} inputs ({quoted(list(self._inputs))}), found {len(inputs)}")
            for handle, value in zip(self._inputs.values(), inputs, strict=True):
                handle._put(as_array(value))
        feeds = {name: handle._value for name, handle in self._inputs.items()}
        missing = [name for name, value in feeds.items() if value is None]
        if missing:
            raise Error(f"expected elements of all inputs, found none for {quoted(missing)}\nhint: call `copy_from_cpu` first")
        made = run_model(self._session, feeds)
        for name, handle in self._outputs.items():
            handle._put(made[name])
        return None if inputs is None else list(made.values())

    def clone(self, stream: object = None) -> Predictor:
        """A predictor of the same model, with handles of its own."""
        return Predictor(self._session)

    def clear_intermediate_tensor(self) -> None:
        """Has no effect: nothing but the outputs outlives a run."""

    def try_shrink_memory(self) -> int:
        """Gives unused memory back to the device, and returns the number of bytes."""
        return sum(device.release_memory() for device in self._session.devices)

    def __getattr__(self, name: str) -> Any:
        raise name_of_peer(self, name, "Predictor", INSTEAD)


class PredictorPool:
    """Predictors of one model, one for each thread.

    >>> inference = ol.paddle_inference
    >>> pool = inference.PredictorPool(inference.Config("docs/src/models/digits.onnx"), 2)
    >>> pool.retrieve(1).get_input_names()
    ['image']
    """

    def __init__(self, config: Config, size: int = 1) -> None:
        if size < 1:
            raise InvalidValue(f"expected a pool of at least 1 predictor, found {size}")
        first = create_predictor(config)
        self._predictors = [first, *(first.clone() for _ in range(size - 1))]

    def retrieve(self, index: int) -> Predictor:
        """One of the predictors."""
        if not 0 <= index < len(self._predictors):
            raise InvalidValue(f"expected a predictor from 0 to {len(self._predictors) - 1}, found {index}")
        return self._predictors[index]

    # Paddle spells it so.
    retrive = retrieve


def create_predictor(config: Config) -> Predictor:
    """Loads a model.

    >>> inference = ol.paddle_inference
    >>> inference.create_predictor(inference.Config("docs/src/models/digits.onnx")).get_input_names()
    ['image']
    """
    return Predictor(config._open())


def get_version() -> str:
    """The version of Paddle whose interface this is, with that of Oarlock as its local part.

    >>> ol.paddle_inference.get_version().split("+")[0]
    'version: 3.3.1'
    """
    return f"version: {_INTERFACE}+oarlock.{_oarlock.__version__}\n"


def _handle(handles: dict[str, Tensor], name: str, what: str) -> Tensor:
    if name not in handles:
        raise InvalidValue(f"expected one of the {what} {quoted(list(handles))}, found `{name}`")
    return handles[name]
