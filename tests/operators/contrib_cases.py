"""Ops of the domain `com.microsoft`, in all forms that occur in published models."""

import numpy

RNG = numpy.random.default_rng(7)


class Weight:
    """A constant operand."""

    def __init__(self, array):
        self.array = array


def real(*dims, dtype=numpy.float32, scale=1.0):
    """Normally distributed numbers."""
    return (RNG.standard_normal(dims) * scale).astype(dtype)


def whole(*dims, dtype=numpy.uint8, low=None, high=None):
    """Integers of the whole range of the dtype, or of a given range."""
    info = numpy.iinfo(dtype)
    return RNG.integers(info.min if low is None else low, (info.max if high is None else high - 1) + 1, dims).astype(dtype)


def one(value, dtype=numpy.float32):
    """A scalar constant."""
    return Weight(numpy.array(value, dtype))


def i32(*values):
    """An i32 vector."""
    return numpy.array(values, numpy.int32)


def write(case):
    """Writes all cases with `case(op, inputs, outputs=1, name=, domain=, onnx_opset=, atol=, **attributes)`."""
    activations(case)
    products(case)
    normalizations(case)
    quantized(case)
    integers(case)
    attention(case)
    multi_head(case)
    grouped(case)
    rotary(case)
    blocks(case)
    others(case)
    more_normalizations(case)
    tokens(case)


def activations(case):
    for dims in [(2, 3), (1, 5, 7)]:
        case("Gelu", [real(*dims)])
        case("QuickGelu", [real(*dims)])
        case("FastGelu", [real(*dims)])
        case("FastGelu", [real(*dims), Weight(real(dims[-1]))])
        case("BiasGelu", [real(*dims), Weight(real(dims[-1]))])
    case("QuickGelu", [real(3, 4)], alpha=1.0)
    case("QuickGelu", [real(3, 4)], alpha=0.5)
    case("Gelu", [real(4, 5, dtype=numpy.float16)])


def products(case):
    case("FusedMatMul", [real(3, 4), real(4, 5)])
    case("FusedMatMul", [real(2, 3, 4), Weight(real(4, 5))], alpha=0.25)
    case("FusedMatMul", [real(2, 4, 3), real(2, 5, 4)], transA=1, transB=1, alpha=2.0)
    case("FusedMatMul", [real(1, 3, 7), Weight(real(5, 7))], transB=1)
    case("FusedMatMul", [real(3, 2, 4), real(2, 4, 5)], transBatchA=1)
    case("FusedMatMul", [real(2, 3, 4), real(4, 2, 5)], transBatchB=1)
    case("FusedMatMul", [real(4, 2, 3), real(2, 4, 5)], transBatchA=1, transA=1)
    case("FusedMatMul", [real(3, 2, 2, 4), real(5, 2, 2, 4)], transBatchA=1, transBatchB=1, transB=1, alpha=0.5)
    case("FusedMatMul", [real(4), real(4, 5)])
    case("FusedGemm", [real(3, 4), real(4, 5), real(5)], activation="Relu")
    case("FusedGemm", [real(4, 3), real(5, 4)], activation="LeakyRelu", activation_alpha=0.1, transA=1, transB=1, alpha=0.5)
    case("FusedGemm", [real(3, 4), real(4, 5), real(3, 1)], activation="Tanh", beta=0.25)
    case("FusedGemm", [real(3, 4), real(4, 5)], activation="Sigmoid")
    x, w = real(1, 4, 6, 7), Weight(real(3, 4, 3, 3))
    case("FusedConv", [x, w], activation="Relu")
    case("FusedConv", [x, w, Weight(real(3)), real(1, 3, 6, 7)], activation="Relu", pads=[1, 1, 1, 1])
    case("FusedConv", [x, w, Weight(real(3))], activation="Clip", activation_params=[-0.5, 0.75], strides=[2, 1])
    case("FusedConv", [x, w], activation="LeakyRelu", activation_params=[0.2], dilations=[2, 1])
    case("FusedConv", [x, Weight(real(4, 1, 3, 3))], activation="HardSigmoid", activation_params=[0.3, 0.4], group=4)
    case("FusedConv", [x, w], activation="Tanh", auto_pad="SAME_UPPER", kernel_shape=[3, 3])


