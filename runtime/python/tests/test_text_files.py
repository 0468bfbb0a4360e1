"""Arrays as text, with NumPy's results as the truth."""

import io

import numpy as np
import oarlock as ol
import pytest
from conftest import same

TEXTS = {
    "one": "7",
    "row": "1 2 3",
    "column": "1\n2\n3\n",
    "table": "1 2 3\n4 5 6\n",
    "spaces": "  1\t2   3 \r\n\r\n 4 5 6",
    "comments": "# head\n1 2 3 # tail\n\n#\n4 5 6",
    "exponents": "1e3 -2.5E-3\nnan inf",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("ndmin", [0, 1, 2])
@pytest.mark.parametrize("unpack", [False, True])
def test_text_is_read_as_numpy_reads_it(text, ndmin, unpack, tmp_path):
    (tmp_path / "x.txt").write_bytes(text.encode())
    for name in ("loadtxt", "genfromtxt"):
        expected = np.asarray(getattr(np, name)(io.StringIO(text), ndmin=ndmin, unpack=unpack))
        for source in (
            tmp_path / "x.txt",
            str(tmp_path / "x.txt"),
            io.StringIO(text),
            io.BytesIO(text.encode()),
            text.splitlines(),
        ):
            same(getattr(ol, name)(source, ndmin=ndmin, unpack=unpack), expected)


OPTIONS = [
    {"delimiter": ","},
    {"delimiter": ",", "skiprows": 1},
    {"delimiter": ",", "max_rows": 2},
    {"delimiter": ",", "usecols": 1},
    {"delimiter": ",", "usecols": (2, 0)},
    {"delimiter": ",", "usecols": -1},
    {"delimiter": ",", "usecols": [1], "ndmin": 2},
    {"delimiter": ",", "converters": {1: lambda text: float(text) * 2}},
    {"delimiter": ",", "converters": lambda text: float(text) + 1},
    {"delimiter": ",", "dtype": "int32"},
    {"delimiter": ",", "dtype": "float32"},
    {"delimiter": ",", "dtype": "complex128"},
    {"delimiter": ",", "comments": ["3", "%"], "usecols": 0},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_mean_what_they_mean_in_numpy(options):
    text = "1,2,3\n4, 5,6\n7,8,9\n"
    same(ol.loadtxt(io.StringIO(text), **options), np.loadtxt(io.StringIO(text), **options))


def test_text_that_is_no_number_is_named_with_its_place():
    for text, named, message in (
        ("1 2\n3 x", {}, "expected float64 in line 2, column 2, found `x`"),
        ("1 2\n3", {}, "expected 2 fields in each line, found 1 in line 2"),
        ("1.5", {"dtype": "int32"}, "expected int32 in line 1, column 1, found `1.5`"),
        ("1_000", {}, "expected float64 in line 1, column 1, found `1_000`"),
        ("1", {"ndmin": 3}, "expected 0, 1 or 2 for `ndmin`, found 3"),
    ):
        with pytest.raises(ValueError, match=f"^`loadtxt` {message}$"):
            ol.loadtxt(io.StringIO(text), **named)
    with pytest.raises(IndexError, match="^`loadtxt` expected a column from 0 to 1 in line 1, found 2"):
        ol.loadtxt(["1 2"], usecols=2)
    with pytest.raises(TypeError, match="^`loadtxt` expected the path of a file, an object to read from, or lines, found int"):
        ol.loadtxt(5)
    for name in ("loadtxt", "genfromtxt"):
        with pytest.raises(FileNotFoundError, match=f"^`{name}` expected a file `nothing.txt`, found none\nhint: name a file"):
            getattr(ol, name)("nothing.txt")
        with pytest.raises(IsADirectoryError, match=f"^`{name}` expected a file `.`, found a directory\nhint: name a file in it"):
            getattr(ol, name)(".")


def test_other_dtypes_are_read():
    assert ol.loadtxt(["a b", "c d"], dtype="str").tolist() == [["a", "b"], ["c", "d"]]
    same(ol.loadtxt(["True False", "0 1"], dtype=bool), np.array([[True, False], [False, True]]))
    same(ol.loadtxt(["1+2j -3j"], dtype=complex), np.array([1 + 2j, -3j], np.complex64))
    same(ol.loadtxt([str(2**63 - 1)], dtype="int64"), np.int64(2**63 - 1))
    same(ol.loadtxt([]), np.zeros(0))
    assert ol.loadtxt([], dtype=str).tolist() == []
    assert ol.genfromtxt(["a,,c"], dtype=str, delimiter=",").tolist() == ["a", "", "c"]
    same(ol.genfromtxt([], ndmin=2), np.zeros((0, 1)))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"filling_values": -7},
        {"dtype": "int64"},
        {"skip_header": 1},
        {"skip_footer": 1},
        {"usecols": (0, 2)},
        {"missing_values": "3"},
        {"max_rows": 2},
    ],
    ids=str,
)
def test_what_is_missing_is_filled(options):
    text = "1,,3\nx,5,\n7,8,9\n"
    same(ol.genfromtxt(io.StringIO(text), delimiter=",", **options), np.genfromtxt(io.StringIO(text), delimiter=",", **options))


