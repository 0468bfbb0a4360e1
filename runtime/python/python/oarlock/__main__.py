"""`python -m oarlock doctor` says whether all is well; `python -m oarlock devices` lists devices."""

from __future__ import annotations

import argparse
import sys

from . import __version__, devices


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m oarlock", description="Arrays and models on any device.")
    parser.add_argument("--version", action="version", version=f"oarlock {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("devices", help="list the devices there are")
    doctor = commands.add_parser("doctor", help="say which devices and plugins work, and why others do not; ends with 1 if one does not")
    doctor.add_argument("--json", action="store_true", help="print the report as JSON")
    chosen = parser.parse_args()
    if chosen.command == "doctor":
        from ._doctor import doctor as examine

        return examine(chosen.json)
    for device in devices():
        print(f"{device.name}  {device.description}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
