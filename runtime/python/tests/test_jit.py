"""Functions as graphs: `jit`."""

import copy
import pickle
import re
import threading
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import onnxruntime
import oarlock as ol
import pytest
from test_numpy_functions import EXPRESSIONS, OF_ARRAYS, OPERANDS, cases

X = ol.asarray([[0.5, -1.5, 2.0], [3.0, 0.25, -0.5]])

FUNCTIONS = {
    "arithmetic": lambda x: (x + 1) * x - x / 3 + 2 * -x,
    "power": lambda x: abs(x) ** 0.5 + x**2,
    "integer power": lambda x: ol.astype(x, ol.int64) ** ol.asarray([1, 2, 3]),
    "comparison": lambda x: (x > 0) & (x <= 2) | (x == 3),
    "reductions": lambda x: [x.sum(), x.mean(axis=0), x.max(axis=1, keepdims=True), x.argmax(), x.std(), x.var(axis=0)],
    "product": lambda x: x @ x.T,
    "transposes": lambda x: (x.T, x.mT, ol.permute_dims(x, (1, 0))),
    "shapes": lambda x: (x.reshape(-1), x.reshape(3, 2), x.flatten(), x[None], x.squeeze(), ol.expand_dims(x, axis=1)),
    "selections": lambda x: (x[0], x[-1, 1], x[:, 1:], x[::-1], x[:, ::2], x[..., None, 0], x[1:1], x[0, 5:]),
    "gathers": lambda x: (x[[1, 0, 1]], x[:, [2, 0]], x[[0, 1], [2, 1]], x[ol.argmax(x, axis=0)], ol.take(x, ol.asarray([1]), axis=1)),
    "where": lambda x: ol.where(x > 0, x, 0),
    "joins": lambda x: (ol.concat([x, x]), ol.stack([x, x * 2], axis=1), ol.concat([x, ol.ones((1, 3))])),
    "splits": lambda x: ol.split(x, 3, axis=1),
    "broadcasts": lambda x: (ol.broadcast_to(x[0], (4, 3)), x + x[0], ol.full((2,), x.sum())),
    "copies": lambda x: (x.copy(), ol.asarray(x, copy=True), x.astype(ol.float64), x.to_device("cpu")),
    "iteration": lambda x: [row * 2 for row in x],
    "softmax": lambda x: ol.nn.functional.softmax(x, -1),
    "cumulative": lambda x: (ol.cumulative_sum(x, axis=1), ol.sort(x, axis=1), ol.argsort(x, axis=0)),
    "norm": lambda x: ol.linalg.vector_norm(x),
    "decomposition": lambda x: ol.linalg.svd(x, full_matrices=False)[1],
    "transform": lambda x: (ol.fft.rfft(x), ol.fft.ifft(ol.fft.fft(x))),
    "einsum": lambda x: ol.einsum("ij,kj->ik", x, x),
    "numpy": lambda x: np.exp(x) + np.ones(3, np.float32),
    "clip": lambda x: (ol.clip(x, 0, 1), x.clip(-1, None)),
    "median": lambda x: ol.median(x, axis=1),
    "tril": lambda x: ol.tril(x),
    "nothing": lambda x: None,
    "constants": lambda x: (1, "text", ol.ones(2), x.shape),
    "argument": lambda x: (x, x),
}


def leaves(value: object) -> list[object]:
    """The arrays and other values in nested containers."""
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part)]
    return [value]


def assert_equal(made: object, expected: object) -> None:
    """Compares nested values: arrays up to rounding, everything else exactly."""
    assert type(made) is type(expected)
    for one, other in zip(leaves(made), leaves(expected), strict=True):
        if isinstance(other, ol.Tensor):
            assert isinstance(one, ol.Tensor)
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)
        else:
            assert one == other


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_graph_computes_what_the_function_computes(name: str) -> None:
    function = FUNCTIONS[name]
    graph = ol.jit(function)
    other = ol.asarray([[4.0, -2.0, 0.125], [-1.0, 6.0, 0.75]])
    for x in (X, other, X):
        assert_equal(graph(x), function(x))
    assert repr(graph) == "JitFunction(<lambda>, graphs=1)"


