"""Paddle ops with operands and attributes, a row for each case.

A row is the op, its operands, its outputs, and its attributes. An operand is an array, or a list of arrays; a number
behind the name of an output is its count.
"""

import numpy

RANDOM = numpy.random.default_rng(7)


def normal(*shape):
    """Normally distributed numbers."""
    return RANDOM.standard_normal(shape).astype("float32")


def positive(*shape):
    """Random numbers between 0.5 and 2."""
    return RANDOM.uniform(0.5, 2.0, shape).astype("float32")


def whole(low, high, *shape, dtype="int64"):
    """Integers below `high`."""
    return RANDOM.integers(low, high, shape).astype(dtype)


def truths(*shape):
    """Booleans."""
    return RANDOM.integers(0, 2, shape).astype("bool")


X2, X3, X4, X5 = normal(4, 6), normal(2, 3, 4), normal(2, 4, 6, 8), normal(1, 2, 4, 4, 4)
I64, F32 = 3, 5


def one(*values, dtype="int64"):
    """A short vector."""
    return numpy.array(values, dtype=dtype)


def functions():
    """Elementwise functions."""
    names = "abs acos acosh asin asinh atan atanh ceil cos cosh elu erf exp expm1 floor gelu hard_shrink hard_sigmoid"
    names += " hard_swish leaky_relu log log10 log1p log2 logsigmoid mish reciprocal relu relu6 round rsqrt selu sigmoid"
    names += " sign silu sin sinh softplus softshrink softsign sqrt square stanh swish tan tanh tanh_shrink"
    names += " thresholded_relu trunc celu isfinite_v2 isinf_v2 isnan_v2"
    of_domain = {"acosh": positive(4, 6) + 1, "acos": X2 / 4, "asin": X2 / 4, "atanh": X2 / 4}
    for name in ["log", "log10", "log1p", "log2", "rsqrt", "sqrt", "reciprocal"]:
        of_domain[name] = positive(4, 6)
    for name in names.split():
        yield name, {"X": of_domain.get(name, 2 * X2)}, ["Out"], {}
    yield "gelu", {"X": X2}, ["Out"], {"approximate": True}
    yield "softplus", {"X": X2}, ["Out"], {"beta": 2.0}
    yield "swish", {"X": X2}, ["Out"], {"beta": 1.5}
    yield "brelu", {"X": 8 * X2}, ["Out"], {"t_min": -2.0, "t_max": 3.0}
    yield "clip", {"X": X2}, ["Out"], {"min": -0.5, "max": 0.25}
    yield "clip", {"X": X2, "Min": one(-0.5, dtype="float32"), "Max": one(1, dtype="float32")}, ["Out"], {"min": 0.0, "max": 0.0}
    yield "softmax", {"X": X3}, ["Out"], {"axis": 1}
    yield "log_softmax", {"X": X3}, ["Out"], {"axis": -1}
    yield "maxout", {"X": X4}, ["Out"], {"groups": 2, "axis": 1}
    yield "prelu", {"X": X4, "Alpha": positive(1)}, ["Out"], {"mode": "all"}
    yield "prelu", {"X": X4, "Alpha": positive(4)}, ["Out"], {"mode": "channel"}
    yield "isnan_v2", {"X": one(1, numpy.nan, numpy.inf, dtype="float32")}, ["Out"], {}
    yield "isinf_v2", {"X": one(1, numpy.nan, -numpy.inf, dtype="float32")}, ["Out"], {}
    yield "isfinite_v2", {"X": one(1, numpy.nan, numpy.inf, dtype="float32")}, ["Out"], {}


