"""Runs a program with the adapter in place of onnxruntime."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

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
    if is_module:
        # As with `python -m`, modules are looked for in the current directory, which `python -m` of this module put there.
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(arguments[0]).resolve().parent)
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