def test_python_runs_only_while_the_function_is_traced() -> None:
    calls = []

    @ol.jit
    def function(x: ol.Tensor) -> ol.Tensor:
        calls.append(repr(x))
        return x + 1

    for _ in range(3):
        function(ol.ones(2))
    function(ol.ones(3))
    assert calls == ["Tensor(shape=[2], dtype=float32, traced)", "Tensor(shape=[3], dtype=float32, traced)"]
    function.clear()
    function(ol.ones(2))
    assert len(calls) == 3


def test_each_value_that_is_no_array_has_a_graph() -> None:
    @ol.jit
    def power(x: ol.Tensor, by: float, *, negate: bool = False) -> ol.Tensor:
        return -(x**by) if negate else x**by

    assert power(ol.asarray([2.0]), 2).tolist() == [4.0]
    assert power(ol.asarray([2.0]), 3).tolist() == [8.0]
    assert power(ol.asarray([2.0]), 3, negate=True).tolist() == [-8.0]
    assert repr(power) == "JitFunction(power, graphs=3)"
    assert [ol.jit(lambda x, y: y / x)(ol.ones(1), zero).tolist() for zero in (0.0, -0.0)] == [[0.0], [-0.0]]
    signed = ol.jit(lambda x, y: ol.copysign(x, y))
    assert [signed(ol.ones(1), [zero]).item() for zero in (0.0, -0.0, 0.0)] == [1.0, -1.0, 1.0]
    # Equal numbers of other types are other values.
    power(ol.asarray([2.0]), 2.0)
    assert repr(power) == "JitFunction(power, graphs=4)"


def test_structures_go_in_and_out() -> None:
    Pair = namedtuple("Pair", "first second")

    @ol.jit
    def function(model: dict[str, object], pair: Pair) -> dict[str, object]:
        return {"sum": model["w"] @ pair.first, "pair": Pair(pair.second, [model["b"] + 1])}

    made = function({"w": ol.eye(2), "b": ol.ones(2)}, Pair(ol.asarray([1.0, 2.0]), 7))
    assert made["sum"].tolist() == [1.0, 2.0]
    assert made["pair"].first == 7
    assert made["pair"].second[0].tolist() == [2.0, 2.0]


def test_arrays_of_other_libraries_are_arguments() -> None:
    double = ol.jit(lambda x: x * 2)
    for value in (1.0, 3.0):
        assert double(np.full(2, value, np.float32)).tolist() == [2 * value, 2 * value]
    assert repr(double) == "JitFunction(<lambda>, graphs=1)"


def test_assignments_change_no_array_of_the_caller() -> None:
    @ol.jit
    def assigned(x: ol.Tensor) -> ol.Tensor:
        x[0] = 7
        x[1:, 0] = x[0, 1] + 1
        x[x < 0] = 0
        made = ol.zeros((3,))
        made[1] = x.sum()
        return ol.concat([x, made[None]])

    x = ol.asarray(X, copy=True)
    made = assigned(x)
    assert made.tolist() == [[7.0, 7.0, 7.0], [8.0, 0.25, 0.0], [0.0, 29.25, 0.0]]
    assert x.tolist() == X.tolist()
    assert assigned(x * 2).tolist()[1] == [8.0, 0.5, 0.0]


def test_an_argument_is_not_the_constant_that_it_was() -> None:
    constant = ol.asarray([1.0, 2.0])
    product = ol.jit(lambda x: x * constant)
    product(constant)
    assert product(ol.asarray([10.0, 10.0])).tolist() == [10.0, 20.0]


def test_constants_keep_the_elements_that_they_had() -> None:
    constant = ol.asarray([1.0, 2.0])
    total = ol.jit(lambda x: x + constant)
    assert total(ol.zeros(2)).tolist() == [1.0, 2.0]
    constant[0] = 5
    assert total(ol.zeros(2)).tolist() == [1.0, 2.0]
    total.clear()
    assert total(ol.zeros(2)).tolist() == [5.0, 2.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x[0] > 0 else -x,
        lambda x: x[0].item(),
        lambda x: float(x[0]),
        lambda x: x.tolist(),
        lambda x: x.numpy(),
        lambda x: np.asarray(x),
        lambda x: np.from_dlpack(x),
        lambda x: memoryview(x),
        lambda x: ol.asarray([x, x]),
        lambda x: [1, 2, 3][ol.astype(x[0], ol.int64)],
        lambda x: range(ol.astype(x[0], ol.int64)),
        lambda x: f"{x[0]:.2f}",
        lambda x: __import__("pickle").dumps(x),
    ],
)
def test_elements_are_not_read(function: object) -> None:
    graph = ol.jit(function)
    with pytest.raises(TypeError, match=r"expected an array whose elements are known while `<lambda>` is traced"):
        graph(ol.asarray([1.0, 2.0]))
    # The error ends the trace.
    assert ol.asarray([1.0]).tolist() == [1.0]
    assert not ol._oarlock._is_traced(ol.ones(1))


