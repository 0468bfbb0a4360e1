"""Functions with random numbers, which are those of `oarlock.random`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import random
from .._arguments import in_own_name
from .._manipulation import moveaxis
from .._oarlock import Tensor, _axis
from .._search import argmax, where
from ._linear import one_hot
from ._operands import one_of_floats, put
from ._softmax import softmax

if TYPE_CHECKING:
    from .._typing import ArrayLike

__all__: list[str] = ["dropout", "dropout1d", "dropout2d", "dropout3d", "gumbel_softmax"]


@in_own_name
def dropout(input: ArrayLike, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """The elements divided by `1 - p`, of which each is 0 with the probability `p`; without `training`, as they are.

    The random numbers are those of `oarlock.random`.
    """
    x = one_of_floats(input)
    return put(input, _with_zeros(x, x.shape, p, training), inplace)


@in_own_name
def dropout1d(input: ArrayLike, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """The same for whole channels, before one axis."""
    return _of_channels(1, input, p, training, inplace)


@in_own_name
def dropout2d(input: ArrayLike, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """The same for whole channels, before two axes."""
    return _of_channels(2, input, p, training, inplace)


@in_own_name
def dropout3d(input: ArrayLike, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """The same for whole channels, before three axes."""
    return _of_channels(3, input, p, training, inplace)


@in_own_name
def gumbel_softmax(logits: ArrayLike, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A random sample of a distribution over the places along an axis: the `softmax` of the logits with noise, divided by `tau`.

    With `hard`, it is 1 in one place and 0 elsewhere. `eps` has no effect, as in PyTorch.
    """
    x = one_of_floats(logits)
    noise = random.gumbel(size=x.shape).to(x.device).astype(x.dtype)
    made = softmax((x + noise) / tau, dim)
    if not hard:
        return made
    axis = _axis(dim, x.ndim)
    chosen = one_hot(argmax(made, axis), x.shape[axis])
    return moveaxis(chosen, -1, axis).astype(x.dtype)


def _of_channels(rank: int, input: ArrayLike, p: float, training: bool, inplace: bool) -> Tensor:
    """The elements, of which whole channels are 0."""
    x = one_of_floats(input)
    if x.ndim not in (rank + 1, rank + 2):
        raise ValueError(f"expected {rank + 1} or {rank + 2} axes, found the shape {x.shape}")
    return put(input, _with_zeros(x, (*x.shape[: x.ndim - rank], *[1] * rank), p, training), inplace)


def _with_zeros(x: Tensor, shape: tuple[int, ...], p: float, training: bool) -> Tensor:
    """The elements where a random array of a shape is at least `p`."""
    if not 0 <= p <= 1:
        raise ValueError(f"expected a probability from 0 to 1 for `p`, found {p}")
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0
    is_kept = (random.random(shape) >= p).to(x.device)
    return where(is_kept, x / (1 - p), 0)
