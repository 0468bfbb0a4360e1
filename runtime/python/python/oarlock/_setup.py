"""Builds a kernel plugin into a wheel with setuptools."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path
from typing import Any

from setuptools import Extension
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

from . import _oarlock
from ._compile import WORDS, Recipe, compiled, digest, words_of
from ._plugins import GROUP

MANIFEST = ".oarlock.toml"


class Plugin(Extension):
    """A plugin that setuptools builds as if it were an extension module."""

    def __init__(self, recipe: Recipe, package: str) -> None:
        # Dots would denote packages.
        super().__init__(f"{package}.lib{recipe.name.replace('.', '-')}", sources=[str(source) for source in recipe.sources])
        self.recipe = recipe


class BuildPlugin(build_ext):
    """Compiles plugins as `load` does, and writes their manifests."""

    def build_extension(self, ext: Extension) -> None:
        if not isinstance(ext, Plugin):
            usual: Any = super()
            usual.build_extension(ext)
            return
        made = compiled(ext.recipe, Path(self.build_temp), verbose=True)
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, target)
        target.chmod(0o755)
        target.with_suffix(MANIFEST).write_text(manifest(ext.recipe, target))
        target.with_suffix(WORDS).write_text("\n".join(sorted(words_of(made, ext.recipe.flags))))

    def get_ext_filename(self, fullname: str) -> str:
        *package, last = fullname.split(".")
        for ext in self.extensions:
            if isinstance(ext, Plugin) and ext.name.rpartition(".")[2] == last:
                # Not a module, so its name has no interpreter tag.
                return "/".join([*package, f"lib{ext.recipe.name}.so"])
        usual: Any = super()
        return str(usual.get_ext_filename(fullname))

    def get_outputs(self) -> list[str]:
        if self.inplace:
            # In an editable install the plugin changes, so it has no manifest and is probed.
            return super().get_outputs()
        plugins = [ext for ext in self.extensions if isinstance(ext, Plugin)]
        libraries = [Path(self.get_ext_fullpath(ext.name)) for ext in plugins]
        beside = [str(library.with_suffix(ending)) for library in libraries for ending in (MANIFEST, WORDS)]
        return [*super().get_outputs(), *beside]


class Wheel(bdist_wheel):
    """A wheel for every Python version: the plugin does not depend on one."""

    def get_tag(self) -> tuple[str, str, str]:
        return ("py3", "none", super().get_tag()[2])


def arguments(recipe: Recipe, package: str) -> dict[str, Any]:
    """Arguments for `setuptools.setup`."""
    return {
        "ext_modules": [Plugin(recipe, package)],
        "cmdclass": {"build_ext": BuildPlugin, "bdist_wheel": Wheel},
        "entry_points": {GROUP: [f"{recipe.name} = {package}"]},
    }


def manifest(recipe: Recipe, library: Path) -> str:
    """The manifest, which saves the host from probing the plugin in a process."""
    said = {
        "name": recipe.name,
        "version": recipe.version,
        "kind": "kernels",
        "contract": _oarlock._contract(),
        "architecture": f"{platform.machine()}-linux",
        "sha256": digest(library),
    }
    return "".join(f'{key} = "{value}"\n' for key, value in said.items())
