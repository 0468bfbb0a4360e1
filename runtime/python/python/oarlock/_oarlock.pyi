"""What the native half of the package has. Whether it is true is tested by mypy's `stubtest`."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from types import ModuleType
from typing import Any, ClassVar, Final, Literal, NoReturn, Self, SupportsIndex, TypeAlias, final, overload

from numpy.typing import NDArray
from typing_extensions import CapsuleType

from ._typing import DeviceLike, DtypeLike, Index, Number, Shape

_Other: TypeAlias = Tensor | Number
_OtherOrText: TypeAlias = _Other | builtins.str

__version__: Final[builtins.str]

@final
class DType:
    """The type of the elements of an array, such as `oarlock.float32`."""

    @property
    def name(self) -> builtins.str:
        """Its name, as NumPy has it."""
    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
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
    """What no built-in exception names: a device that is gone, a state that does not allow a call."""

@final
class Device:
    """A device on which arrays lie and ops run, such as `cpu:0`."""

    def __new__(cls, name: DeviceLike) -> Self: ...
    @property
    def type(self) -> builtins.str:
        """What kind of device it is, such as `cuda`."""
    @property
    def index(self) -> int:
        """Its number among those of its type."""
    @property
    def name(self) -> builtins.str:
        """Its type and number, such as `cuda:0`."""
    @property
    def description(self) -> builtins.str:
        """What its vendor calls it."""
    def synchronize(self) -> None:
        """Waits until everything on it is done."""
    def memory_stats(self) -> dict[builtins.str, int]:
        """Bytes of its memory by what they are: `allocated`, `reserved` and the most of both at once."""
    def release_memory(self) -> int:
        """Gives memory that nobody holds back to the device; says how many bytes."""
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
    """A queue of work on a device. Within `with stream:` ops on arrays of its device run in it; work in other streams goes on
meanwhile, and an op waits for what makes its operands."""

    def __new__(cls, device: DeviceLike | None = None, *, priority: int = 0) -> Self: ...
    @property
    def device(self) -> Device:
        """The device whose work it is."""
    def synchronize(self) -> None:
        """Waits until all work in it is done."""
    def is_done(self) -> builtins.bool:
        """Whether all work in it is done."""
    def wait_event(self, event: Event) -> None:
        """Holds further work back until an event has happened."""
    def wait_stream(self, stream: Stream) -> None:
        """Holds further work back until everything that is in another stream now has happened."""
    def record_event(self, event: Event | None = None) -> Event:
        """Puts an event, or a new one, at the end; gives it."""
    def __enter__(self) -> Self: ...
    def __exit__(self, *_raised: object) -> None: ...

@final
class Event:
    """A place in a stream that work is or is not done up to."""

    def __new__(cls, device: DeviceLike | None = None) -> Self: ...
    def record(self, stream: Stream) -> None:
        """Puts it at the end of a stream."""
    def synchronize(self) -> None:
        """Waits until it has happened."""
    def is_done(self) -> builtins.bool:
        """Whether it has happened."""
    def elapsed_time(self, end: Event) -> float | None:
        """The milliseconds from this one to another; `None` where the device does not measure time."""

@final
class Tensor:
    """Elements of one dtype in a shape, on a device.

