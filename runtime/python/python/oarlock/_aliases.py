"""Names that NumPy and PyTorch have for functions that also have another one here."""

from __future__ import annotations

from . import _oarlock
from ._creation import array
from ._elementwise import clip, round
from ._manipulation import concat, expand_dims
from ._mathematics import deg2rad, rad2deg
from ._oarlock import permute_dims
from ._statistics import max, min

__all__: list[str] = [
    "absolute",
    "amax",
    "amin",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "around",
    "bitwise_not",
    "cat",
    "clamp",
    "concatenate",
    "conjugate",
    "degrees",
    "fix",
    "invert",
    "left_shift",
    "mod",
    "permute",
    "power",
    "radians",
    "right_shift",
    "rint",
    "tensor",
    "true_divide",
    "unsqueeze",
]

absolute = _oarlock.abs
amax = max
amin = min
arccos = _oarlock.acos
arccosh = _oarlock.acosh
arcsin = _oarlock.asin
arcsinh = _oarlock.asinh
arctan = _oarlock.atan
arctan2 = _oarlock.atan2
arctanh = _oarlock.atanh
around = round
bitwise_not = _oarlock.bitwise_invert
cat = concat
clamp = clip
concatenate = concat
conjugate = _oarlock.conj
degrees = rad2deg
fix = _oarlock.trunc
invert = _oarlock.bitwise_invert
left_shift = _oarlock.bitwise_left_shift
mod = _oarlock.remainder
permute = permute_dims
power = _oarlock.pow
radians = deg2rad
right_shift = _oarlock.bitwise_right_shift
rint = _oarlock.round
tensor = array
true_divide = _oarlock.divide
unsqueeze = expand_dims
