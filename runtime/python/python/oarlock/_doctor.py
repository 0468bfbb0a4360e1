"""Diagnoses the installation: devices, plugins, and why some cannot be used."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from threading import Barrier
from typing import TYPE_CHECKING, Any

from . import _install_advice, _install_conflict, _oarlock, _plugins, asarray, devices
from ._oarlock import Device

if TYPE_CHECKING:
    from ._watch import Tell


@dataclass(frozen=True)
class Checked:
    """The result of a small computation on a device."""

    device: str
    description: str
    problem: str | None


@dataclass(frozen=True)
class Flavor:
    """A wheel of the core: its row in `packaging/matrix.toml`, and its contents."""

    label: str
    version: str
    parts: list[str]
    has_avx: bool


def check(device: Device, place: int = 0) -> Checked:
    """Multiplies and adds integers on a device, if it has kernels for that, and compares the results with Python's. Each
    device gets different numbers."""
    left = [[(3 * row + 5 * column + place) % 7 - 3 for column in range(5)] for row in range(5)]
    right = [[(2 * row + column) % 5 - 2 for column in range(5)] for row in range(5)]
    columns = list(zip(*right, strict=True))
    product = [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in left]
    total = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(left, right, strict=True)]
    problem = None
    try:
        a, b = (asarray(matrix, dtype=_oarlock.float32, device=device) for matrix in (left, right))
        for function, expected in [(_oarlock.add, total), (_oarlock.matmul, product)]:
            with suppress(NotImplementedError):
                found = function(a, b).tolist()
                problem = problem if found == expected else f"expected {expected}, found {found}"
    except Exception as error:  # noqa: BLE001  any error is a finding
        problem = f"{type(error).__name__}: {error}"
    return Checked(device.name, device.description, problem)


ROUNDS = 5
"""How often each device computes beside the others: often enough to overlap."""


def tell_nobody(doing: str) -> None:
    """For a process that nobody watches."""


def check_all(found: list[Device], tell: Tell = tell_nobody) -> list[Checked]:
    """Tries every device by itself, and then all devices of a type at once: a plugin may drive each device correctly and
    still mix them up."""
    checked: list[Checked] = []
    for device in found:
        tell(f"`{device.name}` was tried")
        checked.append(check(device))
    for kind in dict.fromkeys(device.type for device in found):
        places = [place for place, device in enumerate(found) if device.type == kind]
        if len(places) == 1 or any(checked[place].problem for place in places):
            continue
        tell(f"all `{kind}` devices were tried at the same time")
        for place, together in zip(places, check_together([found[place] for place in places]), strict=True):
            if together.problem:
                checked[place] = replace(together, problem=f"beside the others of its kind, {together.problem}")
    return checked


def check_together(found: list[Device]) -> list[Checked]:
    """Tries devices at the same time, each on its own thread with its own numbers, several times."""
    gate = Barrier(len(found))

    def work(place: int) -> Checked:
        gate.wait()
        rounds = [check(found[place], place * ROUNDS + number) for number in range(ROUNDS)]
        return next((each for each in rounds if each.problem), rounds[0])

    with ThreadPoolExecutor(len(found)) as pool:
        return list(pool.map(work, range(len(found))))


def run_check() -> None:
    """Tests every device, and all devices of a type at once, prints the results, and raises an error if one fails."""
    found = list(devices())
    for checked in check_all(found):
        if checked.problem:
            raise _oarlock.Error(f"`{checked.device}` does not work: {checked.problem}\nhint: `python -m oarlock doctor` says more")
    types: dict[str, int] = {}
    for device in found:
        types[device.type] = types.get(device.type, 0) + 1
    for name, count in types.items():
        print(f"Oarlock works well on {count} {name}{'s' if count > 1 else ''}.")
    print("Oarlock is installed successfully!")


def doctor(as_json: bool, tell: Tell = tell_nobody) -> int:
    """Prints the report; returns 1 if something is wrong. Tells beforehand what it is about to do."""
    report = examined(tell)
    print(json.dumps(report, indent=2) if as_json else in_words(report))
    return 1 if problems(report) else 0


def examined(tell: Tell = tell_nobody) -> dict[str, Any]:
    """The report as data."""
    tell("the plugins were loaded")
    there: list[Device] = []
    start, plugins, layers = None, [], []
    broken = _plugins.broken()
    try:
        if broken:
            raise _oarlock.Error(broken[0])
        there = list(devices())
        plugins = json.loads(_oarlock._plugins())
        layers = _oarlock._layers_left_out()
    except Exception as error:  # noqa: BLE001  any error is a finding
        # With a wrong variable or configuration, nothing starts.
        start = f"{type(error).__name__}: {error}"
    package = os.path.dirname(os.path.abspath(_plugins.__file__))
    return {
        "version": _oarlock.__version__,
        "wheel": asdict(found) if (found := wheel(package)) else None,
        "python": f"{sys.implementation.name} {sys.version.split()[0]}, {sys.executable}",
        "package": package,
        "owners": _install_conflict.problem(package),
        "start": start,
        "devices": [asdict(checked) for checked in check_all(there, tell)],
        "plugins": plugins,
        "layers left out": layers,
        "packages": [package._asdict() for package in _plugins.announced()],
        "advice": _install_advice.advice(_install_advice.here(), {device.type for device in there}, _install_advice.packages()),
    }


def wheel(package: str) -> Flavor | None:
    """The wheel that the package came in; `None` if it was built from source or installed by Debian."""
    try:
        with open(os.path.join(package, "wheel.json"), encoding="utf-8") as about:
            return Flavor(**json.load(about))
    except (OSError, ValueError, TypeError):
        return None


def problems(report: dict[str, Any]) -> list[str]:
    """The problems, one string each."""
    of_devices = [f"device `{device['device']}`: {device['problem']}" for device in report["devices"] if device["problem"]]
    if not report["devices"] and not report["start"]:
        where = os.path.join(report["package"], "plugins")
        of_devices = [f"expected a device, found none: that of the CPU comes with the package, in `{where}`; {_plugins.ANEW}"]
    elif missing := missing_parts(report):
        of_devices += [f"expected `{file}`, which the wheel installed, found none; {_plugins.ANEW}" for file in missing]
    of_packages = [f"package `{each['name']}`: {each['problem']}" for each in report["packages"] if each["problem"]]
    of_plugins = [refused(plugin) for plugin in report["plugins"] if plugin["is_wrong"]]
    of_start = [f"Oarlock does not start: {report['start']}"] if report["start"] else []
    of_layers: list[str] = report["layers left out"]
    of_owners = [report["owners"]] if report["owners"] else []
    return of_owners + of_start + of_devices + of_packages + of_plugins + of_layers


def missing_parts(report: dict[str, Any]) -> list[str]:
    """Files of the wheel's parts that no longer exist."""
    if not report["wheel"]:
        return []
    plugins = [part.rstrip("0123456789") for part in report["wheel"]["parts"] if part != "core"]
    files = [os.path.join(report["package"], "plugins", f"liboarlock_plugin_{name}.so") for name in plugins]
    return [file for file in files if not os.path.exists(file)]


