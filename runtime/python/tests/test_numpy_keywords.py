"""Keywords that programs of NumPy use: they do what they do there, have no effect where NumPy's default is meant, or are refused."""

import numpy as np
import oarlock as ol
import pytest


A = np.arange(6.0).reshape(2, 3)
I = np.array([[3, 1, 2], [0, 5, 4]])
N = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
U = np.array([True, False, True])
NAMES = {"A": A, "I": I, "N": N, "U": U, "np": np}

MEANT = """
m.sum(A, where=U) | m.sum(I, 0, initial=10) | m.sum(I, initial=2.5) | m.sum(A, 1, keepdims=True, where=A > 2, initial=1)
m.prod(A, 1, where=U, initial=2) | m.prod(A * 1j, where=U) | m.max(A, initial=9) | m.max(I, 1, initial=2.5)
m.max(m.zeros((0, 3)), 0, initial=-1) | m.min(A, 1, where=U, initial=9) | m.min(A, 0, initial=9, where=[[False], [False]])
m.mean(A, 1, where=U) | m.mean(A, where=False) | m.mean(I, 0, "float64") | m.var(A, 1, where=U) | m.std(A, 1, where=U, ddof=1)
m.var(A, 0, np.float64) | m.std(I, None, "float64", ddof=2) | m.any(A, 1, where=U) | m.all(A, 1, where=[False, True, True])
m.nansum(N, 1, where=U, initial=3) | m.nanprod(N, 0, initial=2) | m.nanmean(N, 0, where=U) | m.nanmean(N, dtype="float64")
m.nanmax(m.asarray(N), 1, initial=2) | m.nanmin(m.asarray(N), 1, initial=2, where=U) | m.nanvar(N, 1, where=[True, True, False])
m.nanstd(N, 0, "float64") | m.nanvar(N, 1, ddof=2)
m.fft.fft(A, norm=None) | m.fft.irfft(A, norm=None) | m.fft.hfft(A, norm=None) | m.fft.fftn(A, norm=None) | m.finfo("float32").tiny
m.reshape(A, (3, 2), order="F") | m.reshape(A, -1, order="F") | m.reshape(A, (3, -1), order="C") | m.reshape(A, shape=(3, 2))
m.ravel(A, "F") | m.ravel(A, order="K") | m.asarray(A).reshape(3, 2, order="F") | m.asarray(A).reshape((3, 2), order="A")
m.asarray(A).flatten("F") | m.asarray(A).flatten(order="F") | m.asarray(A).ravel(order="F") | m.asarray(A).view()
m.meshgrid([1, 2], [3, 4, 5], sparse=True)[1] | m.meshgrid([1, 2], [3, 4, 5], sparse=True, indexing="ij")[0]
m.meshgrid([1, 2], 5, copy=False)[1] | m.linspace(0, 1, 3, retstep=True)[0] | m.linspace(0, 1, 4, retstep=True)[1]
m.linspace(0, 1, 4, retstep=True, endpoint=False)[1] | m.linspace(0, 1, 1, retstep=True)[1] | m.linspace([0, 1], [1, 5], 3)
m.linspace(I, 5, 3, axis=1) | m.linspace(I, 5, 3, axis=-1, endpoint=False) | m.linspace(0, [1j, 2], 3, retstep=True)[1]
m.linspace(-1, 1, 4, dtype=int) | m.linspace([-1], 1, 4, dtype=int)
m.array(5, ndmin=2) | m.array([1, 2], ndmin=1) | m.zeros_like(A, shape=(1, 2)) | m.ones_like(A, shape=3) | m.full_like(A, 7, shape=(2,))
m.empty_like(A, shape=(1, 2)).shape | m.take(A, [5, 0]) | m.take(A, [4, -4], 1, mode="wrap") | m.take(A, [4, -4], mode="clip", axis=0)
m.unravel_index([1, 4], (2, 3), order="F")[0] | m.ravel_multi_index([[1, 0], [2, 1]], (2, 3), order="F")
m.ravel_multi_index([[1, 5], [2, -1]], (2, 3), mode="wrap") | m.ravel_multi_index([[1, 5], [2, -1]], (2, 3), mode="clip")
m.tile(A, reps=(2, 1)) | m.repeat(a=A, repeats=2, axis=0) | m.linspace(start=1, stop=2, num=3) | m.pad(A, pad_width=1)
m.moveaxis(A, source=0, destination=1) | m.swapaxes(A, axis1=0, axis2=1) | m.percentile(A, q=50) | m.eye(N=2, M=3)
m.transpose(a=A, axes=(1, 0)) | m.concatenate((A, A), axis=1) | m.searchsorted([1, 2], v=2, side="right") | m.dot(A, b=A.T)
m.linalg.pinv(A, rcond=0.5) | m.isin(element=I, test_elements=[1, 2]) | m.vstack(tup=[A, A]) | m.clip(A, a_min=1, a_max=None)
m.concatenate([A, I], dtype="float32") | m.stack([A, A], 1, dtype="int64", casting="unsafe") | m.vstack([A, I], dtype="float64")
m.hstack([I, I], dtype="int16") | m.unique(N, equal_nan=False) | m.unique(N, True, True, True, equal_nan=False)[2]
m.cov(A, fweights=[1, 2, 3]) | m.cov(A, aweights=[1, 2.5, 3]) | m.cov(A, ddof=0, aweights=[1, 2.5, 3]) | m.cov(A, dtype="float64")
m.cov(A * 1j, fweights=[1, 2, 3], aweights=[1, 2.5, 3], bias=True) | m.cov([1, 2, 3], fweights=[1, 1, 2])
m.corrcoef(A, I, dtype="float64")
m.unwrap(p=A * 9, axis=0) | m.roots(p=[1, -1]) | m.fft.fft2(a=A, s=(3, 2)) | m.tril_indices(n=3, k=1, m=2)[1] | m.polyint([1, 2], m=2, k=None)
m.polyfit([0, 1, 2, 3], [1, 3, 2, 5], 1, w=[1, 2, 1, 0.5]) | m.polyfit([0, 1, 2], [[1, 3], [3, 2], [5, 1]], 1, w=[1, 2, 1])
"""

