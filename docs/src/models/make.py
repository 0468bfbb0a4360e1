"""Makes the model of the examples, `digits.onnx`, and images to try it on: handwritten digits of 8 by 8 points.

    pip install scikit-learn==1.9.1 onnx==1.23.2
    python make.py

The images are those of scikit-learn's `load_digits`; every fifth one was left out of training, and the ten in `digits.npy` are
such ones. What is learnt is a small convolutional network, by plain gradient descent, so that a model of a few thousand
weights shows what larger ones consist of.
"""

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

rng = numpy.random.default_rng(7)
images, labels = load_digits(return_X_y=True)
images = (images / 16).reshape(-1, 1, 8, 8).astype(numpy.float32)
is_test = numpy.arange(len(images)) % 5 == 0


def patches(x):
    """Every 3 by 3 patch of images with a border of zeros, as rows."""
    padded = numpy.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    seen = numpy.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return seen.transpose(0, 2, 3, 1, 4, 5).reshape(len(x), 8, 8, -1)


def forward(x, w):
    """The network: a convolution, the largest of each 2 by 2 points, a dense layer and the scores."""
    rows = patches(x)
    conv = rows @ w["k"].reshape(len(w["k"]), -1).T + w["kb"]
    active = numpy.maximum(conv, 0)
    blocks = active.reshape(len(x), 4, 2, 4, 2, -1).transpose(0, 1, 3, 5, 2, 4).reshape(len(x), 4, 4, -1, 4)
    flat = blocks.max(-1).transpose(0, 3, 1, 2).reshape(len(x), -1)
    hidden = numpy.maximum(flat @ w["h"] + w["hb"], 0)
    return rows, conv, blocks, flat, hidden, hidden @ w["o"] + w["ob"]


def gradients(x, y, w):
    rows, conv, blocks, flat, hidden, scores = forward(x, w)
    shares = numpy.exp(scores - scores.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    shares[numpy.arange(len(y)), y] -= 1
    shares /= len(y)
    to_hidden = (shares @ w["o"].T) * (hidden > 0)
    to_flat = (to_hidden @ w["h"].T).reshape(len(x), -1, 4, 4).transpose(0, 2, 3, 1)
    best = blocks.argmax(-1)
    to_blocks = numpy.zeros_like(blocks)
    numpy.put_along_axis(to_blocks, best[..., None], to_flat[..., None], -1)
    to_conv = to_blocks.reshape(len(x), 4, 4, -1, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(conv.shape) * (conv > 0)
    kernel = numpy.einsum("nhwc,nhwp->cp", to_conv, rows).reshape(w["k"].shape)
    return {
        "k": kernel, "kb": to_conv.sum((0, 1, 2)), "h": flat.T @ to_hidden, "hb": to_hidden.sum(0),
        "o": hidden.T @ shares, "ob": shares.sum(0),
    }  # fmt: skip


def train():
    he = lambda *dims, fan: (rng.standard_normal(dims) * (2 / fan) ** 0.5).astype(numpy.float32)
    zeros = lambda count: numpy.zeros(count, numpy.float32)
    w = {"k": he(12, 1, 3, 3, fan=9), "kb": zeros(12), "h": he(192, 32, fan=192), "hb": zeros(32)}
    w |= {"o": he(32, 10, fan=32), "ob": zeros(10)}
    speed = {name: numpy.zeros_like(value) for name, value in w.items()}
    x, y = images[~is_test], labels[~is_test]
    for epoch in range(60):
        for part in numpy.array_split(rng.permutation(len(x)), len(x) // 32):
            for name, slope in gradients(x[part], y[part], w).items():
                speed[name] = 0.9 * speed[name] - 0.05 * 0.97**epoch * slope
                w[name] += speed[name].astype(numpy.float32)
    return w


def model(w):
    node = helper.make_node
    nodes = [
        node("Conv", ["image", "kernel", "kernel_bias"], ["conv"], pads=[1, 1, 1, 1]),
        node("Relu", ["conv"], ["active"]),
        node("MaxPool", ["active"], ["pooled"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", ["pooled"], ["flat"]),
        node("Gemm", ["flat", "hidden_weights", "hidden_bias"], ["dense"]),
        node("Relu", ["dense"], ["hidden"]),
        node("Gemm", ["hidden", "output_weights", "output_bias"], ["scores"]),
        node("Softmax", ["scores"], ["probabilities"], axis=1),
    ]
    names = ["kernel", "kernel_bias", "hidden_weights", "hidden_bias", "output_weights", "output_bias"]
    weights = [numpy_helper.from_array(value, name) for name, value in zip(names, w.values())]
    info = helper.make_tensor_value_info
    inputs = [info("image", TensorProto.FLOAT, ["batch", 1, 8, 8])]
    outputs = [info("probabilities", TensorProto.FLOAT, ["batch", 10])]
    graph = helper.make_graph(nodes, "digits", inputs, outputs, weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="make.py")
    onnx.checker.check_model(made, full_check=True)
    return made


if __name__ == "__main__":
    w = train()
    right = (forward(images[is_test], w)[-1].argmax(1) == labels[is_test]).mean()
    print(f"{right:.1%} of {is_test.sum()} images that it was not trained on are right")
    onnx.save(model(w), "digits.onnx")
    test = [numpy.flatnonzero(is_test & (labels == digit))[0] for digit in range(10)]
    numpy.save("digits.npy", images[test])
