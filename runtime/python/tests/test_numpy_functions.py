"""Functions that NumPy has, with NumPy's results as the truth. Each expression is computed by both, and by Oarlock once more with
lists and with arrays of NumPy in place of its own."""

import re

import numpy as np
import oarlock as ol
import pytest

generator = np.random.default_rng(11)
NAN, INF = np.nan, np.inf

OPERANDS = {
    "A": generator.integers(-9, 9, (3, 4)),
    "B": generator.integers(-9, 9, (3, 4)),
    "C": generator.standard_normal((3, 4)) + 1j * generator.standard_normal((3, 4)),
    "D": generator.standard_normal(6) + 1j * generator.standard_normal(6),
    "E": np.zeros((0, 3)),
    "F": generator.standard_normal((3, 4)),
    "G": generator.standard_normal((4, 3)),
    "H": generator.standard_normal((2, 3, 4)),
    "I": np.array([3, 1, 2, 3, 0, 1, 7]),
    "J": np.array([1, 3, 3, 5]),
    "N": np.array([[1.0, NAN, 3.0, -2.0], [NAN, NAN, NAN, NAN], [0.5, -INF, INF, 2.0]]),
    "P": np.array([[1.0, NAN, 3.0, -2.0], [4.0, NAN, 0.0, 7.0]]),
    "O": np.ones((2, 3)),
    "S": generator.standard_normal((4, 4)),
    "T": np.array([[True, False, True, True], [False, False, True, False], [True, True, True, True]]),
    "U": np.array([True, False, True]),
    "V": generator.standard_normal(7),
    "W": generator.standard_normal(5),
    "X": np.array([0.0, -0.0, 1.0, -1.5, 2.5, 100.0, INF, -INF, NAN]),
    "Y": np.array([1.5, 2.0, -3.0, 0.5, 2.5, -7.0, 1.0, 2.0, 3.0]),
    "Z": np.array(2.5),
}  # fmt: skip

