"""The file of a profile, in the form that onnxruntime writes and programs read: a list of events, those of nodes among them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from ._providers import provider_of

if TYPE_CHECKING:
    from .._profile import Profile, Span


def write_trace(profile: Profile, file: str) -> None:
    """Writes the runs and what their nodes took. Chrome and https://ui.perfetto.dev show the file as well."""
    spans = sorted(profile.spans, key=lambda span: span.begin)
    runs = [_event(span, "Session", "model_run", {}) for span in spans if span.kind == "Forward"]
    nodes = [_node(at, span) for at, span in enumerate(span for span in spans if span.kind in ("Kernel", "Memcpy"))]
    with open(file, "w") as trace:
        json.dump([*runs, *nodes], trace)


def _node(at: int, span: Span) -> dict[str, Any]:
    op = span.op.removeprefix("oarlock.")
    about = {"op_name": op, "provider": provider_of(span.place.partition(":")[0]), "node_index": str(at), "kernel": span.name}
    return _event(span, "Node", f"{op}_{at}_kernel_time", about)


def _event(span: Span, kind: str, name: str, about: dict[str, str]) -> dict[str, Any]:
    """An event, in microseconds."""
    times = {"ts": span.begin / 1e3, "dur": span.time / 1e3}
    return {"cat": kind, "pid": os.getpid(), "tid": span.thread, **times, "ph": "X", "name": name, "args": about}
