"""Sums of products over named axes."""

from __future__ import annotations

import math
import string
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from . import _oarlock
from ._arguments import arrays_of, in_own_name
from ._diagonal import diagonal
from ._manipulation import broadcast_to
from ._oarlock import Tensor, matmul, permute_dims, reshape, result_type
from ._statistics import sum

if TYPE_CHECKING:
    from ._typing import ArrayLike

__all__: list[str] = ["einsum"]


class Named(NamedTuple):
    """An array with a label for each axis."""

    array: Tensor
    labels: str


@in_own_name
def einsum(subscripts: str, /, *operands: ArrayLike) -> Tensor:
    """Sums products of elements over axes that are named by letters: `einsum("ij,jk->ik", a, b)` is `a @ b`.

    Axes of one letter belong together. Those that the result does not name are summed over; without an arrow, the result has
    the letters that occur once, in alphabetical order. An ellipsis stands for further axes, which are broadcast.

    >>> ol.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1]).tolist()
    [3, 7]
    """
    if not isinstance(subscripts, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"expected text such as `ij,jk->ik` first, found {type(subscripts).__name__}")
    arrays = arrays_of(*operands)
    inputs, output = _parsed(subscripts, arrays)
    dtype = result_type(*arrays)
    sizes: dict[str, int] = {}
    parts = [_without_repetition(x, labels) for x, labels in zip(arrays, inputs, strict=True)]
    for x, labels in parts:
        for label, size in zip(labels, x.shape, strict=True):
            if sizes.get(label, 1) != 1 and size not in (1, sizes[label]):
                raise ValueError(f"expected one size for `{label}` in `{subscripts}`, found {sizes[label]} and {size}")
            sizes[label] = size if sizes.get(label, 1) == 1 else sizes[label]
    # Truth values are counted, and a result is true if the count is not 0.
    number = _oarlock.int64 if dtype == _oarlock.bool else dtype
    parts = [
        Named(broadcast_to(x, tuple(sizes[label] for label in labels)).astype(number, copy=False), labels)
        for x, labels in parts
    ]
    while len(parts) > 1:
        first, second = _smallest_pair(parts, output, sizes)
        others = [part for at, part in enumerate(parts) if at not in (first, second)]
        parts = [*others, _product(parts[first], parts[second], _kept(others, output))]
    made = _summed(parts[0], set(output))
    return permute_dims(made.array, tuple(made.labels.index(label) for label in output)).astype(dtype, copy=False)


def _smallest_pair(parts: list[Named], output: str, sizes: dict[str, int]) -> tuple[int, int]:
    """The two arrays whose product is the smallest, so that those between the operands and the result stay small."""

    def size(pair: tuple[int, int]) -> int:
        kept = _kept([part for at, part in enumerate(parts) if at not in pair], output)
        labels = set(parts[pair[0]].labels + parts[pair[1]].labels)
        return math.prod(sizes[label] for label in labels if label in kept)

    return min(combinations(range(len(parts)), 2), key=size)


def _kept(others: list[Named], output: str) -> set[str]:
    """The labels that other arrays or the result need."""
    return set(output).union(*(part.labels for part in others))


def _parsed(subscripts: str, arrays: tuple[Tensor, ...]) -> tuple[list[str], str]:
    """The labels of each operand and of the result. Axes of an ellipsis get letters that nothing else has."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ValueError(f"expected as many arrays as terms in `{subscripts}`, {len(terms)}, found {len(arrays)}")
    free = [letter for letter in map(chr, range(0xC0, 0x17F)) if letter.isalpha()]
    ranks = [x.ndim - len(term.replace("...", "")) for term, x in zip(terms, arrays, strict=True) if "..." in term]
    hidden = "".join(free[: max(ranks, default=0)])
    inputs: list[str] = []
    for term, x in zip(terms, arrays, strict=True):
        letters = term.replace("...", "", 1)
        rank = x.ndim - len(letters)
        if not set(letters) <= set(string.ascii_letters) or rank < 0 or (rank and "..." not in term):
            raise ValueError(f"expected letters for the {x.ndim} axes of each array, found `{term}` in `{subscripts}`")
        inputs.append(term.replace("...", hidden[len(hidden) - rank :]))
    if not arrow:
        once = sorted(letter for letter in set(left) & set(string.ascii_letters) if left.count(letter) == 1)
        return inputs, hidden + "".join(once)
    output = right.replace("...", hidden, 1)
    named = set("".join(inputs))
    if len(set(output)) != len(output) or not set(output) <= named:
        raise ValueError(f"expected letters of operands, each once, for the result, found `{right}` in `{subscripts}`")
    return inputs, output


def _without_repetition(x: Tensor, labels: str) -> Named:
    """The diagonal of axes that have the same label."""
    for label in sorted(set(labels)):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ValueError(f"expected one size for `{label}`, found {x.shape[first]} and {x.shape[second]}")
            x = diagonal(x, 0, first, second)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return Named(x, labels)


def _summed(part: Named, kept: set[str]) -> Named:
    """The sums over all axes but those that are kept."""
    gone = tuple(at for at, label in enumerate(part.labels) if label not in kept)
    if not gone:
        return part
    return Named(sum(part.array, gone, dtype=part.array.dtype), "".join(label for label in part.labels if label in kept))


def _product(left: Named, right: Named, kept: set[str]) -> Named:
    """The product of two arrays, summed over common axes that are not kept."""
    left, right = _summed(left, kept | set(right.labels)), _summed(right, kept | set(left.labels))
    both = [label for label in left.labels if label in right.labels]
    stacked, common = [label for label in both if label in kept], [label for label in both if label not in kept]
    rows = [label for label in left.labels if label not in both]
    columns = [label for label in right.labels if label not in both]
    sizes = dict(zip(left.labels + right.labels, left.array.shape + right.array.shape, strict=True))

    def grouped(part: Named, *groups: list[str]) -> Tensor:
        order = [label for group in (stacked, *groups) for label in group]
        turned = permute_dims(part.array, tuple(part.labels.index(label) for label in order))
        merged = (math.prod(sizes[label] for label in group) for group in groups)
        return reshape(turned, (*(sizes[label] for label in stacked), *merged))

    if common:
        made = matmul(grouped(left, rows, common), grouped(right, common, columns))
    else:
        made = grouped(left, rows, []) * grouped(right, [], columns)
    labels = [*stacked, *rows, *columns]
    return Named(reshape(made, tuple(sizes[label] for label in labels)), "".join(labels))
