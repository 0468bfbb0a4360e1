"""Transformers over tokens."""

import numpy
from onnx import TensorProto, helper

from graph import BATCH, LARGE_BATCH, GraphBuilder
from layers import axis_size, gelu_erf, gelu_tanh, layer_norm, linear, shape_of


def bert_base(layers=12, width=768, heads=12, hidden=3072, tokens=128, words=30522):
    g = GraphBuilder("bert_base", 110)
    size = width // heads
    ids = g.input("input_ids", g.generator.integers(0, words, (1, tokens)).astype(numpy.int64))
    mask = numpy.concatenate([numpy.ones((1, tokens - 8), numpy.int64), numpy.zeros((1, 8), numpy.int64)], axis=1)
    mask = g.input("attention_mask", mask)
    kinds = g.input("token_type_ids", (numpy.arange(tokens)[None] >= tokens // 2).astype(numpy.int64))
    x = g.op("Gather", g.weight(g.normal((words, width), 0.02)), ids, axis=0)
    x = g.op("Add", x, g.op("Gather", g.weight(g.normal((2, width), 0.02)), kinds, axis=0))
    x = g.op("Add", x, g.weight(g.normal((1, tokens, width), 0.02)))
    x = layer_norm(g, x, width, 1e-12)
    hidden_keys = g.op("Cast", g.op("Unsqueeze", mask, g.integers(1, 2)), to=TensorProto.FLOAT)
    hidden_keys = g.op("Mul", g.op("Sub", g.scalar(1.0), hidden_keys), g.scalar(-10000.0))
    parted = g.integers(1, tokens, heads, size)
    for _ in range(layers):
        q, k, v = (g.op("Reshape", linear(g, x, width, width, 0.04), parted) for _ in range(3))
        q = g.op("Transpose", q, perm=[0, 2, 1, 3])
        k = g.op("Transpose", k, perm=[0, 2, 3, 1])
        v = g.op("Transpose", v, perm=[0, 2, 1, 3])
        scores = g.op("Div", g.op("MatMul", q, k), g.scalar(numpy.sqrt(size)))
        scores = g.op("Softmax", g.op("Add", scores, hidden_keys), axis=-1)
        y = g.op("Transpose", g.op("MatMul", scores, v), perm=[0, 2, 1, 3])
        y = g.op("Reshape", y, g.integers(1, tokens, width))
        x = layer_norm(g, g.op("Add", linear(g, y, width, width), x), width, 1e-12)
        y = linear(g, gelu_erf(g, linear(g, x, width, hidden)), hidden, width)
        x = layer_norm(g, g.op("Add", y, x), width, 1e-12)
    g.op("Identity", x, out="last_hidden_state")
    g.output("last_hidden_state", [1, tokens, width])
    first = g.op("Gather", x, g.index(0), axis=1)
    weights, offsets = g.weight(g.normal((width, width), 0.02)), g.weight(g.normal((width,), 0.02))
    g.op("Tanh", g.op("Gemm", first, weights, offsets, transB=1), out="pooler_output")
    g.output("pooler_output", [1, width])
    return g


def gpt2_step(layers=12, width=768, heads=12, past=128, words=50257, places=1024):
    """One token after `past` others."""
    g = GraphBuilder("gpt2_step", 117)
    size = width // heads
    ids = g.input("input_ids", g.generator.integers(0, words, (1, 1)).astype(numpy.int64))
    place = g.input("position_ids", numpy.array([[past]], numpy.int64))
    cache = [
        [g.input(f"past_{layer}_{kind}", g.normal((1, heads, past, size), 1)) for kind in ("key", "value")]
        for layer in range(layers)
    ]
    embedding = g.weight(g.normal((words, width), 0.02), "wte")
    x = g.op("Gather", embedding, ids, axis=0)
    x = g.op("Add", x, g.op("Gather", g.weight(g.normal((places, width), 0.01)), place, axis=0))
    parted = g.integers(1, 1, heads, size)
    for layer in range(layers):
        y = linear(g, layer_norm(g, x, width, 1e-5), width, 3 * width)
        parts = g.op("Split", y, g.integers(width, width, width), outputs=3, axis=2)
        q, k, v = (g.op("Transpose", g.op("Reshape", part, parted), perm=[0, 2, 1, 3]) for part in parts)
        k = g.op("Concat", cache[layer][0], k, axis=2, out=f"present_{layer}_key")
        v = g.op("Concat", cache[layer][1], v, axis=2, out=f"present_{layer}_value")
        transposed = g.op("Transpose", k, perm=[0, 1, 3, 2])
        scores = g.op("Div", g.op("MatMul", q, transposed), g.scalar(numpy.sqrt(size)))
        scores = g.op("Softmax", scores, axis=-1)
        y = g.op("Transpose", g.op("MatMul", scores, v), perm=[0, 2, 1, 3])
        y = g.op("Reshape", y, g.integers(1, 1, width))
        x = g.op("Add", x, linear(g, y, width, width, 0.01))
        y = layer_norm(g, x, width, 1e-5)
        x = g.op("Add", x, linear(g, gelu_tanh(g, linear(g, y, width, 4 * width)), 4 * width, width, 0.01))
        for kind in ("key", "value"):
            g.output(f"present_{layer}_{kind}", [1, heads, past + 1, size])
    x = g.op("Reshape", layer_norm(g, x, width, 1e-5), g.integers(1, width))
    g.op("Gemm", x, embedding, transB=1, out="logits")
    g.outputs.insert(0, helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, words]))
    return g