WITHOUT_EFFECT = """
m.sort(A, kind="stable") | m.sort(A, 0, kind=None, order=None) | m.argsort(I, kind="mergesort") | m.asarray(I).argsort(kind="stable")
m.partition(I, 1, kind="introselect") | m.sum(A, out=None) | m.argmax(A, out=None) | m.clip(A, 1, 2, out=None) | m.array(A, subok=True)
m.array(A, order="C", copy=True) | m.copy(A, order="K") | m.full((2,), 3.0, order="C") | m.zeros_like(A, order="K", subok=False)
m.nan_to_num(N, copy=True) | m.median(A, 0, overwrite_input=True) | m.unique(I, equal_nan=True) | m.isin(I, [1], assume_unique=True)
m.isin(I, [1], kind="sort") | m.intersect1d(I, [1], assume_unique=True) | m.einsum("ij,ij", A, A, optimize=True)
m.concatenate([A, A], out=None, casting="same_kind") | m.linalg.pinv(A @ A.T, hermitian=True) | m.take(A, [0], axis=1, mode="raise")
m.quantile(A, 0.5, weights=None) | m.cov(A, fweights=None) | m.cross([1, 0, 0], [0, 1, 0], axisa=-1) | m.linalg.svd(A, compute_uv=True)[1]
m.asarray(A.copy()).sort(kind="stable") | m.fill_diagonal(m.asarray(A.copy()), 1, wrap=False)
m.copyto(m.asarray(A.copy()), 1, casting="unsafe")
"""


def cases(text):
    return [each.strip() for line in text.strip().splitlines() for each in line.split(" | ")]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("expression", cases(MEANT) + cases(WITHOUT_EFFECT))
