"""Inputs and outputs bound to memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import Device
from ._errors import InvalidArgument
from ._values import Bound, OrtValue

if TYPE_CHECKING:
    from ._options import RunOptions
    from ._session import InferenceSession


class IOBinding:
    """The memory that the inputs of a session are read from and its outputs are written to.

    >>> import numpy
    >>> session = ol.onnxruntime.InferenceSession("docs/src/models/digits.onnx")
    >>> binding = session.io_binding()
    >>> binding.bind_cpu_input("image", numpy.zeros((1, 1, 8, 8), "float32"))
    >>> binding.bind_output("probabilities")
    >>> session.run_with_iobinding(binding)
    >>> binding.copy_outputs_to_cpu()[0].shape
    (1, 10)
    """

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Bound] = {}
        self._made: dict[str, OrtValue] = {}

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds an input to a NumPy array; each run reads its current elements."""
        self._bind_input(name, arr_on_cpu)

    def bind_input(
        self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int
    ) -> None:
        """Binds an input to an address in host memory."""
        self._bind_input(name, Bound.at(device_type, device_id, element_type, shape, buffer_ptr))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an input to a value."""
        self._bind_input(name, ortvalue)

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        """Binds an output to a device, which allocates it, or to an address in host memory."""
        if buffer_ptr is None:
            self._bind_output(name, Bound.on(device_type, device_id))
            return
        if element_type is None or shape is None:
            raise ValueError(f"expected `element_type` and `shape` beside `buffer_ptr` of `{name}`, found none")
        self._bind_output(name, Bound.within(Bound.at(device_type, device_id, element_type, shape, buffer_ptr)))

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Binds an output to a value."""
        self._bind_output(name, Bound.within(ortvalue))

    def synchronize_inputs(self) -> None:
        """Waits until the bound inputs have arrived."""
        self._synchronize()

    def synchronize_outputs(self) -> None:
        """Waits until the bound outputs have been written."""
        self._synchronize()

    def get_outputs(self) -> list[OrtValue]:
        """The outputs of the last run, in the order of their binding."""
        return list(self._made.values())

    def get_outputs_as_ortvaluevector(self) -> list[OrtValue]:
        """The outputs of the last run, as `get_outputs` gives them: here, such a vector is a list."""
        return self.get_outputs()

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Copies of the outputs of the last run, as `run` gives them."""
        return [self._session._given(name, value._value, is_owned=False) for name, value in self._made.items()]

    def clear_binding_inputs(self) -> None:
        """Removes the bindings of all inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Removes the bindings of all outputs."""
        self._outputs.clear()

    def _bind_input(self, name: str, value: Any) -> None:
        known = [each.name for each in [*self._session.get_inputs(), *self._session.get_overridable_initializers()]]
        if name not in known:
            raise InvalidArgument(f"expected one of the inputs {', '.join(known)}, found `{name}`")
        self._inputs[name] = value

    def _bind_output(self, name: str, to: Bound) -> None:
        known = [each.name for each in self._session.get_outputs()]
        if name not in known:
            raise InvalidArgument(f"expected one of the outputs {', '.join(known)}, found `{name}`")
        self._outputs[name] = to

    def _synchronize(self) -> None:
        for provider in self._session._devices():
            Device(provider).synchronize()

    def _run(self, options: RunOptions | None) -> None:
        if not self._outputs:
            raise InvalidArgument("expected an output that is bound, found none\nhint: `bind_output` names one")
        made = self._session._run(list(self._outputs), self._inputs, options)
        self._made = {name: to.take(value) for (name, to), value in zip(self._outputs.items(), made, strict=True)}