def normalizations(case):
    for batch, rows, size in [(2, 3, 8), (1, 1, 5)]:
        x, s, g, b, c = real(batch, rows, size), real(batch, rows, size), real(size), real(size), real(size)
        case("SkipLayerNormalization", [x, s, Weight(g), Weight(b)])
        case("SkipLayerNormalization", [x, s, Weight(g), Weight(b), Weight(c)], outputs=[0, 3], epsilon=1e-3)
        case("SkipLayerNormalization", [x, s, Weight(g)], outputs=[0, 3])
        case("SkipSimplifiedLayerNormalization", [x, s, Weight(g)], epsilon=1e-5)
        case("SkipSimplifiedLayerNormalization", [x, s, Weight(g), Weight(c)], outputs=[0, 3])
        case("SimplifiedLayerNormalization", [x, Weight(g)], domain="")
        case("SimplifiedLayerNormalization", [x, Weight(g)], domain="", axis=-1, epsilon=1e-2)
    x, s, g = real(2, 3, 8), real(1, 3, 8), Weight(real(8))
    case("SkipLayerNormalization", [x, s, g, Weight(real(8))])
    case("SkipLayerNormalization", [x, real(3, 8), g, Weight(real(8))])
    half = lambda *dims: real(*dims, dtype=numpy.float16)
    case("SkipLayerNormalization", [half(2, 3, 8), half(2, 3, 8), Weight(half(8)), Weight(half(8))])
    case("SimplifiedLayerNormalization", [half(2, 3, 8), Weight(half(8))], domain="")
    words, places, kinds = Weight(real(20, 6)), Weight(real(9, 6)), Weight(real(2, 6))
    g, b = Weight(real(6)), Weight(real(6))
    ids, segments = whole(2, 5, dtype=numpy.int32, low=0, high=20), whole(2, 5, dtype=numpy.int32, low=0, high=2)
    mask = numpy.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], numpy.int32)
    embed = "EmbedLayerNormalization"
    case(embed, [ids, segments, words, places, kinds, g, b], outputs=[0, 1])
    case(embed, [ids, None, words, places, None, g, b, mask], outputs=[0, 1], epsilon=1e-5)
    order = whole(2, 5, dtype=numpy.int32, low=0, high=9)
    case(embed, [ids, segments, words, places, kinds, g, b, None, order], outputs=[0, 1, 2])
    case(embed, [ids, segments, words, places, kinds, g, b, mask, order[:1]], outputs=[0, 1, 2])


def steps(dtype):
    """Scales and zero points for two operands and a result."""
    zeros = [0, 3, -5] if dtype == numpy.int8 else [128, 100, 140]
    return [(one(scale), one(zero, dtype)) for scale, zero in zip([0.02, 0.035, 0.05], zeros)]


