"""Recurrent networks: a tagger of words, and a transducer of speech."""

import numpy

from graph import BATCH, LARGE_BATCH, GraphBuilder
from layers import axis_size, conv, linear, shape_of


def lstm(g, x, inputs, hidden, directions=1):
    """A layer over `x` of steps, batch and channels, as PyTorch exports it: initial states are zeros in the size of the batch."""
    bound = hidden**-0.5
    weights = g.weight(g.uniform((directions, 4 * hidden, inputs), bound))
    recurrence = g.weight(g.uniform((directions, 4 * hidden, hidden), bound))
    offsets = g.weight(g.uniform((directions, 8 * hidden), bound))
    states = shape_of(g, directions, axis_size(g, x, 1), hidden)
    states = [g.op("Expand", g.constant(numpy.zeros((1, 1, 1), numpy.float32)), states) for _ in range(2)]
    direction = "bidirectional" if directions == 2 else "forward"
    names = [g.fresh("lstm"), g.fresh("state"), g.fresh("cell")]
    operands = [x, weights, recurrence, offsets, "", *states]
    y = g.node("LSTM", operands, names, hidden_size=hidden, direction=direction)[0]
    if directions == 1:
        return g.op("Squeeze", y, g.integers(1))
    return g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1, 3]), g.integers(0, 0, -1))


def tagger(words=20000, width=128, hidden=256, tags=32, length=100):
    """Two bidirectional layers over embeddings, and the probability of each tag for each word."""
    g = GraphBuilder("lstm", 12)
    ids = g.batched("tokens", g.generator.integers(0, words, (LARGE_BATCH, length)), symbols={1: "sequence"})
    x = g.op("Gather", g.weight(g.normal((words, width), 1)), ids, axis=0)
    x = g.op("Transpose", x, perm=[1, 0, 2])
    x = lstm(g, x, width, hidden, 2)
    x = lstm(g, x, 2 * hidden, hidden, 2)
    x = g.op("Transpose", x, perm=[1, 0, 2])
    g.op("LogSoftmax", linear(g, x, 2 * hidden, tags, 0.1), axis=-1, out="tags")
    g.output("tags", [BATCH, "sequence", tags])
    return g


def transducer(mels=80, width=512, layers=4, words=500, frames=200, labels=8):
    """Encoder, predictor and joiner in one file: a score of each word for each frame after each label."""
    g = GraphBuilder("transducer", 80)
    x = g.batched("features", g.normal((LARGE_BATCH, frames, mels), 1), symbols={1: "frames"})
    ids = g.batched("labels", g.generator.integers(0, words, (LARGE_BATCH, labels)), symbols={1: "labels"})
    # A quarter of the frames.
    x = g.op("Unsqueeze", x, g.integers(1))
    x = g.op("Relu", conv(g, x, 1, 64, 3, 2, 1))
    x = g.op("Relu", conv(g, x, 64, 64, 3, 2, 1))
    x = g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1, 3]), g.integers(0, 0, 64 * mels // 4))
    x = linear(g, x, 64 * mels // 4, width, 0.03)
    x = g.op("Transpose", x, perm=[1, 0, 2])
    for _ in range(layers):
        x = lstm(g, x, width, width)
    x = linear(g, g.op("Transpose", x, perm=[1, 0, 2]), width, width, 0.1)
    y = g.op("Gather", g.weight(g.normal((words, width), 1)), ids, axis=0)
    y = lstm(g, g.op("Transpose", y, perm=[1, 0, 2]), width, width)
    y = linear(g, g.op("Transpose", y, perm=[1, 0, 2]), width, width, 0.1)
    both = g.op("Add", g.op("Unsqueeze", x, g.integers(2)), g.op("Unsqueeze", y, g.integers(1)))
    scores = linear(g, g.op("Tanh", both), width, words, 0.1)
    g.op("LogSoftmax", scores, axis=-1, out="scores")
    g.output("scores", [BATCH, None, "labels", words])
    return g