def pairs():
    """Binary functions."""
    for name in ["add", "sub", "mul", "div", "max", "min", "fmax", "fmin"]:
        yield "elementwise_" + name, {"X": X3, "Y": positive(2, 3, 4)}, ["Out"], {"axis": -1}
        if not name.startswith("f"):
            yield "elementwise_" + name, {"X": X4, "Y": positive(4)}, ["Out"], {"axis": 1}
    yield "elementwise_fmax", {"X": one(1, numpy.nan, 2, dtype="float32"), "Y": one(numpy.nan, 1, 3, dtype="float32")}, ["Out"], {"axis": -1}
    yield "elementwise_pow", {"X": positive(4, 6), "Y": X2}, ["Out"], {"axis": -1}
    signed = whole(-20, 20, 4, 6), numpy.where(whole(0, 2, 4, 6) == 0, -3, 4).astype("int64")
    yield "elementwise_floordiv", {"X": signed[0], "Y": signed[1]}, ["Out"], {"axis": -1}
    yield "elementwise_mod", {"X": signed[0], "Y": signed[1]}, ["Out"], {"axis": -1}
    yield "elementwise_floordiv", {"X": 8 * X2, "Y": positive(4, 6)}, ["Out"], {"axis": -1}
    yield "elementwise_mod", {"X": 8 * X2, "Y": positive(4, 6)}, ["Out"], {"axis": -1}
    yield "minus", {"X": X2, "Y": positive(4, 6)}, ["Out"], {}
    yield "atan2", {"X1": one(1, -1, 1, -1, 2, -2, 0, dtype="float32"), "X2": one(1, 1, -1, -1, 0, 0, 3, dtype="float32")}, ["Out"], {}
    yield "lerp", {"X": X2, "Y": positive(4, 6), "Weight": positive(4, 6)}, ["Out"], {}
    yield "increment", {"X": one(3, dtype="float32")}, ["Out"], {"step": 2.0}
    yield "pow", {"X": positive(4, 6)}, ["Out"], {"factor": 1.5}
    yield "scale", {"X": X2}, ["Out"], {"scale": 2.0, "bias": 1.0, "bias_after_scale": False}
    yield "scale", {"X": X2, "ScaleTensor": one(3, dtype="float32")}, ["Out"], {"bias": 1.0, "bias_after_scale": True}
    yield "sum", {"X": [X2, positive(4, 6), X2]}, ["Out"], {}
    few = whole(0, 3, 4, 6), whole(0, 3, 4, 6)
    for name in ["equal", "not_equal", "greater_equal", "greater_than", "less_equal", "less_than"]:
        yield name, {"X": few[0], "Y": few[1]}, ["Out"], {"axis": -1}
    for name in ["and", "or", "xor"]:
        yield "logical_" + name, {"X": truths(4, 6), "Y": truths(4, 6)}, ["Out"], {}
        yield "bitwise_" + name, {"X": truths(4, 6), "Y": truths(4, 6)}, ["Out"], {}
        yield "bitwise_" + name, {"X": few[0], "Y": few[1]}, ["Out"], {}
    yield "logical_not", {"X": truths(4, 6)}, ["Out"], {}
    yield "bitwise_not", {"X": truths(4, 6)}, ["Out"], {}
    yield "bitwise_not", {"X": few[0]}, ["Out"], {}
    yield "equal_all", {"X": few[0], "Y": few[0]}, ["Out"], {}
    yield "allclose", {"Input": X2, "Other": X2 + numpy.float32(1e-9)}, ["Out"], {"rtol": "1e-5", "atol": "1e-8"}
    yield "is_empty", {"X": X2}, ["Out"], {}


