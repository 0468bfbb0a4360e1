"""Plugins that installed packages provide: found, judged, reported."""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import REPOSITORY, c_template


def python(*arguments, environment):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, env=environment)


@pytest.fixture
def installed(tmp_path, with_custom_cpu):
    """A function that installs a package with these files into a directory, as pip would."""
    environment = {name: value for name, value in with_custom_cpu.items() if name != "OARLOCK_PLUGIN_PATH"}
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), environment["PYTHONPATH"]])

    def install(package, files, is_there=True):
        about = tmp_path / f"{package}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[oarlock.plugins]\n{package} = {package}\n")
        if is_there:
            (tmp_path / package).mkdir()
            (tmp_path / package / "__init__.py").write_text("raise RuntimeError('nobody may import this')\n")
            for name, content in files.items():
                (tmp_path / package / name).write_bytes(content)
                (tmp_path / package / name).chmod(0o755)
        return environment

    return install


@pytest.fixture
def custom_cpu(with_custom_cpu):
    with open(os.path.join(with_custom_cpu["OARLOCK_PLUGIN_PATH"], "libcustom_cpu.so"), "rb") as file:
        return file.read()


def test_a_package_brings_a_device_and_takes_it_away_again(installed, custom_cpu, tmp_path):
    environment = installed("vendor_one", {"libcustom_cpu.so": custom_cpu})
    code = "import oarlock as ol; print(ol.device.get_all_custom_device_type())"
    assert python("-c", code, environment=environment).stdout == "['CustomCPU']\n"
    (tmp_path / "vendor_one-1.0.dist-info/entry_points.txt").unlink()
    assert python("-c", code, environment=environment).stdout == "[]\n"


def test_a_broken_package_is_reported_and_harms_no_other(installed, custom_cpu):
    installed("vendor_one", {"libcustom_cpu.so": custom_cpu})
    installed("vendor_broken", {"libbroken.so": b"no plugin"})
    environment = installed("vendor_gone", {}, is_there=False)
    outcome = python("-m", "oarlock", "doctor", environment=environment)
    assert outcome.returncode == 1, outcome.stderr
    assert "CustomCPU:0" in outcome.stdout and "libbroken.so" in outcome.stdout and "vendor_gone" in outcome.stdout
    report = json.loads(python("-m", "oarlock", "doctor", "--json", environment=environment).stdout)
    assert [device["problem"] for device in report["devices"]] == [None, None]
    assert [plugin["outcome"] for plugin in report["plugins"]].count("refused") == 1
    assert python("-c", "import oarlock as ol; ol.run_check()", environment=environment).stdout.endswith("successfully!\n")


def test_nothing_is_wrong_without_plugins(installed, tmp_path):
    environment = dict(os.environ, PYTHONPATH=os.environ["PYTHONPATH"])
    outcome = python("-m", "oarlock", "doctor", environment=environment)
    assert outcome.returncode == 0 and "nothing is wrong" in outcome.stdout, outcome.stdout + outcome.stderr
    assert "cpu:0" in python("-m", "oarlock", "devices", environment=environment).stdout


def test_a_package_whose_words_cannot_be_read_is_a_finding_and_hinders_no_other(installed, tmp_path):
    installed("good", {})
    environment = installed("spoilt", {})
    (tmp_path / "spoilt-1.0.dist-info/entry_points.txt").write_bytes("[oarlock.plugins]\nspoilt = spoilt\n# gr\xfcn".encode("latin-1"))
    outcome = python("-c", "import oarlock as ol; print(ol.ones(1).tolist())", environment=environment)
    assert outcome.stdout == "[1.0]\n", outcome.stderr
    outcome = python("-m", "oarlock", "doctor", "--json", environment=environment)
    found = {package["name"]: package["problem"] for package in json.loads(outcome.stdout)["packages"]}
    assert found["good"] is None and "UnicodeDecodeError" in found["spoilt-1.0.dist-info"]
    assert outcome.returncode == 1


