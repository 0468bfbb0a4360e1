"""Small networks of the kinds that are common in Paddle."""

import numpy
import paddle
import paddle.nn.functional as functional
from paddle import nn
from paddle.static import InputSpec

RANDOM = numpy.random.default_rng(11)


def normal(*shape):
    """Normally distributed numbers."""
    return RANDOM.standard_normal(shape).astype("float32")


class Residual(nn.Layer):
    """A block of a ResNet."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2D(3, 8, 3, 2, 1, bias_attr=False), nn.Conv2D(8, 8, 3, 1, 1, bias_attr=False)
        self.aside = nn.Conv2D(3, 8, 1, 2, bias_attr=False)
        self.norms = nn.LayerList([nn.BatchNorm2D(8) for _ in range(3)])
        self.end = nn.Linear(8, 5)

    def forward(self, x):
        y = functional.relu(self.norms[0](self.first(x)))
        y = functional.relu(self.norms[1](self.second(y)) + self.norms[2](self.aside(x)))
        y = paddle.flatten(functional.adaptive_avg_pool2d(y, 1), 1)
        return functional.softmax(self.end(y))


class Mobile(nn.Layer):
    """A MobileNetV3 block, with squeeze and excitation."""

    def __init__(self):
        super().__init__()
        self.wide, self.deep = nn.Conv2D(4, 16, 1), nn.Conv2D(16, 16, 5, 1, 2, groups=16)
        self.squeeze, self.excite = nn.Conv2D(16, 4, 1), nn.Conv2D(4, 16, 1)
        self.narrow, self.norm = nn.Conv2D(16, 4, 1), nn.BatchNorm2D(16)

    def forward(self, x):
        y = functional.hardswish(self.norm(self.wide(x)))
        y = functional.hardswish(self.deep(y))
        gate = functional.relu(self.squeeze(functional.adaptive_avg_pool2d(y, 1)))
        y = y * functional.hardsigmoid(self.excite(gate), slope=0.2, offset=0.5)
        return self.narrow(y) + x


class Encoder(nn.Layer):
    """A transformer like ERNIE, with positions and a mask."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 16, padding_idx=0), nn.Embedding(12, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu")
        self.layers, self.pool = nn.TransformerEncoder(layer, 2), nn.Linear(16, 16)

    def forward(self, ids):
        mask = paddle.unsqueeze((ids == 0).astype("float32") * -1e4, [1, 2])
        places = paddle.cumsum(paddle.ones_like(ids), axis=1) - 1
        x = self.layers(self.words(ids) + self.places(places), mask)
        return x, paddle.tanh(self.pool(x[:, 0]))


class Reader(nn.Layer):
    """Recurrent layers on text."""

    def __init__(self, kind, **how):
        super().__init__()
        self.words, self.layer = nn.Embedding(30, 6), getattr(nn, kind)(6, 5, **how)

    def forward(self, ids, lengths):
        made, states = self.layer(self.words(ids), sequence_length=lengths)
        return (made, *states) if isinstance(states, (list, tuple)) else (made, states)


class Detector(nn.Layer):
    """The head of a YOLO, with boxes and non-maximum suppression."""

    def __init__(self):
        super().__init__()
        self.body = nn.Conv2D(3, 8, 3, 4, 1)
        self.near, self.far = nn.Conv2D(8, 2 * 7, 1), nn.Conv2D(16, 2 * 7, 1)
        self.down = nn.Conv2D(8, 8, 3, 2, 1)

    def forward(self, image, size):
        x = functional.leaky_relu(self.body(image), 0.1)
        y = functional.leaky_relu(self.down(x), 0.1)
        x = paddle.concat([x, functional.interpolate(y, scale_factor=2, mode="nearest")], 1)
        found = []
        for made, step, anchors in [(self.near(y), 8, [10, 13, 16, 30]), (self.far(x), 4, [4, 6, 8, 5])]:
            found.append(paddle.vision.ops.yolo_box(made, size, anchors, 2, 0.05, step))
        boxes = paddle.concat([pair[0] for pair in found], 1)
        scores = paddle.transpose(paddle.concat([pair[1] for pair in found], 1), [0, 2, 1])
        return boxes, scores


class Writing(nn.Layer):
    """Text recognition like CRNN."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2D(3, 8, 3, 2, 1), nn.Conv2D(8, 12, 3, (2, 1), 1)
        self.layers, self.end = nn.LSTM(12, 6, num_layers=2, direction="bidirectional"), nn.Linear(12, 11)

    def forward(self, image):
        x = functional.max_pool2d(functional.relu(self.first(image)), 2)
        x = functional.hardswish(self.second(x))
        x = paddle.transpose(paddle.squeeze(functional.max_pool2d(x, (x.shape[2], 1)), 2), [0, 2, 1])
        x = functional.softmax(self.end(self.layers(x)[0]), axis=2)
        return x, paddle.argmax(x, axis=2)


class Maps(nn.Layer):
    """Text detection like DB, from features of two sizes."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2D(3, 4, 3, 2, 1), nn.Conv2D(4, 4, 3, 2, 1)
        self.larger = nn.Conv2DTranspose(4, 4, 2, 2)
        self.largest, self.norm = nn.Conv2DTranspose(4, 1, 2, 2), nn.BatchNorm2D(4)

    def forward(self, image):
        x = functional.relu(self.first(image))
        y = functional.relu(self.second(x))
        y = functional.upsample(y, size=paddle.shape(x)[2:], mode="bilinear", align_corners=False) + x
        y = functional.interpolate(y, scale_factor=0.5, mode="nearest")
        return functional.sigmoid(self.largest(functional.relu(self.norm(self.larger(y)))))


