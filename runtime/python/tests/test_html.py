"""Arrays in notebooks."""

from html.parser import HTMLParser

import numpy as np
import oarlock as ol
import pytest
from conftest import child


class Table(HTMLParser):
    """The rows of a table, and the text outside of it."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.rest, self.open = [], "", []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["td"]:
            self.rows[-1][-1] += data
        else:
            self.rest += data


def test_one_or_two_axes_are_a_table():
    table = Table(ol.asarray([[1.5, -2.0], [float("nan"), 1e-30]])._repr_html_())
    assert table.rows == [["1.5", "-2."], ["nan", "1e-30"]]
    assert table.rest == "shape (2, 2), float32, cpu:0"
    assert Table(ol.asarray([True, False])._repr_html_()).rows == [["True", "False"]]
    assert Table(ol.asarray([1 + 2j])._repr_html_()).rows == [["1.+2.j"]]
    assert Table(ol.asarray([1, -2]).astype("int4")._repr_html_()).rows == [["1", "-2"]]
    assert Table(ol.asarray([1.5]).astype("bfloat16")._repr_html_()).rest == "shape (1,), bfloat16, cpu:0"


def test_text_is_escaped():
    table = Table(ol.asarray(["<script>alert(1)</script>", "a & b", 'quoted " text\nmore'])._repr_html_())
    assert table.rows == [['"<script>alert(1)</script>"', '"a & b"', '"quoted \\" text\\nmore"']]


@pytest.mark.parametrize("shape", [(1001,), (40, 40), (2000, 2), (2, 2000), (1000,), (25, 40)])
def test_a_large_array_is_abbreviated_as_its_text_is(shape):
    values = np.arange(np.prod(shape)).reshape(shape)
    matrix = values.reshape(-1, shape[-1])
    is_long = values.size > 1000
    ends = [[0, 1, 2, None, n - 3, n - 2, n - 1] if is_long and n > 6 else list(range(n)) for n in matrix.shape]
    expected = [["…" if i is None or j is None else str(matrix[i, j]) for j in ends[1]] for i in ends[0]]
    assert Table(ol.asarray(values)._repr_html_()).rows == expected
    assert ("..." in repr(ol.asarray(values))) == is_long


def test_a_table_follows_the_options_of_printing():
    with ol.printoptions(precision=2, threshold=3, edgeitems=1):
        assert Table(ol.asarray([1 / 3, 1.0, 2.0, 2 / 3])._repr_html_()).rows == [["0.33", "…", "0.67"]]


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 2, 3)])
def test_other_arrays_are_their_text(shape):
    x = ol.ones(shape)
    table = Table(x._repr_html_())
    assert table.rows == [] and table.rest == repr(x)


def test_a_notebook_finds_the_table_before_other_methods_are_used():
    assert child("import oarlock as ol; print(ol.ones(1)._repr_html_())").startswith("<table>")
