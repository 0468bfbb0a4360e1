"""Paddle ops of linear algebra, on diagonals, and that count, in the rows of `op_cases.py`."""

import numpy
from op_cases import F32, I64, X2, X3, X4, normal, one, positive, truths, whole


def regular(*shape):
    """Matrices that are far from singular."""
    return normal(*shape) + 4 * numpy.eye(shape[-1], dtype="float32")


def symmetric(*shape):
    """Positive definite matrices."""
    x = normal(*shape)
    return x @ numpy.swapaxes(x, -1, -2) + 2 * numpy.eye(shape[-1], dtype="float32")


def matrices():
    """Linear algebra."""
    yield "bilinear_tensor_product", {"X": X2, "Y": normal(4, 5), "Weight": normal(3, 6, 5), "Bias": normal(1, 3)}, ["Out"], {}
    yield "cholesky", {"X": symmetric(2, 3, 3)}, ["Out"], {"upper": False}
    yield "cholesky", {"X": symmetric(4, 4)}, ["Out"], {"upper": True}
    yield "cross", {"X": X3, "Y": normal(2, 3, 4)}, ["Out"], {"dim": 9}
    yield "cross", {"X": normal(4, 3), "Y": normal(4, 3)}, ["Out"], {"dim": -1}
    for shape in [(2, 3, 3), (4, 4)]:
        yield "determinant", {"Input": regular(*shape)}, ["Out"], {}
        yield "slogdeterminant", {"Input": regular(*shape)}, ["Out"], {}
        yield "inverse", {"Input": regular(*shape)}, ["Output"], {}
    for power in [2.0, 1.0, 3.0, 0.0, float("inf"), float("-inf")]:
        yield "dist", {"X": X3, "Y": normal(2, 3, 4)}, ["Out"], {"p": power}
    yield "kron", {"X": X2, "Y": normal(2, 3)}, ["Out"], {}
    yield "kron", {"X": X2, "Y": normal(2, 2, 3)}, ["Out"], {}
    for power in [3, 1, 0, -2]:
        yield "matrix_power", {"X": regular(2, 3, 3) / 4}, ["Out"], {"n": power}
    yield "multi_dot", {"X": [X2, normal(6, 5), normal(5, 3)]}, ["Out"], {}
    yield "multi_dot", {"X": [normal(6), normal(6, 5), normal(5)]}, ["Out"], {}
    yield "solve", {"X": regular(2, 3, 3), "Y": normal(2, 3, 2)}, ["Out"], {}
    yield "solve", {"X": regular(3, 3), "Y": normal(3)}, ["Out"], {}
    for upper, transpose, unit in [(True, False, False), (False, True, False), (True, True, True), (False, False, True)]:
        how = {"upper": upper, "transpose": transpose, "unitriangular": unit}
        yield "triangular_solve", {"X": regular(2, 3, 3), "Y": normal(2, 3, 2)}, ["Out"], how


def diagonals():
    """Diagonals of matrices."""
    for offset in [0, 2, -1]:
        yield "diag_v2", {"X": normal(5)}, ["Out"], {"offset": offset, "padding_value": 0.5}
        yield "diag_v2", {"X": X2}, ["Out"], {"offset": offset, "padding_value": 0.0}
        yield "diag_embed", {"Input": X2}, ["Out"], {"offset": offset, "dim1": -2, "dim2": -1}
        yield "diag_embed", {"Input": X3}, ["Out"], {"offset": offset, "dim1": 2, "dim2": 0}
        yield "diagonal", {"Input": X3}, ["Out"], {"offset": offset, "axis1": 2, "axis2": 0}
        yield "fill_diagonal", {"X": X2}, ["Out"], {"value": 7.0, "offset": offset, "wrap": False}
        yield "trace", {"Input": X2}, ["Out"], {"offset": offset, "axis1": 0, "axis2": 1}
        yield "tril_indices", {}, ["out"], {"rows": 3, "cols": 4, "offset": offset, "dtype": I64}
        yield "triu_indices", {}, ["out"], {"row": 4, "col": 3, "offset": offset, "dtype": 2}
    yield "trace", {"Input": X3}, ["Out"], {"offset": 0, "axis1": 1, "axis2": 2}


def counting():
    """Counts, and elements by their rank."""
    yield "bincount", {"X": whole(0, 6, 12)}, ["Out"], {"minlength": 0}
    yield "bincount", {"X": whole(0, 6, 12), "Weights": positive(12)}, ["Out"], {"minlength": 9}
    yield "histogram", {"X": X2}, ["Out"], {"bins": 5, "min": -1, "max": 1}
    yield "kthvalue", {"X": X3}, ["Out", "Indices"], {"k": 2, "axis": 1, "keepdim": False}
    yield "kthvalue", {"X": X3}, ["Out", "Indices"], {"k": 4, "axis": -1, "keepdim": True}
    rows = numpy.sort(whole(0, 9, 4, 6).astype("float32"), -1)
    yield "searchsorted", {"SortedSequence": rows, "Values": whole(0, 9, 4, 3).astype("float32")}, ["Out"], {"out_int32": False, "right": False}
    yield "searchsorted", {"SortedSequence": rows[0], "Values": whole(0, 9, 4, 3).astype("float32")}, ["Out"], {"out_int32": True, "right": True}
    runs = one(1, 1, 2, 2, 2, 1, 3)
    yield "unique_consecutive", {"X": runs}, ["Out", "Index", "Counts"], {"return_inverse": True, "return_counts": True, "axis": [], "dtype": I64}
    yield "unique_consecutive", {"X": runs[:1]}, ["Out"], {"return_inverse": False, "return_counts": False, "axis": [], "dtype": I64}


