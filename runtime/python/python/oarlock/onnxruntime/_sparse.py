"""Sparse tensors, which Oarlock does not have."""

from __future__ import annotations

from typing import Any, NoReturn

from ._errors import NotImplemented


class SparseTensor:
    """A name for annotations and `isinstance`: nothing is one."""

    def __init__(self, *_arguments: Any) -> None:
        refuse_sparse()

    @classmethod
    def sparse_coo_from_numpy(cls, *_arguments: Any) -> NoReturn:
        """Is not supported."""
        refuse_sparse()

    @classmethod
    def sparse_csr_from_numpy(cls, *_arguments: Any) -> NoReturn:
        """Is not supported."""
        refuse_sparse()


def refuse_sparse() -> NoReturn:
    """Raises the error for sparse tensors."""
    raise NotImplemented("expected an array with all elements, found a sparse tensor\nhint: use NumPy arrays")
