"""Functions that write into the array that they are given do it as those of NumPy, and leave other arrays alone."""

import numpy as np
import oarlock as ol
import pytest

A = np.arange(-6, 6).reshape(3, 4)

WRITERS = {
    "copied": lambda m, x: m.copyto(x, 7),
    "copied rows": lambda m, x: m.copyto(x, m.asarray([1, 2, 3, 4])),
    "copied where": lambda m, x: m.copyto(x, x * 10, where=x > 1),
    "copied columns where": lambda m, x: m.copyto(x, m.asarray([[1], [2], [3]]), where=m.asarray([True, False, True, False])),
    "masked": lambda m, x: m.putmask(x, x > 1, 9),
    "masked at their places": lambda m, x: m.putmask(x, x > 1, x * 2),
    "masked in turn": lambda m, x: m.putmask(x, x % 2 == 0, m.asarray([1, 2, 3, 4, 5]).astype(x.dtype)),
    "masked by more values": lambda m, x: m.putmask(x, x > 1, m.arange(100).astype(x.dtype)),
    "masked by none": lambda m, x: m.putmask(x, x > 1, m.asarray([], dtype=x.dtype)),
    "put": lambda m, x: m.put(x, m.asarray([0, 5, -1]), m.asarray([7, 8, 9])),
    "put in turn": lambda m, x: m.put(x, m.asarray([[0, 5], [-1, 3]]), m.asarray([7, 8, 9])),
    "put one": lambda m, x: m.put(x, [2, 4], 7),
    "put none": lambda m, x: m.put(x, m.asarray([1]), m.asarray([], dtype=x.dtype)),
    "diagonal": lambda m, x: m.fill_diagonal(x, 5),
    "diagonal of numbers": lambda m, x: m.fill_diagonal(x, m.asarray([5, 6, 7])),
    "along rows": lambda m, x: m.put_along_axis(x, m.argmax(x, axis=1, keepdims=True), 99, axis=1),
    "along columns": lambda m, x: m.put_along_axis(x, m.asarray([[0, 1, 2, 0], [-1, 2, 0, 1]]), m.asarray([[8], [9]]), axis=0),
    "along rows, one for all": lambda m, x: m.put_along_axis(x, m.asarray([[1, 3]]), m.asarray([[8, 9]]), axis=-1),
    "along all": lambda m, x: m.put_along_axis(x, m.asarray([0, 11, -2]), m.asarray([1, 2, 3]), axis=None),
}


@pytest.mark.parametrize("dtype", ["int64", "float32", "int16", "float16"])
@pytest.mark.parametrize("name", WRITERS)
def test_an_array_is_written_as_in_numpy(name, dtype):
    theirs, ours = A.astype(dtype), ol.asarray(A.astype(dtype))
    view = ours[0]
    assert WRITERS[name](np, theirs) is None
    assert WRITERS[name](ol, ours) is None
    np.testing.assert_array_equal(ours, theirs)
    assert ours.dtype == dtype
    np.testing.assert_array_equal(view, theirs[0])


def test_a_diagonal_of_a_cube_is_written():
    theirs, ours = np.zeros((3, 3, 3)), ol.zeros((3, 3, 3))
    np.fill_diagonal(theirs, 2)
    ol.fill_diagonal(ours, 2)
    np.testing.assert_array_equal(ours, theirs)


def test_a_traced_function_writes():
    @ol.jit
    def marked(x):
        x = x + 0
        ol.fill_diagonal(x, 1)
        ol.copyto(x, 2, where=x < -3)
        ol.put_along_axis(x, ol.argmax(x, axis=1, keepdims=True), 9, axis=1)
        return x

    expected = A + 0
    np.fill_diagonal(expected, 1)
    np.copyto(expected, 2, where=expected < -3)
    np.put_along_axis(expected, np.argmax(expected, axis=1, keepdims=True), 9, axis=1)
    np.testing.assert_array_equal(marked(ol.asarray(A)), expected)


def test_what_cannot_be_written_is_refused():
    x = ol.zeros((2, 3))
    for write in (lambda a: ol.fill_diagonal(a, 1), lambda a: ol.copyto(a, 1), lambda a: ol.putmask(a, True, 1)):
        with pytest.raises(TypeError, match="expected an array of Oarlock to write into, found ndarray"):
            write(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"the same size in all dimensions, found the shape \(3,\)"):
        ol.fill_diagonal(ol.zeros(3), 1)
    with pytest.raises(ValueError, match=r"the same size in all dimensions, found the shape \(2, 2, 3\)"):
        ol.fill_diagonal(ol.zeros((2, 2, 3)), 1)
    with pytest.raises(ValueError, match=r"expected indices with 2 dimensions, found the shape \(1,\)"):
        ol.put_along_axis(x, [0], 1, axis=1)


def test_lists_that_are_not_nested_alike_are_no_blocks():
    with pytest.raises(ValueError, match=r"found those of the depths \[0, 1\]"):
        ol.block([[1, 2], 3])
    with pytest.raises(ValueError, match=r"with an array in each, found those of the depths \[\]"):
        ol.block([])


def test_polynomials_are_vectors():
    with pytest.raises(ValueError, match=r"expected a vector of coefficients, found the shape \(2, 2\)"):
        ol.polymul(ol.ones((2, 2)), [1, 2])
    with pytest.raises(ValueError, match="expected a number of times of at least 0, found -1"):
        ol.polyder([1, 2], -1)
    with pytest.raises(ValueError, match=r"expected a matrix, found the shape \(3,\)"):
        ol.tril_indices_from(ol.ones(3))


def test_a_grid_has_ends_and_texts_join_nothing():
    with pytest.raises(TypeError, match=r"expected a range with an end, such as `0:5`, found slice\(0, None, None\)"):
        ol.mgrid[0:]
    with pytest.raises(TypeError, match="expected a range with an end, such as `0:5`, found 3"):
        ol.ogrid[3, 4]
    with pytest.raises(ValueError, match="found a text\nhint: use `oarlock.concat`"):
        ol.r_["0,2", [1, 2]]


@pytest.mark.parametrize("write", [lambda x: ol.copyto(x, 1.5), lambda x: ol.put(x, 0, 1.5), lambda x: ol.putmask(x, x > 0, 1.5)])
def test_floats_are_not_written_to_integers(write):
    with pytest.raises(TypeError, match="expected elements that int64 has, found float32"):
        write(ol.arange(3))
