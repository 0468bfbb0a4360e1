"""Prints where the parts of this package are, for builds: `cc -I"$(python -m oarlock_sdk --include)" …`."""

from __future__ import annotations

import argparse
import os


def main() -> None:
    """Answers one question in one line."""
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(prog="python -m oarlock_sdk", description="Says where the SDK of Oarlock is.")
    which = parser.add_mutually_exclusive_group(required=True)
    for name, path, what in (
        ("include", "include", "the directory of the headers, for `cc -I`"),
        ("cmake", "cmake", "the directory of the configuration for CMake, for `-DOarlockSdk_DIR=`"),
        ("rust", os.path.join("rust", "sdk"), "the directory of the crate `oarlock-sdk`, for a dependency with a path"),
        ("templates", "templates", "the directory of plugins to start from"),
    ):
        which.add_argument(f"--{name}", dest="path", action="store_const", const=path, help=what)
    print(os.path.join(here, parser.parse_args().path))


if __name__ == "__main__":
    main()
