"""The exceptions of onnxruntime.

Each is also the exception that Oarlock raises, so programs may catch either. `Fail` is the base of all. Where onnxruntime
raises a plain `Fail`, a more specific one may be raised here.
"""

from __future__ import annotations

from .._oarlock import Error


class Fail(Error):
    """Something went wrong."""


class InvalidArgument(Fail, ValueError):
    """Inputs that the model does not accept."""


class _OutOfRange(InvalidArgument, IndexError):
    """An index out of range."""


class WrongType(InvalidArgument, TypeError):
    """A value that is no input of any model."""


class InvalidGraph(Fail, ValueError):
    """An invalid model in a valid file."""


class InvalidProtobuf(Fail, ValueError):
    """A file that is not a model."""


class NoSuchFile(Fail, FileNotFoundError):
    """A file that does not exist."""


class NotImplemented(Fail, NotImplementedError):
    """A feature that is not implemented."""


class _UnknownOp(NotImplemented, InvalidGraph):
    """A model with an unknown op."""


class RuntimeException(Fail):
    """A failed run."""


# Oarlock never raises these; programs name them to catch them.
class DeviceReset(Fail):
    """A device that was reset."""


class EPFail(Fail):
    """An error of a provider."""


class EngineError(Fail):
    """An error of an engine."""


class ModelLoadCanceled(Fail):
    """A load that was canceled."""


class ModelLoaded(Fail):
    """A model that was already loaded."""


class ModelRequiresCompilation(Fail):
    """A model that a provider must compile first."""


class NoModel(Fail):
    """No model is loaded."""


class NotFound(Fail):
    """Something that does not exist."""


def expect_type(value: object, kind: type, expected: str, advice: str) -> None:
    """Refuses a value of another type."""
    if not isinstance(value, kind):
        raise WrongType(f"expected {expected}, found {type(value).__name__}\nhint: {advice}")


_WITHOUT_FOLDER = "no directory to look for it"

_OF_FOLDER = (
    "\nhint: the files of a model are expected in its folder, which bytes do not tell: load the model by its path, or give the files by "
    "`SessionOptions.add_external_initializers_from_files_in_memory`"
)


def of_load(error: Exception) -> Exception:
    """The exception for a model that cannot be loaded."""
    text = str(error)
    text += _OF_FOLDER if _WITHOUT_FOLDER in text else ""
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
        case TypeError():
            return WrongType(text)
        case ValueError():
            return InvalidArgument(text)
        case NotImplementedError():
            return NotImplemented(text)
        case Error():
            # Programs that set `terminate` catch the exception that they get there.
            return Fail(text) if text == "the run was stopped" else RuntimeException(text)
        case _:
            return error
