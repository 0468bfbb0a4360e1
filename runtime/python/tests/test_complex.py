"""Complex numbers and Fourier transforms, compared with NumPy's."""

import itertools

import numpy as np
import oarlock as ol
import pytest
from conftest import same

FUNCTIONS = {
    "abs": "abs", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atanh": "arctanh", "conj": "conj", "cos": "cos", "cosh": "cosh", "exp": "exp", "expm1": "expm1", "log": "log",
    "log10": "log10", "log2": "log2", "negative": "negative", "reciprocal": "reciprocal", "sin": "sin", "sinh": "sinh",
    "sqrt": "sqrt", "square": "square", "tan": "tan", "tanh": "tanh",
}  # fmt: skip

GENERATOR = np.random.default_rng(5)


def some(*shape):
    return GENERATOR.standard_normal(shape) + 1j * GENERATOR.standard_normal(shape)


def near(found, expected, tolerance=1e-13):
    assert found.dtype.name == np.asarray(expected).dtype.name
    np.testing.assert_allclose(np.asarray(found), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_complex_numbers_are_those_of_numpy(name):
    z = some(500) * 10.0 ** GENERATOR.uniform(-3, 1, 500)
    near(getattr(ol, name)(ol.asarray(z)), getattr(np, FUNCTIONS[name])(z))
    z = z.astype(np.complex64)
    near(getattr(ol, name)(ol.asarray(z)), getattr(np, FUNCTIONS[name])(z), 1e-5)


@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "cosh", "tanh", "acosh", "asinh", "atan", "tan", "cos"])
def test_zeros_with_signs_infinities_and_nan_are_those_of_numpy(name):
    parts = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan]
    z = np.array([complex(*pair) for pair in itertools.product(parts, parts)])
    found, expected = np.asarray(getattr(ol, name)(ol.asarray(z))), getattr(np, FUNCTIONS[name])(z)
    for part in (np.real, np.imag):
        np.testing.assert_allclose(part(found), part(expected), rtol=1e-13)
        # C leaves some signs of results with infinities unspecified.
        is_zero = (part(expected) == 0) & np.isfinite(z)
        np.testing.assert_array_equal(np.signbit(part(found))[is_zero], np.signbit(part(expected))[is_zero])


def test_complex_numbers_are_computed_with():
    a, b = some(3, 4), some(3, 4)
    x, y = ol.asarray(a), ol.asarray(b)
    near(x + y, a + b)
    near(x - 2j, a - 2j)
    near(x * y, a * b)
    near(x / y, a / b)
    near(x**y, a**b, 1e-12)
    near(x**3, a**3, 1e-12)
    near(x @ y.T, a @ b.T, 1e-12)
    near(ol.real(x), a.real)
    near(ol.imag(x), a.imag)
    assert ol.all(x == x).item() and not ol.any(x == y).item()
    near(ol.sum(x, axis=0), a.sum(axis=0), 1e-12)
    near(ol.prod(x), a.prod(), 1e-11)
    near(ol.mean(x), a.mean(), 1e-12)
    near(ol.cumulative_sum(x, axis=1), a.cumsum(axis=1), 1e-12)
    near(ol.cumulative_prod(x, axis=1), a.cumprod(axis=1), 1e-11)
    near(ol.astype(ol.ones(2), ol.complex128), np.ones(2, np.complex128))
    with pytest.raises(TypeError, match="real"):
        ol.astype(x, ol.float64)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_transforms_are_those_of_numpy(norm):
    a, r = some(3, 8), GENERATOR.standard_normal((3, 8))
    z, x = ol.asarray(a), ol.asarray(r)
    for n in (None, 5, 11):
        near(ol.fft.fft(z, n=n, norm=norm), np.fft.fft(a, n=n, norm=norm))
        near(ol.fft.ifft(z, n=n, norm=norm), np.fft.ifft(a, n=n, norm=norm))
        near(ol.fft.rfft(x, n=n, norm=norm), np.fft.rfft(r, n=n, norm=norm))
        near(ol.fft.irfft(z, n=n, norm=norm), np.fft.irfft(a, n=n, norm=norm))
        near(ol.fft.hfft(z, n=n, norm=norm), np.fft.hfft(a, n=n, norm=norm))
        near(ol.fft.ihfft(x, n=n, norm=norm), np.fft.ihfft(r, n=n, norm=norm))
    near(ol.fft.fftn(z, norm=norm), np.fft.fftn(a, norm=norm))
    near(ol.fft.ifftn(z, s=(2, 9), axes=(1, 0), norm=norm), np.fft.ifftn(a, s=(2, 9), axes=(1, 0), norm=norm))
    near(ol.fft.rfftn(x, norm=norm), np.fft.rfftn(r, norm=norm))
    near(ol.fft.irfftn(z, norm=norm), np.fft.irfftn(a, norm=norm))


