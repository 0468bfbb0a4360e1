"""Two distributions that own the package directory, which pip permits and the import reports."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import oarlock as ol
import pytest

PACKAGE = Path(ol.__file__).parent
NATIVE = Path(ol._oarlock.__file__)


def wheel(directory, distribution, version, files):
    """A wheel with some files, as `path: bytes`."""
    named = f"{distribution.replace('-', '_')}-{version}"
    about = {
        "METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n".encode(),
        "WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files = files | {f"{named}.dist-info/{name}": text for name, text in about.items()}
    digests = {path: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() for path, data in files.items()}
    record = "".join(f"{path},sha256={digests[path]},{len(data)}\n" for path, data in files.items())
    file = directory / f"{named}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
        archive.writestr(f"{named}.dist-info/RECORD", f"{record}{named}.dist-info/RECORD,,\n")
    return file


@pytest.fixture
def site(tmp_path):
    """A directory with installed wheels of the package, and a function that runs a program there. The native module is a link,
    because the one for tests is large."""
    target = tmp_path / "site"
    sources = {f"oarlock/{file.relative_to(PACKAGE)}": file.read_bytes() for file in PACKAGE.rglob("*.py")}

    class Site:
        directory = target

        def install(self, distribution, version, files=sources):
            file = wheel(tmp_path, distribution, version, files)
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--upgrade"]
            subprocess.run([*command, "--disable-pip-version-check", "--target", target, file], check=True, timeout=120)
            link = target / "oarlock" / NATIVE.name
            if link.parent.exists() and not link.exists():
                link.symlink_to(NATIVE)

        def ask(self, *arguments):
            environment = os.environ | {"PYTHONPATH": str(target)}
            return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, env=environment)

        def imported(self):
            outcome = self.ask("-c", "import oarlock as ol; print(ol.ones(1).tolist())")
            return outcome.stdout or outcome.stderr.partition("ImportError: ")[2]

    return Site()


def test_one_owner_is_as_it_should_be_beside_its_plugins(site):
    site.install("oarlock", ol.__version__)
    site.install("oarlock-cuda12", "0.1.0", {"oarlock_cuda12/__init__.py": b""})
    assert site.imported() == "[1.0]\n"


@pytest.mark.parametrize("behind", ["+cpu.mkl", ".post1", ".post2+cpu.mkl"])
def test_what_stands_behind_a_version_is_no_other_version(site, behind):
    site.install("oarlock", f"{ol.__version__}{behind}")
    assert site.imported() == "[1.0]\n"


def test_what_is_left_of_a_distribution_owns_nothing(site):
    site.install("oarlock", ol.__version__)
    (site.directory / "oarlock-9.dist-info").mkdir()
    (site.directory / "oarlock-10.dist-info").write_text("")
    (site.directory / "oarlock_gpu-2.0.dist-info").mkdir()
    assert site.imported() == "[1.0]\n"


def test_two_versions_of_which_pip_left_both_are_named_with_what_to_do(site):
    site.install("oarlock", ol.__version__)
    site.install("oarlock", "99.0")
    message = site.imported()
    assert f"found `oarlock` {ol.__version__} and `oarlock` 99.0, whose files may be mixed" in message
    assert f"hint: remove `{site.directory}/oarlock`" in message


def test_another_distribution_that_has_the_same_package_is_named(site):
    site.install("oarlock", ol.__version__)
    site.install("oarlock-gpu", "2.0")
    assert f"found `oarlock` {ol.__version__} and `oarlock-gpu` 2.0, whose files may be mixed" in site.imported()


def test_a_module_of_another_version_than_its_distribution_is_named(site):
    site.install("oarlock", "99.0")
    message = site.imported()
    assert f"found a module of {ol.__version__} in `oarlock` 99.0" in message
    assert "--force-reinstall --no-deps oarlock==99.0`" in message


def test_the_doctor_finds_owners_of_any_name(site):
    site.install("acme-models", "1.0")
    site.install("oarlock", ol.__version__)
    assert site.imported() == "[1.0]\n"
    outcome = site.ask("-m", "oarlock", "doctor", "--json")
    assert outcome.returncode == 1, outcome.stderr
    assert "found `oarlock` and `acme-models`; remove" in json.loads(outcome.stdout)["owners"]
    assert "acme-models" in site.ask("-m", "oarlock", "doctor").stdout


def test_the_doctor_says_which_wheel_the_package_came_in(site):
    flavor = {"label": "cpu, mkl, noavx", "version": f"{ol.__version__}+cpu.mkl.noavx", "parts": ["core", "cpu", "mkl"], "has_avx": False}
    site.install("oarlock", flavor["version"])
    said = site.directory / "oarlock" / "wheel.json"
    for text in (None, "{", "[]", '{"label": "core"}'):
        if text is not None:
            said.write_text(text)
        assert json.loads(site.ask("-m", "oarlock", "doctor", "--json").stdout)["wheel"] is None
    said.write_text(json.dumps(flavor))
    assert json.loads(site.ask("-m", "oarlock", "doctor", "--json").stdout)["wheel"] == flavor
    words = f"the wheel `cpu, mkl, noavx` {flavor['version']}, of core, cpu, mkl, without any instruction of AVX"
    assert words in site.ask("-m", "oarlock", "doctor").stdout.splitlines()


def test_in_an_environment_pip_is_what_mends_it(monkeypatch):
    from oarlock import _install_conflict

    monkeypatch.setattr(sys, "prefix", "/environment")
    package = "/environment/lib/python3.11/site-packages/oarlock"
    assert "`python -m pip uninstall --yes oarlock oarlock-gpu`, then " in _install_conflict._remedy(package, ["oarlock", "oarlock-gpu"])
    assert "`python -m pip uninstall --yes oarlock` once for each, then " in _install_conflict._remedy(package, ["oarlock"])


def test_a_package_that_was_not_installed_has_no_owner(tmp_path):
    from oarlock import _install_conflict

    _install_conflict.check(str(tmp_path / "oarlock"))
    _install_conflict.check(str(tmp_path / "archive.zip" / "oarlock"))
