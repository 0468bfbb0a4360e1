"""Maps from labels to scores: the outputs of `ZipMap`, which computes in Oarlock a matrix with a column for each label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._oarlock import Tensor

Label = int | str


def labels_of(facts: Mapping[str, Any]) -> dict[str, list[Label]]:
    """The labels of each output that is a list of maps, from what a model knows about itself."""
    found: dict[str, list[Label]] = facts.get("maps", {})
    return found


def to_maps(scores: Tensor, labels: list[Label]) -> list[dict[Label, float]]:
    """A map for each row of scores."""
    rows: list[list[float]] = scores.tolist()
    return [dict(zip(labels, row, strict=True)) for row in rows]