def refused(plugin: dict[str, Any]) -> str:
    """Why a plugin was refused."""
    return f"plugin `{plugin['file']}`: expected {plugin['expected']}, found {plugin['found']}; {plugin['remedy']}"


def in_words(report: dict[str, Any]) -> str:
    """The report as text."""
    lines = [f"Oarlock {report['version']} at {report['package']}"]
    if report["wheel"]:
        about = Flavor(**report["wheel"])
        avx = "with AVX where the processor has it" if about.has_avx else "without any instruction of AVX"
        lines.append(f"the wheel `{about.label}` {about.version}, of {', '.join(about.parts)}, {avx}")
    lines += [report["python"], "", "devices"]
    for device in report["devices"]:
        lines.append(f"  {device['device']}  {device['description']}: {'does not work' if device['problem'] else 'works'}")
    lines += ["", "plugins"]
    for plugin in report["plugins"]:
        if plugin["outcome"] == "loaded":
            where = "part of the package" if plugin["built_in"] else plugin["file"]
            lines.append(f"  {plugin['name']} {plugin['version']}  {where}")
        else:
            lines.append(f"  {plugin['file']}: {'refused' if plugin['is_wrong'] else 'left out, ' + plugin['reason']}")
    if report["advice"]:
        lines += ["", "what could be used", *(f"  {sentence}" for sentence in report["advice"])]
    wrong = problems(report)
    lines += ["", "nothing is wrong" if not wrong else "what is wrong"]
    return "\n".join(lines + [f"  {problem}" for problem in wrong])
