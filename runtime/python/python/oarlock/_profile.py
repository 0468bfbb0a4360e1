"""A profile as tables and as a trace.

Shares of the whole use the union of intervals, so that parallel work counts once. Rows of a table add up times.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from ._text import table

MILLISECOND = 1e6


@dataclass(frozen=True)
class Span:
    """An interval, in nanoseconds since the profiler was created."""

    name: str
    kind: str
    place: str
    """The device, or `host`."""
    thread: int
    begin: int
    end: int
    op: str = ""
    """The op that launched it, if it is a kernel or a copy."""
    launched: int = 0
    """When the host launched it, if it ran on a device."""
    of_model: bool = True
    """Whether a model launched it, if it ran on a device."""

    @property
    def time(self) -> int:
        """The duration."""
        return self.end - self.begin


@dataclass(frozen=True)
class View:
    """One table."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def __str__(self) -> str:
        body = table(self.columns, self.rows) if self.rows else "  nothing"
        return "\n".join(filter(None, [f"-- {self.title} --", body, self.note]))


class Profile:
    """The recording of a profiler."""

    def __init__(
        self, spans: Sequence[Span], *, elapsed: int, process_time: float, system_share: float, omitted: int
    ) -> None:
        self.spans = tuple(spans)
        self.elapsed = elapsed
        self.process_time = process_time
        self.system_share = system_share
        self.omitted = omitted

    @classmethod
    def of(
        cls,
        runs: Iterable[dict[str, Any]],
        calls: Iterable[dict[str, Any]],
        steps: Sequence[Span],
        named: Sequence[Span],
        *,
        elapsed: int,
        process_time: float,
        system_share: float,
    ) -> Profile:
        """A profile of the model runs and single op calls that a recorder has."""
        spans, omitted = [*steps, *named], 0
        for run in runs:
            omitted += run["omitted"]
            spans.append(Span("run", "Forward", "host", run["thread"], run["begin"], run["end"]))
            outer = {within for _, within, *_ in run["events"]}
            for at, (index, _, begin, launched, end) in enumerate(run["events"]):
                step = run["steps"][index]
                name, device, thread = step["op"], step["device"], run["thread"]
                spans.append(Span(name, "Operator", "host", thread, begin, end))
                # A model with steps is run by the engine.
                if at not in outer:
                    kind = "Memcpy" if name == "copy" else "Kernel"
                    kernel = f"copy to {device}" if name == "copy" else step["how"] or step["kernel"]
                    spans.append(Span(kernel, kind, device, thread, begin, end, op=name, launched=launched))
        for call in calls:
            name, device, thread, begin, end = (call[key] for key in ("op", "device", "thread", "begin", "end"))
            spans.append(Span(name, "Operator", "host", thread, begin, end))
            kind, kernel = ("Memcpy", f"copy to {device}") if name == "copy" else ("Kernel", call["kernel"])
            launched = call["launched"]
            spans.append(Span(kernel, kind, device, thread, begin, end, op=name, launched=launched, of_model=False))
        return cls(spans, elapsed=elapsed, process_time=process_time, system_share=system_share, omitted=omitted)

    def views(self) -> list[View]:
        """The eight tables."""
        return [
            self.device_view(),
            self.overview(),
            self.model_view(),
            self.distributed_view(),
            self.operator_view(),
            self.kernel_view(),
            self.memory_view(),
            self.user_defined_view(),
        ]

    def __str__(self) -> str:
        omitted = f"{self.omitted} further steps of loops were too many to be noted" if self.omitted else ""
        return "\n\n".join(filter(None, [*map(str, self.views()), "times in milliseconds", omitted]))

    def device_view(self) -> View:
        """How busy processors and devices were."""
        rows = [("CPU(Process)", percent(self.process_time * 1e9, self.elapsed)), ("CPU(System)", percent(self.system_share, 1))]
        devices = dict.fromkeys(span.place for span in self.of_kind("Kernel") if not span.place.startswith("cpu:"))
        rows += [(device, percent(self.union("Kernel", device), self.elapsed)) for device in devices]
        note = "of the process: its time on all processors; of a device: the time in which a kernel ran on it"
        return View("Device Summary", ("Device", "Utilization"), tuple(rows), note)

    def overview(self) -> View:
        """The time of each kind of work, as a share of all steps."""
        rows: list[tuple[str, ...]] = []
        for kind in ("ProfileStep", "Forward", "Operator", "Kernel", "Memcpy", "UserDefined"):
            spans = self.of_kind(kind)
            if spans:
                time = self.union(kind)
                rows.append((kind, str(len(spans)), milliseconds(time), percent(time, self.whole)))
        return View("Overview Summary", ("Event Type", "Calls", "Time", "Ratio"), tuple(rows))

    def model_view(self) -> View:
        """How much of a step the model takes, and how much everything else."""
        steps = self.of_kind("ProfileStep")
        forward = [merged(self.within("Forward", step)) for step in steps]
        kernels, alone = (
            sum(merged(span for span in self.within("Kernel", step) if span.of_model == of_model) for step in steps)
            for of_model in (True, False)
        )
        whole = [step.time for step in steps]
        others = [step - model for step, model in zip(whole, forward, strict=True)]
        rows = [
            ("ProfileStep", *statistics(whole), percent(sum(whole), self.whole), milliseconds(kernels + alone)),
            ("  Forward", *statistics(forward), percent(sum(forward), self.whole), milliseconds(kernels)),
            ("  Others", *statistics(others), percent(sum(others), self.whole), milliseconds(alone)),
        ]
        return View("Model Summary", ("Name", *STATISTICS, "Ratio", "Kernels"), tuple(rows))

    def distributed_view(self) -> View:
        """Communication between devices. Models run on one machine, so the table is empty."""
        computation = self.union("Kernel")
        rows = [
            ("Communication", milliseconds(0), percent(0, self.whole)),
            ("Computation", milliseconds(computation), percent(computation, self.whole)),
            ("Overlap", milliseconds(0), percent(0, self.whole)),
        ]
        return View("Distributed Summary", ("Name", "Time", "Ratio"), tuple(rows))

    def operator_view(self) -> View:
        """The time of each op, with its kernels and copies below it."""
        inner = grouped((span for kind in ("Kernel", "Memcpy") for span in self.of_kind(kind)), lambda span: span.op)
        rows: list[tuple[str, ...]] = []
        operators = grouped(self.of_kind("Operator"), lambda span: span.name)
        total = sum(sum(times(spans)) for spans in operators.values())
        for op, spans in operators.items():
            own = sum(times(spans))
            rows.append((op, str(len(spans)), *statistics(times(spans)), percent(own, total)))
            for name, parts in grouped(inner.get(op, []), lambda span: span.name).items():
                rows.append((f"  {name}", str(len(parts)), *statistics(times(parts)), percent(sum(times(parts)), own)))
        note = "the ratio of a kernel is that to its op"
        return View("Operator Summary", ("Name", "Calls", *STATISTICS, "Ratio"), tuple(rows), note)

    def kernel_view(self) -> View:
        """The time of each kernel, as a share of all kernels."""
        return self.listed("Kernel Summary", "Kernel", sum(times(self.of_kind("Kernel"))))

    def memory_view(self) -> View:
        """The time of copies between devices."""
        return self.listed("Memory Manipulation Summary", "Memcpy", self.whole)

    def user_defined_view(self) -> View:
        """The time of the program's named regions."""
        return self.listed("UserDefined Summary", "UserDefined", self.whole)

    def listed(self, title: str, kind: str, base: int) -> View:
        """The spans of a kind by name, the longest first."""
        groups = grouped(self.of_kind(kind), lambda span: f"{span.op} on {span.place}: {span.name}" if kind == "Kernel" else span.name)
        rows = [
            (name, str(len(spans)), *statistics(times(spans)), percent(sum(times(spans)), base)) for name, spans in groups.items()
        ]
        return View(title, ("Name", "Calls", *STATISTICS, "Ratio"), tuple(rows))

    @property
    def whole(self) -> int:
        """The duration of all steps."""
        return sum(times(self.of_kind("ProfileStep")))

    def of_kind(self, kind: str) -> list[Span]:
        """The spans of a kind."""
        return [span for span in self.spans if span.kind == kind]

    def within(self, kind: str, step: Span) -> list[Span]:
        """The spans of a kind that began in a step."""
        return [span for span in self.of_kind(kind) if step.begin <= span.begin < step.end]

    def union(self, kind: str, place: str | None = None) -> int:
        """How long at least one span of a kind was active."""
        return merged(span for span in self.of_kind(kind) if place in (None, span.place))

    def export_chrome_tracing(self, file: str | PathLike[str]) -> None:
        """Writes a trace for https://ui.perfetto.dev or Chrome: a row for each host thread and each device, with an arrow from
        each launch to the work."""
        devices = sorted({span.place for span in self.spans if span.place != "host"})
        threads = sorted({span.thread for span in self.spans})
        rows: dict[tuple[str, int | None], int] = {("host", thread): row for row, thread in enumerate(threads)}
        rows |= {(device, None): len(threads) + row for row, device in enumerate(devices)}
        names = [(row, f"host, thread {thread}" if place == "host" else place) for (place, thread), row in rows.items()]
        events: list[dict[str, Any]] = [
            {"ph": "M", "pid": 1, "tid": row, "name": "thread_name", "args": {"name": name}} for row, name in names
        ]
        for number, span in enumerate(self.spans):
            row = rows[("host", span.thread) if span.place == "host" else (span.place, None)]
            begin = span.begin / 1e3
            common = {"pid": 1, "cat": span.kind, "ts": begin}
            events.append({"ph": "X", "tid": row, "name": span.name, "dur": span.time / 1e3, "args": {"op": span.op}, **common})
            if span.kind in ("Kernel", "Memcpy"):
                link = {"name": "launch", "id": number, "bp": "e", **common}
                events.append({"ph": "s", "tid": rows["host", span.thread], **link})
                events.append({"ph": "f", "tid": row, **link})
        with open(file, "w") as trace:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, trace)


STATISTICS = ("Total", "Avg", "Max", "Min")


def statistics(values: Sequence[int]) -> tuple[str, ...]:
    """Total, average, maximum and minimum."""
    if not values:
        return ("-",) * len(STATISTICS)
    return tuple(map(milliseconds, (sum(values), sum(values) / len(values), max(values), min(values))))


def times(spans: Iterable[Span]) -> list[int]:
    """The durations."""
    return [span.time for span in spans]


def grouped(spans: Iterable[Span], key: Callable[[Span], str]) -> dict[str, list[Span]]:
    """Spans by name, the largest sum first."""
    groups: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        groups[key(span)].append(span)
    return dict(sorted(groups.items(), key=lambda group: -sum(times(group[1]))))


def merged(spans: Iterable[Span]) -> int:
    """How long at least one of these was active."""
    total, reached = 0, 0
    for begin, end in sorted((span.begin, span.end) for span in spans):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def milliseconds(time: float) -> str:
    """A time in milliseconds, as text."""
    return f"{time / MILLISECOND:.4f}"


def percent(part: float, whole: float) -> str:
    """A share in percent, as text."""
    return f"{100 * part / whole:.2f}%" if whole else "-"
