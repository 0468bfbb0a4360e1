"""The same for many shapes and dtypes: empty arrays, numbers, NaN and infinities, wrong axes and sizes, and errors."""

import warnings

import numpy as np
import oarlock as ol
import pytest
from conftest import same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

REAL = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
DTYPES = [*REAL, "complex64", "complex128"]


def near(found, expected):
    """Checks the shape and the elements up to rounding."""
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    loose = ol.result_type(found, 1.0) in (ol.float16, ol.float32, ol.complex64)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-3 if loose else 1e-9, atol=1e-4 if loose else 1e-9)


@st.composite
def operand(draw, dims=(0, 3), dtypes=DTYPES, least=0):
    shape = draw(arrays.array_shapes(min_dims=dims[0], max_dims=dims[1], min_side=least, max_side=4))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    numbers = draw(arrays.arrays(np.int8, shape, elements=st.integers(0 if dtype.kind in "ub" else -5, 5)))
    return numbers.astype(dtype)


@given(operand())
def test_moved_elements_keep_their_dtype(a):
    x = ol.asarray(a)
    for name in ["ravel", "atleast_1d", "atleast_2d", "atleast_3d", "transpose", "copy", "squeeze"]:
        same(getattr(ol, name)(x), getattr(np, name)(a))
    if a.ndim:
        same(ol.flipud(x), np.flipud(a))
        same(ol.append(x, x, 0), np.append(a, a, 0))
        same(ol.hstack([x, x]), np.hstack([a, a]))
        same(ol.concatenate([x, x], -1), np.concatenate([a, a], -1))
        same(ol.array_split(x, 3)[1], np.array_split(a, 3)[1])
        same(ol.insert(x, [0, 0], 1, axis=-1), np.insert(a, [0, 0], 1, axis=-1))
        if a.shape[0]:
            same(ol.delete(x, -1, 0), np.delete(a, -1, 0))
            same(ol.pad(x, 1, "edge") if 0 not in a.shape else x, np.pad(a, 1, "edge") if 0 not in a.shape else a)
    same(ol.vstack([x, x]), np.vstack([a, a]))
    same(ol.dstack([x, x]), np.dstack([a, a]))
    same(ol.pad(x, 2), np.pad(a, 2))
    same(ol.diagflat(x, -1), np.diagflat(a, -1))
    if a.ndim >= 2:
        same(ol.rot90(x), np.rot90(a))
        same(ol.swapaxes(x, 0, -1), np.swapaxes(a, 0, -1))
        for offset in (-5, -1, 0, 2):
            same(ol.diagonal(x, offset), np.diagonal(a, offset))
    if a.ndim in (1, 2):
        for offset in (-2, 0, 3):
            same(ol.diag(x, offset), np.diag(a, offset))


@given(operand(dims=(1, 2)), operand(dims=(1, 2)))
def test_products_are_those_of_numpy(a, b):
    x, y = ol.asarray(a), ol.asarray(b)
    if {a.dtype.kind, b.dtype.kind} & {"b"} or "uint64" in (a.dtype.name, b.dtype.name):
        return
    near(ol.outer(x, y), np.outer(a, b))
    near(ol.kron(x, y), np.kron(a, b))
    near(ol.inner(x, x), np.inner(a, a))
    near(ol.einsum("...i,...i->...", x, x), np.einsum("...i,...i->...", a, a))


@given(operand(dims=(1, 3), dtypes=REAL, least=1), st.data())
def test_order_statistics_are_those_of_numpy(a, data):
    x = ol.asarray(a)
    axis = data.draw(st.none() | st.integers(-a.ndim, a.ndim - 1))
    theirs = a.astype(np.float64)
    near(ol.median(x, axis), np.median(theirs, axis))
    for method in ["linear", "lower", "higher", "nearest", "midpoint"]:
        share = data.draw(st.sampled_from([0.0, 0.3, 0.5, 0.75, 1.0]))
        near(ol.quantile(x, share, axis, method=method), np.quantile(theirs, share, axis, method=method))
    near(ol.nanmedian(x, axis), np.nanmedian(theirs, axis))
    size = a.size if axis is None else a.shape[axis]
    k = data.draw(st.integers(0, size))
    along = x if axis is not None else ol.ravel(x)
    at = -1 if axis is None else axis
    values, places = ol.topk(along, k, at)
    ordered = np.sort(a if axis is not None else a.ravel(), at)
    same(values, np.flip(ordered, at).take(range(k), at))
    same(ol.take_along_axis(along, places, at), values)
    same(ol.topk(along, k, at, largest=False).values, ordered.take(range(k), at))