Made by `oarlock.asarray` and the other functions of the namespace, which follows the Python array API standard.
`==` compares each element with those of another array or with a number or text; with `None` it is False."""

    def __array_ufunc__(self, function: Any, method: builtins.str, /, *inputs: Any, **more: Any) -> Any: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
    @property
    def dtype(self) -> DType:
        """The type of its elements."""
    @property
    def device(self) -> Device:
        """The device it lies on."""
    @property
    def place(self) -> Device:
        """The device it lies on, by the name that Paddle has for it."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of its dimensions."""
    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
    @property
    def size(self) -> int:
        """How many elements it has."""
    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
    @property
    def stop_gradient(self) -> builtins.bool:
        """Whether no gradient is kept for it, which is so for every array."""
    @property
    def T(self) -> Tensor:
        """The transpose of a matrix."""
    @property
    def mT(self) -> Tensor:
        """With the last two dimensions exchanged."""
    def to_device(self, device: DeviceLike, /, *, stream: None = None) -> Tensor:
        """The same elements on a device, without a copy where they are there already."""
    def astype(self, dtype: DtypeLike, /, *, copy: builtins.bool = True) -> Tensor:
        """Its elements as another dtype."""
    def item(self) -> builtins.bool | int | float | complex | builtins.str:
        """The one element as a number of Python."""
    def tolist(self) -> Any:
        """Its elements as numbers of Python in nested lists."""
    def numpy(self) -> NDArray[Any]:
        """Its elements as an array of NumPy, which shares the memory where NumPy can reach it."""
    def _given_up(self) -> NDArray[Any]: ...
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
    def __setitem__(self, key: Index, value: _OtherOrText, /) -> None: ...
    def __format__(self, format: builtins.str, /) -> builtins.str: ...
    def __round__(self, ndigits: None = None) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __add__(self, value: _Other, /) -> Tensor: ...
    def __radd__(self, value: Number, /) -> Tensor: ...
    def __sub__(self, value: _Other, /) -> Tensor: ...
    def __rsub__(self, value: Number, /) -> Tensor: ...
    def __mul__(self, value: _Other, /) -> Tensor: ...
    def __rmul__(self, value: Number, /) -> Tensor: ...
    def __truediv__(self, value: _Other, /) -> Tensor: ...
    def __rtruediv__(self, value: Number, /) -> Tensor: ...
    def __floordiv__(self, value: _Other, /) -> Tensor: ...
    def __rfloordiv__(self, value: Number, /) -> Tensor: ...
    def __mod__(self, value: _Other, /) -> Tensor: ...
    def __rmod__(self, value: Number, /) -> Tensor: ...
    def __lshift__(self, value: _Other, /) -> Tensor: ...
    def __rlshift__(self, value: Number, /) -> Tensor: ...
    def __rshift__(self, value: _Other, /) -> Tensor: ...
    def __rrshift__(self, value: Number, /) -> Tensor: ...
    def __and__(self, value: _Other, /) -> Tensor: ...
    def __rand__(self, value: Number, /) -> Tensor: ...
    def __or__(self, value: _Other, /) -> Tensor: ...
    def __ror__(self, value: Number, /) -> Tensor: ...
    def __xor__(self, value: _Other, /) -> Tensor: ...
    def __rxor__(self, value: Number, /) -> Tensor: ...
    def __pow__(self, value: _Other, mod: None = None, /) -> Tensor: ...
    def __rpow__(self, value: Number, mod: None = None, /) -> Tensor: ...
    def __matmul__(self, value: Tensor, /) -> Tensor: ...
    def __rmatmul__(self, value: Tensor, /) -> Tensor: ...
    def __iadd__(self, value: _Other, /) -> Self: ...
    def __isub__(self, value: _Other, /) -> Self: ...
    def __imul__(self, value: _Other, /) -> Self: ...
    def __itruediv__(self, value: _Other, /) -> Self: ...
    def __ifloordiv__(self, value: _Other, /) -> Self: ...
    def __imod__(self, value: _Other, /) -> Self: ...
    def __ilshift__(self, value: _Other, /) -> Self: ...
    def __irshift__(self, value: _Other, /) -> Self: ...
    def __ipow__(self, value: _Other, /) -> Self: ...  # type: ignore[misc]
    def __iand__(self, value: _Other, /) -> Self: ...
    def __ior__(self, value: _Other, /) -> Self: ...
    def __ixor__(self, value: _Other, /) -> Self: ...
    def __imatmul__(self, value: Tensor, /) -> Self: ...
    def __divmod__(self, value: _Other, /) -> tuple[Tensor, Tensor]: ...
    def __rdivmod__(self, value: Number, /) -> tuple[Tensor, Tensor]: ...
    def __eq__(self, value: _OtherOrText, /) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, value: _OtherOrText, /) -> Tensor: ...  # type: ignore[override]
    def __lt__(self, value: _Other, /) -> Tensor: ...
    def __le__(self, value: _Other, /) -> Tensor: ...
    def __gt__(self, value: _Other, /) -> Tensor: ...
    def __ge__(self, value: _Other, /) -> Tensor: ...

