"""Single ops at the sizes of published models. Random numbers come from one generator, so that each run has the same ones."""

from dataclasses import dataclass, field

import numpy as np
from onnx.helper import np_dtype_to_tensor_dtype

MICROSOFT = "com.microsoft"
GENERATOR = np.random.default_rng(1)


@dataclass
class OpCase:
    """One call of an op: `inputs` by position, of which the `constants` are part of the model."""

    name: str
    op: str
    inputs: list
    attributes: dict = field(default_factory=dict)
    constants: tuple = ()
    outputs: int = 1
    opset: int = 20
    domain: str = ""


def floats(*dims):
    return GENERATOR.standard_normal(dims).astype(np.float32)


def positive(*dims):
    return (GENERATOR.random(dims) + 0.1).astype(np.float32)


def integers(limit, *dims, dtype=np.int64):
    return GENERATOR.integers(0, limit, dims).astype(dtype)


def booleans(*dims):
    return GENERATOR.random(dims) < 0.5


def f32(value):
    return np.array(value, np.float32)


def i64(*values):
    return np.array(values, np.int64)


def case(name, op, *inputs, constants=(), outputs=1, opset=20, domain="", **attributes):
    return OpCase(name, op, list(inputs), attributes, tuple(constants), outputs, opset, domain)


def all_cases():
    """All cases, made one by one: together they would take gigabytes."""
    for group in (unary, binary, casts, reductions, normalizations, movement, selections, resizes, pools, convolutions, products, signals):
        yield from group()


def unary():
    ops = (
        "Abs Neg Exp Sqrt Reciprocal Floor Ceil Round Sign Sin Cos Tan Sinh Cosh Atan Tanh Sigmoid Softplus Softsign Relu Elu Selu "
        "LeakyRelu Celu HardSigmoid HardSwish Mish Gelu ThresholdedRelu Erf IsNaN IsInf Shrink"
    )
    x = floats(8, 128, 768)
    for op in ops.split():
        yield case(op, op, x)
    for op in "Log Asin Acos Atanh".split():
        yield case(op, op, positive(8, 128, 768) * 0.8)
    yield case("Not", "Not", booleans(8, 128, 768))
    for exponent in (2, 3, 0.5, -0.5, 1.7):
        yield case(f"Pow, {exponent}", "Pow", positive(8, 128, 768), f32(exponent), constants=[1])
    yield case("Clip", "Clip", x, f32(-1), f32(1), constants=[1, 2])
    for op in "Exp Sqrt".split():
        yield case(f"{op}, f64", op, positive(8, 128, 768).astype(np.float64))
    yield case("QuickGelu", "QuickGelu", x, domain=MICROSOFT, alpha=1.0)
    yield case("FastGelu", "FastGelu", x, domain=MICROSOFT)
    yield case("BiasGelu", "BiasGelu", x, floats(768), constants=[1], domain=MICROSOFT)
    yield case("QuantizeLinear", "QuantizeLinear", x, f32(0.02), np.array(128, np.uint8), constants=[1, 2])
    bytes_ = integers(255, 8, 128, 768, dtype=np.uint8)
    yield case("DequantizeLinear", "DequantizeLinear", bytes_, f32(0.02), np.array(128, np.uint8), constants=[1, 2])
    weights = integers(127, 768, 768, dtype=np.int8)
    zeros = np.zeros(768, np.int8)
    yield case("DequantizeLinear, rows", "DequantizeLinear", weights, positive(768), zeros, constants=[1, 2], axis=0)
    yield case("DynamicQuantizeLinear", "DynamicQuantizeLinear", x, outputs=3)


