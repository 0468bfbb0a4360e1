"""Expected results of onnxruntime's quantized ops, in integers and 64-bit floats.

onnxruntime itself is not used: its results for such numbers depend on the processor. `README.md` says more.
"""

import math

import numpy
from numpy_recurrent import run as run_recurrent
from numpy_windows import convolution, windows


def real(x, scale, zero=None, axis=None):
    """Dequantizes numbers. With an axis, there is a scale for each index along it."""
    shape = [-1 if at == axis % x.ndim else 1 for at in range(x.ndim)] if axis is not None and numpy.size(scale) > 1 else None
    spread = lambda step: step.reshape(shape) if shape and step.size > 1 else step.reshape(())  # noqa: E731
    moved = x.astype(numpy.int64) - (0 if zero is None else spread(zero).astype(numpy.int64))
    return moved * spread(scale).astype(numpy.float64)


def steps(values, scale, zero, dtype, axis=None):
    """Numbers in steps of a quantized dtype, not rounded: a correctly rounded result is at most half a step away."""
    shape = [-1 if at == axis else 1 for at in range(values.ndim)] if axis is not None else ()
    zero = numpy.zeros(scale.shape, dtype) if zero is None else zero
    info = numpy.iinfo(dtype)
    quotients = values / scale.astype(numpy.float64).reshape(shape) + zero.astype(numpy.int64).reshape(shape)
    return numpy.clip(quotients, info.min, info.max), numpy.dtype(dtype)


def single(function):
    """An op of one quantized operand, as a function of the dequantized numbers."""

    def truth(attributes, x, x_scale, x_zero, y_scale, y_zero=None):
        return [steps(function(real(x, x_scale, x_zero), attributes), y_scale, y_zero, x.dtype)]

    return truth


def pair(function):
    """An op of two quantized operands; `function` computes it on the dequantized numbers."""

    def truth(attributes, a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero):
        return [steps(function(real(a, a_scale, a_zero), real(b, b_scale, b_zero)), c_scale, c_zero, a.dtype)]

    return truth


def softmax(x, attributes):
    """Before opset 13, all dimensions from the axis on were flattened."""
    axis = attributes["axis"] % x.ndim
    axes = axis if attributes["opset"] >= 13 else tuple(range(axis, x.ndim))
    powers = numpy.exp(x - x.max(axis=axes, keepdims=True))
    return powers / powers.sum(axis=axes, keepdims=True)


def channels_first(attributes, x):
    """An image in NCHW."""
    return numpy.moveaxis(x, -1, 1) if attributes.get("channels_last") else x


def channels_as_given(attributes, x):
    """An image in the op's layout."""
    return numpy.moveaxis(x, 1, -1) if attributes.get("channels_last") else x


def average_pool(x, attributes):
    """The mean of each window. Positions beyond the padding never count."""
    x, kernel = channels_first(attributes, x), attributes["kernel_shape"]
    strides = attributes.get("strides", [1] * len(kernel))
    pads = list(attributes.get("pads", [0] * 2 * len(kernel)))
    count = len(kernel)
    if attributes.get("count_include_pad"):
        x = numpy.pad(x, [(0, 0), (0, 0), *zip(pads[:count], pads[count:])])
        pads = [0] * 2 * count
    if attributes.get("ceil_mode"):
        for axis, size in enumerate(x.shape[2:]):
            beyond = (size + pads[axis] + pads[count + axis] - kernel[axis]) % strides[axis]
            pads[count + axis] += (strides[axis] - beyond) % strides[axis]
    seen = windows(x, kernel, strides, pads, [1] * count, numpy.nan)
    return channels_as_given(attributes, numpy.nanmean(seen, axis=tuple(range(2 + count, 2 + 2 * count))))


def global_average_pool(x, attributes):
    """Global average pooling."""
    x = channels_first(attributes, x)
    return channels_as_given(attributes, x.mean(axis=tuple(range(2, x.ndim)), keepdims=True))


def concat(attributes, y_scale, y_zero, *parts):
    """Concatenates parts with separate scales."""
    values = [real(*parts[at : at + 3]) for at in range(0, len(parts), 3)]
    return [steps(numpy.concatenate(values, attributes["axis"]), y_scale, y_zero, parts[0].dtype)]