@pytest.mark.parametrize(("name", "value"), [("OARLOCK_CONFIG", "/nonexistent"), ("OARLOCK_THREADS", "x")])
def test_what_keeps_all_from_starting_is_a_finding(name, value):
    outcome = python("-m", "oarlock", "doctor", environment=os.environ | {name: value})
    assert outcome.returncode == 1 and outcome.stderr == ""
    assert "Oarlock does not start" in outcome.stdout and value in outcome.stdout
    report = json.loads(python("-m", "oarlock", "doctor", "--json", environment=os.environ | {name: value}).stdout)
    assert report["devices"] == [] and value in report["start"]


def test_what_a_plugin_prints_is_no_part_of_the_report(installed, tmp_path):
    source = tmp_path / "prints.c"
    source.write_text('#include <stdio.h>\n__attribute__((constructor)) static void say(void) { puts("from a plugin"); fflush(stdout); }\n')
    plugin = tmp_path / "libprints.so"
    subprocess.run(["cc", "-fPIC", "-shared", "-o", plugin, source, *c_template()], check=True)
    environment = installed("vendor_loud", {"libprints.so": plugin.read_bytes()})
    outcome = python("-m", "oarlock", "doctor", "--json", environment=environment)
    assert json.loads(outcome.stdout)["version"]
    assert "from a plugin" in outcome.stderr


def bad_plugin(directory, slot, action):
    """The bytes of a plugin that runs an action in a slot of its device, and those of its manifest."""
    source = directory / "bad.c"
    source.write_text(f"""
        #include <stdlib.h>
        #include <unistd.h>
        #include "minimal.h"
        static oarlock_error initialize(void *context) {{ (void)context; {action}; return 0; }}
        static oarlock_error device_init(void *context, uint32_t device) {{ (void)context; (void)device; return 0; }}
        static oarlock_error allocate(void *context, uint32_t device, uint64_t size, oarlock_memory *block) {{
            (void)context; (void)device; (void)size; (void)block; {action}; return 0; }}
        static oarlock_error describe(oarlock_plugin *plugin) {{
            minimal_core.device_init = device_init; (void)initialize; (void)allocate;
            minimal_core.{slot};
            return minimal_describe(plugin, "Bad"); }}
        OARLOCK_PLUGIN(describe);
    """)
    library = directory / "libbad.so"
    folders = [f"-I{REPOSITORY}/device-sdk/include", f"-I{REPOSITORY}/tests/plugins"]
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-fPIC", "-shared", *folders, "-o", library, source], check=True)
    manifest = f"""
        name = 'Bad'
        version = '1'
        kind = 'device'
        device_type = 'Bad'
        contract = '1.0'
        profiles = ['core']
        architecture = '{os.uname().machine}-linux'
    """
    return library.read_bytes(), manifest.encode()