@pytest.mark.parametrize("function", [lambda x: x[x > 0], lambda x: ol.nonzero(x), lambda x: ol.unique_values(x)])
def test_sizes_do_not_depend_on_elements(function: object) -> None:
    with pytest.raises(TypeError, match=r"shapes follow from shapes while `<lambda>` is traced"):
        ol.jit(function)(ol.asarray([1.0, 2.0]))


def test_random_numbers_are_drawn_outside() -> None:
    with pytest.raises(TypeError, match="expected a function without random numbers"):
        ol.jit(lambda x: x + ol.random.rand(2))(ol.ones(2))
    with pytest.raises(TypeError, match="expected a function without random numbers"):
        ol.jit(lambda x: ol.op("RandomNormalLike", [x]))(ol.ones(2))


def test_values_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(TypeError, match="expected arrays, numbers, texts and containers of them for `options`, found set"):
        ol.jit(lambda x, options: x)(ol.ones(1), {1, 2})
    with pytest.raises(TypeError, match="expected a function for `jit`, found int"):
        ol.jit(3)


def test_exceptions_of_the_function_come_through() -> None:
    @ol.jit
    def fails(x: ol.Tensor) -> ol.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fails(ol.ones(1))
    with pytest.raises(ValueError, match="expected shapes"):
        ol.jit(lambda x: x + ol.ones(3))(ol.ones(2))


def test_many_graphs_are_warned_of_once() -> None:
    function = ol.jit(lambda x, step: x + step)
    with pytest.warns(RuntimeWarning, match="more than 32 graphs") as told:
        for step in range(40):
            function(ol.ones(1), step)
    assert len(told) == 1


def test_methods_are_jitted() -> None:
    class Layer:
        def __init__(self, by: float) -> None:
            self.by = by

        @ol.jit
        def __call__(self, x: ol.Tensor) -> ol.Tensor:
            return x * self.by

    two, three = Layer(2), Layer(3)
    assert (two(ol.ones(1)).item(), three(ol.ones(1)).item()) == (2.0, 3.0)


def test_graphs_call_graphs() -> None:
    inner = ol.jit(lambda x: x * 2)
    outer = ol.jit(lambda x: inner(x) + inner(ol.ones(1)))
    assert outer(ol.asarray([5.0])).item() == 12.0
    assert [step.op for step in outer.explain(ol.asarray([5.0])).steps] != []