def where(attributes, condition, x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero):
    """Selects between two operands."""
    return [steps(numpy.where(condition, real(x, x_scale, x_zero), real(y, y_scale, y_zero)), z_scale, z_zero, x.dtype)]


def conv(attributes, x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias=None):
    """A convolution: a sum of integers, scaled once."""
    inputs = channels_first(attributes, x.astype(numpy.int64) - x_zero.astype(numpy.int64))
    per_channel = lambda step: step.reshape(-1, *[1] * (w.ndim - 1)) if step.size > 1 else step.reshape(())  # noqa: E731
    weights = w.astype(numpy.int64) - per_channel(w_zero).astype(numpy.int64)
    kernel, count = w.shape[2:], w.ndim - 2
    strides, dilations = (list(attributes.get(name, [1] * count)) for name in ["strides", "dilations"])
    pads = list(attributes.get("pads", [0] * 2 * count))
    if attributes.get("auto_pad") == "SAME_UPPER":
        for axis, size in enumerate(inputs.shape[2:]):
            reach = (kernel[axis] - 1) * dilations[axis] + 1
            missing = max((math.ceil(size / strides[axis]) - 1) * strides[axis] + reach - size, 0)
            pads[axis], pads[count + axis] = missing // 2, missing - missing // 2
    sums = convolution(inputs, weights, 0 if bias is None else bias.astype(numpy.int64), kernel, strides, pads, dilations, 1)
    scale = x_scale.astype(numpy.float64) * w_scale.astype(numpy.float64)
    scale = scale.reshape(-1, *[1] * count) if scale.size > 1 else scale
    return [steps(channels_as_given(attributes, sums * scale), y_scale, y_zero, x.dtype)]


def quantize(attributes, x, scale, zero=None):
    """Quantizes numbers."""
    return [steps(x.astype(numpy.float64), scale, zero, numpy.uint8 if zero is None else zero.dtype, attributes.get("axis"))]


def dequantize(attributes, x, scale, zero=None):
    """Dequantizes numbers."""
    return [(real(x, scale, zero, attributes.get("axis", -1)), scale.dtype)]


def product(a, a_scale, a_zero, b, b_scale, b_zero):
    """A matrix product of integers in 64 bits, scaled once."""
    moved = lambda x, zero: x.astype(numpy.int64) - (0 if zero is None else zero.astype(numpy.int64))  # noqa: E731
    return moved(a, a_zero) @ moved(b, b_zero) * (a_scale.astype(numpy.float64) * b_scale.astype(numpy.float64))


def plus(values, bias):
    """Adds an optional bias."""
    return values if bias is None else values + bias.astype(numpy.float64)


def dynamic_quantize_matmul(attributes, a, b, b_scale, b_zero=None, bias=None):
    """Quantizes the left matrix like `DynamicQuantizeLinear`, whose f32 arithmetic gives the same on every processor."""
    low, high = numpy.minimum(a.min(), numpy.float32(0)), numpy.maximum(a.max(), numpy.float32(0))
    scale = (high - low) / numpy.float32(255)
    zero = numpy.clip(numpy.rint(-low / scale), 0, 255).astype(numpy.uint8)
    steps_of_a = numpy.clip(numpy.rint(a / scale) + numpy.float32(zero), 0, 255).astype(numpy.uint8)
    return [(plus(product(steps_of_a, scale, zero, b, b_scale, b_zero), bias), a.dtype)]


def matmul_integer_to_float(attributes, a, b, a_scale, b_scale, a_zero=None, b_zero=None, bias=None):
    """A product of 8-bit integers, as floats."""
    return [(plus(product(a, a_scale, a_zero, b, b_scale, b_zero), bias), a_scale.dtype)]


def matmul_integer_16(attributes, a, b):
    """A product of 16-bit integers in 32 bits."""
    return [(a.astype(numpy.int64) @ b.astype(numpy.int64), numpy.dtype(numpy.int32))]


def gemm(attributes, a, a_scale, a_zero, b, b_scale, b_zero, bias=None, y_scale=None, y_zero=None):
    """A product of 8-bit integers with a quantized bias."""
    a, b = a.T if attributes.get("transA") else a, b.T if attributes.get("transB") else b
    made = product(a, a_scale, a_zero, b, b_scale, b_zero)
    if bias is not None:
        made = made + bias.astype(numpy.int64) * (a_scale.astype(numpy.float64) * b_scale.astype(numpy.float64))
    made = made * attributes.get("alpha", 1.0)
    return [(made, numpy.dtype(numpy.float32)) if y_scale is None else steps(made, y_scale, y_zero, y_zero.dtype)]


