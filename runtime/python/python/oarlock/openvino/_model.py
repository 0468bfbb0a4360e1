"""Models, and the core that reads and compiles them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import IO, TYPE_CHECKING, Any

from .._absent import name_of_peer
from .._oarlock import bfloat16, default_device, devices, float32
from .._peers import InvalidValue, Unsupported, choose_threads, is_mapping, open_model
from ._request import JOBS, InferRequest, Results
from ._types import ConstOutput, Dimension, PartialShape, Type, find_port

if TYPE_CHECKING:
    from os import PathLike

    from .._model import Session
    from .._oarlock import Device, Slot

# The device types that OpenVINO calls GPU.
_GPUS = ("cuda", "rocm", "xpu", "opencl")

NO_EFFECT = frozenset("""
    ALLOW_AUTO_BATCHING AUTO_BATCH_TIMEOUT CACHE_DIR CACHE_MODE COMPILATION_NUM_THREADS CPU_DENORMALS_OPTIMIZATION DEVICE_ID
    DYNAMIC_QUANTIZATION_GROUP_SIZE ENABLE_CPU_PINNING ENABLE_CPU_RESERVATION ENABLE_HYPER_THREADING ENABLE_MMAP
    EXECUTION_MODE_HINT INFERENCE_NUM_THREADS INFERENCE_PRECISION_HINT KV_CACHE_PRECISION LOG_LEVEL MODEL_DISTRIBUTION_POLICY
    MODEL_PRIORITY MULTI_DEVICE_PRIORITIES NUM_STREAMS PERFORMANCE_HINT PERFORMANCE_HINT_NUM_REQUESTS PERF_COUNT SCHEDULING_CORE_TYPE
