"""How a model runs, and why."""

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
    """The effect of a pass on the graph."""

    name: str
    purpose: str
    with_shapes: bool
    """Whether it ran after the input shapes were known."""
    changes: int
    nodes_before: int
    nodes_after: int


@dataclass(frozen=True)
class Step:
    """The step that runs a node."""

    op: str
    node: str
    device: str
    kernel: str
    how: str
    """How the kernel works, as the kernel describes it."""
    why: str | None
    """Why it stays on the host although an earlier device could run it, if so."""
    flops: int | None
    """Floating-point multiplications and additions in products and convolutions."""
    bytes: int | None
    """The total size of all inputs and outputs, in bytes."""


@dataclass(frozen=True)
class FallbackOp:
    """An op that the devices before the CPU have no kernel for."""

    op: str
    count: int
    """The number of nodes with this op."""
    missing: str
    """What the first device lacks: any kernel for the `op`, one for the `dtype`, or one for the `operands`."""
    reason: str
    first_node: str


@dataclass(frozen=True)
class Fallback:
    """How many nodes each device runs, and which ops fall back to the CPU."""

    nodes: int
    """The number of nodes that the CPU runs because no device before it has a kernel for them."""
    of: int
    """The number of nodes that run a kernel."""
    cpu_named: bool
    """Whether the CPU was one of the devices, so that this was requested."""
    devices: dict[str, int]
    """The number of nodes on each device."""
    ops: list[FallbackOp]
    shapes: int
    """The number of nodes placed on the CPU because they compute shapes."""
    text: int
    """The number of nodes placed on the CPU because they process text."""
    too_small: int
    """The number of nodes placed on the CPU because copying would take longer."""


@dataclass(frozen=True)
class Explanation:
    """How a model runs. `print` shows it as tables."""

    inputs: list[str]
    passes: list[Pass]
    steps: list[Step]
    arenas: dict[str, int]
    """The bytes that each run needs on each device, besides inputs and outputs."""
    fallback: Fallback
    """The nodes that fall back to the CPU."""

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
    """Explains runs on such inputs."""
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
    """The engine's report of nodes that fall back to the CPU."""
    ops: list[dict[str, Any]] = told.pop("ops")
    return Fallback(ops=[FallbackOp(**each) for each in ops], **told)


def sample(slot: Slot) -> Tensor:
    """An array that an input accepts."""
    if slot.shape is None or slot.dtype is None:
        raise ValueError(f"expected inputs, as `{slot.name}` may be anything ({slot.kind}), found none")
    return zeros(tuple(size if isinstance(size, int) else 1 for size in slot.shape), dtype=slot.dtype)


def described(slot: Slot, value: Any) -> str:
    """An input and the array that it was given, as text."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    return f"{slot.name}: {type(value).__name__}" if shape is None else f"{slot.name}: {dtype}{list(shape)}"
