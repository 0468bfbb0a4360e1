"""Functions of arrays as graphs."""

from __future__ import annotations

from functools import update_wrapper
from gc import collect
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, isgeneratorfunction
from inspect import signature as signature_of
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

from . import _oarlock
from ._model import Session
from ._nesting import ARRAY, Structure, flatten, own_handles, rebuild
from ._oarlock import Tensor, _is_traced, _is_tracing, _signature, float32
from ._warning import warn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._explain import Explanation
    from ._oarlock import Device, DType

__all__: list[str] = ["JitFunction", "jit"]

P = ParamSpec("P")
R = TypeVar("R")

MANY_GRAPHS = 32
"""A function with more graphs than this is probably called with numbers that should be arrays."""

MOST_GRAPHS = 256
"""The number of graphs that a function keeps."""


LOCK = RLock()
"""Held while a function is traced."""


class TracedCall:
    """A function that was traced for one signature."""

    def __init__(
        self, trace: _oarlock._Trace, session: Session | None, structure: Structure, constants: list[Tensor]
    ) -> None:
        self.trace = trace
        self.session = session
        self.structure = structure
        self.constants = constants
        """The results if none depends on the arguments."""

    def __call__(self, arrays: list[Tensor]) -> Any:
        if self.session is None:
            return rebuild(self.structure, iter(own_handles(self.constants)))
        made: Any = self.session(*arrays)
        if self.structure == (ARRAY,):
            return made
        return rebuild(self.structure, iter((made,) if isinstance(made, Tensor) else made))


