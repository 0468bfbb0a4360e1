"""Objects that make arrays of what is in brackets after them, as in `mgrid[0:2, 0:3]`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._arguments import arrays_of
from ._creation import arange, linspace, meshgrid
from ._manipulation import concat, stack
from ._oarlock import Tensor, reshape, result_type

if TYPE_CHECKING:
    from ._typing import ArrayLike, Index

__all__: list[str] = ["c_", "mgrid", "ogrid", "r_", "s_"]


class GridMaker:
    """Makes coordinates of all places of a grid: an array for each axis. One axis alone gives its coordinates.

    >>> ol.mgrid[0:2, 0:3].tolist()
    [[[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]]]
    >>> [x.shape for x in ol.ogrid[0:2, 0:3]]
    [(2, 1), (1, 3)]
    """

    def __init__(self, *, sparse: bool) -> None:
        self.sparse = sparse

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        if isinstance(key, slice):
            return _range(key)
        axes = [_range(each) for each in key]
        dtype = result_type(*axes)
        made = meshgrid(*(axis.astype(dtype, copy=False) for axis in axes), indexing="ij", sparse=self.sparse)
        return tuple(made) if self.sparse else stack(made)


class Joiner:
    """Joins arrays, numbers and ranges: `r_` along the first axis, `c_` as columns.

    >>> ol.r_[0, 2:5, [7, 8]].tolist()
    [0, 2, 3, 4, 7, 8]
    >>> ol.c_[[1, 2], [3, 4]].tolist()
    [[1, 3], [2, 4]]
    """

    def __init__(self, *, columns: bool) -> None:
        self.columns = columns

    def __getitem__(self, key: ArrayLike | slice | tuple[ArrayLike | slice, ...]) -> Tensor:
        parts = [_range(each) if isinstance(each, slice) else each for each in (key if isinstance(key, tuple) else (key,))]
        if any(isinstance(each, str) for each in parts):
            raise ValueError("expected arrays, numbers and ranges, found a text\nhint: use `oarlock.concat` or `oarlock.stack`")
        made = arrays_of(*parts)
        if self.columns:
            return concat([x if x.ndim > 1 else reshape(x, (-1, 1)) for x in made], axis=-1)
        return concat([x if x.ndim else reshape(x, (1,)) for x in made])


class IndexMaker:
    """Gives what is in its brackets, so that an index can have a name.

    >>> every_second = ol.s_[::2]
    >>> ol.arange(5)[every_second].tolist()
    [0, 2, 4]
    """

    def __getitem__(self, key: Index) -> Index:
        return key


def _range(key: Any) -> Tensor:
    """The numbers from start to stop. An imaginary step, as in `0:1:5j`, is how many there are, with both ends."""
    stop: Any = getattr(key, "stop", None)
    if stop is None:
        raise TypeError(f"expected a range with an end, such as `0:5`, found {key}")
    start, step = key.start or 0, 1 if key.step is None else key.step
    if isinstance(step, complex):
        return linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


mgrid = GridMaker(sparse=False)
ogrid = GridMaker(sparse=True)
r_ = Joiner(columns=False)
c_ = Joiner(columns=True)
s_ = IndexMaker()