def test_a_keyword_of_numpy_does_what_it_does_there(expression):
    found, expected = (eval(expression, {"m": module} | NAMES) for module in (ol, np))
    if expected is None or isinstance(expected, tuple):
        assert found == expected
        return
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5, atol=1e-6)
    if isinstance(found, ol.Tensor) and np.asarray(expected).dtype.kind in "biu":
        assert np.asarray(found).dtype == expected.dtype


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ol.sum(A, out=np.zeros(3)), TypeError, "^`sum` expected an array of Oarlock for `out`, found ndarray\nhint: assign"),
        (lambda: ol.sum(A, out=ol.zeros(3)), ValueError, r"^`sum` expected an `out` of the shape \(\), found \(3,\)$"),
        (lambda: ol.square(ol.ones(3), out=ol.ones(2)), ValueError, r"^`square` expected an `out` of the shape \(3,\), found \(2,\)$"),
        (lambda: ol.unique_all(A, out=ol.ones(2)), TypeError, "^`unique_all` expected no `out`, found one\nhint: there are several"),
        (lambda: ol.mean(A, out=ol.asarray(1)), TypeError, "^`mean` expected numbers that int64 has, .*\nhint: give an `out` of float"),
        (lambda: ol.square([0.5], dtype=int), TypeError, "^`square` expected numbers that int64 has, .*\nhint: `casting=\"unsafe\"`"),
        (lambda: ol.square(A, casting="no"), ValueError, "^`square` expected `same_kind` or `unsafe` for `casting`, found `no`\nhint"),
        (lambda: ol.square(A, where=A > 1), TypeError, "^`square` expected `out` beside `where`, found none\nhint: `oarlock.where"),
        (lambda: ol.max(A, where=U), ValueError, "^`max` expected a number for `initial` beside `where`, found none\nhint: "),
        (lambda: ol.copy(A, order="F"), TypeError, "^`copy` expected `C` or `K` or `A` for `order`, found `F`\nhint: leave"),
        (lambda: ol.array(A, order="F"), TypeError, "^`array` expected .* for `order`, found `F`\nhint: leave"),
        (lambda: ol.reshape(A, -1, order="X"), ValueError, "^`reshape` expected `C` .* or `F` .* for `order`, found 'X'"),
        (lambda: ol.nan_to_num(N, copy=False), TypeError, "^`nan_to_num` expected `True` for `copy`, found `False`\nhint: assign"),
        (lambda: ol.mean(A, kind="stable"), TypeError, "^`mean` expected no keyword but .*, found `kind`\nhint: call it as"),
        (lambda: ol.median(A, method="lower"), TypeError, "^`median` expected no keyword but .*, found `method`\nhint: call it as"),
        (lambda: ol.cov(A, fweights=[1, 2]), ValueError, r"^`cov` expected a weight for each of 3 observations, found the shape \(2,\)"),
        (lambda: ol.cov(A, aweights=[1, 2, -1]), ValueError, "^`cov` expected weights of at least 0, found some below"),
        (lambda: ol.polyfit([1, 2], [3, 4], 1, w=[1]), ValueError, "^`polyfit` expected a weight for each of 2 points, found"),
        (lambda: ol.polyfit([1, 2], [3, 4], 1, full=True), TypeError, "^`polyfit` expected `False` for `full`, found `True`\nhint: "),
        (lambda: ol.linalg.svd(A, compute_uv=False), TypeError, "^`svd` expected `True` .*\nhint: `oarlock.linalg.svdvals`"),
        (lambda: ol.quantile(A, 0.5, weights=[1]), TypeError, "^`quantile` expected no `weights`, found list\nhint: "),
        (lambda: ol.linalg.matrix_rank(A, tol=1e-3), TypeError, "^`matrix_rank` expected no `tol`, found `0.001`\nhint: give"),
        (lambda: ol.take(A, [0], mode="other"), ValueError, "^`take` expected `raise`, `wrap` or `clip` for `mode`, found `other`"),
        (lambda: ol.linalg.eigh(A @ A.T, UPLO="x"), ValueError, "^`eigh` expected `L` .* for `UPLO`, found `x`"),
        (lambda: ol.linalg.qr(A, mode="raw"), ValueError, "^`qr` expected `reduced`, `complete` or `r` .*\nhint: `scipy.linalg.lapack`"),
        (lambda: ol.tile(reps=2), TypeError, r"^`tile` expected other arguments, found 0 .* `repetitions`\nhint: call it as"),
        (lambda: ol.clip(A, 1, 2, a_min=2), TypeError, "^`clip` expected other arguments, found 3 without a keyword, `min`\nhint: "),
        (lambda: ol.linspace(0, 1, stop=3), TypeError, "^`linspace` expected .*`stop`\nhint: "),
    ],
)
def test_a_keyword_that_cannot_work_is_told(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("name", ["cbrt", "deg2rad", "exp2", "positive", "rad2deg", "square", "fmax", "fmod", "heaviside", "clip"])
@pytest.mark.parametrize(
    "options",
    [
        {"out": "float64"},
        {"out": ("float64",)},
        {"out": "float32"},
        {"out": "int64", "casting": "unsafe"},
        {"out": "float64", "where": [True, False, True]},
        {"dtype": "float32"},
        {"dtype": "int32", "casting": "unsafe", "subok": False},
        {"dtype": "float64", "out": "float32"},
    ],
)
def test_elementwise_functions_have_the_keywords_of_numpy(name, options):
    if options.get("dtype") == "int32" and name in ("cbrt", "deg2rad", "exp2", "rad2deg", "heaviside"):
        pytest.skip("NumPy has it for fractions only")
    given = [[1.5, 4.0, 2.5]] + {"fmax": [2.0], "fmod": [2.0], "heaviside": [0.5], "clip": [2.0, 3.0]}.get(name, [])
    results = []
    for module in (np, ol):
        named, out = dict(options), None
        if "out" in named:
            is_tuple = isinstance(named["out"], tuple)
            out = module.asarray(np.full(3, 9, named["out"][0] if is_tuple else named["out"]))
            named["out"] = (out,) if is_tuple else out
        if "where" in named:
            named["where"] = module.asarray(named["where"])
        found = getattr(module, name)(module.asarray(np.asarray(given[0])), *given[1:], **named)
        assert out is None or found is out
        results.append(np.asarray(found))
    expected, found = results
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_reductions_make_goes_to_an_array():
    for name, shape in [("sum", 3), ("max", 3), ("mean", 3), ("cumsum", (2, 3))]:
        out, expected = ol.ones(shape, dtype=ol.float64), np.ones(shape)
        x = np.array([[1.0, 2.0, 4.0], [3.0, 0.0, 5.0]])
        assert getattr(ol, name)(ol.asarray(x), axis=0, out=out) is out
        getattr(np, name)(x, axis=0, out=expected)
        assert out.tolist() == expected.tolist()


def test_what_is_written_to_a_view_of_all_elements_is_not_written_to_the_array():
    x = ol.asarray([1.0, 2.0])
    y = x.view()
    y[0] = 9
    assert x.tolist() == [1, 2] and y.tolist() == [9, 2] and y is not x


def test_what_keywords_make_is_on_the_device_of_the_array():
    for device in ol.devices():
        x = ol.asarray(A, device=device)
        for made in [ol.sum(x, where=U, initial=1), ol.max(x, initial=9), ol.linspace(x, 3, 2), ol.var(x, where=U)]:
            assert made.device == device


def test_elementwise_functions_write_to_an_output() -> None:
    x, out = ol.asarray([1.0, 4.0, 9.0]), ol.zeros(3)
    assert ol.sqrt(x, out=out) is out
    assert out.tolist() == [1.0, 2.0, 3.0]
    assert ol.add(x, 1, out) is out
    assert out.tolist() == [2.0, 5.0, 10.0]
    assert ol.isfinite(x, out=(truths := ol.zeros(3, dtype=ol.bool))) is truths
    assert ol.matmul(ol.eye(3), x, out=out) is out
    assert out.tolist() == [1.0, 4.0, 9.0]
    ol.negative(x, out, where=x > 1)
    assert out.tolist() == [1.0, -4.0, -9.0]
    ol.multiply(x, 2, out=x)
    assert x.tolist() == [2.0, 8.0, 18.0]
    assert ol.add([1, 2], 3, dtype=ol.float64).dtype == ol.float64
    with pytest.raises(TypeError, match="`exp` expected `out`, `where`, `dtype` or `casting` as keyword, found `base`"):
        ol.exp(x, base=2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"`sqrt` expected an `out` of the shape \(3,\), found \(2,\)"):
        ol.sqrt(x, out=ol.zeros(2))


def test_item_takes_a_place() -> None:
    x = ol.asarray([[1, 2], [3, 4]])
    assert [x.item(3), x.item(-1), x.item(1, 0), x.item((0, 1))] == [4, 4, 3, 2]
    with pytest.raises(IndexError, match="expected an index of -4 to before 4"):
        x.item(4)
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: ol.triu(A, diagonal=1), np.triu(A, 1)),
        (lambda: ol.asarray(A).tril(diagonal=-1), np.tril(A, -1)),
        (lambda: ol.diag(A, diagonal=1), np.diag(A, 1)),
        (lambda: ol.roll(A, shifts=1, dims=0), np.roll(A, 1, 0)),
        (lambda: ol.arange(start=1, end=4), np.arange(1, 4)),
        (lambda: ol.linspace(0, 1, steps=3), np.linspace(0, 1, 3)),
        (lambda: ol.transpose(A, perm=[1, 0]), A.T),
        (lambda: ol.tile(A, repeat_times=[2, 1]), np.tile(A, (2, 1))),
        (lambda: ol.flatten([A], start_axis=1), A.reshape(1, 6)),
        (lambda: ol.flatten([A], start_axis=0, stop_axis=1), A),
    ],
)
def test_keywords_of_pytorch_and_paddle_are_those_of_the_functions_here(call, expected):
    np.testing.assert_array_equal(call(), expected)