def quantized(case):
    for dtype in [numpy.uint8, numpy.int8]:
        (xs, xz), (ys, yz), (zs, zz) = steps(dtype)
        x, y = whole(2, 3, 5, dtype=dtype), whole(2, 3, 5, dtype=dtype)
        for op in ["QLinearAdd", "QLinearMul"]:
            case(op, [x, xs, xz, y, ys, yz, zs, zz])
            case(op, [x, xs, xz, Weight(whole(5, dtype=dtype)), ys, yz, zs, zz])
        case("QLinearLeakyRelu", [x, xs, xz, zs, zz], alpha=0.2)
        case("QLinearLeakyRelu", [x, xs, None, zs, None])
        case("QLinearSigmoid", [x, xs, xz, one(1 / 256), one(0 if dtype == numpy.uint8 else -128, dtype)])
        case("QLinearSigmoid", [whole(7, dtype=dtype), xs, None, one(1 / 128), None])
        end = one(0 if dtype == numpy.uint8 else -128, dtype)
        case("QLinearSoftmax", [x, xs, xz, one(1 / 256), end], axis=-1, opset=13)
        case("QLinearSoftmax", [x, xs, xz, one(1 / 256), end], axis=1, opset=12)
        case("QLinearSoftmax", [x, xs, xz, one(1 / 256), end], axis=1, opset=13)
        image = whole(1, 3, 6, 7, dtype=dtype)
        case("QLinearAveragePool", [image, xs, xz, ys, yz], kernel_shape=[3, 3], strides=[2, 1], pads=[1, 1, 1, 1])
        case("QLinearAveragePool", [image, xs, xz, ys, yz], kernel_shape=[2, 2], count_include_pad=1, pads=[1, 0, 0, 1])
        case("QLinearAveragePool", [image, xs, xz, ys, yz], kernel_shape=[2, 3], ceil_mode=1, strides=[2, 2])
        last = whole(1, 6, 7, 3, dtype=dtype)
        case("QLinearAveragePool", [last, xs, xz, ys, yz], kernel_shape=[2, 3], channels_last=1)
        case("QLinearGlobalAveragePool", [image, xs, xz, ys, yz])
        case("QLinearGlobalAveragePool", [last, xs, xz, ys, yz], channels_last=1)
        case("QLinearConcat", [zs, zz, x, xs, xz, y, ys, yz], axis=1)
        case("QLinearConcat", [zs, zz, x, zs, zz, y, zs, zz, whole(2, 3, 2, dtype=dtype), xs, xz], axis=2)
        flags = RNG.integers(0, 2, (3, 1)).astype(bool)
        case("QLinearWhere", [flags, x, xs, xz, whole(5, dtype=dtype), ys, yz, zs, zz])
        case("QLinearWhere", [RNG.integers(0, 2, (2, 3, 5)).astype(bool), x, xs, xz, y, ys, yz, zs, zz])
        case("QLinearConv", conv(dtype, last, xs, xz, ys, yz), channels_last=1, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        case("QLinearConv", conv(dtype, last, xs, xz, ys, yz)[:8], channels_last=1, strides=[2, 2], dilations=[1, 2])
        case("QLinearConv", conv(dtype, image, xs, xz, ys, yz), auto_pad="SAME_UPPER")
    for dtype in [numpy.uint8, numpy.int8, numpy.uint16, numpy.int16]:
        zero = one(11, dtype)
        case("QuantizeLinear", [real(2, 5), one(0.02), zero])
        case("DequantizeLinear", [whole(2, 5, dtype=dtype), one(0.02), zero])
        case("DequantizeLinear", [whole(2, 5, dtype=dtype), one(0.5)])
        scales, zeros = Weight(numpy.array([0.01, 0.02, 0.04], numpy.float32)), Weight(numpy.array([1, 2, 3], dtype))
        case("QuantizeLinear", [real(2, 3, 4), scales, zeros], axis=1)
        case("DequantizeLinear", [whole(2, 4, 3, dtype=dtype), scales, zeros], axis=-1)
    case("QuantizeLinear", [real(3, 4), one(0.03)])
    case("DequantizeLinear", [whole(2, 5, dtype=numpy.int32, low=-9999, high=9999), one(0.02)])
    case("DequantizeLinear", [whole(2, 5, dtype=numpy.uint8), one(0.02, numpy.float16), one(7, numpy.uint8)])


def conv(dtype, x, xs, xz, ys, yz):
    """The operands of a convolution whose weights have a scale for each channel."""
    scales = Weight(numpy.array([0.01, 0.02, 0.015, 0.01], numpy.float32))
    if dtype == numpy.uint8:
        w, ws, wz = Weight(whole(4, 3, 3, 3)), one(0.01), one(120, numpy.uint8)
    else:
        w, ws, wz = Weight(whole(4, 3, 3, 3, dtype=numpy.int8)), scales, Weight(numpy.zeros(4, numpy.int8))
    return [x, xs, xz, w, ws, wz, ys, yz, Weight(whole(4, dtype=numpy.int32, low=-999, high=999))]


def integers(case):
    for dtype in [numpy.uint8, numpy.int8]:
        b = Weight(whole(6, 4, dtype=dtype))
        scales, zeros = Weight(numpy.array([0.01, 0.02, 0.03, 0.015], numpy.float32)), Weight(whole(4, dtype=dtype))
        case("DynamicQuantizeMatMul", [real(2, 3, 6), b, one(0.02)])
        case("DynamicQuantizeMatMul", [real(3, 6), b, scales, zeros, Weight(real(4))])
        case("DynamicQuantizeMatMul", [real(1, 6), b, one(0.02), one(5, dtype)])
        a, az = whole(3, 6), one(119, numpy.uint8)
        case("MatMulIntegerToFloat", [a, b, one(0.03), one(0.02)])
        case("MatMulIntegerToFloat", [a, b, one(0.03), scales, az, zeros, Weight(real(4))])
        case("MatMulIntegerToFloat", [whole(2, 3, 6), b, one(0.03), one(0.02), az, one(7, dtype)])
    for dtype in [numpy.uint8, numpy.int8]:
        a, az, b = whole(3, 6), one(119, numpy.uint8), whole(6, 4, dtype=dtype)
        scales, zeros = Weight(numpy.array([0.01, 0.02, 0.03, 0.015], numpy.float32)), Weight(whole(4, dtype=dtype))
        bias = Weight(whole(4, dtype=numpy.int32, low=-9999, high=9999))
        case("QGemm", [a, one(0.03), az, Weight(b), one(0.02), one(3, dtype)])
        case("QGemm", [a, one(0.03), az, Weight(b), one(0.02), one(3, dtype), bias, one(0.4), one(99, numpy.uint8)])
        case("QGemm", [a, one(0.03), az, Weight(b.T.copy()), scales, zeros, bias, one(0.3), one(99, numpy.uint8)], transB=1)
        case("QGemm", [whole(6, 3), one(0.03), az, Weight(b), scales, zeros, bias], transA=1, alpha=0.5)
    # The op rounds intermediate values to 8 bits; the expected values from NumPy are not rounded.
    for directions, direction in [(1, "forward"), (2, "bidirectional")]:
        size, x = 5, real(4, 2, 3, scale=0.5)
        weights = [Weight(whole(directions, 3, 4 * size)), Weight(whole(directions, size, 4 * size))]
        steps_of = [Weight(numpy.full(directions, 0.004, numpy.float32)), Weight(numpy.full(directions, 128, numpy.uint8))]
        of = dict(hidden_size=size, direction=direction, outputs=[0, 1, 2], rtol=0.0, atol=5e-3)
        bias = Weight(real(directions, 8 * size, scale=0.2))
        case("DynamicQuantizeLSTM", [x, *weights, bias, None, None, None, None, *steps_of, *steps_of], **of)
        start = [real(directions, 2, size, scale=0.3), real(directions, 2, size, scale=0.3)]
        case("DynamicQuantizeLSTM", [x, *weights, None, i32(4, 2), *start, None, *steps_of, *steps_of], **of)
    case("MatMulInteger16", [whole(2, 3, dtype=numpy.int16), whole(3, 4, dtype=numpy.int16)])


def attention(case):
    heads, size, batch, rows = 2, 4, 2, 5
    width = heads * size
    x, w, b = real(batch, rows, 6), Weight(real(6, 3 * width, scale=0.5)), Weight(real(3 * width))
    raw = numpy.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], numpy.int32)
    op = "Attention"
    case(op, [x, w, b], num_heads=heads)
    case(op, [x, w, b], num_heads=heads, scale=0.7)
    case(op, [x, w, b, raw], num_heads=heads)
    case(op, [x, w, b, raw], num_heads=heads, mask_filter_value=-3.0)
    case(op, [x, w, b, i32(3, 5)], num_heads=heads)
    case(op, [x, w, b, i32(4, 5, 1, 2)], num_heads=heads)
    case(op, [x, w, b, None], num_heads=heads, unidirectional=1)
    case(op, [x, w, b, raw], num_heads=heads, unidirectional=1, outputs=[0, 1])
    case(op, [x, w, b, numpy.tril(numpy.ones((batch, rows, rows), numpy.int32))], num_heads=heads)
    case(op, [x, w, b, None, None, real(1, heads, rows, rows)], num_heads=heads)
    case(op, [x, w, b, raw, None, real(batch, 1, rows, rows)], num_heads=heads)
    sizes = [width, width, heads * 3]
    v = [Weight(real(6, sum(sizes), scale=0.5)), Weight(real(sum(sizes)))]
    case(op, [x, *v], num_heads=heads, qkv_hidden_sizes=sizes)
    past = real(2, batch, heads, 3, size)
    long = numpy.concatenate([numpy.ones((batch, 3), numpy.int32), raw], 1)
    case(op, [x, w, b, None, past], num_heads=heads, unidirectional=1, outputs=[0, 1])
    case(op, [x[:, :1], w, b, None, past], num_heads=heads, unidirectional=1, outputs=[0, 1])
    case(op, [x, w, b, long, past], num_heads=heads, unidirectional=1, outputs=[0, 1])
    case(op, [x, w, b, long, past], num_heads=heads, outputs=[0, 1])
    scales = Weight(numpy.full(3 * width, 0.01, numpy.float32))
    for dtype in [numpy.uint8, numpy.int8]:
        x, w = whole(batch, rows, 6), Weight(whole(6, 3 * width, dtype=dtype))
        zeros = [one(119, numpy.uint8), one(3, dtype)]
        case("QAttention", [x, w, b, one(0.03), one(0.01), None, *zeros], num_heads=heads)
        case("QAttention", [x, w, b, one(0.03), one(0.01), i32(3, 5), *zeros], num_heads=heads)
        case("QAttention", [x, w, b, one(0.03), scales, raw, *zeros], num_heads=heads, unidirectional=1)
        case("QAttention", [x, w, b, one(0.03), one(0.01), long, *zeros, past], num_heads=heads, outputs=[0, 1], unidirectional=1)