class JitFunction(Generic[P, R]):
    """A function of arrays that runs as a graph. `jit` makes it.

    >>> @ol.jit
    ... def scaled(x, factor):
    ...     return x * factor + 1
    >>> scaled(ol.asarray([1.0, 2.0]), 3).tolist()
    [4.0, 7.0]
    >>> scaled
    JitFunction(scaled, graphs=1)
    """

    __wrapped__: Callable[P, R]

    def __init__(
        self,
        function: Callable[P, R],
        device: Device | str | Sequence[Device | str] | None,
        precision: DType,
        fallback: str | None,
    ) -> None:
        update_wrapper(self, function)
        self._function = function
        self._name: str = getattr(function, "__name__", type(function).__name__)
        self._qualified_name: str = getattr(function, "__qualname__", self._name)
        self._device, self._precision, self._fallback = device, precision, fallback
        self._parameters = names_of_parameters(function)
        self._calls: dict[Any, TracedCall] = {}
        self._known: dict[bytes, TracedCall] = {}
        """The same by the signatures of simple arguments, which are faster to find."""
        self._has_warned = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        signature = None if kwargs else _signature(args)
        if signature is not None:
            known = self._known.get(signature[0])
            if known is not None:
                return known(signature[1])  # type: ignore[no-any-return]
        arrays: list[Tensor] = []
        names: list[str] = []
        structure = self._flatten(args, kwargs, arrays, names)
        if _is_tracing():
            # Part of the function that is being traced.
            return self._call(structure, own_handles(arrays))  # type: ignore[no-any-return]
        call = self._traced(structure, arrays, names)
        if signature is not None:
            self._known[signature[0]] = call
        result: R = call(arrays)
        return result

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """The method of an object, which is the first argument."""
        from types import MethodType

        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"JitFunction({self._name}, graphs={len(self._calls)})"

    def __reduce__(self) -> str:
        """Pickled and copied by name, like the function."""
        return self._qualified_name

    def session(self, *args: P.args, **kwargs: P.kwargs) -> Session:
        """The model that runs for such arguments, traced if there is none yet.

        >>> ol.jit(lambda x: x + 1).session(ol.asarray([1.0, 2.0])).inputs
        [Slot("x", float32[2])]
        """
        call = self._call_of(args, kwargs)
        assert call.session is not None
        return call.session

    def to_onnx(self, *args: P.args, **kwargs: P.kwargs) -> bytes:
        """The function for such arguments as the bytes of an ONNX model, with the ops that it calls.

        Other runtimes run it too. Only complex numbers and algorithms such as singular values, for which ONNX has no ops, become
        nodes of the domain `oarlock`.

        `session(…).save(file)` writes the optimized model, which Oarlock loads faster.

        >>> content = ol.jit(lambda x: x * 2).to_onnx(ol.asarray([1.0]))
        >>> ol.load(content)(ol.asarray([4.0])).tolist()
        [8.0]
        """
        return self._call_of(args, kwargs).trace.onnx()

    def explain(self, *args: P.args, **kwargs: P.kwargs) -> Explanation:
        """How the function runs for such arguments: the passes, the kernel of each node with its line of Python, and the memory.

        >>> [step.op for step in ol.jit(lambda x: x @ x).explain(ol.eye(2, dtype=ol.float32)).steps]
        ['oarlock.MatMul']
        """
        return self.session(*args, **kwargs).explain()

    def clear(self) -> None:
        """Forgets all graphs, so that the next call traces the function again.

        >>> twice = ol.jit(lambda x: x * 2)
        >>> _ = twice(ol.ones(3))
        >>> twice.clear()
        """
        self._calls.clear()
        self._known.clear()

    def _call_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedCall:
        """The traced function for arguments; an error if it has no graph."""
        arrays: list[Tensor] = []
        names: list[str] = []
        structure = self._flatten(args, kwargs, arrays, names)
        call = self._traced(structure, arrays, names)
        if call.session is None:
            raise ValueError(f"expected a result of `{self._name}` that depends on its arrays, found none that does")
        return call

    def _flatten(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: list[Tensor], names: list[str]
    ) -> Structure:
        """The structure of the arguments; their arrays are named after the parameters."""
        parameters, more = self._parameters
        by_place = parameters + [f"{more}_{at}" for at in range(len(args) - len(parameters))]
        placed = tuple(flatten(arg, arrays, name, names) for arg, name in zip(args, by_place, strict=False))
        named = tuple((name, flatten(value, arrays, name, names)) for name, value in kwargs.items())
        return (placed, named)

    def _traced(self, structure: Structure, arrays: list[Tensor], names: list[str]) -> TracedCall:
        key = (structure, tuple((array.dtype, array.shape, array.device) for array in arrays))
        known = self._calls.get(key)
        if known is not None:
            return known
        # One lock for all functions, which may call each other.
        with LOCK:
            known = self._calls.get(key)
            if known is None:
                known = self._trace(structure, arrays, names)
                while len(self._calls) >= MOST_GRAPHS:
                    del self._calls[next(iter(self._calls))]
                    self._known.clear()
                self._calls[key] = known
                self._warn_of_many()
        return known

    def _trace(self, structure: Structure, arrays: list[Tensor], names: list[str]) -> TracedCall:
        trace = _oarlock._Trace(self._name)
        constants, around = traced(trace, unique(names), arrays, lambda given: self._call(structure, given))
        if constants is not None:
            return TracedCall(trace, None, around, constants)
        device = arrays[0].device if self._device is None and arrays else self._device
        session = Session(trace, device=device, precision=self._precision, fallback=self._fallback)
        return TracedCall(trace, session, around, [])

    def _call(self, structure: Structure, arrays: list[Tensor]) -> Any:
        """Calls the function itself with arguments of a structure."""
        function: Callable[..., Any] = self._function
        placed, named = structure
        each = iter(arrays)
        args = [rebuild(part, each) for part in placed]
        return function(*args, **{name: rebuild(part, each) for name, part in named})

    def _warn_of_many(self) -> None:
        if len(self._calls) <= MANY_GRAPHS or self._has_warned:
            return
        self._has_warned = True
        warn(
            f"`{self._name}` has more than {MANY_GRAPHS} graphs: one for each shape of its arrays and each value of its other "
            "arguments\nhint: pass numbers that change as arrays, such as `oarlock.asarray(step)`",
            RuntimeWarning,
        )


