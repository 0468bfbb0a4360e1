"""Plugin files of this package and of other installed packages.

Another package announces its plugins with an entry point whose value is the package with the files:

    [project.entry-points."oarlock.plugins"]
    acme-npu = "oarlock_acme_npu"

It is not imported: the host judges the files in its directory like any other before their code runs.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

GROUP = "oarlock.plugins"

ENTRY_POINTS = "entry_points.txt"

ANEW = "install it anew: the command that installed it, with `--force-reinstall --no-deps` behind it"


class Announced(NamedTuple):
    """The plugin directories that a package announces, or the problem that it has none."""

    name: str
    package: str
    directories: tuple[str, ...]
    problem: str | None


def bundled() -> list[str]:
    """The plugins that are files of this package."""
    place = os.path.join(os.path.dirname(__file__), "plugins")
    try:
        return sorted(os.path.join(place, name) for name in os.listdir(place) if name.endswith(".so"))
    except OSError:
        # Without them there is no device, which is reported.
        return []


def broken() -> list[str]:
    """Damaged plugin files: each has its hash beside it. Opening a damaged one could kill the process."""
    from hashlib import sha256
    from tomllib import TOMLDecodeError, load

    told: list[str] = []
    for file in bundled():
        try:
            with open(file.removesuffix(".so") + ".oarlock.toml", "rb") as about:
                expected = load(about).get("sha256")
            if expected is None or not os.path.isfile(file):
                continue
            with open(file, "rb") as library:
                found = sha256(library.read()).hexdigest()
        except (OSError, TOMLDecodeError):
            continue
        if found != expected:
            told.append(f"`{file}`: expected the bytes that were installed, with the hash {expected}, found {found}; {ANEW}")
    return told


def announced() -> tuple[Announced, ...]:
    """The announcements of all installed packages."""
    if not any(_mentioned(directory) for directory in sys.path):
        return ()
    from importlib.metadata import distributions

    said: dict[str, tuple[Announced, ...]] = {}
    for installed in distributions():
        try:
            text = installed.read_text(ENTRY_POINTS)
            # Of two packages with the same name, only the first can be imported.
            if text is not None and GROUP in text and installed.name not in said and text == _first(installed.name):
                entries = installed.entry_points.select(group=GROUP)
                said[installed.name] = tuple(_found(entry.name, entry.value.partition(":")[0]) for entry in entries)
        except Exception as error:  # noqa: BLE001  broken metadata is a problem of that package only
            if not isinstance(error, UnicodeDecodeError) or GROUP.encode() in error.object:
                name = os.path.basename(str(getattr(installed, "_path", installed.locate_file(""))))
                problem = f"expected an `{ENTRY_POINTS}` that can be read, found {type(error).__name__}: {error}"
                said[name] = (Announced(name, "", (), problem),)
    return tuple(entry for entries in said.values() for entry in entries)


def _first(name: str) -> str | None:
    """The announcement of the first package with a name."""
    from importlib.metadata import distribution

    return distribution(name).read_text(ENTRY_POINTS)


def directories() -> list[str]:
    """The directories to search for plugins."""
    return [directory for package in announced() for directory in package.directories] + of_paddle()


def of_paddle() -> list[str]:
    """The directories into which packages of vendors put custom devices of PaddlePaddle, which announce nothing."""
    import site

    places = site.getsitepackages() + ([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])
    found = [os.path.join(place, "paddle_custom_device") for place in places]
    return [directory for directory in found if os.path.isdir(directory)]


def _mentioned(directory: str) -> bool:
    """Whether a package in a directory of the path may have plugins. Reading all metadata would take much longer, and few have any."""
    try:
        with os.scandir(directory or ".") as entries:
            for entry in entries:
                if entry.name.endswith((".dist-info", ".egg-info")) and _mentions(entry.path):
                    return True
    except OSError:
        pass
    return False


def _mentions(about: str) -> bool:
    try:
        with open(os.path.join(about, ENTRY_POINTS), "rb") as file:
            return GROUP.encode() in file.read()
    except OSError:
        return False


def _found(name: str, package: str) -> Announced:
    from importlib.util import find_spec

    try:
        # Finding a package inside another would import the outer one.
        spec = find_spec(package) if "." not in package else None
    except Exception as error:  # noqa: BLE001  whatever a finder raises is a problem of that package only
        return Announced(name, package, (), f"{type(error).__name__}: {error}")
    places = tuple(spec.submodule_search_locations or ()) if spec else ()
    if not places:
        return Announced(name, package, (), f"expected a package `{package}` with a directory of its own, found none")
    return Announced(name, package, places, None)
