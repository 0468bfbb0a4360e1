"""The API of LiteRT, before TensorFlow Lite, on Oarlock: change `tflite_runtime.interpreter` to `oarlock.tflite` in imports.

Models are ONNX files or programs of Paddle. Files of TensorFlow Lite itself are not read; the package `tf2onnx` converts them.

Exceptions are a `ValueError` and a `RuntimeError` at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn

import numpy

from ._absent import name_of_peer
from ._oarlock import Tensor, _given_up
from ._peers import InvalidValue, Unsupported, choose_threads, open_model, quoted, run_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._oarlock import Slot

__all__ = ["Interpreter", "SignatureRunner", "load_delegate"]

INSTEAD = {
    "Delegate": "choose the device with `oarlock.set_device` before the model is loaded",
    "InterpreterWithCustomOps": "write an op of your own with `oarlock.extension`",
    "OpResolverType": "leave it out: kernels are chosen by itself",
    "get_tensor_details": "use `get_input_details` and `get_output_details`; `oarlock.load(…).explain()` lists the nodes",
    "reset_all_variables": "leave the call out: a model keeps no variables",
}
"""Names that are not supported, and what to do instead."""

# The name that converters give the only signature of a model.
_SIGNATURE = "serving_default"


class Interpreter:
    """A model whose inputs and outputs have numbers: first those of the inputs, then those of the outputs.

    >>> import numpy
    >>> interpreter = ol.tflite.Interpreter("docs/src/models/digits.onnx")
    >>> interpreter.allocate_tensors()
    >>> interpreter.set_tensor(interpreter.get_input_details()[0]["index"], numpy.zeros((1, 1, 8, 8), "float32"))
    >>> interpreter.invoke()
    >>> interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).shape
    (1, 10)
    """

    def __init__(
        self,
        model_path: str | PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Any] | None = None,
        num_threads: int | None = None,
        **_options: Any,
    ) -> None:
        if (model_path is None) == (model_content is None):
            found = "none" if model_path is None else "both"
            raise InvalidValue(f"expected either `model_path` or `model_content`, found {found}")
        if experimental_delegates:
            raise Unsupported(f"expected no delegates, found {len(experimental_delegates)}\nhint: {INSTEAD['Delegate']}")
        if num_threads is not None:
            if num_threads < 1:
                raise InvalidValue(f"expected at least 1 thread for `num_threads`, found {num_threads}")
            choose_threads(num_threads, "`num_threads`")
        model = model_path if model_path is not None else model_content
        assert model is not None
        self._session = open_model(model)
        self._inputs, self._outputs = self._session.inputs, self._session.outputs
        self._slots = [*self._inputs, *self._outputs]
        # The chosen shapes of the inputs.
        self._shapes = [_with_ones(slot, {}) for slot in self._inputs]
        self._arrays: dict[int, NDArray[Any]] = {}
        self._is_ready = False

    def allocate_tensors(self) -> None:
        """Makes the inputs, as zeros of their shapes. It comes before everything else."""
        for index, slot in enumerate(self._inputs):
            shape = tuple(self._shapes[index])
            if self._arrays.get(index) is None or self._arrays[index].shape != shape:
                self._arrays[index] = numpy.zeros(shape, _dtype(slot))
        if not self._is_ready:
            self._arrays = {index: self._arrays[index] for index in range(len(self._inputs))}
        self._is_ready = True

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        """Chooses the shape of an input. `allocate_tensors` has to follow."""
        slot, shape = self._input(input_index), [int(size) for size in tensor_size]
        known = slot.shape
        if known is not None and (
            len(known) != len(shape) or any(isinstance(size, int) and size != new for size, new in zip(known, shape, strict=True))
        ):
            raise InvalidValue(f"input {input_index}, `{slot.name}`: expected a shape that fits {slot.kind}, found {shape}")
        self._shapes[input_index] = shape
        self._is_ready = False

    def get_input_details(self) -> list[dict[str, Any]]:
        """What each input is: its name, number, shape with 1 for open sizes, dtype, and the same fields as in LiteRT."""
        return [self._details(index) for index in range(len(self._inputs))]

    def get_output_details(self) -> list[dict[str, Any]]:
        """The same for each output. Sizes that only a run tells are 1 before the first."""
        return [self._details(index) for index in range(len(self._inputs), len(self._slots))]

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copies an array into an input. Its dtype and shape must be those of the input."""
        slot, array = self._input(tensor_index), numpy.asarray(value)
        expected = self._array(tensor_index)
        if array.dtype != expected.dtype and not (array.dtype.kind in "OSU" and expected.dtype.kind in "OU"):
            hint = f'\nhint: convert it with `numpy.array(…, "{expected.dtype}")`'
            raise InvalidValue(f"input {tensor_index}, `{slot.name}`: expected {expected.dtype}, found {array.dtype}{hint}")
        if array.shape != expected.shape:
            hint = "\nhint: choose another shape with `resize_tensor_input` and `allocate_tensors`"
            raise InvalidValue(
                f"input {tensor_index}, `{slot.name}`: expected the shape {list(expected.shape)}, found {list(array.shape)}{hint}"
            )
        self._arrays[tensor_index] = numpy.array(array, order="C")

    def invoke(self) -> None:
        """Runs the model."""
        self._refuse_unless_ready()
        made = run_model(self._session, {slot.name: self._arrays[index] for index, slot in enumerate(self._inputs)})
        for index, slot in enumerate(self._outputs, len(self._inputs)):
            value = made[slot.name]
            self._arrays[index] = _given_up(value) if isinstance(value, Tensor) else value

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> NDArray[Any]:
        """A copy of an input or an output."""
        return self._array(tensor_index).copy()

    def tensor(self, tensor_index: int) -> Callable[[], NDArray[Any]]:
        """A function that gives the array of an input, which may be written to, or of an output of the last run."""
        return lambda: self._array(tensor_index)

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of inputs and outputs, as the only signature `serving_default`."""
        names = {"inputs": [slot.name for slot in self._inputs], "outputs": [slot.name for slot in self._outputs]}
        return {_SIGNATURE: names}

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """The model as a function of its inputs by name."""
        if signature_key not in (None, _SIGNATURE):
            raise InvalidValue(f"expected the signature `{_SIGNATURE}`, found `{signature_key}`")
        return SignatureRunner(self)

    def num_subgraphs(self) -> int:
        """Always 1: branches and loops belong to their nodes."""
        return 1

    def __getattr__(self, name: str) -> NoReturn:
        raise name_of_peer(self, name, "Interpreter", INSTEAD)

    def _details(self, index: int) -> dict[str, Any]:
        slot = self._slots[index]
        has_run = self._is_ready and index >= len(self._inputs) and index in self._arrays
        sizes = self._arrays[index].shape if has_run else self._sizes(index)
        return {
            "name": slot.name,
            "index": index,
            "shape": numpy.array(sizes, numpy.int32),
            "shape_signature": numpy.array([size if isinstance(size, int) else -1 for size in slot.shape or ()], numpy.int32),
            "dtype": _dtype(slot).type,
            "quantization": (0.0, 0),
            "quantization_parameters": {
                "scales": numpy.array([], numpy.float32),
                "zero_points": numpy.array([], numpy.int32),
                "quantized_dimension": 0,
            },
            "sparsity_parameters": {},
        }

    def _sizes(self, index: int) -> list[int]:
        """The shape of an input as it was chosen, or of an output as far as it follows from those of the inputs."""
        if index < len(self._inputs):
            return self._shapes[index]
        bound = {
            name: size
            for slot, shape in zip(self._inputs, self._shapes, strict=True)
            for name, size in zip(slot.shape or (), shape, strict=False)
        }
        return _with_ones(self._slots[index], bound)

    def _input(self, index: int) -> Slot:
        if not 0 <= index < len(self._inputs):
            listed = ", ".join(f"{number} (`{slot.name}`)" for number, slot in enumerate(self._inputs))
            raise InvalidValue(f"expected the number of an input, {listed}, found {index}")
        return self._inputs[index]

    def _array(self, index: int) -> NDArray[Any]:
        if not 0 <= index < len(self._slots):
            raise InvalidValue(f"expected the number of a tensor from 0 to {len(self._slots) - 1}, found {index}")
        self._refuse_unless_ready()
        if index not in self._arrays:
            name = self._slots[index].name
            raise InvalidValue(f"output {index}, `{name}`: expected a run before, found none\nhint: call `invoke` first")
        return self._arrays[index]

    def _refuse_unless_ready(self) -> None:
        if not self._is_ready:
            hint = "call `allocate_tensors` first, and again after `resize_tensor_input`"
            raise InvalidValue(f"expected tensors that are allocated, found none\nhint: {hint}")


class SignatureRunner:
    """A model as a function of its inputs by name, which returns its outputs by name.

    >>> import numpy
    >>> run = ol.tflite.Interpreter("docs/src/models/digits.onnx").get_signature_runner()
    >>> run(image=numpy.zeros((1, 1, 8, 8), "float32"))["probabilities"].shape
    (1, 10)
    """

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter

    def __call__(self, **inputs: Any) -> dict[str, NDArray[Any]]:
        interpreter = self._interpreter
        numbers = {slot.name: index for index, slot in enumerate(interpreter._inputs)}
        if inputs.keys() != numbers.keys():
            raise InvalidValue(f"expected the inputs {quoted(list(numbers))}, found {quoted(list(inputs)) or 'none'}")
        arrays = {numbers[name]: numpy.asarray(value) for name, value in inputs.items()}
        for index, array in arrays.items():
            interpreter.resize_tensor_input(index, array.shape)
        interpreter.allocate_tensors()
        for index, array in arrays.items():
            interpreter.set_tensor(index, array)
        interpreter.invoke()
        return {slot.name: interpreter.get_tensor(index) for index, slot in enumerate(interpreter._outputs, len(numbers))}

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """What each input is, by name."""
        return {each["name"]: each for each in self._interpreter.get_input_details()}

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """What each output is, by name."""
        return {each["name"]: each for each in self._interpreter.get_output_details()}


def load_delegate(library: str, options: Any = None) -> NoReturn:
    """Is not supported: devices are plugins of Oarlock. The error is a `ValueError`, after which programs use the CPU.

    >>> try:
    ...     ol.tflite.load_delegate("libedgetpu.so.1")
    ... except ValueError as error:
    ...     print(str(error).partition(",")[0])
    expected no delegates
    """
    raise InvalidValue(f"expected no delegates, found `{library}`\nhint: {INSTEAD['Delegate']}")


def _dtype(slot: Slot) -> numpy.dtype[Any]:
    """The dtype of NumPy."""
    if slot.dtype is None:
        raise Unsupported(f"`{slot.name}`: expected an array, found {slot.kind}\nhint: run the model with `oarlock.load`")
    return numpy.dtype(object) if slot.dtype.name == "str" else numpy.dtype(slot.dtype.__numpy_dtype__)


def _with_ones(slot: Slot, bound: dict[Any, int]) -> list[int]:
    """The shape, with 1 for open sizes that are not bound."""
    return [size if isinstance(size, int) else bound.get(size, 1) if size else 1 for size in slot.shape or ()]


def __getattr__(name: str) -> NoReturn:
    """For unsupported names, says what to do instead."""
    raise name_of_peer(sys.modules[__name__], name, "oarlock.tflite", INSTEAD)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
