"""What a model says about itself, its inputs and its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._absent import absent
from ._values import type_of

if TYPE_CHECKING:
    from .._oarlock import Slot
    from ._maps import Label


class NodeArg:
    """An input or output of a model. Like in onnxruntime, its shape is an empty list if the model does not state it.

    >>> session = ol.onnxruntime.InferenceSession("docs/src/models/digits.onnx")
    >>> [(each.name, each.type, each.shape) for each in session.get_inputs()]
    [('image', 'tensor(float)', ['batch', 1, 8, 8])]
    """

    def __init__(self, slot: Slot, labels: list[Label] | None = None, sizes: Mapping[str, int] | None = None) -> None:
        self.name = slot.name
        self.type = _type_of_kind(slot.kind) if labels is None else _type_of_maps(labels)
        known = sizes or {}
        self.shape: list[int | str | None] = [known.get(size, size) if isinstance(size, str) else size for size in slot.shape or ()]

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape!r})"


class ModelMetadata:
    """The metadata of a model.

    >>> session = ol.onnxruntime.InferenceSession("docs/src/models/digits.onnx")
    >>> session.get_modelmeta().custom_metadata_map
    {}
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.producer_name: str = facts["producer_name"]
        self.domain: str = facts["domain"]
        # onnxruntime has the largest integer for a model that says none.
        self.version: int = 2**63 - 1 if facts["version"] is None else facts["version"]
        self.description: str = facts["description"]
        self.graph_name: str = facts["graph"]
        self.graph_description: str = facts["graph_description"]
        self.custom_metadata_map: dict[str, str] = dict(facts["metadata"])

    def __getattr__(self, name: str) -> Any:
        raise absent(self, name, type(self).__name__)


def _type_of_kind(kind: str) -> str:
    """The onnxruntime type for the text that a slot has: `seq(tensor(float))` for `sequence of float32[?]`."""
    for text, name in (("sequence of ", "seq"), ("optional ", "optional")):
        if kind.startswith(text):
            return f"{name}({_type_of_kind(kind.removeprefix(text))})"
    return type_of(kind.partition("[")[0])


def _type_of_maps(labels: list[Label]) -> str:
    """The onnxruntime type of a `ZipMap`'s output."""
    return f"seq(map({'string' if isinstance(labels[0], str) else 'int64'},tensor(float)))"
