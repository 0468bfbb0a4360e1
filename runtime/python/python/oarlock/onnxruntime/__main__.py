"""Runs a program with the adapter in place of onnxruntime."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from ._absent import note_instead
from ._install import install

_USAGE = """usage: python -m oarlock.onnxruntime PROGRAM.py [ARGUMENT...]
       python -m oarlock.onnxruntime -m MODULE [ARGUMENT...]

Runs a program or a module as `python` would, where `import onnxruntime` finds `oarlock.onnxruntime`.
Processes that it starts are not affected."""


def main() -> int:
    """Runs the program that the arguments name."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE)
        return 0
    is_module = arguments[:1] == ["-m"]
    if is_module:
        del arguments[0]
    if not arguments or (arguments[0].startswith("-") and not is_module):
        print(_USAGE, file=sys.stderr)
        return 2
    install()
    sys.argv = arguments
    try:
        _run(arguments[0], is_module)
    except ImportError as error:
        note_instead(error)
        raise
    return 0


def _run(program: str, is_module: bool) -> None:
    if is_module:
        # As with `python -m`, modules are looked for in the current directory, which `python -m` of this module put there.
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(program).resolve().parent)
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    sys.exit(main())
