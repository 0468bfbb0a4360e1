"""Methods of arrays: those of NumPy, with NumPy's results as the truth, and those of PyTorch."""

import numpy as np
import oarlock as ol
import pytest
from conftest import child, same

A = np.arange(24).reshape(2, 3, 4) % 7 - 3
F = np.linspace(-2, 3, 24).reshape(2, 3, 4)

OF_NUMPY = """
x.all() | x.all(0) | x.any(1) | x.argmax() | x.argmax(1) | x.argmin(axis=-1) | x.argsort(0) | x.clip(-1, 2) | x.clip(0)
x.conj() | x.copy() | x.cumsum() | x.cumsum(1) | x.cumprod(0) | x.diagonal() | x.diagonal(1, 1, 2) | x.trace() | x.flatten()
x.ravel() | x.max() | x.max(0) | x.min(axis=(0, 2)) | x.mean() | x.mean(1) | x.mean(axis=0, keepdims=True) | x.nonzero()
x.prod(2) | x.repeat(2) | x.repeat(2, 1) | x.reshape(-1) | x.reshape(4, 6) | x.reshape((3, -1)) | x.round() | x.round(1)
x.squeeze() | x.std() | x.std(0, ddof=1) | x.sum() | x.sum(0) | x.sum(axis=(0, 1)) | x.swapaxes(0, 2) | x.take([0, 1], 1)
x.transpose() | x.transpose(2, 0, 1) | x.transpose((1, 0, 2)) | x.var(0) | x.var(1, ddof=1) | x.dot(x[0].T) | x.real | x.imag
x.itemsize | x.tobytes() | x[0, 0].searchsorted(1) | x.compress([True, False], 0)
"""  # fmt: skip


@pytest.mark.parametrize("expression", [each.strip() for line in OF_NUMPY.strip().splitlines() for each in line.split(" | ")])
@pytest.mark.parametrize("operand", [A, F, F.astype(np.float32), A.astype(np.int32)], ids=lambda x: x.dtype.name)
def test_a_method_of_numpy_gives_its_result(expression, operand):
    if "argsort" in expression:
        expected = np.argsort(operand, 0, kind="stable")
    else:
        expected = eval(expression, {"x": operand, "np": np})
    found = eval(expression, {"x": ol.asarray(operand), "np": np})
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    for one, other in zip(found, expected, strict=True):
        if not isinstance(one, ol.Tensor):
            assert one == other
            continue
        assert one.shape == np.shape(other)
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-5, atol=1e-6)


def test_methods_that_write_write_to_the_array_itself():
    x, y = ol.asarray([3.0, 1.0, 2.0]), np.array([3.0, 1.0, 2.0], np.float32)
    assert x.sort() is None and y.sort() is None
    same(x, y)
    assert x.fill(7) is None
    same(x, np.full(3, 7, np.float32))
    for name, arguments, expected in [
        ("fill_", (2,), [2, 2, 2]),
        ("add_", ([1.0, 2.0, 3.0],), [3, 4, 5]),
        ("sub_", (1,), [2, 3, 4]),
        ("mul_", (np.array([1.0, 2.0, 3.0], np.float32),), [2, 6, 12]),
        ("div_", (2,), [1, 3, 6]),
        ("clamp_", (2, 5), [2, 3, 5]),
        ("copy_", ([[9], 9, 9][1:] + [8],), [9, 9, 8]),
        ("zero_", (), [0, 0, 0]),
    ]:
        assert getattr(x, name)(*arguments) is x
        same(x, np.array(expected, np.float32))
    same(x.add_(ol.ones(3), alpha=3), np.full(3, 3, np.float32))
    with pytest.raises(ValueError, match="^`fill_` expected one number to fill with, found an array of the shape"):
        x.fill_([1.0, 2.0])


