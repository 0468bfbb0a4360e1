"""The names of properties of streams."""

from ._property import Property

num = Property("NUM_STREAMS")