def products():
    """Matrix products."""
    yield "matmul_v2", {"X": X3, "Y": normal(2, 5, 4)}, ["Out"], {"trans_y": True}
    yield "matmul_v2", {"X": normal(2, 4, 3), "Y": normal(4, 5)}, ["Out"], {"trans_x": True}
    yield "matmul_v2", {"X": normal(4), "Y": normal(4)}, ["Out"], {}
    yield "matmul", {"X": X3, "Y": normal(2, 4, 5)}, ["Out"], {"alpha": 0.5}
    yield "bmm", {"X": X3, "Y": normal(2, 4, 5)}, ["Out"], {}
    yield "mul", {"X": X4, "Y": normal(192, 5)}, ["Out"], {"x_num_col_dims": 1, "y_num_col_dims": 1}
    yield "mul", {"X": X4, "Y": normal(48, 5)}, ["Out"], {"x_num_col_dims": 2, "y_num_col_dims": 1}
    yield "mul", {"X": X4, "Y": normal(8, 5)}, ["Out"], {"x_num_col_dims": 3, "y_num_col_dims": 1}
    yield "fc", {"Input": X2, "W": normal(6, 5), "Bias": normal(5)}, ["Out"], {"in_num_col_dims": 1, "activation_type": "relu"}
    yield "mv", {"X": X2, "Vec": normal(6)}, ["Out"], {}
    yield "dot", {"X": X2, "Y": positive(4, 6)}, ["Out"], {}
    yield "addmm", {"Input": normal(4, 5), "X": X2, "Y": normal(6, 5)}, ["Out"], {"Alpha": 0.5, "Beta": 2.0}
    yield "einsum", {"Operands": [X3, normal(2, 4, 5)]}, ["Out", "InnerCache", "InnerCache", "XShape", "XShape"], {"equation": "bij,bjk->bik"}


def reductions():
    """Reductions."""
    for name in ["max", "mean", "min", "prod", "sum", "amax", "amin"]:
        yield "reduce_" + name, {"X": X3}, ["Out"], {"dim": [1], "keep_dim": True}
    yield "reduce_sum", {"X": X3}, ["Out"], {"dim": [0], "reduce_all": True}
    yield "reduce_mean", {"X": X4}, ["Out"], {"dim": [-1, 2]}
    yield "reduce_sum", {"X": truths(4, 6)}, ["Out"], {"dim": [1], "in_dtype": 0, "out_dtype": I64}
    yield "reduce_all", {"X": truths(4, 6)}, ["Out"], {"dim": [1]}
    yield "reduce_any", {"X": truths(4, 6)}, ["Out"], {"dim": [1]}
    yield "mean", {"X": X3}, ["Out"], {}
    yield "logsumexp", {"X": X3}, ["Out"], {"axis": [1], "keepdim": True}
    yield "frobenius_norm", {"X": X3}, ["Out"], {"dim": [1, 2]}
    for order in [0.0, 1.0, 2.0, 3.0, float("inf"), float("-inf")]:
        yield "p_norm", {"X": X3}, ["Out"], {"porder": order, "axis": 1, "keepdim": True}
    yield "p_norm", {"X": X3}, ["Out"], {"porder": 2.0, "asvector": True}
    for name in ["arg_max", "arg_min"]:
        yield name, {"X": X3}, ["Out"], {"axis": 1, "dtype": I64}
        yield name, {"X": X3}, ["Out"], {"axis": 2, "dtype": 2, "keepdims": True}
        yield name, {"X": X3}, ["Out"], {"axis": 0, "dtype": I64, "flatten": True}
    yield "cumsum", {"X": X3}, ["Out"], {"axis": 1, "exclusive": True, "reverse": True}
    yield "cumsum", {"X": X3}, ["Out"], {"flatten": True}


def order():
    """Sorting, counting and selection by value."""
    yield "top_k_v2", {"X": X3}, ["Out", "Indices"], {"k": 2, "axis": 1, "largest": False}
    yield "top_k_v2", {"X": X3, "K": one(3, dtype="int32")}, ["Out", "Indices"], {}
    yield "top_k", {"X": X2}, ["Out", "Indices"], {"k": 2}
    yield "argsort", {"X": X3}, ["Out", "Indices"], {"axis": 1}
    yield "argsort", {"X": X3}, ["Out", "Indices"], {"axis": -1, "descending": True}
    yield "where_index", {"Condition": truths(3, 4)}, ["Out"], {}
    yield "masked_select", {"X": X2, "Mask": truths(4, 6)}, ["Y"], {}
    yield "unique", {"X": whole(0, 5, 12)}, ["Out", "Indices", "Index", "Counts"], {"is_sorted": True, "return_index": True, "return_inverse": True, "return_counts": True, "dtype": I64}
    yield "unique", {"X": whole(0, 2, 6, 2)}, ["Out", "Indices", "Index", "Counts"], {"is_sorted": True, "return_index": True, "return_inverse": True, "return_counts": True, "axis": [0], "dtype": 2}
    yield "sequence_mask", {"X": whole(1, 6, 4)}, ["Y"], {"maxlen": 6, "out_dtype": F32}
    yield "sequence_mask", {"X": whole(1, 6, 4)}, ["Y"], {"maxlen": -1, "out_dtype": I64}