@pytest.mark.parametrize(("action", "reason"), [("abort()", "SIGABRT"), ("for (;;) pause()", "no answer within 2 times 300 ms")])
def test_a_plugin_with_a_manifest_that_fails_at_the_start_is_refused(installed, tmp_path, action, reason):
    library, manifest = bad_plugin(tmp_path, "initialize = initialize", action)
    config = tmp_path / "config.toml"
    config.write_text("[plugins]\nstart_timeout_ms = 300\n")
    config.chmod(0o644)
    files = {"libbad.so": library, "libbad.oarlock.toml": manifest}
    environment = installed("vendor_bad", files) | {"OARLOCK_CONFIG": str(config), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    outcome = python("-c", "import oarlock; print(oarlock.asarray([1.0]).tolist())", environment=environment)
    assert outcome.stdout == "[1.0]\n", outcome.stderr
    report = json.loads(python("-m", "oarlock", "doctor", "--json", environment=environment).stdout)
    (bad,) = (plugin for plugin in report["plugins"] if plugin["file"].endswith("libbad.so"))
    assert bad["is_wrong"] and reason in bad["found"]


def test_the_doctor_names_the_device_that_ends_its_process(installed, tmp_path):
    library, _ = bad_plugin(tmp_path, "memory_allocate = allocate", "abort()")
    environment = installed("vendor_worse", {"libbad.so": library})
    outcome = python("-m", "oarlock", "doctor", environment=environment | {"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert (outcome.returncode, outcome.stdout) == (1, "")
    assert outcome.stderr.endswith("the process was ended while `Bad:0` was tried: SIGABRT\n"), outcome.stderr


def test_who_reads_only_the_first_lines_is_no_error():
    command = f"{shlex.quote(sys.executable)} -m oarlock flags | head -1"
    outcome = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert outcome.stdout and outcome.stderr == ""


def test_plugins_of_the_package_itself_are_part_of_it_whoever_may_write_there(with_custom_cpu, custom_cpu, tmp_path):
    import oarlock

    shutil.copytree(os.path.dirname(oarlock.__file__), tmp_path / "oarlock")
    plugins = tmp_path / "oarlock/plugins"
    plugins.mkdir()
    (plugins / "libcustom_cpu.so").write_bytes(custom_cpu)
    plugins.chmod(0o777)
    # The one from the environment is found later.
    environment = with_custom_cpu | {"PYTHONPATH": str(tmp_path)}
    report = json.loads(python("-m", "oarlock", "doctor", "--json", environment=environment).stdout)
    assert "CustomCPU:0" in [device["device"] for device in report["devices"]]
    first, second = (plugin for plugin in report["plugins"] if plugin["file"].endswith("libcustom_cpu.so"))
    assert first["built_in"] and first["file"] == str(plugins / "libcustom_cpu.so")
    assert second["is_wrong"] and "built into the program" in second["found"], "it was asked for"


@pytest.fixture
def bundle(tmp_path):
    """A copy of the package, its plugin directory, and the environment of a process that imports it."""
    import oarlock

    shutil.copytree(os.path.dirname(oarlock.__file__), tmp_path / "oarlock")
    plugins = tmp_path / "oarlock/plugins"
    plugins.mkdir()
    return plugins, os.environ | {"PYTHONPATH": str(tmp_path)}


def test_the_doctor_says_which_file_of_the_package_is_spoilt_before_anything_opens_it(bundle, custom_cpu):
    plugins, environment = bundle
    (plugins / "libcustom_cpu.so").write_bytes(custom_cpu[:5000] + bytes(2000) + custom_cpu[7000:])
    (plugins / "libcustom_cpu.oarlock.toml").write_text(f'sha256 = "{hashlib.sha256(custom_cpu).hexdigest()}"\n')
    outcome = python("-m", "oarlock", "doctor", environment=environment)
    assert outcome.returncode == 1 and "expected the bytes that were installed" in outcome.stdout, outcome.stdout + outcome.stderr


def test_a_file_of_the_package_that_is_cut_off_is_refused(bundle, custom_cpu):
    plugins, environment = bundle
    (plugins / "libcustom_cpu.so").write_bytes(custom_cpu[: len(custom_cpu) // 2])
    outcome = python("-m", "oarlock", "doctor", environment=environment)
    assert outcome.returncode == 1 and "past its end" in outcome.stdout, outcome.stdout + outcome.stderr


def test_the_doctor_says_that_there_is_no_device(bundle, tmp_path):
    (tmp_path / "config.toml").write_text('[plugins]\ndisable = ["oarlock-cpu"]\n')
    outcome = python("-m", "oarlock", "doctor", environment=bundle[1] | {"OARLOCK_CONFIG": str(tmp_path / "config.toml")})
    assert outcome.returncode == 1 and "expected a device, found none" in outcome.stdout, outcome.stdout + outcome.stderr


def test_the_doctor_warns_of_nothing(bundle):
    outcome = python("-X", "dev", "-W", "error", "-m", "oarlock", "doctor", environment=bundle[1])
    assert (outcome.returncode, outcome.stderr) == (0, "")


def test_a_package_for_paddle_brings_its_device(tmp_path):
    directory = tmp_path / "paddle_custom_device"
    directory.mkdir()
    source = os.path.join(os.path.dirname(__file__), "../../../tests/paddle_devices/custom_device.c")
    command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-fPIC", "-shared", "-pthread", "-o", directory / "libnpu.so", source]
    subprocess.run(command, check=True)
    code = f"import site; site.getsitepackages = lambda: [{str(tmp_path)!r}]; import oarlock as ol; print(ol.device.get_all_custom_device_type())"
    assert python("-c", code, environment=dict(os.environ)).stdout == "['test_npu']\n"
