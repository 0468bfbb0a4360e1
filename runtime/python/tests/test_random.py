"""Random numbers: the distributions of NumPy's generator, and numbers that depend on nothing but the seed."""

import copy
import pickle
import threading

import numpy as np
import oarlock as ol
import pytest
from conftest import child

COUNT = 20_000

DISTRIBUTIONS = {
    "random": (),
    "uniform": (-2.0, 3.0),
    "standard_normal": (),
    "normal": (1.0, 2.0),
    "standard_exponential": (),
    "exponential": (0.5,),
    "integers": (-5, 200),
    "standard_gamma": (0.7,),
    "gamma": (3.0, 2.0),
    "poisson": (4.0,),
    "binomial": (30, 0.3),
    "chisquare": (3.0,),
    "beta": (0.5, 2.0),
    "f": (5.0, 9.0),
    "standard_t": (4.0,),
    "standard_cauchy": (),
    "lognormal": (0.3, 0.5),
    "laplace": (1.0, 2.0),
    "logistic": (-1.0, 0.5),
    "gumbel": (2.0, 0.5),
    "rayleigh": (2.0,),
    "weibull": (1.5,),
    "pareto": (3.0,),
    "power": (2.5,),
    "geometric": (0.2,),
    "negative_binomial": (4.0, 0.4),
    "triangular": (-1.0, 0.0, 3.0),
    "wald": (2.0, 3.0),
}


def farthest(found, expected):
    """The greatest distance of the shares below a number: Kolmogorov and Smirnov's measure of two samples."""
    found, expected = np.sort(found), np.sort(expected)
    places = np.concatenate([found, expected])
    below = [np.searchsorted(each, places, side="right") / len(each) for each in (found, expected)]
    return np.abs(below[0] - below[1]).max()


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_distribution_is_that_of_numpy(name):
    parameters = DISTRIBUTIONS[name]
    found = np.asarray(getattr(ol.random.default_rng(11), name)(*parameters, size=COUNT))
    expected = getattr(np.random.default_rng(5), name)(*parameters, size=COUNT)
    # Two samples of one distribution are farther apart in one of a million cases.
    assert farthest(found, expected) < 2.7 * np.sqrt(2 / COUNT)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_numbers_have_the_size_and_the_dtype_that_are_asked_for(name):
    parameters = DISTRIBUTIONS[name]
    rng = ol.random.default_rng(1)
    draw = getattr(rng, name)
    is_whole = draw(*parameters, size=3).dtype == ol.int64
    assert draw(*parameters).shape == () and draw(*parameters, size=()).shape == ()
    for size in [0, 3, (2, 0), (2, 3), [1, 2, 3], np.int64(4)]:
        made = draw(*parameters, size=size)
        assert made.shape == np.empty(size).shape and made.dtype == (ol.int64 if is_whole else ol.float32)
    if not is_whole:
        assert draw(*parameters, size=3, dtype="float64").dtype == ol.float64
        with pytest.raises(TypeError, match="expected float32 or float64 for random numbers, found int8\nhint: "):
            draw(*parameters, size=3, dtype=ol.int8)
    elif name == "integers":
        assert draw(0, 9, 3, np.uint8).dtype == ol.uint8


@pytest.mark.parametrize("name", [name for name, parameters in DISTRIBUTIONS.items() if parameters])
def test_parameters_may_be_arrays_that_repeat_to_the_size(name):
    parameters = DISTRIBUTIONS[name]
    rng = ol.random.default_rng(3)
    arrays = [np.full(4, parameter) for parameter in parameters]
    assert getattr(rng, name)(*arrays).shape == (4,)
    assert getattr(rng, name)(*arrays, size=(5, 4)).shape == (5, 4)
    column = [ol.asarray(arrays[0])[:, None], *arrays[1:]]
    assert getattr(rng, name)(*column).shape == ((4, 4) if len(column) > 1 else (4, 1))
    with pytest.raises(ValueError, match=r"that parameters of the shape \(4,\) repeat to, found 3"):
        getattr(rng, name)(*arrays, size=3)