def binary():
    x = floats(8, 128, 768)
    others = {"": floats(8, 128, 768), ", row": floats(768), ", column": floats(8, 128, 1), ", scalar": f32(1.5)}
    for op in "Add Sub Mul Div Max Min Mod Greater Equal".split():
        options = {"fmod": 1} if op == "Mod" else {}
        for name, other in others.items():
            yield case(op + name, op, x, other, **options)
    for op in "Add Mul Div Max Mod Equal".split():
        for dtype in (np.int32, np.int64):
            left, right = integers(1000, 8, 128, 768, dtype=dtype), integers(1000, 8, 128, 768, dtype=dtype) + dtype(1)
            yield case(f"{op}, {np.dtype(dtype)}", op, left, right)
    for op in "Add Mul".split():
        yield case(f"{op}, f16", op, x.astype(np.float16), x.astype(np.float16))
        yield case(f"{op}, f64", op, x.astype(np.float64), x.astype(np.float64))
        yield case(f"{op}, channels", op, floats(1, 64, 112, 112), floats(1, 64, 1, 1))
        yield case(f"{op}, outer", op, floats(512, 1), floats(1, 512))
    for op in "And Or".split():
        yield case(op, op, booleans(8, 128, 768), booleans(8, 128, 768))
    yield case("PRelu, channels", "PRelu", floats(1, 64, 112, 112), floats(64, 1, 1), constants=[1])
    yield case("Where", "Where", booleans(8, 128, 768), x, floats(8, 128, 768))
    yield case("Where, mask", "Where", booleans(8, 1, 128, 128), floats(8, 8, 128, 128), f32(-1e9), constants=[2])
    for op in "Sum Mean Max".split():
        yield case(f"{op} of 3", op, x, floats(8, 128, 768), floats(8, 128, 768))


def casts():
    numbers = np.abs(floats(8, 128, 768)) * 50
    pairs = (
        "float32 float16, float16 float32, float32 int64, int64 float32, float32 uint8, uint8 float32, float32 bool, bool float32, "
        "float32 float64, int32 int64, int64 int32, bool int64"
    )
    for pair in pairs.split(", "):
        source, target = map(np.dtype, pair.split())
        yield case(f"Cast, {source} to {target}", "Cast", numbers.astype(source), to=np_dtype_to_tensor_dtype(target))


def reductions():
    x = positive(8, 128, 768)
    kinds = "Sum Mean Max Min Prod L1 L2 LogSumExp SumSquare"
    for op in (f"Reduce{kind}" for kind in kinds.split()):
        for axes in ([-1], [1], [0], [0, 1], [1, 2]):
            yield case(f"{op}, axes {axes}", op, x, i64(*axes), constants=[1])
        yield case(f"{op}, all", op, x)
        yield case(f"{op}, planes", op, positive(4, 64, 56, 56), i64(2, 3), constants=[1])
    for axis in (-1, 1, 0):
        yield case(f"ArgMax, axis {axis}", "ArgMax", x, axis=axis)
    yield case("ArgMax, logits", "ArgMax", floats(1, 1, 151936), axis=-1)
    yield case("ArgMax, segments", "ArgMax", floats(1, 21, 512, 512), axis=1)
    for axis in (1, -1):
        yield case(f"CumSum, axis {axis}", "CumSum", x, i64(axis)[0], constants=[1])
    for dims, count in [((1000, 100), 10), ((1, 8400), 300), ((1, 100000), 1000), ((64, 1024), 5), ((1, 151936), 50), ((100, 1000), 1000)]:
        yield case(f"TopK, {count} of {dims}", "TopK", floats(*dims), i64(count), constants=[1], outputs=2, axis=-1)
    yield case("TopK, axis 1", "TopK", floats(4, 1000, 64), i64(10), constants=[1], outputs=2, axis=1)


