"""Compiles sources into kernel plugins and caches them by the hash of their inputs.

The cache directory of an extension is named after its sources, its flags, the contract, and the processor if the flags
target it. For each compiler it has a record that names the plugin and every header that went into it. The record is written
last, so an interrupted build is never found. A lock lets one process compile while others wait. Nothing is downloaded.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from . import _oarlock
from ._oarlock import Error
from ._progress import Waiting

C_ENDINGS = (".c",)
CPP_ENDINGS = (".cc", ".cpp", ".cxx", ".C")
MANIFEST = "Cargo.toml"
LOCK = "Cargo.lock"
WORDS = ".words"


@dataclass(frozen=True)
class Recipe:
    """The inputs of an extension's build."""

    name: str
    sources: tuple[Path, ...]
    flags: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    libraries: tuple[str, ...] = ()
    version: str = "0"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", self.name):
            raise ValueError(f"expected a name of 1 to 64 letters, digits, `-`, `_` and `.`, found {self.name!r}")
        if not self.sources:
            raise ValueError(f"expected the sources of `{self.name}`, found none")
        for source in self.sources:
            if not source.is_file():
                raise FileNotFoundError(f"expected a source of `{self.name}`, found no file `{source}`")
            if source.name != MANIFEST and source.suffix not in C_ENDINGS + CPP_ENDINGS:
                endings = ", ".join(f"`{ending}`" for ending in C_ENDINGS + CPP_ENDINGS)
                raise ValueError(f"expected sources that end in {endings}, or a `{MANIFEST}`, found `{source}`")
        if self.is_rust and (len(self.sources) > 1 or self.include or self.libraries):
            raise ValueError(f"expected a `{MANIFEST}` alone, found other sources, `include` or `libraries` beside it")

    @property
    def is_rust(self) -> bool:
        """Whether the source is a crate."""
        return any(source.name == MANIFEST for source in self.sources)

    def languages(self) -> list[str]:
        """The languages of the sources; the last one links."""
        if self.is_rust:
            return ["Rust"]
        has_cpp = any(source.suffix in CPP_ENDINGS for source in self.sources)
        has_c = any(source.suffix in C_ENDINGS for source in self.sources)
        return ["C"] * has_c + ["C++"] * has_cpp

    def provided(self) -> list[tuple[str, str]]:
        """The files of the package that its compilers read."""
        return _oarlock._sdk() if self.is_rust else _oarlock._headers()

    def key(self) -> str:
        """The cache key: everything but compilers and headers."""
        is_native = any(flag.endswith("=native") for flag in self.flags)
        parts = [
            self.name,
            self.version,
            [(str(source), digest(source)) for source in self.sources],
            self.flags,
            [str(directory) for directory in self.include],
            self.libraries,
            [(name, sha256(text.encode()).hexdigest()) for name, text in self.provided()],
            platform.machine(),
            processor() if is_native else "",
        ]
        return sha256(json.dumps(parts).encode()).hexdigest()[:24]


def recipe(
    name: str,
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    flags: Sequence[str],
    include: Sequence[str | os.PathLike[str]],
    libraries: Sequence[str],
    version: str = "0",
) -> Recipe:
    """A recipe from a user's arguments: one source or several, as paths of any kind."""
    for given, which in ((flags, "flags"), (include, "include"), (libraries, "libraries")):
        if isinstance(given, (str, bytes, os.PathLike)):
            raise TypeError(f"expected a list as `{which}`, such as `[{given!r}]`, found {type(given).__name__}")
    listed = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    paths = tuple(Path(source).absolute() for source in listed)
    directories = tuple(Path(directory).absolute() for directory in include)
    return Recipe(name, paths, tuple(flags), directories, tuple(libraries), version)


def digest(file: Path) -> str:
    """The hash of a file, or `None` if it does not exist."""
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def processor() -> str:
    """The model and the features of this processor."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        lines = file.read().split("\n\n")[0].splitlines()
    kept = ("model name", "flags", "Features", "CPU implementer", "CPU part", "CPU variant")
    return "\n".join(line for line in lines if line.startswith(kept))


def cache_directory() -> Path:
    """The cache of extensions: `$XDG_CACHE_HOME/oarlock/extensions`."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(given) if os.path.isabs(given) else Path.home() / ".cache"
    return home / "oarlock/extensions"