def test_each_number_has_the_parameters_at_its_place():
    rng = ol.random.default_rng(3)
    means = np.arange(5) * 1000.0
    found = np.asarray(rng.normal(means, 1, size=(50, 5)))
    np.testing.assert_allclose(found, np.broadcast_to(means, (50, 5)), atol=6)
    np.testing.assert_array_equal(np.asarray(rng.integers([0, 10], [1, 11], size=(3, 2))), [[0, 10]] * 3)
    np.testing.assert_array_equal(np.asarray(rng.binomial([5, 9], [1.0, 0.0])), [5, 0])


def test_a_seed_gives_the_same_numbers_at_any_time_and_in_any_process():
    def numbers(rng):
        return [rng.random(3).tolist(), rng.normal(size=2).tolist(), rng.integers(0, 100, 4).tolist()]

    expected = numbers(ol.random.default_rng(42))
    ol.zeros(5)
    assert numbers(ol.random.default_rng(42)) == expected
    assert numbers(ol.random.default_rng(43)) != expected
    assert numbers(ol.random.default_rng([42])) != expected
    assert numbers(ol.random.default_rng([4, 2])) != numbers(ol.random.default_rng([42]))
    assert numbers(ol.random.default_rng(2**64 + 42)) != expected
    assert numbers(ol.random.default_rng()) != numbers(ol.random.default_rng())
    code = "import oarlock as ol; r = ol.random.default_rng(42); print([r.random(3).tolist(), r.normal(size=2).tolist(), r.integers(0, 100, 4).tolist()])"
    for threads in [1, 2]:
        assert child(code, OARLOCK_THREADS=threads).strip() == str(expected)


def test_the_numbers_of_a_seed_stay_what_they_are():
    # Programs keep seeds to get the same numbers again, so a change of these is a change of the public surface.
    rng = ol.random.default_rng(2026)
    assert rng.integers(0, 1000, 6).tolist() == SEEDED["integers"]
    assert rng.random(4, dtype=ol.float64).tolist() == SEEDED["random"]
    assert rng.normal(size=4, dtype=ol.float64).tolist() == SEEDED["normal"]
    assert rng.standard_normal(4).tolist() == SEEDED["narrow normal"]
    assert rng.poisson(20.0, 6).tolist() == SEEDED["poisson"]
    assert rng.binomial(100, 0.4, 6).tolist() == SEEDED["binomial"]
    assert rng.gamma(2.5, size=3, dtype=ol.float64).tolist() == SEEDED["gamma"]


SEEDED = {
    "integers": [243, 357, 914, 542, 760, 394],
    "random": [0.14212997871606248, 0.8296920991187587, 0.9435394124015866, 0.6439690122976439],
    "normal": [0.3261751887939788, 0.9852729903513924, 0.38831390480062783, 0.28970194839159324],
    "narrow normal": [0.7021061182022095, 1.631095290184021, -1.3527969121932983, 1.092079758644104],
    "poisson": [20, 12, 14, 16, 21, 14],
    "binomial": [40, 35, 43, 38, 49, 29],
    "gamma": [1.1467597535344805, 0.8533184165405104, 1.2429884835748521],
}


def test_many_numbers_begin_with_those_of_few():
    few, many = (ol.random.default_rng(9).normal(size=count).tolist() for count in (100, 100_000))
    assert many[:100] == few


def test_no_number_is_drawn_twice():
    rng = ol.random.default_rng(5)
    drawn = [rng.random(1000, dtype=ol.float64), rng.random(1000, dtype=ol.float64), *(rng.random(dtype=ol.float64) for _ in range(50))]
    numbers = np.concatenate([np.atleast_1d(np.asarray(each)) for each in drawn])
    assert len(np.unique(numbers)) == len(numbers)