def others():
    """Ops that are rare in inference."""
    yield "bernoulli", {"X": positive(4, 6) / 4}, ["Out"], {}
    yield "broadcast_tensors", {"X": [normal(4, 1), normal(6)]}, ["Out", "Out"], {}
    yield "clip_by_norm", {"X": X2}, ["Out"], {"max_norm": 1.5}
    yield "clip_by_norm", {"X": X2}, ["Out"], {"max_norm": 99.0}
    yield "l1_norm", {"X": X2}, ["Out"], {}
    yield "squared_l2_norm", {"X": X2}, ["Out"], {}
    yield "cumprod", {"X": X3}, ["Out"], {"dim": 1}
    yield "elementwise_heaviside", {"X": one(-1, 0, 2, dtype="float32"), "Y": one(0.5, 0.25, 3, dtype="float32")}, ["Out"], {}
    yield "nextafter", {"x": X2, "y": positive(4, 6)}, ["out"], {}
    yield "isclose", {"Input": X2, "Other": X2 + truths(4, 6).astype("float32")}, ["Out"], {"rtol": "1e-3", "atol": "1e-4", "equal_nan": False}
    yield "label_smooth", {"X": positive(4, 6)}, ["Out"], {"epsilon": 0.25}
    yield "label_smooth", {"X": positive(4, 6), "PriorDist": positive(1, 6)}, ["Out"], {"epsilon": 0.25}
    yield "logit", {"X": positive(4, 6) / 3}, ["Out"], {"eps": 0.0}
    yield "logit", {"X": X2}, ["Out"], {"eps": 0.125}
    yield "fold", {"X": normal(2, 12, 12)}, ["Y"], {"output_sizes": [4, 5], "kernel_sizes": [2, 2], "strides": [1, 1], "paddings": [0, 0, 0, 0], "dilations": [1, 1]}
    yield "fold", {"X": normal(1, 6, 18)}, ["Y"], {"output_sizes": [5, 6], "kernel_sizes": [2, 3], "strides": [2, 1], "paddings": [1, 1, 1, 1], "dilations": [1, 1]}
    yield "index_add", {"X": X3, "Index": one(2, 0, 2), "AddValue": normal(2, 3, 4)}, ["Out"], {"axis": 1}
    yield "index_add", {"X": X2, "Index": one(3, 3), "AddValue": normal(2, 6)}, ["Out"], {"axis": 0}
    yield "index_put", {"x": X3, "indices": [whole(0, 2, 5), whole(0, 3, 5)], "value": normal(5, 4)}, ["out"], {"accumulate": True}
    yield "index_put", {"x": X3, "indices": [one(1, 0).reshape(2, 1), one(2, 0, 1)], "value": normal(1)}, ["out"], {"accumulate": False}
    yield "index_put", {"x": X2, "indices": [truths(4, 6)], "value": normal(1)}, ["out"], {"accumulate": False}
    yield "frame", {"X": normal(2, 11)}, ["Out"], {"frame_length": 4, "hop_length": 3, "axis": -1}
    yield "frame", {"X": normal(11, 2)}, ["Out"], {"frame_length": 4, "hop_length": 2, "axis": 0}
    yield "frame", {"X": normal(9)}, ["Out"], {"frame_length": 4, "hop_length": 2, "axis": 0}
    yield "logspace", {"Start": one(0, dtype="float32"), "Stop": one(2, dtype="float32"), "Num": one(5, dtype="int32"), "Base": one(3, dtype="float32")}, ["Out"], {"dtype": F32}
    boxes = numpy.array([[0, 0, 4, 4], [1, 0, 5, 4], [6, 6, 9, 9], [0, 0, 4, 5], [6, 6, 9, 8]], "float32")
    yield "nms", {"Boxes": boxes}, ["KeepBoxesIdxs"], {"iou_threshold": 0.5}
    yield "temporal_shift", {"X": normal(6, 8, 3, 2)}, ["Out"], {"seg_num": 3, "shift_ratio": 0.25, "data_format": "NCHW"}
    places = numpy.tile(numpy.array([[1, 2], [12, 15]], "int32"), (2, 4, 1, 1))
    yield "unpool", {"X": X4[:, :, :2, :2].copy(), "Indices": places}, ["Out"], {"ksize": [2, 2], "unpooling_type": "max", "strides": [2, 2], "paddings": [0, 0], "output_size": [4, 4], "data_format": "NCHW"}


GROUPS = [matrices, diagonals, counting, others]
