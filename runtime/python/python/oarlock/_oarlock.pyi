"""Types of the native half of the package. mypy's `stubtest` checks them against it."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from types import ModuleType
from typing import Any, ClassVar, Final, Literal, NoReturn, Self, SupportsIndex, final, overload

from numpy.typing import NDArray
from typing_extensions import CapsuleType, Unpack

from ._methods import Methods
from ._typing import ArrayLike, DeviceLike, DtypeLike, Index, Number, Shape, UfuncKeywords

__version__: Final[builtins.str]

@final
class DType:
    """The type of the elements of an array, such as `oarlock.float32`.

    Called, it converts: `oarlock.float32(3)` is an array of one number.
    """

    def __call__(self, value: ArrayLike, /) -> Tensor: ...

    @property
    def __numpy_dtype__(self) -> Any:
        """NumPy's dtype of the same name, for `numpy.dtype(…)`."""
    @property
    def name(self) -> builtins.str:
        """The name, as in NumPy."""
    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
    def __eq__(self, value: object, /) -> builtins.bool: ...
    def __ne__(self, value: object, /) -> builtins.bool: ...
    def __lt__(self, value: object, /) -> builtins.bool: ...
    def __le__(self, value: object, /) -> builtins.bool: ...
    def __gt__(self, value: object, /) -> builtins.bool: ...
    def __ge__(self, value: object, /) -> builtins.bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, tuple[builtins.str]]: ...

bfloat16: Final[DType]
bool: Final[DType]
complex128: Final[DType]
complex64: Final[DType]
float16: Final[DType]
float32: Final[DType]
float4_e2m1fn: Final[DType]
float64: Final[DType]
float8_e4m3fn: Final[DType]
float8_e4m3fnuz: Final[DType]
float8_e5m2: Final[DType]
float8_e5m2fnuz: Final[DType]
float8_e8m0fnu: Final[DType]
int16: Final[DType]
int2: Final[DType]
int32: Final[DType]
int4: Final[DType]
int64: Final[DType]
int8: Final[DType]
str: Final[DType]
uint16: Final[DType]
uint2: Final[DType]
uint32: Final[DType]
uint4: Final[DType]
uint64: Final[DType]
uint8: Final[DType]

class Error(RuntimeError):
    """Errors without a built-in exception, such as a lost device or a call in the wrong state."""

@final
class Device:
    """A device that holds arrays and runs ops, such as `cpu:0`."""

    def __new__(cls, name: DeviceLike) -> Self: ...
    @property
    def type(self) -> builtins.str:
        """The device type, such as `cuda`."""
    @property
    def index(self) -> int:
        """The index among devices of its type."""
    @property
    def name(self) -> builtins.str:
        """The type and index, such as `cuda:0`."""
    @property
    def description(self) -> builtins.str:
        """The vendor's name for it."""
    def synchronize(self) -> None:
        """Waits until all work on the device has finished."""
    def memory_stats(self) -> dict[builtins.str, int]:
        """Memory in bytes: `allocated` and `reserved`, each with its peak."""
    def release_memory(self) -> int:
        """Returns unused memory to the device, and the number of bytes to the caller."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...
    def __reduce__(self) -> tuple[builtins.type[Device], tuple[builtins.str]]: ...
    def __eq__(self, value: object, /) -> builtins.bool: ...
    def __ne__(self, value: object, /) -> builtins.bool: ...
    def __lt__(self, value: object, /) -> builtins.bool: ...
    def __le__(self, value: object, /) -> builtins.bool: ...
    def __gt__(self, value: object, /) -> builtins.bool: ...
    def __ge__(self, value: object, /) -> builtins.bool: ...
    def __hash__(self) -> int: ...

@final
class Stream:
    """A queue of work on a device. Inside `with stream:`, ops on arrays of its device run in the stream, concurrently with other