def test_threads_trace_for_themselves() -> None:
    function = ol.jit(lambda x, by: ol.sqrt(x * by) + by)
    results: dict[int, float] = {}

    def work(by: int) -> None:
        for _ in range(20):
            results[by] = function(ol.asarray([float(by)]), by).item()
            assert ol.asarray([1.0]).item() == 1.0

    threads = [threading.Thread(target=work, args=(by,)) for by in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {by: pytest.approx(2.0 * by) for by in range(1, 9)}


def test_a_thread_reads_elements_while_another_traces() -> None:
    started, done = threading.Event(), threading.Event()
    found = []

    def read() -> None:
        started.wait(10)
        found.append((ol.ones(2) + 1).tolist())
        done.set()

    thread = threading.Thread(target=read)
    thread.start()

    @ol.jit
    def function(x: ol.Tensor) -> ol.Tensor:
        started.set()
        done.wait(10)
        return x + 1

    function(ol.ones(2))
    thread.join()
    assert found == [[2.0, 2.0]]


def test_nodes_are_called_after_lines() -> None:
    @ol.jit
    def function(x: ol.Tensor) -> ol.Tensor:
        return ol.sin(x) + ol.sin(x + 1)

    line = function.__wrapped__.__code__.co_firstlineno + 2
    names = {node.name for node in onnx.load_from_string(function.to_onnx(X)).graph.node}
    assert names == {f"test_jit.py:{line}", *(f"test_jit.py:{line} ({count})" for count in (2, 3, 4))}


def test_a_function_becomes_an_onnx_model() -> None:
    weights = ol.asarray(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))

    @ol.jit
    def layer(x: ol.Tensor, bias: ol.Tensor) -> dict[str, ol.Tensor]:
        made = ol.maximum(x @ weights + bias, 0)
        return {"made": made, "total": made.sum(axis=1)}

    bias = ol.asarray([1.0, 0.0, -1.0, 0.5])
    content = layer.to_onnx(X, bias)
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = onnxruntime.InferenceSession(content)
    assert [slot.name for slot in session.get_inputs()] == ["x", "bias"]
    found = session.run(None, {"x": X.numpy(), "bias": bias.numpy()})
    assert [slot.name for slot in session.get_outputs()] == ["result_made", "result_total"]
    for one, other in zip(found, layer(X, bias).values(), strict=True):
        np.testing.assert_allclose(one, other.numpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="expected a result of `<lambda>` that depends on its arrays"):
        ol.jit(lambda x: 3).to_onnx(X)


def test_explanations_name_lines() -> None:
    @ol.jit
    def function(x: ol.Tensor) -> ol.Tensor:
        return x @ x.T

    line = function.__wrapped__.__code__.co_firstlineno + 2
    assert f"test_jit.py:{line}" in str(function.explain(X))


def test_sessions_are_not_called_with_traced_arrays() -> None:
    model = ol.jit(lambda x: x + 1).session(ol.ones(2))
    with pytest.raises(TypeError, match="elements are known while `<lambda>` is traced"):
        ol.jit(lambda x: model(x))(ol.ones(2))


def test_graphs_run_on_a_device_of_choice() -> None:
    assert ol.jit(lambda x: x + 1, device="cpu")(ol.ones(1)).device == ol.devices()[0]

    @ol.jit(precision=ol.bfloat16)
    def product(x: ol.Tensor) -> ol.Tensor:
        return x @ x

    assert product(ol.eye(2)).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_results_are_equal_in_bits_with_and_without_a_graph() -> None:
    generator = np.random.default_rng(3)
    x = ol.asarray(generator.standard_normal((7, 33)).astype(np.float32))

    def function(x: ol.Tensor) -> ol.Tensor:
        return ol.sqrt(ol.abs(x) + 1) * ol.exp(-x) - ol.maximum(x, 0.5) / 3

    assert ol.jit(function)(x).numpy().tobytes() == function(x).numpy().tobytes()


