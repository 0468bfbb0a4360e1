"""Operands beside arrays: lists, numbers and arrays of other libraries; and NumPy's functions called with arrays."""

import array
import operator

import numpy as np
import oarlock as ol
import pytest
from conftest import same

ARITHMETIC = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip
BITS = [operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor]


def name(one):
    return one.__name__


@pytest.mark.parametrize("operation", ARITHMETIC, ids=name)
def test_an_operator_takes_an_array_of_numpy_on_either_side(operation):
    left, right = np.array([[1.5, 2], [3, 4]]), np.array([3.0, 2.0])
    for operands in [(ol.asarray(left), right), (left, ol.asarray(right))]:
        made, expected = operation(*operands), operation(left, right)
        assert isinstance(made, ol.Tensor) and made.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-14)


@pytest.mark.parametrize("operation", ARITHMETIC, ids=name)
def test_an_operator_takes_a_list_on_either_side(operation):
    left, right = [[1, 2], [3, 4]], [3, 2]
    expected = operation(np.array(left), np.array(right))
    # Quotients of integers are float32 here.
    expected = expected.astype(np.float32) if expected.dtype == np.float64 else expected
    for operands in [(ol.asarray(left), right), (left, ol.asarray(right)), (tuple(left), ol.asarray(right))]:
        same(operation(*operands), expected)


@pytest.mark.parametrize("operation", BITS, ids=name)
def test_bits_of_lists_and_of_arrays_of_numpy(operation):
    left, right = np.array([1, 6, 9]), [1, 2, 3]
    same(operation(ol.asarray(left), right), operation(left, right))
    same(operation(left, ol.asarray(right)), operation(left, right))


def test_products_of_matrices_take_lists_and_arrays_of_numpy():
    left, right = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    for made in [ol.asarray(left) @ right, left @ ol.asarray(right), ol.matmul(left.tolist(), ol.asarray(right)), ol.matmul(left, right)]:
        np.testing.assert_array_equal(np.asarray(made), left @ right)


