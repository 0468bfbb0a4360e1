"""Makes `import onnxruntime` find the adapter, for programs that cannot be edited."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import find_spec
from types import ModuleType

from ._distribution import AdapterDistribution

_OURS = __name__.rpartition(".")[0]
_THEIRS = "onnxruntime"


def install(*, replace: bool = False) -> None:
    """Makes `import onnxruntime` find this package in this process, and its submodules those of onnxruntime.

    If onnxruntime itself was imported before, that is an error, because modules that have it already would keep it. With
    `replace=True`, later imports find this package all the same.
    """
    loaded = sys.modules.get(_THEIRS)
    if loaded is not None and loaded.__name__ != _OURS:
        if not replace:
            raise ImportError(
                f"expected `install` before the first import of `{_THEIRS}`, found it imported from {loaded.__file__}\n"
                "hint: call `install` earlier; `install(replace=True)` has an effect on later imports only",
                name=_THEIRS,
            )
        for name in [each for each in sys.modules if each == _THEIRS or each.startswith(f"{_THEIRS}.")]:
            del sys.modules[name]
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    import_module(_THEIRS)


class _Finder(DistributionFinder):
    """Finds modules of onnxruntime among ours, by the same name."""

    def find_spec(self, fullname: str, path: object = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Our module in place of one of onnxruntime, if there is one."""
        if fullname != _THEIRS and not fullname.startswith(f"{_THEIRS}."):
            return None
        ours = _OURS + fullname.removeprefix(_THEIRS)
        return None if find_spec(ours) is None else ModuleSpec(fullname, _Alias(ours), origin=ours)

    def find_distributions(self, context: DistributionFinder.Context = DistributionFinder.Context()) -> Iterable[Distribution]:
        """What programs learn when they ask which version of onnxruntime is installed."""
        return [AdapterDistribution()] if context.name == _THEIRS else []


class _Alias(Loader):
    """Loads one of our modules under another name too: the module itself, so that its classes exist only once."""

    def __init__(self, name: str) -> None:
        self._module = import_module(name)
        self._spec = self._module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Does not run the module again; its own imports need the specification that the import system replaced."""
        module.__spec__ = self._spec
