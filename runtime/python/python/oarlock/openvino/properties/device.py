"""The names of properties of devices."""

from ._property import Property

full_name = Property("FULL_DEVICE_NAME")
id = Property("DEVICE_ID")
priorities = Property("MULTI_DEVICE_PRIORITIES")