def compiled(recipe: Recipe, cache: Path | None = None, *, verbose: bool = False) -> Path:
    """The plugin of a recipe, compiled unless it is in the cache."""
    cache = cache_directory() if cache is None else cache.absolute()
    place = cache / f"{recipe.name}-{recipe.key()}"
    compilers = [Compiler.of(language) for language in recipe.languages()]
    identity = sha256(json.dumps([compiler.identity() for compiler in compilers]).encode()).hexdigest()[:12]
    missing = [compiler for compiler in compilers if compiler.path is None]

    def kept() -> Path | None:
        # Without a compiler, the plugin of any compiler will do.
        records = sorted(place.glob("made-*.json")) if missing else [place / f"made-{identity}.json"]
        return next((library for library in map(found, records) if library is not None), None)

    # Reading needs no lock, which a read-only cache could not have.
    library = kept()
    if library is not None:
        return library
    if missing:
        raise missing[0].missing()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with locked(place / "lock"):
        library = kept()
        if library is not None:
            return library
        # Left over from a process that was killed.
        for left in place.glob("build-*"):
            shutil.rmtree(left, ignore_errors=True)
        provided, began = sdk(cache) if recipe.is_rust else headers(cache), time.time_ns()
        with Waiting(f"compiling `{recipe.name}`"), tempfile.TemporaryDirectory(prefix="build-", dir=place) as directory:
            build = build_crate if recipe.is_rust else build_objects
            made, read = build(recipe, compilers, Path(directory), provided, verbose)
            made.chmod(0o755)
            library = place / f"lib{recipe.name}-{digest(made)[:12]}.so"
            os.replace(made, library)
            made_of = {str(file): digest(file) for file in sorted(read)}
            # A file that changed during the build may have been read before or after. Cargo writes its own lock file.
            if not any(file.stat().st_mtime_ns >= began for file in read if file.name != LOCK and file.exists()):
                put(place / f"made-{identity}.json", json.dumps({"library": library.name, "made_of": made_of}))
        return library


def found(record: Path) -> Path | None:
    """The plugin that a record names, if the plugin and all its inputs are unchanged."""
    try:
        said = json.loads(record.read_text())
        library = record.with_name(said["library"])
        made_of = said["made_of"].items()
    except (OSError, ValueError, KeyError):
        return None
    is_whole = library.stem.endswith(f"-{digest(library)[:12]}")
    return library if is_whole and all(digest(Path(file)) == known for file, known in made_of) else None


def words_of(library: Path, flags: Sequence[str]) -> set[str]:
    """The hashed words of a plugin's sources, headers and flags, without those of system headers and of the package."""
    files = set[Path]()
    for record in library.parent.glob("made-*.json"):
        said = json.loads(record.read_text())
        if said["library"] == library.name:
            files |= {Path(file) for file in said["made_of"]}
    cache = library.parent.parent
    others = [Path("/usr"), *cache.glob("include-*"), *cache.glob("sdk-*")]
    own = (file for file in sorted(files) if not any(map(file.is_relative_to, others)))
    texts = [*(file.read_text(errors="replace") for file in own if file.is_file()), *flags] if files else []
    return {hidden(word) for text in texts for word in re.findall(r"\w+", text)}


def hidden(word: str) -> str:
    """A hash that identifies a word without revealing it."""
    return sha256(word.encode()).hexdigest()[:12]


def words_beside(library: Path) -> set[str]:
    """The hashed words that a wheel lists for its plugin; none if it has no list."""
    file = library.with_suffix(WORDS)
    return set(file.read_text().split()) if file.is_file() else set()


def put(file: Path, text: str) -> None:
    """Writes a file atomically."""
    with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=".", delete=False) as written:
        written.write(text)
    os.replace(written.name, file)


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Holds a lock on a file, so that only one process at a time runs the block."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def headers(cache: Path | None = None) -> Path:
    """The include directory of `oarlock/op.h`, written if it does not exist."""
    return written(cache, "include", [(f"oarlock/{name}", text) for name, text in _oarlock._headers()])


def sdk(cache: Path | None = None) -> Path:
    """The directory of the crate `oarlock-sdk`, written if it does not exist."""
    return written(cache, "sdk", _oarlock._sdk()) / "sdk"


def written(cache: Path | None, name: str, texts: list[tuple[str, str]]) -> Path:
    """A directory with files of the package; missing ones are written."""
    cache = cache_directory() if cache is None else cache
    place = cache / f"{name}-{sha256(json.dumps(texts).encode()).hexdigest()[:24]}"
    for path, text in texts:
        file = place / path
        if not file.is_file():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            put(file, text)
    return place


