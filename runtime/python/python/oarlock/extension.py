"""Custom ops in C, C++, Rust or Python: compiled while a program runs, or built into wheels.

`load` compiles sources into a kernel plugin, caches it, and returns a function for each op:

    acme = oarlock.extension.load("acme", "swish.c")
    y = acme.swish(x)

`op` registers a Python function as an op. From then on, models may contain nodes with these ops.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from . import _function, _oarlock
from ._compile import compiled, headers, recipe, sdk, words_beside, words_of
from ._extension import Extension

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

__all__ = ["Extension", "include_directory", "load", "loaded", "op", "sdk_directory", "setup_arguments"]

P = ParamSpec("P")
T = TypeVar("T")

_loaded: dict[str, Extension] = {}
_loading = Lock()


def load(
    name: str,
    sources: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    flags: Sequence[str] = (),
    include: Sequence[str | PathLike[str]] = (),
    libraries: Sequence[str] = (),
    cache: str | PathLike[str] | None = None,
    verbose: bool = False,
) -> Extension:
    """Compiles a kernel plugin unless it is cached, adds it to the runtime, and returns its ops as functions.

    `sources` are files in C (`.c`) or C++ (`.cc`, `.cpp`, `.cxx`) that include `oarlock/op.h`, or the `Cargo.toml` of a
    crate. `flags` go to the compiler, `include` lists directories of headers, and `libraries` are linked. `CC`, `CXX` and
    `CARGO` name the compilers, by default `cc`, `c++` and `cargo`. The plugin is cached in `cache`, by default
    `$XDG_CACHE_HOME/oarlock/extensions`. With `verbose`, commands are printed.

    Attributes are keyword arguments of the functions. A kernel may declare its attributes (`OARLOCK_ATTRIBUTES`), and refuses
    others. Where it does not, one whose name occurs nowhere in the sources raises a warning.

    >>> acme = ol.extension.load("acme", "runtime/python/examples/swish.c", libraries=["m"])
    >>> acme.swish(ol.asarray([0.0, 100.0]), sharpness=2.0).tolist()
    [0.0, 100.0]
    """
    file = compiled(recipe(name, sources, flags, include, libraries), Path(cache) if cache else None, verbose=verbose)
    with _loading:
        known = _loaded.get(name)
        if known is None:
            known = _loaded[name] = Extension(_oarlock._add_plugin(str(file)), str(file), partial(words_of, file, flags))
        if known.file != str(file):
            raise ValueError(
                f"expected `{name}` as it was loaded before, found that it has changed\n"
                "hint: start the program anew: what is loaded stays"
            )
        return known


def loaded(name: str) -> Extension:
    """The ops of a plugin that is already loaded, such as one from an installed package."""
    with _loading:
        return _loaded.get(name) or Extension(name, None, partial(_words_of_wheel, name))


def _words_of_wheel(name: str) -> set[str]:
    """The words in the sources of a plugin, if its wheel lists them."""
    plugins = (each for each in json.loads(_oarlock._plugins()) if each.get("name") == name and not each["built_in"])
    return set[str]().union(*(words_beside(Path(each["file"])) for each in plugins))


def op(name: str, *, outputs: int = 1, deterministic: bool = False) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Registers a Python function as an op: models may contain it as a node, and `oarlock.op` calls it.

    >>> import oarlock as ol
    >>> @ol.extension.op("example::softsign")
    ... def softsign(x, *, sharpness=1.0):
    ...     return x / (abs(x) + 1 / sharpness)
    >>> ol.op("softsign", [ol.asarray([1.0, -3.0])], domain="example").tolist()
    [0.5, -0.75]

    Positional parameters are inputs, optional if they have a default; keyword-only parameters are attributes. The function
    receives arrays on the CPU and returns an array, or a tuple of `outputs` arrays, of any shapes and dtypes. Runs call it
    whenever they reach the op, possibly from several threads, so it should have no side effects. `deterministic` promises
    the same bits on every call; without it, the op is refused if the flag `deterministic` is on. The function itself is
    unchanged: a direct call gets its arguments as they are, and its result is not checked. Registering another function with
    the same parameters replaces the op. This raises a warning unless name and module are the same, as when a notebook cell
    runs again.
    """

    def register(function: Callable[P, T]) -> Callable[P, T]:
        _function.register(name, function, outputs, deterministic)
        return function

    return register


def include_directory() -> str:
    """The include directory of `oarlock/op.h` and `oarlock/plugin.h`, for builds with other tools.

    >>> from pathlib import Path
    >>> (Path(ol.extension.include_directory()) / "oarlock/op.h").exists()
    True
    """
    return str(headers())


def sdk_directory() -> str:
    """The directory of the crate `oarlock-sdk` that `load` uses, for `cargo check` and editors. The crate is in no registry, so
    the `Cargo.toml` of your crate, or a `.cargo/config.toml` above it, has to name its path:

        [patch.crates-io]
        oarlock-sdk = { path = "the result of `sdk_directory()`" }

    It changes with the version of the package.

    >>> from pathlib import Path
    >>> Path(ol.extension.sdk_directory()).is_dir()
    True
    """
    return str(sdk())


def setup_arguments(
    name: str,
    sources: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    package: str,
    version: str = "0",
    flags: Sequence[str] = (),
    include: Sequence[str | PathLike[str]] = (),
    libraries: Sequence[str] = (),
) -> dict[str, Any]:
    """Arguments for `setuptools.setup` that add a kernel plugin to a package in a wheel:

        setup(name="acme", packages=["acme"], **oarlock.extension.setup_arguments("acme", ["swish.c"], package="acme"))

    Once the wheel is installed, Oarlock finds the plugin by itself, and `loaded(name)` returns its functions. The wheel works
    with every Python version on the architecture it was built for. It needs setuptools 70.1 or newer.
    """
    from ._setup import arguments

    return arguments(recipe(name, sources, flags, include, libraries, version), package)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