""".split())
"""Properties that are stored. Of them, `INFERENCE_NUM_THREADS` and `INFERENCE_PRECISION_HINT` take effect."""

_EXPORT = "give the ONNX file; loading it takes little time"
_SAVE = "`oarlock.load(…).save(…)` writes the optimized model as an ONNX file"
_EXPLAIN = "`oarlock.load(…).explain()` lists the nodes, and says which kernel runs each"
INSTEAD = {
    "add_extension": "write an op of your own with `oarlock.extension`",
    "add_outputs": "add outputs to the model when it is exported",
    "create_context": "arrays of Oarlock stay on their device",
    "export_model": _SAVE,
    "get_ops": _EXPLAIN,
    "get_ordered_ops": _EXPLAIN,
    "get_parameters": "use `inputs`",
    "get_results": "use `outputs`",
    "get_runtime_model": _EXPLAIN,
    "get_versions": "use `get_version` of the module",
    "import_model": _EXPORT,
    "query_model": _EXPLAIN,
    "query_state": "a model keeps no state: give it as an input, and read it as an output",
    "register_plugin": "install a plugin of Oarlock, as `oarlock.devices()` then shows",
}
"""Names of these classes that are not supported, and what to do instead."""


class _Described:
    """What has inputs and outputs."""

    inputs: list[ConstOutput]
    outputs: list[ConstOutput]

    def input(self, key: int | str | None = None) -> ConstOutput:
        """An input by number or name, or the only one."""
        return find_port(self.inputs, key, "input")

    def output(self, key: int | str | None = None) -> ConstOutput:
        """An output by number or name, or the only one."""
        return find_port(self.outputs, key, "output")

    def __getattr__(self, name: str) -> Any:
        raise name_of_peer(self, name, type(self).__name__, INSTEAD)

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(repr, ports)) for ports in (self.inputs, self.outputs))
        return f"<{type(self).__name__}:\ninputs[{inputs}]\noutputs[{outputs}]>"


class Model(_Described):
    """A model that was read, whose open sizes `reshape` may fix.

    >>> model = ol.openvino.Core().read_model("docs/src/models/digits.onnx")
    >>> model.reshape([4, 1, 8, 8])
    >>> model.output(0).partial_shape
    <PartialShape: [4,10]>
    """

    def __init__(self, source: str | bytes) -> None:
        self._source = source
        self._session = open_model(source, "cpu")
        self._shapes: dict[str, PartialShape] = {}
        self.friendly_name = self._session.graph_name
        self._describe({})

    def reshape(self, partial_shape: Any) -> None:
        """Fixes sizes of the inputs: a shape for the only input, or a dictionary of shapes by number, name or port. Sizes of outputs
        that have the same name in the model follow."""
        given: Mapping[Any, Iterable[Any]] = partial_shape if is_mapping(partial_shape) else {None: partial_shape}
        shapes = {find_port(self.inputs, key, "input").any_name: PartialShape(shape) for key, shape in given.items()}
        bound = dict[str, Dimension]()
        for slot in self._session.inputs:
            for size, new in _pairs(slot, shapes.get(slot.name)):
                if isinstance(size, str):
                    bound[size] = new
        self._shapes |= shapes
        self._describe(bound)

    def is_dynamic(self) -> bool:
        """Whether a size is open."""
        return any(port.partial_shape.is_dynamic for port in (*self.inputs, *self.outputs))

    def get_friendly_name(self) -> str:
        """The name of the graph."""
        return self.friendly_name

    def _describe(self, bound: Mapping[str, Dimension]) -> None:
        self.inputs = [_port(slot, bound, self._shapes.get(slot.name)) for slot in self._session.inputs]
        self.outputs = [_port(slot, bound) for slot in self._session.outputs]


class CompiledModel(_Described):
    """A model that is ready to run. Called like a function, it takes what `InferRequest.infer` takes.

    >>> import numpy
    >>> compiled = ol.openvino.compile_model("docs/src/models/digits.onnx")
    >>> compiled(numpy.zeros((1, 1, 8, 8), "float32"))["probabilities"].shape
    (1, 10)
    """

    def __init__(self, model: Model, session: Session, properties: Mapping[str, Any]) -> None:
        self.inputs, self.outputs = model.inputs, model.outputs
        self._session = session
        self._properties = {
            **properties,
            "EXECUTION_DEVICES": [_named(device) for device in session.devices],
            "NETWORK_NAME": model.friendly_name,
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS": JOBS,
        }

    def __call__(
        self, inputs: Any = None, share_inputs: bool = True, share_outputs: bool = False, *, decode_strings: bool = True
    ) -> Results:
        return InferRequest(self).infer(inputs, share_inputs)

    def infer_new_request(self, inputs: Any = None) -> Results:
        """Runs the model once."""
        return InferRequest(self).infer(inputs)

    def create_infer_request(self) -> InferRequest:
        """A request, which can run in the background."""
        return InferRequest(self)

    def get_property(self, property: str) -> Any:
        """A property by name."""
        return _property(self._properties, property)

    def release_memory(self) -> None:
        """Gives unused memory back to the devices."""
        for device in self._session.devices:
            device.release_memory()


class Core:
    """Reads models, and compiles them for devices.

    >>> core = ol.openvino.Core()
    >>> core.available_devices
    ['CPU']
    >>> core.compile_model("docs/src/models/digits.onnx", "CPU").input(0).any_name
    'image'
    """

    def __init__(self, xml_config_file: str = "") -> None:
        self._properties = dict[str, Any]()

    @property
    def available_devices(self) -> list[str]:
        """The devices: `CPU`, `GPU` or several such as `GPU.0`, and those of plugins by their own names."""
        names = [_named(device) for device in devices()]
        only = [name.removesuffix(".0") if f"{name.removesuffix('0')}1" not in names else name for name in names]
        return sorted(only)

    def get_available_devices(self) -> list[str]:
        """The same as `available_devices`."""
        return self.available_devices

    def read_model(
        self, model: str | bytes | PathLike[str] | IO[bytes], weights: Any = None, config: Any = None
    ) -> Model:
        """Reads a model from a file of ONNX or Paddle, or from the bytes of an ONNX file."""
        source = os.fspath(model) if isinstance(model, (str, bytes, os.PathLike)) else model.read()
        if isinstance(source, str) and source.endswith(".xml"):
            raise Unsupported(
                f"`{source}`: expected a model of ONNX or Paddle, found OpenVINO's own format\n"
                "hint: give the `.onnx` file that it was converted from"
            )
        return Model(source)

    def compile_model(
        self,
        model: Model | str | bytes | PathLike[str],
        device_name: str | Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        weights: Any = None,
    ) -> CompiledModel:
        """Makes a model ready for a device, such as `CPU`, `GPU.1`, `AUTO` or `HETERO:GPU,CPU`. Without a name, as with `AUTO`, it
        is the default device."""
        if isinstance(device_name, Mapping):
            device_name, config = None, device_name
        read = model if isinstance(model, Model) else self.read_model(model)
        properties = self._properties | _stored(config or {})
        threads = int(properties.get("INFERENCE_NUM_THREADS", 0))
        if threads:
            choose_threads(threads, "`INFERENCE_NUM_THREADS`")
        names = _devices(device_name or "AUTO")
        is_rounded = properties.get("INFERENCE_PRECISION_HINT") in (Type.bf16, "bf16")
        if names == ["cpu:0"] and not is_rounded:
            return CompiledModel(read, read._session, properties)
        return CompiledModel(read, open_model(read._source, names, bfloat16 if is_rounded else float32), properties)

    def set_property(self, *device_and_properties: Any) -> None:
        """Sets properties of models that are compiled later."""
        self._properties |= _stored(device_and_properties[-1])

    def get_property(self, device_name: str, property: str | None = None) -> Any:
        """A property of a device by name."""
        if property is None:
            return _property(self._properties, device_name)
        (name,) = _devices(device_name)[:1]
        device = next(each for each in devices() if each.name == name)
        facts = {"FULL_DEVICE_NAME": device.description, "DEVICE_ID": str(device.index), "AVAILABLE_DEVICES": self.available_devices}
        return _property(self._properties | facts, property)

    def __getattr__(self, name: str) -> Any:
        raise name_of_peer(self, name, "Core", INSTEAD)


def compile_model(
    model: Model | str | bytes | PathLike[str], device_name: str = "AUTO", config: Mapping[str, Any] | None = None
) -> CompiledModel:
    """Makes a model ready, without a core.

    >>> ol.openvino.compile_model("docs/src/models/digits.onnx").output(0).any_name
    'probabilities'
    """
    return Core().compile_model(model, device_name, config)


def convert_model(input_model: Any, *, share_weights: bool = True, verbose: bool = False) -> Model:
    """Reads a model from a file of ONNX or Paddle, or takes a `ModelProto` of the package `onnx`.

    >>> ol.openvino.convert_model("docs/src/models/digits.onnx").input(0).any_name
    'image'
    """
    given: Any = input_model
    if hasattr(given, "SerializeToString"):
        return Model(given.SerializeToString())
    if not isinstance(given, (str, os.PathLike)):
        raise Unsupported(
            f"expected the path of a model of ONNX or Paddle, found {type(input_model).__name__}\n"
            "hint: export it to ONNX with the library that it comes from"
        )
    return Core().read_model(input_model)


def _pairs(slot: Slot, shape: PartialShape | None) -> list[tuple[int | str | None, Dimension]]:
    """The sizes of an input in the model, each with the new one."""
    if shape is None or slot.shape is None:
        return []
    fits = len(shape) == len(slot.shape) and all(
        new.is_dynamic or not isinstance(size, int) or new == size for size, new in zip(slot.shape, shape, strict=True)
    )
    if not fits:
        raise InvalidValue(f"input `{slot.name}`: expected a shape that fits {slot.kind}, found {shape}")
    return list(zip(slot.shape, shape, strict=True))


def _port(slot: Slot, bound: Mapping[str, Dimension], shape: PartialShape | None = None) -> ConstOutput:
    """The port of an input or output."""
    sizes = [size if isinstance(size, int) else bound.get(size or "", -1) for size in slot.shape or ()]
    return ConstOutput(slot.name, slot.dtype, PartialShape(sizes) if shape is None else shape)


def _named(device: Device) -> str:
    """The name that OpenVINO would give a device."""
    if device.type == "cpu":
        return "CPU"
    return f"{'GPU' if device.type in _GPUS else device.type}.{device.index}"


def _devices(name: str) -> list[str]:
    """The devices that a name of OpenVINO means, in order of preference."""
    kind, _, listed = name.partition(":")
    if kind in ("AUTO", "MULTI", "HETERO", "BATCH"):
        if not listed:
            return [default_device().name]
        wanted = [each.partition("(")[0].strip() for each in listed.split(",")]
    else:
        wanted = [name]
    known = {_named(device): device.name for device in devices()}
    found = [known.get(each) or known.get(f"{each}.0") or known.get(each.removesuffix(".0")) for each in wanted]
    # `AUTO` passes over devices that are not there.
    there = [each for each in found if each is not None]
    if not there or (len(there) < len(wanted) and kind != "AUTO"):
        raise InvalidValue(
            f"expected devices among {', '.join(known)}, found `{name}`\nhint: `oarlock.devices()` lists the devices, and "
            "`python -m oarlock doctor` explains why one is missing"
        )
    return there


def _stored(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties, all of which are known."""
    for name in properties:
        if name not in NO_EFFECT:
            raise _unknown_property(name)
    return {str(name): value for name, value in properties.items()}


def _property(known: Mapping[str, Any], name: str) -> Any:
    """The value of a property; `None` for one that was not set."""
    if name == "SUPPORTED_PROPERTIES":
        return {each: "RW" if each in NO_EFFECT else "RO" for each in sorted(NO_EFFECT | set(known))}
    if name not in known and name not in NO_EFFECT:
        raise _unknown_property(name)
    return known.get(name)


def _unknown_property(name: str) -> InvalidValue:
    return InvalidValue(f'expected a property that `get_property("SUPPORTED_PROPERTIES")` lists, found `{name}`')