def traced(
    trace: _oarlock._Trace, names: list[str], arrays: list[Tensor], call: Callable[[list[Tensor]], Any]
) -> tuple[list[Tensor] | None, Structure]:
    """Traces a call. Returns its results if none depends on the arguments, and what is around the results."""
    given = trace.begin(names, arrays)
    try:
        made: list[Tensor] = []
        names_of_made: list[str] = []
        around = flatten(call(given), made, "result", names_of_made)
        # Constants are outputs too, so that other runtimes get all results; but a graph of constants alone is none.
        has_graph = any(map(_is_traced, made))
        constants = [] if has_graph else made
        outputs = made if has_graph else []
    except BaseException:
        trace.abandon()
        raise
    trace.end(unique([*names, *names_of_made])[len(names) :] if has_graph else [], outputs)
    del given, made, outputs
    check_kept(trace)
    return None if has_graph else constants, around


def check_kept(trace: _oarlock._Trace) -> None:
    """Refuses a function that keeps arrays elsewhere: later calls would not do it again."""
    if trace.kept():
        # Frames and cycles that nobody needs may hold some.
        collect()
    if trace.kept():
        raise TypeError(
            "expected a traced function to return what it keeps, found arrays of its trace elsewhere: in an attribute, in a list, or in a "
            "variable from outside\nhint: only the first call would put them there; return them instead"
        )


def unique(names: list[str]) -> list[str]:
    """The names, with numbers behind those that are taken."""
    seen: set[str] = set()
    for at, name in enumerate(names):
        free, number = name, 2
        while free in seen:
            free, number = f"{name}_{number}", number + 1
        seen.add(free)
        names[at] = free
    return names


def names_of_parameters(function: Callable[..., Any]) -> tuple[list[str], str]:
    """The names of the parameters that take a place, and of the one that takes all further places."""
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError):
        return [], "argument"
    placed = [each.name for each in parameters if each.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    more = next((each.name for each in parameters if each.kind is Parameter.VAR_POSITIONAL), "argument")
    return placed, more


@overload
def jit(
    function: Callable[P, R],
    /,
    *,
    device: Device | str | Sequence[Device | str] | None = None,
    precision: DType = float32,
    fallback: str | None = None,
) -> JitFunction[P, R]: ...


@overload
def jit(
    function: None = None,
    /,
    *,
    device: Device | str | Sequence[Device | str] | None = None,
    precision: DType = float32,
    fallback: str | None = None,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


def jit(
    function: Callable[P, R] | None = None,
    /,
    *,
    device: Device | str | Sequence[Device | str] | None = None,
    precision: DType = float32,
    fallback: str | None = None,
) -> Any:
    """Makes a function of arrays run as a graph: optimized as a whole, planned once, and exported to ONNX on request.

    The first call with arguments of such shapes and dtypes *traces* the function: it runs, and each op that it calls becomes a node.
    Later calls run the graph alone. So the function must depend on nothing but its arguments, and its own Python, such as `print`,
    runs only while it is traced. Arrays may be in lists, tuples and dictionaries; every other value is a constant of the graph,
    which is traced again for another value. Arrays from outside the function are constants too.

    A function cannot look at the elements of its arrays, as `if x > 0:` does: that is an error. `where`, `cond` and `while_loop`
    decide in the graph. Assignments such as `x[0] = 1` work, and do not change the caller's array. Sizes must not depend on elements
    either, so there is no `x[mask]`.

    The graph runs on the device of the first array unless `device` says another one; `precision` and `fallback` are those of
    `load`.

    >>> @ol.jit
    ... def normalized(x):
    ...     centered = x - x.mean()
    ...     return centered / ol.sqrt((centered * centered).mean())
    >>> normalized(ol.asarray([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """

    def wrap(function: Callable[P, R]) -> JitFunction[P, R]:
        if not callable(function):
            raise TypeError(f"expected a function for `jit`, found {type(function).__name__}")
        if isgeneratorfunction(function) or iscoroutinefunction(function) or isasyncgenfunction(function):
            raise TypeError(
                f"expected a function that returns arrays for `jit`, found `{function.__name__}`, which runs bit by bit\n"
                "hint: jit the functions that it calls"
            )
        return JitFunction(function, device, precision, fallback)

    return wrap if function is None else wrap(function)