def indexing():
    """Slices and gathers."""
    yield "gather", {"X": X3, "Index": one(2, 0)}, ["Out"], {"axis": 1}
    yield "gather_nd", {"X": X3, "Index": whole(0, 2, 3, 2)}, ["Out"], {}
    yield "index_sample", {"X": X2, "Index": whole(0, 6, 4, 3)}, ["Out"], {}
    yield "index_select", {"X": X3, "Index": one(2, 0, 2)}, ["Out"], {"dim": 1}
    yield "take_along_axis", {"Input": X3, "Index": whole(0, 3, 2, 2, 4)}, ["Result"], {"Axis": 1}
    yield "take_along_axis", {"Input": X3, "Index": whole(0, 3, 1, 2, 1)}, ["Result"], {"Axis": 1}
    yield "put_along_axis", {"Input": X2, "Index": whole(0, 6, 4, 1), "Value": normal(4, 1)}, ["Result"], {"Axis": 1, "Reduce": "assign"}
    yield "put_along_axis", {"Input": X2, "Index": whole(0, 6, 4, 2), "Value": normal(4, 2)}, ["Result"], {"Axis": 1, "Reduce": "add"}
    yield "lookup_table_v2", {"W": normal(9, 3), "Ids": whole(0, 9, 2, 4)}, ["Out"], {"padding_idx": 3}
    yield "lookup_table", {"W": normal(9, 3), "Ids": whole(0, 9, 5, 1)}, ["Out"], {"padding_idx": -1}
    yield "one_hot_v2", {"X": whole(0, 5, 2, 3)}, ["Out"], {"depth": 5}
    yield "scatter", {"X": X2, "Ids": one(2, 0), "Updates": normal(2, 6)}, ["Out"], {"overwrite": True}
    yield "scatter", {"X": X2, "Ids": one(2, 0, 2), "Updates": normal(3, 6)}, ["Out"], {"overwrite": False}
    yield "scatter_nd_add", {"X": X3, "Index": whole(0, 2, 3, 2), "Updates": normal(3, 4)}, ["Out"], {}
    where = {"axes": [1, 2], "starts": [1, -3], "ends": [3, 2**31 - 1]}
    yield "slice", {"Input": X3}, ["Out"], where
    yield "slice", {"Input": X3}, ["Out"], {"axes": [1], "starts": [1], "ends": [2], "decrease_axis": [1]}
    yield "strided_slice", {"Input": X3}, ["Out"], {"axes": [1, 2], "starts": [2, 0], "ends": [-4, 4], "strides": [-1, 2], "infer_flags": [1, 1]}
    yield "strided_slice", {"Input": X3}, ["Out"], {"axes": [1, 2], "starts": [-1, 3], "ends": [-1, -3], "strides": [-2, -1], "infer_flags": [1, 1]}
    where = {"axes": [1], "starts": [0], "ends": [3], "steps": [2], "dtype": F32}
    yield "set_value", {"Input": X3, "ValueTensor": normal(2, 2, 4)}, ["Out"], where
    yield "set_value", {"Input": X3}, ["Out"], {**where, "shape": [1], "values": [7.0]}
    yield "set_value", {"Input": X3, "ValueTensor": normal(2, 4)}, ["Out"], {"axes": [1], "starts": [1], "ends": [2], "steps": [1], "decrease_axes": [1], "dtype": F32}
    yield "where", {"Condition": truths(4, 6), "X": X2, "Y": positive(4, 6)}, ["Out"], {}


GROUPS = [functions, pairs, products, reductions, order, indexing]