@final
class Slot:
    """An input or output of a model."""

    @property
    def name(self) -> builtins.str:
        """Its name."""
    @property
    def dtype(self) -> DType | None:
        """The type of its elements; `None` where the model does not say it, and for what is no array."""
    @property
    def shape(self) -> tuple[int | builtins.str | None, ...] | None:
        """The sizes of its dimensions: a number, a name that stands for the same number wherever it is, or `None` for any.
`None` instead of all where the model does not say it, and for what is no array."""
    @property
    def kind(self) -> builtins.str:
        """What it is, in text, such as `float32[batch, 3, 224, 224]` or `sequence of int64[?]`."""

class Session:
    """A model that is ready to run, from as many threads at once as one likes."""

    def __new__(
        cls,
        model: builtins.str | PathLike[builtins.str] | bytes,
        /,
        *,
        device: DeviceLike | Sequence[DeviceLike] | None = None,
        precision: DtypeLike | None = None,
        fallback: builtins.str | None = None,
    ) -> Self: ...
    @property
    def inputs(self) -> list[Slot]:
        """What a run is to be given."""
    @property
    def optional_inputs(self) -> list[Slot]:
        """What a run may be given beside, by name. The model has a value for each."""
    @property
    def outputs(self) -> list[Slot]:
        """What a run gives."""
    @property
    def devices(self) -> list[Device]:
        """The devices that its ops run on, the first one first."""
    def __call__(self, *inputs: Any) -> Any: ...
    def run(self, feeds: Mapping[builtins.str, Any], /, *, stop: Stop | None = None) -> dict[builtins.str, Any]:
        """Runs the model on arrays by the names of its inputs. What comes back is a dictionary of its outputs."""
    @property
    def _about(self) -> dict[builtins.str, Any]: ...
    def _onnx(self, weights_file: builtins.str) -> tuple[bytes, list[tuple[int, bytes]]]: ...
    def _plan(self, *inputs: Any) -> dict[builtins.str, Any]: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Stop:
    """Ends the run that it was given to, once it is set."""

    def __new__(cls) -> Self: ...
    def set(self) -> None:
        """Has the run end before its next step."""

@final
class Recorder:
    """Notes when runs of models, their steps, and calls of ops alone take place, from its start to its end."""

    def __new__(cls) -> Self: ...
    def start(self) -> None:
        """Has it note runs and calls from now on. Another one that did no longer does."""
    def stop(self) -> None:
        """Has it note no more."""
    def now(self) -> int:
        """Nanoseconds since it was made."""
    def take(self) -> tuple[list[dict[builtins.str, Any]], list[dict[builtins.str, Any]]]:
        """The runs that were noted, and no longer are: each with its thread, begin and end, with what its steps are, and with
when they ran: which step, within which other, its begin, when the host had launched it, and its end. Then the calls of
ops alone."""

def asarray(
    obj: Any,
    /,
    *,
    dtype: DtypeLike | None = None,
    device: DeviceLike | None = None,
    copy: builtins.bool | None = None,
) -> Tensor:
    """An array of what it is given: an array, a number, text, nested lists of them, or what has `__dlpack__` or a buffer.

With `copy=None` the memory of a buffer is shared where that can be; with `copy=True` never, and with `copy=False` a copy
is a `ValueError`."""

def from_dlpack(x: Any, /, *, device: DeviceLike | None = None, copy: builtins.bool | None = None) -> Tensor:
    """An array of another library's array, which shares its memory where that can be. With `copy=False` a copy is a
`BufferError`."""

def full(
    shape: Shape, fill_value: Any, *, dtype: DtypeLike | None = None, device: DeviceLike | None = None
) -> Tensor:
    """An array of one number.

>>> full((2, 2), 7)
Tensor(shape=[2, 2], dtype=int64, place=Place(cpu:0), stop_gradient=True,
       [[7, 7],
        [7, 7]])"""

