"""Functions of the namespace, compared with NumPy's."""

import numpy as np
import oarlock as ol
import pytest
from conftest import same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def elements(dtype):
    return arrays.arrays(dtype, arrays.array_shapes(max_dims=3, max_side=4))


@given(st.sampled_from(INTEGERS), st.data())
def test_integers_are_computed_as_in_numpy(dtype, data):
    shape = data.draw(arrays.array_shapes(max_dims=2, max_side=4))
    a, b = (data.draw(arrays.arrays(dtype, shape)) for _ in range(2))
    x, y = ol.asarray(a), ol.asarray(b)
    for op in ["__add__", "__sub__", "__mul__", "__and__", "__or__", "__xor__", "__lt__", "__ge__", "__eq__", "__ne__"]:
        same(getattr(x, op)(y), getattr(a, op)(b))
    b[b == 0] = 1
    y = ol.asarray(b)
    same(x // y, a // b)
    same(x % y, a % b)
    same(~x, ~a)
    same(-x, -a)
    by = ol.asarray((b & 7).astype(dtype))
    same(x << by, a << (b & 7))
    same(x >> by, a >> (b & 7))


@given(st.sampled_from(["float32", "float64"]), st.data())
def test_quotients_of_floats_are_rounded_down_as_in_python(dtype, data):
    finite = st.floats(-1e6, 1e6, width=32)
    a, b = (data.draw(arrays.arrays(dtype, 5, elements=finite)) for _ in range(2))
    same(ol.asarray(a) // ol.asarray(b), a // b)
    same(ol.asarray(a) % ol.asarray(b), a % b)


@pytest.mark.parametrize("name", ["expm1", "log1p", "log2", "log10", "trunc", "isfinite", "isnan", "isinf", "signbit", "sin", "sqrt", "exp"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_floats_are_those_of_numpy(name, dtype):
    special = [0.0, -0.0, 1.0, -1.0, 1e-20, 0.1, 3.7, -2.5, np.inf, -np.inf, np.nan]
    a = np.array(special, dtype)
    found, expected = np.asarray(getattr(ol, name)(ol.asarray(a))), getattr(np, name)(a)
    assert found.dtype == expected.dtype
    if found.dtype == bool:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-14)
        np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(expected[:2]))


@pytest.mark.parametrize("pair", [("arctan2", "atan2"), ("hypot", "hypot"), ("copysign", "copysign"), ("logaddexp", "logaddexp"), ("nextafter", "nextafter")])
def test_functions_of_two_floats_are_those_of_numpy(pair):
    theirs, ours = pair
    special = np.array([0.0, -0.0, 1.0, -1.5, 100.0, np.inf, -np.inf, np.nan], np.float32)
    a, b = np.meshgrid(special, special)
    found = np.asarray(getattr(ol, ours)(ol.asarray(a), ol.asarray(b)))
    np.testing.assert_allclose(found, getattr(np, theirs)(a, b), rtol=1e-6)


def test_narrow_floats_are_followed_by_narrow_floats():
    bits = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for to in (0.0, 1.0, -65504.0, np.inf, -np.inf, np.nan):
        there = np.full_like(bits, to)
        found = np.asarray(ol.nextafter(ol.asarray(bits), ol.asarray(there)))
        expected = np.nextafter(bits, there)
        # In the standard, the other zero is next to a zero, as in NumPy for wider floats.
        expected = np.where(bits == there, there, expected)
        assert found.dtype == np.float16
        same = found.view(np.uint16) == expected.view(np.uint16)
        assert np.all(same | np.isnan(found) & np.isnan(expected))
    one = ol.ones((), dtype=ol.bfloat16)
    assert ol.nextafter(one, one + 1).item() == 1 + 2**-7 and ol.nextafter(one, one - 1).item() == 1 - 2**-8


def test_dtypes_meet_as_the_standard_says():
    for left, right, both in [
        (ol.int8, ol.uint8, ol.int16),
        (ol.int64, ol.uint32, ol.int64),
        (ol.float32, ol.float64, ol.float64),
        (ol.float64, ol.complex64, ol.complex128),
        (ol.int64, ol.float32, ol.float32),
        (ol.float16, ol.bfloat16, ol.float32),
        (ol.bool, ol.int8, ol.int8),
    ]:
        assert ol.result_type(left, right) is both
        assert ol.result_type(right, left) is both
    assert (ol.ones(1, dtype=ol.int8) + 1).dtype is ol.int8
    assert (ol.ones(1, dtype=ol.int8) + 1.5).dtype is ol.float32
    with pytest.raises(TypeError, match="astype"):
        ol.result_type(ol.uint64, ol.int8)


@given(st.data())
def test_sums_and_their_like_are_those_of_numpy(data):
    a = data.draw(arrays.arrays(np.int32, arrays.array_shapes(max_dims=3, max_side=4), elements=st.integers(-9, 9)))
    axis = data.draw(st.none() | st.integers(-a.ndim, a.ndim - 1))
    keep = data.draw(st.booleans())
    x = ol.asarray(a)
    same(ol.sum(x, axis=axis, keepdims=keep), a.sum(axis=axis, keepdims=keep, dtype=np.int64))
    same(ol.prod(x, axis=axis, keepdims=keep), a.prod(axis=axis, keepdims=keep, dtype=np.int64))
    same(ol.max(x, axis=axis, keepdims=keep), a.max(axis=axis, keepdims=keep))
    same(ol.min(x, axis=axis, keepdims=keep), a.min(axis=axis, keepdims=keep))
    same(ol.any(x, axis=axis, keepdims=keep), a.any(axis=axis, keepdims=keep))
    same(ol.all(x, axis=axis, keepdims=keep), a.all(axis=axis, keepdims=keep))
    same(ol.argmax(x, axis=axis, keepdims=keep), a.argmax(axis=axis, keepdims=keep))
    same(ol.count_nonzero(x, axis=axis, keepdims=keep), np.count_nonzero(a, axis=axis, keepdims=keep) + np.int64(0))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint64", "float16", "float32", "complex64"])
@pytest.mark.parametrize("axis", [None, 0, -1, (), (0, 2), [1], (2, 0, 1), np.int64(1)])
@pytest.mark.parametrize("keep", [False, True])
def test_every_dtype_is_reduced_along_every_dimension(dtype, axis, keep):
    a = (np.arange(24).reshape(2, 3, 4) % 7).astype(dtype)
    x, along = ol.asarray(a), tuple(axis) if isinstance(axis, list) else axis
    np.testing.assert_array_equal(np.asarray(ol.sum(x, axis=axis, keepdims=keep)), a.sum(axis=along, keepdims=keep))
    np.testing.assert_array_equal(np.asarray(ol.sum(x, axis=axis, dtype=dtype, keepdims=keep)), a.sum(axis=along, dtype=dtype, keepdims=keep))
    assert ol.sum(x, axis=axis, dtype=dtype).dtype == x.dtype
    if dtype != "complex64":
        found = ol.max(x, axis=axis, keepdims=keep)
        same(found, a.max(axis=along, keepdims=keep))
        same(ol.min(x, axis=axis, keepdims=keep), a.min(axis=along, keepdims=keep))
        same(ol.all(x, axis=axis, keepdims=keep), a.all(axis=along, keepdims=keep))


def test_numbers_beside_arrays_are_what_was_written_each_time():
    numbers = [1, 1.0, True, 2, -0.0, 0.0, 0, float("inf"), -1, 2**62, 2**-30, 3, 1j]
    with np.errstate(all="ignore"):
        for _ in range(2):
            for number in [*numbers, *range(20), *numbers]:
                for dtype in ["int64", "float32", "float64", "complex128"]:
                    theirs = np.asarray([1, 2]).astype(dtype)
                    found = ol.asarray(theirs) * number
                    expected = theirs.astype(found.dtype.name) * number
                    np.testing.assert_array_equal(np.asarray(found), expected)
                    if found.dtype is ol.float32:
                        np.testing.assert_array_equal(np.signbit(np.asarray(found)), np.signbit(expected))


def test_another_shape_shares_memory_or_is_a_copy_as_is_asked():
    theirs = np.arange(6.0)
    ours = ol.from_dlpack(theirs)
    for shape in [(2, 3), (-1, 2), 6]:
        shared, copied = ol.reshape(ours, shape, copy=False), ol.reshape(ours, shape, copy=True)
        turned = ol.reshape(ol.reshape(ours, (3, 2)).mT, shape, copy=True)
        expected = theirs.reshape(3, 2).T.reshape(shape).copy()
        theirs += 1
        same(shared, theirs.reshape(shape))
        same(copied, theirs.reshape(shape) - 1)
        same(turned, expected)
        same(ol.reshape(ol.reshape(ours, (3, 2)).mT, shape), theirs.reshape(3, 2).T.reshape(shape))
        with pytest.raises(ValueError, match="without a copy.*\n.*copy=False"):
            ol.reshape(ol.reshape(ours, (3, 2)).mT, shape, copy=False)
    same(ol.reshape(ol.ones((0, 3)), (3, 0), copy=False), np.ones((3, 0), np.float32))
    for wrong in [(4,), (-1, -1), (-2, -3), (-1, 4), (-1, 0), (2**62, 2**62)]:
        for copy in [None, False, True]:
            for x in [ours, ol.reshape(ours, (3, 2)).mT]:
                with pytest.raises((ValueError, MemoryError), match="(?s)^(?!.*without a copy)"):
                    ol.reshape(x, wrong, copy=copy)


def test_axes_of_a_grid_have_one_dimension():
    same(ol.meshgrid(ol.arange(2), ol.arange(3))[1], np.meshgrid(np.arange(2), np.arange(3))[1])
    same(ol.meshgrid(ol.arange(2), 5)[1], np.meshgrid(np.arange(2), 5)[1])
    for wrong in [ol.ones((2, 2)), ol.ones((1, 1, 1))]:
        with pytest.raises(ValueError, match="one dimension, found shapes"):
            ol.meshgrid(ol.ones(2), wrong)


def test_what_is_no_dimension_is_refused():
    for wrong in ["x", (0.0,)]:
        with pytest.raises(TypeError, match="whole number"):
            ol.sum(ol.ones((2, 2)), axis=wrong)
    same(ol.sum(ol.ones((2, 3)), axis=np.int64(1)), np.full(2, 3, np.float32))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float32", "float64"])
def test_many_elements_are_ordered_and_told_apart_as_in_numpy(dtype):
    a = np.random.default_rng(3).integers(-3000, 3000, 200_000).astype(dtype)
    if a.dtype.kind == "f":
        a[::5000], a[1::5000], a[2::5000] = np.nan, -0.0, -np.inf
    for numbers in [a, a.reshape(400, 500), a[:10], a[:0]]:
        x = ol.asarray(numbers)
        for axis in range(numbers.ndim):
            order = np.argsort(numbers, axis=axis, kind="stable")
            ordered = np.take_along_axis(numbers, order, axis)
            same(ol.sort(x, axis=axis), ordered)
            same(ol.argsort(x, axis=axis), order)
            np.testing.assert_array_equal(np.signbit(np.asarray(ol.sort(x, axis=axis))), np.signbit(ordered))
            downwards = np.take_along_axis(numbers, np.asarray(ol.argsort(x, axis=axis, descending=True)), axis)
            same(ol.sort(x, axis=axis, descending=True), downwards)
        wanted = {"return_index": True, "return_inverse": True, "return_counts": True}
        values, indices, inverse, counts = np.unique(numbers, **wanted, equal_nan=False)
        found = ol.unique_all(x)
        same(found.values, values)
        same(found.indices, indices)
        same(found.inverse_indices, inverse.reshape(numbers.shape))
        same(found.counts, counts)
        same(ol.unique_values(x), values)


@given(elements("int16"), st.data())
def test_elements_are_moved_as_in_numpy(a, data):
    x = ol.asarray(a)
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    shift = data.draw(st.integers(-5, 5))
    same(ol.roll(x, shift, axis=axis), np.roll(a, shift, axis=axis))
    same(ol.flip(x, axis=axis), np.flip(a, axis=axis))
    same(ol.sort(x, axis=axis), np.sort(a, axis=axis))
    same(ol.argsort(x, axis=axis), np.argsort(a, axis=axis, kind="stable"))
    same(ol.concat([x, x], axis=axis), np.concatenate([a, a], axis=axis))
    same(ol.stack([x, x], axis=axis), np.stack([a, a], axis=axis))
    same(ol.repeat(x, 2, axis=axis), np.repeat(a, 2, axis=axis))
    same(ol.reshape(x, (-1,)), a.reshape(-1))
    same(ol.unique_values(x), np.unique(a))
    same(ol.tile(x, (2, 1)), np.tile(a, (2, 1)))


@given(st.lists(st.integers(0, 4), max_size=20), st.lists(st.integers(-2, 22), max_size=20))
def test_repeated_elements_and_places_among_ordered_ones_are_those_of_numpy(counts, wanted):
    a = np.arange(len(counts)) // 2
    same(ol.repeat(ol.asarray(a), ol.asarray(np.array(counts, np.int64))), np.repeat(a, np.array(counts, np.int64)))
    b = np.array(wanted, np.int64)
    for side in ("left", "right"):
        same(ol.searchsorted(ol.asarray(a), ol.asarray(b), side=side), np.searchsorted(a, b, side=side))


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool))
def test_ranges_are_those_of_numpy(start, stop, step):
    same(ol.arange(start, stop, step), np.arange(start, stop, step))
    count = abs(stop)
    np.testing.assert_allclose(
        np.asarray(ol.linspace(start, stop, count, dtype=ol.float64)), np.linspace(start, stop, count), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("ends", [(1j, 3), (0, 2 - 4j), (-1 + 1j, 5 + 5j)])
@pytest.mark.parametrize("endpoint", [True, False])
def test_numbers_at_equal_distances_may_be_complex(ends, endpoint):
    made = ol.linspace(*ends, 7, endpoint=endpoint)
    assert made.dtype == ol.complex64
    np.testing.assert_allclose(np.asarray(made), np.linspace(*ends, 7, endpoint=endpoint), rtol=1e-6)
    exact = ol.linspace(*ends, 7, dtype=ol.complex128, endpoint=endpoint)
    np.testing.assert_allclose(np.asarray(exact), np.linspace(*ends, 7, endpoint=endpoint), rtol=1e-14)


def test_products_of_matrices_are_those_of_numpy():
    generator = np.random.default_rng(7)
    a, b = generator.standard_normal((3, 4)), generator.standard_normal((4, 5))
    np.testing.assert_allclose(np.asarray(ol.asarray(a) @ ol.asarray(b)), a @ b, rtol=1e-12)
    c = generator.integers(-9, 9, (2, 3, 4))
    same(ol.tensordot(ol.asarray(c), ol.asarray(c), axes=((0, 2), (0, 2))), np.tensordot(c, c, axes=((0, 2), (0, 2))))
    same(ol.vecdot(ol.asarray(c), ol.asarray(c)), np.vecdot(c, c))


def test_an_op_is_called_by_its_name():
    x = ol.asarray([[1.0, -2.0]])
    same(ol.op("LeakyRelu", [x], {"alpha": 0.5}), np.array([[1.0, -1.0]], np.float32))
    values, places = ol.op("TopK", [x, ol.asarray([1])], outputs=2)
    assert values.tolist() == [[1.0]] and places.tolist() == [[0]]
    with pytest.raises(ValueError, match="Relu"):
        ol.op("Rellu", [x])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_base_that_is_infinite_or_zero_has_a_sign_only_for_odd_exponents(dtype):
    bases, exponents = np.array([-np.inf, -0.0, np.inf, 0.0], dtype), [1.2, 2.7, 3.3, 5.4, -2.8, -1.211, 3, -3, 2]
    for exponent in exponents:
        expected = np.power(bases, np.array(exponent, dtype))
        for found in [ol.asarray(bases) ** exponent, ol.asarray(np.tile(bases, 9)) ** exponent]:
            np.testing.assert_array_equal(np.asarray(found)[:4], expected)
            np.testing.assert_array_equal(np.signbit(np.asarray(found)[:4]), np.signbit(expected))


@pytest.mark.parametrize("side", ["left", "right"])
def test_what_is_no_number_goes_behind_all_numbers(side):
    nan = np.nan
    wanted = np.array([3, nan, 0, 2, -np.inf, np.inf])
    for ordered in [[1, 2, nan], [nan, nan], [], [1, 2], [-np.inf, 1, np.inf, nan, nan]]:
        ordered = np.array(ordered)
        same(ol.searchsorted(ol.asarray(ordered), ol.asarray(wanted), side=side), np.searchsorted(ordered, wanted, side))
    unordered, sorter = np.array([nan, 2, 1]), np.array([2, 1, 0])
    found = ol.searchsorted(ol.asarray(unordered), ol.asarray(wanted), side=side, sorter=ol.asarray(sorter))
    same(found, np.searchsorted(unordered, wanted, side, sorter))


@pytest.mark.parametrize("dtype", [ol.float16, ol.bfloat16, ol.float32, ol.float64, ol.complex64])
def test_no_two_elements_that_are_no_numbers_are_one(dtype):
    nan = float("nan")
    x = ol.asarray([[nan, 2, nan], [1, nan, 2]]).astype(dtype)
    values, indices, inverse, counts = ol.unique_all(x)
    shown = values.astype(ol.complex64).numpy()
    assert shown[:2].tolist() == [1, 2] and np.isnan(shown[2:]).all() and values.shape == (5,) and values.dtype is dtype
    assert counts.tolist() == [1, 2, 1, 1, 1] and indices.tolist() == [3, 1, 0, 2, 4]
    assert inverse.tolist() == [[2, 1, 3], [0, 4, 1]]
    assert ol.unique_values(x).shape == ol.unique_counts(x).counts.shape == (5,)
    assert ol.unique_values(x[:, 1]).shape == (2,) and ol.unique_values(x[0, ::2]).shape == (2,)


def test_bounds_that_are_floats_make_floats_of_integers():
    x = np.arange(4)
    same(ol.clip(ol.asarray(x), 0.5, 2.5), np.clip(x, 0.5, 2.5).astype(np.float32))
    same(ol.clip(ol.asarray(x), max=ol.asarray(2.5, dtype=ol.float64)), np.clip(x, None, 2.5))
    same(ol.clip(ol.asarray(x), 1), np.clip(x, 1, None))
    for name in ("int8", "uint8", "int64"):
        numbers = np.array([0, 3, 100], name)
        same(ol.clip(ol.asarray(numbers), -(10**30), 5), np.minimum(numbers, np.array(5, name)))
        same(ol.clip(ol.asarray(numbers), 2, 10**30), np.maximum(numbers, np.array(2, name)))


def test_more_taken_off_than_there_is_leaves_no_negative_variance():
    for given_, correction in [([1.0, 2.0], 5), ([1.0, 2.0], 2), ([], 1), ([1.0], 1)]:
        found, theirs = ol.asarray(given_, dtype=ol.float64), np.array(given_)
        with pytest.warns(RuntimeWarning):
            expected = np.var(theirs, ddof=correction)
        same(ol.var(found, correction=correction), expected)
        same(ol.std(found, correction=correction), np.sqrt(expected))


def test_rounding_does_not_grow_with_the_number_of_elements_that_are_added():
    x = ol.full((10**7,), 0.1)
    assert abs(float(ol.sum(x)) - 1e6) < 4 and abs(float(ol.mean(x)) - 0.1) < 4e-7
    assert abs(float(ol.sum(ol.reshape(x, (-1, 2)), axis=0)[1]) - 5e5) < 2


def test_one_number_of_repetitions_is_that_of_the_last_dimension():
    x = np.arange(6).reshape(2, 3)
    same(ol.tile(ol.asarray(x), 3), np.tile(x, 3))


@pytest.mark.parametrize(("dtype", "large"), [(np.float32, 1e36), (np.float64, 1e308)])
def test_large_numbers_cancel_in_long_sums(dtype, large):
    values = np.full((100, 3000), large, dtype)
    values[:, 1::2] *= -1
    x = ol.asarray(values)
    for function in (ol.sum, ol.mean):
        assert float(function(x)) == 0
        assert function(x, axis=1).tolist() == [0] * 100
        assert np.isinf(function(ol.abs(x), axis=1).numpy()).all() == (function is ol.sum)
