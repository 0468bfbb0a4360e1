"""Writes models of onnxruntime's own ops with expected results, for `tests/tests/backend`.

Each op gets a model. The results of quantized ops come from NumPy in `contrib_truth`; those of the others come from
onnxruntime, and `README.md` says why they may. 8-bit and 16-bit results are compared with the number of steps before
rounding: halfway between two steps, either is right.
"""

import pathlib
import sys
import types

import contrib_cases
import contrib_truth
import numpy
import onnx
import onnxruntime
from export_models import ModelFile

OPSET = 21
STEPS = {numpy.dtype(name) for name in ["uint8", "int8", "uint16", "int16"]}
# Ops whose results depend on the processor: some saturate sums of bytes, some add halves as halves.
FEW_BITS = STEPS | {numpy.dtype(numpy.float16)}
# Ops that do not change quantized numbers.
COPIES = {"NhwcMaxPool"}
# The largest difference between a rounded number and the steps before rounding. 32-bit floats are not exact.
HALF_A_STEP = 0.51


class Contrib:
    """Makes models, computes their expected results, and writes both."""

    def __init__(self, cases):
        self.cases = cases
        self.names = set()

    def __call__(self, op, inputs, *, outputs=1, compared=None, name="", domain="com.microsoft", onnx_opset=OPSET, rtol=1e-4, atol=1e-5, **attributes):
        wanted = list(range(outputs)) if isinstance(outputs, int) else outputs
        title = "-".join(filter(None, [op, name]))
        number = next(at for at in range(1000) if f"{title}-{at}" not in self.names)
        title = f"{title}-{number}"
        self.names.add(title)
        expected = truth_of(op, inputs, wanted, attributes)
        stepped = [dtype in STEPS for _, dtype in expected or []]
        if expected is not None:
            self.hold(title, op, inputs, wanted, domain, attributes, (rtol, atol), onnx_opset)
        for declares in [True, False]:
            model, feeds = self.model(op, inputs, wanted, domain, attributes, declares, stepped, onnx_opset)
            if expected is not None:
                found = [values.astype(numpy.float32 if dtype in STEPS else dtype) for values, dtype in expected]
            else:
                try:
                    found = run(model, feeds)
                except Exception as error:  # onnxruntime's exceptions have no common type
                    print(f"contrib: left out {title}: {str(error).splitlines()[0][:200]}")
                    self.cases.leave_out("a refusal by onnxruntime")
                    continue
            if compared is not None:
                model, _ = self.model(op, inputs, compared, domain, attributes, declares, onnx_opset=onnx_opset)
                found = found[: len(compared)]
            kind = "contrib" if declares else "contrib-any-shape"
            tolerance = dict(rtol=0.0, atol=HALF_A_STEP) if any(stepped) else dict(rtol=rtol, atol=atol)
            test = types.SimpleNamespace(name=title, **tolerance)
            sizes = [onnx.helper.make_tensor_value_info("", onnx.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for v in found]
            names = [output.name for output in model.graph.output]
            del model.graph.output[:]
            for info, output in zip(sizes, names, strict=True):
                info.name = output
                if not declares:
                    info.type.tensor_type.ClearField("shape")
                model.graph.output.append(info)
            self.cases.model(kind, test, model.SerializeToString(), [(list(feeds.values()), found)])

    def hold(self, title, op, inputs, wanted, domain, attributes, tolerance, onnx_opset):
        """Fails if NumPy and onnxruntime disagree on an op. They get operands for which no processor saturates: the sum of two
        products of bytes and 7-bit weights fits into 16 bits."""
        narrowed = [narrow(value) for value in inputs]
        expected = truth_of(op, narrowed, wanted, attributes)
        stepped = [dtype in STEPS for _, dtype in expected]
        model, feeds = self.model(op, narrowed, wanted, domain, attributes, True, stepped, onnx_opset)
        for output, ((values, dtype), found) in enumerate(zip(expected, run(model, feeds), strict=True)):
            rtol, atol = (0, HALF_A_STEP) if dtype in STEPS else tolerance
            if dtype == numpy.float16:
                rtol, atol = max(rtol, 2e-3), max(atol, 1e-3)
            if values.shape != found.shape:
                sys.exit(f"error: {title}: expected the shape {values.shape}, as NumPy says, found {found.shape} of onnxruntime")
            is_near = numpy.abs(values - found.astype(numpy.float64)) <= atol + rtol * numpy.abs(values)
            if not is_near.all():
                at = tuple(map(int, numpy.argwhere(~is_near)[0]))
                told = f"expected {values[at]} at {at} of output {output}, as NumPy says, found {found[at]} of onnxruntime"
                sys.exit(f"error: {title}: {told}; correct `contrib_truth`")

    def model(self, op, inputs, wanted, domain, attributes, declares, stepped=(), onnx_opset=OPSET):
        """A model of one node, and its inputs. Without declared shapes, only ranks are known."""
        weights, infos, feeds, names = [], [], {}, []
        for at, value in enumerate(inputs):
            names.append("" if value is None else f"x{at}")
            if isinstance(value, contrib_cases.Weight):
                weights.append(onnx.numpy_helper.from_array(value.array, names[-1]))
            elif value is not None:
                dtype = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
                dims = value.shape if declares else [f"d{at}_{axis}" for axis in range(value.ndim)]
                infos.append(onnx.helper.make_tensor_value_info(names[-1], dtype, dims))
                feeds[names[-1]] = value
        made = [f"y{at}" if at in wanted else "" for at in range(max(wanted) + 1)]
        nodes = [onnx.helper.make_node(op, names, made, domain=domain, **attributes)]
        results = [f"y{at}" for at in wanted]
        for at, is_stepped in enumerate(stepped):
            if is_stepped:
                nodes.append(onnx.helper.make_node("Cast", [results[at]], [results[at] + "s"], to=onnx.TensorProto.FLOAT))
                results[at] += "s"
        # onnxruntime cannot infer the type if only scores are requested.
        scores = onnx.helper.make_tensor_value_info("y3", onnx.TensorProto.FLOAT, None)
        is_scores = lambda result: op == "MultiHeadAttention" and result == "y3"
        outputs = [scores if is_scores(result) else onnx.ValueInfoProto(name=result) for result in results]
        graph = onnx.helper.make_graph(nodes, op, infos, outputs, weights)
        opsets = [onnx.helper.make_opsetid("", onnx_opset), onnx.helper.make_opsetid("com.microsoft", 1)]
        return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def narrow(value):
    """Reduces signed weights to 7 bits."""
    is_wide = isinstance(value, contrib_cases.Weight) and value.array.dtype == numpy.int8
    return contrib_cases.Weight(value.array // 2) if is_wide else value


def truth_of(op, inputs, wanted, attributes):
    """The outputs from NumPy, with the dtypes of the op; `None` if onnxruntime computes them."""
    arrays = [value.array if isinstance(value, contrib_cases.Weight) else value for value in inputs]
    if op in contrib_truth.TRUTHS:
        made = contrib_truth.TRUTHS[op](attributes, *arrays)
        return [made[at] for at in wanted]
    few = sorted({value.dtype.name for value in arrays if value is not None and value.dtype in FEW_BITS})
    if few and op not in COPIES:
        sys.exit(f"error: expected `{op}` in `contrib_truth.TRUTHS`, found operands of {few} and only onnxruntime to ask")
    return None


def run(model, feeds):
    """The outputs of onnxruntime, without its optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def main():
    """Writes the file."""
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    with ModelFile(directory / "contrib") as cases:
        contrib_cases.write(Contrib(cases))
        print(f"contrib: {cases.written} tests")


if __name__ == "__main__":
    main()
