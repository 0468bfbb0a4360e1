"""Detects a directory with two owners. pip lets two distributions share one: the second overwrites files of the first, and
removing either removes files of the other. The import checks this by names alone, because it must take no time.

It raises an error instead of warning: Python files of one version with a module of another fail late and in strange ways,
and one command repairs it.
"""

from __future__ import annotations

import os
import sys

NAME = "oarlock"

ENDING = ".dist-info"


def check(package: str) -> None:
    """Raises an error if the package directory has two owners, or a module whose version differs from its owner's."""
    above = os.path.dirname(package)
    try:
        found = [name for name in os.listdir(above) if name.startswith(NAME) and name.endswith(ENDING)]
    except OSError:
        # The package is in an archive, which has one owner.
        return
    owners = sorted(_owner(name) for name in found if _owns(os.path.join(above, name)))
    if len(owners) > 1:
        raise ImportError(_in_words(package, owners))
    name, installed = owners[0] if owners else ("", "")
    if name == NAME:
        from ._oarlock import __version__

        # The version of a wheel may have a local suffix or a new build number, which does not change the module; before
        # a release it is spelled differently.
        version = installed.partition("+")[0].partition(".post")[0]
        if version != __version__ and __version__.replace(".", "").isdigit():
            raise ImportError(
                f"expected files of one version in `{package}`, found a module of {__version__} in `{NAME}` {installed}\n"
                f"hint: run `{_install()} --force-reinstall --no-deps {NAME}=={installed}`"
            )


def _owner(about: str) -> tuple[str, str]:
    """The name and the version of a distribution."""
    name, _, version = about.removesuffix(ENDING).partition("-")
    return name.replace("_", "-"), version


def _owns(about: str) -> bool:
    """Whether a distribution contains the package. Plugin distributions begin with the same word and have few files. One
    without a list of files is the remains of an uninstalled one, and owns nothing."""
    record = os.path.join(about, "RECORD")
    if os.path.basename(about).startswith(f"{NAME}-"):
        return os.path.isfile(record)
    try:
        with open(record, "rb") as file:
            return any(line.startswith(b"oarlock/__init__.py,") for line in file)
    except OSError:
        return False


def others() -> list[str]:
    """Other distributions of any name that own the package. This reads the metadata of all, which takes a while."""
    from importlib.metadata import distributions

    found: set[str] = set()
    for each in distributions():
        said = each.read_text("RECORD") or ""
        if any(line.startswith("oarlock/__init__.py,") for line in said.splitlines()):
            found.add(each.name)
    return sorted(found - {NAME}) if NAME in found else []


def problem(package: str) -> str | None:
    """A conflict that the import could not see."""
    found = others()
    if not found:
        return None
    return f"expected one distribution that owns `{package}`, found `{NAME}` and `{'`, `'.join(found)}`; {_remedy(package, [NAME, *found])}"


def _in_words(package: str, owners: list[tuple[str, str]]) -> str:
    told = " and ".join(f"`{name}` {version}" for name, version in owners)
    names = list(dict.fromkeys(name for name, _ in owners))
    return f"expected one distribution that owns `{package}`, found {told}, whose files may be mixed\nhint: {_remedy(package, names)}"


def _remedy(package: str, names: list[str]) -> str:
    if not package.startswith(sys.prefix + os.sep):
        # pip removes nothing from a `--target` directory.
        return f"remove `{package}` and what is about {' and '.join(names)} beside it, then install one of them again"
    often = " once for each" if len(names) == 1 else ""
    return f"run `python -m pip uninstall --yes {' '.join(names)}`{often}, then `{_install()} {NAME}`"


def _install() -> str:
    from ._wheels import INDEX

    return f"python -m pip install --index-url {INDEX}"