streams. An op waits until its operands are ready."""

    def __new__(cls, device: DeviceLike | None = None, *, priority: int = 0) -> Self: ...
    @property
    def device(self) -> Device:
        """The device of the stream."""
    def synchronize(self) -> None:
        """Waits until all work in the stream has finished."""
    def is_done(self) -> builtins.bool:
        """Whether all work in the stream has finished."""
    def wait_event(self, event: Event) -> None:
        """Makes later work in the stream wait for an event."""
    def wait_stream(self, stream: Stream) -> None:
        """Makes later work in the stream wait for all work that another stream has now."""
    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, by default a new one, at the end of the stream, and returns it."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class Event:
    """A point in a stream that others can wait for."""

    def __new__(cls, device: DeviceLike | None = None) -> Self: ...
    def record(self, stream: Stream) -> None:
        """Records the event at the end of a stream."""
    def synchronize(self) -> None:
        """Waits for the event."""
    def is_done(self) -> builtins.bool:
        """Whether the event has happened."""
    def elapsed_time(self, end: Event) -> float | None:
        """The milliseconds from this event to another; `None` if the device does not measure time."""

@final
class Tensor(Methods):
    """Elements of one dtype in a shape, on a device.

Created by `oarlock.asarray` and other functions of the namespace, which follows the Python array API standard.
`==` compares elementwise with another array, a number or text; compared with `None` it is False."""

    def __array_ufunc__(self, function: Any, method: builtins.str, /, *inputs: Any, **named: Any) -> Any: ...
    def __array_function__(self, function: Any, kinds: Any, inputs: Any, named: Any) -> Any: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    @property
    def dtype(self) -> DType:
        """The dtype."""
    @property
    def device(self) -> Device:
        """The device."""
    @property
    def place(self) -> Device:
        """The device; Paddle's name for `device`."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
    @property
    def ndim(self) -> int:
        """The number of dimensions."""
    @property
    def size(self) -> int:
        """The number of elements."""
    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes."""
    @property
    def stop_gradient(self) -> builtins.bool:
        """Always true: arrays have no gradients."""
    @property
    def T(self) -> Tensor:
        """The transpose of a matrix."""
    @property
    def mT(self) -> Tensor:
        """The array with its last two axes swapped."""
    def reshape(self, *shape: Any, order: builtins.str | None = None, copy: builtins.bool | None = None) -> Tensor:
        """The elements in another shape, given as numbers or as a tuple. One size may be -1 and is then inferred. With the order `F`,
        the first axis is that of neighbors."""
    def to_device(self, device: DeviceLike, /, *, stream: None = None) -> Tensor:
        """The array on a device, without a copy if it is already there."""
    def astype(self, dtype: DtypeLike, /, *, copy: builtins.bool = True) -> Tensor:
        """Converts the array to another dtype."""
    def item(self, *at: Any) -> builtins.bool | int | float | complex | builtins.str:
        """The only element as a Python number."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
    def numpy(self) -> NDArray[Any]:
        """The elements as a NumPy array, which shares the memory if NumPy can access it."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any, /) -> Self: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...
    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> NDArray[Any]: ...
    def __array_namespace__(self, *, api_version: builtins.str | None = None) -> ModuleType: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: builtins.bool | None = None,
    ) -> CapsuleType: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __bool__(self) -> builtins.bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __getitem__(self, key: Index, /) -> Tensor: ...
    def __setitem__(self, key: Index, value: ArrayLike, /) -> None: ...
    def __format__(self, format: builtins.str, /) -> builtins.str: ...
    def __round__(self, ndigits: int | None = None) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __add__(self, value: ArrayLike, /) -> Tensor: ...
    def __radd__(self, value: ArrayLike, /) -> Tensor: ...
    def __sub__(self, value: ArrayLike, /) -> Tensor: ...
    def __rsub__(self, value: ArrayLike, /) -> Tensor: ...
    def __mul__(self, value: ArrayLike, /) -> Tensor: ...
    def __rmul__(self, value: ArrayLike, /) -> Tensor: ...
    def __truediv__(self, value: ArrayLike, /) -> Tensor: ...
    def __rtruediv__(self, value: ArrayLike, /) -> Tensor: ...
    def __floordiv__(self, value: ArrayLike, /) -> Tensor: ...
    def __rfloordiv__(self, value: ArrayLike, /) -> Tensor: ...
    def __mod__(self, value: ArrayLike, /) -> Tensor: ...
    def __rmod__(self, value: ArrayLike, /) -> Tensor: ...
    def __lshift__(self, value: ArrayLike, /) -> Tensor: ...
    def __rlshift__(self, value: ArrayLike, /) -> Tensor: ...
    def __rshift__(self, value: ArrayLike, /) -> Tensor: ...
    def __rrshift__(self, value: ArrayLike, /) -> Tensor: ...
    def __and__(self, value: ArrayLike, /) -> Tensor: ...
    def __rand__(self, value: ArrayLike, /) -> Tensor: ...
    def __or__(self, value: ArrayLike, /) -> Tensor: ...
    def __ror__(self, value: ArrayLike, /) -> Tensor: ...
    def __xor__(self, value: ArrayLike, /) -> Tensor: ...
    def __rxor__(self, value: ArrayLike, /) -> Tensor: ...
    def __pow__(self, value: ArrayLike, mod: None = None, /) -> Tensor: ...
    def __rpow__(self, value: ArrayLike, mod: None = None, /) -> Tensor: ...
    def __matmul__(self, value: ArrayLike, /) -> Tensor: ...
    def __rmatmul__(self, value: ArrayLike, /) -> Tensor: ...
    def __iadd__(self, value: ArrayLike, /) -> Self: ...
    def __isub__(self, value: ArrayLike, /) -> Self: ...
    def __imul__(self, value: ArrayLike, /) -> Self: ...
    def __itruediv__(self, value: ArrayLike, /) -> Self: ...
    def __ifloordiv__(self, value: ArrayLike, /) -> Self: ...
    def __imod__(self, value: ArrayLike, /) -> Self: ...
    def __ilshift__(self, value: ArrayLike, /) -> Self: ...
    def __irshift__(self, value: ArrayLike, /) -> Self: ...
    def __ipow__(self, value: ArrayLike, /) -> Self: ...  # type: ignore[misc]
    def __iand__(self, value: ArrayLike, /) -> Self: ...
    def __ior__(self, value: ArrayLike, /) -> Self: ...
    def __ixor__(self, value: ArrayLike, /) -> Self: ...
    def __imatmul__(self, value: ArrayLike, /) -> Self: ...
    def __divmod__(self, value: ArrayLike, /) -> tuple[Tensor, Tensor]: ...
    def __rdivmod__(self, value: ArrayLike, /) -> tuple[Tensor, Tensor]: ...
    def __eq__(self, value: ArrayLike, /) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, value: ArrayLike, /) -> Tensor: ...  # type: ignore[override]
    def __lt__(self, value: ArrayLike, /) -> Tensor: ...
    def __le__(self, value: ArrayLike, /) -> Tensor: ...
    def __gt__(self, value: ArrayLike, /) -> Tensor: ...
    def __ge__(self, value: ArrayLike, /) -> Tensor: ...

@final
class Slot:
    """An input or output of a model."""

    @property
    def name(self) -> builtins.str:
        """The name."""
    @property
    def dtype(self) -> DType | None:
        """The dtype; `None` if the model does not state it or it is not an array."""
    @property
    def shape(self) -> tuple[int | builtins.str | None, ...] | None:
        """The shape: each size is a number, a name that stands for the same number everywhere, or `None` for any number.
