"""The API of `paddle.inference` on Oarlock: change `paddle.inference` to `oarlock.paddle_inference` in imports.

Models are programs of Paddle 2 and 3 with their parameters, or ONNX files. Handles take and return NumPy arrays. Switches of
`Config` choose the device, the number of threads and bfloat16; those about Paddle's internals have no effect.

Exceptions are `RuntimeError` and, for what is not as expected, also `ValueError`.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from .._absent import name_of_peer
from ._config import Config
from ._enumerations import DataType, PlaceType, PrecisionType
from ._predictor import Predictor, PredictorPool, create_predictor, get_version
from ._tensor import Tensor

__all__ = [
    "Config",
    "DataType",
    "PlaceType",
    "PrecisionType",
    "Predictor",
    "PredictorPool",
    "Tensor",
    "create_predictor",
    "get_version",
]

_TENSORRT = "leave the call out: TensorRT is not used"
INSTEAD = {
    "InternalUtils": "use what `Config` and `Predictor` have",
    "XpuConfig": "`enable_xpu` of `Config` chooses the device",
    "convert_to_mixed_precision": "`enable_mkldnn_bfloat16` of `Config` permits products in bfloat16",
    "get_num_bytes_of_data_type": "`itemsize` of a dtype of NumPy is the number of bytes",
    "get_trt_compile_version": _TENSORRT,
    "get_trt_runtime_version": _TENSORRT,
}
"""Names of `paddle.inference` that are not supported, and what to do instead."""


def __getattr__(name: str) -> NoReturn:
    """For unsupported names, says what to do instead."""
    raise name_of_peer(sys.modules[__name__], name, "oarlock.paddle_inference", INSTEAD)


def __dir__() -> list[str]:
    """The public names."""
    return __all__