WRITTEN = [
    ({}, [[1.5, -2], [np.nan, np.inf]]),
    ({}, [1, 2, 3]),
    ({}, np.zeros((0, 3))),
    ({"fmt": "%d", "delimiter": ","}, [[1, 2], [3, 4]]),
    ({"fmt": "%.3f"}, np.float16([1.5, 2])),
    ({"fmt": ["%d", "%5.1f"], "delimiter": ";"}, [[1, 2], [3, 4]]),
    ({"fmt": "%d and %d"}, [[1, 2], [3, 4]]),
    ({"header": "a\nb", "footer": "c", "comments": "// ", "newline": "\r\n"}, [1.0]),
    ({"fmt": "%s"}, ["a", "b"]),
]


@pytest.mark.parametrize(("options", "given"), WRITTEN, ids=str)
def test_text_is_written_as_numpy_writes_it(options, given, tmp_path):
    found, expected = tmp_path / "found.txt", tmp_path / "expected.txt"
    array = np.asarray(given)
    array = array.astype("float32") if array.dtype == "float64" else array
    ol.savetxt(found, ol.asarray(array.tolist(), dtype="str") if array.dtype.kind == "U" else array, **options)
    np.savetxt(expected, array, **options)
    assert found.read_bytes() == expected.read_bytes()
    text, binary = io.StringIO(newline=""), io.BytesIO()
    ol.savetxt(text, given, **options)
    ol.savetxt(binary, given, **options)
    assert text.getvalue().encode() == binary.getvalue() == expected.read_bytes()


def test_what_cannot_be_written_as_text_is_refused(tmp_path):
    for given, named, message in (
        (np.zeros((1, 1, 1)), {}, "expected one or two axes, found the shape"),
        ([[1, 2]], {"fmt": ["%d"]}, "expected a format for each of 2 columns, found 1"),
        ([[1, 2]], {"fmt": "%d %d %d"}, "expected a format of Python's `%` that fits int64, found '%d %d %d'"),
        ([1j], {}, "expected real numbers, found complex"),
    ):
        with pytest.raises((ValueError, TypeError), match=f"^`savetxt` {message}"):
            ol.savetxt(tmp_path / "x.txt", given, **named)
    assert not any(tmp_path.iterdir())


def test_keywords_about_fields_are_told_with_what_to_do():
    with pytest.raises(TypeError, match="^`genfromtxt` expected no `names`, found `True`\nhint: .*`skip_header=1`"):
        ol.genfromtxt(["a b", "1 2"], names=True)
    with pytest.raises(TypeError, match="^`loadtxt` expected no `quotechar`, found `'`\nhint: .*`csv`"):
        ol.loadtxt(["1 2"], quotechar="'")
    assert ol.genfromtxt(["1 2"], names=None, autostrip=True, usemask=False).tolist() == [1, 2]