EXPRESSIONS = """
m.vstack([F, F]) | m.vstack([V, V]) | m.vstack([A, F]) | m.hstack([F, A]) | m.hstack([V, W]) | m.dstack([F, A])
m.dstack([V, V])
m.column_stack([V, V]) | m.column_stack([G, S]) | m.concatenate([F, A], 1) | m.concatenate([F, V], None) | m.stack([F, A], 1)
m.append(F, A) | m.append(F, A, 0) | m.append(V, 3.0) | m.concat([F, A], axis=-1)
m.split(F, 2, 1) | m.split(V, [2, 5]) | m.array_split(V, 3) | m.array_split(F, 3, axis=1) | m.array_split(V, [1, 1, 9])
m.hsplit(F, 2) | m.hsplit(V, [3]) | m.vsplit(F, 3) | m.dsplit(H, 2) | m.array_split(V, 9)
m.transpose(H) | m.transpose(H, (1, 2, 0)) | m.swapaxes(H, 0, -1) | m.ravel(H) | m.ravel(Z) | m.atleast_1d(Z) | m.atleast_2d(V)
m.atleast_3d(V)
m.atleast_3d(F) | m.atleast_3d(H) | m.atleast_1d(Z, V) | m.rot90(F) | m.rot90(F, 2) | m.rot90(F, -1) | m.rot90(H, 5, (1, 2))
m.fliplr(F) | m.flipud(V)
m.shape(H) | m.ndim(F) | m.size(H) | m.size(H, 1) | m.squeeze(m.expand_dims(F, (0, 2))) | m.expand_dims(F, 1) | m.flip(F, 0)
m.flip(F)
m.repeat(F, 2, 0) | m.repeat(I, 2) | m.repeat(I, I) | m.tile(F, (2, 1)) | m.roll(F, 1, 0) | m.moveaxis(H, 0, 2)
m.broadcast_to(V, (2, 7))
m.dot(V, V) | m.dot(F, G) | m.dot(F, 2.0) | m.dot(H, G) | m.dot(H, m.ones(4)) | m.dot(F, m.ones(4)) | m.dot(Z, F)
m.vdot(D, D) | m.vdot(F, F)
m.inner(V, V) | m.inner(F, F) | m.inner(H, F) | m.inner(F, 3) | m.outer(V, W) | m.outer(A, V) | m.outer(D, V) | m.kron(F, O)
m.kron(V, F) | m.kron(H, O) | m.kron(A, 2)
m.cross([1.0, 2.0, 3.0], G) | m.tensordot(F, G, 1) | m.tensordot(H, H, ([0, 1], [0, 1]))
m.trace(S) | m.trace(A, 1) | m.trace(H) | m.trace(H, 0, 1, 2) | m.diagonal(F) | m.diagonal(H, -1) | m.diagonal(H, 1, 2, 0)
m.diag(V) | m.diag(V, 2) | m.diag(V, -3)
m.diag(F) | m.diag(F, -1) | m.diag(D, 1) | m.diag(T) | m.diag(U) | m.diagflat(F, 1) | m.diag(F, 9) | m.diag(I, 1)
m.diag(m.ones(0), 2) | m.diagonal(F, 4) | m.tril(F, -1) | m.triu(F, 1)
m.einsum("ij,jk->ik", F, G) | m.einsum("ij,jk", F, G) | m.einsum("ii", S) | m.einsum("ii->i", S) | m.einsum("ij->ji", F)
m.einsum("ij", F) | m.einsum("ba", F)
m.einsum("i,i", V, V) | m.einsum("i,j->ij", V, W) | m.einsum("...j,jk->...k", H, G) | m.einsum("...ij->...ji", H)
m.einsum("ij,ij->i", F, F) | m.einsum("ijk->", H)
m.einsum("aij,bij->ab", H, H) | m.einsum("ij,jk,kl->il", F, G, F) | m.einsum("i...->...", H) | m.einsum("ij,kj", C, C)
m.einsum("i,->i", V, 2.0) | m.einsum("bij,bjk->bik", H, m.ones((1, 4, 2)))
m.einsum("...,...", H, F) | m.einsum("ij , jk -> ki", F, G) | m.einsum("iij->j", m.ones((3, 3, 2))) | m.einsum("ij,ij", T, T)
m.einsum("ijk,k->ij", A[None] if hasattr(A, "ndim") else [A], m.ones(4)) | m.einsum("i,i,i->i", V, V, V)
m.median(F) | m.median(F, 0) | m.median(H, (0, 2)) | m.median(F, 1, keepdims=True) | m.median(A) | m.median(I) | m.median(N, 1)
m.median(T.astype(float) if hasattr(T, "astype") else [[1.0, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 1]], 0) | m.median(V)
m.quantile(F, 0.3) | m.quantile(F, [0.1, 0.5, 1.0], 0) | m.quantile(H, 0.25, (0, 1))
m.quantile(F, [[0.1, 0.2]], axis=1, keepdims=True) | m.quantile(P, 0.5, 0) | m.quantile(A, 0.4, 1) | m.quantile(I, 0.0)
m.quantile(F, 0.3, method="lower") | m.quantile(F, 0.3, 0, method="higher") | m.quantile(F, 0.4, method="nearest")
m.quantile(F, 0.4, method="midpoint") | m.quantile(V, [0.25, 0.75], method="nearest")
m.quantile(W, [0.125, 0.375, 0.625, 0.875], method="nearest")
m.percentile(F, 30) | m.percentile(F, [25, 50, 75], 1) | m.percentile(I, 40) | m.percentile(V, 100)
m.nanmedian(P, 1) | m.nanmedian(N) | m.nanmedian(P) | m.nanmedian(I) | m.nanquantile(P, [0.2, 0.7], 1)
m.nanpercentile(P, 30, keepdims=True)
m.nansum(N) | m.nansum(N, 0) | m.nansum(A, 1) | m.nanprod(P, 1) | m.nanmean(P) | m.nanmean(P, 1) | m.nanmean(A, 0)
m.nanmax(N) | m.nanmax(N, 0) | m.nanmax(A) | m.nanmin(P, 1) | m.nanmin(N, 1, keepdims=True)
m.nanvar(P) | m.nanvar(P, 1, ddof=1) | m.nanstd(P, 1) | m.nanstd(F, 0) | m.nancumsum(P) | m.nancumsum(P, 1)
m.nancumprod(P, 0) | m.nanargmax(P) | m.nanargmin(P, 1) | m.nanargmax(A, 0)
m.average(F) | m.average(F, 0) | m.average(F, 1, [1, 2, 3, 4]) | m.average(H, (0, 2), m.ones((2, 4)))
m.average(I, weights=I, returned=True) | m.average(F, 0, returned=True)
m.ptp(F) | m.ptp(F, 0) | m.ptp(A, 1, keepdims=True) | m.cov(F) | m.cov(F, rowvar=False) | m.cov(V, V) | m.cov(F, ddof=0)
m.cov(F, bias=True) | m.cov(V) | m.cov(C) | m.corrcoef(F) | m.corrcoef(V, V) | m.corrcoef(V)
m.histogram(F) | m.histogram(I, 4) | m.histogram(A, 5, (-5, 5)) | m.histogram(V, [-1.0, 0.0, 0.5, 2.0])
m.histogram(F, 3, density=True) | m.histogram(m.ones(3), 2) | m.histogram_bin_edges(I, 3) | m.histogram(m.ones(0))
m.histogram2d(V, V, 3) | m.histogram2d(V, I, [2, 3]) | m.histogram2d(V, I, [2, [0, 2, 4, 8]], density=True)
m.histogram2d(V, V, 2, [[-1, 1], [-2, 2]]) | m.histogram(F, "auto") | m.histogram_bin_edges(V, bins="scott")
m.bincount(I) | m.bincount(I, minlength=12) | m.bincount(I, V) | m.bincount(m.ones(0, dtype="int64"))
m.digitize(V, [-1.0, 0.0, 1.0]) | m.digitize(I, [1, 3, 5], right=True) | m.digitize(I, [5, 3, 1])
m.digitize(I, [5, 3, 1], True)
m.partition(V, 3)[3] | m.argsort(V) | m.sort(F, 0) | m.sort(F, None) | m.argsort(F, axis=None) | m.searchsorted(J, I)
m.searchsorted(J, I, "right") | m.searchsorted(J, 3)
m.cumsum(F) | m.cumsum(F, 1) | m.cumprod(A, 0) | m.cumsum(A) | m.cumprod(V) | m.diff(V) | m.diff(F, 2) | m.diff(F, 1, 0)
m.diff(V, prepend=1.0, append=[2.0, 3.0])
m.allclose(F, F) | m.allclose(F, 1.0) | m.allclose(N, N) | m.allclose(N, N, equal_nan=True) | m.isclose(X, X)
m.isclose(X, X[::-1]) | m.isclose(X, 1.0, atol=2) | m.isclose(C, C) | m.isclose(I, I) | m.isclose(X, X, equal_nan=True)
m.array_equal(F, F) | m.array_equal(F, V) | m.array_equal(N, N) | m.array_equal(N, N, equal_nan=True) | m.array_equal(A, B)
m.array_equiv(O, m.ones(3)) | m.array_equiv(F, V)
m.nan_to_num(X, nan=1.0, posinf=5.0, neginf=-5.0) | m.nan_to_num(A) | m.nan_to_num(C) | m.isneginf(X) | m.isposinf(X)
m.iscomplexobj(C) | m.isrealobj(F) | m.iscomplexobj(A) | m.iscomplex(C) | m.isreal(F) | m.isscalar(3.0) | m.isscalar(F)
m.pad(F, 2) | m.pad(F, (1, 2)) | m.pad(F, ((1, 0), (0, 3)), constant_values=7) | m.pad(A, 1, "edge")
m.pad(F, ((1, 2), (3, 0)), mode="reflect") | m.pad(V, 20, "reflect") | m.pad(V, (9, 17), "wrap") | m.pad(V, 20, "symmetric")
m.pad(F, 1, "symmetric") | m.pad(F, 2, "linear_ramp", end_values=3) | m.pad(F, {0: 1}, "mean", stat_length=2) | m.pad(I, 2, "median")
m.pad(F, ((1, 1), (2, 2)), constant_values=((1, 2), (3, 4))) | m.pad(m.ones(1), 3, "reflect") | m.pad(T, 1)
m.pad(C, 1, "wrap") | m.pad(H, ((1,), (0,), (2,)))
m.interp([0.5, 1.5, -1, 9, 3], J[[0, 1, 3]] if hasattr(J, "ndim") else [1, 3, 5], [1.0, -2.0, 4.0])
m.interp(V, [-1.0, 0.0, 1.0], [1.0, 2.0, 0.0], left=-9, right=9) | m.interp(1.5, [1.0], [3.0])
m.interp(X, [0.0, 1.0, 3.0], [0.0, 10.0, 20.0])
m.interp([-10.0, 5, 370], [190.0, -190, 350, -350], [5.0, 10, 3, 4], period=360) | m.interp(F, [-1.0, 1.0], [2.0, 3.0])
m.gradient(V) | m.gradient(F) | m.gradient(F, axis=0) | m.gradient(V, 2.0) | m.gradient(V, [0.0, 1, 3, 4, 7, 8, 9])
m.gradient(F, 2.0, 3.0) | m.gradient(V, edge_order=2) | m.gradient(V, [0.0, 1, 3, 4, 7, 8, 9], edge_order=2)
m.gradient(H, axis=(1, 2)) | m.gradient(F, axis=1, edge_order=2)
m.trapezoid(V) | m.trapezoid(F, dx=2.0) | m.trapezoid(F, [0.0, 1, 3, 4]) | m.trapezoid(F, axis=0) | m.trapezoid(F, F)
m.trapezoid(H, [0.0, 1.0, 3.0], axis=1)
m.convolve(V, W) | m.convolve(V, W, "same") | m.convolve(V, W, "valid") | m.convolve(W, V, "same") | m.convolve(I, J)
m.convolve(D, V) | m.convolve(V, [1.0, 2.0], "same") | m.convolve(I, [1, 2, 3], "same") | m.convolve(V, 2.0)
m.correlate(V, W) | m.correlate(V, W, "full") | m.correlate(W, V, "same") | m.correlate(W, V, "full")
m.correlate(D, D, "full") | m.correlate(I, J, "same") | m.correlate(V, [1.0, 2.0], "same")
m.polyval([1.0, 2.0, 3.0], F) | m.polyval(V, 0.5) | m.polyval(J, I)
m.polyfit(W, W * W if hasattr(W, "ndim") else [w * w for w in W], 2) | m.polyfit(V, V, 1)
m.fmod(X, Y) | m.fmod(A, 4) | m.fmod(A, -4) | m.fmax(X, Y) | m.fmin(X, 1.0) | m.fmax(A, B)
m.fmin(N, N[::-1] if hasattr(N, "ndim") else N[::-1]) | m.float_power(A, 2) | m.cbrt(X) | m.cbrt(F) | m.exp2(X) | m.exp2(A)
m.sinc(X) | m.sinc(F)
m.heaviside(X, 0.5) | m.heaviside(A, 2.0) | m.deg2rad(X) | m.rad2deg(F) | m.degrees(A) | m.radians(180.0) | m.angle(C)
m.angle(F) | m.angle(C, deg=True) | m.round(F, 2) | m.round(A, -1) | m.round(F, -1) | m.round(C, 1) | m.around(F)
m.max(F, 0) | m.amax(F) | m.amin(F, 1) | m.sum(F, 0) | m.mean(F, -1) | m.std(F, 0, ddof=1) | m.var(A, 1) | m.prod(A, 1)
m.any(T, 0) | m.all(T, 1) | m.argmax(F, 1) | m.argmin(F) | m.clip(F, -0.5, 0.5) | m.clip(F, a_min=0, a_max=None)
m.count_nonzero(A, 1) | m.sum([1, 2]) | m.clip(F, A, None)
m.identity(3) | m.logspace(0, 3, 7) | m.logspace(1, 2, 4, endpoint=False, base=2.0) | m.geomspace(1, 1000, 4)
m.geomspace(-8.0, -1.0, 4) | m.tri(3) | m.tri(3, 4, 1) | m.vander(W) | m.vander(W, 3) | m.vander(I, 2, increasing=True)
m.indices((2, 3)) | m.indices((2, 3), sparse=True) | m.indices(())
m.fromfunction(lambda i, j: i * 2 + j, (3, 4)) | m.zeros((2, 3)) | m.ones(3, dtype=float) | m.full((2, 2), 7.5)
m.eye(3, 4, 1) | m.linspace(0, 1) | m.zeros_like(F) | m.full_like(A, 3) | m.empty_like(F).shape | m.arange(5)
m.meshgrid(V, W) | m.broadcast_arrays(Z, V)
m.argwhere(T) | m.argwhere(A) | m.argwhere(Z) | m.flatnonzero(T) | m.compress(U, F, 0) | m.compress([True, False, True], V)
m.extract(T, F) | m.choose([0, 1, 2, 1], F) | m.choose([[0, 1]], [I[:1] if hasattr(I, "ndim") else I[:1], 5])
m.choose([-1, 7, 1, 0], F, mode="wrap") | m.choose([-1, 7, 1, 0], F, mode="clip")
m.select([T], [A], default=-1) | m.where(T) | m.where(T, F, A) | m.where(T, F, 0.0) | m.where([True, False], [1, 2], [3, 4])
m.where(U[:, None] if hasattr(U, "ndim") else [[u] for u in U], F, 1)
m.lexsort((I, I[::-1])) | m.lexsort((V, I)) | m.lexsort(A) | m.ix_([0, 2], [1, 3]) | m.ix_(U, I)
m.unravel_index([1, 5, 11], (3, 4)) | m.unravel_index(7, (2, 3, 4)) | m.ravel_multi_index(([0, 2], [1, 3]), (3, 4))
m.nonzero(A) | m.take(F, [0, 2], 1) | m.take(V, [[1, 2], [0, -1]]) | m.take_along_axis(F, m.argsort(F, axis=1), 1)
m.apply_along_axis(lambda v: v.sum(), 0, F) | m.apply_along_axis(lambda v: v * 2, 1, F)
m.apply_along_axis(lambda v: m.outer(v, v), 1, H) | m.apply_along_axis(lambda v: v[:2], 0, F)
m.insert(V, 2, 9.0) | m.insert(V, [1, 3], [8.0, 9.0]) | m.insert(F, 1, 5.0, 1) | m.insert(F, 1, [1.0, 2.0, 3.0], axis=1)
m.insert(F, [0, -1], 7, 0) | m.insert(F, 1, [[1.0], [2.0], [3.0]], axis=1) | m.insert(F, [1], [[1.0], [2.0], [3.0]], axis=1)
m.insert(V, slice(1, 6, 2), 0) | m.insert(V, [2, 2], [1, 2]) | m.insert(V, -1, 3.0) | m.insert(V, 7, [1.0, 2.0])
m.delete(V, 2) | m.delete(V, [0, -1]) | m.delete(F, 1, 0) | m.delete(F, slice(None, None, 2), 1)
m.delete(V, U.tolist() + [False] * 4 if hasattr(U, "ndim") else [*U] + [False] * 4) | m.delete(F, [])
m.trim_zeros([0, 0, 1, 0, 2, 0]) | m.trim_zeros([0, 0, 1, 0], "f") | m.trim_zeros([0.0, 1, 0], "b") | m.trim_zeros(m.zeros(2))
m.unique(I) | m.unique(I, return_index=True, return_inverse=True, return_counts=True) | m.unique(A, return_counts=True)
m.unique(X) | m.unique(m.stack([F, A, F]), axis=0) | m.unique(T) | m.unique(D)
m.union1d(I, J) | m.intersect1d(I, J) | m.intersect1d(I, J, return_indices=True) | m.setdiff1d(I, J) | m.setxor1d(I, J)
m.isin(A, [1, 2, 3]) | m.isin(I, m.arange(40) * 3) | m.isin(V, V[1:3]) | m.isin(I, 3) | m.isin(I, J, invert=True)
m.isin(X, m.concatenate([X, X, X]))
m.linalg.norm(F) | m.linalg.norm(V, 3) | m.linalg.norm(V, INF) | m.linalg.norm(F, 1) | m.linalg.norm(F, -INF)
m.linalg.norm(F, 2) | m.linalg.norm(F, "nuc") | m.linalg.norm(F, "fro") | m.linalg.norm(H, axis=1)
m.linalg.norm(H, 2, (0, 2)) | m.linalg.norm(H, 1, (2, 0), keepdims=True) | m.linalg.norm(H) | m.linalg.norm(V, 0)
m.linalg.norm(C) | m.linalg.norm(F, keepdims=True) | m.linalg.norm(V, -2, keepdims=True)
m.linalg.matrix_power(S, 3) | m.linalg.inv(S) | m.linalg.det(S) | m.linalg.solve(S, G) | m.linalg.qr(F)[1].shape
m.linalg.svdvals(F) | m.linalg.pinv(F) | m.linalg.matrix_rank(F) | m.linalg.outer(V, W) | m.linalg.trace(H)
m.linalg.cross([1.0, 0, 2], [3.0, 1, 1])
m.linalg.lstsq(G, m.ones(4))[:2] | m.linalg.lstsq(G, S)[0] | m.linalg.lstsq(F, m.ones(3))[0] | m.linalg.lstsq(A, [1, 2, 3])[3]
m.linalg.lstsq(m.ones((4, 2)), V[:4])[:2] | int(m.linalg.lstsq(m.ones((4, 2)), V[:4])[2]) | m.linalg.cond(S)
m.linalg.cond(S, 1) | m.linalg.cond(F) | m.linalg.cond(S, -2) | m.linalg.cond(S, "fro")
m.fft.fft(V) | m.fft.ifft(D, 4) | m.fft.rfft(F, 3, 0) | m.fft.fftfreq(5, 0.1) | m.fft.fftshift(V) | m.fft.fftn(F)
m.copy(F) | m.ascontiguousarray(Z) | m.array([[1, 2], [3, 4]]) | m.array(F) | m.asarray(V) | m.square(A) | m.positive(F)
m.matrix_transpose(F) | m.permute_dims(H, (2, 0, 1)) if m is np else m.permute_dims(m.asarray(H), (2, 0, 1)) | m.vecdot(F, F)
m.unstack(F) | m.cumulative_sum(V) | m.astype(m.asarray(A), m.float64)
m.matmul(F, G) | m.average(F, weights=m.abs(F)) | m.histogram(V, 4, weights=m.abs(V)) | m.rint(X) | m.fix(X) | m.absolute(A)
m.mod(A, 4) | m.power(F, 2) | m.true_divide(A, 3) | m.arcsin(m.tanh(F)) | m.arccos(m.tanh(F)) | m.arctan(F) | m.arctan2(F, B)
m.arcsinh(F) | m.arccosh(m.exp(m.abs(F))) | m.arctanh(m.tanh(F)) | m.conjugate(C) | m.invert(A) | m.bitwise_not(T)
m.left_shift(A, 2) | m.right_shift(A, 1) | m.select([T, m.less(F, 0)], [F, A])
m.piecewise(V, [m.less(V, 0), m.greater_equal(V, 1)], [-1, lambda x: x * 2, 5.0])
m.piecewise(V, [m.less(V, 0)], [lambda v: -v])
m.atan(F) | m.asinh(F) | m.ceil(F) | m.cos(F) | m.cosh(F) | m.expm1(F) | m.floor(F) | m.isfinite(F) | m.isinf(F) | m.isnan(F)
m.negative(F) | m.sign(F) | m.signbit(F) | m.sin(F) | m.sinh(F) | m.tan(F) | m.trunc(F) | m.real(F) | m.imag(F) | m.conj(F)
m.reciprocal(F) | m.log(m.exp(F)) | m.log10(m.exp(F)) | m.log1p(m.exp(F)) | m.log2(m.exp(F)) | m.sqrt(m.exp(F))
m.acosh(m.cosh(F)) | m.acos(m.tanh(F)) | m.asin(m.tanh(F)) | m.atanh(m.tanh(F)) | m.conj(C) | m.real(C) | m.imag(C)
m.bitwise_invert(A) | m.logical_not(T) | m.add(F, B) | m.subtract(F, B) | m.multiply(F, B) | m.divide(B, m.exp(F))
m.maximum(F, B) | m.minimum(F, B) | m.greater(F, B) | m.less_equal(F, B) | m.equal(F, B) | m.not_equal(F, B) | m.copysign(F, B)
m.hypot(F, B) | m.logaddexp(F, B) | m.atan2(F, B) | m.floor_divide(B, 4) | m.remainder(A, 5) | m.nextafter(I, 9.0).shape
m.pow(m.exp(F), B) | m.bitwise_and(A, B) | m.bitwise_or(A, B) | m.bitwise_xor(A, B) | m.bitwise_left_shift(A, 3)
m.bitwise_right_shift(A, 2) | m.logical_and(T, T) | m.logical_or(T, T) | m.logical_xor(T, T) | m.reshape(F, (4, 3))
m.min(F, 1) | m.ones_like(F) | m.cumulative_prod(V) | m.sort(m.unique_values(I)) | m.unique_counts(I) | m.unique_inverse(I)
m.unique_all(I) | m.linalg.cholesky(m.eye(3) * 4.0) | m.linalg.diagonal(H) | m.linalg.eigvalsh(m.eye(3))
m.linalg.eigh(m.eye(3))[0] | m.linalg.matmul(F, G) | m.linalg.matrix_norm(F) | m.linalg.matrix_transpose(F)
m.linalg.slogdet(S) | m.linalg.svd(F)[1] | m.linalg.tensordot(F, G, axes=1) | m.linalg.vecdot(F, F) | m.linalg.vector_norm(F)
m.fft.hfft(D) | m.fft.ifftn(C) | m.fft.ifftshift(V) | m.fft.ihfft(V) | m.fft.irfft(D) | m.fft.irfftn(C) | m.fft.rfftfreq(5)
m.fft.rfftn(F) | m.fft.fft2(H) | m.fft.ifft2(C, axes=(1, 0)) | m.fft.rfft2(F, (5, 3)) | m.fft.irfft2(C) | m.fft.irfft2(C, s=(3, 5))
m.bartlett(6) | m.blackman(7) | m.hamming(8) | m.hanning(9) | m.bartlett(1) | m.blackman(1) | m.hamming(0) | m.hanning(2)
m.block([[m.eye(2), m.zeros((2, 1))], [m.ones((1, 3))]]) | m.block(V)
m.block([[1, 2.5]]) | m.divmod(A, 4) | m.divmod(F, 2) | m.modf(F) | m.modf(X) | m.modf(A) | m.fabs(A)
m.ediff1d(V) | m.ediff1d(F, to_end=[7, 8], to_begin=-1) | m.unwrap(3 * m.cumsum(V)) | m.unwrap(m.multiply(F, 9), axis=0)
m.unwrap(V, 4.0)
m.unwrap([0, 90, 270, 0, 180, 0], period=360) | m.unwrap([0, 3, 6, 2, 5, 1], period=7) | m.unwrap(F, period=0.5)
m.polyadd(V, W) | m.polysub(J, 3) | m.polymul(V, W) | m.polyder(V) | m.polyder(I, 2) | m.polyder(W, 9) | m.polyint(V)
m.polyint(J, 2, [3, 4])
m.polyint(W, 3, k=1) | m.polyint(W, 0) | m.sort(m.roots([2.0, -3, -11, 6])) | m.roots([0, 2, 4, 0, 0]) | m.roots([5.0])
m.roots([0, 0])
m.sort(m.abs(m.roots(W))) | m.roots([1, 0, 1]).imag.sum() | m.diag_indices(3) | m.diag_indices(2, 3) | m.tril_indices(3)
m.tril_indices(3, 1, 4)
m.tril_indices(4, -1, 2) | m.triu_indices(3) | m.triu_indices(3, -1, 4) | m.triu_indices(4, 1, 2) | m.tril_indices_from(F)
m.tril_indices_from(S, -1) | m.triu_indices_from(F, 1) | m.triu_indices_from(G) | list(m.ndindex(2, 3)) | list(m.ndindex((2, 0)))
m.mgrid[0:2, 0:3] | m.mgrid[-1:1:5j] | m.mgrid[2:9:3] | m.mgrid[-1:2, 0:1:3j] | m.mgrid[:3, 1:2:0.5] | m.ogrid[0:2, 0:3]
m.ogrid[0:1:4j]
m.ogrid[-1:1:5j, 0:2] | m.c_[V, V] | m.c_[m.asarray(F), A] | m.c_[m.ones((3, 1)), F] | m.c_[1, 2] | m.c_[0:3, U] | m.r_[V, W]
m.r_[0, 2:5, [7, 8]]
m.r_[F, A] | m.r_[-1:1:5j, 2.5] | m.r_[V] | m.asarray(F)[m.s_[1:, ::2]] | m.s_[3]
list(m.ndindex()) | list(m.ndindex(2)) | list(m.ndenumerate(A)) | list(m.ndenumerate(Z))
m.nanvar(X) | m.nanstd(N, 1) | m.nanvar(N, 0) | m.gradient(P, axis=1) | m.gradient(X[2:7]) | m.gradient(V * 0 + X[2:], m.arange(7))
m.linalg.cond([[1.0, 2.0], [2.0, 4.0]], 1) | m.linalg.cond([[1.0, 2.0], [2.0, 4.0]], "fro") | m.linalg.cond(m.zeros((2, 2)))
m.linalg.cond([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]]], INF) | m.linalg.cond(m.zeros((2, 2)), -2)
m.linalg.cond([[NAN, 0.0], [0.0, 0.0]], 1)
m.linalg.eigvalsh([[1 + 1j, 2j], [-2j, 3 - 1j]]) | m.linalg.eigvalsh([[1 + 1j, 7j], [-2j, 3 - 1j]], UPLO="U")
m.linalg.eigh([[1.0, 9.0], [2.0, 3.0]])[0] | m.linalg.eigh([[1 + 2j, 9j], [2j, 3.0]], "U")[0]
m.linalg.matrix_power(m.asarray([[1e-30, 0.0], [0.0, 1e30]], dtype="float32"), 2) | m.linalg.matrix_power(S, 0) | m.linalg.matrix_power(S, 7)
m.linalg.matrix_power(S, 1)
m.argmax(T) | m.argmin(T, 1) | m.argmax(T, axis=0) | m.where(A, 1, 2) | m.where(X, X, 2.0) | m.where(C, F, A)
"""  # fmt: skip

