"""Random numbers: the same ones on every device, whatever the number of threads.

>>> import oarlock as ol
>>> rng = ol.random.default_rng(7)
>>> rng.normal(size=(2, 3)).shape
(2, 3)

A generator has the methods of NumPy's `Generator`. The functions of this module use one generator for the whole program, which `seed`
sets at any time. `random`, `uniform`, `normal`, `exponential`, `integers`, `gamma`, `poisson` and `binomial` are the same to the last bit
everywhere; the others are computed from them by ops, which may round differently on another processor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _absent
from .._oarlock import Tensor
from ._generator import Generator, default_rng
from ._seed import Seed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._typing import DtypeLike

    Size = int | Sequence[int] | None

_shared = Generator()

__all__ = [
    "Generator",
    "bernoulli",
    "beta",
    "binomial",
    "bytes",
    "chisquare",
    "choice",
    "default_rng",
    "dirichlet",
    "exponential",
    "f",
    "gamma",
    "geometric",
    "get_state",
    "gumbel",
    "integers",
    "laplace",
    "logistic",
    "lognormal",
    "manual_seed",
    "multinomial",
    "multivariate_normal",
    "negative_binomial",
    "normal",
    "pareto",
    "permutation",
    "permuted",
    "poisson",
    "power",
    "rand",
    "randint",
    "randn",
    "random",
    "random_sample",
    "randperm",
    "rayleigh",
    "seed",
    "set_state",
    "shuffle",
    "standard_cauchy",
    "standard_exponential",
    "standard_gamma",
    "standard_normal",
    "standard_t",
    "triangular",
    "uniform",
    "wald",
    "weibull",
]


def seed(seed: Seed = None) -> None:
    """Starts the shared generator again: the numbers that follow are those of this seed.

    >>> ol.random.seed(7)
    >>> ol.random.integers(0, 10, size=3).tolist()
    [5, 4, 0]
    """
    _shared.seed(seed)


def manual_seed(seed: Seed) -> Generator:
    """Starts the shared generator again, as PyTorch's function of this name does, and returns it.

    >>> rng = ol.random.manual_seed(7)
    >>> rng.integers(0, 10, size=3).tolist()
    [5, 4, 0]
    """
    _shared.seed(seed)
    return _shared


def get_state() -> dict[str, int]:
    """What the next numbers of the shared generator depend on.

    >>> sorted(ol.random.get_state())
    ['children', 'key', 'offset']
    """
    return _shared.state


def set_state(state: dict[str, int]) -> None:
    """Brings the shared generator back to a state.

    >>> state = ol.random.get_state()
    >>> first = ol.random.rand(3)
    >>> ol.random.set_state(state)
    >>> ol.array_equal(ol.random.rand(3), first)
    True
    """
    _shared.state = state


def rand(*size: Any, dtype: DtypeLike | None = None) -> Tensor:
    """Numbers from 0 up to but not including 1; the sizes may be numbers or one shape.

    >>> ol.random.rand(2, 3).shape
    (2, 3)
    """
    return _shared.random(size_of(size), dtype)


def randn(*size: Any, dtype: DtypeLike | None = None) -> Tensor:
    """Numbers of the normal distribution; the sizes may be numbers or one shape.

    >>> ol.random.randn(2, 3).shape
    (2, 3)
    """
    return _shared.standard_normal(size_of(size), dtype)


def randint(low: Any, high: Any = None, size: Size = None, dtype: Any = int) -> Tensor:
    """Integers from `low` up to but not including `high`; from 0 on if only one is given.

    >>> ol.random.randint(0, 10, size=(2, 3)).shape
    (2, 3)
    """
    return _shared.integers(low, high, size, dtype)


def random_sample(size: Size = None) -> Tensor:
    """Numbers from 0 up to but not including 1.

    >>> ol.random.random_sample((2, 3)).shape
    (2, 3)
    """
    return _shared.random(size)


def randperm(n: int) -> Tensor:
    """The numbers below `n` in random order.

    >>> ol.sort(ol.random.randperm(5)).tolist()
    [0, 1, 2, 3, 4]
    """
    return _shared.permutation(n)


def size_of(sizes: tuple[Any, ...]) -> Any:
    """The shape that is given as numbers, as one shape, or not at all."""
    return sizes[0] if len(sizes) == 1 else sizes or None


bernoulli = _shared.bernoulli
beta = _shared.beta
binomial = _shared.binomial
bytes = _shared.bytes
chisquare = _shared.chisquare
choice = _shared.choice
dirichlet = _shared.dirichlet
exponential = _shared.exponential
f = _shared.f
gamma = _shared.gamma
geometric = _shared.geometric
gumbel = _shared.gumbel
integers = _shared.integers
laplace = _shared.laplace
logistic = _shared.logistic
lognormal = _shared.lognormal
multinomial = _shared.multinomial
multivariate_normal = _shared.multivariate_normal
negative_binomial = _shared.negative_binomial
normal = _shared.normal
pareto = _shared.pareto
permutation = _shared.permutation
permuted = _shared.permuted
poisson = _shared.poisson
power = _shared.power
random = _shared.random
rayleigh = _shared.rayleigh
shuffle = _shared.shuffle
standard_cauchy = _shared.standard_cauchy
standard_exponential = _shared.standard_exponential
standard_gamma = _shared.standard_gamma
standard_normal = _shared.standard_normal
standard_t = _shared.standard_t
triangular = _shared.triangular
uniform = _shared.uniform
wald = _shared.wald
weibull = _shared.weibull


def __dir__() -> list[str]:
    """The public names."""
    return __all__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Tells what to use in place of functions that are absent here."""
        raise _absent.function(name, "oarlock.random")
