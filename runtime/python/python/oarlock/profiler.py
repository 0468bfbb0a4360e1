"""Profiles model runs and ops on arrays: the time on each device, in each op and kernel, and in named regions of the program.

    with ol.profiler.Profiler() as profiler:
        for image in images:
            with ol.profiler.RecordEvent("decode"):
                x = decode(image)
            model(x)
            profiler.step()
    print(profiler.summary())
    profiler.export_chrome_tracing("trace.json")

While a profiler is active, each step of a model and each op is waited for, so that its time can be measured. This makes
the program slower and removes overlap.
"""

from __future__ import annotations

from os import PathLike
from time import process_time
from typing import TYPE_CHECKING, Any

from . import _oarlock
from ._profile import Profile, Span

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Profiler", "RecordEvent"]

_active: Profiler | None = None


class Profiler:
    """Records the program between `start` and `stop`, or in a `with` block. `step` marks the end of a step.

    >>> with ol.profiler.Profiler() as profiler:
    ...     total = ol.ones(3).sum()
    >>> "ReduceSum" in profiler.summary()
    True
    """

    def __init__(self) -> None:
        self._recorder = _oarlock.Recorder()
        self._steps: list[Span] = []
        self._named: list[Span] = []
        self._runs: list[dict[str, Any]] = []
        self._calls: list[dict[str, Any]] = []
        self._begin = self._step_begin = 0
        self._end: int | None = None
        self._process = 0.0
        self._system = (0.0, 0.0)

    def start(self) -> None:
        """Starts recording. A profiler that is still active stops."""
        global _active
        _active = self
        self._process, self._system = process_time(), _system_time()
        self._recorder.start()
        self._begin = self._step_begin = self._recorder.now()
        self._end = None

    def step(self) -> None:
        """Ends a step and begins the next."""
        now = self._recorder.now()
        self._steps.append(Span(f"ProfileStep#{len(self._steps)}", "ProfileStep", "host", 0, self._step_begin, now))
        self._step_begin = now

    def stop(self) -> None:
        """Stops recording. This ends the last step, if anything ran in it."""
        global _active
        runs, calls = self._recorder.take()
        self._runs += runs
        self._calls += calls
        if not self._steps or any(one["begin"] >= self._step_begin for one in runs + calls):
            self.step()
        self._recorder.stop()
        self._end = self._recorder.now()
        busy, total = _system_time()
        self._process = process_time() - self._process
        self._system = (busy - self._system[0], total - self._system[1])
        if _active is self:
            _active = None

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    @property
    def profile(self) -> Profile:
        """The recorded profile."""
        if self._end is None:
            raise _oarlock.Error("expected a profiler that has ended, found one that has not\nhint: call `stop`, or leave its block")
        return Profile.of(
            self._runs,
            self._calls,
            self._steps,
            self._named,
            elapsed=self._end - self._begin,
            process_time=self._process,
            system_share=self._system[0] / self._system[1] if self._system[1] else 0.0,
        )

    def summary(self) -> str:
        """The eight tables, as text."""
        return str(self.profile)

    def export_chrome_tracing(self, file: str | PathLike[str]) -> None:
        """Writes a trace for https://ui.perfetto.dev or Chrome."""
        self.profile.export_chrome_tracing(file)

    def _record(self, name: str, begin: int) -> None:
        self._named.append(Span(name, "UserDefined", "host", 0, begin, self._recorder.now()))


class RecordEvent:
    """A named region of the program that an active profiler records: a `with` block, or from `begin` to `end`.

    >>> with ol.profiler.RecordEvent("decode"):
    ...     total = ol.ones(3).sum()
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._began: tuple[Profiler, int] | None = None

    def begin(self) -> None:
        """Begins the region."""
        self._began = (_active, _active._recorder.now()) if _active else None

    def end(self) -> None:
        """Ends the region."""
        if self._began:
            profiler, begin = self._began
            profiler._record(self.name, begin)
            self._began = None

    def __enter__(self) -> RecordEvent:
        self.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()


def _system_time() -> tuple[float, float]:
    """The busy time and the total time of all processors since boot."""
    try:
        with open("/proc/stat") as file:
            times = [int(number) for number in file.readline().split()[1:9]]
    except OSError:
        return 0.0, 0.0
    return float(sum(times) - times[3] - times[4]), float(sum(times))


def __dir__() -> list[str]:
    """The public names."""
    return __all__
