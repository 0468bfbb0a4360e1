"""The package in interpreters: at import, in child processes, at exit."""

import json
import os
import subprocess
import sys
import textwrap

import pytest


def run(code, **variables):
    command = [sys.executable, "-X", "dev", "-W", "error", "-c", code]
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


def test_an_import_brings_nothing_that_is_not_used():
    outcome = run("import sys; import oarlock; print('numpy' in sys.modules, 'asyncio' in sys.modules)")
    assert outcome.stdout == "False False\n", outcome.stderr


def test_a_child_that_was_forked_says_so():
    outcome = run(
        "import os, oarlock as ol\n"
        "ol.ones(1)\n"
        "if os.fork() == 0:\n"
        "    try: ol.ones(1)\n"
        "    except ol.Error as error: print(error, flush=True); os._exit(0)\n"
        "os.wait()"
    )
    assert "forked after Oarlock had started" in outcome.stdout, outcome.stderr


def test_a_child_may_start_oarlock_itself():
    outcome = run("import os, oarlock as ol\nif os.fork() == 0: print((ol.ones(1) + 1).tolist(), flush=True); os._exit(0)\nos.wait()")
    assert outcome.stdout == "[2.0]\n", outcome.stderr


def test_arrays_that_are_left_at_the_end_do_no_harm():
    outcome = run("import oarlock as ol, sys\nsys.kept = ol.ones(1000)\nclass Last:\n    def __del__(self): sys.kept + 1\nsys.last = Last()")
    assert outcome.returncode == 0 and outcome.stderr == "", outcome.stderr


def test_what_the_trace_layer_writes_is_whole_when_the_interpreter_ends(tmp_path):
    trace, config = tmp_path / "trace.json", tmp_path / "oarlock.toml"
    config.write_text(f"[plugins]\nlayers = ['trace']\n[plugin.trace]\nfile = '{trace}'\n")
    outcome = run(
        "import os, oarlock as ol, sys\n"
        "sys.kept = ol.ones(2)\n"
        "for _ in range(5000): sys.kept = sys.kept * 1.0\n"
        # A forked child does not touch its parent's file.
        "if os.fork() == 0: sys.exit()\n"
        "os.wait()",
        OARLOCK_CONFIG=config,
    )
    assert outcome.returncode == 0, outcome.stderr
    events = json.loads(trace.read_text())
    assert outcome.stderr == f"note: `trace`: {len(events) - 1} calls in `{trace}`\n"
    runs = [event for event in events if event["name"] == "kernel.run" and event["args"]["to"] == "oarlock-cpu Mul"]
    assert len(runs) == 5000 and events[-1]["ph"] == "M"


@pytest.mark.parametrize("first", ["", "import oarlock; oarlock.ones(1)"])
@pytest.mark.parametrize("kind", ["legacy", "isolated"])
def test_another_interpreter_is_refused_and_the_main_one_is_not(first, kind):
    module = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    kinds = f"'{kind}'" if sys.version_info >= (3, 13) else f"isolated={kind == 'isolated'}"
    outcome = run(
        f"import {module} as interpreters\n"
        f"{first}\n"
        f"code = 'try: import oarlock\\nexcept ImportError as error: print(error, flush=True)'\n"
        f"interpreters.run_string(interpreters.create({kinds}), code)\n"
        "import oarlock as ol\n"
        "print(ol.ones(1).tolist())"
    )
    *said, last = outcome.stdout.splitlines()
    # Except for 3.11, Python itself refuses interpreters that share nothing.
    words = "does not support loading in subinterpreters" if "loading" in said[0] else "imported by the main interpreter of the process"
    assert words in said[0] and last == "[1.0]", outcome.stdout + outcome.stderr
    assert kind == "isolated" or "hint: use threads" in said[1]


def test_a_child_that_was_forked_while_another_thread_starts_is_told_and_does_not_wait():
    code = """
        import os, signal, threading, time
        import oarlock as ol

        thread = threading.Thread(target=lambda: ol.ones(1))
        thread.start()
        time.sleep(DELAY)
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            try:
                ol.ones(1) + 1
            except ol.Error as error:
                os._exit(0 if "forked" in str(error) else 1)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        thread.join()
        print(status)
    """
    for delay in range(0, 8):
        outcome = run(textwrap.dedent(code).replace("DELAY", str(delay / 1000)))
        assert outcome.stdout == "0\n", (delay, outcome)
