"""Linear algebra: decompositions multiply back to their matrices, and results agree with NumPy."""

import numpy as np
import oarlock as ol
import pytest

GENERATOR = np.random.default_rng(11)
DTYPES = ["float32", "float64", "complex64", "complex128"]


def some(dtype, *shape):
    made = GENERATOR.standard_normal(shape)
    if dtype.startswith("complex"):
        made = made + 1j * GENERATOR.standard_normal(shape)
    return made.astype(dtype)


def near(found, expected):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    tolerance = 1e-4 if found.dtype.name in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 2, 4), (0, 3, 3)])
def test_matrices_are_made_again_of_their_parts(dtype, shape):
    a = some(dtype, *shape)
    x = ol.asarray(a)
    for mode in ("reduced", "complete"):
        q, r = ol.linalg.qr(x, mode=mode)
        near(q @ r, a)
    u, s, vh = ol.linalg.svd(x, full_matrices=False)
    near((u * s.astype(x.dtype)[..., None, :]) @ vh, a)
    near(s, np.linalg.svd(a, compute_uv=False))
    near(ol.linalg.svdvals(x), np.linalg.svd(a, compute_uv=False))
    u, s, vh = ol.linalg.svd(x)
    near(u @ ol.conj(u).mT, np.broadcast_to(np.eye(shape[-2]), (*shape[:-2], shape[-2], shape[-2])))
    near(ol.linalg.pinv(x), np.linalg.pinv(a))


@pytest.mark.parametrize("dtype", DTYPES)
def test_square_matrices_are_those_of_numpy(dtype):
    a, b = some(dtype, 3, 5, 5), some(dtype, 3, 5, 2)
    x = ol.asarray(a)
    near(ol.linalg.det(x), np.linalg.det(a))
    near(ol.linalg.inv(x) @ x, np.broadcast_to(np.eye(5), (3, 5, 5)))
    near(x @ ol.linalg.solve(x, ol.asarray(b)), b)
    near(ol.linalg.matrix_power(x, 3), np.linalg.matrix_power(a, 3))
    near(ol.linalg.trace(x), np.trace(a, axis1=-2, axis2=-1))
    square = a @ a.conj().swapaxes(-1, -2)
    values, vectors = ol.linalg.eigh(ol.asarray(square))
    near(values, np.linalg.eigvalsh(square))
    near(ol.linalg.eigvalsh(ol.asarray(square)), np.linalg.eigvalsh(square))
    near(ol.asarray(square) @ vectors, np.asarray(vectors) * np.asarray(values)[:, None, :])
    for upper in (False, True):
        near(ol.linalg.cholesky(ol.asarray(square), upper=upper), np.linalg.cholesky(square, upper=upper))


