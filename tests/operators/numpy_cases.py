"""Our own cases: awkward shapes, strides and dtypes, with results from NumPy.

Floating-point results are computed in 64 bits and rounded once.
"""

import math

import ml_dtypes
import numpy
from case_file import View
from numpy_recurrent import write_recurrent
from numpy_views import FLOATS, INTEGERS, LAYOUTS, PAIRS, SHAPES, Writer, label, turns, values, view, widened
from numpy_windows import write_windows

UNARY = {
    "Abs": (numpy.abs, -4, 4),
    "Acos": (numpy.arccos, -1, 1),
    "Acosh": (numpy.arccosh, 1, 9),
    "Asin": (numpy.arcsin, -1, 1),
    "Asinh": (numpy.arcsinh, -9, 9),
    "Atan": (numpy.arctan, -9, 9),
    "Atanh": (numpy.arctanh, -0.9, 0.9),
    "Ceil": (numpy.ceil, -4, 4),
    "Cos": (numpy.cos, -9, 9),
    "Cosh": (numpy.cosh, -4, 4),
    "Erf": (lambda x: numpy.vectorize(math.erf, [float])(x) if x.size else x, -3, 3),
    "Exp": (numpy.exp, -9, 4),
    "Floor": (numpy.floor, -4, 4),
    "HardSwish": (lambda x: x * numpy.clip(x / 6 + 0.5, 0, 1), -5, 5),
    "IsNaN": (numpy.isnan, -4, 4),
    "Log": (numpy.log, 0, 9),
    "Neg": (numpy.negative, -4, 4),
    "Reciprocal": (lambda x: 1 / x, 0.1, 4),
    "Relu": (lambda x: numpy.maximum(x, 0), -4, 4),
    "Round": (numpy.rint, -4, 4),
    "Sigmoid": (lambda x: 1 / (1 + numpy.exp(-x)), -9, 9),
    "Sign": (numpy.sign, -4, 4),
    "Sin": (numpy.sin, -9, 9),
    "Sinh": (numpy.sinh, -4, 4),
    "Softplus": (lambda x: numpy.log1p(numpy.exp(x)), -9, 9),
    "Softsign": (lambda x: x / (1 + numpy.abs(x)), -9, 9),
    "Sqrt": (numpy.sqrt, 0, 9),
    "Tan": (numpy.tan, -1.2, 1.2),
    "Tanh": (numpy.tanh, -4, 4),
}
BINARY = {
    "Add": numpy.add,
    "Div": numpy.divide,
    "Equal": numpy.equal,
    "Greater": numpy.greater,
    "GreaterOrEqual": numpy.greater_equal,
    "Less": numpy.less,
    "LessOrEqual": numpy.less_equal,
    "Max": numpy.maximum,
    "Min": numpy.minimum,
    "Mul": numpy.multiply,
    "Pow": numpy.power,
    "Sub": numpy.subtract,
}
REDUCTIONS = {
    "ReduceL1": lambda x, **over: numpy.sum(numpy.abs(x), **over),
    "ReduceL2": lambda x, **over: numpy.sqrt(numpy.sum(x * x, **over)),
    "ReduceMax": numpy.max,
    "ReduceMean": numpy.mean,
    "ReduceMin": numpy.min,
    "ReduceProd": numpy.prod,
    "ReduceSum": numpy.sum,
    "ReduceSumSquare": lambda x, **over: numpy.sum(x * x, **over),
}