def test_methods_of_pytorch_do_what_they_do_there():
    x = ol.asarray(F)
    same(x.permute(2, 0, 1), F.transpose(2, 0, 1))
    same(x.transpose(0, 2), F.swapaxes(0, 2))
    same(x.view(4, 6), F.reshape(4, 6))
    same(x.view(-1), F.reshape(-1))
    same(x.float().view(ol.int32), F.astype(np.float32).view(np.int32))
    same(x.unsqueeze(1), F[:, None])
    same(x[:, :1, :1].expand(5, -1, 3, 4), np.broadcast_to(F[:, :1, :1], (5, 2, 3, 4)))
    same(x.sum(dim=1, keepdim=True), F.sum(1, keepdims=True))
    same(x.std(dim=0, unbiased=True), F.std(0, ddof=1))
    same(x.flatten(1), F.reshape(2, 12))
    same(x.masked_fill(x > 0, 0), np.where(F > 0, 0, F))
    same(x.where(x > 0, -1.0), np.where(F > 0, F, -1.0))
    same(x.index_select(2, [0, 3]), F[:, :, [0, 3]])
    index = np.array([[[0, 1], [1, 1]], [[3, 2], [0, 0]]])
    same(x.gather(2, index), np.take_along_axis(F[:, :2], index, 2))
    same(x.gather(1, index[:1, :, :1]), np.take_along_axis(F[:1, :, :1], index[:1, :, :1], 1))
    with pytest.raises(ValueError, match=r"^`gather` expected indices with at most the sizes \(2, 3, 4\) along other axes"):
        x.gather(2, index[:, 0])
    values, places = x.topk(2)
    same(values, F[..., :-3:-1])
    same(places, np.broadcast_to([3, 2], (2, 3, 2)))
    assert [part.shape[2] for part in x.split(3, dim=2)] == [3, 1]
    assert [part.shape[2] for part in x.split([1, 3], 2)] == [1, 3]
    assert [part.shape[2] for part in x.chunk(3, -1)] == [2, 2]
    assert (x.dim(), x.numel(), x.nelement()) == (3, 24, 24)
    assert x.detach() is x and x.contiguous() is x and x.clone() is not x
    same(x.eq(x).all(), np.True_)
    for name in ["ne", "lt", "le", "gt", "ge"]:
        same(getattr(x, name)(1), getattr(F, f"__{name}__")(1))
    np.testing.assert_allclose(float(x.norm()), np.linalg.norm(F))
    np.testing.assert_allclose(np.asarray(x.norm(p=1, dim=-1)), np.abs(F).sum(-1))


def test_methods_of_programs_for_inference_do_what_they_do_in_pytorch():
    x = ol.asarray(F)
    same(x.amax(dim=1, keepdim=True), F.max(1, keepdims=True))
    same(x.amin((0, 2)), F.min((0, 2)))
    same(x[:, :1].expand_as(x), np.broadcast_to(F[:, :1], F.shape))
    same(x.view_as(ol.ones((4, 6))), F.reshape(4, 6))
    same(x.reshape_as(ol.ones(24)), F.reshape(24))
    same(x.type_as(ol.ones(1)), F.astype(np.float32))
    same(x.narrow(1, 1, 2), F[:, 1:3])
    same(x.narrow(-1, -3, 2), F[..., 1:3])
    same(x.repeat_interleave(2, dim=1), F.repeat(2, 1))
    same(x.masked_select(x > 1), F[F > 1])
    same(x.masked_select([True, False, False, True]), F[..., [0, 3]].ravel())
    same(x[0].t(), F[0].T)
    same(x[0, 0].t(), F[0, 0])
    assert [part.shape for part in x.unbind(1)] == [(2, 4)] * 3 and len(x.unbind(dim=-1)) == 4
    assert (x.is_contiguous(), x.is_floating_point(), x.int().is_floating_point(), x.half().element_size()) == (True, True, False, 2)
    np.testing.assert_allclose(x.log_softmax(dim=-1), F - np.log(np.exp(F).sum(-1, keepdims=True)))
    np.testing.assert_allclose(x.logsumexp(dim=(0, 2)), np.log(np.exp(F).sum((0, 2))))
    np.testing.assert_allclose((x * 1000).logsumexp(-1, keepdim=True), F.max(-1, keepdims=True) * 1000)
    ends = ol.asarray([[ol.inf, 0.0], [-ol.inf, -ol.inf], [ol.nan, 1.0], [-ol.inf, 2.0]])
    np.testing.assert_array_equal(ends.logsumexp(1), np.array([np.inf, -np.inf, np.nan, 2], np.float32))
    np.testing.assert_allclose(x.exp().rsqrt(), np.exp(-F / 2))
    np.testing.assert_allclose(ol.asarray([4, 16]).rsqrt(), [0.5, 0.25])
    for call, message in [
        (lambda: x.narrow(1, 2, 2), "^`narrow` expected a part of the 3 elements along axis 1, found 2 from 2 on"),
        (lambda: x.narrow(1, -4, 1), "^`narrow` expected a part of the 3 elements"),
        (lambda: x.t(), r"^`t` expected a matrix or a vector, found the shape \(2, 3, 4\)"),
    ]:
        with pytest.raises((IndexError, ValueError), match=message):
            call()