def zeros(shape: Shape, *, dtype: DtypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """An array of zeros."""

def ones(shape: Shape, *, dtype: DtypeLike | None = None, device: DeviceLike | None = None) -> Tensor:
    """An array of ones."""

def reshape(x: Tensor, /, shape: Shape, *, copy: builtins.bool | None = None) -> Tensor:
    """The same elements in another shape, of which one size may be -1: what is left. They lie where they lay, unless they have
gaps between them or `copy` is on."""

def permute_dims(x: Tensor, /, axes: Shape) -> Tensor:
    """An array with its dimensions in another order."""

def _steps(
    count: int, start: float, step: float, device: DeviceLike | None, is_narrow: builtins.bool = False
) -> Tensor: ...
def _parts(x: Tensor, /) -> Tensor: ...
def _joined(arrays: list[Tensor], axis: int, is_new: builtins.bool) -> Tensor: ...
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
    """Calls an op of ONNX or of another domain by its name: `op("Gemm", [a, b], {"transB": 1})`.

An input that is left out is `None`. What comes back is one array, or a tuple where more than one output is asked for."""

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
def devices() -> list[Device]:
    """Every device there is, in the order in which they are looked for."""

def default_device() -> Device:
    """The device that is used when none is named."""

def set_default_device(device: DeviceLike) -> None:
    """Makes a device the one that is used when none is named."""

def get_flags(flags: builtins.str | Sequence[builtins.str] | None = None) -> dict[builtins.str, builtins.str]:
    """The values of flags by their names: of one name, of those in a list, or of all."""

def set_flags(flags: Mapping[builtins.str, Any]) -> None:
    """Chooses flags by their names, such as `set_flags({"threads": 2})`, before the first array or model: the runtime starts with
them. `python -m oarlock flags` lists all."""

def result_type(*arrays_and_dtypes: Tensor | DType | Number) -> DType:
    """The dtype that arrays, dtypes and numbers of Python become when they are used together.

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
def _dtype(name: builtins.str) -> DType: ...
def _flags() -> list[tuple[builtins.str, builtins.str, builtins.str, builtins.str, builtins.str]]: ...
def _paddle_variables() -> list[tuple[builtins.str, builtins.str, builtins.str | None, builtins.str | None]]: ...
def _axes(axes: Any, rank: builtins.int) -> list[builtins.int]: ...
def _axis(axis: SupportsIndex, rank: builtins.int) -> builtins.int: ...
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

def abs(x: Tensor, /) -> Tensor:
    """The absolute value."""
def acos(x: Tensor, /) -> Tensor:
    """The angle whose cosine it is."""
def acosh(x: Tensor, /) -> Tensor:
    """The inverse of the hyperbolic cosine."""
def asin(x: Tensor, /) -> Tensor:
    """The angle whose sine it is."""
def asinh(x: Tensor, /) -> Tensor:
    """The inverse of the hyperbolic sine."""
def atan(x: Tensor, /) -> Tensor:
    """The angle whose tangent it is."""
def atanh(x: Tensor, /) -> Tensor:
    """The inverse of the hyperbolic tangent."""
def bitwise_invert(x: Tensor, /) -> Tensor:
    """Every bit turned around, or the truth."""
def ceil(x: Tensor, /) -> Tensor:
    """The nearest whole number that is not less."""
def conj(x: Tensor, /) -> Tensor:
    """The number with the sign of its imaginary part turned around."""
def cos(x: Tensor, /) -> Tensor:
    """The cosine."""
def cosh(x: Tensor, /) -> Tensor:
    """The hyperbolic cosine."""
def exp(x: Tensor, /) -> Tensor:
    """The power of e."""
def expm1(x: Tensor, /) -> Tensor:
    """The power of e less 1, exact near 0."""
def floor(x: Tensor, /) -> Tensor:
    """The nearest whole number that is not greater."""
def imag(x: Tensor, /) -> Tensor:
    """The imaginary part, which is 0 of a real number."""
def isfinite(x: Tensor, /) -> Tensor:
    """Whether it is a number, and not infinite."""
def isinf(x: Tensor, /) -> Tensor:
    """Whether it is infinite."""
def isnan(x: Tensor, /) -> Tensor:
    """Whether it is no number."""
def log(x: Tensor, /) -> Tensor:
    """The natural logarithm."""
def log10(x: Tensor, /) -> Tensor:
    """The logarithm to base 10."""
def log1p(x: Tensor, /) -> Tensor:
    """The natural logarithm of what is greater by 1, exact near 0."""
def log2(x: Tensor, /) -> Tensor:
    """The logarithm to base 2."""
def logical_not(x: Tensor, /) -> Tensor:
    """Whether it is false."""
def negative(x: Tensor, /) -> Tensor:
    """The number with its sign turned around."""
def real(x: Tensor, /) -> Tensor:
    """The real part, which is all there is of a real number."""
def reciprocal(x: Tensor, /) -> Tensor:
    """One divided by it."""
def round(x: Tensor, /) -> Tensor:
    """The nearest whole number, and of two the even one."""
def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1, as it is less than 0, 0 or greater."""
def signbit(x: Tensor, /) -> Tensor:
    """Whether it has the sign of a negative number."""
def sin(x: Tensor, /) -> Tensor:
    """The sine."""
def sinh(x: Tensor, /) -> Tensor:
    """The hyperbolic sine."""
def sqrt(x: Tensor, /) -> Tensor:
    """The square root."""
def tan(x: Tensor, /) -> Tensor:
    """The tangent."""
def tanh(x: Tensor, /) -> Tensor:
    """The hyperbolic tangent."""
def trunc(x: Tensor, /) -> Tensor:
    """Without what is behind the point."""
def add(x1: _Other, x2: _Other, /) -> Tensor:
    """The sum."""
def atan2(x1: _Other, x2: _Other, /) -> Tensor:
    """The angle of a point, whose second coordinate is the first operand."""
def bitwise_and(x1: _Other, x2: _Other, /) -> Tensor:
    """Both bits, or both truths."""
def bitwise_left_shift(x1: _Other, x2: _Other, /) -> Tensor:
    """Bits moved to the left, by as many places as the second operand says."""
def bitwise_or(x1: _Other, x2: _Other, /) -> Tensor:
    """Either bit, or either truth."""
def bitwise_right_shift(x1: _Other, x2: _Other, /) -> Tensor:
    """Bits moved to the right, by as many places as the second operand says."""
def bitwise_xor(x1: _Other, x2: _Other, /) -> Tensor:
    """One of two bits, or one of two truths."""
def copysign(x1: _Other, x2: _Other, /) -> Tensor:
    """The first with the sign of the second."""
def divide(x1: _Other, x2: _Other, /) -> Tensor:
    """The quotient, of whole numbers as floats."""
def equal(x1: _OtherOrText, x2: _OtherOrText, /) -> Tensor:
    """Whether the two are equal."""
def floor_divide(x1: _Other, x2: _Other, /) -> Tensor:
    """The quotient, rounded down."""
def greater(x1: _Other, x2: _Other, /) -> Tensor:
    """Whether the first is greater."""
def greater_equal(x1: _Other, x2: _Other, /) -> Tensor:
    """Whether the first is greater or equal."""
def hypot(x1: _Other, x2: _Other, /) -> Tensor:
    """The length of the vector of both."""
def less(x1: _Other, x2: _Other, /) -> Tensor:
    """Whether the first is less."""
def less_equal(x1: _Other, x2: _Other, /) -> Tensor:
    """Whether the first is less or equal."""
def logaddexp(x1: _Other, x2: _Other, /) -> Tensor:
    """The logarithm of the sum of two powers of e."""
def logical_and(x1: _Other, x2: _Other, /) -> Tensor:
    """Whether both are true."""
def logical_or(x1: _Other, x2: _Other, /) -> Tensor:
    """Whether one or both are true."""
def logical_xor(x1: _Other, x2: _Other, /) -> Tensor:
    """Whether one is true and the other is not."""
def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, of which there may be many."""
def maximum(x1: _Other, x2: _Other, /) -> Tensor:
    """The greater of the two."""
def minimum(x1: _Other, x2: _Other, /) -> Tensor:
    """The less of the two."""
def multiply(x1: _Other, x2: _Other, /) -> Tensor:
    """The product."""
def nextafter(x1: _Other, x2: _Other, /) -> Tensor:
    """The number beside the first on the way to the second."""
def not_equal(x1: _OtherOrText, x2: _OtherOrText, /) -> Tensor:
    """Whether the two differ."""
def pow(x1: _Other, x2: _Other, /) -> Tensor:
    """The first to the power of the second."""
def remainder(x1: _Other, x2: _Other, /) -> Tensor:
    """What the quotient, rounded down, leaves."""
def subtract(x1: _Other, x2: _Other, /) -> Tensor:
    """The difference."""