@pytest.mark.parametrize("ord_", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_are_those_of_numpy(ord_):
    a = some("float64", 2, 4, 3)
    near(ol.linalg.matrix_norm(ol.asarray(a), ord=ord_), np.linalg.matrix_norm(a, ord=ord_))
    if not isinstance(ord_, str):
        near(ol.linalg.vector_norm(ol.asarray(a), axis=-1, ord=ord_), np.linalg.vector_norm(a, axis=-1, ord=ord_))


@pytest.mark.parametrize("size", [40, 130])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_large_matrices_are_made_again_of_their_parts(dtype, size):
    a = some(dtype, size, size)
    x = ol.asarray(a)
    q, r = ol.linalg.qr(x)
    near(q @ r, a)
    u, s, vh = ol.linalg.svd(x)
    near((u * s.astype(x.dtype)) @ vh, a)
    near(x @ ol.linalg.inv(x), np.eye(size))
    near(ol.linalg.slogdet(x).logabsdet, np.linalg.slogdet(a).logabsdet)
    square = ol.asarray(a @ a.conj().T + np.eye(size))
    lower = ol.linalg.cholesky(square)
    near(lower @ ol.conj(lower).mT, square)
    values, vectors = ol.linalg.eigh(square)
    near(square @ vectors, np.asarray(vectors) * np.asarray(values))


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_values_of_a_matrix_that_is_not_finite_are_no_numbers_and_those_beside_it_are(odd):
    a = some("float64", 2, 4, 4)
    a[0, 3, 0] = odd
    x = ol.asarray(a)
    for made in (*ol.linalg.eigh(x), ol.linalg.eigvalsh(x), *ol.linalg.svd(x), ol.linalg.svdvals(x)):
        assert ol.all(ol.isnan(made[0]))
        assert ol.all(ol.isfinite(made[1]))


def test_what_has_no_answer_is_said():
    with pytest.raises(ValueError, match="inverse"):
        ol.linalg.inv(ol.zeros((2, 2)))
    with pytest.raises(ValueError, match="positive definite"):
        ol.linalg.cholesky(ol.asarray([[1.0, 0.0], [0.0, -1.0]]))
    with pytest.raises(ValueError, match="square"):
        ol.linalg.det(ol.ones((2, 3)))
    assert ol.linalg.matrix_rank(ol.ones((3, 3))).item() == 1
    assert ol.linalg.det(ol.zeros((2, 2))).item() == 0


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (3, 0, 5)])
def test_matrices_without_elements_are_what_they_are_to_numpy(shape):
    theirs = np.zeros(shape)
    ours = ol.asarray(theirs)
    assert ol.linalg.pinv(ours).shape == np.linalg.pinv(theirs).shape
    assert ol.linalg.matrix_rank(ours).tolist() == np.linalg.matrix_rank(theirs).tolist()
    for order in ["fro", "nuc", 2, -2, 1, -1, np.inf, -np.inf]:
        try:
            expected = np.linalg.matrix_norm(theirs, ord=order)
        except ValueError:
            with pytest.raises(ValueError, match="expected an element"):
                ol.linalg.matrix_norm(ours, ord=order)
        else:
            np.testing.assert_array_equal(np.asarray(ol.linalg.matrix_norm(ours, ord=order)), expected)
    np.testing.assert_array_equal(np.asarray(ol.linalg.vector_norm(ours, ord=np.inf)), 0)


@pytest.mark.parametrize("name", ["trace", "diagonal", "matrix_norm"])
def test_what_is_no_matrix_is_refused_in_the_name_of_the_function(name):
    with pytest.raises(ValueError, match=rf"expected matrices for `{name}`, found the shape \(3,\)"):
        getattr(ol.linalg, name)(ol.ones(3))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_eigenvalues_of_any_square_matrix_are_those_of_numpy(dtype):
    rng = np.random.default_rng(3)
    for shape in [(1, 1), (5, 5), (2, 3, 7, 7), (0, 3, 3), (0, 0)]:
        theirs = rng.standard_normal(shape)
        theirs = (theirs + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else theirs).astype(dtype)
        values, vectors = ol.linalg.eig(ol.asarray(theirs))
        assert values.shape == shape[:-1] and vectors.shape == shape
        assert values.dtype == vectors.dtype == ("complex64" if dtype in ("float32", "complex64") else "complex128")
        tolerance = 1e-4 if values.dtype == "complex64" else 1e-11
        values, vectors = np.asarray(values), np.asarray(vectors)
        np.testing.assert_allclose(theirs @ vectors, vectors * values[..., None, :], atol=tolerance)
        found, expected = (np.sort_complex(np.round(each, 3)) for each in (np.asarray(ol.linalg.eigvals(theirs)), np.linalg.eigvals(theirs)))
        np.testing.assert_allclose(found, expected, atol=2e-3)


def test_eigenvalues_of_what_has_none_are_refused():
    with pytest.raises(ValueError, match="square"):
        ol.linalg.eig(ol.ones(2, 3))
    with pytest.raises(TypeError, match="expected numbers, found an array of str"):
        ol.linalg.eig(ol.asarray([["a"]]))


def test_integers_become_floats():
    theirs = [[2, 1], [1, 3]]
    for name in ["det", "inv", "eigvalsh", "svdvals", "pinv", "cholesky", "matrix_rank"]:
        found, expected = getattr(ol.linalg, name)(theirs), getattr(np.linalg, name)(np.array(theirs))
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(ol.linalg.solve(theirs, [1, 2])), np.linalg.solve(np.array(theirs), [1, 2]), rtol=1e-5)
    assert ol.linalg.eig(theirs)[0].dtype == "complex64"


def test_a_power_is_a_whole_number_and_stays_what_it_is():
    power = np.array(3)
    near(ol.linalg.matrix_power(np.eye(2) * 2, power), np.eye(2) * 8)
    assert power == 3
    with pytest.raises(TypeError, match="^`matrix_power` expected a whole number as a power, found float"):
        ol.linalg.matrix_power(np.eye(2), 0.5)
