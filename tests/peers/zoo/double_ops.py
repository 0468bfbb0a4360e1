"""Ops that onnx's reference evaluator lacks, in the precision of their operands."""

import numpy
from onnx.reference.op_run import OpRun


def along(values, array, axis):
    """Reshapes values of an axis, so that they broadcast to an array."""
    values = numpy.asarray(values)
    if values.ndim == 0 or values.size == 1:
        return values.reshape(())
    return values.reshape([-1 if index == axis % array.ndim else 1 for index in range(array.ndim)])


class DequantizeLinear(OpRun):
    """As since opset 10; the evaluator has it since 19."""

    op_domain = ""

    def _run(self, x, scale, zero=None, axis=1, **_):
        shift = 0 if zero is None else along(zero, x, axis).astype(numpy.float64)
        return ((x.astype(numpy.float64) - shift) * along(scale, x, axis),)


class DynamicQuantizeLinear(OpRun):
    """Keeps its scale in f64."""

    op_domain = ""

    def _run(self, x):
        low, high = min(0.0, float(x.min())), max(0.0, float(x.max()))
        scale = (high - low) / 255 or 1.0
        zero = numpy.clip(numpy.rint(-low / scale), 0, 255)
        y = numpy.clip(numpy.rint(x / scale) + zero, 0, 255).astype(numpy.uint8)
        return y, numpy.array(scale, x.dtype), numpy.array(zero, numpy.uint8)


class DynamicQuantizeLSTM(OpRun):
    """With quantized weights, but without rounding of inputs and states, which depends on how the work is split."""

    op_domain = "com.microsoft"

    def _run(
        self, x, w, r, b=None, lengths=None, h=None, c=None, p=None, w_scale=None, w_zero=None, r_scale=None, r_zero=None,
        direction="forward", hidden_size=None, **_
    ):  # fmt: skip
        if (isinstance(lengths, numpy.ndarray) and (lengths != len(x)).any()) or (p is not None and p.size and numpy.any(p)):
            raise NotImplementedError("expected an LSTM without lengths and peepholes")
        found = []
        for index in range(len(w)):
            weights = dequantized(w[index], w_scale[index], w_zero[index])
            recurrence = dequantized(r[index], r_scale[index], r_zero[index])
            size = recurrence.shape[0]
            bias = b[index][: 4 * size] + b[index][4 * size :] if b is not None else 0.0
            state = h[index] if h is not None else numpy.zeros((x.shape[1], size))
            cell = c[index] if c is not None else numpy.zeros((x.shape[1], size))
            backward = direction == "reverse" or index == 1
            states = []
            for step in x[::-1] if backward else x:
                gate_i, gate_o, gate_f, gate_c = numpy.split(step @ weights + state @ recurrence + bias, 4, axis=-1)
                cell = sigmoid(gate_f) * cell + sigmoid(gate_i) * numpy.tanh(gate_c)
                state = sigmoid(gate_o) * numpy.tanh(cell)
                states.append(state)
            found.append((numpy.stack(states[::-1] if backward else states), state, cell))
        y, last, cells = (numpy.stack(it, axis=axis) for it, axis in zip(zip(*found), (1, 0, 0)))
        return y, last, cells


def dequantized(weights, scale, zero):
    return (weights.astype(numpy.float64) - zero) * scale


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


OPS = [DequantizeLinear, DynamicQuantizeLinear, DynamicQuantizeLSTM]