def normalizations():
    for op in "Softmax LogSoftmax Hardmax".split():
        for dims, axis in [((12, 12, 128, 128), -1), ((1, 21, 256, 256), 1), ((4, 32000), -1), ((10000, 10), -1)]:
            yield case(f"{op}, {dims} along {axis}", op, floats(*dims), axis=axis)
    x, image = floats(8, 128, 768), floats(2, 64, 64, 64)
    yield case("LayerNormalization", "LayerNormalization", x, floats(768), floats(768), constants=[1, 2], axis=-1)
    yield case("LayerNormalization, 64", "LayerNormalization", floats(16384, 64), floats(64), floats(64), constants=[1, 2], axis=-1)
    half = [array.astype(np.float16) for array in (x, floats(768), floats(768))]
    yield case("LayerNormalization, f16", "LayerNormalization", *half, constants=[1, 2], axis=-1)
    yield case("SimplifiedLayerNormalization", "SimplifiedLayerNormalization", x, floats(768), constants=[1], axis=-1)
    skip = [x, floats(8, 128, 768), floats(768), floats(768)]
    yield case("SkipLayerNormalization", "SkipLayerNormalization", *skip, constants=[2, 3], domain=MICROSOFT)
    yield case("InstanceNormalization", "InstanceNormalization", image, floats(64), floats(64), constants=[1, 2])
    statistics = [floats(64), floats(64), floats(64), positive(64)]
    yield case("BatchNormalization", "BatchNormalization", image, *statistics, constants=[1, 2, 3, 4])
    yield case("GroupNormalization", "GroupNormalization", image, floats(64), floats(64), constants=[1, 2], opset=21, num_groups=8)
    yield case("LpNormalization", "LpNormalization", x, axis=-1, p=2)
    yield case("MeanVarianceNormalization", "MeanVarianceNormalization", image)
    yield case("LRN", "LRN", floats(2, 64, 56, 56), size=5)
    yield case("Softmax, f16", "Softmax", floats(12, 128, 128).astype(np.float16), axis=-1)


def movement():
    x = floats(8, 128, 768)
    for order in [(0, 2, 1), (1, 0, 2), (2, 0, 1), (2, 1, 0)]:
        yield case(f"Transpose, {order}", "Transpose", x, perm=order)
    for order in [(0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1), (0, 1, 3, 2)]:
        yield case(f"Transpose, {order}", "Transpose", floats(4, 64, 64, 48), perm=order)
    yield case("Transpose, volumes", "Transpose", floats(1, 16, 24, 24, 24), perm=(0, 2, 3, 4, 1))
    yield case("Transpose, shuffle", "Transpose", floats(1, 4, 68, 28, 28), perm=(0, 2, 1, 3, 4))
    yield case("Transpose, windows", "Transpose", floats(1, 8, 7, 8, 7, 96), perm=(0, 1, 3, 2, 4, 5))
    yield case("Transpose, pixels", "Transpose", integers(255, 1, 512, 512, 3, dtype=np.uint8), perm=(0, 3, 1, 2))
    for axis in (0, 1, 2):
        yield case(f"Concat, axis {axis}", "Concat", x, x, x, axis=axis)
        yield case(f"Split, axis {axis}", "Split", x, outputs=4, axis=axis, num_outputs=4)
    yield case("Slice, columns", "Slice", x, i64(64), i64(512), i64(2), constants=[1, 2, 3])
    yield case("Slice, every second", "Slice", x, i64(0), i64(768), i64(2), i64(2), constants=[1, 2, 3, 4])
    yield case("Slice, backwards", "Slice", x, i64(-1), i64(-9999), i64(2), i64(-1), constants=[1, 2, 3, 4])
    for mode in "constant reflect edge wrap".split():
        yield case(f"Pad, {mode}", "Pad", floats(1, 64, 56, 56), i64(0, 0, 3, 3, 0, 0, 3, 3), constants=[1], mode=mode)
    yield case("Tile, last axis", "Tile", floats(8, 128, 96), i64(1, 1, 8), constants=[1])
    yield case("Tile, first axis", "Tile", floats(1, 128, 768), i64(8, 1, 1), constants=[1])
    yield case("Expand, rows", "Expand", floats(8, 1, 768), i64(8, 128, 768), constants=[1])
    yield case("Expand, elements", "Expand", floats(8, 128, 1), i64(8, 128, 768), constants=[1])
    yield case("DepthToSpace", "DepthToSpace", floats(1, 64, 128, 128), blocksize=2)
    yield case("SpaceToDepth", "SpaceToDepth", floats(1, 16, 256, 256), blocksize=2)
    yield case("ReverseSequence", "ReverseSequence", floats(100, 16, 64), integers(100, 16), time_axis=0, batch_axis=1)
    yield case("Trilu", "Trilu", floats(12, 512, 512), upper=0)


