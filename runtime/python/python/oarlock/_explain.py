"""How a model is run, and why so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._oarlock import zeros
from ._text import bytes_of, table

if TYPE_CHECKING:
    from ._model import Session
    from ._oarlock import Slot, Tensor


@dataclass(frozen=True)
class Pass:
    """What a pass did to the graph."""

    name: str
    purpose: str
    with_shapes: bool
    """Whether it ran with the shapes of the inputs known."""
    changes: int
    nodes_before: int
    nodes_after: int


@dataclass(frozen=True)
class Step:
    """What is done for a node."""

    op: str
    node: str
    device: str
    kernel: str
    how: str
    """How the kernel does it, in its own words."""
    why: str | None
    """Why it stays on the host although a device before it could run it, where that is so."""
    flops: int | None
    """Multiplications and additions of floating-point numbers, of products and convolutions."""
    bytes: int | None
    """The size of all inputs and outputs."""


@dataclass(frozen=True)
class FallbackOp:
    """An op for which the devices that come before the CPU have no kernel."""

    op: str
    count: int
    """How many nodes there are of it."""
    missing: str
    """What the first device lacks: any kernel for the `op`, one for the `dtype`, or one for the `operands`."""
    reason: str
    first_node: str


@dataclass(frozen=True)
class Fallback:
    """Which device runs how many nodes, and what the CPU runs because the others cannot."""

    nodes: int
    """How many nodes the CPU runs because no device before it has a kernel for them."""
    of: int
    """How many nodes take a kernel."""
    cpu_named: bool
    """Whether the CPU was named, so that this is what was asked for."""
    devices: dict[str, int]
    """How many nodes each device runs."""
    ops: list[FallbackOp]
    shapes: int
    """How many nodes the CPU has on purpose, as they compute shapes,"""
    text: int
    """as they are about text,"""
    too_small: int
    """or as copying would take longer."""


@dataclass(frozen=True)
class Explanation:
    """How a model is run. `print` shows it as tables."""

    inputs: list[str]
    passes: list[Pass]
    steps: list[Step]
    arenas: dict[str, int]
    """The bytes that each run takes on each device, beside its inputs and outputs."""
    fallback: Fallback
    """What the CPU runs because the devices that were named cannot."""

    def __str__(self) -> str:
        ops = Counter(f"{step.op} on {step.device}" for step in self.steps)
        passes = [[step.name, f"{step.changes}", f"{step.nodes_before} → {step.nodes_after}", step.purpose] for step in self.passes]
        steps = [[step.op, step.node, step.device, step.how or step.kernel, step.why or ""] for step in self.steps]
        arenas = [f"{bytes_of(size)} on {device} for what lives within a run" for device, size in self.arenas.items()]
        return "\n\n".join(
            [
                "planned for " + ", ".join(self.inputs),
                table(["pass", "changes", "nodes", "purpose"], passes),
                table(["op", "node", "device", "kernel", "why"], steps),
                ", ".join(f"{count} {op}" for op, count in ops.most_common()),
                *arenas,
            ]
        )


def explain(session: Session, inputs: tuple[Any, ...]) -> Explanation:
    """What there is to say about runs on such inputs."""
    if not inputs:
        inputs = tuple(sample(slot) for slot in session.inputs)
    plan = session._plan(*inputs)
    return Explanation(
        inputs=[described(slot, value) for slot, value in zip(session.inputs, inputs, strict=True)],
        passes=[Pass(**each) for each in plan["passes"]],
        steps=[Step(**each) for each in plan["steps"]],
        arenas=plan["arenas"],
        fallback=fallen(plan["fallback"]),
    )


def fallen(told: dict[str, Any]) -> Fallback:
    """What the engine tells of the CPU in the place of other devices."""
    ops: list[dict[str, Any]] = told.pop("ops")
    return Fallback(ops=[FallbackOp(**each) for each in ops], **told)


def sample(slot: Slot) -> Tensor:
    """An array that an input takes."""
    if slot.shape is None or slot.dtype is None:
        raise ValueError(f"expected inputs, as `{slot.name}` may be anything ({slot.kind}), found none")
    return zeros(tuple(size if isinstance(size, int) else 1 for size in slot.shape), dtype=slot.dtype)


def described(slot: Slot, value: Any) -> str:
    """An input and what it was given."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    return f"{slot.name}: {type(value).__name__}" if shape is None else f"{slot.name}: {dtype}{list(shape)}"
