"""The reference of the Python package in the book is complete, and says what the package says."""

import os
import pydoc

import oarlock
import pytest
from conftest import REPOSITORY
from reference import examples, sources, texts
from reference.areas import AREAS
from reference.pages import Links, is_other_name, own_members, pages

BOOK = REPOSITORY / "docs/src/reference/python"
ADVICE = "is stale; write it anew with `OARLOCK_WRITE=1 scripts/test-python -k reference`"


@pytest.fixture(scope="module")
def made():
    """The pages, made in the directory that the examples name files from."""
    before = os.getcwd()
    os.chdir(REPOSITORY)
    try:
        yield pages()
    finally:
        os.chdir(before)


def test_the_pages_are_those_of_the_sources(made):
    if "OARLOCK_WRITE" in os.environ:
        BOOK.mkdir(exist_ok=True)
        for file, text in made.items():
            (BOOK / file).write_text(text)
    assert {file.name for file in BOOK.glob("*.md")} == set(made)
    for file, text in made.items():
        assert (BOOK / file).read_text() == text, f"`docs/src/reference/python/{file}` {ADVICE}"


def test_every_public_name_is_on_one_page():
    own = [name for area in AREAS for name in area.own()]
    parts = {area.part.partition(".")[0] for area in AREAS if area.part}
    assert len(own) == len(set(own))
    assert {name for name in oarlock.__all__ if name not in Links().page} == parts, "put the names into `reference/areas.py`"


def test_every_function_has_an_example():
    links = Links()
    lacking = [
        name
        for name, value in links.values.items()
        if callable(value) and not isinstance(value, oarlock.DType) and links.home(value) == name and sources.is_ours(value)
        if not texts.exemplified(value) and name not in examples.FUNCTIONS
    ]
    # There are no sparse tensors; the class says so.
    assert lacking == ["onnxruntime.SparseTensor"]


def test_every_method_of_arrays_has_an_example():
    methods = {name for name in sources.stub_of_methods().keys() | own_members().keys() if not is_other_name(name)}
    assert methods == examples.METHODS.keys()


def test_help_shows_what_the_reference_says():
    for name, value in Links().values.items():
        if callable(value) and not isinstance(value, oarlock.DType) and sources.is_ours(value):
            told = pydoc.plain(pydoc.render_doc(value))
            assert value.__doc__.strip().splitlines()[0] in told, name


def test_no_example_is_there_twice():
    values = Links().values
    assert [name for name in examples.FUNCTIONS if texts.exemplified(values[name])] == []


def test_no_page_is_too_long_to_read(made):
    assert {file: text.count("\n") for file, text in made.items() if text.count("\n") > 1500} == {}


def test_every_link_within_the_reference_leads_to_a_heading(made):
    headings = {file: {texts.anchor(line) for line in text.splitlines() if line.startswith("#")} for file, text in made.items()}
    for file, text in made.items():
        for target in (each.split(")")[0] for each in text.split("](")[1:]):
            page, _, place = target.partition("#")
            assert (page or file) in made, f"{file}: {target}"
            assert not place or place in headings[page or file], f"{file}: {target}"