def test_the_middle_of_large_numbers_is_finite():
    for numbers in [[1.5e308, 1.7e308], [-1.5e308, 1.7e308]]:
        np.testing.assert_allclose(float(ol.median(np.array(numbers))), numbers[0] / 2 + numbers[1] / 2)
    assert ol.median([float("inf")] * 2).item() == float("inf") and np.isnan(ol.median([float("-inf"), float("inf")]).item())


@given(st.sampled_from(["float16", "float32", "float64"]), st.data())
def test_what_is_nan_is_left_out_as_in_numpy(dtype, data):
    # Products of so few elements are in the range of float16; beyond it, NumPy rounds each product to infinity.
    shape = data.draw(arrays.array_shapes(max_dims=2, max_side=3))
    elements = st.sampled_from([np.nan, 0.0, 1.5, -2.0, 3.0])
    a = data.draw(arrays.arrays(dtype, shape, elements=elements))
    axis = data.draw(st.none() | st.integers(-a.ndim, a.ndim - 1))
    x = ol.asarray(a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for name in ["sum", "prod", "mean", "max", "min", "var", "std", "median", "cumsum", "cumprod"]:
            name = f"nan{name}"
            near(getattr(ol, name)(x, axis), getattr(np, name)(a, axis))
        # NumPy rounds shares of numbers of 16 bits to as many.
        wide = a.astype(np.float64)
        near(ol.nanquantile(x, 0.3, axis), np.nanquantile(wide, 0.3, axis))
        near(ol.quantile(x, 0.3, axis), np.quantile(wide, 0.3, axis))
    only = np.isnan(a).all(axis).any()
    for name in ["nanargmax", "nanargmin"]:
        if only:
            with pytest.raises(ValueError, match=f"^`{name}` expected a number among"):
                getattr(ol, name)(x, axis)
        else:
            same(getattr(ol, name)(x, axis), getattr(np, name)(a, axis))


@given(st.lists(st.integers(-3, 12), max_size=12), st.lists(st.integers(-3, 12), max_size=30))
def test_sets_are_those_of_numpy(first, second):
    a, b = np.array(first, np.int64), np.array(second, np.int64)
    x, y = ol.asarray(a), ol.asarray(b)
    for name in ["union1d", "intersect1d", "setdiff1d", "setxor1d"]:
        same(getattr(ol, name)(x, y), getattr(np, name)(a, b))
    same(ol.isin(x, y), np.isin(a, b))
    same(ol.isin(ol.astype(x, ol.float32), ol.astype(y, ol.float64)), np.isin(a, b))
    for one, other in zip(ol.unique(x, True, True, True), np.unique(a, True, True, True), strict=True):
        same(one, other)
    same(ol.bincount(ol.abs(y)), np.bincount(np.abs(b)))


@given(operand(dims=(0, 2), dtypes=["int32", "int64", "float32", "float64"]), st.integers(1, 6))
def test_histograms_are_those_of_numpy(a, bins):
    counts, edges = ol.histogram(ol.asarray(a), bins)
    expected, borders = np.histogram(a, bins)
    same(counts, expected)
    near(edges, borders)


@given(st.integers(1, 5), st.integers(0, 9), st.integers(0, 9), st.sampled_from(["edge", "reflect", "symmetric", "wrap"]))
def test_padding_of_any_width_is_that_of_numpy(size, before, behind, mode):
    a = np.arange(size)
    same(ol.pad(ol.asarray(a), (before, behind), mode), np.pad(a, (before, behind), mode))


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("linear_ramp", {}),
        ("linear_ramp", {"end_values": (4, 1)}),
        *((mode, options) for mode in ("maximum", "mean", "median", "minimum") for options in ({}, {"stat_length": ((1, 3),)})),
        ("reflect", {"reflect_type": "odd"}),
        ("symmetric", {"reflect_type": "odd"}),
    ],
)
@pytest.mark.parametrize("widths", [2, (1, 9), ((0, 3), (4, 1)), {-1: 2, 0: (1, 0)}])
def test_paddings_are_those_of_numpy(mode, options, widths):
    for dtype in ("int32", "uint8", "float32", "float64", "complex128"):
        for a in (np.array([[1, 7, 4, 9], [2, 8, 3, 3], [5, 5, 0, 1]], dtype), np.array([[3, 7]], dtype)):
            if mode != "median" or dtype != "complex128":
                near(ol.pad(ol.asarray(a), widths, mode, **options), np.pad(a, widths, mode, **options))


