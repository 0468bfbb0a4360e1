"""Arrays to files of NumPy's formats."""

from __future__ import annotations

import zipfile
from typing import IO, TYPE_CHECKING

from ._arguments import in_own_name
from ._files import write_to
from ._npy_format import write_array
from ._oarlock import asarray

if TYPE_CHECKING:
    from os import PathLike

    from ._typing import ArrayLike

__all__: list[str] = ["save", "savez", "savez_compressed"]


@in_own_name
def save(file: str | PathLike[str] | IO[bytes], arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Writes an array to a file in NumPy's format `.npy`, which `load` and NumPy read.

    A path without the ending `.npy` gets it. The file is replaced when all is written. Numbers in `bfloat16` are written as the
    package `ml_dtypes` writes them. `allow_pickle` has no effect, as no array has objects.
    """
    x = asarray(arr)
    write_to(file, ".npy", lambda stream: write_array(stream, x))


@in_own_name
def savez(
    file: str | PathLike[str] | IO[bytes], /, *args: ArrayLike, allow_pickle: bool = True, **kwds: ArrayLike
) -> None:
    """Writes several arrays to a file in NumPy's format `.npz`: those without a name as `arr_0`, `arr_1` and so on."""
    _write_all(file, args, kwds, zipfile.ZIP_STORED)


@in_own_name
def savez_compressed(
    file: str | PathLike[str] | IO[bytes], /, *args: ArrayLike, allow_pickle: bool = True, **kwds: ArrayLike
) -> None:
    """Writes several arrays to a file like `savez`, which takes longer and makes it smaller."""
    _write_all(file, args, kwds, zipfile.ZIP_DEFLATED)


def _write_all(
    file: str | PathLike[str] | IO[bytes], unnamed: tuple[ArrayLike, ...], named: dict[str, ArrayLike], compression: int
) -> None:
    """Writes a ZIP of arrays."""
    arrays = {name: asarray(each) for name, each in named.items()}
    for at, each in enumerate(unnamed):
        if f"arr_{at}" in arrays:
            raise ValueError(f"expected another name than `arr_{at}`, which the array without a name gets, found it")
        arrays[f"arr_{at}"] = asarray(each)

    def put(stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream, "w", compression, allowZip64=True) as archive:
            for name, x in arrays.items():
                # The size of a member is known only at its end, and may exceed what the plain format has.
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    write_array(member, x)

    write_to(file, ".npz", put)
