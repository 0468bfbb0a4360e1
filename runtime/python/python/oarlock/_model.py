"""Models."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from . import _oarlock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from ._explain import Explanation
    from ._oarlock import Tensor
    from ._profile import Profile


class Session(_oarlock.Session):
    """A model that is ready to run, from as many threads at once as one likes.

    >>> import oarlock as ol
    >>> from onnx import parser
    >>> text = '<ir_version: 10, opset_import: ["": 20]> twice (float[n] x) => (float[n] y) { y = Add(x, x) }'
    >>> model = ol.load(parser.parse_model(text).SerializeToString())
    >>> model.inputs
    [Slot("x", float32[n])]
    >>> model(ol.asarray([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    def _tell_fallback(self, sentence: str) -> None:
        """Warns of what the CPU runs because the devices that were named have no kernel for it. Runs call it, once for each op."""
        from ._warning import FallbackWarning, warn

        warn(f"{sentence}; `explain` of the model says why for each node", FallbackWarning)

    async def arun(self, feeds: Mapping[str, Any], /) -> dict[str, Tensor]:
        """Runs the model like `run`, in a thread of its own. A task that is cancelled ends the run before its next step."""
        from asyncio import CancelledError, to_thread

        stop = _oarlock.Stop()
        try:
            return await to_thread(self.run, feeds, stop=stop)
        except CancelledError:
            stop.set()
            raise

    def save(self, file: str | PathLike[str], /) -> None:
        """Writes the model to an ONNX file as it was made ready, which is loaded sooner and gives the same.

        Ops that only Oarlock has are of the domain `oarlock`. Weights of more than 1 GiB go to a file beside it, whose name
        ends in `.data`. Its optional inputs become constants.
        """
        from ._save import save

        save(self, file)

    def explain(self, *inputs: Any) -> Explanation:
        """How the model is run on such inputs: what passes did, which kernel runs each node, and the memory of a run.

        Without inputs it is told for those of the shapes that the model says, with 1 for a size that it leaves open.
        """
        from ._explain import explain

        return explain(self, inputs)

    def profile(self, *inputs: Any, runs: int = 10) -> Profile:
        """Runs the model so many times after a first one, step by step, and says what that took: `print` shows eight tables.

        Without inputs it runs on zeros, as `explain` does.
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
