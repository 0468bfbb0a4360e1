"""What is loaded when: the package when it is imported, its functions and methods when they are used."""

from importlib import import_module

import oarlock as ol
import pytest
from conftest import child, node_model
from oarlock import _names as names
from oarlock._methods import Methods

AT_IMPORT = ["_install_conflict", "_loading", "_model", "_names", "_numpy_protocol", "_oarlock", "_warning"]


def test_importing_the_package_loads_no_more_than_it_needs():
    code = "import sys; before = set(sys.modules); import oarlock; print(*set(sys.modules) - before)"
    loaded = set(child(code).split())
    assert {name for name in loaded if name.startswith("oarlock.")} == {f"oarlock.{name}" for name in AT_IMPORT}
    # Each takes longer to import than the package.
    assert not loaded & {"typing", "collections", "functools", "re", "inspect", "numpy"}


@pytest.mark.parametrize("module", names.MODULES)
def test_the_table_of_names_is_that_of_the_module(module):
    assert sorted(names.MODULES[module].split()) == sorted(import_module(f"oarlock.{module}").__all__)


def test_the_table_of_methods_is_that_of_the_class():
    assert {name for name in vars(Methods) if not name.startswith("__")} == names.METHODS


def test_every_public_name_is_there_once():
    assert len(set(ol.__all__)) == len(ol.__all__) and set(ol.__all__) >= names.PARTS
    for name in ol.__all__:
        assert getattr(ol, name) is not None or name == "newaxis"
    assert dir(ol) == sorted(ol.__all__)


def test_completion_offers_public_names_only():
    model = {"run", "arun", "inputs", "explain"}
    for owner, public in [(ol.ones(3), {"sum", "shape", "T", *names.METHODS} - {"_repr_html_"}), (ol.load(node_model("Neg")), model)]:
        offered = dir(owner)
        assert public <= set(offered)
        assert [name for name in offered if name.startswith("_") and not name.startswith("__")] == []
    unloaded = child("import oarlock as ol; print(*dir(ol.ones(3)))").split()
    assert unloaded == dir(ol.ones(3))
    for owner, public in [(ol.Tensor, {"sum", "shape"}), (ol.Session, model)]:
        assert public <= set(dir(owner))
        # Notebooks look for this one.
        own = [name for name in dir(owner) if name.startswith("_") and not name.startswith("__") and name != "_repr_html_"]
        assert own == []


@pytest.mark.parametrize(
    "code",
    [
        "import oarlock as ol; print(ol.ones(3).sum().item())",
        "import oarlock as ol; print(ol.Tensor.sum(ol.ones(3)).item())",
        "from oarlock import Tensor, ones; print(Tensor.sum(ones(3)).item())",
        "from oarlock import *; print(sum(ones(3)).item())",
        "import oarlock as ol; x = ol.ones(3); print(hasattr(x, 'sum') and 'sum' in dir(x) and not hasattr(x, 'nothing') and x.sum().item())",
        "import oarlock.linalg as linalg; import oarlock as ol; print(3 * linalg.det(ol.eye(2)).item())",
    ],
)
def test_methods_and_functions_are_there_however_they_are_reached_first(code):
    assert child(code).strip() == "3.0"