def lstm(attributes, x, w, r, bias, lengths, state, cells, peepholes, w_scale, w_zero, r_scale, r_zero):
    """The layer in floats. The tolerance covers the rounding of intermediate values to 8 bits."""
    directions, hidden = r.shape[:2]
    along = lambda step: step.reshape(directions, 1, -1)  # noqa: E731
    weights = lambda q, scale, zero: (q.astype(numpy.int64) - along(zero).astype(numpy.int64)) * along(scale).astype(numpy.float64)  # noqa: E731
    w, r = (weights(*given).swapaxes(1, 2) for given in [(w, w_scale, w_zero), (r, r_scale, r_zero)])
    zeros = lambda *dims: numpy.zeros((directions, *dims))  # noqa: E731
    or_else = lambda value, absent: absent if value is None else value.astype(numpy.float64)  # noqa: E731
    batches = x.shape[1]
    lengths = numpy.full(batches, x.shape[0]) if lengths is None else lengths
    state, cells = or_else(state, zeros(batches, hidden)), or_else(cells, zeros(batches, hidden))
    bias, peepholes = or_else(bias, zeros(8 * hidden)), or_else(peepholes, zeros(3 * hidden))
    made = run_recurrent("LSTM", attributes, x.astype(numpy.float64), w, r, bias, lengths, state, cells, peepholes)
    return [(values, x.dtype) for values in made]


def attention(attributes, x, w, bias, x_scale, w_scale, mask=None, x_zero=None, w_zero=None, past=None):
    """Attention on a product of 8-bit integers, which contains query, keys and values side by side."""
    heads = attributes["num_heads"]
    parts = numpy.split(plus(product(x, x_scale, x_zero, w, w_scale, w_zero), bias), 3, axis=-1)
    apart = lambda rows: rows.reshape(*rows.shape[:2], heads, -1).swapaxes(1, 2)  # noqa: E731
    query, key, value = map(apart, parts)
    if past is not None:
        key, value = (numpy.concatenate([before.astype(numpy.float64), now], 2) for before, now in zip(past, [key, value]))
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
    batches, _, rows, keys = scores.shape
    is_seen = numpy.ones((batches, 1, rows, keys), bool)
    if mask is not None:
        flags = numpy.arange(keys) < mask[:, None] if mask.ndim == 1 else mask > 0
        is_seen &= flags[:, None, None, :]
    if attributes.get("unidirectional"):
        is_seen &= numpy.tril(numpy.ones((rows, keys), bool), keys - rows)
    scores = numpy.where(is_seen, scores, -numpy.inf)
    powers = numpy.exp(scores - scores.max(-1, keepdims=True))
    made = powers / powers.sum(-1, keepdims=True) @ value
    output = made.swapaxes(1, 2).reshape(batches, rows, -1)
    return [(output, x_scale.dtype), (numpy.stack([key, value]), x_scale.dtype)]


def unpacked(packed, bits):
    """Unpacks numbers that share bytes, the lowest bits first."""
    parts = packed[..., None] >> numpy.arange(0, 8, bits, dtype=numpy.uint8) & ((1 << bits) - 1)
    return parts.reshape(*packed.shape[:-1], -1).astype(numpy.int64)


def zero_points(attributes, zeros, count):
    """The zero points of blocks: packed, or floats, or by default the middle of the range."""
    if zeros is None:
        return 1 << (attributes["bits"] - 1)
    return unpacked(zeros, attributes["bits"])[..., :count] if zeros.dtype == numpy.uint8 else zeros.astype(numpy.float64)


def matmul_of_blocks(attributes, a, weights, scales, zeros=None, groups=None, bias=None):
    """A product with block-quantized weights."""
    rows, blocks, _ = weights.shape
    whole = unpacked(weights, attributes["bits"]).astype(numpy.float64)
    zeros = zero_points(attributes, zeros, blocks)
    zeros = zeros if numpy.ndim(zeros) == 0 else zeros.reshape(rows, blocks, 1)
    values = ((whole - zeros) * scales.astype(numpy.float64).reshape(rows, blocks, 1)).reshape(rows, -1)
    return [(plus(a.astype(numpy.float64) @ values[:, : attributes["K"]].T, bias), a.dtype)]