def test_an_array_of_numpy_changes_in_place_by_an_array_of_ours():
    theirs, ours = np.ones(3), ol.asarray([1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match=r"no `out` for `numpy.add` .*found one\nhint: "):
        theirs += ours
    ours += np.ones(3, np.float32)
    assert ours.tolist() == [2, 3, 4]
    ours *= [2, 2, 0]
    assert ours.tolist() == [4, 6, 0]


def test_functions_of_numbers_and_lists_are_arrays():
    same(ol.sqrt(4), np.float32(2))
    same(ol.exp([0, 0]), np.ones(2, np.float32))
    same(ol.add(1, 2), np.int64(3))
    same(ol.multiply([1, 2], 3), np.array([3, 6]))
    same(ol.maximum(2, ol.asarray([1, 3])), np.array([2, 3]))
    same(ol.isnan([float("nan"), 1.0]), np.array([True, False]))
    same(ol.reshape([1, 2, 3, 4], (2, 2)), np.array([[1, 2], [3, 4]]))
    same(ol.negative(array.array("i", [1, 2])), np.array([-1, -2], np.int32))


def test_lists_and_arrays_of_numpy_are_assigned():
    ours, theirs = ol.zeros(3, 4), np.zeros((3, 4), np.float32)
    for each in (ours, theirs):
        each[0] = [1, 2, 3, 4]
        each[1:, 2:] = np.arange(4.0).reshape(2, 2)
        each[[0, 2], 1] = [7, 8]
        each[:, 0] = (5, 6, 7)
        each[each > 6.5] = -1
    same(ours, theirs)


def test_texts_are_compared_with_lists_of_texts():
    names = ol.asarray(["a", "b"])
    assert (names == ["a", "c"]).tolist() == [True, False]
    assert (names == np.array(["a", "c"])).tolist() == [True, False]


def test_dtypes_equal_those_of_numpy_and_their_names():
    x = ol.zeros(2)
    for equal in ["float32", "f4", "single", np.float32, np.dtype("float32"), ol.float32]:
        assert x.dtype == equal and not x.dtype != equal, equal
    for other in ["float64", "f8", np.float64, ol.int32, "nothing", None, 3]:
        assert x.dtype != other, other
    assert ol.zeros(2, dtype="i8").dtype is ol.int64 and ol.zeros(2, dtype="u1").dtype is ol.uint8
    assert {ol.float32: 1}[ol.zeros(1).dtype] == 1


@pytest.mark.parametrize("dtype", [ol.float32, ol.int8, ol.bool, ol.complex64])
def test_numpy_makes_a_dtype_of_ours_its_own(dtype):
    if np.lib.NumpyVersion(np.__version__) < "2.4.0":
        pytest.skip("NumPy asks for `__numpy_dtype__` from 2.4 on")
    assert np.dtype(dtype) == np.dtype(dtype.name) and np.zeros(2, dtype).dtype == dtype


WHOLE = """
m.tile([1, 2], i) | m.tile([1, 2], [i, i]) | m.expand_dims([1, 2], i - 2) | m.squeeze([[1, 2]], i - 2) | m.repeat([1, 2], i)
m.roll([1, 2, 3], i) | m.roll([[1, 2, 3]], i, i - 1) | m.arange(i) | m.arange(i, 5) | m.arange(0, 5, i) | m.linspace(0, 1, i)
m.linspace(i, 4, 3) | m.eye(i, i, i - 1) | m.split(m.asarray([1, 2, 3, 4]), i) | m.array_split(m.asarray([1, 2, 3]), i)
m.partition([3, 1, 2, 5], i)[2] | m.sum([[1, 2]], i - 1) | m.sum([[1, 2]], (i - 1, i - 2)) | m.diff([1, 4, 9], i) | m.tri(i)
m.moveaxis(m.zeros((1, 2, 3)), i, i - 2) | m.transpose(m.zeros((1, 2, 3)), (i, i - 2, i - 1)) | m.reshape([1, 2, 3, 4], i * 2)
m.reshape([1, 2, 3, 4], (i, i)) | m.zeros((i, i)) | m.full(i, 3) | m.indices((i, i)) | m.histogram([1, 2, 3], i)[0]
m.histogram_bin_edges([1, 2, 3], i) | m.histogram2d([1, 2, 3], [1, 2, 3], i)[0] | m.histogram2d([1, 2, 3], [1, 2, 3], [i, 3])[0]
m.bincount([1, 2], minlength=i * 2) | m.pad([1, 2], i) | m.insert([1, 2, 3], i, 5) | m.delete([1, 2, 3], i) | m.take([1, 2, 3], i)
m.linalg.matrix_power([[1, 1], [0, 1]], i) | m.tensordot([[1, 2]], [[1], [2]], axes=i - 1) | m.concatenate([[1], [2]], i - 2)
m.tensordot([[1, 2]], [[1], [2]], axes=(i - 1, i - 2)) | m.unravel_index(3, (i, i)) | m.unravel_index(i, i * 2)[0]
m.broadcast_to([1, 2], (i, i)) | m.broadcast_to([1, 2], i) | m.broadcast_to(1, i) | m.quantile([1.0, 2], 0.5, i - 2) | m.flip([1, 2], i - 2)
"""


@pytest.mark.parametrize("i", [np.int64(2), np.array(2), ol.asarray(2)], ids=lambda i: type(i).__name__)
@pytest.mark.parametrize("expression", [each.strip() for line in WHOLE.strip().splitlines() for each in line.split(" | ")])
def test_whole_numbers_of_any_library_are_arguments(expression, i):
    found, expected = eval(expression, {"m": ol, "i": i}), eval(expression, {"m": np, "i": np.int64(2)})
    if not isinstance(expected, (tuple, list)):
        found, expected = [found], [expected]
    for one, other in zip(found, expected, strict=True):
        assert one.shape == np.shape(other)
        np.testing.assert_allclose(np.asarray(one), other)
        assert np.asarray(one).dtype.kind == np.asarray(other).dtype.kind


def test_numbers_to_draw_from_are_those_of_any_library():
    for number in (np.int64(5), ol.asarray(5)):
        for name in ("permutation", "choice"):
            found, expected = (getattr(ol.random.default_rng(3), name)(each) for each in (number, 5))
            same(found, np.asarray(expected))
    assert ol.broadcast_shapes((2, 1), 3, np.int64(1)) == (2, 3)


def test_numbers_beyond_a_dtype_are_compared_with_its_elements():
    x, a = ol.asarray([1, 2, 3], dtype=ol.uint8), np.array([1, 2, 3], np.uint8)
    for number in (300, -1, 2):
        same(ol.isclose(x, number), np.isclose(a, number))
        same(ol.isin(x, number), np.isin(a, number))
        same(ol.searchsorted(x, number), np.searchsorted(a, number))
        same(ol.digitize(number, x), np.asarray(np.digitize(number, a)))
    same(ol.isclose(x, 2**70), np.isclose(a, 2.0**70))
    assert not ol.allclose(x, 300) and not ol.array_equal(x, 300) and not ol.array_equiv(x, 300)
    same(ol.append(x, 300), np.append(a, 300))
    same(ol.diff(x, prepend=300), np.diff(a.astype(int), prepend=300))


def test_the_axes_of_any_array_are_reversed_by_its_t():
    for shape in [(), (3,), (2, 3), (2, 3, 4)]:
        theirs = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        same(ol.asarray(theirs).T, theirs.T)


def test_sizes_may_be_numbers_and_the_dtype_may_follow_a_shape():
    same(ol.zeros(2, 3), np.zeros((2, 3), np.float32))
    same(ol.ones(2), np.ones(2, np.float32))
    same(ol.ones((2, 3), int), np.ones((2, 3), int))
    same(ol.zeros(2, ol.int8), np.zeros(2, np.int8))
    same(ol.zeros(2, "f8"), np.zeros(2))
    same(ol.zeros(shape=(2, 1), dtype=ol.float64), np.zeros((2, 1)))
    with pytest.raises(TypeError, match="whole numbers as sizes of a shape, found float"):
        ol.ones(2, 3, 4.5)


class TestNumpyFunctions:
    """NumPy's functions of arrays of ours."""

    ours = ol.asarray([[1.0, 4.0], [9.0, 16.0]])

    @pytest.mark.parametrize(
        "call",
        [
            np.exp,
            np.sqrt,
            lambda x: np.add(x, [1, 2]),
            lambda x: np.maximum(np.array([[2.0], [10.0]], np.float32), x),
            np.sum,
            lambda x: np.sum(x, axis=0),
            lambda x: np.max(x, axis=1, keepdims=True),
            lambda x: np.mean(x, axis=0),
            np.std,
            lambda x: np.argmax(x, axis=1),
            lambda x: np.clip(x, 2, 10),
            lambda x: np.where(x > 3, x, 0 * x),
            lambda x: np.reshape(x, (4,)),
            lambda x: np.stack([x, x]),
            lambda x: np.expand_dims(x, 0),
            np.add.reduce,
            lambda x: np.multiply.reduce(x, axis=1),
            lambda x: np.add.outer(x, x),
            np.linalg.inv,
            np.linalg.det,
            np.zeros_like,
            lambda x: np.sort(x, axis=0),
            lambda x: np.all(x > 0),
        ],
    )
    def test_a_function_that_is_here_too_gives_an_array_of_ours(self, call):
        made, expected = call(self.ours), call(self.ours.numpy())
        assert isinstance(made, ol.Tensor)
        np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-5, atol=1e-6)
        assert made.shape == np.shape(expected)

    def test_other_functions_get_arrays_of_numpy(self):
        made = np.trapezoid(self.ours) if not hasattr(ol, "trapezoid") else np.unwrap(self.ours)
        assert isinstance(made, (np.ndarray, ol.Tensor))
        np.testing.assert_array_equal(np.nextafter(self.ours, self.ours), self.ours.numpy())
        assert isinstance(np.packbits(ol.asarray([1, 0, 1], dtype=ol.uint8)), np.ndarray)
        assert isinstance(np.bitwise_count(ol.asarray([7])), np.ndarray)

    def test_numpy_compares_and_saves_them(self, tmp_path):
        np.testing.assert_allclose(self.ours, self.ours.numpy())
        with pytest.raises(AssertionError):
            np.testing.assert_allclose(self.ours, self.ours.numpy() + 1)
        np.save(tmp_path / "x.npy", self.ours)
        np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), self.ours.numpy())

    def test_what_cannot_be_is_an_error(self):
        with pytest.raises(TypeError, match="no `out`"):
            np.exp(self.ours, out=np.zeros((2, 2)))
        with pytest.raises(TypeError, match=r"^expected no `where` for `numpy.add` .*\nhint: .*`oarlock.where`"):
            np.add(self.ours, 1, where=[True, False])

    def test_results_go_to_an_array(self):
        out, expected = ol.zeros((2, 2), dtype=ol.float64), np.zeros((2, 2))
        mask = np.array([[True, False], [True, True]])
        for given in (self.ours, self.ours.numpy()):
            assert np.add(given, 1, out=out, where=mask) is out
            np.add(self.ours.numpy(), 1, out=expected, where=mask)
            assert out.tolist() == expected.tolist()
        assert np.exp(self.ours, out=out, dtype=np.float64) is out
        np.testing.assert_allclose(out.numpy(), np.exp(self.ours.numpy().astype(float)))
        with pytest.raises(TypeError, match="^`add` expected numbers that int64 has, .*\nhint: `casting"):
            np.add(self.ours, 0.5, out=ol.zeros((2, 2), dtype=ol.int64))
        with pytest.raises(TypeError, match="expected no `out` for `numpy.add`"):
            np.add.reduce(self.ours, 0, out=ol.zeros(2))
        with pytest.raises(TypeError, match="expected no `out` for `numpy.spacing`"):
            np.spacing(self.ours, out=ol.zeros((2, 2)))

    def test_keywords_that_change_no_result_are_ignored(self):
        same(np.add(self.ours, 1, casting="unsafe", where=True, order="C", subok=True), self.ours.numpy() + 1)
        same(np.add.reduce(self.ours, 0, initial=5.0), np.add.reduce(self.ours.numpy(), 0, initial=5.0))


