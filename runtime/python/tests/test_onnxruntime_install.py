"""Programs that cannot be edited find the adapter where they expect onnxruntime."""

import os
import subprocess
import sys

import oarlock
import pytest
from conftest import child, node_model

PROGRAM = """
import sys
import onnxruntime as ort
from onnxruntime.capi import _pybind_state as C
from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession
assert C.InvalidArgument is ort.capi.onnxruntime_pybind11_state.InvalidArgument and InferenceSession is ort.InferenceSession
session = InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
print(session.run(None, {"x": [-1, 2]})[0].tolist(), ort.__name__, sys.argv[2:], __name__)
"""


@pytest.fixture
def program(tmp_path):
    """A directory with a program, a module that it imports, and a model."""
    (tmp_path / "program.py").write_text("import beside\n" + PROGRAM)
    (tmp_path / "beside.py").touch()
    (tmp_path / "model.onnx").write_bytes(node_model("Relu"))
    return tmp_path


def run(*arguments, cwd):
    """A finished `python -m oarlock.onnxruntime`."""
    command = [sys.executable, "-X", "dev", "-W", "error", "-m", "oarlock.onnxruntime", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd)


EXPECTED = "[0.0, 2.0] oarlock.onnxruntime ['-v', 'more'] __main__\n"


def test_a_program_runs_unchanged(program, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    outcome = run(str(program / "program.py"), str(program / "model.onnx"), "-v", "more", cwd=elsewhere)
    assert (outcome.stdout, outcome.stderr) == (EXPECTED, "")


def test_a_module_runs_unchanged(program):
    outcome = run("-m", "program", "model.onnx", "-v", "more", cwd=program)
    assert (outcome.stdout, outcome.stderr) == (EXPECTED, "")


def test_how_a_program_ends_is_how_the_command_ends(tmp_path):
    (tmp_path / "ends.py").write_text("import sys; sys.exit(int(sys.argv[1]))")
    assert [run("ends.py", code, cwd=tmp_path).returncode for code in ("0", "3")] == [0, 3]
    (tmp_path / "raises.py").write_text("import onnxruntime\nonnxruntime.InferenceSession('none.onnx')")
    outcome = run("raises.py", cwd=tmp_path)
    assert outcome.returncode == 1 and "NoSuchFile" in outcome.stderr and "raises.py" in outcome.stderr


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("from onnxruntime.quantization import quantize_dynamic", "hint: prepare models with onnxruntime itself"),
        ("import onnxruntime.transformers.optimizer", "hint: prepare models with onnxruntime itself"),
        ("import onnxruntime.backend", "hint: `oarlock.onnx_backend` is a backend"),
        ("from onnxruntime import LoraAdapter", "hint: write the weights into the model"),
        ("import nonsense", "No module named 'nonsense'"),
        ("from onnxruntime import nonsense", "cannot import name 'nonsense'"),
    ],
)
def test_a_program_that_imports_what_is_not_there_ends_with_what_to_do(tmp_path, line, hint):
    (tmp_path / "imports.py").write_text(line)
    outcome = run("imports.py", cwd=tmp_path)
    assert outcome.returncode == 1 and hint in outcome.stderr.splitlines()[-1]


def test_the_command_says_how_it_is_used(tmp_path):
    for arguments, code in [(["--help"], 0), ([], 2), (["--nonsense"], 2), (["-m"], 2)]:
        outcome = run(*arguments, cwd=tmp_path)
        assert outcome.returncode == code
        assert "usage: python -m oarlock.onnxruntime PROGRAM.py" in (outcome.stderr if code else outcome.stdout)


def test_installed_modules_are_ours():
    said = child("""
        import importlib.metadata, importlib.util, sys
        from oarlock import onnxruntime as ort
        ort.install()
        ort.install()
        import onnxruntime, onnxruntime.capi.onnxruntime_pybind11_state as state
        import oarlock.onnxruntime.capi.onnxruntime_pybind11_state as ours
        assert onnxruntime is ort and state is ours and sys.modules["onnxruntime"] is ort
        assert ort.__spec__.name == "oarlock.onnxruntime"
        assert importlib.metadata.version("onnxruntime") == ort.__version__
        assert importlib.metadata.requires("onnxruntime") is importlib.metadata.files("onnxruntime") is None
        assert importlib.metadata.version("numpy")
        assert importlib.util.find_spec("onnxruntime") is not None
        for name in ("onnxruntime.quantization", "onnxruntime.training"):
            assert importlib.util.find_spec(name) is None
        try:
            import onnxruntime.quantization
        except ModuleNotFoundError as error:
            print(error.name)
    """)
    assert said == "onnxruntime.quantization\n"


def test_onnxruntime_is_replaced_only_if_asked():
    pytest.importorskip("onnxruntime")
    said = child("""
        import onnxruntime as theirs
        from oarlock import onnxruntime as ours
        try:
            ours.install()
        except ImportError as error:
            print(error)
        ours.install(replace=True)
        import onnxruntime
        from onnxruntime.capi import _pybind_state
        assert onnxruntime is ours is not theirs
        assert _pybind_state.InferenceSession is ours.InferenceSession is not theirs.InferenceSession
    """)
    assert said.startswith("expected `install` before the first import of `onnxruntime`, found it imported from ")
    assert "\nhint: call `install` earlier; `install(replace=True)`" in said


def test_a_program_does_not_need_onnxruntime(program):
    """In an environment without it, as if it had never been installed."""
    packages = os.pathsep.join([str(program), *sys.path])
    code = f"""
        import sys
        class Nothing:
            def find_spec(self, name, path=None, target=None):
                if name == "onnxruntime":
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, Nothing())
        from oarlock import onnxruntime
        onnxruntime.install()
        sys.argv = ["program", {str(program / "model.onnx")!r}, "-v", "more"]
        import runpy
        runpy.run_path({str(program / "program.py")!r}, run_name="__main__")
    """
    assert child(code, PYTHONPATH=packages) == EXPECTED
    assert oarlock.onnxruntime.__name__ == "oarlock.onnxruntime"