@pytest.mark.parametrize("rule", ["auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges"])
@pytest.mark.filterwarnings("ignore:The number of bins estimated may be suboptimal:RuntimeWarning")
def test_rules_for_bins_are_those_of_numpy(rule):
    generator = np.random.default_rng(3)
    for a in [
        *(generator.normal(size=size) for size in (1, 2, 37, 300)),
        generator.integers(0, 9, 200),
        generator.integers(0, 250, (5, 9), np.uint8),
        np.r_[np.zeros(90), np.arange(9.0)],
        np.ones(0),
    ]:
        for limits in (None, (0.5, 2.5)):
            for found, expected in zip(ol.histogram(ol.asarray(a), rule, limits), np.histogram(a, rule, limits), strict=True):
                near(found, expected)


MODES = st.sampled_from(["full", "same", "valid"])


@given(st.integers(1, 9), st.integers(1, 9), MODES, st.sampled_from(["int32", "float32", "float64", "complex64"]))
def test_convolutions_of_any_sizes_are_those_of_numpy(size, other, mode, dtype):
    a, b = (np.arange(1, count + 1).astype(dtype) for count in (size, other))
    if dtype == "complex64":
        a *= 1 + 2j
    for name in ["convolve", "correlate"]:
        near(getattr(ol, name)(ol.asarray(a), ol.asarray(b), mode), getattr(np, name)(a, b, mode))


@given(st.data())
def test_sums_over_named_axes_are_those_of_numpy(data):
    sizes = {letter: data.draw(st.integers(0, 3)) for letter in "abcd"}
    terms = data.draw(st.lists(st.text("abcd", max_size=3), min_size=1, max_size=3))
    letters = sorted(set("".join(terms)))
    output = "".join(data.draw(st.permutations(letters)))[: data.draw(st.integers(0, len(letters)))]
    subscripts = ",".join(terms) + data.draw(st.sampled_from(["", f"->{output}"]))
    shapes = [[sizes[letter] for letter in term] for term in terms]
    operands = [np.arange(np.prod(shape, dtype=int)).reshape(shape) - 2 for shape in shapes]
    same(ol.einsum(subscripts, *(ol.asarray(each) for each in operands)), np.einsum(subscripts, *operands))


