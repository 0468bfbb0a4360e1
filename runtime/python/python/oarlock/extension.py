"""Ops of your own, in C, C++, Rust or Python: compiled while a program runs, or built into wheels.

`load` compiles sources into a plugin of kernels, which is kept for the next time, and gives a function for each op:

    acme = oarlock.extension.load("acme", "swish.c")
    y = acme.swish(x)

`op` makes a function of Python an op. From then on models may have nodes of these ops.
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
    """Compiles a plugin of kernels, unless that has been done, adds it to the runtime, and gives its ops as functions.

    `sources` are files in C (`.c`) and C++ (`.cc`, `.cpp`, `.cxx`), which include `oarlock/op.h`, or the `Cargo.toml` of a
    crate. `flags` go to the compiler, `include` are directories of headers, and `libraries` are linked. The compilers are those
    that `CC`, `CXX` and `CARGO` name, or `cc`, `c++` and `cargo`. What was compiled is kept in `cache`, which is
    `$XDG_CACHE_HOME/oarlock/extensions` where none is named. With `verbose`, commands are printed.

    Attributes are keywords of the functions. A kernel does not say which it knows; one whose name stands nowhere in the sources
    it cannot ask for, which is warned of.
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
    """The ops of a plugin that is there already, such as one that an installed package brings."""
    with _loading:
        return _loaded.get(name) or Extension(name, None, partial(_words_of_wheel, name))


def _words_of_wheel(name: str) -> set[str]:
    """The words that the plugin of a name was made of, as far as whoever built it said."""
    plugins = (each for each in json.loads(_oarlock._plugins()) if each.get("name") == name and not each["built_in"])
    return set[str]().union(*(words_beside(Path(each["file"])) for each in plugins))


def op(name: str, *, outputs: int = 1, deterministic: bool = False) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Makes a function of Python the op of a name: models may have it as a node, and `oarlock.op` calls it.

    >>> import oarlock as ol
    >>> @ol.extension.op("example::softsign")
    ... def softsign(x, *, sharpness=1.0):
    ...     return x / (abs(x) + 1 / sharpness)
    >>> ol.op("softsign", [ol.asarray([1.0, -3.0])], domain="example").tolist()
    [0.5, -0.75]

    Its positional parameters are the inputs, of which those with a default may be left out, and the others are attributes. It
    gets arrays of the CPU, and gives an array, or a tuple of as many as `outputs` says, of any shapes and dtypes. It is called
    wherever a run finds the op, on several threads perhaps, and should do nothing else than compute. With `deterministic` you
    promise that it gives the same bits each time, without which it is refused where the flag `deterministic` is on. The
    function itself stays as it was: called directly it gets what it is given, wherever that lies, and nothing looks at what it
    gives. To make another one with the same parameters the op of the name puts it in its place, with a warning unless it is of
    the same name and module, as where a cell of a notebook runs again.
    """

    def register(function: Callable[P, T]) -> Callable[P, T]:
        _function.register(name, function, outputs, deterministic)
        return function

    return register


def include_directory() -> str:
    """The directory in which a compiler finds `oarlock/op.h` and `oarlock/plugin.h`, for builds with other tools."""
    return str(headers())


def sdk_directory() -> str:
    """The directory of the crate `oarlock-sdk` that `load` builds crates with, for `cargo check` and editors. No registry has it, so
    the `Cargo.toml` of a crate says where it lies, or a `.cargo/config.toml` above it:

        [patch.crates-io]
        oarlock-sdk = { path = "what `sdk_directory()` gives" }

    It changes with the version of the package.
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
    """What `setuptools.setup` is called with, so that a wheel brings a plugin of kernels in one of its packages:

        setup(name="acme", packages=["acme"], **oarlock.extension.setup_arguments("acme", ["swish.c"], package="acme"))

    Where the wheel is installed Oarlock finds the plugin by itself, and `loaded(name)` has its functions. The wheel fits every
    Python of the processor that it is built on. It needs setuptools 70.1 or newer.
    """
    from ._setup import arguments

    return arguments(recipe(name, sources, flags, include, libraries, version), package)


def __dir__() -> list[str]:
    """What is meant to be used, without what the module itself uses."""
    return __all__