def test_elements_are_scattered_as_in_pytorch():
    zeros = ol.zeros((3, 5))
    index, source = np.array([[0, 1, 2, 0], [2, 0, 1, 2]]), np.arange(1.0, 11, dtype=np.float32).reshape(2, 5)
    expected = np.zeros((3, 5), np.float32)
    np.put_along_axis(expected[:, :4], index, source[:, :4], 0)
    same(zeros.scatter(0, index, source), expected)
    same(zeros.scatter(1, [[0], [4]], 7), np.array([[7, 0, 0, 0, 0], [0, 0, 0, 0, 7], [0] * 5], np.float32))
    assert zeros[0].scatter_add(0, [1, 1, 4], [1.0, 2.0, 3.0]).tolist() == [0, 3, 0, 0, 3]
    assert not zeros.any()
    for name in ("scatter", "scatter_add"):
        for wrong in ([[0], [0], [0], [0]], [0, 1], [[0, 1, 2, 3, 4, 0]]):
            with pytest.raises(ValueError, match=rf"^`{name}` expected indices with at most the sizes \(3, 5\) along other axes"):
                getattr(zeros, name)(1, wrong, ol.ones((3, 5)))


def test_dtypes_and_devices_are_methods():
    x = ol.asarray([0.0, 1.5])
    names = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64", "bool": "bool"}
    for name, dtype in (names | {"bfloat16": "bfloat16"}).items():
        assert getattr(x, name)().dtype is getattr(ol, dtype)
    assert x.cpu() is not None and x.cpu().device == ol.Device("cpu")
    assert x.to("cpu").device.name == "cpu:0" and x.to(ol.int8).dtype is ol.int8 and x.to("int8").dtype is ol.int8
    made = x.to("cpu", ol.float64)
    assert made.dtype is ol.float64 and x.to(made).dtype is ol.float64 and x.to(dtype="int16", device="cpu").dtype is ol.int16
    assert x.to(ol.float32).tolist() == x.tolist()
    with pytest.raises(ValueError, match="found `nonsense`"):
        x.to("nonsense")
    with pytest.raises(TypeError, match="^`view` expected a dtype of 4 bytes like float32, found int8"):
        x.view(ol.int8)


def test_arrays_share_nothing_with_their_copies():
    x = ol.asarray([1.0, 2.0])
    copies = [x.copy(), x.clone(), ol.copy(x), ol.array(x), ol.tensor(x), x.to(ol.float32, copy=True)]
    x[0] = 9.0
    assert [each.tolist() for each in copies] == [[1, 2]] * len(copies)
    theirs = np.ones(2)
    ours = ol.array(theirs)
    theirs[0] = 5
    assert ours.tolist() == [1, 1]


def test_python_rounds_to_decimals():
    x, y = np.array([1.25, -2.349, 1234.5]), np.array([15, 25, -36])
    for digits in (None, 0, 1, -2, np.int64(2)):
        for each in (x, y):
            np.testing.assert_allclose(np.asarray(round(ol.asarray(each), digits)), np.round(each, digits or 0))
    assert child("import oarlock as ol; print(round(ol.asarray([1.25, 2.0]), 1).tolist())").strip() == str([float(np.float32(1.2)), 2.0])
    with pytest.raises(TypeError):
        round(ol.ones(1), "x")


def test_methods_say_who_they_are():
    for name in ["sum", "reshape", "eq", "T", "to", "real"]:
        assert getattr(ol.Tensor, name).__doc__
    with pytest.raises(ValueError, match="^`reshape`"):
        ol.ones(3).reshape(2)
    with pytest.raises(TypeError, match=r"^`sum` expected no keyword but .*, found `foo`\nhint: call it as `sum\(x, /, axis=None"):
        ol.ones(3).sum(foo=None)
