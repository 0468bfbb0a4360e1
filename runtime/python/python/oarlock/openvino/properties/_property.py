"""Properties."""

from __future__ import annotations

from typing import Any


class Property(str):
    """The name of a property. Called, it gives the name too, or with a value a pair of both."""

    __slots__ = ()

    def __call__(self, *value: Any) -> Any:
        return (str(self), *value) if value else str(self)