`None` if the model does not state a shape or it is not an array."""
    @property
    def kind(self) -> builtins.str:
        """The type as text, such as `float32[batch, 3, 224, 224]` or `sequence of int64[?]`."""

class Session:
    """A model that is ready to run, from any number of threads at once."""

    def __new__(
        cls,
        model: builtins.str | PathLike[builtins.str] | bytes | _Trace,
        /,
        *,
        device: DeviceLike | Sequence[DeviceLike] | None = None,
        precision: DtypeLike | None = None,
        fallback: builtins.str | None = None,
        progress: Callable[[int, int, builtins.str], object] | None = None,
    ) -> Self: ...
    @property
    def inputs(self) -> list[Slot]:
        """The required inputs."""
    @property
    def optional_inputs(self) -> list[Slot]:
        """The optional inputs, given by name. The model has a value for each."""
    @property
    def outputs(self) -> list[Slot]:
        """The outputs."""
    @property
    def devices(self) -> list[Device]:
        """The devices that ops run on, in order of preference."""
    def __call__(self, *inputs: Any) -> Any: ...
    def run(self, feeds: Mapping[builtins.str, Any], /, *, stop: Stop | None = None) -> dict[builtins.str, Any]:
        """Runs the model on arrays by input name, and returns a dictionary of the outputs."""
    @property
    def _about(self) -> dict[builtins.str, Any]: ...
    def _onnx(self, weights_file: builtins.str) -> tuple[bytes, list[tuple[int, bytes]]]: ...
    def _plan(self, *inputs: Any) -> dict[builtins.str, Any]: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Stop:
    """Stops the run that it was passed to, once it is set."""

    def __new__(cls) -> Self: ...
    def set(self) -> None:
        """Stops the run: before its next step, or within one that takes long."""

@final
class _Trace:
    """A function, branch or loop body while it is traced, and its graph afterwards."""

    def __new__(cls, function: builtins.str) -> Self: ...
    def begin(self, names: list[builtins.str], arrays: list[Tensor]) -> list[Tensor]:
        """Starts to trace on this thread. Returns the arguments of the function: new arrays, which are the inputs of the graph."""
    def end(self, names: list[builtins.str], outputs: list[Tensor]) -> None:
        """Ends the graph with its outputs."""
    def abandon(self) -> None:
        """Ends without a graph, after an error."""
    def kept(self) -> int:
        """The number of arrays that depend on the arguments and still exist."""
    def onnx(self) -> bytes:
        """The graph as the bytes of an ONNX file, with ops as the function called them."""

def _given_up(array: Tensor) -> Any:
    """Moves the elements of an array into a writable NumPy array, without a copy if nothing else owns the memory. The array is empty
    afterwards."""

def _is_tracing() -> builtins.bool:
    """Whether this thread traces a function."""

def _is_traced(array: Tensor) -> builtins.bool:
    """Whether an array depends on the arguments of the function that is traced."""

def _signature(arguments: tuple[Any, ...], /) -> tuple[bytes, list[Tensor]] | None:
    """The arrays of a call, and a key that is equal for calls of the same graph. `None` if an argument is neither an array, a number,
    a text nor `None`, or if one is traced."""

def _cond(predicate: Tensor, then_branch: _Trace, else_branch: _Trace) -> list[Tensor]:
    """Adds a node that runs one of two branches, and returns its results."""

def _while_loop(condition: Tensor, state: list[Tensor], body: _Trace) -> list[Tensor]:
    """Adds a node that repeats a body as long as a condition holds, and returns the last state."""

@final
class Recorder:
    """Records when model runs, their steps and single op calls happen, from `start` to `stop`."""

    def __new__(cls) -> Self: ...
    def start(self) -> None:
        """Starts recording. A recorder that is still active stops."""
    def stop(self) -> None:
        """Stops recording."""
    def now(self) -> int:
        """Nanoseconds since the recorder was created."""
    def take(self) -> tuple[list[dict[builtins.str, Any]], list[dict[builtins.str, Any]]]:
        """Removes and returns what was recorded. First the model runs, each with its thread, begin and end, its steps, and their
