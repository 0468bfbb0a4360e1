"""The API of OpenVINO's runtime on Oarlock: change `import openvino` to `import oarlock.openvino` in a program.

Models are ONNX files or programs of Paddle; OpenVINO's own `.xml` files are not read. Inputs and results are NumPy arrays. The
device, the number of threads and the precision bf16 take effect; other properties are stored.

Exceptions are `RuntimeError`, and `KeyError` for a result that is not there.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from .._absent import name_of_peer
from .._oarlock import __version__ as _oarlock_version
from ._model import CompiledModel, Core, Model, compile_model, convert_model
from ._request import AsyncInferQueue, InferRequest
from ._tensor import Tensor
from ._types import ConstOutput, Dimension, PartialShape, Shape, Type

if TYPE_CHECKING:
    from types import ModuleType

    from . import properties as properties, runtime as runtime

__all__ = [
    "AsyncInferQueue",
    "CompiledModel",
    "ConstOutput",
    "Core",
    "Dimension",
    "InferRequest",
    "Model",
    "Output",
    "PartialShape",
    "Shape",
    "Tensor",
    "Type",
    "__version__",
    "compile_model",
    "convert_model",
    "get_version",
]

# The version of OpenVINO whose interface this is.
__version__ = "2026.4.1"

Output = ConstOutput

_SAVE = "`oarlock.load(…).save(…)` writes the optimized model as an ONNX file"
_ARRAYS = "prepare inputs with NumPy, or in the model"
INSTEAD = {
    "Extension": "write an op of your own with `oarlock.extension`",
    "Layout": _ARRAYS,
    "preprocess": _ARRAYS,
    "save_model": _SAVE,
    "serialize": _SAVE,
    "set_batch": "call `reshape` of the model",
}
"""Names of OpenVINO that are not supported, and what to do instead."""


def get_version() -> str:
    """The version of OpenVINO whose interface this is, with that of Oarlock as its local part.

    >>> ol.openvino.get_version().split("+")[0]
    '2026.4.1'
    """
    return f"{__version__}+oarlock.{_oarlock_version}"


def __getattr__(name: str) -> ModuleType:
    """Loads a module below this one; for unsupported names, says what to do instead."""
    if name in ("properties", "runtime"):
        return import_module(f".{name}", __name__)
    raise name_of_peer(sys.modules[__name__], name, "oarlock.openvino", INSTEAD)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