def embedding(layers=6, width=384, heads=12, hidden=1536, tokens=128, words=30522):
    """Embeddings of sentences after MiniLM-L6: a BERT, the mean over its tokens, and vectors of length 1."""
    g = GraphBuilder("embedding", 6)
    size, dynamic = width // heads, {1: "sequence"}
    ids = g.batched("input_ids", g.generator.integers(0, words, (LARGE_BATCH, tokens)), symbols=dynamic)
    lengths = tokens - 8 * numpy.arange(1, LARGE_BATCH + 1)
    kept = (numpy.arange(tokens)[None] < lengths[:, None]).astype(numpy.int64)
    mask = g.batched("attention_mask", kept, symbols=dynamic)
    kinds = g.batched("token_type_ids", numpy.zeros_like(kept), symbols=dynamic)
    count = g.op("Unsqueeze", axis_size(g, ids, 1), g.integers(0))
    places = g.weight(numpy.arange(512, dtype=numpy.int64)[None], "position_ids")
    places = g.op("Slice", places, g.integers(0), count, g.integers(1))
    x = g.op("Gather", g.weight(g.normal((words, width), 0.05)), ids, axis=0)
    x = g.op("Add", x, g.op("Gather", g.weight(g.normal((2, width), 0.02)), kinds, axis=0))
    x = g.op("Add", x, g.op("Gather", g.weight(g.normal((512, width), 0.02)), places, axis=0))
    x = layer_norm(g, x, width, 1e-12)
    unseen = g.op("Cast", g.op("Unsqueeze", mask, g.integers(1, 2)), to=TensorProto.FLOAT)
    unseen = g.op("Mul", g.op("Sub", g.scalar(1.0), unseen), g.scalar(numpy.finfo(numpy.float32).min))

    def parted(y, order):
        """Heads apart, in a shape that depends on the input."""
        shape = shape_of(g, axis_size(g, y, 0), axis_size(g, y, 1), heads, size)
        return g.op("Transpose", g.op("Reshape", y, shape), perm=order)

    for _ in range(layers):
        q = parted(linear(g, x, width, width, 0.05), [0, 2, 1, 3])
        k = parted(linear(g, x, width, width, 0.05), [0, 2, 3, 1])
        v = parted(linear(g, x, width, width, 0.05), [0, 2, 1, 3])
        scores = g.op("Div", g.op("MatMul", q, k), g.scalar(numpy.sqrt(size)))
        scores = g.op("Softmax", g.op("Add", scores, unseen), axis=-1)
        y = g.op("Transpose", g.op("MatMul", scores, v), perm=[0, 2, 1, 3])
        y = g.op("Reshape", y, shape_of(g, axis_size(g, y, 0), axis_size(g, y, 1), width))
        x = layer_norm(g, g.op("Add", linear(g, y, width, width, 0.03), x), width, 1e-12)
        y = linear(g, gelu_erf(g, linear(g, x, width, hidden, 0.03)), hidden, width, 0.03)
        x = layer_norm(g, g.op("Add", y, x), width, 1e-12)
    weights = g.op("Expand", g.op("Unsqueeze", mask, g.integers(-1)), g.op("Shape", x))
    weights = g.op("Cast", weights, to=TensorProto.FLOAT)
    total = g.op("ReduceSum", g.op("Mul", x, weights), g.integers(1), keepdims=0)
    seen = g.op("Clip", g.op("ReduceSum", weights, g.integers(1), keepdims=0), g.scalar(1e-9), "")
    mean = g.op("Div", total, seen)
    length = g.op("Clip", g.op("ReduceL2", mean, axes=[1], keepdims=1), g.scalar(1e-12), "")
    g.op("Div", mean, g.op("Expand", length, g.op("Shape", mean)), out="sentence_embedding")
    g.output("sentence_embedding", [BATCH, width])
    return g
