"""The logger of the adapter, `oarlock.onnxruntime`, set as programs set that of onnxruntime."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ._errors import InvalidArgument

log = logging.getLogger("oarlock.onnxruntime")

# The levels of Python's loggers, in the order of onnxruntime's severities.
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


class _Callback(logging.Handler):
    """Passes messages on as onnxruntime does."""

    def __init__(self, callback: Callable[[int, str, str, str, str], object]) -> None:
        super().__init__()
        self._callback = callback

    def emit(self, record: logging.LogRecord) -> None:
        severity = max(0, min(record.levelno // 10 - 1, 4))
        self._callback(severity, "onnxruntime", "", f"{record.filename}:{record.lineno} {record.funcName}", record.getMessage())


def set_default_logger_severity(severity: int) -> None:
    """Sets the least severity that the logger `oarlock.onnxruntime` writes: 0 is everything, 2 warnings, 4 almost nothing.

    >>> ol.onnxruntime.set_default_logger_severity(2)
    """
    if not 0 <= severity < len(_LEVELS):
        raise InvalidArgument(f"expected a severity of 0 to 4, found {severity}")
    log.setLevel(_LEVELS[severity])


def set_default_logger_verbosity(verbosity: int) -> None:
    """Has no effect: nothing is logged more than once at a severity.

    >>> ol.onnxruntime.set_default_logger_verbosity(0)
    """


def set_default_logger_callback(callback: Callable[[int, str, str, str, str], object] | None, severity: int = 2) -> None:
    """Passes the messages of the adapter to a function instead of writing them, or with `None`, writes them again."""
    for handler in [each for each in log.handlers if isinstance(each, _Callback)]:
        log.removeHandler(handler)
    log.propagate = callback is None
    if callback is not None:
        set_default_logger_severity(severity)
        log.addHandler(_Callback(callback))