class TestOtherLibraries:
    """Objects that become arrays."""

    def test_tables_and_series_of_pandas(self):
        pandas = pytest.importorskip("pandas")
        table = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
        same(ol.asarray(table), table.to_numpy())
        same(ol.asarray(table["a"]), table["a"].to_numpy())
        assert ol.asarray(pandas.Series(["a", "b"])).tolist() == ["a", "b"]
        assert ol.asarray([table["a"], table["b"]]).shape == (2, 2)
        # Its own operators keep its index.
        assert isinstance(ol.asarray([1.0, 2.0]) + table["a"], pandas.Series)

    def test_images_of_pillow(self):
        image = pytest.importorskip("PIL.Image").new("RGB", (3, 2), (1, 2, 3))
        same(ol.asarray(image), np.asarray(image))

    def test_what_would_lose_something_is_refused(self):
        with pytest.raises(TypeError, match=r"without a mask, found `numpy.ma.MaskedArray`\nhint: .*filled"):
            ol.asarray(np.ma.array([1, 2], mask=[True, False]))
        with pytest.raises(TypeError, match=r"found elements of datetime64\[D\]\nhint: "):
            ol.asarray(np.array(["2020-01-01"], "datetime64[D]"))
        with pytest.raises(TypeError, match=r"found elements of void\d*\nhint: take its fields"):
            ol.asarray(np.zeros(2, [("a", "f4"), ("b", "i4")]))

    def test_an_array_that_its_library_keeps_is_told_with_the_reason(self):
        class Tracked:
            requires_grad = True

            def __dlpack__(self, **_):
                raise BufferError("Can't export tensors that require gradient")

        with pytest.raises(BufferError, match=r"library refuses: Can't export .*\nhint: .*detach"):
            ol.asarray(Tracked())


def test_dtypes_convert_as_types_of_numpy_do():
    for name in ("float32", "int64", "uint8", "bool", "complex64"):
        ours, theirs = getattr(ol, name), np.dtype(name).type
        for value in (3, 2.5, True, [1, 2], np.array([1.5, 0.0])):
            made = ours(value)
            assert made.dtype == ours
            np.testing.assert_array_equal(made.numpy(), theirs(value))
    for dtype, wrong in [(ol.uint8, 300), (ol.int32, float("inf")), (ol.int8, 1e300), (ol.float64, 10**400), (ol.float32, -(2**200))]:
        with pytest.raises(OverflowError):
            dtype(wrong)
    with pytest.raises(OverflowError, match="expected a number that float32 has, found one of more than 127 bits"):
        ol.ones(2) + 10**400
    for wrong in (None, "3", b"3"):
        with pytest.raises(TypeError, match="expected a number or an array to convert to int64, found "):
            ol.int64(wrong)