@dataclass(frozen=True)
class Compiler:
    """A compiler for one language."""

    language: str
    variable: str
    command: tuple[str, ...]
    path: str | None

    @classmethod
    def of(cls, language: str) -> Compiler:
        """The compiler that the environment names, or the usual one."""
        variable, usual = {"C": ("CC", "cc"), "C++": ("CXX", "c++"), "Rust": ("CARGO", "cargo")}[language]
        command = tuple(shlex.split(os.environ.get(variable, ""))) or (usual,)
        return cls(language, variable, command, shutil.which(command[0]))

    def identity(self) -> list[str | int]:
        """Identifies the compiler and its version without running it."""
        if self.path is None:
            return []
        real = os.path.realpath(self.path)
        about = os.stat(real)
        return [real, about.st_size, about.st_mtime_ns, *self.command]

    def missing(self) -> Error:
        """The error for a compiler that is not installed."""
        return Error(
            f"expected a compiler of {self.language} as `{self.command[0]}`, found none\n"
            f"hint: install one, or name it in the variable `{self.variable}`"
        )


def build_objects(
    recipe: Recipe, compilers: list[Compiler], directory: Path, include: Path, verbose: bool
) -> tuple[Path, set[Path]]:
    """Compiles C and C++, and returns the plugin and the files that were read."""
    by_language = {compiler.language: compiler for compiler in compilers}
    about = [f'-DOARLOCK_EXTENSION_NAME="{recipe.name}"', f'-DOARLOCK_EXTENSION_VERSION="{recipe.version}"']
    common = ["-O2", "-fPIC", "-fvisibility=hidden", f"-I{include}", *(f"-I{each}" for each in recipe.include), *about]
    read, objects = set[Path](), list[str]()
    for index, source in enumerate(recipe.sources):
        language, standard = ("C++", "-std=c++17") if source.suffix in CPP_ENDINGS else ("C", "-std=c11")
        target, listed = directory / f"{index}.o", directory / f"{index}.d"
        to = ["-MMD", "-MF", str(listed), "-c", str(source), "-o", str(target)]
        run([*by_language[language].command, standard, *common, *recipe.flags, *to], verbose)
        objects.append(str(target))
        read |= dependencies(listed.read_text())
    # Hides what the C++ library exports despite all flags.
    exported = directory / "exported"
    exported.write_text("{ global: oarlock_plugin_query; local: *; };\n")
    made = directory / "made.so"
    libraries = [library if "/" in library else f"-l{library}" for library in recipe.libraries]
    link = ["-shared", f"-Wl,--version-script={exported}", "-o", str(made), *objects, *recipe.flags, *libraries]
    run([*compilers[-1].command, *link], verbose)
    return made, read


def build_crate(
    recipe: Recipe, compilers: list[Compiler], directory: Path, sdk: Path, verbose: bool
) -> tuple[Path, set[Path]]:
    """Builds a crate with cargo, and returns the plugin and the files that were read."""
    manifest = recipe.sources[0]
    target = directory / "target"
    options = ["--release", "--lib", "--offline", "--message-format=json-render-diagnostics", "--target-dir", str(target)]
    if is_left_open(manifest):
        options += ["--config", f"patch.crates-io.oarlock-sdk.path={json.dumps(str(sdk))}"]
    said = run([*compilers[0].command, "build", "--manifest-path", str(manifest), *options, *recipe.flags], verbose)
    messages = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    libraries = [
        Path(file)
        for message in messages
        if message.get("reason") == "compiler-artifact" and os.path.samefile(message["manifest_path"], manifest)
        for file in message["filenames"]
        if file.endswith(".so")
    ]
    if len(libraries) != 1:
        raise Error(f'expected `crate-type = ["cdylib"]` in `{manifest}`, found {len(libraries)} shared objects')
    read = dependencies(libraries[0].with_suffix(".d").read_text())
    return libraries[0], read | {manifest, manifest.with_name(LOCK)}


def is_left_open(manifest: Path) -> bool:
    """Whether a crate leaves open where its `oarlock-sdk` is."""
    # Only crates need it.
    import tomllib

    try:
        named = tomllib.loads(manifest.read_text()).get("dependencies", {}).get("oarlock-sdk")
    except (AttributeError, ValueError):
        # Cargo reports the error.
        return False
    return isinstance(named, str) or (isinstance(named, dict) and not named.keys() & {"path", "git", "workspace"})


def dependencies(rule: str) -> set[Path]:
    """The prerequisites in a rule of make."""
    _, _, files = rule.replace("\\\n", " ").partition(": ")
    words = re.findall(r"(?:\\.|\S)+", files)
    return {Path(re.sub(r"\\(.)", r"\1", word).replace("$$", "$")).absolute() for word in words}


def run(command: list[str], verbose: bool) -> str:
    """Runs a compiler and returns its output."""
    if verbose:
        print(shlex.join(command), file=sys.stderr)
    outcome = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if outcome.returncode != 0:
        raise Error(f"expected sources that compile, found that this fails:\n{shlex.join(command)}\n{outcome.stderr}")
    if verbose:
        print(outcome.stderr, end="", file=sys.stderr)
    return outcome.stdout
