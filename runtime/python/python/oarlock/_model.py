"""Models."""

from __future__ import annotations

from operator import index

from . import _loading, _oarlock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn, Self
    from collections.abc import Mapping
    from os import PathLike

    from ._explain import Explanation
    from ._oarlock import Tensor
    from ._profile import Profile


class Session(_oarlock.Session, metaclass=_loading.PublicNames):
    """A model that is ready to run, from any number of threads at once.

    >>> import oarlock as ol
    >>> from onnx import parser
    >>> text = '<ir_version: 10, opset_import: ["": 20]> twice (float[n] x) => (float[n] y) { y = Add(x, x) }'
    >>> model = ol.load(parser.parse_model(text).SerializeToString())
    >>> model.inputs
    [Slot("x", float32[n])]
    >>> model(ol.asarray([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    def __dir__(self) -> list[str]:
        """The names of the public attributes."""
        return _loading.public(object.__dir__(self))

    @property
    def graph_name(self) -> str:
        """The name of the graph."""
        name: str = self._about["graph"]
        return name

    @property
    def producer(self) -> str:
        """The program that made the model, with its version."""
        name: str = self._about["producer"]
        return name

    @property
    def description(self) -> str:
        """What the model says about itself."""
        told: str = self._about["description"]
        return told

    @property
    def opsets(self) -> dict[str, int]:
        """The versions of the sets of ops by domain."""
        versions: dict[str, int] = self._about["opsets"]
        return versions

    @property
    def metadata(self) -> dict[str, str]:
        """What else whoever made the model wrote into it, by key."""
        properties: dict[str, str] = self._about["metadata"]
        return properties

    def __repr__(self) -> str:
        from ._model_text import text

        return text(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the use of the model: later runs raise an error. Runs that have begun end as they would.

        What the model is stays known. Its memory is given back when the object is deleted.
        """
        # Runs of a model that is open need no check then.
        setattr(self, "__class__", ClosedSession)  # noqa: B010

    def _tell_fallback(self, sentence: str) -> None:
        """Warns about ops that fall back to the CPU. Runs call it once for each op."""
        from ._warning import FallbackWarning, warn

        warn(f"{sentence}; `explain` of the model says why for each node", FallbackWarning)

    async def arun(self, feeds: Mapping[str, Any], /) -> dict[str, Tensor]:
        """Runs the model like `run`, in its own thread. Cancelling the task stops the run before its next step."""
        from asyncio import CancelledError, to_thread

        stop = _oarlock.Stop()
        try:
            return await to_thread(self.run, feeds, stop=stop)
        except CancelledError:
            stop.set()
            raise

    def save(self, file: str | PathLike[str], /) -> None:
        """Writes the optimized model to an ONNX file, which loads faster and computes the same.

        Ops that only Oarlock has are in the domain `oarlock`. Weights of more than 1 GiB go to a file beside it, whose name
        ends in `.data`. Optional inputs become constants.
        """
        from ._save import save

        save(self, file)

    def explain(self, *inputs: Any) -> Explanation:
        """How the model runs on such inputs: the passes, the kernel of each node, and the memory of a run.

        Without inputs, the shapes are those of the model, with 1 for each open size.
        """
        from ._explain import explain

        return explain(self, inputs)

    def profile(self, *inputs: Any, runs: int = 10) -> Profile:
        """Times `runs` runs step by step, after a first one that does not count. `print` shows the result as eight tables.

        Without inputs, it runs on zeros, with shapes as in `explain`.
        """
        from ._explain import sample
        from .profiler import Profiler

        try:
            runs = index(runs)
        except TypeError:
            raise TypeError(f"`profile` expected a whole number for `runs`, found {type(runs).__name__}") from None
        if runs < 1:
            raise ValueError(f"expected at least one run, found {runs}")
        given = inputs or tuple(sample(slot) for slot in self.inputs)
        self(*given)
        with Profiler() as profiler:
            for _ in range(runs):
                self(*given)
                profiler.step()
        return profiler.profile


class ClosedSession(Session):
    """A model after `close`."""

    def __repr__(self) -> str:
        from ._model_text import text

        return text(self, ", closed")

    def _refuse(self, *_inputs: Any, **_named: Any) -> NoReturn:
        """Raises the error for all that needs an open model."""
        raise _oarlock.Error("expected a model that is open, found one that was closed\nhint: load it again with `oarlock.load`")

    __call__ = run = arun = save = explain = profile = __enter__ = _plan = _onnx = _refuse