times: index of the step, of the step around it, begin, end of the launch on the host, and end. Then the single op
calls."""

def asarray(
    obj: Any,
    /,
    *,
    dtype: DtypeLike | None = None,
    device: DeviceLike | None = None,
    copy: builtins.bool | None = None,
) -> Tensor:
    """Makes an array from an array, a number, text, nested lists of them, or an object with `__dlpack__` or a buffer.

With `copy=None`, the memory of a buffer is shared if possible; with `copy=True`, never; with `copy=False`, a necessary copy
raises a `ValueError`."""

def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: builtins.bool | None = None) -> Tensor:
    """Makes an array from another library's array, and shares its memory if possible. With `copy=False`, a necessary copy raises
a `BufferError`."""

def full(
    shape: Shape, fill_value: Any, *, dtype: DtypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """An array filled with a number.

>>> full((2, 2), 7)
Tensor(shape=[2, 2], dtype=int64, place=Place(cpu:0), stop_gradient=True,
       [[7, 7],
        [7, 7]])"""

def zeros(shape: Shape, *sizes: Any, dtype: DtypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """An array of zeros. The sizes may be one shape or several numbers, and the dtype may follow a shape."""

def ones(shape: Shape, *sizes: Any, dtype: DtypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """An array of ones. The sizes may be one shape or several numbers, and the dtype may follow a shape."""

def reshape(x: ArrayLike, /, shape: Shape, *, copy: builtins.bool | None = None) -> Tensor:
    """Changes the shape; one size may be -1 and is then inferred. The result shares memory unless the elements are not