def test_children_are_independent_and_follow_from_the_seed():
    children = ol.random.default_rng(8).spawn(3)
    numbers = [child.random(2000).tolist() for child in children]
    drawn = ol.random.default_rng(8)
    drawn.random(10)
    assert [child.random(2000).tolist() for child in drawn.spawn(2)] == numbers[:2]
    assert drawn.spawn(1)[0].random(2000).tolist() == numbers[2]
    correlations = np.corrcoef([*numbers, ol.random.default_rng(8).random(2000).tolist()])
    assert np.abs(correlations - np.eye(4)).max() < 0.1
    assert children[0].spawn(1)[0].random(5).tolist() != numbers[0][:5]


def test_a_state_can_be_kept_pickled_and_copied():
    rng = ol.random.default_rng(8)
    rng.random(7)
    kept, twins = rng.state, [copy.deepcopy(rng), pickle.loads(pickle.dumps(rng))]
    expected = rng.normal(size=3).tolist()
    assert all(twin.normal(size=3).tolist() == expected for twin in twins)
    rng.state = kept
    assert rng.normal(size=3).tolist() == expected
    with pytest.raises(ValueError, match="expected the state of a generator"):
        rng.state = {"key": 1}


def test_threads_share_a_generator_without_a_number_twice():
    rng, drawn = ol.random.default_rng(1), []
    work = lambda: drawn.extend(number for _ in range(50) for number in rng.random(10, dtype=ol.float64).tolist())  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == len(drawn) == 4000


def test_the_functions_of_the_module_share_a_generator_that_is_seeded_at_any_time():
    ol.ones(3)
    drawn = []
    for _ in range(2):
        ol.random.seed(5)
        drawn.append([ol.random.rand(2).tolist(), ol.random.randn(2, 2).tolist(), ol.random.randint(0, 9, (2,)).tolist(), ol.random.choice(5, 3).tolist()])
    assert drawn[0] == drawn[1]
    state = ol.random.get_state()
    first = ol.random.random(3).tolist()
    ol.random.set_state(state)
    assert ol.random.random(3).tolist() == first
    assert ol.random.manual_seed(5).random(2).tolist() == drawn[0][0]
    assert ol.random.rand().shape == () and ol.random.rand(2, 3).shape == ol.random.rand((2, 3)).shape == (2, 3)
    assert sorted(ol.random.randperm(5).tolist()) == list(range(5))


def test_permutations_hold_everything_once():
    rng = ol.random.default_rng(2)
    assert sorted(rng.permutation(100).tolist()) == list(range(100))
    table = ol.reshape(ol.arange(12), (4, 3))
    assert sorted(rng.permutation(table).tolist()) == table.tolist()
    assert sorted(map(tuple, rng.permutation(table, axis=1).T.tolist())) == sorted(map(tuple, table.T.tolist()))
    rows = rng.permuted(table, axis=1)
    assert [sorted(row) for row in rows.tolist()] == table.tolist() and rows.shape == (4, 3)
    assert sorted(ol.reshape(rng.permuted(table), (-1,)).tolist()) == list(range(12))
    shuffled, letters = ol.arange(50), list("abcdefghij")
    rng.shuffle(shuffled)
    rng.shuffle(letters)
    assert sorted(shuffled.tolist()) == list(range(50)) != shuffled.tolist()
    assert sorted(letters) == list("abcdefghij") != letters
    counts = np.zeros((4, 4), int)
    for _ in range(400):
        counts[np.arange(4), np.asarray(rng.permutation(4))] += 1
    assert counts.min() > 60


