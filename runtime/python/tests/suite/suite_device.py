"""A plugin of pytest that has the arrays of a suite lie on the device that `OARLOCK_SUITE_DEVICE` names."""

import os

import oarlock

oarlock.set_device(os.environ["OARLOCK_SUITE_DEVICE"])
