"""A decode step of a large language model in four bits, as the model builder of onnxruntime-genai writes it for the CPU."""

import numpy
from onnx import TensorProto

from graph import BATCH, LARGE_BATCH, GraphBuilder
from layers import axis_size

MICROSOFT = "com.microsoft"
BLOCK = 32
# onnxruntime may round the other operand of a product to 8 bits. The builder writes this level for the CPU.
EIGHT_BIT_SUMS = 4
EPSILON = 1e-5


def in_four_bits(weights):
    """Rows of weights as bytes with two elements each, and the scale of each block. The zero point is 8."""
    rows, width = weights.shape
    blocks = weights.reshape(rows, width // BLOCK, BLOCK)
    # The element that is farthest from 0 becomes 0, which stands for -8.
    place = numpy.abs(blocks).argmax(axis=2, keepdims=True)
    scales = numpy.take_along_axis(blocks, place, axis=2) / numpy.float32(-8)
    whole = numpy.clip(numpy.rint(blocks / scales) + 8, 0, 15).astype(numpy.uint8)
    return whole[:, :, 0::2] | whole[:, :, 1::2] << 4, scales[:, :, 0]


def product(g, x, inputs, outputs, deviation=0.02, out=None):
    packed, scales = in_four_bits(g.normal((outputs, inputs), deviation))
    layout = {"K": inputs, "N": outputs, "bits": 4, "block_size": BLOCK, "accuracy_level": EIGHT_BIT_SUMS}
    return g.op("MatMulNBits", x, g.weight(packed), g.weight(scales), out=out, domain=MICROSOFT, **layout)


def angles(count, size):
    """Cosines and sines of the rotary embedding."""
    frequencies = 10000.0 ** (-numpy.arange(0, size, 2) / size)
    turns = numpy.arange(count)[:, None] * frequencies[None]
    return numpy.cos(turns).astype(numpy.float32), numpy.sin(turns).astype(numpy.float32)


def llm_step(width=1024, layers=12, heads=16, shared=4, hidden=2816, words=32000, past=128, places=2048):
    """One token after `past` others, with query heads that share `shared` heads of keys and values."""
    g = GraphBuilder("llm_step", 4)
    size = width // heads
    ids = g.batched("input_ids", g.generator.integers(0, words, (LARGE_BATCH, 1)), symbols={1: "sequence"})
    mask = g.batched("attention_mask", numpy.ones((LARGE_BATCH, past + 1), numpy.int64), symbols={1: "total"})
    cache = [
        [g.batched(f"past_key_values.{layer}.{kind}", g.normal((LARGE_BATCH, shared, past, size), 1), symbols={2: "past"})
         for kind in ("key", "value")]
        for layer in range(layers)
    ]  # fmt: skip
    lengths = g.op("Sub", g.op("ReduceSum", mask, g.integers(1), keepdims=1), g.integers(1))
    lengths = g.op("Cast", lengths, to=TensorProto.INT32)
    total = g.op("Cast", axis_size(g, mask, 1), to=TensorProto.INT32)
    cosines, sines = (g.weight(table) for table in angles(places, size))
    attention = {"num_heads": heads, "kv_num_heads": shared, "scale": size**-0.5, "do_rotary": 1, "rotary_interleaved": 0}
    scale = lambda: g.weight(1 + g.normal((width,), 0.02))
    residual = g.op("Gather", g.weight(g.normal((words, width), 1)), ids, axis=0)
    x = g.op("SimplifiedLayerNormalization", residual, scale(), axis=-1, epsilon=EPSILON, stash_type=1)

    def add_and_normalize(residual, y, is_last=False):
        names = [g.fresh("normalized"), "", "", g.fresh("sum")]
        names = names[:1] if is_last else names
        g.node("SkipSimplifiedLayerNormalization", [residual, y, scale()], names, MICROSOFT, epsilon=EPSILON)
        return names[0], names[-1]

    for layer in range(layers):
        packed = product(g, x, width, (heads + 2 * shared) * size, 0.03)
        operands = [packed, "", "", *cache[layer], lengths, total, cosines, sines]
        names = [g.fresh("attention"), f"present.{layer}.key", f"present.{layer}.value"]
        y = g.node("GroupQueryAttention", operands, names, MICROSOFT, **attention)[0]
        x, residual = add_and_normalize(residual, product(g, y, width, width))
        gate, up = product(g, x, width, hidden, 0.03), product(g, x, width, hidden, 0.03)
        y = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up)
        x, residual = add_and_normalize(residual, product(g, y, hidden, width), is_last=layer == layers - 1)
    product(g, x, width, words, 0.03, out="logits")
    g.output("logits", [BATCH, "sequence", words])
    for layer in range(layers):
        for kind in ("key", "value"):
            g.output(f"present.{layer}.{kind}", [BATCH, shared, "total", size])
    return g