def multi_head(case):
    heads, size, batch, rows, keys = 2, 4, 2, 3, 5
    width = heads * size
    q, k, v = real(batch, rows, width), real(batch, keys, width), real(batch, keys, width)
    b = Weight(real(3 * width))
    op = "MultiHeadAttention"
    mask = numpy.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], numpy.int32)
    case(op, [q, k, v], num_heads=heads)
    case(op, [q, k, v, b], num_heads=heads, scale=0.3)
    case(op, [q, k, v, None, mask], num_heads=heads)
    case(op, [q, k, v, b, i32(3, 5)], num_heads=heads)
    case(op, [q, k, v, None, None, real(batch, heads, rows, keys)], num_heads=heads)
    case(op, [q, k, v, None, mask, real(1, heads, rows, keys)], num_heads=heads)
    case(op, [q, k, v, None, numpy.tril(numpy.ones((batch, rows, keys), numpy.int32))], num_heads=heads)
    case(op, [real(batch, keys, width), k, v], num_heads=heads, unidirectional=1, outputs=[0, 1, 2])
    case(op, [q, k, real(batch, keys, heads * 3)], num_heads=heads)
    apart = [real(batch, heads, keys, size), real(batch, heads, keys, size)]
    case(op, [q, *apart], num_heads=heads)
    case(op, [q, *apart, b, mask], num_heads=heads)
    past = [real(batch, heads, 2, size), real(batch, heads, 2, size)]
    case(op, [q, real(batch, rows, width), real(batch, rows, width), b, mask, None, *past], num_heads=heads, outputs=[0, 1, 2])
    case(op, [q, real(batch, rows, width), real(batch, rows, width), None, None, real(1, 1, rows, keys), *past], num_heads=heads,
         unidirectional=1, outputs=[0, 1, 2])
    case(op, [q, k, v, None, mask], num_heads=heads, outputs=[0, 3])


