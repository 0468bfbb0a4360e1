"""Methods that arrays of other libraries have and these lack, as in the standard: the error names the function to call instead.

Each is a descriptor on the class that raises `AttributeError`, so attributes that exist cost nothing extra.
"""

from __future__ import annotations

from ._oarlock import Tensor

FUNCTIONS = """
    all any argmax argmin argsort clip conj count_nonzero cumulative_prod cumulative_sum diff expand_dims flip imag isfinite
    isin isinf isnan matmul max mean min moveaxis nonzero permute_dims prod real repeat reshape roll round searchsorted sort
    squeeze std sum take take_along_axis tile tril triu unstack var where
""".split()
"""Functions of the namespace that take an array first."""

OTHERS = {
    "abs": "abs(x)",
    "copy": "oarlock.asarray(x, copy=True)",
    "cpu": 'x.to_device("cpu")',
    "cumprod": "oarlock.cumulative_prod(x)",
    "cumsum": "oarlock.cumulative_sum(x)",
    "dot": "oarlock.matmul(x, …)",
    "fill": "x[...] = …",
    "flatten": "oarlock.reshape(x, (-1,))",
    "ravel": "oarlock.reshape(x, (-1,))",
    "to": "x.to_device(…)` or `x.astype(…)",
    "tobytes": "x.numpy().tobytes()",
    "transpose": "oarlock.permute_dims(x, …)` or `x.T",
    "unsqueeze": "oarlock.expand_dims(x, …)",
    "view": "oarlock.reshape(x, …)",
}
"""Names in other libraries, and the names of the same functions here."""

INSTEAD = {name: f"oarlock.{name}(x, …)" for name in FUNCTIONS} | OTHERS


class Absent:
    """A method that arrays do not have."""

    __slots__ = ("instead", "name")

    def __init__(self, name: str, instead: str) -> None:
        self.name = name
        self.instead = instead

    def __get__(self, array: Tensor | None, kind: type[Tensor]) -> Absent:
        if array is None:
            return self
        message = f"expected an attribute that arrays have, found `{self.name}`\nhint: use `{self.instead}`"
        raise AttributeError(message, name=self.name, obj=array)


def attributes(array: Tensor) -> list[str]:
    """The names of the attributes that exist."""
    return [name for name in object.__dir__(array) if name not in INSTEAD]


def note() -> None:
    """Adds the descriptors to the array class."""
    for name, instead in INSTEAD.items():
        setattr(Tensor, name, Absent(name, instead))
    setattr(Tensor, "__dir__", attributes)  # noqa: B010
