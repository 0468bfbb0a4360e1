"""Paddle functions with their inputs, and with a function for the outputs where Paddle's own kernel does not run everywhere."""

import numpy
import paddle
import paddle.nn.functional as functional
from op_cases import X2, X3, X4, X5, normal, one, positive, truths, whole

FEW = whole(0, 3, 4, 6)
OTHER = positive(4, 6)


def functions():
    """Elementwise functions."""
    for name in "abs acos asin atan ceil cos cosh erf exp expm1 floor log log10 log1p log2 reciprocal round rsqrt".split():
        yield name, getattr(paddle, name), [X2 / 4 if name in ("acos", "asin") else OTHER]
    for name in "sign sin sinh sqrt square stanh tan tanh trunc isfinite isinf isnan asinh acosh atanh".split():
        yield name, getattr(paddle, name), [OTHER / 3 if name == "atanh" else OTHER + 1]
    names = "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid mish relu relu6 selu sigmoid"
    names += " silu softmax softplus softshrink softsign swish tanhshrink thresholded_relu log_softmax"
    for name in names.split():
        yield name, getattr(functional, name), [2 * X2]
    yield "clip", lambda x: paddle.clip(x, -0.5, 0.25), [X2]
    yield "maxout", lambda x: functional.maxout(x, 2), [X4]
    yield "prelu", lambda x, w: functional.prelu(x, w), [X4, positive(4)]
    yield "scale", lambda x: paddle.scale(x, 2.0, 1.0, bias_after_scale=False), [X2]
    yield "pow", lambda x: paddle.pow(x, 1.5), [OTHER]
    yield "increment", lambda x: paddle.increment(x + 0, 2.0), [one(3, dtype="float32")]
    yield "dropout", lambda x: functional.dropout(x, 0.25, training=False, mode="downscale_in_infer"), [X2]


def pairs():
    """Binary functions."""
    for name in "add subtract multiply divide maximum minimum fmax fmin floor_divide remainder atan2 pow".split():
        yield name, getattr(paddle, name), [X2 if name != "pow" else OTHER, OTHER]
    for name in "equal not_equal less_than less_equal greater_than greater_equal equal_all".split():
        yield name, getattr(paddle, name), [FEW, whole(0, 3, 4, 6)]
    for name in ["and", "or", "xor"]:
        yield "logical_" + name, getattr(paddle, "logical_" + name), [truths(4, 6), truths(4, 6)]
        yield "bitwise_" + name, getattr(paddle, "bitwise_" + name), [FEW, FEW + 1]
    yield "logical_not", paddle.logical_not, [truths(4, 6)]
    yield "bitwise_not", paddle.bitwise_not, [FEW]
    yield "add_n", lambda x, y: paddle.add_n([x, y, x]), [X2, OTHER]
    yield "lerp", paddle.lerp, [X2, OTHER, OTHER]
    yield "matmul", lambda x, y: paddle.matmul(x, y, transpose_y=True), [X3, normal(2, 5, 4)]
    for name, shapes in {"bmm": [(2, 3, 4), (2, 4, 5)], "mv": [(3, 4), (4,)], "dot": [(3, 4), (3, 4)]}.items():
        yield name, getattr(paddle, name), [normal(*shape) for shape in shapes]
    yield "addmm", lambda i, x, y: paddle.addmm(i, x, y, 0.5, 2.0), [normal(4, 5), X2, normal(6, 5)]
    yield "einsum", lambda x, y: paddle.einsum("bij,bjk->bik", x, y), [X3, normal(2, 4, 5)]
    yield "allclose", lambda x, y: paddle.allclose(x, y), [X2, X2]
    yield "where", lambda c, x, y: paddle.where(c, x, y), [truths(4, 6), X2, OTHER]


