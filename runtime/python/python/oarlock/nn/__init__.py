"""Neural networks as plain functions of arrays, in `oarlock.nn.functional`.

>>> import oarlock as ol
>>> import oarlock.nn.functional as F
>>> F.relu(ol.asarray([1.0, -2.0])).tolist()
[1.0, 0.0]

There are no layers with parameters of their own, and no gradients: `oarlock.load` reads models that are trained elsewhere.
"""

from __future__ import annotations

import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from . import functional

__all__ = ["functional"]


def __dir__() -> list[str]:
    """The public names."""
    return __all__


if not TYPE_CHECKING:

    def __getattr__(name: str) -> ModuleType:
        """Loads the functions on first use, because methods of arrays need few of them."""
        if name == "functional":
            return import_module(f"{__name__}.functional")
        hint = "" if name.startswith("_") else "\nhint: there are functions without parameters in `oarlock.nn.functional`"
        raise AttributeError(f"module `{__name__}` has no `{name}`{hint}", name=name, obj=sys.modules[__name__])
