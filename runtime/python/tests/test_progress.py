"""Progress of work that takes long: a bar where somebody sees it, and calls of a function."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import oarlock as ol
import pytest
from oarlock import _progress

DIGITS = Path(__file__).parents[3] / "docs/src/models/digits.onnx"


def _shown(program, *, terminal):
    """What a program writes to standard error, if that is a terminal or a pipe."""
    command = [sys.executable, "-c", program, str(DIGITS)]
    if not terminal:
        return subprocess.run(command, capture_output=True, text=True, check=True).stderr
    ours, theirs = os.openpty()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:
                # A terminal whose other end is closed.
                break
            if not part:
                break
            shown += part
        assert process.wait() == 0
    os.close(ours)
    return shown.decode()


LOADS = """
import sys, numpy as np, oarlock as ol
from oarlock import _progress
_progress.DELAY = {delay}
model = ol.load(sys.argv[1], progress={progress})
model(np.ones((1, 1, 8, 8), np.float32))
"""


def test_a_terminal_shows_a_bar_that_goes_when_the_work_is_done():
    shown = _shown(LOADS.format(delay=0, progress=True), terminal=True)
    assert "reading [###" in shown
    assert shown.endswith("\r\033[K")


@pytest.mark.parametrize(
    ("delay", "progress", "terminal"), [(0, True, False), (0, None, False), (0, False, True), (60, None, True)]
)
def test_pipes_short_work_and_those_who_say_so_see_nothing(delay, progress, terminal):
    assert _shown(LOADS.format(delay=delay, progress=progress), terminal=terminal) == ""


def test_a_function_is_told_of_all_work():
    told = []
    model = ol.load(DIGITS, progress=lambda *work: told.append(work))
    size = DIGITS.stat().st_size
    assert told[-1] == (size, size, "reading")
    model(np.ones((1, 1, 8, 8), np.float32))
    done, total, what = told[-1]
    assert (what, done) == ("preparing kernels", total)
    count = len(told)
    model(np.ones((1, 1, 8, 8), np.float32))
    assert len(told) == count
    model(np.ones((2, 1, 8, 8), np.float32))
    assert len(told) > count


def test_what_a_function_raises_is_reported_and_does_not_end_the_work(monkeypatch):
    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: reported.append(raised.exc_value))

    def fail(*_):
        raise KeyError("no")

    assert ol.load(DIGITS, progress=fail)(np.ones((1, 1, 8, 8), np.float32)).shape == (1, 10)
    assert {type(error) for error in reported} == {KeyError}


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match="expected `True`, `False` or a function of .* for `progress`, found str"):
        ol.load(DIGITS, progress="yes")


def test_a_notebook_shows_one_bar_in_place(monkeypatch):
    shown = []

    def display(data, *, raw, display_id):
        assert raw and display_id
        shown.append(data["text/plain"])
        return SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))

    shell = SimpleNamespace(kernel=object())
    ipython = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setattr(_progress, "DELAY", 0)
    told = _progress.progress_function(True)
    told(1, 4, "reading")
    told(2, 4, "reading")
    told(4, 4, "reading")
    assert shown == [
        "reading [#######                       ] 25 %",
        "reading [###############               ] 50 %",
        "",
    ]


def test_a_wait_says_how_long_it_takes():
    program = """
import time
from oarlock import _progress
_progress.DELAY = 0.05
with _progress.Waiting("compiling `it`"):
    time.sleep(0.5)
"""
    shown = _shown(program, terminal=True)
    assert "compiling `it` … 0 s" in shown and shown.endswith("\r\033[K")
    assert _shown(program, terminal=False) == ""
