"""Functions that split arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._arguments import in_own_name, numbers_in, whole_number
from ._oarlock import Tensor, _axis, asarray

if TYPE_CHECKING:
    from ._typing import ArrayLike

__all__: list[str] = ["array_split", "chunk", "dsplit", "hsplit", "split", "vsplit"]


@in_own_name
def array_split(x: ArrayLike, indices_or_sections: ArrayLike, /, axis: int = 0) -> list[Tensor]:
    """Splits an array along an axis, at some indices or into a number of parts, of which the first may be longer by one.

    >>> [part.tolist() for part in ol.array_split([1, 2, 3], 2)]
    [[1, 2], [3]]
    """
    x = asarray(x)
    axis = _axis(axis, x.ndim)
    count = whole_number(indices_or_sections)
    if count is not None:
        if count < 1:
            raise ValueError(f"expected one part at least, found {count}")
        least, longer = divmod(x.shape[axis], count)
        ends = [at * least + min(at, longer) for at in range(1, count)]
    else:
        ends = list(asarray(indices_or_sections).tolist())
    return _parts_between(x, [0, *ends], [*ends, None], axis)


@in_own_name
def split(x: ArrayLike, indices_or_sections: ArrayLike, /, axis: int = 0) -> list[Tensor]:
    """Splits an array along an axis, at some indices or into a number of equal parts.

    >>> [part.tolist() for part in ol.split([1, 2, 3, 4], [1, 3])]
    [[1], [2, 3], [4]]
    """
    x = asarray(x)
    at = _axis(axis, x.ndim)
    count = whole_number(indices_or_sections)
    if count is not None and count > 0 and x.shape[at] % count:
        raise ValueError(
            f"expected a number of parts that divides {x.shape[at]}, found {count}\n"
            "hint: `array_split` makes parts of different sizes"
        )
    return array_split(x, indices_or_sections, at)


@in_own_name
def vsplit(x: ArrayLike, indices_or_sections: ArrayLike, /) -> list[Tensor]:
    """Splits an array along its first axis.

    >>> [part.tolist() for part in ol.vsplit([[1, 2], [3, 4]], 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return split(_with_axes(x, 2), indices_or_sections, 0)


@in_own_name
def hsplit(x: ArrayLike, indices_or_sections: ArrayLike, /) -> list[Tensor]:
    """Splits an array along its second axis, a vector along its only one.

    >>> [part.tolist() for part in ol.hsplit([[1, 2], [3, 4]], 2)]
    [[[1], [3]], [[2], [4]]]
    """
    x = _with_axes(x, 1)
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


@in_own_name
def dsplit(x: ArrayLike, indices_or_sections: ArrayLike, /) -> list[Tensor]:
    """Splits an array along its third axis.

    >>> [part.shape for part in ol.dsplit(ol.zeros((2, 2, 4)), 2)]
    [(2, 2, 2), (2, 2, 2)]
    """
    return split(_with_axes(x, 3), indices_or_sections, 2)


@in_own_name
def chunk(x: ArrayLike, chunks: int, /, axis: int = 0) -> tuple[Tensor, ...]:
    """Splits an array along an axis into at most so many parts of one size, of which the last may be smaller.

    >>> [part.tolist() for part in ol.chunk([1, 2, 3], 2)]
    [[1, 2], [3]]
    """
    x = asarray(x)
    if chunks < 1:
        raise ValueError(f"expected one part at least, found {chunks}")
    axis = _axis(axis, x.ndim)
    return parts_of_sizes(x, max(1, -(-x.shape[axis] // chunks)), axis)


def parts_of_sizes(x: Tensor, sizes: int | list[int] | tuple[int, ...], axis: int) -> tuple[Tensor, ...]:
    """Parts along an axis, all of one size but the last, or each of its own."""
    length, each = x.shape[axis], whole_number(sizes)
    if each is not None:
        if each < 1:
            raise ValueError(f"expected parts of one element at least, found {each}")
        starts = list(range(0, length, each)) or [0]
        return tuple(_parts_between(x, starts, [*starts[1:], None], axis))
    parts = numbers_in(sizes)
    if sum(parts) != length:
        raise ValueError(f"expected sizes that add up to {length}, found {list(parts)}")
    ends = [sum(parts[: at + 1]) for at in range(len(parts))]
    return tuple(_parts_between(x, [0, *ends[:-1]], [*ends], axis))


def _parts_between(x: Tensor, starts: list[int], ends: list[int | None], axis: int) -> list[Tensor]:
    front = (slice(None),) * axis
    return [x[(*front, slice(start, end))] for start, end in zip(starts, ends, strict=True)]


def _with_axes(x: ArrayLike, least: int) -> Tensor:
    made = asarray(x)
    if made.ndim < least:
        raise ValueError(f"expected an array of {least} dimensions at least, found the shape {made.shape}")
    return made