def selections():
    x = floats(8, 128, 768)
    yield case("Gather, embeddings", "Gather", floats(30000, 384), integers(30000, 8, 128), constants=[0])
    yield case("Gather, axis 1", "Gather", x, integers(128, 64), axis=1)
    yield case("Gather, axis -1", "Gather", x, integers(768, 300), axis=-1)
    yield case("GatherElements, axis -1", "GatherElements", x, integers(768, 8, 128, 300), axis=-1)
    yield case("GatherElements, axis 1", "GatherElements", x, integers(128, 8, 64, 768), axis=1)
    yield case("GatherElements, axis 0", "GatherElements", floats(1000, 256), integers(1000, 500, 256), axis=0)
    rows = np.stack([integers(8, 5000), integers(128, 5000)], -1)
    yield case("GatherND, rows", "GatherND", x, rows)
    elements = np.stack([integers(8, 50000), integers(128, 50000), integers(768, 50000)], -1)
    yield case("GatherND, elements", "GatherND", x, elements)
    for reduction in ("none", "add"):
        places, updates = integers(128, 8, 64, 768), floats(8, 64, 768)
        yield case(f"ScatterElements, {reduction}", "ScatterElements", x, places, updates, axis=1, reduction=reduction)
        places, updates = integers(1000, 20000, 1), floats(20000, 64)
        yield case(f"ScatterND, {reduction}", "ScatterND", floats(1000, 64), places, updates, reduction=reduction)
    yield case("NonZero", "NonZero", GENERATOR.random((512, 512)) < 0.1)
    yield case("Unique", "Unique", integers(5000, 100000), outputs=4, sorted=1)
    yield case("OneHot", "OneHot", integers(100, 10000), i64(100)[0], np.array([0, 1], np.float32), constants=[1, 2])
    yield case("Compress", "Compress", floats(10000, 64), booleans(10000), axis=0)
    yield case("Range", "Range", i64(0)[0], i64(100000)[0], i64(1)[0])
    boxes = np.sort(GENERATOR.random((1, 2000, 4)).astype(np.float32) * 100, -1)
    bounds = [i64(100)[0], f32(0.5), f32(0.3)]
    yield case("NonMaxSuppression", "NonMaxSuppression", boxes, positive(1, 20, 2000), *bounds, constants=[2, 3, 4])


def resizes():
    small, large = floats(1, 64, 40, 40), floats(1, 3, 720, 1280)
    modes = [("nearest", "asymmetric"), ("linear", "half_pixel"), ("linear", "align_corners"), ("cubic", "half_pixel")]
    for mode, coordinates in modes:
        options = {"mode": mode, "coordinate_transformation_mode": coordinates, "nearest_mode": "floor"}
        yield case(f"Resize, larger, {mode}, {coordinates}", "Resize", small, None, f32([1, 1, 2, 2]), constants=[2], **options)
        sizes = i64(1, 3, 480, 640)
        yield case(f"Resize, smaller, {mode}, {coordinates}", "Resize", large, None, None, sizes, constants=[3], **options)
    thumbnail = i64(1, 3, 224, 224)
    yield case("Resize, antialias", "Resize", large, None, None, thumbnail, constants=[3], mode="linear", antialias=1)
    pixels = integers(255, 1, 3, 720, 1280, dtype=np.uint8)
    yield case("Resize, uint8", "Resize", pixels, None, None, thumbnail, constants=[3], mode="linear")
    yield case("Resize, volumes", "Resize", floats(1, 16, 16, 24, 24), None, f32([1, 1, 2, 2, 2]), constants=[2], mode="linear")
    yield case("Resize, lines", "Resize", floats(1, 64, 1000), None, f32([1, 1, 2]), constants=[2], mode="linear")
    grid = (GENERATOR.random((1, 64, 64, 2)) * 2 - 1).astype(np.float32)
    for mode in ("linear", "nearest"):
        yield case(f"GridSample, {mode}", "GridSample", floats(1, 32, 64, 64), grid, mode=mode)
    regions = np.sort(positive(100, 4) * 44, -1)
    options = {"output_height": 7, "output_width": 7, "sampling_ratio": 2}
    yield case("RoiAlign", "RoiAlign", floats(1, 256, 50, 50), regions, np.zeros(100, np.int64), **options)