# The dtype or the shape of a list is not that of the array.
OF_ARRAYS = """
m.nan_to_num(X) | m.pad(E, 1) | m.block([V, 3, W]) | m.block([[V], [2 * m.ones(7)]]) | m.block([[H, H], [H, H]])
m.block([[[A]], [[F]]])
"""

# NumPy has no function of the name, or another one.
OF_OARLOCK = """
m.topk(F, 2) | m.topk(V, 3, largest=False) | m.chunk(V, 3) | m.flatten(H, 1) | m.cat([F, A]) | m.clamp(F, 0, 1)
m.permute(H, (2, 0, 1)) | m.tensor(F) | m.to_tensor(F) | m.unsqueeze(F, 0) | m.argpartition(V, 2) | m.in1d(A, I)
m.partition(F, 1) | m.linalg.eigvals(m.eye(3)) | m.linalg.eig(m.eye(3))[1]
"""

# They take no arrays, or only arrays of Oarlock or of other libraries, write into an array, or read and write files.
APART = """
    __array_namespace_info__ broadcast_shapes can_cast cond copyto devices empty fill_diagonal finfo from_dlpack genfromtxt get_device
    get_flags get_printoptions iinfo isdtype jit load loadtxt op printoptions promote_types put put_along_axis putmask result_type
    run_check save savetxt savez savez_compressed set_device set_flags set_printoptions while_loop
""".split()


