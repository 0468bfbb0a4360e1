"""Branches and loops of jitted functions: `cond` and `while_loop`."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
import oarlock as ol
import pytest


def test_branches_are_chosen_in_the_graph() -> None:
    offset = ol.asarray([100.0])

    @ol.jit
    def function(x: ol.Tensor, y: ol.Tensor) -> tuple[ol.Tensor, ol.Tensor]:
        doubled = y * 2
        made: tuple[ol.Tensor, ol.Tensor] = ol.cond(
            x.sum() > 0, lambda: (doubled + x, x), lambda: (doubled - offset, ol.zeros(1))
        )
        return made

    for sign in (1.0, -1.0, 1.0):
        made = function(ol.asarray([sign]), ol.asarray([3.0]))
        assert [part.item() for part in made] == ([7.0, 1.0] if sign > 0 else [-94.0, 0.0])
    assert repr(function) == "JitFunction(function, graphs=1)"
    content = function.to_onnx(ol.asarray([1.0]), ol.asarray([3.0]))
    onnx.checker.check_model(onnx.load_from_string(content))
    feeds = {"x": np.array([-1.0], np.float32), "y": np.array([3.0], np.float32)}
    assert [part.item() for part in onnxruntime.InferenceSession(content).run(None, feeds)] == [-94.0, 0.0]


def test_a_branch_that_is_not_taken_does_not_run() -> None:
    guarded = ol.jit(lambda x, by: ol.cond(by != 0, lambda: x // by, lambda: x))
    numbers = ol.asarray([6, 8])
    assert [guarded(numbers, ol.asarray(by)).tolist() for by in (0, 2)] == [[6, 8], [3, 4]]

    @ol.jit
    def total(count: ol.Tensor) -> Any:
        def body(state: tuple[ol.Tensor, ol.Tensor]) -> tuple[ol.Tensor, ol.Tensor]:
            at, made = state
            return at + 1, made + 6 // (count - at)

        return ol.while_loop(lambda state: state[0] < count, body, (ol.asarray(0), ol.asarray(0)))[1]

    assert [total(ol.asarray(count)).item() for count in (0, 3)] == [0, 11]


def test_loops_in_a_branch_that_is_not_taken_do_not_run() -> None:
    @ol.jit
    def doubled(x: ol.Tensor, bound: ol.Tensor) -> Any:
        # From 0 on, the loop would have no end.
        return ol.cond(x > 0, lambda: ol.while_loop(lambda y: y < bound, lambda y: y * 2, x), lambda: x)

    assert [doubled(ol.asarray(x), ol.asarray(100)).item() for x in (0, 3)] == [0, 192]


def test_errors_of_a_branch_name_its_line() -> None:
    def function(x: ol.Tensor, by: ol.Tensor) -> Any:
        return ol.cond(by >= 0, lambda: x // by, lambda: x)

    line = function.__code__.co_firstlineno + 1
    with pytest.raises(ValueError, match=rf"`FloorDivide` \(node `test_jit_control_flow.py:{line}`\).* expected integers other than 0"):
        ol.jit(function)(ol.asarray([1]), ol.asarray(0))


def test_branches_return_the_same() -> None:
    with pytest.raises(TypeError, match=r"`cond` expected the same from both functions: float32\[2\], found int64\[2\]"):
        ol.jit(lambda x: ol.cond(x.sum() > 0, lambda: x, lambda: ol.astype(x, ol.int64)))(ol.ones(2))


def test_branches_are_chosen_without_a_graph() -> None:
    assert ol.cond(True, lambda x: x + 1, lambda x: x, 1) == 2
    assert ol.cond(ol.asarray(False), lambda x: x + 1, lambda x: x, ol.ones(1)).item() == 1.0
    # A condition that the trace knows makes no branch.
    graph = ol.jit(lambda x: ol.cond(x.shape[0] > 1, lambda: x[0], lambda: x))
    assert "If" not in {step.op for step in graph.explain(ol.ones(2)).steps}


def test_loops_run_in_the_graph() -> None:
    limit = ol.asarray(1000.0)

    @ol.jit
    def doubled_until(x: ol.Tensor, factor: ol.Tensor) -> dict[str, ol.Tensor]:
        state = {"x": x, "count": 0}
        made: dict[str, ol.Tensor] = ol.while_loop(
            lambda state: state["x"].max() < limit,
            lambda state: {"x": state["x"] * factor, "count": state["count"] + 1},
            state,
        )
        return made

    for start in (1.0, 600.0, 5000.0):
        made = doubled_until(ol.asarray([start, 0.5]), ol.asarray(2.0))
        count, value = 0, start
        while value < 1000:
            count, value = count + 1, value * 2
        assert (made["count"].item(), made["x"].tolist()[0]) == (count, value)
    content = doubled_until.to_onnx(ol.asarray([1.0, 0.5]), ol.asarray(2.0))
    onnx.checker.check_model(onnx.load_from_string(content))
    feeds = {"x": np.array([1.0, 0.5], np.float32), "factor": np.array(2.0, np.float32)}
    assert onnxruntime.InferenceSession(content).run(None, feeds)[0].tolist() == [1024.0, 512.0]


def test_loops_and_branches_nest() -> None:
    @ol.jit
    def collatz(n: ol.Tensor) -> ol.Tensor:
        def step(state: tuple[ol.Tensor, ol.Tensor]) -> tuple[ol.Tensor, ol.Tensor]:
            number, count = state
            following = ol.cond(number % 2 == 0, lambda: number // 2, lambda: 3 * number + 1)
            return following, count + 1

        return ol.while_loop(lambda state: state[0] > 1, step, (n, 0))[1]

    def count(n: int) -> int:
        steps = 0
        while n > 1:
            n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        return steps

    assert [collatz(ol.asarray(n)).item() for n in (1, 6, 7, 27)] == [count(n) for n in (1, 6, 7, 27)]


def test_loops_keep_shapes_and_dtypes() -> None:
    with pytest.raises(TypeError, match=r"`while_loop` expected a body that returns what it is given: float32\[1\], found float32\[2\]"):
        ol.jit(lambda x: ol.while_loop(lambda y: y.sum() < 10, lambda y: ol.concat([y, y]), x))(ol.ones(1))
    with pytest.raises(ValueError, match="expected one truth value as condition"):
        ol.jit(lambda x: ol.while_loop(lambda y: y < 10, lambda y: y * 2, x))(ol.ones(2))


def test_loops_run_without_a_graph() -> None:
    assert ol.while_loop(lambda n: n < 100, lambda n: n * 3, 1) == 243
    assert ol.while_loop(lambda x: x.sum() < 5, lambda x: x + 1, ol.zeros(2)).tolist() == [3.0, 3.0]


def test_loops_begin_with_constants() -> None:
    function = ol.jit(lambda x: ol.while_loop(lambda y: y < 100, lambda y: y * x, ol.asarray(1.0)))
    assert [function(ol.asarray(base)).item() for base in (2.0, 11.0)] == [128.0, 121.0]


def test_the_state_of_a_loop_is_one_argument() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'\nhint: the state is one argument"):
        ol.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y), (0, 1.0))  # type: ignore[misc, arg-type]
    with pytest.raises(TypeError, match="hint: lists, tuples and dictionaries around the arrays have to be the same, too"):
        ol.jit(lambda x: ol.while_loop(lambda s: s[0] < 3, lambda s: [s[0] + 1, s[1]], (ol.asarray(0), x)))(ol.ones(2))
