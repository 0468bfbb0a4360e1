"""Operands of the functions for neural networks."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING

from .._arguments import arrays_of
from .._kinds import FLOATS, expect_real
from .._oarlock import Tensor, _numbers, asarray, float32, result_type

if TYPE_CHECKING:
    from .._typing import ArrayLike

    Sizes = int | Sequence[int]


def floats(*operands: ArrayLike) -> tuple[Tensor, ...]:
    """The operands as arrays of fractions. Whole numbers get the dtype of the fractions beside them, or else `float32`."""
    made = [expect_real(each) for each in arrays_of(*operands)]
    dtypes = [each.dtype for each in made if each.dtype in FLOATS]
    dtype = result_type(*dtypes) if dtypes else float32
    return tuple(each if each.dtype in FLOATS else _numbers(each).astype(dtype) for each in made)


def one_of_floats(input: ArrayLike) -> Tensor:
    """One operand as an array of fractions."""
    return floats(input)[0]


def beside(x: Tensor, other: ArrayLike | None) -> Tensor | None:
    """An optional operand on the device and, if it has whole numbers, in the dtype of another."""
    return None if other is None else floats(x, other)[1]


def put(input: ArrayLike, made: Tensor, inplace: bool) -> Tensor:
    """The result, or with `inplace` the input itself, which then has its elements."""
    if not inplace:
        return made
    if not isinstance(input, Tensor):
        raise TypeError(f"expected an array to write to, found {type(input).__name__}\nhint: leave `inplace` out")
    input[...] = made
    return input


def per_axis(name: str, given: Sizes, rank: int, least: int) -> list[int]:
    """A number for each of the last `rank` axes, from one for all or one for each."""
    try:
        numbers = [index(each) for each in given] if isinstance(given, Sequence) else [index(given)]
    except TypeError:
        raise TypeError(f"expected a whole number, or {rank} of them, for `{name}`, found {given!r}") from None
    if len(numbers) == 1:
        numbers *= rank
    if len(numbers) != rank:
        raise ValueError(f"expected a number for each of {rank} axes for `{name}`, found {list(numbers)}")
    if min(numbers) < least:
        raise ValueError(f"expected numbers of at least {least} for `{name}`, found {min(numbers)}")
    return numbers


def batched(input: Tensor, rank: int) -> Tensor:
    """The array with an axis for the batch and one for the channels, before `rank` others. That of the batch may be missing."""
    if input.ndim not in (rank + 1, rank + 2):
        axes = f"channels and {rank} more" if rank > 1 else "channels and one more"
        raise ValueError(f"expected axes for the batch, which may be missing, the {axes}, found the shape {input.shape}")
    return input[None] if input.ndim == rank + 1 else input


def of_batch(made: Tensor, input: Tensor) -> Tensor:
    """The result without the axis of the batch if the input has none."""
    return made[0] if made.ndim == input.ndim + 1 else made


def sizes_on_host(sizes: Sequence[int]) -> Tensor:
    """Sizes as an operand of an op, which reads them on the host."""
    return asarray(list(sizes), dtype="int64", device="cpu")