contiguous or `copy` is true."""

def permute_dims(x: ArrayLike, /, axes: Shape) -> Tensor:
    """Permutes the axes of an array."""

def _steps(
    count: int, start: float, step: float, device: DeviceLike | None, is_narrow: builtins.bool = False
) -> Tensor: ...
def _parts(x: Tensor, /) -> Tensor: ...
def _joined(arrays: list[Tensor], axis: int, is_new: builtins.bool) -> Tensor: ...
def _sampled(
    distribution: builtins.str,
    dtype: DtypeLike,
    state: tuple[int, int],
    shape: Sequence[int],
    parameters: Sequence[Tensor],
    parameter_dtype: DtypeLike,
) -> Tensor: ...
def _of_parts(x: Tensor, /) -> Tensor: ...
@overload
def op(
    name: builtins.str,
    inputs: Sequence[Tensor | None],
    attributes: Mapping[builtins.str, Any] | None = None,
    *,
    outputs: Literal[1] = 1,
    domain: builtins.str = "",
    device: DeviceLike | None = None,
) -> Tensor:
    """Calls an op of ONNX or of another domain by name: `op("Gemm", [a, b], {"transB": 1})`.

An omitted input is `None`. Returns an array, or a tuple if more than one output is requested."""

@overload
def op(
    name: builtins.str,
    inputs: Sequence[Tensor | None],
    attributes: Mapping[builtins.str, Any] | None = None,
    *,
    outputs: Literal[2, 3, 4, 5, 6, 7, 8],
    domain: builtins.str = "",
    device: DeviceLike | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def op(
    name: builtins.str,
    inputs: Sequence[Tensor | None],
    attributes: Mapping[builtins.str, Any] | None = None,
    *,
    outputs: int,
    domain: builtins.str = "",
    device: DeviceLike | None = None,
) -> Tensor | tuple[Tensor, ...]: ...
def devices() -> tuple[Device, ...]:
    """All devices, in order of preference."""

def default_device() -> Device:
    """The default device."""

def set_default_device(device: DeviceLike) -> None:
    """Sets the default device."""

def get_flags(flags: builtins.str | Sequence[builtins.str] | None = None) -> dict[builtins.str, builtins.str]:
    """The values of flags by name: of one, of a list, or of all."""

def set_flags(flags: Mapping[builtins.str, Any]) -> None:
    """Sets flags, such as `set_flags({"threads": 2})`. This must precede the first array or model, because the runtime starts
with them. `python -m oarlock flags` lists all flags."""

def result_type(*arrays_and_dtypes: Tensor | DType | Number) -> DType:
    """The dtype that arrays, dtypes and Python numbers promote to.