def reductions():
    """Reductions and sorting."""
    for name in "sum mean max min prod amax amin logsumexp argmax argmin".split():
        yield name, lambda x, name=name: getattr(paddle, name)(x, axis=1, keepdim=True), [X3]
        yield name + "-all", lambda x, name=name: getattr(paddle, name)(x), [X3]
    for name in ["all", "any"]:
        yield name, lambda x, name=name: getattr(paddle, name)(x, axis=1), [truths(4, 6)]
    yield "cumsum", lambda x: paddle.cumsum(x, 1), [X3]
    yield "norm", lambda x: (paddle.norm(x, 2, 1), paddle.norm(x), paddle.norm(x, float("inf"), 1)), [X3]
    yield "std", lambda x: paddle.std(x, axis=1), [X3]
    yield "topk", lambda x: paddle.topk(x, 2, axis=1), [X3]
    yield "argsort", lambda x: (paddle.argsort(x, 1), paddle.sort(x, 1, descending=True)), [X3]
    yield "nonzero", paddle.nonzero, [truths(3, 4)]
    yield "masked_select", paddle.masked_select, [X2, truths(4, 6)]
    yield "unique", lambda x: paddle.unique(x, True, True, True), [whole(0, 5, 12)]
    yield "sequence_mask", lambda x: functional.sequence_mask(x, maxlen=6), [whole(1, 6, 4)]


def movement():
    """Ops that create, move and select elements."""
    yield "concat", lambda x, y: (paddle.concat([x, y], 1), paddle.stack([x, x], 1)), [X3, normal(2, 2, 4)]
    yield "split", lambda x: (*paddle.split(x, 2, 1), *paddle.split(x, [1, -1], 2)), [X4]
    yield "unbind", lambda x: (*paddle.unbind(x, 1), *paddle.unstack(x, 0)), [X3]
    yield "reshape", lambda x: (paddle.reshape(x, [4, -1]), paddle.flatten(x, 1), paddle.transpose(x, [2, 0, 1])), [X3]
    yield "reshape-computed", lambda x: paddle.reshape(x, [paddle.shape(x)[0], -1]), [X3]
    yield "squeeze", lambda x: (paddle.squeeze(x, 1), paddle.unsqueeze(x, [0, 3])), [normal(2, 1, 3)]
    yield "expand", lambda x, y: (paddle.expand(x, [2, -1, 4]), paddle.expand_as(x, y)), [normal(1, 3, 1), X3]
    yield "tile", lambda x: (paddle.tile(x, [2, 1, 3]), paddle.flip(x, [1]), paddle.roll(x, 2, 1)), [X2]
    yield "meshgrid", lambda x, y: paddle.meshgrid(x, y), [normal(2), normal(3)]
    yield "tril", lambda x: (paddle.tril(x, 1), paddle.triu(x, -1)), [normal(4, 4)]
    yield "interleave", lambda x: paddle.repeat_interleave(x, 2, 1), [X3]
    yield "crop", lambda x: paddle.crop(x, [2, 2, -1], [0, 1, 1]), [X3]
    yield "pad", lambda x: (functional.pad(x, [1, 2, 0, 1]), functional.pad(x, [1, 1, 2, 2], mode="reflect")), [X4]
    yield "pixels", lambda x: (functional.pixel_shuffle(x, 2), functional.pixel_unshuffle(x, 2), functional.channel_shuffle(x, 2)), [X4]
    yield "slice", lambda x: (x[:, 1:3, ::2], x[:, 0], x[..., -1], x[:, ::-1]), [X3]
    yield "gather", lambda x, i: (paddle.gather(x, i, 1), paddle.index_select(x, i, 1)), [X3, one(2, 0)]
    yield "gather_nd", paddle.gather_nd, [X3, whole(0, 2, 3, 2)]
    yield "index_sample", paddle.index_sample, [X2, whole(0, 6, 4, 3)]
    yield "along_axis", lambda x, i, v: (paddle.take_along_axis(x, i, 1), paddle.put_along_axis(x, i, v, 1)), [X2, whole(0, 6, 4, 1), normal(4, 1)]
    yield "embedding", lambda i, w: functional.embedding(i, w, padding_idx=3), [whole(0, 9, 2, 4), normal(9, 3)]
    yield "one_hot", lambda i: functional.one_hot(i, 5), [whole(0, 5, 2, 3)]
    yield "scatter", lambda x, i, u: (paddle.scatter(x, i, u), paddle.scatter(x, i, u, overwrite=False)), [X2, one(2, 0), normal(2, 6)]
    yield "scatter_nd_add", paddle.scatter_nd_add, [X3, whole(0, 2, 3, 2), normal(3, 4)]
    yield "set_value", changed, [X3, normal(2, 4)]
    yield "creation", created, [X2]
    yield "cast", lambda x: (paddle.cast(x, "int32"), paddle.shape(x), paddle.numel(x), paddle.assign(x)), [4 * X2]


def changed(x, y):
    """Assignment to parts of a tensor."""
    x[:, 1] = y
    x[:, 0] = 7.0
    return x


