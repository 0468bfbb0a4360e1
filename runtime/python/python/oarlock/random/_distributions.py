"""The distributions of a generator, under the names that NumPy's generator has."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import _oarlock
from .._arguments import in_own_name, whole_number
from .._linear import matrix_transpose
from .._manipulation import concat, expand_dims, moveaxis
from .._oarlock import DType, Tensor, _axis, asarray, matmul, reshape
from .._search import argsort, searchsorted, take, take_along_axis, where
from .._statistics import all as all_of
from .._statistics import any as any_of
from .._statistics import cumulative_sum
from .._statistics import sum as sum_of

if TYPE_CHECKING:
    from collections.abc import MutableSequence, Sequence

    from .._typing import DeviceLike, DtypeLike

    Size = int | Sequence[int] | None

FLOATS = (_oarlock.float32, _oarlock.float64)

FEW_OF_MANY = 16
"""If there are this many times more numbers than are chosen, not all are put in order."""


class Distributions:
    """Methods that need nothing but `_drawn`, which makes numbers of the distributions that the op has."""

    if TYPE_CHECKING:

        def _drawn(
            self,
            distribution: str,
            size: Size,
            parameters: Sequence[Any] = (),
            dtype: DtypeLike | None = None,
            parameter_dtype: DtypeLike = _oarlock.float64,
            device: DeviceLike | None = None,
        ) -> Tensor: ...
        def _placed(self, made: Tensor, device: DeviceLike | None) -> Tensor: ...
        @staticmethod
        def _shape(size: Size, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]: ...

    @in_own_name
    def random(self, size: Size = None, dtype: DtypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
        """Numbers from 0 up to but not including 1.

        >>> ol.random.default_rng(7).random(3).shape
        (3,)
        """
        return self._drawn("uniform", size, (), floats(dtype), device=device)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers from `low` up to but not including `high`, all equally likely.

        >>> ol.random.default_rng(7).uniform(-1, 1, size=3).shape
        (3,)
        """
        dtype = floats(dtype)
        width = asarray(number(high) - number(low), dtype=_oarlock.float64).astype(dtype, copy=False)
        if not bool(all_of(_oarlock.isfinite(width))):
            raise OverflowError(f"expected a range whose width {dtype} has, found {low} to {high}\nhint: use `dtype=\"float64\"`")
        return self._drawn("uniform", size, (low, high), dtype)

    @in_own_name
    def standard_normal(self, size: Size = None, dtype: DtypeLike | None = None, *, device: DeviceLike | None = None) -> Tensor:
        """Numbers of the normal distribution around 0 with deviation 1.

        >>> ol.random.default_rng(7).standard_normal((2, 3)).shape
        (2, 3)
        """
        return self._drawn("normal", size, (), floats(dtype), device=device)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of the normal distribution around `loc` with the deviation `scale`.

        >>> ol.random.default_rng(7).normal(10.0, 2.0, size=3).shape
        (3,)
        """
        return self._drawn("normal", size, (loc, at_least(0, "scale", scale)), floats(dtype))

    @in_own_name
    def standard_exponential(self, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of the exponential distribution with mean 1.

        >>> ol.random.default_rng(7).standard_exponential(3).shape
        (3,)
        """
        return self._drawn("exponential", size, (), floats(dtype))

    def exponential(self, scale: Any = 1.0, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of the exponential distribution with the mean `scale`.

        >>> ol.random.default_rng(7).exponential(2.0, size=3).shape
        (3,)
        """
        return self._drawn("exponential", size, (at_least(0, "scale", scale),), floats(dtype))

    def integers(
        self, low: Any, high: Any = None, size: Size = None, dtype: DtypeLike = _oarlock.int64, endpoint: bool = False
    ) -> Tensor:
        """Integers from `low` up to but not including `high`, or including it (`endpoint=True`); from 0 on if only one is given.

        >>> ol.random.default_rng(7).integers(0, 10, size=5).tolist()
        [5, 4, 0, 7, 2]
        """
        if high is None:
            low, high = 0, low
        wanted = _oarlock._dtype(dtype)
        wide = _oarlock.uint64 if wanted is _oarlock.uint64 else _oarlock.int64
        if not isinstance(high, int):
            high = asarray(high, dtype=wide, device="cpu")
        if not isinstance(low, int):
            low = asarray(low, dtype=wide, device="cpu")
        last = high if endpoint else high - 1
        is_empty = low > last
        if bool(any_of(is_empty) if isinstance(is_empty, Tensor) else is_empty):
            raise ValueError(f"expected `low` below `high`, found {low} and {high}")
        return self._drawn("integers", size, (low, last), wide, wide).astype(wanted, copy=False)

    def bytes(self, length: int) -> bytes:
        """Random bytes.

        >>> len(ol.random.default_rng(7).bytes(5))
        5
        """
        return self._drawn("bits", (length + 3) // 4, (), _oarlock.uint32, device="cpu").numpy().tobytes()[:length]

    def bernoulli(self, p: Any = 0.5, size: Size = None) -> Tensor:
        """Truth values that are true with the probability `p`.

        >>> ol.random.default_rng(7).bernoulli(0.5, size=3).dtype
        oarlock.bool
        """
        p = asarray(between(0, 1, "p", p), dtype=_oarlock.float64, device="cpu")
        shape = self._shape(size, [p.shape])
        return self._placed(self._drawn("uniform", shape, (), _oarlock.float64, device="cpu") < p, None)

    @in_own_name
    def standard_gamma(self, shape: Any, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of the gamma distribution with this shape and scale 1.

        >>> ol.random.default_rng(7).standard_gamma(2.0, size=3).shape
        (3,)
        """
        return self._drawn("gamma", size, (at_least(0, "shape", shape),), floats(dtype))

    def gamma(self, shape: Any, scale: Any = 1.0, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of the gamma distribution.

        >>> ol.random.default_rng(7).gamma(2.0, 3.0, size=3).shape
        (3,)
        """
        return self._drawn("gamma", size, (at_least(0, "shape", shape), at_least(0, "scale", scale)), floats(dtype))

    def poisson(self, lam: Any = 1.0, size: Size = None) -> Tensor:
        """Numbers of events of which `lam` are expected.

        >>> ol.random.default_rng(7).poisson(4.0, size=5).tolist()
        [8, 5, 6, 3, 3]
        """
        return self._drawn("poisson", size, (between(0, 2.0**62, "lam", lam),), _oarlock.int64)

    def binomial(self, n: Any, p: Any, size: Size = None) -> Tensor:
        """How many of `n` trials succeed, each with the probability `p`.

        >>> ol.random.default_rng(7).binomial(10, 0.5, size=5).tolist()
        [9, 7, 6, 5, 7]
        """
        return self._drawn("binomial", size, (between(0, 2.0**53, "n", n), between(0, 1, "p", p)), _oarlock.int64)

    def chisquare(self, df: Any, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Sums of the squares of `df` normal numbers.

        >>> ol.random.default_rng(7).chisquare(2, size=3).shape
        (3,)
        """
        return self._drawn("gamma", size, (number(at_least(0, "df", df)) / 2, 2.0), floats(dtype))

    def beta(self, a: Any, b: Any, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of the beta distribution.

        >>> ol.random.default_rng(7).beta(2.0, 3.0, size=3).shape
        (3,)
        """
        size = self._size(size, a, b)
        first = self._drawn("gamma", size, (at_least(0, "a", a),), _oarlock.float64)
        second = self._drawn("gamma", size, (at_least(0, "b", b),), _oarlock.float64)
        return (first / (first + second)).astype(floats(dtype), copy=False)

    def f(self, dfnum: Any, dfden: Any, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Quotients of two chi-square numbers, each divided by its degrees of freedom.

        >>> ol.random.default_rng(7).f(2, 3, size=3).shape
        (3,)
        """
        size = self._size(size, dfnum, dfden)
        above = self.chisquare(dfnum, size, _oarlock.float64) / number(dfnum)
        below = self.chisquare(dfden, size, _oarlock.float64) / number(dfden)
        return (above / below).astype(floats(dtype), copy=False)

    def standard_t(self, df: Any, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of Student's distribution with `df` degrees of freedom.

        >>> ol.random.default_rng(7).standard_t(5, size=3).shape
        (3,)
        """
        size = self._size(size, df)
        normal = self.standard_normal(size, _oarlock.float64)
        spread = self.chisquare(df, size, _oarlock.float64) / number(df)
        return (normal / _oarlock.sqrt(spread)).astype(floats(dtype), copy=False)

    def standard_cauchy(self, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Quotients of two normal numbers.

        >>> ol.random.default_rng(7).standard_cauchy(3).shape
        (3,)
        """
        return self.standard_normal(size, dtype) / self.standard_normal(size, dtype)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers whose logarithm is normally distributed.

        >>> ol.random.default_rng(7).lognormal(size=3).shape
        (3,)
        """
        return _oarlock.exp(self.normal(mean, at_least(0, "sigma", sigma), size, dtype))

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of the Laplace distribution: differences of two exponential ones.

        >>> ol.random.default_rng(7).laplace(size=3).shape
        (3,)
        """
        size = self._size(size, loc, scale)
        spread = self.standard_exponential(size, dtype) - self.standard_exponential(size, dtype)
        return self._scaled(spread, loc, at_least(0, "scale", scale))

    def logistic(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of the logistic distribution: logarithms of quotients of two exponential ones.

        >>> ol.random.default_rng(7).logistic(size=3).shape
        (3,)
        """
        size = self._size(size, loc, scale)
        spread = _oarlock.log(self.standard_exponential(size, dtype) / self.standard_exponential(size, dtype))
        return self._scaled(spread, loc, at_least(0, "scale", scale))

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of the Gumbel distribution, which the greatest of many numbers has.

        >>> ol.random.default_rng(7).gumbel(size=3).shape
        (3,)
        """
        size = self._size(size, loc, scale)
        return self._scaled(-_oarlock.log(self.standard_exponential(size, dtype)), loc, at_least(0, "scale", scale))

    def rayleigh(self, scale: Any = 1.0, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Lengths of vectors of two normal numbers.

        >>> ol.random.default_rng(7).rayleigh(2.0, size=3).shape
        (3,)
        """
        size = self._size(size, scale)
        length = _oarlock.sqrt(2 * self.standard_exponential(size, dtype))
        return self._scaled(length, 0.0, at_least(0, "scale", scale))

    def weibull(self, a: Any, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of the Weibull distribution of shape `a` and scale 1.

        >>> ol.random.default_rng(7).weibull(2.0, size=3).shape
        (3,)
        """
        exponential = self.standard_exponential(self._size(size, a), dtype)
        return exponential ** self._fitting(exponential, 1 / number(above(0, "a", a)))

    def pareto(self, a: Any, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of the Pareto distribution of shape `a`, moved to begin at 0.

        >>> ol.random.default_rng(7).pareto(3.0, size=3).shape
        (3,)
        """
        exponential = self.standard_exponential(self._size(size, a), dtype)
        return _oarlock.expm1(exponential / self._fitting(exponential, above(0, "a", a)))

    def power(self, a: Any, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers from 0 to 1 whose density grows with the power `a - 1`.

        >>> ol.random.default_rng(7).power(3.0, size=3).shape
        (3,)
        """
        exponential = self.standard_exponential(self._size(size, a), dtype)
        return _oarlock.exp(-exponential / self._fitting(exponential, above(0, "a", a)))

    def geometric(self, p: Any, size: Size = None) -> Tensor:
        """How many trials it takes to succeed, each with the probability `p`.

        >>> ol.random.default_rng(7).geometric(0.5, size=3).shape
        (3,)
        """
        size = self._size(size, p)
        chance = asarray(number(between(0, 1, "p", above(0, "p", p))), dtype=_oarlock.float64)
        # Of a chance of 1, the quotient is 0, and the first trial succeeds.
        trials = _oarlock.ceil(self.standard_exponential(size, _oarlock.float64) / -_oarlock.log1p(-chance))
        return _oarlock.minimum(_oarlock.maximum(trials, 1.0), 2.0**62).astype(_oarlock.int64)

    def negative_binomial(self, n: Any, p: Any, size: Size = None) -> Tensor:
        """How many trials fail before `n` succeed, each with the probability `p`.

        >>> ol.random.default_rng(7).negative_binomial(3, 0.5, size=3).shape
        (3,)
        """
        size = self._size(size, n, p)
        chance = number(between(0, 1, "p", above(0, "p", p)))
        mean = self.gamma(above(0, "n", n), (1 - chance) / chance, size, _oarlock.float64)
        return self.poisson(mean, size)

    def triangular(self, left: Any, mode: Any, right: Any, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers from `left` to `right` whose density rises up to `mode` and falls behind it.

        >>> ol.random.default_rng(7).triangular(0.0, 1.0, 2.0, size=3).shape
        (3,)
        """
        size = self._size(size, left, mode, right)
        start, middle, end = (asarray(number(each), dtype=_oarlock.float64) for each in (left, mode, right))
        if bool(any_of((start > middle) | (middle > end) | (start == end))):
            raise ValueError(f"expected `left` <= `mode` <= `right` with `left` < `right`, found {left}, {mode} and {right}")
        uniform = self.random(size, _oarlock.float64)
        width = end - start
        rising = start + _oarlock.sqrt(uniform * width * (middle - start))
        falling = end - _oarlock.sqrt((1 - uniform) * width * (end - middle))
        return where(uniform * width < middle - start, rising, falling).astype(floats(dtype), copy=False)

    def wald(self, mean: Any, scale: Any, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Numbers of the Wald, or inverse Gaussian, distribution.

        >>> ol.random.default_rng(7).wald(1.0, 2.0, size=3).shape
        (3,)
        """
        size = self._size(size, mean, scale)
        mu = asarray(number(above(0, "mean", mean)), dtype=_oarlock.float64)
        twice = 2 * asarray(number(above(0, "scale", scale)), dtype=_oarlock.float64)
        square = mu / twice * self.standard_normal(size, _oarlock.float64) ** 2
        # The smaller root of a quadratic equation, without the difference in which its digits would cancel.
        root = mu / (1 + square + _oarlock.sqrt(square * (2 + square)))
        is_root = self.random(size, _oarlock.float64) <= mu / (mu + root)
        return where(is_root, root, mu * mu / root).astype(floats(dtype), copy=False)

    def dirichlet(self, alpha: Any, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Shares of a whole, in a last dimension of as many as `alpha` has.

        >>> ol.random.default_rng(7).dirichlet([1.0, 1.0, 1.0]).shape
        (3,)
        """
        weights = asarray(above(0, "alpha", alpha), dtype=_oarlock.float64)
        if weights.ndim != 1:
            raise ValueError(f"expected `alpha` to have one dimension, found {weights.ndim}")
        parts = self.standard_gamma(weights, (*self._shape(size, []), weights.size), _oarlock.float64)
        return (parts / sum_of(parts, axis=-1, keepdims=True)).astype(floats(dtype), copy=False)

    def multinomial(self, n: int, pvals: Any, size: Size = None) -> Tensor:
        """How many of `n` trials have each of the outcomes, in a last dimension of as many as `pvals` has.

        >>> ol.random.default_rng(7).multinomial(10, [0.5, 0.5]).sum().item()
        10
        """
        chances = [float(chance) for chance in asarray(between(0, 1, "pvals", pvals), dtype=_oarlock.float64).tolist()]
        if not math.isclose(sum(chances), 1, abs_tol=1e-6):
            raise ValueError(f"expected probabilities with the sum 1, found {sum(chances)}")
        left, rest = _oarlock.full(self._shape(size, []), float(n), dtype=_oarlock.float64), 1.0
        counts: list[Tensor] = []
        for chance in chances[:-1]:
            # The chance among the outcomes that are left.
            taken = self.binomial(left, min(1.0, chance / rest) if rest > 0 else 0.0)
            counts.append(taken)
            left, rest = left - taken.astype(_oarlock.float64), rest - chance
        counts.append(left.astype(_oarlock.int64))
        return concat([expand_dims(each, -1) for each in counts], axis=-1)

    @in_own_name
    def multivariate_normal(self, mean: Any, cov: Any, size: Size = None, dtype: DtypeLike | None = None) -> Tensor:
        """Normally distributed vectors, in a last dimension, around `mean` with the covariances `cov`.

        >>> ol.random.default_rng(7).multivariate_normal([0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], size=3).shape
        (3, 2)
        """
        from ..linalg import eigh

        middle, spread = (asarray(given, dtype=_oarlock.float64) for given in (mean, cov))
        if middle.ndim != 1 or spread.shape != (middle.size, middle.size):
            raise ValueError(f"expected a vector and a square matrix of its size, found the shapes {middle.shape} and {spread.shape}")
        values, vectors = eigh(spread)
        if bool(any_of(values < -1e-8 * _oarlock.abs(values[-1]))):
            raise ValueError("expected covariances of no negative eigenvalue, found one\nhint: is the matrix symmetric?")
        root = vectors * _oarlock.sqrt(_oarlock.maximum(values, 0.0))
        normal = self.standard_normal((*self._shape(size, []), middle.size), _oarlock.float64)
        return (middle + matmul(normal, matrix_transpose(root))).astype(floats(dtype), copy=False)

    def permutation(self, x: Any, axis: int = 0) -> Tensor:
        """The slices of an array in random order, or the numbers below a number.

        >>> ol.sort(ol.random.default_rng(7).permutation(5)).tolist()
        [0, 1, 2, 3, 4]
        """
        count = whole_number(x)
        if count is not None:
            return self._placed(self._order(count), None)
        given = asarray(x)
        at = _axis(axis, given.ndim)
        return take(given, self._order(given.shape[at]).to_device(given.device), axis=at)

    def shuffle(self, x: Tensor | MutableSequence[Any], axis: int = 0) -> None:
        """Brings the slices of an array, or the items of a list, into random order, in place.

        >>> cards = [1, 2, 3]
        >>> ol.random.default_rng(7).shuffle(cards)
        >>> sorted(cards)
        [1, 2, 3]
        """
        if isinstance(x, Tensor):
            x[...] = self.permutation(x, axis)
            return
        if not hasattr(x, "__setitem__"):
            raise TypeError(f"expected an array or a list that can be changed, found {type(x).__name__}")
        items = list(x)
        for place, item in zip(range(len(items)), self._order(len(items)).tolist(), strict=True):
            x[place] = items[item]

    @in_own_name
    def permuted(self, x: Any, axis: int | None = None) -> Tensor:
        """The elements in random order: all of them, or along an axis, each line on its own.

        >>> ol.random.default_rng(7).permuted([[1, 2], [3, 4]], axis=1).sum(1).tolist()
        [3, 7]
        """
        given = asarray(x)
        if axis is None:
            return reshape(self.permutation(reshape(given, (-1,))), given.shape)
        last = moveaxis(given, axis, -1)
        order = argsort(self._drawn("bits", last.shape, (), _oarlock.uint64, device=given.device))
        return moveaxis(take_along_axis(last, order), -1, axis)

    @in_own_name
    def choice(self, a: Any, size: Size = None, replace: bool = True, p: Any = None, axis: int = 0) -> Tensor:
        """Slices of an array, or numbers below a number: each time any, or each only once (`replace=False`), all equally likely or with
        the probabilities `p`.

        >>> ol.random.default_rng(7).choice(5, size=3, replace=False).shape
        (3,)
        """
        given: Tensor | None = None
        available = whole_number(a)
        if available is None:
            given = asarray(a)
            available = given.shape[_axis(axis, given.ndim)]
        shape = self._shape(size, [])
        count = math.prod(shape)
        if available == 0 and count:
            raise ValueError("expected something to choose from, found nothing")
        if p is not None:
            places = self._weighted(available, shape, replace, p)
        elif replace:
            places = self._drawn("integers", shape, (0, max(available - 1, 0)), _oarlock.int64, _oarlock.int64, "cpu")
        else:
            if count > available:
                raise ValueError(f"expected at most {available} to be chosen without replacement, found {count}")
            places = reshape(self._distinct(available, count), shape)
        if given is None:
            return self._placed(places, None)
        return take(given, places.to_device(given.device), axis=axis)

    def _weighted(self, available: int, shape: tuple[int, ...], replace: bool, p: Any) -> Tensor:
        """Places that are chosen with probabilities."""
        chances = asarray(between(0, 1, "p", p), dtype=_oarlock.float64, device="cpu")
        total = float(sum_of(chances)) if chances.size else 0.0
        if chances.shape != (available,) or not math.isclose(total, 1, abs_tol=1e-6):
            raise ValueError(f"expected {available} probabilities with the sum 1, found the shape {chances.shape} with {total}")
        if replace:
            ends = cumulative_sum(chances)
            return searchsorted(ends / ends[-1], self._drawn("uniform", shape, (), _oarlock.float64, device="cpu"), side="right")
        count, possible = math.prod(shape), int(sum_of((chances > 0).astype(_oarlock.int64)))
        if count > possible:
            raise ValueError(f"expected at most {possible} to be chosen, as many as have a probability, found {count}")
        # The first of several exponential numbers divided by their weights is each one with its probability.
        times = self._drawn("exponential", (available,), (), _oarlock.float64, device="cpu") / chances
        return reshape(argsort(times)[:count], shape)

    def _distinct(self, available: int, count: int) -> Tensor:
        """Different numbers below a number, in random order."""
        if count * FEW_OF_MANY >= available:
            return self._order(available)[:count]
        # Floyd's way, whose work grows with the numbers that are chosen: each is any up to a bound, or the bound if it was chosen before.
        bounds = range(available - count, available)
        ends = asarray(list(bounds), dtype=_oarlock.int64, device="cpu")
        drawn = self._drawn("integers", (count,), (0, ends), _oarlock.int64, _oarlock.int64, "cpu").tolist()
        chosen: dict[int, None] = {}
        for bound, place in zip(bounds, drawn, strict=True):
            chosen[bound if place in chosen else place] = None
        return take(asarray(list(chosen), dtype=_oarlock.int64, device="cpu"), self._order(count))

    def _order(self, count: int) -> Tensor:
        """The numbers below a number in random order."""
        return self._drawn("permutation", (count,), (), _oarlock.int64, device="cpu")

    def _size(self, size: Size, *parameters: Any) -> tuple[int, ...]:
        """The size that numbers have which are drawn in several steps."""
        return self._shape(size, [asarray(number(each)).shape for each in parameters])

    def _fitting(self, made: Tensor, parameter: Any) -> float | Tensor:
        """A parameter beside numbers: a plain number, or an array of their dtype."""
        given = number(parameter)
        return given if isinstance(given, float) else asarray(given, dtype=made.dtype, device=made.device)

    def _scaled(self, made: Tensor, loc: Any, scale: Any) -> Tensor:
        """Numbers that were made around 0, around `loc` and wider by `scale`."""
        return made * self._fitting(made, scale) + self._fitting(made, loc)


def floats(dtype: DtypeLike | None) -> DType:
    """The dtype of random floats; float32 if none is given."""
    if dtype is None:
        return _oarlock.float32
    found = _oarlock._dtype(dtype)
    if found not in FLOATS:
        raise TypeError(f"expected float32 or float64 for random numbers, found {found}\nhint: convert them with `astype`")
    return found


def number(given: Any) -> float | Tensor:
    """A parameter as a plain number, or as an array of float64."""
    if isinstance(given, (int, float)):
        return float(given)
    return asarray(given, dtype=_oarlock.float64)


def between(low: float, high: float, name: str, given: Any) -> Any:
    """The parameter; an error if any of it is outside these bounds."""
    found = number(given)
    is_outside = ~((found >= low) & (found <= high)) if isinstance(found, Tensor) else not low <= found <= high
    if bool(any_of(is_outside) if isinstance(is_outside, Tensor) else is_outside):
        raise ValueError(f"expected `{name}` from {low} to {high}, found {given}")
    return given


def at_least(low: float, name: str, given: Any) -> Any:
    """The parameter; an error if any of it is below the bound or no number."""
    return between(low, math.inf, name, given)


def above(low: float, name: str, given: Any) -> Any:
    """The parameter; an error unless all of it is above the bound."""
    found = number(given)
    is_outside = ~(found > low) if isinstance(found, Tensor) else not found > low
    if bool(any_of(is_outside) if isinstance(is_outside, Tensor) else is_outside):
        raise ValueError(f"expected `{name}` above {low}, found {given}")
    return given