def write_elementwise(writer):
    """Elementwise ops."""
    for at, (op, (function, low, high)) in enumerate(UNARY.items()):
        for turn in range(6):
            shape, layout, dtype = turns(5 * at + turn, SHAPES), turns(at + turn, LAYOUTS), turns(turn, FLOATS)
            suffix = f"{numpy.dtype(dtype).name}_{label(shape)}_{layout}"
            writer.of_views(op, f"{turn}_{suffix}", [(shape, dtype, layout, low, high)], function)
    for at, (op, function) in enumerate(BINARY.items()):
        low = 0.25 if op in ("Pow", "Div") else -4
        for turn, (left, right) in enumerate(PAIRS):
            dtype, layouts = turns(at + turn, FLOATS), (turns(turn, LAYOUTS), turns(at + 2 * turn + 1, LAYOUTS))
            suffix = f"{numpy.dtype(dtype).name}_{label(left)}_and_{label(right)}_{layouts[0]}_{layouts[1]}"
            operands = [(left, dtype, layouts[0], low), (right, dtype, layouts[1], low)]
            writer.of_views(op, suffix, operands, function)
        for turn, dtype in enumerate(INTEGERS):
            if op == "Pow" and dtype not in (numpy.int32, numpy.int64):
                continue
            exact = numpy.floor_divide if op == "Div" else function
            # Overflow wraps around; dividends and divisors are positive, so that all agree on rounding.
            low, high = (1, 5) if op in ("Pow", "Div") else (numpy.iinfo(dtype).min // 2, numpy.iinfo(dtype).max // 2)
            layouts = turns(turn, LAYOUTS), turns(turn + 2, LAYOUTS)
            operands = [((5, 7), dtype, layouts[0], low, high), ((7,), dtype, layouts[1], low, high)]
            writer.of_views(op, numpy.dtype(dtype).name, operands, exact)
    for turn, dtype in enumerate([*INTEGERS, numpy.float32, numpy.float64]):
        operands = [((9, 7), dtype, turns(turn, LAYOUTS), -99, 99), ((7,), dtype, "contiguous", 1, 9)]
        writer.of_views("Mod", f"of_c_{numpy.dtype(dtype).name}", operands, numpy.fmod, {"fmod": 1})
        if dtype in INTEGERS:
            writer.of_views("Mod", f"of_python_{numpy.dtype(dtype).name}", operands, numpy.mod)
            writer.of_views("Div", f"towards_zero_{numpy.dtype(dtype).name}", operands, lambda a, b: numpy.trunc(a / b))
    for op, function in {"And": numpy.logical_and, "Or": numpy.logical_or, "Xor": numpy.logical_xor}.items():
        for turn, (left, right) in enumerate(PAIRS):
            operands = [(left, bool, turns(turn, LAYOUTS)), (right, bool, turns(turn + 1, LAYOUTS))]
            writer.of_views(op, f"{label(left)}_and_{label(right)}", operands, function)
    bits = {"BitwiseAnd": numpy.bitwise_and, "BitwiseOr": numpy.bitwise_or, "BitwiseXor": numpy.bitwise_xor}
    for op, function in bits.items():
        for turn, dtype in enumerate(INTEGERS):
            operands = [((3, 1), dtype, turns(turn, LAYOUTS), -99, 99), ((1, 4), dtype, "contiguous", -99, 99)]
            writer.of_views(op, numpy.dtype(dtype).name, operands, function)
    for turn, shape in enumerate(SHAPES):
        layout, dtype = turns(turn, LAYOUTS), turns(turn, FLOATS + INTEGERS)
        suffix = f"{numpy.dtype(dtype).name}_{label(shape)}_{layout}"
        writer.of_views("Not", label(shape), [(shape, bool, layout)], numpy.logical_not)
        writer.of_views("Identity", suffix, [(shape, dtype, layout)], lambda x: x)
        write_where(writer, suffix, shape, dtype, layout)


def write_where(writer, suffix, shape, dtype, layout):
    """Selection between two tensors."""

    def build(rng):
        inputs = [view(rng, shape, bool, layout), view(rng, shape, dtype, "stepped"), view(rng, shape[-1:], dtype, layout)]
        return inputs, [numpy.where(*(value.array() for value in inputs))], None

    writer.case("Where", suffix, build)


def write_casts(writer):
    """Casts between all dtypes, with values that every dtype can represent."""
    dtypes = [*FLOATS, *INTEGERS, bool]
    numbers = {numpy.float32: 1, numpy.float64: 11, numpy.float16: 10, ml_dtypes.bfloat16: 16, bool: 9}
    numbers |= dict(zip(INTEGERS, [3, 2, 5, 4, 6, 12, 7, 13], strict=True))
    for at, source in enumerate(dtypes):
        for turn, target in enumerate(dtypes):
            layout = turns(at + turn, LAYOUTS)

            def build(rng, source=source, target=target, layout=layout):
                given = view(rng, (5, 9), source, layout, 0, 100)
                return [given], [given.array().astype(target)], {"to": numbers[target]}

            writer.case("Cast", f"{numpy.dtype(source).name}_to_{numpy.dtype(target).name}", build)


def write_reductions(writer):
    """Reductions."""
    shapes = [((7,), None), ((13, 17), 0), ((13, 17), 1), ((2, 3, 4, 5), (1, 3)), ((2, 3, 4, 5), (-1,)), ((1, 257), -1)]
    for at, (op, function) in enumerate(REDUCTIONS.items()):
        for turn, (shape, axes) in enumerate(shapes):
            layout, keep = turns(at + turn, LAYOUTS), (at + turn) % 2
            low = 0.9 if op == "ReduceProd" else -4
            high = 1.1 if op == "ReduceProd" else 4
            axes = (axes,) if isinstance(axes, int) else axes

            operand = (shape, turns(turn, FLOATS), layout, low, high)

            def build(rng, operand=operand, axes=axes, keep=keep, function=function):
                given = view(rng, *operand)
                answer = function(widened(given.array()), axis=axes, keepdims=bool(keep))
                inputs = [given] if axes is None else [given, numpy.array(axes, numpy.int64)]
                return inputs, [numpy.asarray(answer).astype(given.base.dtype)], {"keepdims": keep}

            writer.case(op, f"{turn}_{label(shape)}_{layout}", build)
    for turn, (shape, axis) in enumerate([((7,), 0), ((13, 17), 0), ((13, 17), -1), ((2, 3, 4), 1)]):
        layout, dtype = turns(turn + 1, LAYOUTS), turns(turn, FLOATS)
        suffix = f"{label(shape)}_{axis}_{layout}"

        def operand(rng, shape=shape, dtype=dtype, layout=layout):
            return view(rng, shape, dtype, layout)

        def extreme(rng, pick, axis=axis, operand=operand):
            given = operand(rng)
            answer = numpy.expand_dims(pick(widened(given.array()), axis=axis), axis).astype(numpy.int64)
            return [given], [answer], {"axis": axis}

        writer.case("ArgMax", suffix, lambda rng: extreme(rng, numpy.argmax))
        writer.case("ArgMin", suffix, lambda rng: extreme(rng, numpy.argmin))

        def running(rng, axis=axis, operand=operand):
            given = operand(rng)
            answer = numpy.cumsum(widened(given.array()), axis=axis).astype(given.base.dtype)
            return [given, numpy.array(axis, numpy.int64)], [answer], None

        writer.case("CumSum", suffix, running)

        def softmax(rng, is_log, axis=axis, operand=operand):
            given = operand(rng)
            x = widened(given.array())
            x = x - x.max(axis=axis, keepdims=True)
            log = x - numpy.log(numpy.exp(x).sum(axis=axis, keepdims=True))
            return [given], [(log if is_log else numpy.exp(log)).astype(given.base.dtype)], {"axis": axis}

        writer.case("Softmax", suffix, lambda rng: softmax(rng, False))
        writer.case("LogSoftmax", suffix, lambda rng: softmax(rng, True))


def write_movement(writer):
    """Ops that only move elements."""
    dtypes = [numpy.float32, numpy.int8, numpy.int64, numpy.float16, bool]
    for turn, shape in enumerate([(7,), (3, 5), (2, 0, 3), (2, 3, 4, 5), (2, 1, 3, 1, 2)]):
        layout, dtype, rank = turns(turn, LAYOUTS), turns(turn, dtypes), len(shape)
        suffix = f"{numpy.dtype(dtype).name}_{label(shape)}_{layout}"

        def one(op, function, *more, attributes=None, shape=shape, dtype=dtype, layout=layout, suffix=suffix):
            def build(rng):
                given = view(rng, shape, dtype, layout)
                more_inputs = [numpy.array(values, numpy.int64) for values in more]
                answers = function(given.array())
                answers = answers if isinstance(answers, list) else [answers]
                return [given, *more_inputs], answers, attributes

            writer.case(op, suffix, build)

        order = [(axis + 1) % rank for axis in range(rank)]
        one("Transpose", lambda x, order=order: x.transpose(order), attributes={"perm": order})
        one("Flatten", lambda x, shape=shape: x.reshape(shape[0], math.prod(shape[1:])), attributes={"axis": 1})
        one("Unsqueeze", lambda x: numpy.expand_dims(x, (0, -1)), [0, -1])
        one("Expand", lambda x, shape=shape: numpy.broadcast_to(x, (2, *shape)), [2] + [1] * rank)
        one("Tile", lambda x, rank=rank: numpy.tile(x, [2] * rank), [2] * rank)
        one("Pad", lambda x, rank=rank: numpy.pad(x, [(1, 2)] * rank), [1] * rank + [2] * rank)
        one("Slice", lambda x: x[::-1], [-1], [-(2**62)], [0], [-1])
        one("Gather", lambda x: numpy.take(x, [[0, -1], [1, 0]], axis=0), [[0, -1], [1, 0]])
        parts = [1, 0, shape[-1] - 1]
        one("Split", lambda x: list(numpy.split(x, [1, 1], axis=-1)), parts, attributes={"axis": -1})
        one("Shape", lambda x: numpy.array(x.shape, numpy.int64))
        one("Size", lambda x: numpy.array(x.size, numpy.int64))
        if dtype != bool:
            one("NonZero", lambda x: numpy.array(numpy.nonzero(x), numpy.int64))

        def concat(rng, shape=shape, dtype=dtype, layout=layout):
            inputs = [view(rng, shape, dtype, kind) for kind in (layout, "contiguous", "stepped")]
            return inputs, [numpy.concatenate([value.array() for value in inputs], axis=-1)], {"axis": -1}

        writer.case("Concat", suffix, concat)
    limits = [(4, -9, -9, -1), (4, 9, -9, -1), (5, 3, 0, -2), (6, 1, 99, 2), (4, 2, 1, 1)]
    limits += [(3, -1, -(2**31), -1), (7, -2, 1, -3)]
    for size, begin, end, step in limits:

        def slices(rng, size=size, begin=begin, end=end, step=step):
            given = view(rng, (3, size), numpy.float32, "stepped")
            if begin < -size and step < 0:
                # With this end, ONNX keeps the first element, and a Python slice would be empty.
                answer = given.array()[:, :1]
            else:
                answer = given.array()[:, slice(begin, None if end < -size else end, step)]
            limits = [numpy.array([value], numpy.int64) for value in (begin, end, 1, step)]
            return [given, *limits], [answer], None

        writer.case("Slice", f"{size}_from_{begin}_to_{end}_by_{step}", slices)
    for turn, (dtype, upper) in enumerate([(numpy.float32, 0), (numpy.int64, 1), (numpy.float16, 0), (bool, 1)]):

        def triangle(rng, dtype=dtype, upper=upper, turn=turn):
            given = view(rng, (2, 4, 5), dtype, turns(turn, LAYOUTS))
            cut = numpy.triu if upper else numpy.tril
            return [given, numpy.array(turn - 1, numpy.int64)], [cut(given.array(), turn - 1)], {"upper": upper}

        writer.case("Trilu", f"{turn}_{numpy.dtype(dtype).name}", triangle)
        for op in ("GatherElements", "ScatterElements"):

            def elements(rng, op=op, dtype=dtype, turn=turn):
                given = view(rng, (5, 6), dtype, turns(turn + 1, LAYOUTS))
                indices = numpy.argsort(rng.random((5, 6)), axis=1)[:, :4].astype(numpy.int64)
                if op == "GatherElements":
                    return [given, indices], [numpy.take_along_axis(given.array(), indices, 1)], {"axis": 1}
                updates, answer = view(rng, (5, 4), dtype, turns(turn, LAYOUTS)), given.array().copy()
                numpy.put_along_axis(answer, indices, updates.array(), 1)
                return [given, indices, updates], [answer], {"axis": 1}

            writer.case(op, f"{turn}_{numpy.dtype(dtype).name}", elements)


def write_matrices(writer):
    """Matrix products."""
    pairs = [((1, 1), (1, 1)), ((3, 5), (5, 7)), ((5,), (5, 3)), ((3, 5), (5,)), ((5,), (5,)), ((2, 1, 3, 4), (5, 4, 2))]
    pairs += [((0, 3), (3, 2)), ((3, 0), (0, 2)), ((65, 33), (33, 17)), ((1, 129), (129, 65)), ((129, 130), (130, 1))]
    for turn, (left, right) in enumerate(pairs):
        for at, dtype in enumerate([numpy.float32, turns(turn, FLOATS[1:]), turns(turn, INTEGERS[4:])]):
            layouts = turns(turn + at, LAYOUTS), turns(turn + 2 * at + 1, LAYOUTS)
            suffix = f"{at}_{numpy.dtype(dtype).name}_{label(left)}_by_{label(right)}_{layouts[0]}_{layouts[1]}"
            operands = [(left, dtype, layouts[0], -1, 1), (right, dtype, layouts[1], -1, 1)]
            writer.of_views("MatMul", suffix, operands, numpy.matmul)
    for turn, (rows, inner, columns) in enumerate([(1, 1, 1), (5, 7, 3), (33, 65, 17), (0, 3, 2), (3, 0, 2), (64, 1, 64)]):
        first, second = turn % 2, turn // 2 % 2
        left, right = (inner, rows) if first else (rows, inner), (columns, inner) if second else (inner, columns)
        layout, bias = turns(turn, LAYOUTS), turns(turn, [(columns,), (rows, 1), (), (1, columns)])

        def gemm(a, b, c, first=first, second=second):
            return 0.5 * ((a.T if first else a) @ (b.T if second else b)) + 2 * c

        operands = [(left, numpy.float32, layout), (right, numpy.float32, "contiguous"), (bias, numpy.float32, layout)]
        attributes = {"alpha": 0.5, "beta": 2.0, "transA": first, "transB": second}
        writer.of_views("Gemm", f"{rows}x{inner}x{columns}_{layout}", operands, gemm, attributes)


def write_rows(writer):
    """Ops on rows, and special values."""
    for turn, shape in enumerate([(1, 1), (3, 5), (2, 3, 130), (0, 4), (1, 1000)]):

        def normalize(rng, shape=shape, turn=turn):
            given = view(rng, shape, turns(turn, FLOATS[:2]), turns(turn, LAYOUTS))
            scale, bias = (values(rng, shape[-1:], given.base.dtype, -2, 2) for _ in range(2))
            x = widened(given.array())
            centered = x - x.mean(axis=-1, keepdims=True)
            answer = centered / numpy.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-5) * scale + bias
            return [given, scale, bias], [answer.astype(given.base.dtype)], {"axis": -1}

        writer.case("LayerNormalization", f"{turn}_{label(shape)}", normalize)

        def largest(rng, shape=shape, turn=turn):
            given = View(rng.permutation(math.prod(shape)).reshape(shape).astype(numpy.float32))
            count = min(2, shape[-1])
            order = numpy.argsort(-given.array(), axis=-1)[..., :count]
            found = numpy.take_along_axis(given.array(), order, -1)
            return [given, numpy.array([count], numpy.int64)], [found, order.astype(numpy.int64)], None

        writer.case("TopK", label(shape), largest)

        def clip(rng, shape=shape, turn=turn):
            given = view(rng, shape, turns(turn, [*FLOATS, numpy.int32]), turns(turn + 2, LAYOUTS))
            limits = [numpy.array(limit, given.base.dtype) for limit in (-1, 2)]
            return [given, *limits], [numpy.clip(given.array(), *limits).astype(given.base.dtype)], None

        writer.case("Clip", f"{turn}_{label(shape)}", clip)
    specials = numpy.array([0.0, -0.0, 1.0, -1.0, numpy.inf, -numpy.inf, numpy.nan, 1e-40, 3e38], numpy.float32)
    grid = [View(specials.reshape(9, 1)), View(specials.reshape(1, 9))]
    # Ops without a NumPy function are left out: their special values would have to be defined here.
    spelled_out = ("Erf", "HardSwish", "Softplus", "Softsign")
    with numpy.errstate(all="ignore"):
        for op, (function, _, _) in UNARY.items():
            if op in spelled_out:
                continue
            answer = function(specials.astype(numpy.float64))
            answer = answer if answer.dtype == bool else answer.astype(numpy.float32)
            writer.case(op, "specials", lambda rng, answer=answer: ([View(specials)], [answer], None))
        for op, function in BINARY.items():
            writer.case(op, "specials", lambda rng, function=function: (grid, [function(*(v.base for v in grid))], None))