class Repeats(nn.Layer):
    """A loop that appends its results to a list."""

    def forward(self, x, count):
        at, total, seen = paddle.zeros([1], "int64"), paddle.zeros([2, 3]), []
        while at < count:
            total = total + x * paddle.cast(at, "float32")
            seen.append(total)
            at = at + 1
        return total, paddle.stack(seen), at


class Chooses(nn.Layer):
    """Nested branches."""

    def forward(self, x):
        if paddle.mean(x) > 0:
            y, z = x * 2, x + 1
            if paddle.max(x) > 5:
                y = y - 5
        else:
            y, z = x - 1, x[:1]
        return y, z


class Grows(nn.Layer):
    """A loop with a branch, and a list that is read in a different order."""

    def forward(self, x, count):
        at, seen = paddle.full([1], 0, "int64"), []
        while at < count:
            if paddle.sum(x) > 10:
                x = x / 2
            else:
                x = x * 3 + 1
            seen.append(x)
            at = at + 1
        return paddle.concat(seen, 0), x


class Nests(nn.Layer):
    """Nested loops; the inner one reads and changes variables of the outer one."""

    def forward(self, x, count):
        outer, total = paddle.zeros([1], "int64"), paddle.zeros([1])
        while outer < count:
            inner = paddle.zeros([1], "int64")
            while inner <= outer:
                total = total + paddle.sum(x) * paddle.cast(inner + outer, "float32")
                inner = inner + 1
            x = x + paddle.cast(inner, "float32")
            outer = outer + 1
        return total, x


class Rereads(nn.Layer):
    """A list that is read and written at computed indices."""

    def forward(self, x, count):
        seen, at = paddle.tensor.create_array("float32"), paddle.zeros([1], "int64")
        paddle.tensor.array_write(x, at, seen)
        while at < count:
            before = paddle.tensor.array_read(seen, at)
            at = at + 1
            paddle.tensor.array_write(before * 2, at, seen)
            paddle.tensor.array_write(before - 1, at - 1, seen)
        return paddle.tensor.array_read(seen, at), paddle.tensor.array_read(seen, at - 1)


def all_networks():
    """Each network with its inputs."""
    image = lambda height, width: ([InputSpec([None, 3, height, width], "float32", "image")])
    picture = normal(2, 3, 32, 32)
    yield "net-residual", Residual(), image(32, 32), [picture]
    yield "net-residual-any-size", Residual(), image(None, None), [picture]
    yield "net-mobile", Mobile(), [InputSpec([None, 4, 8, 8], "float32", "x")], [normal(1, 4, 8, 8)]
    ids = RANDOM.integers(1, 50, (2, 7)).astype("int64")
    ids[1, 5:] = 0
    words = InputSpec([None, None], "int64", "ids")
    yield "net-encoder", Encoder(), [words], [ids]
    lengths = numpy.array([7, 4], "int64")
    specs = [words, InputSpec([None], "int64", "lengths")]
    for kind in ["LSTM", "GRU", "SimpleRNN"]:
        yield f"net-{kind.lower()}", Reader(kind), specs, [ids % 30, lengths]
        yield f"net-{kind.lower()}-both-ways", Reader(kind, num_layers=2, direction="bidirect"), specs, [ids % 30, lengths]
    yield "net-simplernn-relu", Reader("SimpleRNN", activation="relu"), specs, [ids % 30, lengths]
    size = InputSpec([None, 2], "int32", "size")
    yield "net-detector", Detector(), [*image(32, 32), size], [picture, numpy.array([[64, 48], [32, 32]], "int32")]
    yield "net-writing", Writing(), image(16, None), [normal(2, 3, 16, 40)]
    yield "net-maps", Maps(), image(None, None), [normal(1, 3, 24, 32)]
    count = InputSpec([1], "int64", "count")
    block = InputSpec([2, 3], "float32", "x")
    for times in [1, 4]:
        yield f"net-repeats-{times}", Repeats(), [block, count], [normal(2, 3), numpy.array([times], "int64")]
        yield f"net-nests-{times}", Nests(), [block, count], [normal(2, 3), numpy.array([times], "int64")]
        yield f"net-rereads-{times}", Rereads(), [block, count], [normal(2, 3), numpy.array([times], "int64")]
        yield f"net-grows-{times}", Grows(), [block, count], [normal(2, 3), numpy.array([times], "int64")]
    for name, moved in [("above", 1), ("far-above", 9), ("below", -9)]:
        yield f"net-chooses-{name}", Chooses(), [block], [normal(2, 3) * 0.1 + numpy.float32(moved)]