def grouped(case):
    op, size, most = "GroupQueryAttention", 16, 24
    angle = numpy.arange(most)[:, None] / 100 ** (numpy.arange(size // 2) / (size // 2))
    tables = [Weight(numpy.cos(angle).astype(numpy.float32)), Weight(numpy.sin(angle).astype(numpy.float32))]
    for heads, shared in [(4, 2), (2, 1), (2, 2)]:
        of = dict(num_heads=heads, kv_num_heads=shared, outputs=[0, 1, 2])
        operands = lambda batch, rows: [real(batch, rows, heads * size), *(real(batch, rows, shared * size) for _ in "kv")]
        past = lambda batch, rows: [real(batch, shared, rows, size), real(batch, shared, rows, size)]
        ends = lambda total, batch=1: [i32(*[total - 1] * batch), one(total, numpy.int32)]
        case(op, [*operands(1, 6), None, None, *ends(6)], **of)
        case(op, [*operands(2, 6), *past(2, 0), *ends(6, 2), *tables], do_rotary=1, **of)
        case(op, [*operands(1, 1), *past(1, 5), *ends(6)], **of)
        case(op, [*operands(1, 1), *past(1, 5), *ends(6), *tables], do_rotary=1, **of)
        case(op, [*operands(1, 3), *past(1, 5), *ends(8), *tables], do_rotary=1, rotary_interleaved=1, **of)
        case(op, [*operands(2, 1), *past(2, 5), *ends(6, 2), *tables], do_rotary=1, scale=0.2, **of)
        case(op, [*operands(1, 1), *past(1, 9), *ends(10)], local_window_size=4, **of)
        case(op, [*operands(1, 6), None, None, *ends(6)], local_window_size=3, softcap=2.0, **of)
        packed = real(1, 4, (heads + 2 * shared) * size)
        case(op, [packed, None, None, None, None, *ends(4), *tables], do_rotary=1, **of)
        case(op, [packed, None, None, *past(1, 5), *ends(9), *tables], do_rotary=1, **of)
        bias = [None, None, None, real(1, heads, 1, 6)]
        case(op, [*operands(1, 1), *past(1, 5), *ends(6), *bias], **of)
        bias = [None, None, None, real(2, 1, 1, 6)]
        case(op, [*operands(2, 1), *past(2, 5), *ends(6, 2), *bias], softcap=1.5, **of)
    heads, shared = 4, 2
    # onnxruntime leaves rows past the end of a text undefined, so the kept state is not compared.
    of = dict(num_heads=heads, kv_num_heads=shared, outputs=[0, 1, 2], compared=[0])
    operands = lambda batch, rows: [real(batch, rows, heads * size), *(real(batch, rows, shared * size) for _ in "kv")]
    past = lambda batch, rows: [real(batch, shared, rows, size), real(batch, shared, rows, size)]
    # Texts of different lengths, shorter than the padded length.
    case(op, [*operands(2, 1), *past(2, 5), i32(5, 2), one(6, numpy.int32), *tables], do_rotary=1, name="ragged", **of)
    case(op, [*operands(2, 1), *past(2, 9), i32(8, 3), one(9, numpy.int32), *tables], do_rotary=1, name="room", **of)
    case(op, [*operands(1, 1), *past(1, 9), i32(4), one(5, numpy.int32), *tables], do_rotary=1, local_window_size=3, name="room", **of)
    case(op, [*operands(1, 3), *past(1, 12), i32(7), one(8, numpy.int32), *tables], do_rotary=1, name="room", **of)


def rotary(case):
    op, most = "RotaryEmbedding", 12
    for size, interleaved in [(8, 0), (6, 1)]:
        angle = numpy.arange(most)[:, None] / 100 ** (numpy.arange(size // 2) / (size // 2))
        tables = [Weight(numpy.cos(angle).astype(numpy.float32)), Weight(numpy.sin(angle).astype(numpy.float32))]
        places = numpy.array([[0, 1, 2], [4, 5, 6]], numpy.int64)
        case(op, [real(2, 3, 2 * size), places, *tables], interleaved=interleaved)
        case(op, [real(2, 2, 3, size), places, *tables], interleaved=interleaved)
        case(op, [real(2, 3, 2 * size), numpy.array([3], numpy.int64), *tables], interleaved=interleaved)
        case(op, [real(2, 2, 3, size), numpy.array([3], numpy.int64), *tables], interleaved=interleaved)
        part = dict(num_heads=2, rotary_embedding_dim=size, interleaved=interleaved)
        case(op, [real(2, 3, 2 * (size + 4)), places, *tables], **part)
        case(op, [real(2, 2, 3, size + 4), places, *tables], **part)


def packed(numbers, bits):
    """Packs numbers of few bits, the first in the lowest bits of a byte; each row starts a new byte."""
    shared = 8 // bits
    numbers = numpy.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % shared)])
    numbers = numbers.reshape(*numbers.shape[:-1], -1, shared).astype(numpy.uint8)
    return (numbers << numpy.arange(0, 8, bits, dtype=numpy.uint8)).sum(-1, dtype=numpy.uint8)


def blocks(case):
    for bits, k, n, block in [(4, 64, 5, 16), (4, 48, 3, 16), (4, 40, 6, 32), (8, 32, 4, 16), (2, 64, 4, 32), (4, 128, 8, 32)]:
        count = -(-k // block)
        whole_numbers = whole(n, count, block, low=0, high=1 << bits)
        weights = Weight(packed(whole_numbers, bits))
        scales, of = Weight(real(n, count, scale=0.1)), dict(K=k, N=n, block_size=block, bits=bits)
        op = "MatMulNBits"
        zeros = Weight(packed(whole(n, count, low=0, high=1 << bits), bits))
        case(op, [real(2, 3, k), weights, scales], **of)
        case(op, [real(3, k), weights, scales, zeros], **of)
        case(op, [real(1, 1, k), weights, scales, zeros, None, Weight(real(n))], **of)
        if bits == 4:
            case(op, [real(3, k), weights, scales, Weight(real(n, count) + 7)], **of)
            half = Weight(scales.array.astype(numpy.float16))
            case(op, [real(3, k, dtype=numpy.float16), weights, half, zeros], rtol=1e-2, atol=1e-2, **of)
    op = "GatherBlockQuantized"
    for bits, rows, width, block in [(4, 7, 32, 16), (8, 5, 48, 16), (4, 6, 64, 32)]:
        count = width // block
        table = Weight(packed(whole(rows, width, low=0, high=1 << bits), bits))
        scales, zeros = Weight(real(rows, count, scale=0.1)), Weight(packed(whole(rows, count, low=0, high=1 << bits), bits))
        of = dict(bits=bits, block_size=block, gather_axis=0, quantize_axis=1)
        case(op, [table, numpy.array([[0, 3, -1]], numpy.int64), scales], **of)
        case(op, [table, numpy.array([1, 4], numpy.int32), scales, zeros], **of)
        case(op, [table, numpy.array(2, numpy.int64), Weight(scales.array.astype(numpy.float16)), zeros], **of)


def more_normalizations(case):
    """Statistics as outputs, and what onnxruntime calls `LayerNormalization` in opsets in which ONNX has no such op."""
    x, s, g, b = real(2, 3, 8), real(2, 3, 8), real(8), real(8)
    half = lambda *dims: real(*dims, dtype=numpy.float16)  # noqa: E731
    case("SkipLayerNormalization", [x, s, Weight(g)], outputs=[0, 1, 2, 3])
    case("SkipSimplifiedLayerNormalization", [x, s, Weight(g)], outputs=[0, 2])
    case("SimplifiedLayerNormalization", [x, Weight(g)], domain="", outputs=2, axis=1, onnx_opset=12)
    case("SimplifiedLayerNormalization", [half(2, 3, 8), Weight(g)], domain="", outputs=2)
    old = dict(domain="", onnx_opset=12)
    case("LayerNormalization", [x, Weight(g)], **old)
    case("LayerNormalization", [x, Weight(g), Weight(b)], outputs=3, epsilon=1e-2, stash_type=1, **old)
    case("LayerNormalization", [x, Weight(real(3, 8)), Weight(b)], outputs=2, axis=1, **old)
    case("LayerNormalization", [x, g, b], domain="", onnx_opset=16, axis=2)
    for x, other in [(half(2, 3, 8), half), (half(2, 3, 8), real), (real(2, 3, 8), half)]:
        case("LayerNormalization", [x, Weight(other(8)), Weight(other(8))], outputs=[0, 2], **old)


def tokens(case):
    """Texts cut at separators, by the pattern of a token, or into characters."""
    texts = lambda *rows: numpy.array(rows, object)  # noqa: E731
    some = texts("This is the first document.", "Is the 2nd_one here?", "", "  naïve café, ab a", "日本 語, ab|c")
    plain = dict(pad_value="#", mark=0, mincharnum=1)
    for more in [{}, dict(mark=1), dict(mincharnum=2, pad_value=""), dict(mincharnum=3, mark=2)]:
        case("Tokenizer", [some], **plain | more | dict(tokenexp="[a-zA-Z0-9_]+"))
        case("Tokenizer", [some[:4].reshape(2, 2)], **plain | more | dict(separators=[" ", "[.,?|]"]))
    for pattern in [r"\w+", r"\bi\w*|[^\W\d]+", "a|ab|i+?s*?", r"(?i)[[:upper:]]+", r"\p{Han}+|\pN", "x*|e", r"\Q?\E|[&&|~.]"]:
        case("Tokenizer", [some], **plain | dict(tokenexp=pattern))
    for separators in [[r"\s+"], ["is|i", "the?"], ["x*"], ["e", ""], [r"\b"]]:
        case("Tokenizer", [some], **plain | dict(separators=separators))
    case("Tokenizer", [some], **plain | dict(tokenexp=".", mark=1))
    case("Tokenizer", [some.reshape(5, 1)], **plain | dict(separators=[""]))
    case("Tokenizer", [texts("..", "")], **plain | dict(tokenexp="[a-z]+", mark=1))


def others(case):
    case("Trilu", [real(2, 3, 4)])
    case("Trilu", [real(4, 3), one(-1, numpy.int64)], upper=0)
    case("ExpandDims", [real(2, 3), one(1, numpy.int32)])
    case("ExpandDims", [real(2, 3), one(-1, numpy.int32)])
    case("GatherND", [real(2, 3, 4), numpy.array([[0, 1], [1, 2]], numpy.int64)])
    case("GatherND", [real(2, 3), numpy.array([[1], [0]], numpy.int32)])
    case("Pad", [real(2, 3), Weight(numpy.array([0, 1, 2, 0], numpy.int64))])
    case("Pad", [real(4, 4), Weight(numpy.array([[0, 1, 2, 0]], numpy.int64)), Weight(numpy.array([1.5], numpy.float32))])
    case("Pad", [real(4, 4), Weight(numpy.array([0, 1, 2, 0], numpy.int64))], mode="reflect")
    case("Range", [one(1), one(5), one(0.5)])
    case("Range", [one(2, numpy.int64), one(5, numpy.int64)])
    case("Unique", [numpy.array([2, 1, 1, 3, 4, 3], numpy.float32)], outputs=[0, 1, 2])
    case("Unique", [numpy.array([5], numpy.float32)], outputs=[0, 1, 2])
    case("NhwcMaxPool", [whole(1, 6, 7, 3)], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 0])
    case("NhwcMaxPool", [whole(1, 6, 7, 3, dtype=numpy.int8)], kernel_shape=[2, 2], dilations=[1, 2], ceil_mode=1)
    case("SampleOp", [real(2, 3)])
    matrices = real(2, 3, 3) + 3 * numpy.eye(3, dtype=numpy.float32)
    case("Inverse", [matrices])
    case("Inverse", [matrices[0].astype(numpy.float64)])
    case("Inverse", [matrices.astype(numpy.float16)], rtol=1e-2, atol=1e-2)
    for dim in [0, 1, -1, -2]:
        case("UnfoldTensor", [real(7, 5)], dim=dim, size=3, step=2)
    case("UnfoldTensor", [whole(2, 6, 3, dtype=numpy.int64)], dim=1, size=6)
    case("UnfoldTensor", [real(4)], size=1, step=3)
    for width in [5, 1, 9]:
        case("DynamicTimeWarping", [abs(real(6, width))])
    case("DynamicTimeWarping", [whole(1, 7, 6, low=0, high=3).astype(numpy.float32)])
    for dtype in [numpy.int32, numpy.uint32, numpy.int64, numpy.uint64]:
        case("MurmurHash3", [whole(2, 3, low=0, high=1 << 31, dtype=dtype)])
    case("MurmurHash3", [real(4)], seed=77, positive=0)
    case("MurmurHash3", [real(4, dtype=numpy.float64)], seed=3)
    crops(case)


def crops(case):
    # With these boxes no coordinate is halfway between two elements, where f32 rounding would decide which is nearest.
    images, of = real(2, 3, 5, 6), i32(1, 0, 1, 0)
    boxes = numpy.array([[0, 0, 1, 1], [0.1, 0.2, 0.83, 0.55], [-0.3, 0.2, 0.7, 1.37], [0.92, 0.73, 0.2, 0.17]], numpy.float32)
    for mode in ["bilinear", "nearest"]:
        for size in [(4, 3), (1, 2), (5, 6), (1, 1)]:
            case("CropAndResize", [images, boxes, of, i32(*size)], mode=mode, extrapolation_value=-7.5)
    case("CropAndResize", [images[:, :, :1], boxes, of, i32(2, 2)])