def test_choices_follow_their_probabilities():
    rng = ol.random.default_rng(2)
    assert set(rng.choice(["a", "b", "c"], 50).tolist()) == {"a", "b", "c"}
    found = np.bincount(np.asarray(rng.choice(3, COUNT, p=[0.2, 0.0, 0.8])), minlength=3) / COUNT
    np.testing.assert_allclose(found, [0.2, 0, 0.8], atol=0.015)
    assert sorted(rng.choice(10, 10, replace=False).tolist()) == list(range(10))
    assert len(set(rng.choice(1000, (10, 3), replace=False).numpy().ravel())) == 30
    assert sorted(rng.choice(4, 3, replace=False, p=[0.5, 0, 0.25, 0.25]).tolist()) == [0, 2, 3]
    firsts = [int(rng.choice(2, 1, replace=False, p=[0.9, 0.1])[0]) for _ in range(500)]
    assert 20 < sum(firsts) < 90
    table = ol.reshape(ol.arange(6), (2, 3))
    assert rng.choice(table, 4).shape == (4, 3) and rng.choice(table, (2, 2), axis=1).shape == (2, 2, 2)
    for wrong, told in [
        (lambda: rng.choice(3, 4, replace=False), "at most 3 to be chosen without replacement, found 4"),
        (lambda: rng.choice(0, 1), "something to choose from"),
        (lambda: rng.choice(2, 1, p=[0.5, 0.6]), "2 probabilities with the sum 1"),
        (lambda: rng.choice(2, 1, p=[1.0]), "2 probabilities with the sum 1"),
        (lambda: rng.choice(3, 2, replace=False, p=[1, 0, 0]), "at most 1 to be chosen"),
    ]:
        with pytest.raises(ValueError, match=told):
            wrong()


