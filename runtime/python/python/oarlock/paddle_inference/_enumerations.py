"""Enumerations with the numbers that Paddle gives them."""

from __future__ import annotations

from enum import IntEnum


class DataType(IntEnum):
    """The dtype of a tensor.

    >>> ol.paddle_inference.DataType.FLOAT32.name
    'FLOAT32'
    """

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2
    UINT8 = 3
    INT8 = 4
    FLOAT16 = 5
    BOOL = 6
    FLOAT64 = 7
    BFLOAT16 = 8


class PlaceType(IntEnum):
    """The type of a device.

    >>> ol.paddle_inference.PlaceType.CPU.name
    'CPU'
    """

    UNK = -1
    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM = 4


class PrecisionType(IntEnum):
    """How exactly a model is computed. Only `Bfloat16` has an effect.

    >>> ol.paddle_inference.PrecisionType.Half.name
    'Half'
    """

    Float32 = 0
    Int8 = 1
    Half = 2
    Bfloat16 = 3