def pools():
    image = floats(1, 64, 112, 112)
    padded = {"pads": [1, 1, 1, 1]}
    yield case("MaxPool, 3×3 stride 2", "MaxPool", image, kernel_shape=[3, 3], strides=[2, 2], **padded)
    yield case("MaxPool, 2×2 stride 2", "MaxPool", image, kernel_shape=[2, 2], strides=[2, 2])
    yield case("MaxPool, 5×5", "MaxPool", floats(1, 256, 20, 20), kernel_shape=[5, 5], pads=[2, 2, 2, 2])
    yield case("MaxPool, lines", "MaxPool", floats(4, 64, 8000), kernel_shape=[4], strides=[4])
    yield case("MaxPool, volumes", "MaxPool", floats(1, 16, 16, 32, 32), kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    yield case("MaxPool, indices", "MaxPool", image, outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    places = (np.arange(64 * 56 * 56, dtype=np.int64) * 4).reshape(1, 64, 56, 56)
    yield case("MaxUnpool", "MaxUnpool", floats(1, 64, 56, 56), places, kernel_shape=[2, 2], strides=[2, 2])
    yield case("AveragePool, 3×3", "AveragePool", floats(1, 64, 56, 56), kernel_shape=[3, 3], **padded)
    yield case("AveragePool, 2×2 stride 2", "AveragePool", image, kernel_shape=[2, 2], strides=[2, 2])
    yield case("GlobalAveragePool", "GlobalAveragePool", floats(4, 512, 14, 14))
    yield case("GlobalMaxPool", "GlobalMaxPool", floats(4, 512, 14, 14))
    columns = floats(1, 64 * 9, 3136)
    yield case("Col2Im", "Col2Im", columns, i64(56, 56), i64(3, 3), constants=[1, 2], pads=[1, 1, 1, 1])


def convolution(name, image, filters, **attributes):
    return case(f"Conv, {name}", "Conv", image, filters, floats(filters.shape[0]), constants=[1, 2], **attributes)


def transposed(name, image, filters, **attributes):
    return case(f"ConvTranspose, {name}", "ConvTranspose", image, filters, constants=[1], **attributes)


def convolutions():
    yield convolution("1×1, 64 to 256", floats(1, 64, 56, 56), floats(256, 64, 1, 1))
    yield convolution("3×3, 64", floats(1, 64, 56, 56), floats(64, 64, 3, 3), pads=[1] * 4)
    yield convolution("3×3 stride 2, 64 to 128", floats(1, 64, 56, 56), floats(128, 64, 3, 3), pads=[1] * 4, strides=[2, 2])
    yield convolution("7×7 stride 2, 3 to 64", floats(1, 3, 224, 224), floats(64, 3, 7, 7), pads=[3] * 4, strides=[2, 2])
    yield convolution("3×3, 1 to 32", floats(1, 1, 128, 400), floats(32, 1, 3, 3), pads=[1] * 4)
    yield convolution("3×3 stride 2, 3 to 16", floats(1, 3, 640, 640), floats(16, 3, 3, 3), pads=[1] * 4, strides=[2, 2])
    yield convolution("9×9, 3 to 32", floats(1, 3, 256, 256), floats(32, 3, 9, 9), pads=[4] * 4)
    yield convolution("3×3 dilated by 2", floats(1, 128, 48, 48), floats(128, 128, 3, 3), pads=[2] * 4, dilations=[2, 2])
    yield convolution("3×3 depthwise", floats(1, 96, 56, 56), floats(96, 1, 3, 3), pads=[1] * 4, group=96)
    yield convolution("7×7 depthwise", floats(1, 96, 56, 56), floats(96, 1, 7, 7), pads=[3] * 4, group=96)
    yield convolution("3×3 in 32 groups", floats(1, 128, 56, 56), floats(128, 4, 3, 3), pads=[1] * 4, group=32)
    yield convolution("16×16 patches", floats(1, 3, 224, 224), floats(768, 3, 16, 16), strides=[16, 16])
    yield convolution("64 to 1", floats(1, 64, 128, 128), floats(1, 64, 1, 1))
    yield convolution("lines, 3", floats(1, 256, 500), floats(256, 256, 3), pads=[1, 1])
    yield convolution("lines, 10 stride 5, 1 to 512", floats(1, 1, 80000), floats(512, 1, 10), strides=[5])
    yield convolution("lines, 31 depthwise", floats(1, 256, 500), floats(256, 1, 31), pads=[15, 15], group=256)
    yield convolution("volumes, 3×3×3", floats(1, 16, 16, 32, 32), floats(32, 16, 3, 3, 3), pads=[1] * 6)
    yield convolution("volumes, 1 to 16", floats(1, 1, 32, 64, 64), floats(16, 1, 3, 3, 3), pads=[1] * 6)
    yield case("Conv, filters as input", "Conv", floats(1, 64, 56, 56), floats(64, 64, 3, 3), pads=[1] * 4)
    yield transposed("2×2 stride 2", floats(1, 128, 28, 28), floats(128, 64, 2, 2), strides=[2, 2])
    yield transposed("4×4 stride 2", floats(1, 64, 32, 32), floats(64, 64, 4, 4), strides=[2, 2], pads=[1] * 4)
    yield transposed("lines, 16 stride 8", floats(1, 128, 200), floats(128, 64, 16), strides=[8], pads=[4, 4])
    half = [floats(1, 64, 28, 28).astype(np.float16), floats(64, 64, 3, 3).astype(np.float16)]
    yield case("Conv, f16", "Conv", *half, constants=[1], pads=[1] * 4)


def products():
    for rows, depth, columns in [(1, 768, 3072), (8, 768, 768), (128, 768, 768), (1000, 4, 16), (37, 129, 53)]:
        left, right = floats(rows, depth), floats(depth, columns)
        yield case(f"MatMul, {rows}×{depth} by {depth}×{columns}", "MatMul", left, right, constants=[1])
    yield case("MatMul, two inputs", "MatMul", floats(512, 512), floats(512, 512))
    yield case("MatMul, batch of scores", "MatMul", floats(12, 128, 64), floats(12, 64, 128))
    yield case("MatMul, 1000 small", "MatMul", floats(1000, 8, 8), floats(1000, 8, 8))
    yield case("MatMul, f64", "MatMul", floats(256, 256).astype(np.float64), floats(256, 256).astype(np.float64))
    half = [floats(128, 768).astype(np.float16), floats(768, 768).astype(np.float16)]
    yield case("MatMul, f16", "MatMul", *half, constants=[1])
    bytes_ = [integers(255, 128, 768, dtype=np.uint8), integers(127, 768, 768, dtype=np.int8)]
    yield case("MatMulInteger", "MatMulInteger", *bytes_, constants=[1])
    yield case("Gemm, transposed", "Gemm", floats(32, 1024), floats(1000, 1024), floats(1000), constants=[1, 2], transB=1)
    for equation, dims in [("bhid,bhjd->bhij", [(1, 12, 128, 64)] * 2), ("bhwc,hkc->bhwk", [(8, 14, 14, 64), (14, 14, 64)])]:
        yield case(f"Einsum, {equation}", "Einsum", *(floats(*each) for each in dims), equation=equation)


def signals():
    for op, gates in [("LSTM", 4), ("GRU", 3), ("RNN", 1)]:
        for steps, batch, features, hidden in [(100, 1, 64, 128), (50, 8, 256, 256), (1, 1, 64, 64), (30, 64, 16, 32)]:
            weights = [floats(1, gates * hidden, features) * 0.1, floats(1, gates * hidden, hidden) * 0.1]
            biases = floats(1, 2 * gates * hidden) * 0.1
            name = f"{op}, {steps} steps of {batch}×{features}, {hidden} hidden"
            yield case(name, op, floats(steps, batch, features), *weights, biases, constants=[1, 2, 3], hidden_size=hidden)
    yield case("DFT, 512", "DFT", floats(8, 512, 1), None, i64(1)[0], constants=[2], onesided=1)
    window = np.hanning(512).astype(np.float32)
    signal = [floats(1, 16000, 1), i64(160)[0], window, i64(512)[0]]
    yield case("STFT", "STFT", *signal, constants=[1, 2, 3], opset=17, onesided=1)