>>> oarlock.result_type(oarlock.int8, oarlock.uint8)
oarlock.int16"""

def _add_function(
    domain: builtins.str,
    op: builtins.str,
    inputs: Sequence[tuple[builtins.str, builtins.bool, builtins.bool]],
    outputs: int,
    deterministic: builtins.bool,
    call: Callable[..., Any],
) -> None: ...
def _add_plugin(file: builtins.str) -> builtins.str: ...
def _contract() -> builtins.str: ...
def _end_functions() -> None: ...
def _headers() -> list[tuple[builtins.str, builtins.str]]: ...
def _sdk() -> list[tuple[builtins.str, builtins.str]]: ...
def _dtype(name: DtypeLike) -> DType: ...
def _flags() -> list[tuple[builtins.str, builtins.str, builtins.str, builtins.str, builtins.str]]: ...
def _paddle_variables() -> list[tuple[builtins.str, builtins.str, builtins.str | None, builtins.str | None]]: ...
def _axes(axes: Any, rank: builtins.int) -> list[builtins.int]: ...
def _axis(axis: SupportsIndex, rank: builtins.int) -> builtins.int: ...
def _print_options() -> tuple[int | None, int, int, int, builtins.bool]: ...
def _set_print_options(
    precision: int | None, threshold: int, edge_items: int, line_width: int, is_plain: builtins.bool
) -> None: ...
def _numbers(x: Tensor) -> Tensor: ...
def _reduced(name: builtins.str, x: Tensor, axis: Any, keepdims: builtins.bool) -> Tensor: ...
def _summands(x: Tensor, dtype: DtypeLike | None) -> Tensor: ...
def _in_name_of(function: builtins.str, error: BaseException) -> None: ...
def _kernels(*, plugin: builtins.str | None = None, op: builtins.str | None = None) -> builtins.str: ...
def _layers_left_out() -> list[builtins.str]: ...
def _plugins() -> builtins.str: ...
def _probe(path: builtins.str) -> int: ...
def _tell_warnings() -> None: ...
def _restored(dtype: DType, dims: Sequence[int], device: builtins.str, elements: Any) -> Tensor: ...

def abs(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The absolute value."""
def acos(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The inverse cosine."""
def acosh(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The inverse of the hyperbolic cosine."""
def asin(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The inverse sine."""
def asinh(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The inverse of the hyperbolic sine."""
def atan(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The inverse tangent."""
def atanh(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The inverse of the hyperbolic tangent."""
def bitwise_invert(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Inverts every bit, or a truth value."""
def ceil(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Rounds up."""
def conj(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The complex conjugate."""
def cos(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The cosine."""
def cosh(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The hyperbolic cosine."""
def exp(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """e to the power of each element."""
def expm1(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """e to the power of each element, minus 1; exact near 0."""
def floor(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Rounds down."""
def imag(x: ArrayLike, /) -> Tensor:
    """The imaginary part; 0 for real numbers."""
def isfinite(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Whether each element is finite."""
def isinf(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Whether each element is infinite."""
def isnan(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Whether each element is NaN."""
def log(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The natural logarithm."""
def log10(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The logarithm to base 10."""
def log1p(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The natural logarithm of 1 + x; exact near 0."""
def log2(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The logarithm to base 2."""
def logical_not(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Negates truth values."""
def negative(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The negative."""
def real(x: ArrayLike, /) -> Tensor:
    """The real part; real numbers stay as they are."""
def reciprocal(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The reciprocal."""
def round(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Rounds to the nearest integer, ties to even."""
def sign(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The sign: -1, 0 or 1."""
def signbit(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Whether the sign bit is set."""
def sin(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The sine."""
def sinh(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The hyperbolic sine."""
def sqrt(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The square root."""
def tan(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The tangent."""
def tanh(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The hyperbolic tangent."""
def trunc(x: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Rounds towards 0."""
def add(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The sum."""
def atan2(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The angle of the point (x2, x1)."""
def bitwise_and(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Bitwise and."""
def bitwise_left_shift(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Shifts bits to the left."""
def bitwise_or(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Bitwise or."""
def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Shifts bits to the right."""
def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Bitwise exclusive or."""
def copysign(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The first with the sign of the second."""
def divide(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The quotient; of integers, as a float."""
def equal(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Whether the two are equal."""
def floor_divide(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The quotient, rounded down."""
def greater(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Whether the first is greater than the second."""
def greater_equal(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Whether the first is greater than or equal to the second."""
def hypot(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The hypotenuse: the length of the vector (x1, x2)."""
def less(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Whether the first is less than the second."""
def less_equal(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Whether the first is less than or equal to the second."""
def logaddexp(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The logarithm of the sum of the exponentials."""
def logical_and(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Logical and."""
def logical_or(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Logical or."""
def logical_xor(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Logical exclusive or."""
def matmul(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The product of matrices, or of stacks of them."""
def maximum(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The larger of the two; NaN if either is NaN."""
def minimum(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The smaller of the two; NaN if either is NaN."""
def multiply(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The product."""
def nextafter(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The next representable number from the first towards the second."""
def not_equal(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """Whether the two are unequal."""
def pow(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The first to the power of the second."""
def remainder(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The remainder of the floored quotient, with the sign of the divisor."""
def subtract(x1: ArrayLike, x2: ArrayLike, /, out: Tensor | None = None, **keywords: Unpack[UfuncKeywords]) -> Tensor:
    """The difference."""