def test_frequencies_are_those_of_numpy():
    near(ol.fft.fftfreq(7, d=0.1, dtype=ol.float64), np.fft.fftfreq(7, 0.1))
    near(ol.fft.rfftfreq(8, dtype=ol.float64), np.fft.rfftfreq(8))
    x = np.arange(15.0).reshape(3, 5)
    near(ol.fft.fftshift(ol.asarray(x)), np.fft.fftshift(x))
    near(ol.fft.ifftshift(ol.asarray(x), axes=1), np.fft.ifftshift(x, axes=1))
    with pytest.raises(ValueError, match="ortho"):
        ol.fft.fft(ol.asarray(x), norm="other")


def test_complex_numbers_are_rounded_and_told_apart():
    assert ol.round(ol.asarray([1.5 + 2.5j, -0.4 - 1.6j])).tolist() == [2 + 2j, -2j]
    found = ol.unique_all(ol.asarray([3j, 1 + 2j, 3j, complex("nan+1j"), complex("nan+1j")]))
    assert found.values.tolist()[:2] == [3j, 1 + 2j]
    assert found.counts.tolist() == [2, 1, 1, 1] and found.inverse_indices.tolist() == [0, 1, 0, 2, 3]


def test_a_mask_without_elements_chooses_none():
    assert ol.ones((3, 2))[ol.zeros((0,), dtype=ol.bool)].shape == (0, 2)


PARTS = [1, -1, 0, np.nan, np.inf, -np.inf]
NUMBERS = [complex(real, imaginary) for real in PARTS for imaginary in PARTS]


@pytest.mark.filterwarnings("ignore:All-NaN")
@pytest.mark.parametrize("of", [NUMBERS, [number for number in NUMBERS if number == number]])
@pytest.mark.parametrize(("shape", "axis"), [((30,), 0), ((3, 20), 1), ((20, 3), 0), ((3, 5), None), ((0, 3), 1), ((2, 5, 3), -2)])
def test_the_order_of_complex_numbers_is_that_of_numpy(of, shape, axis):
    z = GENERATOR.choice(of, shape)
    for x, a in ((ol.asarray(z), z), (ol.asarray(z).astype(ol.complex64), z.astype(np.complex64))):
        same(ol.sort(x, axis), np.sort(a, axis))
        same(ol.argsort(x, axis), np.argsort(a, axis, stable=True))
        for name in ("argmax", "argmin", "max", "min", "nanmax", "nanmin"):
            for keepdims in (False, True):
                same(getattr(ol, name)(x, axis, keepdims=keepdims), getattr(np, name)(a, axis, keepdims=keepdims))
        for name in ("max", "min"):
            chosen = {"initial": 0.5 + 1j, "where": a.real == 1}
            same(getattr(ol, name)(x, axis, **chosen), getattr(np, name)(a, axis, **chosen))


def test_complex_numbers_descend_as_real_ones_do():
    z = ol.asarray([1, 3 + 1j, complex("nan"), 3 + 2j])
    assert ol.argsort(z, descending=True).tolist() == [2, 3, 1, 0]
    assert ol.argsort(ol.asarray([1, 3, float("nan"), 4]), descending=True).tolist() == [2, 3, 1, 0]
    assert ol.max(z[:2, None] + ol.asarray([0, 1j]), axis=(0, 1)).item() == 3 + 2j
    assert ol.nanargmax(z).item() == 3
    for function in (ol.max, ol.min, ol.argmax):
        with pytest.raises(ValueError, match="expected"):
            function(z[:0])


def test_the_variance_of_complex_numbers_is_that_of_numpy():
    z = some(4, 5)
    for name in ("var", "std", "nanvar", "nanstd"):
        for options in ({}, {"axis": 1, "keepdims": True}, {"axis": 0, "ddof": 1}, {"where": z.real > 0}):
            near(getattr(ol, name)(ol.asarray(z), **options), getattr(np, name)(z, **options))
