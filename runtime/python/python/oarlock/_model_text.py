"""What `repr` of a model shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._text import LONGEST

if TYPE_CHECKING:
    from ._oarlock import Session, Slot

MOST = 8
"""More inputs or outputs are counted only."""


def text(model: Session, state: str = "") -> str:
    """The ends of a model, its devices, and what is known about it, in a few lines."""
    about = model._about
    names = [", ".join(slot.name for slot in slots) for slots in (model.inputs, model.outputs)]
    made_by = f" by {about['producer']}" if about["producer"] else ""
    opsets = ", ".join(f"{domain} {version}" for domain, version in about["opsets"].items())
    rows = [
        ("inputs", _slots(model.inputs)),
        ("optional", _slots(model.optional_inputs)),
        ("outputs", _slots(model.outputs)),
        ("devices", ", ".join(device.name for device in model.devices)),
        ("graph", f"{about['graph'] or 'without a name'}{made_by}; {about['format']}"),
        ("opsets", opsets),
        ("metadata", _cut(", ".join(about["metadata"]))),
        ("about", _cut(about["description"].partition("\n")[0])),
    ]
    lines = [f"  {title:<8}  {content}" for title, content in rows if content]
    return "\n".join([f"Session(({_cut(names[0])}) -> ({_cut(names[1])}){state})", *lines])


def _slots(slots: Sequence[Slot]) -> str:
    """The names and types of inputs or outputs."""
    shown = [f"{slot.name} {slot.kind}" for slot in slots[:MOST]]
    return ", ".join([*shown, f"{len(slots) - MOST} more"] if len(slots) > MOST else shown)


def _cut(content: str) -> str:
    """The text, or its beginning if it is long."""
    return content if len(content) <= LONGEST else content[: LONGEST - 1] + "…"
