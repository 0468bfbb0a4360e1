"""Functions as ONNX files that other runtimes run."""

import re
from typing import Any

import numpy as np
import onnx
import onnxruntime
import oarlock as ol
import pytest
from test_jit import FUNCTIONS, X, leaves
from test_numpy_functions import EXPRESSIONS, OF_ARRAYS, OPERANDS, cases

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-6, -1e-6, 7.25, -100.0, np.inf, -np.inf, np.nan]
LEFT, RIGHT = (each.ravel().astype(np.float32) for each in np.meshgrid(SPECIAL, SPECIAL))
INTEGERS = np.array([7, -7, 7, -7, 0, 5, -1, 127]), np.array([2, 2, -2, -2, 3, 5, 1, 1])

OWN_OPS = {
    **{name: getattr(ol, name) for name in ("remainder", "floor_divide", "atan2", "hypot", "copysign", "logaddexp")},
    **{name: getattr(ol, name) for name in ("log1p", "expm1", "log2", "log10", "trunc", "signbit", "isfinite")},
    "silu": ol.nn.functional.silu,
}

ALGORITHMS = {
    *("Cholesky", "Eigenvectors", "Eigh", "Eigvalsh", "Qr", "SlogDet", "Solve", "Svd", "Svdvals"),
    *("NextAfter", "MaxPool", "AveragePool", "ConvTranspose"),
}
"""Ops that ONNX cannot express, or only with a loop."""


def in_onnxruntime(content: bytes, arrays: list[np.ndarray[Any, Any]]) -> list[Any]:
    session = onnxruntime.InferenceSession(content)
    found: list[Any] = session.run(None, {slot.name: array for slot, array in zip(session.get_inputs(), arrays, strict=True)})
    return found


def own_ops(content: bytes) -> set[str]:
    return {node.op_type for node in onnx.load_from_string(content).graph.node if node.domain == "oarlock"}


@pytest.mark.parametrize("name", OWN_OPS)
def test_own_ops_are_written_as_ops_of_onnx(name: str) -> None:
    function = OWN_OPS[name]
    arrays = [LEFT, RIGHT] if name in {"remainder", "floor_divide", "atan2", "hypot", "copysign", "logaddexp"} else [LEFT]
    content = ol.jit(function).to_onnx(*map(ol.asarray, arrays))
    assert not own_ops(content)
    expected = function(*map(ol.asarray, arrays)).numpy()
    np.testing.assert_allclose(in_onnxruntime(content, arrays)[0], expected, rtol=1e-5)
    np.testing.assert_allclose(ol.load(content)(*map(ol.asarray, arrays)).numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("function", [ol.remainder, ol.floor_divide, lambda a, b: a << abs(b), lambda a, b: a >> abs(b)])
def test_division_and_shifts_of_integers_are_written_as_ops_of_onnx(function: Any, dtype: Any) -> None:
    arrays = [each.astype(dtype) for each in INTEGERS]
    content = ol.jit(function).to_onnx(*map(ol.asarray, arrays))
    assert not own_ops(content)
    assert in_onnxruntime(content, arrays)[0].tolist() == function(*map(ol.asarray, arrays)).tolist()


def test_own_ops_in_branches_are_written_as_ops_of_onnx() -> None:
    def function(x: ol.Tensor) -> ol.Tensor:
        return ol.cond(x.sum() > 0, lambda: x % 2, lambda: ol.log1p(-x))

    content = ol.jit(function).to_onnx(X)
    for x in (X, -X):
        np.testing.assert_allclose(in_onnxruntime(content, [x.numpy()])[0], function(x).numpy(), rtol=1e-5)


def test_constants_are_results_too() -> None:
    content = ol.jit(lambda x: {"ones": ol.ones(3), "sum": x.sum(), "size": ol.asarray(x.shape[0])}).to_onnx(X)
    session = onnxruntime.InferenceSession(content)
    assert [slot.name for slot in session.get_outputs()] == ["result_ones", "result_sum", "result_size"]
    ones, total, size = session.run(None, {"x": X.numpy()})
    assert (ones.tolist(), total.item(), size.item()) == ([1.0, 1.0, 1.0], X.sum().item(), 2)


def test_functions_of_numpy_run_in_onnxruntime() -> None:
    wrong, equal = [], 0
    for expression in cases(EXPRESSIONS) + cases(OF_ARRAYS):
        used = [name for name in OPERANDS if re.search(rf"\b{name}\b", expression)]
        function = eval(f"lambda {', '.join(used)}: {expression}", {"m": ol, "np": np, "NAN": np.nan, "INF": np.inf})
        arrays = [ol.asarray(OPERANDS[name]) for name in used]
        try:
            results = [leaf for leaf in leaves(function(*arrays)) if isinstance(leaf, ol.Tensor)]
            content = ol.jit(function).to_onnx(*arrays)
        except (TypeError, ValueError):
            continue
        is_complex = any(array.dtype in (ol.complex64, ol.complex128) for array in arrays + results)
        if is_complex or own_ops(content) & ALGORITHMS:
            continue
        try:
            found = in_onnxruntime(content, [array.numpy() for array in arrays])
        except Exception as error:
            # onnxruntime lacks kernels for some dtypes.
            if "NOT_IMPLEMENTED" not in str(error):
                wrong.append(f"{expression}: {error}"[:250])
            continue
        try:
            for one, other in zip(found, results, strict=True):
                np.testing.assert_allclose(one, other.numpy(), rtol=1e-4, atol=1e-6)
            equal += 1
        except AssertionError as error:
            wrong.append(f"{expression}: {error}"[:250])
    assert not wrong, "\n".join(wrong)
    assert equal > 400


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in {"nothing", "constants", "decomposition", "transform"}])
def test_graphs_run_in_onnxruntime(name: str) -> None:
    function = FUNCTIONS[name]
    found = in_onnxruntime(ol.jit(function).to_onnx(X), [X.numpy()])
    for one, other in zip(found, leaves(function(X)), strict=True):
        assert isinstance(other, ol.Tensor)
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-5, atol=1e-6)
