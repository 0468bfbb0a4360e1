"""The exceptions of onnxruntime by their names.

Each is also the exception that Oarlock raises for it, so that programs may catch either. `Fail` is the base of all: where
onnxruntime has no closer name for something, a more fitting one may be raised here.
"""

from __future__ import annotations

from .._oarlock import Error


class Fail(Error):
    """Something went wrong."""


class InvalidArgument(Fail, ValueError):
    """What a run was given is not what the model takes."""


class _OutOfRange(InvalidArgument, IndexError):
    """The same where it is an index."""


class InvalidGraph(Fail, ValueError):
    """A model that can be read and makes no sense."""


class InvalidProtobuf(Fail, ValueError):
    """A file that is no model."""


class NoSuchFile(Fail, FileNotFoundError):
    """A file that is not there."""


class NotImplemented(Fail, NotImplementedError):
    """What nobody here does."""


class _UnknownOp(NotImplemented, InvalidGraph):
    """A model with an op that nobody has."""


class RuntimeException(Fail):
    """What went wrong while a model ran."""


# Oarlock has no cause for these; programs name them to catch them.
class EPFail(Fail):
    """Something went wrong in a provider."""


class EngineError(Fail):
    """Something went wrong in an engine below."""


class ModelLoaded(Fail):
    """A model that is loaded was to be loaded."""


class NoModel(Fail):
    """No model is loaded."""


def of_load(error: Exception) -> Exception:
    """The exception for a model that cannot be loaded."""
    text = str(error)
    match error:
        case Fail():
            return error
        case FileNotFoundError():
            return NoSuchFile(text)
        case NotImplementedError():
            return _UnknownOp(text)
        case ValueError():
            return InvalidProtobuf(text) if "expected an ONNX model, found" in text else InvalidGraph(text)
        case Error():
            return Fail(text)
        case _:
            return error


def of_run(error: Exception) -> Exception:
    """The exception for a run that fails."""
    text = str(error)
    match error:
        case Fail():
            return error
        case IndexError():
            return _OutOfRange(text)
        case ValueError():
            return InvalidArgument(text)
        case NotImplementedError():
            return NotImplemented(text)
        case Error():
            return RuntimeException(text)
        case _:
            return error
