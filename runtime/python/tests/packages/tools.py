"""Packages that compute with models that they make themselves. Each function says what one of them computes."""

import os
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import parser
from samples import scene


def audonnx():
    """Models that say what they take and give."""
    from audonnx import Model

    model = parser.parse_model('''<ir_version: 8, opset_import: ["": 17]>
        net (float[1, "time"] signal, float[3] age) => (float["parts", 4] spectrum, float[3] gender)
        <int64[2] form = {-1, 4}, int64[1] axes = {1}> {
            mono = Unsqueeze(signal, axes)
            parts = Conv<strides = [4]>(mono, filters)
            turned = Transpose<perm = [0, 2, 1]>(parts)
            spectrum = Reshape(turned, form)
            gender = Softmax(age)
        }''')
    filters = np.random.default_rng(3).normal(size=(4, 1, 8)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(filters, "filters"))
    judge = Model(model, labels={"gender": ["child", "female", "male"]}, transform={"age": lambda signal, _: signal[0, :3]})
    heard = np.sin(np.arange(160, dtype=np.float32))[None]
    return [judge(heard, 16000), judge(heard, 16000, outputs="gender"), str(judge).split("transform")[0]]


def ndonnx():
    """Arrays whose functions run as they are called, which spox has onnxruntime do."""
    import ndonnx

    x = ndonnx.asarray(np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6))
    dates = ndonnx.asarray(np.array(["2024-02-28", "2024-03-01", "NaT"], "datetime64[s]"))
    words = ndonnx.asarray(np.array(["oar", "lock", ""]))
    values = [
        *[function(x) for function in (ndonnx.exp, ndonnx.tanh, ndonnx.abs, ndonnx.sign, ndonnx.floor, ndonnx.isnan, ndonnx.round)],
        *[function(x, axis=1) for function in (ndonnx.sum, ndonnx.argmax, ndonnx.sort, ndonnx.argsort, ndonnx.std, ndonnx.prod)],
        ndonnx.cumulative_sum(x, axis=0), x @ x.T, ndonnx.where(x > 0, x, -x), x[1:, ::2], x[x > 1],
        ndonnx.unique_values(ndonnx.astype(x, ndonnx.int64)), ndonnx.asarray([7, -7]) % 3, ndonnx.asarray([7, -7]) // 2,
        ndonnx.nonzero(x > 0)[0], ndonnx.searchsorted(x[0, :], x[0, 2:4]), ndonnx.matrix_transpose(x), ndonnx.tril(x),
        words + words, words == "oar", ndonnx.concat([x, x], axis=1), ndonnx.roll(x, 2, axis=1),
        ndonnx.take(x, ndonnx.asarray([2, 0]), axis=0),
    ]  # fmt: skip
    return [*[value.unwrap_numpy() for value in values], str((dates[1:] - dates[:-1]).unwrap_numpy())]


def onnxscript():
    """Ops that run as they are called."""
    from onnxscript import evaluator, tensor
    from onnxscript import opset18 as op

    x = tensor.Tensor(np.linspace(-3, 3, 7, dtype=np.float32))
    order, start = (tensor.Tensor(np.array(value)) for value in ([6, 0, 3], 0))
    with evaluator.default_as(evaluator.ORTEvaluator()):
        top, places = op.TopK(x, tensor.Tensor(np.array([2])))
        made = [top, places, op.CumSum(op.Gather(x, order), start), op.LayerNormalization(x, x)[0]]
        made += [op.Max(x, op.Exp(-op.Abs(x))), op.Cast(x, to=7), x * x - 2.0 * x]
    return [each.value for each in made]


def onnxslim():
    """Folds constants, and compares the model with what it was."""
    from onnxslim import slim

    model = parser.parse_model('''<ir_version: 8, opset_import: ["": 17]>
        net (float[2, "n"] x) => (float[2, "m"] y)
        <float[2] a = {1, 2}, float[2] b = {3, 5}, int64[1] axes = {1}> {
            sum = Add(a, b)
            column = Unsqueeze(sum, axes)
            same = Identity(x)
            scaled = Mul(same, column)
            y = Relu(scaled)
        }''')
    slimmer = slim(model, model_check=True, model_check_inputs=["x:2,3"])
    return [[node.op_type for node in slimmer.graph.node], [onnx.numpy_helper.to_array(each) for each in slimmer.graph.initializer]]


def onnxconverter_common():
    """Finds by runs that all nodes may compute in 16 bits."""
    from onnxconverter_common import auto_mixed_precision

    model = parser.parse_model('''<ir_version: 8, opset_import: ["": 17]>
        net (float["n", 4] x) => (float["n", 4] y)
        <float two = {2}> {
            halved = Div(x, two)
            large = Exp(halved)
            small = Log(large)
            y = Sqrt(small)
        }''')
    feeds = {"x": np.linspace(1, 8, 8, dtype=np.float32).reshape(2, 4)}
    mixed = auto_mixed_precision.auto_convert_mixed_precision(model, feeds, rtol=0.01, atol=0.01, keep_io_types=True)
    return [node.op_type for node in mixed.graph.node]


def rembg():
    """With a model that is made here, because it would download its own."""
    import rembg

    model = parser.parse_model('''<ir_version: 8, opset_import: ["": 17]>
        net (float[1, 3, 320, 320] image) => (float[1, 1, 320, 320] mask) <int64[1] axes = {1}> {
            bright = ReduceMax<axes = [1], keepdims = 1>(image)
            smooth = AveragePool<kernel_shape = [5, 5], pads = [2, 2, 2, 2]>(bright)
            mask = Sigmoid(smooth)
        }''')
    with tempfile.TemporaryDirectory() as directory:
        file = str(Path(directory) / "model.onnx")
        onnx.save(model, file)
        # It takes files from this folder alone.
        os.environ["U2NET_HOME"] = directory
        session = rembg.new_session("u2net_custom", model_path=file, providers=["CPUExecutionProvider"])
        return rembg.remove(scene()[::4, ::4], session=session, post_process_mask=True)
