"""Truth values as numbers, numbers as truth values, and numbers that no dtype has: all as in NumPy."""

import numpy as np
import oarlock as ol
import pytest

EXPRESSIONS = """
T + T | T * T | T + True | m.maximum(T, T[::-1]) | m.minimum(T, T[::-1]) | m.abs(T) | abs(T) | T @ T | T @ S | m.matmul(T, T)
m.logical_and(F, S) | m.logical_or(F, S) | m.logical_xor(F, S) | m.logical_not(F) | m.logical_not(B) | m.logical_and(B, T)
B < 300 | B <= 300 | B > 300 | B >= -300 | B == 300 | B != 300 | B < -300 | U > -1 | U >= -1 | U == -1 | U < 2**70 | 300 > B | -1 < U
B[range(2)] | B[range(1, 3), range(2)] | B.reshape(-1) | B.reshape(1, -1) | B.reshape((3, 3), order="F") | T.reshape([9])
m.zeros(2, dtype="<i4") | m.zeros(2, dtype="|u1") | m.zeros(2, dtype="=f8")
""".replace("\n", " | ")


@pytest.mark.parametrize("expression", [each.strip() for each in EXPRESSIONS.split(" | ") if each.strip()])
def test_the_result_is_that_of_numpy(expression):
    operands = {
        "T": np.array([[True, False, True], [False, False, True], [True, True, False]]),
        "S": np.array([[True, True, False], [True, False, False], [False, False, True]]),
        "F": np.array([[0.0, 1.5, np.nan], [-0.0, 2, 0], [1, 1, 0]], np.float32),
        "B": np.arange(-4, 5, dtype=np.int8).reshape(3, 3),
        "U": np.arange(3, dtype=np.uint8),
    }
    expected = eval(expression, {"m": np} | operands)
    found = eval(expression, {"m": ol} | {name: ol.asarray(value) for name, value in operands.items()})
    assert str(found.dtype.name) == expected.dtype.name
    np.testing.assert_array_equal(found.numpy(), expected)


def test_values_may_have_leading_dimensions_of_one():
    x = ol.zeros((2, 3))
    x[0] = ol.ones((1, 1, 3))
    assert x.tolist() == [[1, 1, 1], [0, 0, 0]]
    with pytest.raises(ValueError, match=r"expected elements whose shape repeats to \[3\], found \[2, 3\]"):
        x[0] = ol.ones((2, 3))


def test_whole_numbers_are_inputs_of_models():
    from onnx import parser

    text = '<ir_version: 10, opset_import: ["": 20]> twice (float[n, m] x) => (float[n, m] y) { y = Add(x, x) }'
    model = ol.load(parser.parse_model(text).SerializeToString())
    assert model([[1, 2]]).tolist() == [[2.0, 4.0]]
    assert model.run({"x": [[1, 2]]})["y"].tolist() == [[2.0, 4.0]]
    with pytest.raises(ValueError, match=r"input `x`: expected float32.*found int64"):
        model([[2**24 + 1]])


def test_names_of_sizes_are_no_promises():
    from onnx import parser

    text = '<ir_version: 10, opset_import: ["": 20]> joined (float[n] x, float[n] y) => (float[m] z) { z = Concat<axis = 0>(x, y) }'
    assert ol.load(parser.parse_model(text).SerializeToString())([1.0], [2.0, 3.0]).tolist() == [1.0, 2.0, 3.0]
    text = '<ir_version: 10, opset_import: ["": 20]> sum (float[n] x, float[n] y) => (float[n] z) { z = Add(x, y) }'
    with pytest.raises(ValueError, match=r"input `y.*expected `n` to be 2 as in `x`, found 3"):
        ol.load(parser.parse_model(text).SerializeToString())([1.0, 2.0], [2.0, 3.0, 4.0])


@pytest.mark.parametrize("shape", [(1,), (7,), (1500,), (3, 4), (2, 1, 5), (0, 3)])
@pytest.mark.parametrize("key", [np.s_[::-1], np.s_[..., ::-1], np.s_[::-2], np.s_[::-1, ..., ::-1], np.s_[-1:0:-3]])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex128"])
def test_reversed_elements_are_those_of_numpy(shape, key, dtype):
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    if isinstance(key, tuple) and len([part for part in key if part is not ...]) > x.ndim:
        key = key[0]
    np.testing.assert_array_equal(ol.asarray(x)[key].numpy(), x[key])
    np.testing.assert_array_equal(ol.asarray(x).T[key].numpy(), x.T[key])


@pytest.mark.parametrize("value", [1, 0, 2.5, 0.0, float("nan"), 1j, True])
def test_numbers_are_assigned_as_truth_values(value):
    for key in (0, slice(1, None), [0, 2]):
        ours, theirs = ol.asarray([True, False, False]), np.array([True, False, False])
        ours[key] = value
        theirs[key] = value
        assert ours.tolist() == theirs.tolist()
