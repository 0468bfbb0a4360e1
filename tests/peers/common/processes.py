"""Runs commands that are bound to as many processors as they have threads."""

import os
import subprocess

TIME_LIMIT = 600


class RunError(Exception):
    """A runtime that did not run a model; the message is its own."""


def ask(command, threads, limit=TIME_LIMIT):
    """The standard output of a command that is bound to `threads` processors."""
    last = os.cpu_count() - 1
    bound = ["taskset", "-c", f"{max(0, last - threads + 1)}-{last}", *map(str, command)]
    limits = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    options = {"env": os.environ | limits, "stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": limit}
    try:
        done = subprocess.run(bound, **options)
    except subprocess.TimeoutExpired:
        raise RunError(f"no end within {limit} s") from None
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        raise RunError(next((line for line in said if line.startswith("error")), said[-1]))
    return done.stdout