def write_large(writer):
    """Operands large enough for several threads, of sizes that are no multiple of a vector."""
    shape = (257, 263)
    for layout in LAYOUTS:
        operand, row = (shape, numpy.float32, layout), ((263,), numpy.float32, "stepped")
        writer.of_views("Add", f"large_{layout}", [operand, row], numpy.add)
        writer.of_views("Exp", f"large_{layout}", [operand], numpy.exp)
        writer.of_views("Transpose", f"large_{layout}", [operand], numpy.transpose, {"perm": [1, 0]})
        # Sums of many numbers that cancel out are only as exact as the largest of them.
        factors = [(*operand, -1, 1), ((263, 129), numpy.float32, "contiguous", -1, 1)]
        writer.of_views("MatMul", f"large_{layout}", factors, numpy.matmul, atol=1e-4)
        for axis in (0, 1):

            def total(rng, operand=operand, axis=axis):
                given = view(rng, *operand)
                answer = widened(given.array()).sum(axis=axis).astype(numpy.float32)
                return [given, numpy.array([axis], numpy.int64)], [answer], {"keepdims": 0}

            writer.case("ReduceSum", f"large_{axis}_{layout}", total, atol=1e-3)


def write(cases):
    """Writes all cases."""
    writer = Writer(cases)
    write_elementwise(writer)
    write_casts(writer)
    write_reductions(writer)
    write_movement(writer)
    write_matrices(writer)
    write_rows(writer)
    write_large(writer)
    write_windows(writer)
    write_recurrent(writer)
