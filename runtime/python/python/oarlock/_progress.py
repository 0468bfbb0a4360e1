"""Progress of work that takes long, in terminals and notebooks."""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    ProgressFunction: TypeAlias = Callable[[int, int, str], object]

__all__: list[str] = []

DELAY = 1.0
"""Seconds that work takes before it is shown. Most of it is done before."""

WIDTH = 30
"""The width of a bar in characters."""


def progress_function(progress: bool | ProgressFunction | None) -> ProgressFunction | None:
    """The function that is told of progress: one that shows a bar where somebody sees it, the given one, or none."""
    if progress is None or progress is True:
        return ProgressBar().show if _is_notebook() or _is_terminal() else None
    if progress is False:
        return None
    if not callable(progress):
        raise TypeError(
            f"expected `True`, `False` or a function of (done, total, what) for `progress`, found {type(progress).__name__}"
        )
    return progress


class ProgressBar:
    """A bar that appears once work has taken a while, and goes when it is done."""

    def __init__(self) -> None:
        self.what = ""
        self.began = 0.0
        self.is_shown = False
        self.display: Any = None

    def show(self, done: int, total: int, what: str) -> None:
        """Shows that so many of all parts of some work are done."""
        now = time.monotonic()
        if what != self.what:
            self.what, self.began = what, now
        if done >= total:
            self.clear()
        elif self.is_shown or now - self.began >= DELAY:
            self.show_text(f"{what} {bar_text(done, total)} {100 * done // total} %")

    def show_text(self, text: str) -> None:
        """Shows a text in place of what was shown."""
        self.is_shown = True
        self._draw(text)

    def clear(self) -> None:
        """Takes the bar away. The next work begins."""
        if self.is_shown:
            self._draw("")
        self.what, self.is_shown, self.display = "", False, None

    def _draw(self, text: str) -> None:
        if not _is_notebook():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
            return
        shown = {"text/plain": text, "text/html": f"<pre>{text}</pre>" if text else ""}
        if self.display is None:
            self.display = sys.modules["IPython"].display.display(shown, raw=True, display_id=True)
        else:
            self.display.update(shown, raw=True)


def bar_text(done: int, total: int) -> str:
    """A bar that is as full as the work is done."""
    full = min(WIDTH, WIDTH * done // total) if total else WIDTH
    return f"[{'#' * full}{' ' * (WIDTH - full)}]"


def _is_terminal() -> bool:
    # A program without a console has no standard error.
    return sys.stderr is not None and sys.stderr.isatty()


def _is_notebook() -> bool:
    """Whether a kernel of IPython runs this. Who has not loaded IPython is in no notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return hasattr(shell, "kernel")


class Waiting:
    """Shows how long work has taken that does not say how far it is."""

    def __init__(self, what: str) -> None:
        # Only who waits needs it.
        from threading import Event, Thread

        self.what, self.bar, self.is_done = what, ProgressBar(), Event()
        self.thread = Thread(target=self._show, daemon=True) if _is_notebook() or _is_terminal() else None

    def __enter__(self) -> None:
        if self.thread is not None:
            self.thread.start()

    def __exit__(self, *raised: object) -> None:
        self.is_done.set()
        if self.thread is not None:
            self.thread.join()
            self.bar.clear()

    def _show(self) -> None:
        began = time.monotonic()
        while not self.is_done.wait(DELAY):
            self.bar.show_text(f"{self.what} … {time.monotonic() - began:.0f} s")