def cases(expressions):
    return [each.strip() for line in expressions.strip().splitlines() for each in line.split(" | ")]


def evaluated(expression, module, made):
    names = {name: made(value) for name, value in OPERANDS.items()}
    return eval(expression, {"m": module, "INF": INF, "NAN": NAN, "np": np, "hasattr": hasattr, "int": int} | names)


def agree(found, expected, *, exactly):
    """Checks that results have the same shapes, kinds of dtypes and elements."""
    if isinstance(expected, (tuple, list)) and not isinstance(found, ol.Tensor):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            agree(one, other, exactly=exactly)
        return
    if isinstance(expected, (bool, int)):
        assert type(found) is type(expected) and found == expected
        return
    expected = np.asarray(expected)
    assert isinstance(found, ol.Tensor)
    assert found.shape == expected.shape
    theirs, ours = expected.dtype, np.asarray(found).dtype
    assert ours.kind == theirs.kind
    if exactly:
        assert ours == theirs or theirs in (np.float64, np.complex128)
    tolerance = {"rtol": 1e-11, "atol": 1e-12} if ours in (np.float64, np.complex128) else {"rtol": 2e-4, "atol": 2e-5}
    if ours.kind in "biu" or not exactly:
        tolerance = {"rtol": 2e-3, "atol": 2e-4} if ours.kind in "fc" else {}
    if ours.kind in "fc":
        np.testing.assert_allclose(np.asarray(found), expected, **tolerance)
    else:
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("expression", cases(EXPRESSIONS) + cases(OF_ARRAYS))
def test_the_result_is_that_of_numpy(expression):
    expected = evaluated(expression, np, lambda value: value)
    agree(evaluated(expression, ol, ol.asarray), expected, exactly=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("expression", cases(EXPRESSIONS))
def test_lists_and_arrays_of_numpy_do_as_well(expression):
    expected = evaluated(expression, np, lambda value: value)
    agree(evaluated(expression, ol, lambda value: value), expected, exactly=True)
    agree(evaluated(expression, ol, lambda value: value.tolist()), expected, exactly=False)


@pytest.mark.parametrize("expression", cases(OF_OARLOCK))
def test_what_only_oarlock_has_takes_lists_and_arrays_of_numpy_too(expression):
    found = evaluated(expression, ol, ol.asarray)
    expected = tuple(map(np.asarray, found)) if isinstance(found, tuple) else np.asarray(found)
    agree(evaluated(expression, ol, lambda value: value), expected, exactly=True)
    agree(evaluated(expression, ol, lambda value: value.tolist()), expected, exactly=False)


def test_every_function_of_arrays_is_among_the_expressions():
    names = [name for name in ol.__all__ if callable(getattr(ol, name)) and not isinstance(getattr(ol, name), (type, ol.DType))]
    names += [f"linalg.{name}" for name in ol.linalg.__all__] + [f"fft.{name}" for name in ol.fft.__all__]
    used = set(re.findall(r"\bm\.((?:linalg\.|fft\.)?\w+)", EXPRESSIONS + OF_ARRAYS + OF_OARLOCK))
    assert [name for name in names if name not in used and name not in APART] == []
