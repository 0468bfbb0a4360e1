"""Runs work in a forked process, so that a plugin that ends the process is named."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Tell = Callable[[str], None]

DONE = "done "
"""The beginning of the last line, before the exit code."""

END_LIMIT = 10.0
"""How many seconds the process may take to end once the work is done."""


PAUSE = 0.02
"""How many seconds pass between two looks at the process."""


def watched(work: Callable[[Tell], int]) -> int:
    """The exit code of the work, which tells what it is about to do. It must be the first that starts Oarlock in this process."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = work(lambda doing: tell(writing, doing))
        sys.stdout.flush()
        tell(writing, f"{DONE}{code}")
        return code
    os.close(writing)
    lines, status = follow(child, reading)
    os.close(reading)
    doing = lines[-1] if lines else "it was started"
    if doing.startswith(DONE):
        # Destructors of plugins may end the process otherwise; all was said by then.
        return int(doing.removeprefix(DONE))
    ended = os.waitstatus_to_exitcode(status)
    if ended > 0:
        # An error of Python has told its own story.
        return ended
    how = signal.Signals(-ended).name if ended < 0 else "exit code 0"
    print(f"oarlock: the process was ended while {doing}: {how}", file=sys.stderr)
    return 1


def tell(writing: int, doing: str) -> None:
    """Writes one line."""
    os.write(writing, f"{' '.join(doing.split())}\n".encode())


def follow(child: int, reading: int) -> tuple[list[str], int]:
    """What the child told until it ended, and its status. A child that is done and does not end is killed."""
    told = b""
    done_at = None
    while True:
        # A process that a plugin left behind may hold the pipe open, so its end alone says nothing.
        ended, status = os.waitpid(child, os.WNOHANG)
        while select.select([reading], [], [], 0 if ended else PAUSE)[0] and (chunk := os.read(reading, 4096)):
            told += chunk
        lines = told.decode(errors="replace").splitlines()
        if ended:
            return lines, status
        if lines and lines[-1].startswith(DONE):
            done_at = done_at or time.monotonic()
            time.sleep(PAUSE)
            if time.monotonic() - done_at > END_LIMIT:
                os.kill(child, signal.SIGKILL)
