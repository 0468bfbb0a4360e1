"""Examples in docstrings and in the book do what they show."""

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import json
import os
import pkgutil

import oarlock
import pytest
from conftest import REPOSITORY

MODULES = [module.name for module in pkgutil.iter_modules(oarlock.__path__) if module.name not in ("__main__", "_oarlock")]
BOOK = [REPOSITORY / "docs/src/user" / f"{page}.md" for page in ("python", "from-numpy", "from-pytorch", "from-paddle")]


def examples():
    """Every text with examples, once, and the names that it uses."""
    modules = [oarlock, *(importlib.import_module(f"oarlock.{name}") for name in MODULES)]
    known = set()
    for module in modules:
        own = [member for member in vars(module).values() if getattr(member, "__module__", "").startswith("oarlock")]
        classes = [member for member in own if inspect.isclass(member)]
        bases = {base: None for one in classes for base in one.__mro__ if base.__module__.startswith("oarlock")}
        for described in [module, *own, *(member for one in bases for member in vars(one).values())]:
            text = getattr(described, "__doc__", None)
            if isinstance(text, str) and ">>>" in text and text not in known:
                known.add(text)
                yield getattr(described, "__qualname__", getattr(described, "__name__", "?")), text, dict(vars(module))
    yield from ((page.stem, page.read_text().replace("```", ""), {}) for page in BOOK)


@pytest.mark.parametrize(("name", "text", "names"), [pytest.param(*example, id=example[0]) for example in examples()])
def test_an_example_shows_what_happens(name, text, names, monkeypatch, tmp_path):
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names |= {"oarlock": oarlock, "ol": oarlock}
    test = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    told = []
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=told.append)
    assert not told, "".join(told)


NOTEBOOKS = sorted((REPOSITORY / "docs/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_shows_what_happens(file, monkeypatch):
    """With OARLOCK_WRITE=1 the outputs are updated instead."""
    # The model is beside the notebooks where they are served.
    monkeypatch.chdir(REPOSITORY / "docs/src/models")
    names = {}
    notebook = json.loads(file.read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(cells, 1):
        happened = outcome("".join(cell["source"]), names)
        if "OARLOCK_WRITE" in os.environ:
            cell.update(execution_count=count, outputs=written(*happened, count))
        assert shown(cell["outputs"]) == happened
    if "OARLOCK_WRITE" in os.environ:
        file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def written(printed, values, count):
    """The printed output and the value of a cell, as stored in a notebook."""
    streams = [{"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)}] if printed else []
    return streams + [
        {
            "data": {"text/plain": value.splitlines(keepends=True)},
            "execution_count": count,
            "metadata": {},
            "output_type": "execute_result",
        }
        for value in values
    ]


def shown(outputs):
    """The printed output of a cell, and the value of its last line."""
    printed = "".join(line for output in outputs for line in output.get("text", ()))
    values = ["".join(output["data"]["text/plain"]) for output in outputs if "data" in output]
    return printed, values


def outcome(source, names):
    """The same for a run of the cell now."""
    statements = ast.parse(source).body
    last = statements.pop() if isinstance(statements[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(statements, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
    return printed.getvalue(), [] if value is None else [repr(value)]


def test_everything_public_is_described():
    public = [getattr(oarlock, name) for name in oarlock.__all__]
    callables = [one for one in public if callable(one)]
    assert len(callables) > 150
    assert [one.__name__ for one in callables if not (one.__doc__ or "").strip()] == []


NAMESPACES = [
    "", ".device", ".extension", ".fft", ".linalg", ".nn", ".nn.functional", ".onnx_backend", ".onnxruntime", ".openvino",
    ".paddle_inference", ".profiler", ".random", ".tflite",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMESPACES)
def test_a_namespace_lists_what_is_meant_to_be_used(name):
    namespace = importlib.import_module(f"oarlock{name}")
    assert dir(namespace) == sorted(namespace.__all__)
    assert [one for one in namespace.__all__ if not hasattr(namespace, one)] == []