def other_elements(operand: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An operand of the same dtype and shape with other elements."""
    turned = np.flip(operand)
    return ~turned if operand.dtype == bool else np.where(np.isfinite(turned), np.abs(turned) / 2 + 1, 3).astype(operand.dtype)


def test_functions_of_numpy_compute_the_same_in_a_graph() -> None:
    """Each expression is traced on other elements, so that one which a graph wrongly keeps is noticed."""
    operands = {name: ol.asarray(value) for name, value in OPERANDS.items()}
    others = {name: ol.asarray(other_elements(value)) for name, value in OPERANDS.items()}
    wrong, refused, equal = [], [], 0
    for expression in cases(EXPRESSIONS) + cases(OF_ARRAYS):
        used = [name for name in operands if re.search(rf"\b{name}\b", expression)]
        function = eval(f"lambda {', '.join(used)}: {expression}", {"m": ol, "np": np, "NAN": np.nan, "INF": np.inf})
        try:
            expected = function(*(operands[name] for name in used))
            graph = ol.jit(function)
            graph(*(others[name] for name in used))
        except (TypeError, ValueError) as error:
            if "traced" in str(error):
                refused.append(expression)
            continue
        try:
            assert_equal(graph(*(operands[name] for name in used)), expected)
            equal += 1
        except Exception as error:
            wrong.append(f"{expression}: {type(error).__name__} {error}"[:300])
    assert not wrong, "\n".join(wrong)
    assert equal > 4 * len(refused), refused


def test_polynomials_are_fitted_and_elements_are_counted_in_a_graph() -> None:
    x = ol.asarray([0.5, 1.5, ol.nan, -7.0, 3.0, 2.0, 9.0])

    @ol.jit
    def counts(x: ol.Tensor, weights: ol.Tensor) -> list[ol.Tensor]:
        weighted, edges = ol.histogram(x, 3, (0.0, 3.0), weights=weights)
        return [ol.histogram(x, 3, (0.0, 3.0))[0], weighted, edges, ol.histogram2d(x, x, 2, [(0, 3), (0, 2)])[0]]

    counts(x * 0, x)
    weights = ol.asarray([1.0, 2.0, ol.nan, ol.inf, 4.0, 8.0, 16.0])
    found = [each.tolist() for each in counts(x, weights)]
    assert found == [[1, 1, 2], [1.0, 2.0, 12.0], [0.0, 1.0, 2.0, 3.0], [[1.0, 0.0], [0.0, 2.0]]]
    fitted = ol.jit(lambda x, y: ol.polyfit(x, y, 1))
    fitted(ol.arange(3.0), ol.ones(3))
    np.testing.assert_allclose(fitted(ol.arange(3.0), ol.asarray([1.0, 3.0, 5.0])), [2, 1], rtol=1e-5)


def test_functions_of_a_branch_assign_to_arrays_of_their_own() -> None:
    def increment(v: ol.Tensor) -> ol.Tensor:
        v += 1
        return v

    def double(v: ol.Tensor) -> ol.Tensor:
        v *= 2
        return v

    def function(x: ol.Tensor, p: ol.Tensor) -> ol.Tensor:
        return ol.stack([ol.cond(p > 0, increment, double, x), x])

    for call in (function, ol.jit(function)):
        assert call(ol.asarray([1.0, 2.0]), ol.asarray(-1.0)).tolist() == [[2.0, 4.0], [1.0, 2.0]]
        assert call(ol.asarray([1.0, 2.0]), ol.asarray(1.0)).tolist() == [[2.0, 3.0], [1.0, 2.0]]


def test_a_graph_in_a_graph_changes_no_array_of_its_caller() -> None:
    @ol.jit
    def inner(x: ol.Tensor) -> ol.Tensor:
        x += 1
        return x

    def outer(x: ol.Tensor) -> ol.Tensor:
        y = inner(x)
        return x * 10 + y

    assert outer(ol.asarray([1.0])).tolist() == ol.jit(outer)(ol.asarray([1.0])).tolist() == [12.0]
    closed = ol.jit(lambda x: ol.jit(lambda y: y + x)(ol.ones(1)))
    assert [closed(ol.asarray([value])).item() for value in (1.0, 5.0)] == [2.0, 6.0]


def test_results_that_are_constants_stay_what_they_are() -> None:
    function = ol.jit(lambda x: (x, ol.zeros(2)))
    function(ol.ones(1))[1][0] = 7
    assert function(ol.ones(1))[1].tolist() == [0.0, 0.0]


def test_scalars_of_numpy_are_numbers() -> None:
    product = ol.jit(lambda x, by: x * by)
    assert product(ol.ones(1), np.float64(2)).dtype == ol.float32
    assert product(ol.ones(1, dtype=ol.int8), np.int64(2)).dtype == ol.int8


def test_memory_of_others_is_copied() -> None:
    theirs = np.ones(3, np.float32)
    function = ol.jit(lambda x: x + theirs)
    function(ol.ones(3))
    theirs[:] = 100
    assert function(ol.ones(3)).tolist() == [2.0, 2.0, 2.0]


def test_equal_values_of_other_types_have_graphs_of_their_own() -> None:
    function = ol.jit(lambda x, given: x + (1 if next(iter(given)) is True else 2))
    for one, other in (({1: 0}, {True: 0}), (frozenset([1]), frozenset([True]))):
        assert [function(ol.zeros(1), given).item() for given in (one, other, one)] == [2.0, 1.0, 2.0]
    ordered = ol.jit(lambda **given: ol.stack(list(given.values())))
    assert ordered(b=ol.zeros(1), a=ol.ones(1)).tolist() == [[0.0], [1.0]]
    assert ordered(a=ol.ones(1), b=ol.zeros(1)).tolist() == [[1.0], [0.0]]


def test_functions_that_run_bit_by_bit_are_refused() -> None:
    def generator(x: ol.Tensor) -> Any:
        yield x

    async def coroutine(x: ol.Tensor) -> ol.Tensor:
        return x

    for function in (generator, coroutine):
        with pytest.raises(TypeError, match=r"expected a function that returns arrays for `jit`, found `\w+`, which runs bit by bit"):
            ol.jit(function)


def test_functions_that_call_each_other_are_traced_on_two_threads() -> None:
    functions = {}
    barrier = threading.Barrier(2)

    def make(own: str, other: str) -> None:
        @ol.jit
        def function(x: ol.Tensor, depth: int) -> ol.Tensor:
            return x + 1 if depth == 0 else functions[other](ol.ones(1), depth - 1) + x

        functions[own] = function

    make("a", "b")
    make("b", "a")
    found = []

    def work(name: str) -> None:
        barrier.wait()
        found.append(functions[name](ol.ones(1), 1).item())

    threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [3.0, 3.0]


def test_arrays_that_a_function_keeps_elsewhere_are_refused() -> None:
    class Norm:
        def __init__(self) -> None:
            self.mean = ol.zeros(3)

        def __call__(self, x: ol.Tensor) -> ol.Tensor:
            self.mean = self.mean * 0.9 + x * 0.1
            return x - self.mean

    kept: list[ol.Tensor] = []
    best = [ol.zeros(1)]

    def appended(x: ol.Tensor) -> ol.Tensor:
        kept.append(x * 2)
        return x

    def in_a_body(x: ol.Tensor) -> ol.Tensor:
        def body(y: ol.Tensor) -> ol.Tensor:
            best[0] = ol.maximum(best[0], y)
            return y * 2

        return ol.while_loop(lambda y: y.sum() < 9, body, x)

    def changed(x: ol.Tensor) -> ol.Tensor:
        total = ol.zeros(3)
        total += x
        kept.append(total)
        return x

    def assigned(x: ol.Tensor) -> ol.Tensor:
        rows = ol.zeros((2, 3))
        rows[0] = x
        kept.append(rows)
        return x

    for function in (Norm(), appended, in_a_body, changed, assigned):
        with pytest.raises(TypeError, match="expected a traced function to return what it keeps, found arrays of its trace elsewhere"):
            ol.jit(function)(ol.ones(3))


def test_arrays_from_outside_are_not_assigned_to() -> None:
    outside = ol.zeros(2)

    def assigned(x: ol.Tensor) -> ol.Tensor:
        outside[0] = x[0]
        return x

    def in_a_branch(x: ol.Tensor) -> ol.Tensor:
        y = x * 1

        def yes() -> ol.Tensor:
            y[0] = 9
            return y

        return ol.cond(x.sum() > 0, yes, lambda: y)

    def in_a_body(x: ol.Tensor) -> ol.Tensor:
        count = ol.zeros(())

        def body(y: ol.Tensor) -> ol.Tensor:
            nonlocal count
            count += 1
            return y * 2

        return ol.while_loop(lambda y: y.sum() < 9, body, x) + count

    for function in (assigned, in_a_branch, in_a_body):
        with pytest.raises(TypeError, match=r"expected an assignment to an array that `\w+` makes where it assigns"):
            ol.jit(function)(ol.ones(2))
    assert outside.tolist() == [0.0, 0.0]


@ol.jit
def picklable(x: ol.Tensor) -> ol.Tensor:
    return x + 1


def test_functions_are_pickled_by_name() -> None:
    assert pickle.loads(pickle.dumps(picklable)) is picklable
    assert copy.deepcopy(picklable) is picklable


def test_other_threads_do_not_compute_with_traced_arrays() -> None:
    with ThreadPoolExecutor(1) as pool:
        function = ol.jit(lambda x: pool.submit(lambda: x * 2).result())
        with pytest.raises(TypeError, match="expected an array of a traced function on the thread that traces it"):
            function(ol.ones(2))
        assert pool.submit(lambda: (ol.ones(2) * 2).tolist()).result() == [2.0, 2.0]