EMPTY = ol.zeros((0, 3))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ol.split(ol.ones(5), 2), ValueError, "^`split` expected a number .* divides 5, found 2\nhint: `array_split`"),
        (lambda: ol.array_split(ol.ones(5), 0), ValueError, "^`array_split` expected one part at least, found 0"),
        (lambda: ol.einsum("ij,jk", ol.ones((2, 3))), ValueError, "^`einsum` expected as many .* terms in `ij,jk`, 2, found 1"),
        (lambda: ol.einsum("ij,jk", [[1, 2]], [[1]] * 3), ValueError, "^`einsum` expected one size for `j` in .*, found 2 and 3"),
        (lambda: ol.einsum("ij->ik", ol.ones((2, 3))), ValueError, "^`einsum` expected letters of operands"),
        (lambda: ol.einsum("i1", ol.ones((2, 3))), ValueError, "^`einsum` expected letters for the 2 axes"),
        (lambda: ol.einsum("i", ol.ones((2, 3))), ValueError, "^`einsum` expected letters for the 2 axes"),
        (lambda: ol.topk(ol.ones(2), 3), ValueError, "^`topk` expected a number of 0 to 2 elements, found 3"),
        (lambda: ol.quantile(ol.ones(2), 1.5), ValueError, "^`quantile` expected shares of 0 to 1"),
        (lambda: ol.quantile(ol.ones(2), 0.5, method="x"), ValueError, "^`quantile` expected `linear`"),
        (lambda: ol.median(ol.asarray([1j])), TypeError, "^`median` expected real numbers, found complex64\nhint: "),
        (lambda: ol.average(ol.ones(2), weights=[1.0, -1.0]), ZeroDivisionError, "^`average` expected weights that"),
        (lambda: ol.bincount(ol.asarray([-1])), ValueError, "^`bincount` expected numbers of at least 0"),
        (lambda: ol.bincount([1.5]), TypeError, "^`bincount` expected a vector of integers, found float32"),
        (lambda: ol.digitize([1.0], [1.0, 3.0, 2.0]), ValueError, "^`digitize` expected edges that ascend or descend"),
        (lambda: ol.histogram([1.0, float("nan")]), ValueError, "^`histogram` expected a finite range of elements, found nan"),
        (lambda: ol.histogram([1.0], "best"), ValueError, "^`histogram` expected .*, `sturges`, found `best`"),
        (lambda: ol.histogram([1.0], "fd", weights=[1]), TypeError, "^`histogram` expected a number of bins .* found `fd`\nhint: "),
        (lambda: ol.pad(ol.ones(2), -1), ValueError, "^`pad` expected widths of at least 0, found -1 and -1"),
        (lambda: ol.pad(EMPTY, 1, "wrap"), ValueError, "^`pad` expected elements to pad with in the mode `wrap`"),
        (lambda: ol.pad(ol.ones(2), 1, "mode"), ValueError, "^`pad` expected `constant`, .* found `mode`$"),
        (lambda: ol.pad(ol.ones(2), 1, ol.exp), ValueError, r"^`pad` expected `constant`, .*\nhint: `oarlock.asarray\(numpy.pad"),
        (lambda: ol.pad(ol.ones(2), 1, "mean", stat_length=0), ValueError, "^`pad` expected one element .* `stat_length`, found 0"),
        (lambda: ol.pad(ol.ones(2), 1, "reflect", reflect_type="x"), ValueError, "^`pad` expected `even` or `odd` .* found `x`"),
        (lambda: ol.pad(ol.ones(2), {1: 1}), ValueError, "^`pad` expected an axis from -1 to 0 in `pad_width`, found 1"),
        (lambda: ol.insert(ol.ones(2), 4, 1.0), IndexError, "^`insert` expected indices of -2 to before 3, found 4"),
        (lambda: ol.delete(ol.ones(2), [0, 2]), IndexError, r"^`delete` expected indices of -2 to before 2, found \[0, 2\]"),
        (lambda: ol.take(ol.ones(2), [0.5]), TypeError, "^`take` expected whole numbers as indices, found float32"),
        (lambda: ol.choose([0, 2], [[1, 2], [3, 4]]), ValueError, "^`choose` expected numbers of 0 to before 2"),
        (lambda: ol.gradient(ol.ones(1)), ValueError, "^`gradient` expected 2 elements at least along axis 0, found 1"),
        (lambda: ol.polyfit([1.0], [1.0, 2.0], 1), ValueError, "^`polyfit` expected as many coordinates as values"),
        (lambda: ol.geomspace(0, 1), ValueError, "^`geomspace` expected two numbers of the same sign"),
        (lambda: ol.unravel_index(6, (2, 3)), ValueError, "^`unravel_index` expected indices of 0 to before 6"),
        (lambda: ol.where([True], [1]), TypeError, "^`where` expected two arrays to choose from or none, found one"),
        (lambda: ol.diag(ol.ones((1, 1, 1))), ValueError, "^`diag` expected a vector or a matrix, found the shape"),
        (lambda: ol.linalg.norm(ol.ones(3), "fro", 0), ValueError, "^`norm` expected a number for .*, found `fro`"),
        (lambda: ol.linalg.norm(ol.ones((1, 1, 1)), 2), ValueError, "^`norm` expected one axis for norms of vectors or two"),
        (lambda: ol.sum([1], 0, None, False), TypeError, r"^`sum` expected other arguments, found 4 .*\nhint: call it as `sum\("),
        (lambda: ol.sum(), TypeError, r"^`sum` expected other arguments, found 0 without a keyword\nhint: call it as `sum\("),
        (lambda: ol.sum([1], foo=1), TypeError, "^`sum` expected no keyword but `axis`, .* `where`, found `foo`\nhint: "),
        (lambda: ol.sum([1], axis=0, dim=0), TypeError, "^`sum` expected other arguments, found 1 .*, `axis`, `dim`"),
        (lambda: ol.swapaxes(ol.ones((2, 2)), 0, 2), IndexError, "^`swapaxes` expected a dimension of -2 to before 2, found 2"),
    ],
)
def test_what_cannot_be_is_told(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_keywords_of_other_libraries_are_understood():
    x = np.arange(6.0).reshape(2, 3)
    same(ol.sum(x, dim=1, keepdim=True), x.sum(1, keepdims=True))
    same(ol.var(x, ddof=1), x.var(ddof=1))
    same(ol.std(x, dim=0, unbiased=True), x.std(0, ddof=1))
    same(ol.concatenate([x, x], dim=1), np.concatenate([x, x], 1))
    same(ol.flip(x, dims=(0,)), np.flip(x, 0))
    same(ol.transpose(x, dims=(1, 0)), x.T)
    same(ol.clip(x, a_min=1, a_max=2), x.clip(1, 2))
    same(ol.permute(x, (1, 0)), x.T)


def test_sizes_and_dtypes_may_follow_without_keywords():
    for name in ["zeros", "ones", "empty"]:
        function = getattr(ol, name)
        assert function(3, 4).shape == (3, 4) and function(3).shape == (3,) and function((3, 4)).shape == (3, 4)
        assert function(2, 3, 4, dtype="int8").dtype is ol.int8
        assert function((2, 3), ol.int16).dtype is ol.int16 and function(2, float).dtype is ol.ones(1, dtype=float).dtype
    assert ol.full((2,), 1, ol.int8).dtype is ol.int8 and ol.arange(0, 3, 1, ol.int16).dtype is ol.int16
    assert ol.promote_types(ol.int8, "uint8") is ol.int16


def test_lists_beside_arrays_have_their_precision():
    exact = np.array([0.1, 0.2])
    same(ol.concat([ol.asarray(exact), [0.1, 0.2]]), np.concatenate([exact, exact]))
    same(ol.append(ol.asarray(exact), 0.3), np.append(exact, 0.3))
    assert ol.concat([ol.ones(1, dtype=ol.int8), [1]]).dtype is ol.int64
    assert ol.maximum(ol.ones(1, dtype=ol.int8), 1).dtype is ol.int8 and ol.kron(ol.ones(1, dtype=ol.int8), 2).dtype is ol.int8
    assert ol.quantile(exact, 0.1).dtype is ol.float64


def test_what_was_a_list_is_a_tuple_as_the_standard_says():
    assert isinstance(ol.meshgrid([1, 2], [3]), tuple) and isinstance(ol.broadcast_arrays([1], [[2]]), tuple)
    assert isinstance(ol.__array_namespace_info__().devices(), tuple)
    same(ol.isin(3, [1, 3]), np.True_)
    same(ol.isin(ol.asarray([1, 2]), 2), np.array([False, True]))


def test_a_list_goes_to_the_device_of_the_array_beside_it():
    for device in ol.devices():
        x = ol.ones(2, device=device)
        joined = [ol.concat([[1.0], x]), ol.append(x, 3)]
        for made in [*joined, ol.where([True, False], x, 2), ol.take(x, [0]), ol.interp(x, [0, 1], [2, 3])]:
            assert made.device == device


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("bins", [1, 7, 10, 100, [0, 1, 5, 20]])
def test_elements_at_the_edges_of_bins_are_counted_as_in_numpy(dtype, bins):
    a = (np.random.default_rng(5).integers(0, 100, 5000) / 10).astype(dtype)
    x = ol.asarray(a)
    for limits in [None] if isinstance(bins, list) else [None, (1, 8)]:
        same(ol.histogram(x, bins, limits)[0], np.histogram(a, bins, limits)[0])
    near(ol.histogram2d(x[:2500], x[2500:], bins)[0], np.histogram2d(a[:2500], a[2500:], bins)[0])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_edges_that_are_far_apart_for_their_dtype_are_as_good_as_others(dtype):
    limits = np.iinfo(dtype)
    a = np.array([limits.min, 5, limits.max], dtype)
    for bins in (4, a):
        found, expected = ol.histogram(ol.asarray(a), bins), np.histogram(a, bins)
        same(found[0], expected[0])
        near(found[1], expected[1])
    wide = a.astype(np.float64)
    near(ol.histogram(a, a, density=True)[0], np.histogram(wide, wide, density=True)[0])
    near(ol.histogram2d(a, a, [a, a], density=True)[0], np.histogram2d(wide, wide, [wide, wide], density=True)[0])
    for edges in (a, a[::-1]):
        same(ol.digitize(a, edges), np.digitize(a, edges))
    with pytest.raises(ValueError, match="^`histogram` expected a vector of edges that ascend"):
        ol.histogram(a, a[::-1])


def test_complex_numbers_with_nan_are_one_element_of_a_set():
    none = [complex(1, np.nan), complex(5, np.nan), complex(np.nan, np.nan)]
    a, b = np.array([2, none[1], 1j, none[0]]), np.array([none[0], 1j, 7, none[2]])
    same(ol.union1d(a, b), np.union1d(a, b))
    for one, other in zip(ol.unique(a, True, True, True), np.unique(a, True, True, True), strict=True):
        same(one, other)
    assert ol.unique_values(a).size == 4


@pytest.mark.parametrize("weights", [[1.0, 2.0], [1.0, 2.0, 3.0, 4.0], 2.0])
@pytest.mark.parametrize("bins", [3, [0.0, 1.0, 9.0]])
def test_a_histogram_takes_a_weight_for_each_element(bins, weights):
    with pytest.raises(ValueError, match="^`histogram` expected a weight for each of 3 elements, found"):
        ol.histogram([1.0, 2.0, 3.0], bins, weights=weights)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_unique_elements_alone_are_those_of_all_results(dtype):
    # The first zero stands for both, and each NaN for itself.
    a = np.array([3, -0.0, np.nan, 0.0, 3, -np.nan, -1], dtype)
    for numbers in (a, a[::-1], np.tile(a, 200), a[:2], a[2:3], a[:0]):
        alone, among_all = (np.asarray(found) for found in (ol.unique_values(numbers), ol.unique_all(numbers).values))
        assert alone.tobytes() == among_all.tobytes()


def test_products_between_the_operands_and_the_result_stay_small():
    ones = ol.ones(200_000, dtype=ol.float64)
    # From left to right, the first product would have 4 * 10**10 elements.
    assert ol.einsum("a,b,a,b->", ones, ones, ones, ones).item() == 4e10
    many = [np.arange(6.0).reshape(2, 3), np.ones((3, 4)), np.ones((4, 2)), np.arange(2.0)]
    same(ol.einsum("ab,bc,cd,d->ad", *map(ol.asarray, many)), np.einsum("ab,bc,cd,d->ad", *many))


def test_the_sign_of_zeros_has_no_sign():
    zeros = np.array([0.0, -0.0] * 20)
    for dtype in (np.float16, np.float32, np.float64):
        for made in (ol.sign(zeros.astype(dtype)), ol.jit(lambda x: ol.sign(x) * 1)(ol.asarray(zeros.astype(dtype)))):
            assert not np.signbit(made.numpy()).any()
