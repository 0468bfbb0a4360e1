"""Seeds: numbers, or lists of them, as the key of a generator."""

from __future__ import annotations

import os
from collections.abc import Sequence
from operator import index
from typing import TypeAlias

Seed: TypeAlias = int | Sequence[int] | None

WORD = 2**64


def key_of(seed: Seed) -> int:
    """The key for a seed; without one, a key from the operating system."""
    if seed is None:
        return int.from_bytes(os.urandom(8), "little")
    key = 0
    for number in words_of(seed):
        key = mixed(key ^ number)
    return key


def words_of(seed: int | Sequence[int]) -> list[int]:
    """The 64-bit words of a seed. Lists of different lengths have different ones."""
    if isinstance(seed, (list, tuple)):
        parts = [words_of(part) for part in seed]
        return [len(parts), *(word for part in parts for word in part)]
    try:
        number = index(seed)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"expected a whole number, a list of them or None as a seed, found {type(seed).__name__}\nhint: round it with `int(…)`"
        ) from None
    if number < 0:
        raise ValueError(f"expected a seed of at least 0, found {number}")
    words = [number % WORD]
    while number := number // WORD:
        words.append(number % WORD)
    return words


def mixed(number: int) -> int:
    """SplitMix64: a permutation of the 64-bit numbers in which each bit depends on all."""
    number = (number + 0x9E3779B97F4A7C15) % WORD
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % WORD
    number = (number ^ number >> 27) * 0x94D049BB133111EB % WORD
    return number ^ number >> 31