def created(x):
    """Ops without inputs."""
    rows = paddle.shape(x)[0]
    made = [paddle.full([2, 3], 1.5), paddle.full([rows, 2], 2, "int64"), paddle.full_like(x, float("-inf")), paddle.zeros_like(x)]
    return (*made, paddle.eye(3, 4), paddle.arange(0, 9, 2), paddle.linspace(1, 3, 5), paddle.to_tensor([1.5, 2.5]), paddle.ones([100]))


def spatial():
    """Convolutions, windows, images and normalization."""
    w = normal(5, 4, 3, 3)
    yield "conv2d", lambda x, w: (functional.conv2d(x, w, padding=1, stride=2), functional.conv2d(x, w, padding="SAME")), [X4, w]
    yield "depthwise", lambda x, w: functional.conv2d(x, w, padding=1, groups=4), [X4, normal(4, 1, 3, 3)]
    yield "conv3d", lambda x, w: functional.conv3d(x, w, padding=1), [X5, normal(3, 2, 2, 2, 2)]
    yield "transposed", lambda x, w: (functional.conv2d_transpose(x, w, stride=2, padding=1), functional.conv2d_transpose(x, w, stride=2, output_size=[14, 18])), [X4, normal(4, 3, 3, 3)]
    for name in ["max", "avg"]:
        pool = getattr(functional, name + "_pool2d")
        yield name + "_pool2d", lambda x, pool=pool: (pool(x, 3, 2, 1), pool(x, 2, 2, ceil_mode=True)), [X4]
        adaptive = getattr(functional, f"adaptive_{name}_pool2d")
        yield name + "_adaptive", lambda x, pool=adaptive: (pool(x, 1), pool(x, [3, 4]), pool(x, [4, 3])), [X4]
        yield name + "_pool3d", lambda x, pool=getattr(functional, name + "_pool3d"): pool(x, 2, 2), [X5]
    yield "pool-places", lambda x: functional.max_pool2d(x, 2, 2, return_mask=True), [X4]
    for mode, x in {"linear": X3, "bilinear": X4, "trilinear": X5, "nearest": X4, "bicubic": X4}.items():
        for corners in [False] if mode == "nearest" else [False, True]:
            layout = {3: "NCW", 4: "NCHW", 5: "NCDHW"}[x.ndim]
            how = {"mode": mode, "align_corners": corners, "data_format": layout}
            grown = lambda x, how=how: (functional.interpolate(x, scale_factor=[2.0] * (x.ndim - 2), **how), functional.interpolate(x, size=[5, 9, 7][: x.ndim - 2], **how))
            yield f"{mode}-{corners}", grown, [x]
    yield "grid_sample", lambda x, g: functional.grid_sample(x, g), [X4, normal(2, 5, 4, 2)]
    yield "affine_grid", lambda t: functional.affine_grid(t, [2, 3, 4, 5]), [normal(2, 2, 3)]
    yield "unfold", lambda x: functional.unfold(x, [2, 3], 2, 1), [X4]
    yield "deform", lambda x, o, w, m: paddle.vision.ops.deform_conv2d(x, o, w, padding=1, mask=m), [X4, normal(2, 18, 6, 8), w, positive(2, 9, 6, 8)]
    yield "batch_norm", lambda x, m, v, s, b: functional.batch_norm(x, m, v, s, b), [X4, normal(4), positive(4), positive(4), normal(4)]
    yield "layer_norm", lambda x, s, b: functional.layer_norm(x, [3, 4], s, b), [X3, positive(12), normal(12)]
    yield "other-norms", lambda x, s, b: (functional.instance_norm(x, weight=s, bias=b), functional.group_norm(x, 2, weight=s, bias=b), functional.normalize(x, axis=1)), [X4, positive(4), normal(4)]
    yield "local-norm", lambda x: functional.local_response_norm(x, 3), [X4]


