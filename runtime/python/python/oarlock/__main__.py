"""The command line: `python -m oarlock doctor` diagnoses the installation, and other subcommands list what is available."""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from . import _oarlock, __version__, devices

if TYPE_CHECKING:
    from ._extension import Kernel, Operand


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m oarlock", description="Arrays and models on any device.")
    parser.add_argument("--version", action="version", version=f"oarlock {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("devices", help="list the devices there are")
    of_flags = commands.add_parser("flags", help="list the flags that `oarlock.set_flags` and variables set")
    of_flags.add_argument("--paddle", action="store_true", help="list what the variables of PaddlePaddle do here instead")
    kernels = commands.add_parser("kernels", help="list the kernels there are")
    kernels.add_argument("--op", help="those of this op alone, such as `Add`")
    doctor = commands.add_parser("doctor", help="say which devices and plugins work, and why others do not; ends with 1 if one does not")
    doctor.add_argument("--json", action="store_true", help="print the report as JSON")
    chosen = parser.parse_args()
    if chosen.command == "doctor":
        from ._doctor import doctor as examine
        from ._watch import watched

        return watched(lambda tell: examine(chosen.json, tell))
    if chosen.command == "flags":
        print(paddle_variables() if chosen.paddle else flags())
    elif chosen.command == "kernels":
        listed = kernels_of(chosen.op)
        print(listed or f"no plugin has a kernel for `{chosen.op}`")
        return 0 if listed else 1
    else:
        for device in devices():
            print(f"{device.name}  {device.description}")
    return 0


def flags() -> str:
    """Every flag with its possible values."""
    told = [
        f"{name}\n    {meaning}\n    expected {kind}, by default {default or 'nothing'}; variable {variable}"
        for name, kind, default, variable, meaning in _oarlock._flags()
    ]
    return "\n".join(told)


def paddle_variables() -> str:
    """Every PaddlePaddle variable with the flag that it sets, or what to use instead."""
    told = [
        f"{name}\n    {meaning}\n    {f'sets the flag {flag}' if flag else f'has no effect; {instead}'}"
        for name, meaning, flag, instead in _oarlock._paddle_variables()
    ]
    return "\n".join(told)


def kernels_of(op: str | None) -> str:
    """The kernels of an op, or of all ops, with the dtypes that each accepts; the same for several inputs is shown once."""
    rows: list[Kernel] = json.loads(_oarlock._kernels(op=op))

    def takes(operands: list[Operand]) -> str:
        return "; ".join(dict.fromkeys(" ".join(operand["dtypes"]) for operand in operands))

    told = [
        f"{row['domain'] or 'ai.onnx'}::{row['op']} {row['versions']}  on {row['device']} by {row['plugin']}  {takes(row['inputs'] or row['outputs'])}"
        for row in rows
    ]
    return "\n".join(sorted(told))


def keep_output() -> None:
    """Reserves the standard output for this program: what plugins print goes to standard error."""
    with suppress(OSError):
        own = os.dup(1)
        os.dup2(2, 1)
        # It stays open until the program ends, so Python should not warn about it.
        sys.stdout = os.fdopen(own, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, closefd=False)


if __name__ == "__main__":
    keep_output()
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe; Python would try to write the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
