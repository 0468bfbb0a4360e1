"""The pages for those who know another library say what happens: both sides of each row run and give the same."""

import importlib
import re

import numpy as np
import oarlock as ol
import pytest
from conftest import REPOSITORY

PAGES = {"numpy": "np", "torch": "torch", "paddle": "paddle", "onnxruntime": "ort"}
"""The libraries, and what programs call them."""

DESCRIPTIONS = (".type", "get_all_device_type")
"""What libraries say in words of their own, such as `tensor(float)`, is not compared."""

FILES = {"torch": "from-pytorch.md"}


def rows(library):
    """The code of the two sides of each row."""
    text = (REPOSITORY / "docs/src/user" / FILES.get(library, f"from-{library}.md")).read_text()
    cells = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    return [tuple(re.fullmatch("`(.+)`", cell.strip()).group(1) for cell in each[:2]) for each in cells]


def can_run(code):
    """Whether code is complete, and needs no GPU."""
    return "…" not in code and "cuda" not in code


def values(make, integers, **more):
    """The names that code uses."""
    return {"x": make([[1.0, 2.0], [3.0, 4.0]]), "n": integers([[1], [0]]), **more}


def names_of(library, module):
    """What the left side of a row finds."""
    if library == "onnxruntime":
        return {"a": np.ones((2, 1, 8, 8), np.float32), "ort": module, "session": module.InferenceSession("digits.onnx")}
    make = {"numpy": "array", "torch": "tensor", "paddle": "to_tensor"}[library]
    own = {PAGES[library]: module, "a": np.ones(3, np.float32)}
    return values(getattr(module, make), getattr(module, make), **own)


def our_names(library):
    """What the right side of a row finds."""
    image = np.ones((2, 1, 8, 8), np.float32) if library == "onnxruntime" else np.ones(3, np.float32)
    more = {"ol": ol, "np": np, "a": image}
    if library == "onnxruntime":
        more["session"] = ol.load("digits.onnx")
    return values(ol.asarray, ol.asarray, **more)


def outcome(code, names):
    """The value of an expression, or what a statement makes of `x`, in a form that can be compared; `None` if there is none."""
    try:
        expression = compile(code, "row", "eval")
    except SyntaxError:
        exec(code, names)
        return plain(names["x"]) if "x" in names else None
    return plain(eval(expression, names))


def plain(value):
    """An array of any library as one of NumPy, and numbers and texts as they are; `None` for anything else."""
    if isinstance(value, (bool, int, float, str, np.ndarray, np.generic)):
        return value
    if hasattr(value, "numpy"):
        return np.asarray(value.numpy())
    if isinstance(value, (list, tuple)):
        parts = [plain(each) for each in value]
        return None if any(each is None for each in parts) else parts
    return None


def assert_alike(found, expected):
    """Checks that two outcomes are the same, apart from dtypes and rounding."""
    if found is None or expected is None:
        return
    if isinstance(expected, list) and isinstance(found, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
    elif isinstance(expected, str):
        assert found == expected
    else:
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-5, atol=1e-6)


ROWS = [(library, *row) for library in PAGES for row in rows(library)]


@pytest.mark.parametrize(("library", "theirs", "ours"), ROWS, ids=[f"{library}-{ours}" for library, _, ours in ROWS])
def test_both_sides_of_a_row_give_the_same(library, theirs, ours, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits.onnx").symlink_to(REPOSITORY / "docs/src/models/digits.onnx")
    np.save("x.npy", [[1.0, 2.0], [3.0, 4.0]])
    if not can_run(ours):
        pytest.skip("it is not complete, or needs a GPU")
    found = outcome(ours, our_names(library))
    try:
        module = importlib.import_module(library)
    except ImportError:
        return
    if can_run(theirs) and not any(each in theirs for each in DESCRIPTIONS):
        assert_alike(found, outcome(theirs, names_of(library, module)))


@pytest.mark.parametrize("library", PAGES)
def test_a_page_has_the_names_that_programs_use_most(library):
    assert len(rows(library)) >= (20 if library == "onnxruntime" else 40)
