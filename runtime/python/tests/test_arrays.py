"""Arrays: creation, display, joining and indexing."""

import array
import gc
import io
import itertools
import pickle
import threading

import numpy as np
import oarlock as ol
import pytest
from conftest import same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]


def test_the_session_of_the_manual():
    x = ol.to_tensor([1])
    assert repr(x) == (
        "Tensor(shape=[1], dtype=int64, place=Place(cpu:0), stop_gradient=True,\n       [1])"
    )
    same(x + x, [2])


def test_lists_become_arrays_of_the_kind_of_their_numbers():
    for given_, dtype in [([True], ol.bool), ([1], ol.int64), ([1, 2.5], ol.float32), ([1j], ol.complex64)]:
        assert ol.asarray(given_).dtype is dtype
    assert ol.asarray([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert ol.asarray(["a", "bc"]).tolist() == ["a", "bc"]
    assert ol.asarray([]).shape == (0,)


@pytest.mark.parametrize(
    ("given_", "error", "says"),
    [
        ([[1], [1, 2]], ValueError, "lists of 1 items"),
        ([1, [2]], ValueError, "one depth"),
        (object(), TypeError, "found object"),
        ([1, "a"], TypeError, "numbers only or text only"),
    ],
)
def test_what_is_no_array_is_refused_with_a_reason(given_, error, says):
    with pytest.raises(error, match=says):
        ol.asarray(given_)


def test_numbers_that_a_dtype_does_not_have_are_refused():
    for number, dtype in [(300, ol.uint8), (-1, ol.uint64), (2**63, ol.int64), (10**40, ol.int64), (float("nan"), ol.int8)]:
        with pytest.raises(OverflowError, match=dtype.name):
            ol.asarray([number], dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_memory_is_shared_with_numpy_both_ways(dtype):
    theirs = np.arange(6).reshape(2, 3).astype(dtype)
    ours = ol.from_dlpack(theirs)
    same(ours, theirs)
    if dtype != "bool":
        theirs[1, 1] = 99
        assert ours[1, 1].item() == 99
    back = np.asarray(ours)
    assert not back.flags.writeable
    assert np.shares_memory(np.asarray(ours), back)
    same(ol.from_dlpack(np.from_dlpack(ours)), back)


def test_memory_stays_while_anybody_has_it():
    ours = ol.from_dlpack(np.arange(1000, dtype=np.float32))
    view = np.asarray(ours[10:20])
    del ours
    gc.collect()
    np.testing.assert_array_equal(view, np.arange(10, 20))


@pytest.mark.parametrize(
    "copied",
    [
        lambda ours: ol.asarray(ours, copy=True),
        lambda ours: ol.from_dlpack(ours, copy=True),
        lambda ours: ours.astype(ours.dtype),
        lambda ours: ol.astype(ours, ours.dtype),
        lambda ours: ol.asarray(ours[::2], copy=True),
        lambda ours: ol.asarray(ours, copy=True, device="cpu"),
    ],
)
def test_a_copy_does_not_change_with_the_memory_that_it_was_copied_from(copied):
    theirs = np.arange(6, dtype=np.float32).reshape(6, 1)
    ours = ol.from_dlpack(theirs)
    made = copied(ours)
    expected = np.array(made)
    theirs[...] = 99
    same(made, expected)
    same(ours.astype(ol.float32, copy=False), theirs)
    assert ours.astype(ol.float32, copy=False) is ours


def test_turned_and_sliced_arrays_of_numpy_are_read_as_they_are():
    theirs = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    for one in [theirs.T, theirs[:, ::2], theirs[::-1], theirs[:, None, 0], theirs[:0]]:
        same(ol.asarray(one), one)
        same(ol.from_dlpack(one.copy()), one)


def test_a_buffer_is_an_array():
    same(ol.asarray(b"abc"), np.frombuffer(b"abc", np.uint8))
    same(ol.asarray(array.array("d", [1.5, 2.5])), np.array([1.5, 2.5]))


def test_what_wants_to_write_is_refused():
    assert memoryview(ol.asarray([1.0])).readonly
    with pytest.raises(TypeError, match="read-write"):
        io.BytesIO(b"abcd").readinto(ol.asarray([1.0]))


@pytest.mark.parametrize(
    "needing",
    [
        [1.0],
        1.5,
        np.arange(6, dtype=np.float32)[::2],
        np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2],
        np.arange(3, dtype=">f4"),
        np.array([True]),
        np.array(["a"]),
        np.zeros(9, np.uint8)[1:].view(np.float32),
        memoryview(b"abcdef")[::2],
    ],
    ids=["list", "number", "gaps", "columns", "other order of bytes", "truths", "text", "unaligned", "buffer with gaps"],
)
def test_what_needs_a_copy_is_refused_where_none_is_wanted(needing):
    with pytest.raises(ValueError, match="copy=False"):
        ol.asarray(needing, copy=False)
    if hasattr(needing, "__dlpack__"):
        with pytest.raises(BufferError):
            ol.from_dlpack(needing, copy=False)
    ol.asarray(needing)


def test_what_needs_no_copy_shares_its_memory():
    theirs = np.arange(6, dtype=np.float32).reshape(2, 3)
    for made in [ol.asarray(theirs, copy=False), ol.from_dlpack(theirs.T, copy=False), ol.asarray(memoryview(theirs), copy=False)]:
        assert np.shares_memory(np.asarray(made), theirs)
    assert ol.asarray(np.zeros((0, 3), bool), copy=False).shape == (0, 3)
    ours = ol.ones(3)
    assert ol.asarray(ours, copy=False) is ours
    for dtype in [ol.float64, "int8"]:
        with pytest.raises(ValueError, match="another dtype"):
            ol.asarray(ours, dtype=dtype, copy=False)
    with pytest.raises(ValueError, match="another dtype"):
        ol.asarray(theirs, dtype=ol.float64, copy=False)


def test_a_copy_that_a_library_made_is_none_of_its_arrays():
    class Copies:
        def __init__(self):
            self.array = ol.ones(3)

        def __dlpack__(self, *, max_version=None, copy=None):
            return self.array.__dlpack__(max_version=max_version, copy=True)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    assert ol.from_dlpack(Copies()).tolist() == [1, 1, 1]
    with pytest.raises(BufferError, match="its library made"):
        ol.from_dlpack(Copies(), copy=False)


@pytest.mark.parametrize("scalar", [np.longdouble(1) / 3, np.clongdouble(1j)])
def test_scalars_of_numpy_whose_dtype_is_not_known_are_refused(scalar):
    x = ol.ones(2)
    for call in (lambda: ol.asarray(scalar), lambda: ol.asarray([scalar]), lambda: x + scalar, lambda: ol.full(2, scalar)):
        with pytest.raises(TypeError, match="longdouble|float128|complex256"):
            call()


def test_scalars_of_numpy_keep_their_dtype():
    for scalar in [np.float64(1.5), np.int8(3), np.float16(2), np.complex128(1j), np.bool_(True), np.uint64(2**63)]:
        same(ol.asarray(scalar), scalar)
        same(ol.asarray([scalar, scalar]), [scalar, scalar])
        same(ol.asarray([[scalar], [scalar]], dtype=ol.complex64), np.array([[scalar], [scalar]], np.complex64))
    same(ol.asarray(np.float64(1.5), dtype=ol.float32), np.float32(1.5))
    assert ol.asarray([1, True, 2.5]).dtype is ol.float32
    with pytest.raises(TypeError, match=r"found elements of datetime64\[Y\]\nhint: "):
        ol.asarray([np.datetime64("2020")])


def test_bytes_in_the_order_of_another_machine_are_turned():
    for dtype in [">f4", ">i8", ">u2", ">c16", "<f8"]:
        theirs = np.arange(6).astype(dtype).reshape(2, 3)
        same(ol.asarray(theirs), theirs.astype(theirs.dtype.newbyteorder("=")))
        same(ol.asarray(theirs.T), theirs.T.astype(theirs.dtype.newbyteorder("=")))


def test_lists_hold_arrays_and_numbers():
    same(ol.asarray([ol.asarray(1), 2]), [1, 2])
    same(ol.asarray([[1, ol.asarray(2)], [ol.asarray(3), 4.5], [5, 6]]), np.array([[1, 2], [3, 4.5], [5, 6]], np.float32))
    same(ol.asarray([np.ones(2), np.zeros(2)]), [[1.0, 1.0], [0.0, 0.0]])
    same(ol.asarray([ol.ones(2), np.zeros(2)], dtype=ol.int8), np.array([[1, 1], [0, 0]], np.int8))
    with pytest.raises(ValueError, match=r"one shape in a list, found \[\] and \[2\]"):
        ol.asarray([ol.ones(2), 2])
    with pytest.raises(TypeError, match="numbers only or text only"):
        ol.asarray([ol.asarray(1), "a"])


@given(st.data())
def test_basic_indices_mean_what_they_mean_in_numpy(data):
    shape = data.draw(arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    theirs = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    key = data.draw(arrays.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    same(ol.asarray(theirs)[key], theirs[key])


@given(st.data())
def test_masks_and_places_mean_what_they_mean_in_numpy(data):
    theirs = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    ours = ol.asarray(theirs)
    mask = data.draw(arrays.arrays(bool, st.sampled_from([(2,), (2, 3), (2, 3, 4)])))
    same(ours[ol.asarray(mask)], theirs[mask])
    places = data.draw(arrays.arrays(np.int64, arrays.array_shapes(max_dims=2, max_side=3), elements=st.integers(-2, 1)))
    same(ours[ol.asarray(places)], theirs[places])
    same(ours[:, ol.asarray(places)], theirs[:, places])
    same(ours[..., ol.asarray(places)], theirs[..., places])
    same(ours[mask], theirs[mask])
    same(ours[:, places], theirs[:, places])
    same(ours[ol.asarray(places), :, ol.asarray(places)], theirs[places, :, places])


@given(st.data())
def test_what_is_written_is_what_numpy_writes(data):
    shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    theirs = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    ours = ol.asarray(theirs.copy())
    key = data.draw(arrays.basic_indices(shape, allow_newaxis=False, allow_ellipsis=True))
    kept = ours[...]
    ours[key] = -1
    theirs[key] = -1
    same(ours, theirs)
    same(kept, theirs)


@given(st.data())
def test_many_writes_leave_what_numpy_leaves_also_in_views(data):
    theirs = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    shared = theirs.copy()
    ours = ol.asarray(shared)
    taken = []
    for number in range(data.draw(st.integers(1, 6))):
        key = data.draw(arrays.basic_indices(theirs.shape, allow_newaxis=True, allow_ellipsis=True))
        if data.draw(st.booleans()):
            views = [(ours[...], theirs), (ours[0], theirs[0]), (ours[:, 1], theirs[:, 1]), (ours.T, theirs.T), (ours.numpy(), theirs.copy())]
            taken.append(data.draw(st.sampled_from(views)))
        part = theirs[key]
        match data.draw(st.integers(0, 2)):
            case 0:
                ours[key] = theirs[key] = number
            case 1:
                values = np.full(np.shape(part), 100 + number, np.float32)
                ours[key] = ol.asarray(values)
                theirs[key] = values
            case 2 if part.ndim and part.shape[-1]:
                row = np.arange(part.shape[-1], dtype=np.float32)
                ours[key] = ol.asarray(row)
                theirs[key] = row
    same(ours, theirs)
    same(shared, np.arange(60, dtype=np.float32).reshape(3, 4, 5))
    for view, expected in taken:
        same(view, expected)


@given(st.data())
def test_what_is_written_by_masks_and_places_is_what_numpy_writes(data):
    theirs = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    ours = ol.asarray(theirs.copy())
    mask = data.draw(arrays.arrays(bool, st.sampled_from([(2,), (2, 3), (2, 3, 4)])))
    ours[ol.asarray(mask)] = theirs[mask] = -1
    same(ours, theirs)
    values = -2 - np.arange(theirs[mask].shape[0], dtype=np.int32).reshape((-1,) + (1,) * (3 - mask.ndim))
    ours[mask] = ol.asarray(values)
    theirs[mask] = values
    same(ours, theirs)
    ours[::-1, ..., 1] = ol.asarray(np.arange(3, dtype=np.int32))
    theirs[::-1, ..., 1] = np.arange(3)
    same(ours, theirs)


def test_an_array_is_written_with_its_own_parts():
    theirs = np.arange(12, dtype=np.int64).reshape(3, 4)
    ours = ol.asarray(theirs.copy())
    ours[1:] = ours[:-1]
    theirs[1:] = theirs[:-1].copy()
    same(ours, theirs)
    ours[...] = ours[0]
    theirs[...] = theirs[0].copy()
    same(ours, theirs)


@pytest.mark.parametrize(
    "key",
    [
        (0, slice(None), [0, 1]),
        ([0, 1], slice(None), 0),
        (slice(None), 0, [0, 1]),
        (slice(None), [0, 1], 0),
        (0, [0, 1]),
        (0, ..., [0, 1]),
        (slice(None), 0, ..., [0, 1], slice(None)),
        (slice(None), 0, None, [0, 1]),
        (0, slice(None), slice(1, None), [0, 1]),
        (0, slice(None), [True, False, True, False]),
        (slice(None), slice(None, None, -1), 0, [0, 1]),
        ([],),
        (slice(None), []),
    ],
    ids=str,
)
def test_numbers_beside_places_put_dimensions_where_numpy_puts_them(key):
    theirs = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    if any(isinstance(each, list) and len(each) == 4 for each in key):
        theirs = theirs[..., :4].swapaxes(2, 3).copy()
    ours = ol.asarray(theirs.copy())
    given_ = tuple(ol.asarray(each) if isinstance(each, list) and each else each for each in key)
    same(ours[given_], theirs[key])
    values = -1 - np.arange(theirs[key].size).reshape(theirs[key].shape)
    ours[given_] = ol.asarray(values)
    theirs[key] = values
    same(ours, theirs)


def test_an_empty_list_is_no_place():
    same(ol.arange(3)[[]], np.arange(3)[[]])


def test_an_operator_in_place_keeps_dtype_and_shape_or_says_what_to_do():
    a = ol.arange(4)
    for operator_, change, theirs in [
        ("+=", 2, np.arange(4) + 2),
        ("**=", 2, (np.arange(4) + 2) ** 2),
        ("<<=", 1, (np.arange(4) + 2) ** 2 << 1),
    ]:
        names = {"a": a, "b": change}
        exec(f"a {operator_} b", names)
        assert names["a"] is a
        same(a, theirs)
    before = a.tolist()
    for wrong, error in [(1.5, TypeError), (1j, TypeError), (ol.ones(4, dtype=ol.float64), TypeError), (ol.ones((2, 4), dtype=ol.int64), ValueError)]:
        with pytest.raises(error, match=r"for `\+=`, int64\[4\], found .*\nhint: write `a = a \+ b`"):
            a += wrong
    with pytest.raises(TypeError, match="`/=`"):
        a /= 2
    assert a.tolist() == before
    narrow = ol.ones(2, dtype=ol.float16)
    narrow *= 0.5
    same(narrow, np.full(2, 0.5, np.float16))


def test_arrays_are_formatted_rounded_divided_and_gone_through_as_numbers_are():
    assert f"{ol.asarray(1.5):.3f} {ol.asarray(7):03d}" == "1.500 007"
    assert f"{ol.ones(2)}" == str(ol.ones(2))
    same(round(ol.asarray([1.5, 2.5])), np.array([2, 2], np.float32))
    same(round(ol.asarray([1.25, 2.5]), 1), np.array([1.2, 2.5], np.float32))
    for operands in [(7, np.array([2, -2])), (np.array([7, -7]), 2), (np.array([7, -7]), np.array([2, 3]))]:
        ours = divmod(*(ol.asarray(each) if isinstance(each, np.ndarray) else each for each in operands))
        for found, expected in zip(ours, divmod(*operands), strict=True):
            same(found, expected)
    assert [row.tolist() for row in ol.asarray([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    with pytest.raises(TypeError, match="without"):
        list(ol.asarray(1))


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "bfloat16", "float32", "float64"])
def test_complex_numbers_are_not_made_real_by_the_way(dtype):
    for call in [lambda: ol.asarray(1j, dtype=dtype), lambda: ol.asarray([1, 1j], dtype=dtype), lambda: ol.full(2, 1j, dtype=dtype)]:
        with pytest.raises(TypeError, match=f"a real number for {dtype}, found a complex one\nhint: .*`real`"):
            call()


def test_arrays_and_numbers_of_numpy_are_indices():
    theirs = np.arange(3)
    for key in [np.array(1), np.int8(-1), np.bool_(True), np.bool_(False), np.array(True), np.array([2, 0], np.uint8)]:
        same(ol.asarray(theirs)[key], theirs[key])
    ours = ol.asarray([1, 2, 3])
    ours[np.array([True, False, True])] = 7
    assert ours.tolist() == [7, 2, 7]


def test_indices_that_are_not_there_are_refused():
    x = ol.ones((2, 3))
    for key in [2, -3, (0, 3), (0, 0, 0), (..., ...), 1.5, "a", ol.asarray([0.5]), ol.asarray([True]), np.ones(1), np.float32(1)]:
        with pytest.raises(IndexError):
            x[key]
    with pytest.raises((IndexError, ValueError)):
        x[ol.asarray([5])]


def test_long_arrays_are_shown_by_their_ends():
    text = repr(ol.arange(100_000))
    assert "..." in text and "99999" in text and len(text) < 300


@pytest.mark.parametrize("shape", [(0,), (2, 0), (2**31, 0), (2**31, 2**31, 0), (0, 2**31)])
def test_an_array_without_elements_is_shown_as_an_empty_list_and_its_shape(shape):
    assert repr(ol.zeros(shape)) == str(ol.zeros(shape)) == (
        f"Tensor(shape={list(shape)}, dtype=float32, place=Place(cpu:0), stop_gradient=True,\n       [])"
    )


def test_a_dtype_is_one_object():
    assert ol.ones(1).dtype is ol.float32
    assert pickle.loads(pickle.dumps(ol.float32)) is ol.float32
    assert ol.asarray([1], dtype="int8").dtype is ol.int8
    assert ol.asarray([1], dtype=np.uint16).dtype is ol.uint16
    with pytest.raises(TypeError, match="oarlock.float32"):
        ol.asarray([1], dtype="float33")


def test_slices_mean_what_they_mean_for_lists():
    bounds = [None, *range(-5, 6)]
    for size in range(4):
        numbers = list(range(size))
        x = ol.arange(size)
        for start, stop, step in itertools.product(bounds, bounds, [None, -5, -3, -2, -1, 1, 2, 3, 5]):
            key = slice(start, stop, step)
            assert x[key].tolist() == numbers[key], (size, key)
            written = x.copy()
            written[key] = 7
            assert written.tolist() == [7 if at in numbers[key] else at for at in numbers], (size, key)


def test_a_device_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match="cpu:0"):
        ol.ones(1, device="npu")


def test_threads_may_use_and_write_one_array():
    x = ol.zeros(64)
    stop = threading.Event()
    failed = []

    def work(number):
        try:
            while not stop.is_set():
                x[number] = float(number)
                assert (x + x).shape == (64,)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    [thread.start() for thread in threads]
    stop.wait(0.5)
    stop.set()
    [thread.join() for thread in threads]
    assert failed == []


def test_text_is_compared_with_text_of_python_and_written():
    words = ol.asarray(["one", "two", "one"])
    assert (words == "one").tolist() == ("one" == words).tolist() == [True, False, True]
    assert (words != "one").tolist() == ol.not_equal("one", words).tolist() == [False, True, False]
    assert (words == ol.asarray(["one", "one", "one"])).tolist() == [True, False, True]
    words[1] = "three"
    assert words.tolist() == ["one", "three", "one"]


def test_arrays_without_dimensions_are_formatted_as_numbers():
    assert f"{ol.asarray(2.0):.3f}" == "2.000" and f"{ol.asarray(7):>4}" == "   7"
    assert f"{ol.ones(1)}" == str(ol.ones(1))


@pytest.mark.parametrize("key", [slice(None, None, -1), (slice(None), slice(None, None, -1)), (slice(5, 0, -2), slice(None, None, -1))])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64", "complex128"])
def test_elements_come_in_the_opposite_order(key, dtype):
    numbers = np.arange(7 * 1003).reshape(7, 1003).astype(dtype)
    same(ol.asarray(numbers)[key], numbers[key])


@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((5, 300), 0), ((5, 300), 1), ((3, 4, 5), 1), ((3, 0), 0), ((0, 3), 1)])
@pytest.mark.parametrize("places", [[0], [-1, 1, 1], [[0, 2], [1, -2]], []])
def test_elements_at_places_of_one_dimension(shape, axis, places):
    if shape[axis] <= 2 and places:
        pytest.skip("there are no such places")
    numbers = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    key = (slice(None),) * axis + (np.array(places, dtype=np.int64),)
    same(ol.asarray(numbers)[(*key[:-1], ol.asarray(key[-1]))], numbers[key])


def test_arrays_of_several_dtypes_are_stacked_wherever_they_lie():
    x = np.arange(12, dtype=np.int16).reshape(3, 4)
    parts = [x, (x * 2.5).astype(np.float32), x.T.copy().T]
    ours = [ol.asarray(part) for part in parts[:2]] + [ol.asarray(x.T.copy()).mT]
    for axis in (0, 1, 2, -1):
        same(ol.stack(ours, axis=axis), np.stack(parts, axis=axis).astype(np.float32))
    for call in (ol.stack, ol.concat):
        with pytest.raises(ValueError, match="an array to join at least, found none"):
            call([])


@pytest.mark.parametrize("numbers", [(5,), (3, 10), (10, -7, -3), (0, 100_000), (2.5,), (0.0, 1e5), (0, 1, 0.1), (1.0, -1.0, -0.25)])
def test_ranges_are_those_of_numpy(numbers):
    found, expected = ol.arange(*numbers), np.arange(*numbers)
    same(found, expected.astype(found.dtype.name))
    same(ol.arange(*numbers, dtype=ol.float64), np.arange(*numbers).astype(np.float64))
