"""Recurrent networks, step by step as in the schemas."""

import numpy
from numpy_views import View, values


def sigmoid(x):
    """The logistic function."""
    return 1 / (1 + numpy.exp(-x))


FUNCTIONS = {
    "Sigmoid": lambda x, a, b: sigmoid(x),
    "Tanh": lambda x, a, b: numpy.tanh(x),
    "Relu": lambda x, a, b: numpy.maximum(x, 0),
    "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: numpy.where(x < 0, a * x, x),
    "ThresholdedRelu": lambda x, a, b: numpy.where(x < a, 0, x),
    "ScaledTanh": lambda x, a, b: a * numpy.tanh(b * x),
    "HardSigmoid": lambda x, a, b: numpy.clip(a * x + b, 0, 1),
    "Elu": lambda x, a, b: numpy.where(x < 0, a * numpy.expm1(x), x),
    "Softsign": lambda x, a, b: x / (1 + numpy.abs(x)),
    "Softplus": lambda x, a, b: numpy.log1p(numpy.exp(x)),
}
# The number of values from `activation_alpha` and `activation_beta` that a function uses.
TAKES = {"Affine": (1, 1), "ScaledTanh": (1, 1), "HardSigmoid": (1, 1), "LeakyRelu": (1, 0), "ThresholdedRelu": (1, 0), "Elu": (1, 0)}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}

