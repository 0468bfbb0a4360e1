"""Views: what is written through them is what NumPy writes, with and without a graph."""

import random
from typing import Any

import numpy as np
import oarlock as ol
import pytest


def random_key(source: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A key of whole numbers, slices and `None`."""
    key: list[Any] = []
    for size in shape[: source.randint(0, len(shape))]:
        if source.random() < 0.1:
            key.append(None)
        if source.random() < 0.3:
            key.append(source.randrange(-size, size))
        else:
            key.append(slice(source.choice([None, 0, 1, -1]), source.choice([None, size, 1]), source.choice([None, 1, 2])))
    return (*key, ...) if source.random() < 0.1 else tuple(key)


def program(seed: int, array: Any) -> list[Any]:
    """Makes views of an array and writes to some; the same for arrays of NumPy and ours."""
    source = random.Random(seed)
    arrays = [array]
    for _ in range(source.randint(2, 12)):
        seen, choice = source.choice(arrays), source.random()
        if 0 in seen.shape:
            continue
        key = random_key(source, seen.shape)
        is_element = len(key) == seen.ndim and all(isinstance(part, int) for part in key)
        if choice < 0.3 and not is_element:
            arrays.append(seen[key])
        elif choice < 0.4:
            arrays.append(seen.T)
        elif choice < 0.5 and seen is array:
            arrays.append(seen.reshape(-1))
        elif choice < 0.7:
            seen[key] = source.randint(0, 99)
        elif choice < 0.85:
            seen += 1
        elif choice < 0.95:
            seen[seen > 5] = 4
        elif seen.ndim:
            seen[[0]] = 7
    return arrays


@pytest.mark.parametrize("is_traced", [False, True])
def test_random_programs_leave_what_numpy_leaves(is_traced: bool) -> None:
    for seed in range(100 if is_traced else 1500):
        source = random.Random(-seed)
        shape = tuple(source.choice([1, 2, 3, 4]) for _ in range(source.choice([1, 2, 3])))
        theirs = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        ours = ol.asarray(theirs.copy())
        expected = program(seed, theirs)
        found = ol.jit(lambda x, seed=seed: program(seed, x + 0))(ours) if is_traced else program(seed, ours)
        for at, (one, other) in enumerate(zip(found, expected, strict=True)):
            np.testing.assert_array_equal(one.numpy(), other, err_msg=f"array {at} of {seed}")


def test_what_is_copied_is_no_view() -> None:
    x = ol.asarray([[1.0, 2.0], [3.0, 4.0]])
    for copied in (x.copy(), x[[0]], x[x > 0], x.flatten(), x[::-1], x.T.reshape(-1), ol.asarray(x, copy=True), x.astype(ol.float64), +x):
        copied[...] = 9
    element = x[0, 0]
    element += 1
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_functions_that_write_write_through_views() -> None:
    x = ol.zeros((2, 3))
    ol.add(x[0], 1, out=x[0])
    x[1].fill_(5)
    ol.copyto(x.T[2], [7, 8])
    for row in x:
        row *= 2
    assert x.tolist() == [[2.0, 2.0, 14.0], [10.0, 10.0, 16.0]]


def test_views_of_what_a_graph_is_given_leave_the_caller_alone() -> None:
    outside = ol.zeros((2, 2))

    def inside(x: ol.Tensor) -> ol.Tensor:
        x[0][1] = 5
        return x

    assert ol.jit(inside)(outside).tolist() == [[0.0, 5.0], [0.0, 0.0]]
    assert outside.tolist() == [[0.0, 0.0], [0.0, 0.0]]

    def captured(x: ol.Tensor) -> ol.Tensor:
        outside[0][1] = x[0]
        return x

    with pytest.raises(TypeError, match="expected an assignment to an array that `captured` makes"):
        ol.jit(captured)(ol.ones(2))
    assert outside.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_view_keeps_its_shape_when_an_assignment_to_it_fails() -> None:
    x = ol.zeros((2, 3))
    row = x[0]
    with pytest.raises(ValueError, match="expected elements whose shape repeats"):
        row[:] = [1, 2]
    row[0] = 1
    assert x.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_a_view_that_a_branch_makes_again_is_made_again_behind_it() -> None:
    def with_branch(x: ol.Tensor) -> ol.Tensor:
        row = x[0]
        x[0] = 7
        other = ol.cond(x.sum() < 0, lambda: row * 2, lambda: x[1])
        return other + row

    def with_loop(x: ol.Tensor) -> Any:
        flat = x.reshape(-1)
        x[0] = 7
        other = ol.while_loop(lambda y: y.sum() < 0, lambda y: y + flat[0], x[1])
        return other, flat

    for function in (with_branch, with_loop):
        expected, found = (f(ol.asarray([[1.0, 2.0], [3.0, 4.0]])) for f in (function, ol.jit(function)))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())