def gather_of_blocks(attributes, data, indices, scales, zeros=None):
    """Gathers rows of a block-quantized table."""
    values = unpacked(data, attributes["bits"])
    spread = lambda step: numpy.repeat(step, attributes["block_size"], -1)[..., : values.shape[-1]]  # noqa: E731
    zeros = zero_points(attributes, zeros, scales.shape[-1])
    table = (values - (zeros if numpy.ndim(zeros) == 0 else spread(zeros))) * spread(scales.astype(numpy.float64))
    return [(numpy.take(table, indices, axis=0), scales.dtype)]


def gelu(attributes, x):
    """GELU: x times the cumulative normal distribution at x."""
    wide = x.astype(numpy.float64)
    return [(0.5 * wide * (1 + numpy.vectorize(math.erf)(wide / math.sqrt(2))), x.dtype)]


def normalized(x, axis, epsilon):
    """Numbers without their mean and over their deviation, which are taken from an axis on; then both, inverted."""
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean = x.mean(axes, keepdims=True)
    inverse = 1 / numpy.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + epsilon)
    return (x - mean) * inverse, mean, inverse


def layer_normalization(attributes, x, scale, shift=None):
    """Layer normalization. The result has the dtype of the scale, and the statistics are in 32 bits."""
    made, *statistics = normalized(x.astype(numpy.float64), attributes.get("axis", -1), attributes.get("epsilon", 1e-5))
    return [(plus(made * scale, shift), scale.dtype), *((values, numpy.dtype(numpy.float32)) for values in statistics)]


def skip_layer_normalization(attributes, x, skip, scale, shift=None, bias=None):
    """Layer normalization of a sum; the sum is the fourth output."""
    total = plus(x.astype(numpy.float64) + skip, bias)
    made, *statistics = normalized(total, -1, attributes.get("epsilon", 1e-12))
    statistics = [(values, numpy.dtype(numpy.float32)) for values in statistics]
    return [(plus(made * scale, shift), x.dtype), *statistics, (total, x.dtype)]


def simplified_layer_normalization(attributes, x, scale):
    """RMS normalization. The result has the dtype of the scale."""
    wide, axis = x.astype(numpy.float64), attributes.get("axis", -1)
    axes = tuple(range(axis % x.ndim, x.ndim))
    inverse = 1 / numpy.sqrt((wide**2).mean(axes, keepdims=True) + attributes.get("epsilon", 1e-5))
    return [(wide * inverse * scale, scale.dtype), (inverse, numpy.dtype(numpy.float32))]


def inverse(attributes, x):
    """Inverses of matrices."""
    return [(numpy.linalg.inv(x.astype(numpy.float64)), x.dtype)]


# By op: outputs as 64-bit floats or integers, with the dtype of the op; for 8-bit and 16-bit dtypes, in steps that are not rounded.
TRUTHS = {
    "DequantizeLinear": dequantize,
    "DynamicQuantizeLSTM": lstm,
    "DynamicQuantizeMatMul": dynamic_quantize_matmul,
    "GatherBlockQuantized": gather_of_blocks,
    "Gelu": gelu,
    "Inverse": inverse,
    "LayerNormalization": layer_normalization,
    "MatMulInteger16": matmul_integer_16,
    "MatMulIntegerToFloat": matmul_integer_to_float,
    "MatMulNBits": matmul_of_blocks,
    "QAttention": attention,
    "QGemm": gemm,
    "QLinearAdd": pair(numpy.add),
    "QLinearAveragePool": single(average_pool),
    "QLinearConcat": concat,
    "QLinearConv": conv,
    "QLinearGlobalAveragePool": single(global_average_pool),
    "QLinearLeakyRelu": single(lambda x, attributes: numpy.where(x < 0, x * attributes.get("alpha", 0.01), x)),
    "QLinearMul": pair(numpy.multiply),
    "QLinearSigmoid": single(lambda x, attributes: 1 / (1 + numpy.exp(-x))),
    "QLinearSoftmax": single(softmax),
    "QLinearWhere": where,
    "QuantizeLinear": quantize,
    "SimplifiedLayerNormalization": simplified_layer_normalization,
    "SkipLayerNormalization": skip_layer_normalization,
}
