"""The generator: a key and a counter, from which every number follows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from operator import index
from threading import Lock
from typing import TYPE_CHECKING, Any

from .. import _absent, _oarlock
from .._manipulation import broadcast_shapes
from .._oarlock import Device, Tensor, _sampled, asarray
from ._distributions import Distributions
from ._seed import WORD, Seed, key_of, mixed

if TYPE_CHECKING:
    from .._typing import DeviceLike, DtypeLike

    Size = int | Sequence[int] | None


class Generator(Distributions):
    """Random numbers from a seed: the same ones on every device, with any number of threads, in any process.

    >>> rng = ol.random.Generator(7)
    >>> rng.integers(0, 10, size=5)
    Tensor(shape=[5], dtype=int64, place=Place(cpu:0), stop_gradient=True,
           [5, 4, 0, 7, 2])

    A number is a function (Philox-4x32-10) of the key that the seed gives, of how many numbers were drawn before, and of its index. The
    CPU makes it, and a device gets a copy.
    """

    def __init__(self, seed: Seed = None, *, device: DeviceLike | None = None) -> None:
        self._key = key_of(seed)
        self._offset = 0
        self._children = 0
        self._device = device
        self._lock = Lock()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Tells what to use in place of methods that are absent here."""
            raise _absent.method(self, name)

    def __repr__(self) -> str:
        return f"Generator(key={self._key:#018x}, offset={self._offset})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.state, self._device)

    @property
    def state(self) -> dict[str, int]:
        """What the next numbers depend on; assigning it goes back, or on, to them."""
        with self._lock:
            return {"key": self._key, "offset": self._offset, "children": self._children}

    @state.setter
    def state(self, state: dict[str, int]) -> None:
        try:
            key, offset, children = (int(state[name]) % WORD for name in ("key", "offset", "children"))
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"expected the state of a generator, as `state` gives it, found {state!r}") from None
        with self._lock:
            self._key, self._offset, self._children = key, offset, children

    def seed(self, seed: Seed = None) -> None:
        """Starts again, from another seed or, without one, from a key of the operating system.

        >>> rng = ol.random.default_rng()
        >>> rng.seed(7)
        >>> rng.integers(0, 10, size=3).tolist()
        [5, 4, 0]
        """
        self.state = {"key": key_of(seed), "offset": 0, "children": 0}

    def spawn(self, n_children: int) -> list[Generator]:
        """Generators whose numbers are independent of each other and of this one's, for work in parallel.

        They follow from the seed and from how many were spawned before, not from how many numbers were drawn.

        >>> [child.random().shape for child in ol.random.default_rng(7).spawn(2)]
        [(), ()]
        """
        if n_children < 0:
            raise ValueError(f"expected a number of generators of at least 0, found {n_children}")
        with self._lock:
            first, self._children = self._children, self._children + n_children
        made = [Generator(0, device=self._device) for _ in range(n_children)]
        for number, child in enumerate(made, first):
            # Mixed twice, so that the keys of children's children differ from all of these.
            child.state = {"key": mixed(mixed(self._key) ^ mixed(number + 1)), "offset": 0, "children": 0}
        return made

    def _drawn(
        self,
        distribution: str,
        size: Size,
        parameters: Sequence[Any] = (),
        dtype: DtypeLike | None = None,
        parameter_dtype: DtypeLike = _oarlock.float64,
        device: DeviceLike | None = None,
    ) -> Tensor:
        """Numbers of a distribution that the op has, in the shape that size and parameters have."""
        made_of = [asarray(given, dtype=parameter_dtype if isinstance(given, int) else None) for given in parameters]
        shape = self._shape(size, [given.shape for given in made_of])
        with self._lock:
            key, offset = self._key, self._offset
            self._offset = (offset + prod(shape)) % WORD
        made = _sampled(distribution, _oarlock.float32 if dtype is None else dtype, (key, offset), shape, made_of, parameter_dtype)
        return self._placed(made, device)

    def _placed(self, made: Tensor, device: DeviceLike | None) -> Tensor:
        """The numbers on the device of the call or of the generator, else on the default device."""
        place = self._device if device is None else device
        if place is None:
            place = _oarlock.default_device()
        return made.to_device(place if isinstance(place, Device) else Device(place))

    @staticmethod
    def _shape(size: Size, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The shape of the result: the size, which the parameters have to fit, or what they have in common."""
        common = broadcast_shapes(*shapes) if shapes else ()
        if size is None:
            return common
        try:
            wanted = tuple(map(index, size)) if isinstance(size, Sequence) else (index(size),)
        except TypeError:
            raise TypeError(f"expected a whole number or a shape as `size`, found {size!r}") from None
        if any(length < 0 for length in wanted):
            raise ValueError(f"expected a size of at least 0, found {size}")
        fits = len(common) <= len(wanted) and all(
            own in (1, length) for own, length in zip(reversed(common), reversed(wanted), strict=False)
        )
        if not fits:
            raise ValueError(f"expected a size that parameters of the shape {common} repeat to, found {size}")
        return wanted


def _restored(state: dict[str, int], device: DeviceLike | None) -> Generator:
    """A generator out of a pickle."""
    made = Generator(0, device=device)
    made.state = state
    return made


def default_rng(seed: Seed | Generator = None, *, device: DeviceLike | None = None) -> Generator:
    """A generator, as NumPy's function of this name gives one; a generator is returned unchanged.

    >>> ol.random.default_rng(7).integers(0, 10, size=3).tolist()
    [5, 4, 0]
    """
    return seed if isinstance(seed, Generator) else Generator(seed, device=device)