def algebra():
    """Linear algebra, diagonals, counts, and what is rare in inference."""
    square, spd = normal(3, 3) + 4 * paddle.eye(3).numpy(), normal(3, 3)
    spd = spd @ spd.T + 2 * paddle.eye(3).numpy()
    linalg = paddle.linalg
    yield "matrices", lambda x, y: (linalg.det(x), linalg.slogdet(x), paddle.inverse(x), linalg.matrix_power(x, 2), linalg.multi_dot([x, y, x])), [square, normal(3, 3)]
    yield "solutions", lambda x, y: (linalg.cholesky(x), linalg.solve(x, y), linalg.triangular_solve(x, y, upper=False, transpose=True)), [spd, normal(3, 2)]
    yield "structured", lambda x, y: (paddle.kron(x, y), paddle.cross(x, y, axis=1), paddle.dist(x, y, 1.0)), [normal(4, 3), normal(4, 3)]
    yield "bilinear", lambda x, y, w, b: functional.bilinear(x, y, w, b), [X2, normal(4, 5), normal(3, 6, 5), normal(1, 3)]
    yield "diagonals", lambda x, v: (paddle.diag(x, 1), paddle.diag(v, -1, 0.5), paddle.diagonal(x), paddle.diag_embed(x), paddle.trace(x)), [X2, normal(5)]
    yield "triangles", lambda x: (x + 1, paddle.tril_indices(3, 4, 1), paddle.triu_indices(4, 3, -1), paddle.logspace(0, 2, 5)), [X2]
    yield "counts", lambda i, w, x: (paddle.bincount(i, w, 9), paddle.histogram(x, 5, -1, 1), *paddle.unique_consecutive(i, True, True)), [whole(0, 6, 12), positive(12), X2]
    yield "ranks", lambda x: (paddle.kthvalue(x, 2, 1), paddle.median(x, 1), paddle.median(x, 2, True, "min"), paddle.cumprod(x, 1)), [X3]
    yield "search", lambda x, v: (paddle.searchsorted(x, v), paddle.searchsorted(x, v, right=True)), [one(*range(0, 12, 2), dtype="float32"), whole(0, 9, 4, 3).astype("float32")]
    yield "index_add", lambda x, i, v: paddle.index_add(x, i, 1, v), [X3, one(2, 0), normal(2, 2, 4)]
    yield "index_put", lambda x, i, j, v: (paddle.index_put(x, (i, j), v, True), paddle.index_put(x, (x > 0,), paddle.to_tensor([0.5]))), [X2, one(1, 3), one(2, 0), normal(2)]
    yield "written", written, [X2 + 0, one(2, 0), truths(4, 6)]
    yield "masked_fill", lambda x, m: paddle.masked_fill(x, m, 2.0), [X2, truths(4, 6)]
    yield "gated", lambda x, y: (paddle.incubate.nn.functional.swiglu(x), paddle.incubate.nn.functional.swiglu(x, y)), [X2, OTHER]
    yield "probabilities", lambda x: (paddle.logit(x), functional.label_smooth(x), functional.rrelu(x, training=False)), [OTHER / 3]
    yield "comparisons", lambda x, y: (paddle.isclose(x, y, 0.5, 0.1), paddle.allclose(x, y, 99.0, 9.0), paddle.heaviside(x, y), paddle.nextafter(x, y)), [X2, OTHER]
    yield "shifts", lambda x, y: (paddle.bitwise_left_shift(x, y), paddle.bitwise_right_shift(-x, y)), [FEW, whole(0, 3, 4, 6)]
    yield "columns", lambda x: functional.fold(x, [4, 5], [2, 2]), [normal(2, 12, 12)]
    yield "frames", lambda x: functional.temporal_shift(x, 3, 0.25), [normal(6, 8, 3, 2)]
    yield "unpooled", lambda x: functional.max_unpool2d(*functional.max_pool2d(x, 2, 2, return_mask=True), 2, 2), [X4]
    yield "repeated", lambda x, y: paddle.broadcast_tensors([x, y]), [normal(4, 1), normal(6)]
    rms = paddle.incubate.nn.functional.fused_rms_norm
    # On a processor with AVX2 and nothing more, Paddle's kernel stops the process: an illegal instruction in RmsNormAvxKernel.
    yield "rms_norm", lambda x, w: rms(x, w, None, 1e-6, 2)[0], [X3, positive(4)], rms_norm


def rms_norm(x, weight):
    mean = numpy.mean(numpy.square(x, dtype=numpy.float64), -1, keepdims=True)
    return [(x / numpy.sqrt(mean + 1e-6) * weight).astype(numpy.float32)]


def written(x, index, mask):
    """Assignment to what indices and masks select."""
    y = x + 1
    x[index] = 3.0
    y[mask] = -1.0
    return x, y, x[index], y[mask]


GROUPS = [functions, pairs, reductions, movement, spatial, algebra]