# Steps, sequences, features and hidden elements; attributes; omitted operands.
CASES = [
    ("RNN", (5, 3, 4, 2), {"direction": "bidirectional"}, ""),
    ("RNN", (7, 1, 3, 5), {"activations": ["LeakyRelu"], "activation_alpha": [0.3], "clip": 0.2}, "sequence_lens"),
    ("RNN", (4, 2, 3, 3), {"activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.1], "layout": 1}, "B"),
    ("RNN", (3, 2, 3, 3), {"activations": ["Softplus"], "direction": "reverse", "layout": 1}, "initial_h"),
    ("GRU", (5, 3, 4, 2), {"direction": "bidirectional", "linear_before_reset": 1}, ""),
    ("GRU", (6, 2, 3, 7), {"direction": "reverse", "clip": 0.3}, ""),
    ("GRU", (6, 2, 3, 7), {"linear_before_reset": 1, "layout": 1}, "B"),
    ("GRU", (4, 3, 5, 3), {"activations": ["HardSigmoid", "Softsign"], "activation_alpha": [0.3], "activation_beta": [0.4]}, ""),
    ("GRU", (300, 2, 3, 70), {"direction": "bidirectional"}, "sequence_lens"),
    ("LSTM", (5, 3, 4, 2), {"direction": "bidirectional"}, ""),
    ("LSTM", (5, 3, 4, 2), {"direction": "bidirectional", "layout": 1, "input_forget": 1}, "P"),
    ("LSTM", (6, 2, 3, 7), {"direction": "reverse", "clip": 0.3}, "initial_c"),
    ("LSTM", (4, 2, 3, 3), {"activations": ["Elu", "ScaledTanh", "ThresholdedRelu"], "activation_alpha": [0.7, 1.2, 0.1], "activation_beta": [0.8]}, ""),
    ("LSTM", (300, 3, 5, 33), {"direction": "bidirectional"}, "P"),
    ("LSTM", (9, 1, 17, 300), {}, "sequence_lens P initial_h initial_c"),
    ("LSTM", (0, 2, 3, 4), {}, "sequence_lens"),
]


def functions(op, attributes, directions):
    """The activation functions of each direction, with their parameters."""
    names = attributes.get("activations", DEFAULTS[op])
    made = []
    for _ in range(directions):
        alphas, betas = list(attributes.get("activation_alpha", [])), list(attributes.get("activation_beta", []))
        own = []
        for name in names:
            takes = TAKES.get(name, (0, 0))
            a, b = alphas.pop(0) if takes[0] else 0, betas.pop(0) if takes[1] else 0
            own.append(lambda x, name=name, a=a, b=b: FUNCTIONS[name](x, a, b))
        made.append(own)
    return made


def step(op, attributes, own, x, state, cells, w, r, bias, peepholes):
    """The hidden state and the cell state after a step."""
    hidden = r.shape[1]
    of_input, of_state = numpy.split(bias, 2)
    bound = attributes.get("clip", numpy.inf)
    put = lambda function, value: function(numpy.clip(value, -bound, bound))  # noqa: E731
    gates = x @ w.T + of_input
    if op == "RNN":
        return put(own[0], gates + state @ r.T + of_state), cells
    if op == "GRU":
        z, s, n = numpy.split(gates, 3, axis=1)
        rz, rs, rn = numpy.split(r, 3)
        bz, bs, bn = numpy.split(of_state, 3)
        update, reset = put(own[0], z + state @ rz.T + bz), put(own[0], s + state @ rs.T + bs)
        after = attributes.get("linear_before_reset", 0)
        new = put(own[1], n + (reset * (state @ rn.T + bn) if after else (reset * state) @ rn.T + bn))
        return (1 - update) * new + update * state, cells
    fill, out, clear, new = numpy.split(gates + state @ r.T + of_state, 4, axis=1)
    to_fill, to_out, to_clear = peepholes.reshape(3, hidden)
    fill = put(own[0], fill + to_fill * cells)
    clear = 1 - fill if attributes.get("input_forget", 0) else put(own[0], clear + to_clear * cells)
    cells = clear * cells + fill * put(own[1], new)
    return put(own[0], out + to_out * cells) * own[2](cells), cells


def run(op, attributes, x, w, r, bias, lengths, state, cells, peepholes):
    """Runs all steps; the batch is the second dimension."""
    steps, batches, _ = x.shape
    directions, _, hidden = r.shape
    every = numpy.zeros((steps, directions, batches, hidden))
    state, cells = state.copy(), cells.copy()
    own = functions(op, attributes, directions)
    for at in range(directions):
        backwards = attributes.get("direction") == "reverse" or at == 1
        for time in reversed(range(steps)) if backwards else range(steps):
            on = (time < lengths)[:, None]
            made = step(op, attributes, own[at], x[time], state[at], cells[at], w[at], r[at], bias[at], peepholes[at])
            state[at], cells[at] = numpy.where(on, made[0], state[at]), numpy.where(on, made[1], cells[at])
            every[time, at] = numpy.where(on, made[0], 0)
    return every, state, cells


def write_recurrent(writer):
    """Writes all cases."""
    for turn, (op, (steps, batches, features, hidden), attributes, without) in enumerate(CASES):
        for dtype in (numpy.float32, numpy.float64, numpy.float16):

            def build(rng, op=op, attributes=attributes, without=without, sizes=(steps, batches, features, hidden), dtype=dtype):
                steps, batches, features, hidden = sizes
                directions = 2 if attributes.get("direction") == "bidirectional" else 1
                rows, size = GATES[op] * hidden, hidden**-0.5
                make = lambda *shape: values(rng, shape, dtype, -size, size)  # noqa: E731
                states = (directions, batches, hidden)
                given = {
                    "X": values(rng, (steps, batches, features), dtype, -2, 2),
                    "W": make(directions, rows, features),
                    "R": make(directions, rows, hidden),
                    "B": make(directions, 2 * rows),
                    "sequence_lens": rng.integers(0, steps, batches, endpoint=True).astype(numpy.int32),
                    "initial_h": make(*states),
                }
                if op == "LSTM":
                    given |= {"initial_c": make(*states), "P": make(directions, 3 * hidden)}
                absent = {
                    "B": numpy.zeros((directions, 2 * rows)),
                    "sequence_lens": numpy.full(batches, steps),
                    "initial_h": numpy.zeros(states),
                    "initial_c": numpy.zeros(states),
                    "P": numpy.zeros((directions, 3 * hidden)),
                }
                given = {name: None if name in without.split() else value for name, value in given.items()}
                known = {name: absent[name] if given.get(name) is None else given[name] for name in absent}
                wide = lambda value: value.astype(numpy.float64)  # noqa: E731
                x, w, r = (wide(given[name]) for name in "XWR")
                answers = run(op, attributes, x, w, r, wide(known["B"]), known["sequence_lens"], wide(known["initial_h"]), wide(known["initial_c"]), wide(known["P"]))
                if attributes.get("layout"):
                    turned = {"X": (1, 0, 2), "initial_h": (1, 0, 2), "initial_c": (1, 0, 2)}
                    for name, order in turned.items():
                        if given.get(name) is not None:
                            given[name] = numpy.ascontiguousarray(given[name].transpose(order))
                    answers = [answers[0].transpose(2, 0, 1, 3), *(state.transpose(1, 0, 2) for state in answers[1:])]
                answers = [answer.astype(dtype) for answer in answers[: 3 if op == "LSTM" else 2]]
                inputs = [value if value is None else View(value) for value in given.values()]
                return inputs, answers, {"hidden_size": hidden, **attributes}

            writer.case(op, f"{turn}_{numpy.dtype(dtype).name}", build, atol=2e-3 if dtype == numpy.float16 else 1e-5)
