"""Branches and loops that a graph can have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _oarlock
from ._jit import check_kept
from ._nesting import Structure, flatten, is_dictionary, is_sequence, own_handles, rebuild, sequence_of
from ._oarlock import Tensor, _is_traced, _is_tracing, asarray, reshape
from ._oarlock import bool as boolean

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._oarlock import DType

    Kinds = list[tuple[DType, tuple[int, ...]]]

__all__: list[str] = ["cond", "while_loop"]


def cond(
    predicate: Any,
    true_function: Callable[..., Any],
    false_function: Callable[..., Any],
    /,
    *operands: Any,
) -> Any:
    """Calls one of two functions with the operands. In a function of `jit`, the graph chooses each time it runs.

    There, both are traced, and have to return arrays of the same shapes and dtypes. Only the chosen one computes.

    >>> halve = ol.jit(lambda n: ol.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n))
    >>> halve(ol.asarray(6)).item(), halve(ol.asarray(7)).item()
    (3, 22)
    """
    arrays: list[Tensor] = []
    around = flatten(operands, arrays, "operand", [])

    def call(function: Callable[..., Any]) -> Any:
        # Neither function sees what the other one assigns.
        return function(*rebuild(around, iter(own_handles(arrays))))

    if not isinstance(predicate, Tensor) or not _is_traced(predicate):
        return call(true_function if predicate else false_function)
    branches = [branch(function, call) for function in (true_function, false_function)]
    (_, then_around, then_kinds), (_, else_around, else_kinds) = branches
    check_equal("cond", (then_around, then_kinds), (else_around, else_kinds), "the same from both functions:")
    made = _oarlock._cond(truth(predicate), branches[0][0], branches[1][0])
    return rebuild(then_around, iter(made))


def while_loop(
    condition: Callable[[Any], Any],
    body: Callable[[Any], Any],
    state: Any,
    /,
) -> Any:
    """Replaces a state by `body(state)` as long as `condition(state)` is true, and returns the last one.

    The state is an array, or a list, tuple or dictionary of arrays and numbers. In a function of `jit`, the loop is part of the
    graph; shapes and dtypes must not change from one round to the next.

    >>> @ol.jit
    ... def root(x):
    ...     return ol.while_loop(lambda y: abs(y * y - x) > 1e-6, lambda y: (y + x / y) / 2, x)
    >>> round(root(ol.asarray(2.0, dtype=ol.float64)).item(), 4)
    1.4142
    """
    arrays: list[Tensor] = []
    around = flatten(as_arrays(state), arrays, "state", [])
    try:
        goes_on = condition(rebuild(around, iter(arrays)))
    except TypeError as error:
        if is_sequence(state) and "positional argument" in str(error):
            hint = "hint: the state is one argument: `lambda state: …`, with its parts `state[0]`, `state[1]`…"
            raise TypeError(f"{error}\n{hint}") from None
        raise
    if not _is_tracing():
        while condition(state):
            state = body(state)
        return state
    trace = _oarlock._Trace("while_loop")

    def round_of(given: list[Tensor]) -> list[Tensor]:
        made = body(rebuild(around, iter(given[2:])))
        found: list[Tensor] = []
        inside = flatten(as_arrays(made), found, "state", [])
        check_equal("while_loop", (around, kinds_of(arrays)), (inside, kinds_of(found)), "a body that returns what it is given:")
        return [truth(condition(rebuild(around, iter(found)))), *found]

    names = ["round", "goes_on", *(f"state_{at}" for at in range(len(arrays)))]
    trace_all(trace, names, [asarray(0), asarray(True), *arrays], round_of)
    return rebuild(around, iter(_oarlock._while_loop(truth(goes_on), arrays, trace)))


def branch(function: Callable[..., Any], call_it: Callable[[Callable[..., Any]], Any]) -> tuple[_oarlock._Trace, Structure, Kinds]:
    """A function of operands that its graph captures, what is around its results, and these."""
    trace = _oarlock._Trace("cond")
    around: Structure = ()

    def call(_given: list[Tensor]) -> list[Tensor]:
        nonlocal around
        arrays: list[Tensor] = []
        around = flatten(as_arrays(call_it(function)), arrays, "result", [])
        return arrays

    kinds = trace_all(trace, [], [], call)
    return trace, around, kinds


def trace_all(
    trace: _oarlock._Trace, names: list[str], arrays: list[Tensor], call: Callable[[list[Tensor]], list[Tensor]]
) -> Kinds:
    """Traces a call. All its results become outputs, whether or not they depend on anything. Returns their kinds."""
    given = trace.begin(names, arrays)
    try:
        made = call(given)
        trace.end([f"result_{at}" for at in range(len(made))], made)
    except BaseException:
        trace.abandon()
        raise
    kinds = kinds_of(made)
    del given, made
    check_kept(trace)
    return kinds


def kinds_of(arrays: list[Tensor]) -> Kinds:
    """The dtypes and shapes of arrays."""
    return [(array.dtype, array.shape) for array in arrays]


def as_arrays(value: Any) -> Any:
    """The value with arrays for its numbers, so that they can change from one round to the next."""
    if is_sequence(value):
        return sequence_of(type(value), [as_arrays(part) for part in value])
    if is_dictionary(value):
        return {key: as_arrays(part) for key, part in value.items()}
    return asarray(value) if isinstance(value, (int, float, complex)) else value


def truth(value: Any) -> Tensor:
    """A condition as an array of one truth value, without dimensions."""
    array = asarray(value)
    if array.size != 1:
        raise ValueError(f"expected one truth value as condition, found an array of the shape {array.shape}")
    return reshape(array if array.dtype == boolean else array != 0, ())


def check_equal(
    function: str, one: tuple[Structure, Kinds], other: tuple[Structure, Kinds], expected: str
) -> None:
    """Refuses results of which a graph could not say shapes and dtypes."""
    if one == other:
        return
    texts = [", ".join(f"{dtype}{list(shape)}" for dtype, shape in kinds) or "nothing" for _, kinds in (one, other)]
    hint = "`astype` and `reshape` make them equal"
    if texts[0] == texts[1]:
        texts = [str(around) for around, _ in (one, other)]
        hint = "lists, tuples and dictionaries around the arrays have to be the same, too"
    raise TypeError(f"`{function}` expected {expected} {texts[0]}, found {texts[1]}\nhint: {hint}")