def test_few_of_very_many_are_chosen_at_once():
    rng = ol.random.default_rng(2)
    found = rng.choice(10**15, 1000, replace=False).tolist()
    assert len(set(found)) == 1000 and min(found) < 10**13 and max(found) > 99 * 10**13
    counts = np.zeros((20, 2), int)
    for _ in range(2000):
        for place, number in enumerate(rng.choice(40, 2, replace=False).tolist()):
            counts[number // 2, place] += 1
    assert counts.min() > 60 and counts.max() < 140


def test_numbers_that_are_hard_to_compute():
    rng = ol.random.default_rng(2)
    assert bool(ol.all(rng.wald(1e9, 1, 10_000, dtype=ol.float64) > 0))
    assert np.asarray(rng.uniform(-3e38, 3e38, 1000, ol.float64)).std() > 1e38


def test_vectors_have_their_means_and_covariances():
    rng = ol.random.default_rng(4)
    covariances = np.array([[2.0, 0.6], [0.6, 0.5]])
    found = np.asarray(rng.multivariate_normal([1, -1], covariances, COUNT))
    np.testing.assert_allclose(found.mean(0), [1, -1], atol=0.05)
    np.testing.assert_allclose(np.cov(found.T), covariances, atol=0.06)
    shares = np.asarray(rng.dirichlet([1.0, 2.0, 5.0], COUNT))
    np.testing.assert_allclose(shares.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose(shares.mean(0), np.array([1, 2, 5]) / 8, atol=0.01)
    counts = np.asarray(rng.multinomial(20, [0.2, 0.3, 0.5], COUNT))
    assert (counts.sum(1) == 20).all()
    np.testing.assert_allclose(counts.mean(0), [4, 6, 10], atol=0.1)
    assert rng.multinomial(5, [1.0]).tolist() == [5]


def test_bytes_and_truth_values():
    rng = ol.random.default_rng(4)
    assert [len(rng.bytes(length)) for length in (0, 1, 7, 64)] == [0, 1, 7, 64]
    assert len(set(rng.bytes(4000))) > 200
    assert rng.bernoulli(0.0, 9).tolist() == [False] * 9 and rng.bernoulli([0.0, 1.0]).tolist() == [False, True]
    assert abs(np.asarray(rng.bernoulli(0.3, COUNT)).mean() - 0.3) < 0.02


def test_integers_of_every_dtype_and_range():
    rng = ol.random.default_rng(4)
    assert set(rng.integers(3, size=100).tolist()) == {0, 1, 2}
    assert set(rng.integers(1, 3, size=100, endpoint=True).tolist()) == {1, 2, 3}
    for dtype in [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64]:
        ends = np.iinfo(dtype)
        found = np.asarray(rng.integers(ends.min, ends.max, size=500, dtype=dtype, endpoint=True))
        assert found.dtype == dtype and found.min() < ends.min + ends.max // 8 and found.max() > ends.max - ends.max // 8


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: ol.random.default_rng(1.0), TypeError, "a whole number, a list of them or None as a seed, found float\nhint: "),
        (lambda: ol.random.default_rng("a"), TypeError, "as a seed, found str"),
        (lambda: ol.random.default_rng(-1), ValueError, "a seed of at least 0, found -1"),
        (lambda: ol.random.seed(1.5), TypeError, "as a seed, found float"),
        (lambda: ol.random.normal(0, -1), ValueError, "`scale` from 0 to inf, found -1"),
        (lambda: ol.random.normal(0, float("nan")), ValueError, "`scale` from 0 to inf, found nan"),
        (lambda: ol.random.gamma([1.0, -2.0]), ValueError, "`shape` from 0 to inf"),
        (lambda: ol.random.poisson(1e30), ValueError, "`lam` from 0 to "),
        (lambda: ol.random.binomial(-1, 0.5), ValueError, "`n` from 0 to "),
        (lambda: ol.random.binomial(1, 1.5), ValueError, "`p` from 0 to 1, found 1.5"),
        (lambda: ol.random.geometric(0), ValueError, "`p` above 0, found 0"),
        (lambda: ol.random.integers(3, 3), ValueError, "`low` below `high`, found 3 and 3"),
        (lambda: ol.random.integers([0, 5], [1, 5]), ValueError, "`low` below `high`"),
        (lambda: ol.random.random(-1), ValueError, "a size of at least 0, found -1"),
        (lambda: ol.random.random(2.5), TypeError, "a whole number or a shape as `size`, found 2.5"),
        (lambda: ol.random.random(2**62), MemoryError, "memory|bytes|elements"),
        (lambda: ol.random.uniform(-3e38, 3e38, 4), OverflowError, "a range whose width float32 has, found -3e\\+38 to 3e\\+38\nhint: "),
        (lambda: ol.random.uniform(0, float("inf")), OverflowError, "a range whose width float32 has"),
        (lambda: ol.random.triangular(2, 1, 3), ValueError, "`left` <= `mode` <= `right`"),
        (lambda: ol.random.multinomial(3, [0.5, 0.6]), ValueError, "probabilities with the sum 1"),
        (lambda: ol.random.multivariate_normal([0, 0], [[1, 2], [2, 1]]), ValueError, "no negative eigenvalue"),
        (lambda: ol.random.shuffle("abc"), TypeError, "an array or a list that can be changed, found str"),
    ],
)
def test_what_cannot_be_drawn_is_told(call, error, told):
    with pytest.raises(error, match=told):
        call()


def test_keywords_of_numpy_that_change_no_distribution_are_ignored():
    def drawn(name, *given, **named):
        return getattr(ol.random.default_rng(5), name)(*given, **named)

    for name, given, named in [
        ("random", (3,), {"out": None}),
        ("standard_normal", (3,), {"out": None}),
        ("standard_exponential", (3,), {"method": "inv", "out": None}),
        ("standard_gamma", (2.0, 3), {"out": None}),
        ("choice", (5, 3), {"shuffle": False}),
        ("permuted", ([[1, 2], [3, 4]],), {"out": None}),
        ("multivariate_normal", ([0, 0], np.eye(2)), {"check_valid": "ignore", "method": "svd"}),
    ]:
        np.testing.assert_array_equal(np.asarray(drawn(name, *given, **named)), np.asarray(drawn(name, *given)))
    with pytest.raises(TypeError, match="^`random` expected an array of Oarlock for `out`, found ndarray\nhint: assign the result instead"):
        drawn("random", 3, out=np.zeros(3))
    with pytest.raises(TypeError, match="^`choice` expected no keyword but `a`, `axis`, .* found `foo`\nhint: "):
        drawn("choice", 3, foo=1)
