"""Oarlock as a backend of the `onnx` package, whose suite of tests runs on it unchanged.

    import onnx.backend.test
    from oarlock import onnx_backend
    suite = onnx.backend.test.BackendTest(onnx_backend, __name__)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from onnx import ModelProto, NodeProto, ValueInfoProto, defs, helper
from onnx.backend.base import Backend, BackendRep

from . import devices
from ._model import Session
from .onnxruntime._feeds import Feeds
from .onnxruntime._values import to_numpy

__all__ = ["OarlockBackend", "OarlockModel", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


class OarlockModel(BackendRep):
    """A model that is ready to run.

    >>> import numpy, onnx
    >>> model = ol.onnx_backend.prepare(onnx.load("docs/src/models/digits.onnx"))
    >>> model.run([numpy.zeros((1, 1, 8, 8), "float32")])[0].shape
    (1, 10)
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def run(self, inputs: Any, **_others: Any) -> tuple[Any, ...]:
        """Runs the model on NumPy arrays, in the order of its inputs or by name."""
        slots = [*self._session.inputs, *self._session.optional_inputs]
        feeds: dict[str, Any]
        if _is_mapping(inputs):
            feeds = dict(inputs)
        else:
            given = list(inputs) if _is_sequence(inputs) else [inputs]
            feeds = {slot.name: value for slot, value in zip(slots, given, strict=False)}
        made = self._session.run(Feeds(slots).take(feeds))
        return tuple(to_numpy(value, is_owned=True) for value in made.values())


class OarlockBackend(Backend):
    """Runs ONNX models.

    >>> import onnx
    >>> model = ol.onnx_backend.prepare(onnx.load("docs/src/models/digits.onnx"))
    >>> isinstance(model, ol.onnx_backend.OarlockModel)
    True
    """

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **_others: Any) -> OarlockModel:
        """Prepares a model on a device, such as `CPU` or `CUDA:1`.

        >>> import onnx
        >>> model = ol.onnx_backend.prepare(onnx.load("docs/src/models/digits.onnx"), "CPU")
        """
        return OarlockModel(Session(model.SerializeToString(), device=device.lower()))

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **_others: Any) -> tuple[Any, ...]:
        """Prepares a model and runs it.

        >>> import numpy, onnx
        >>> model = onnx.load("docs/src/models/digits.onnx")
        >>> ol.onnx_backend.run_model(model, [numpy.zeros((1, 1, 8, 8), "float32")])[0].shape
        (1, 10)
        """
        return cls.prepare(model, device).run(inputs)

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: Any, device: str = "CPU", outputs_info: Any = None, **others: Any
    ) -> tuple[Any, ...]:
        """Runs one node on NumPy arrays, in the newest opset unless `opset_version` names another.

        >>> import numpy, onnx
        >>> node = onnx.helper.make_node("Neg", ["x"], ["y"])
        >>> ol.onnx_backend.run_node(node, [numpy.float32([1, 2])])[0].tolist()
        [-1.0, -2.0]
        """
        names = [name for name in node.input if name]
        given = dict(zip(names, inputs if _is_sequence(inputs) else [inputs], strict=True))
        slots = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
            for name, value in given.items()
        ]
        ends = [ValueInfoProto(name=name) for name in node.output if name]
        newest = 1 if node.domain else defs.onnx_opset_version()
        opset = helper.make_opsetid(node.domain, others.get("opset_version", newest))
        model = helper.make_model(helper.make_graph([node], "node", slots, ends), opset_imports=[opset])
        return cls.run_model(model, given, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device exists.

        >>> ol.onnx_backend.supports_device("CPU")
        True
        """
        wanted = device.lower()
        return any(wanted in (each.type, each.name) for each in devices())


def _is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence)


prepare = OarlockBackend.prepare
run_model = OarlockBackend.run_model
run_node = OarlockBackend.run_node
is_compatible = OarlockBackend.is_compatible
supports_device = OarlockBackend.supports_device


def __dir__() -> list[str]:
    """The public names."""
    return __all__
