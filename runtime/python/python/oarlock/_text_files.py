"""Arrays as text, with a line for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import TextIOBase
from itertools import islice
from os import PathLike, fsdecode
from typing import IO, TYPE_CHECKING, Any

from . import _oarlock
from ._arguments import in_own_name
from ._files import opened, write_to
from ._information import isdtype
from ._kinds import COMPLEX, expect_real
from ._oarlock import Tensor, asarray, float64, full, reshape, zeros

if TYPE_CHECKING:
    from ._typing import ArrayLike, DtypeLike

    Source = str | PathLike[str] | IO[Any] | Iterable[str | bytes]
    Converters = Mapping[int, Callable[[str], Any]] | Callable[[str], Any] | None

__all__: list[str] = ["genfromtxt", "loadtxt", "savetxt"]


@in_own_name
def savetxt(
    fname: str | PathLike[str] | IO[Any],
    X: ArrayLike,  # noqa: N803
    fmt: str | Sequence[str] = "%.18e",
    delimiter: str = " ",
    newline: str = "\n",
    header: str = "",
    footer: str = "",
    comments: str = "# ",
    encoding: str | None = None,
) -> None:
    """Writes an array of one or two axes as text: a line for each row, with the numbers in a format of Python's `%`.

    There may be a format for each column, or one for all of a line. Lines of the header and the footer begin with `comments`.
    """
    _expect_text(delimiter=delimiter, newline=newline, header=header, footer=footer, comments=comments)
    x = expect_real(asarray(X))
    if x.ndim not in (1, 2):
        raise ValueError(f"expected one or two axes, found the shape {x.shape}")
    rows: list[list[Any]] = (x[:, None] if x.ndim == 1 else x).tolist()
    line = _format_of_line(fmt, delimiter, x.shape[1] if x.ndim == 2 else 1)
    try:
        lines = [line % tuple(row) for row in rows]
    except (TypeError, ValueError) as error:
        raise TypeError(f"expected a format of Python's `%` that fits {x.dtype.name}, found {line!r}: {error}") from None
    around = [comments + each.replace("\n", f"\n{comments}") if each else None for each in (header, footer)]
    content = "".join(each + newline for each in [around[0], *lines, around[1]] if each is not None)
    if isinstance(fname, TextIOBase):
        fname.write(content)
    else:
        write_to(fname, "", lambda stream: stream.write(content.encode(encoding or "utf-8")))


@in_own_name
def loadtxt(
    fname: Source,
    dtype: DtypeLike = float64,
    comments: str | Sequence[str] | None = "#",
    delimiter: str | None = None,
    converters: Converters = None,
    skiprows: int = 0,
    usecols: int | Sequence[int] | None = None,
    unpack: bool = False,
    ndmin: int = 0,
    encoding: str | None = None,
    max_rows: int | None = None,
) -> Tensor:
    """Reads an array from text with a row on each line: from the path of a file, an object to read from, or lines.

    Numbers are `float64` unless `dtype` says otherwise, as in NumPy. Empty lines, and what follows `comments`, do not count.
    Fields are separated by white space, or by `delimiter`. With `unpack`, columns come first.
    """
    lines = _rows(fname, comments, delimiter, skiprows, encoding)
    kind = _kind(dtype)
    return _array_of(
        islice(lines, max_rows),
        lambda fields, at, number: _value(fields, at, number, kind, converters),
        (kind, usecols, unpack, ndmin),
    )


@in_own_name
def genfromtxt(
    fname: Source,
    dtype: DtypeLike = float64,
    comments: str | None = "#",
    delimiter: str | None = None,
    skip_header: int = 0,
    skip_footer: int = 0,
    converters: Converters = None,
    missing_values: str | Sequence[str] | None = None,
    filling_values: Any = None,
    usecols: int | Sequence[int] | None = None,
    *,
    unpack: bool = False,
    max_rows: int | None = None,
    encoding: str | None = None,
    ndmin: int = 0,
) -> Tensor:
    """Reads an array from text like `loadtxt`; what is missing or no number becomes `filling_values`.

    By default, this is NaN, or -1 for whole numbers. `missing_values` has no effect, as all that is no number is missing, and there
    are no names of columns.
    """
    if skip_footer and max_rows is not None:
        raise ValueError("expected one of `skip_footer` and `max_rows`, found both")
    kind = _kind(dtype)
    lines = list(_rows(fname, comments, delimiter, skip_header, encoding))
    lines = lines[: len(lines) - skip_footer] if skip_footer else lines[:max_rows]
    if filling_values is None:
        filling_values = "" if kind == _oarlock.str else False if kind == _oarlock.bool else float("nan")
        filling_values = -1 if isdtype(kind, "integral") else filling_values

    def value(fields: list[str], at: int, number: int) -> Any:
        try:
            return _value(fields, at, number, kind, converters)
        except ValueError:
            return filling_values

    return _array_of(lines, value, (kind, usecols, unpack, ndmin))


def _format_of_line(fmt: str | Sequence[str], delimiter: str, count: int) -> str:
    """The format of a line with so many columns."""
    if not isinstance(fmt, str):
        formats = list(fmt)
    elif fmt.replace("%%", "").count("%") == 1:
        formats = [fmt] * count
    else:
        return fmt
    if len(formats) != count:
        raise ValueError(f"expected a format for each of {count} columns, found {len(formats)}")
    return delimiter.join(formats)


def _rows(
    source: Source, comments: str | Sequence[str] | None, delimiter: str | None, skipped: int, encoding: str | None
) -> Iterator[tuple[int, list[str]]]:
    """The fields of each line that has any, with its number from 1 on."""
    if delimiter is not None:
        _expect_text(delimiter=delimiter)
    marks = [comments] if isinstance(comments, str) else list(comments or ())
    for number, line in enumerate(_lines(source, encoding), 1):
        if number <= skipped:
            continue
        text = line if isinstance(line, str) else _decoded(line, encoding)
        for mark in marks:
            text = text.partition(mark)[0] if mark else text
        text = text.rstrip("\r\n")
        fields = text.split(delimiter)
        if delimiter is None and fields or delimiter is not None and text.strip():
            yield number, [field.strip() for field in fields]


def _decoded(line: Any, encoding: str | None) -> str:
    """A line of bytes as text."""
    if not isinstance(line, (bytes, bytearray)):
        raise TypeError(f"expected lines of text, found {type(line).__name__}")
    return line.decode(encoding or "utf-8")


def _expect_text(**named: Any) -> None:
    """Refuses arguments that are no text."""
    for name, value in named.items():
        if not isinstance(value, str):
            raise TypeError(f"expected text for `{name}`, found {type(value).__name__}")


def _lines(source: Source, encoding: str | None) -> Iterator[str | bytes]:
    """The lines of a file or of a list."""
    if isinstance(source, (str, PathLike)):
        with opened(fsdecode(source), "r", encoding or "utf-8") as stream:
            yield from stream
    elif hasattr(source, "__iter__"):
        yield from source
    else:
        raise TypeError(f"expected the path of a file, an object to read from, or lines, found {type(source).__name__}")


def _value(fields: list[str], at: int, number: int, kind: _oarlock.DType, converters: Converters) -> Any:
    """The value of a field."""
    if not -len(fields) <= at < len(fields):
        raise IndexError(f"expected a column from 0 to {len(fields) - 1} in line {number}, found {at}")
    text = fields[at]
    converter = converters if callable(converters) else (converters or {}).get(at % len(fields))
    if converter is not None:
        return converter(text)
    try:
        return _parsed(text, kind)
    except ValueError:
        raise ValueError(f"expected {kind.name} in line {number}, column {at % len(fields) + 1}, found `{text}`") from None


def _parsed(text: str, kind: _oarlock.DType) -> Any:
    """A field as a value of Python."""
    if kind == _oarlock.str:
        return text
    if "_" in text:
        # Python's numbers may have them, but no other program writes them.
        raise ValueError(text)
    if kind in COMPLEX:
        return complex(text.replace("i", "j"))
    if kind == _oarlock.bool:
        return text == "True" or text != "False" and bool(int(text))
    return int(text) if isdtype(kind, "integral") else float(text)


def _kind(dtype: DtypeLike) -> _oarlock.DType:
    """The dtype that is meant. Of text, there are no zeros."""
    return _oarlock.str if dtype in (str, "str", _oarlock.str) else zeros((), dtype=dtype, device="cpu").dtype


def _none(kind: _oarlock.DType) -> Tensor:
    """No rows."""
    return full((0, 1), "", device="cpu") if kind == _oarlock.str else zeros((0, 1), dtype=kind, device="cpu")


def _array_of(
    lines: Iterable[tuple[int, list[str]]],
    value: Callable[[list[str], int, int], Any],
    wanted: tuple[_oarlock.DType, int | Sequence[int] | None, bool, int],
) -> Tensor:
    """The array of the values in lines, without axes of one element unless so many axes are wanted."""
    kind, usecols, unpack, ndmin = wanted
    if ndmin not in (0, 1, 2):
        raise ValueError(f"expected 0, 1 or 2 for `ndmin`, found {ndmin}")
    columns = None if usecols is None else [usecols] if isinstance(usecols, int) else list(usecols)
    rows: list[list[Any]] = []
    for number, fields in lines:
        chosen = range(len(fields)) if columns is None else columns
        if rows and len(chosen) != len(rows[0]):
            raise ValueError(f"expected {len(rows[0])} fields in each line, found {len(chosen)} in line {number}")
        rows.append([value(fields, at, number) for at in chosen])
    made = asarray(rows, dtype=kind, device="cpu") if rows else _none(kind)
    if ndmin < 2:
        kept = [size for size in made.shape if size != 1]
        made = reshape(made, kept if len(kept) >= ndmin else (1,))
    return made.T if unpack and made.ndim == 2 else made
