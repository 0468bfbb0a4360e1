"""The same names as `oarlock.openvino`, for programs that import them from `openvino.runtime`, as before OpenVINO 2025."""

from . import *
from . import __all__ as __all__, properties as properties
