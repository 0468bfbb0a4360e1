"""Writes models of the ops that onnxruntime adds to ONNX, with what onnxruntime computes, for `tests/tests/backend`.

Each op is a model of its own. Integers of 8 and 16 bits are compared as floats, one step apart: where a number lies in the
middle between two steps, either is right.
"""

import pathlib
import sys
import types

import contrib_cases
import numpy
import onnx
import onnxruntime
from export_models import ModelFile

OPSETS = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
STEPS = {numpy.dtype(name) for name in ["uint8", "int8", "uint16", "int16"]}


class Contrib:
    """Makes models, asks onnxruntime about them, and writes both."""

    def __init__(self, cases):
        self.cases = cases
        self.names = set()

    def __call__(self, op, inputs, *, outputs=1, compared=None, name="", domain="com.microsoft", rtol=1e-4, atol=1e-5, **attributes):
        wanted = list(range(outputs)) if isinstance(outputs, int) else outputs
        title = "-".join(filter(None, [op, name]))
        number = next(at for at in range(1000) if f"{title}-{at}" not in self.names)
        self.names.add(f"{title}-{number}")
        for declares in [True, False]:
            model, feeds = self.model(op, inputs, wanted, domain, attributes, declares)
            try:
                found = run(model, feeds)
                stepped = [value.dtype in STEPS for value in found]
                model, feeds = self.model(op, inputs, wanted, domain, attributes, declares, stepped)
                found = run(model, feeds)
                if compared is not None:
                    found, model = found[: len(compared)], self.model(op, inputs, compared, domain, attributes, declares)[0]
            except Exception as error:  # onnxruntime has no common type for what it raises
                print(f"contrib: left out {title}-{number}: {str(error).splitlines()[0][:200]}")
                self.cases.leave_out("a refusal by onnxruntime")
                continue
            kind = "contrib" if declares else "contrib-any-shape"
            test = types.SimpleNamespace(name=f"{title}-{number}", rtol=rtol, atol=1.0 if any(stepped) else atol)
            sizes = [onnx.helper.make_tensor_value_info("", onnx.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for v in found]
            del model.graph.output[:]
            for info, output in zip(sizes, compared or wanted):
                info.name = f"y{output}s" if stepped[wanted.index(output)] else f"y{output}"
                if not declares:
                    info.type.tensor_type.ClearField("shape")
                model.graph.output.append(info)
            self.cases.model(kind, test, model.SerializeToString(), [(list(feeds.values()), found)])

    def model(self, op, inputs, wanted, domain, attributes, declares, stepped=()):
        """A model of one node, and what it is fed. Without declared shapes only the number of dimensions is known."""
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
        # Of scores alone onnxruntime does not find out the type.
        scores = onnx.helper.make_tensor_value_info("y3", onnx.TensorProto.FLOAT, None)
        is_scores = lambda result: op == "MultiHeadAttention" and result == "y3"
        outputs = [scores if is_scores(result) else onnx.ValueInfoProto(name=result) for result in results]
        graph = onnx.helper.make_graph(nodes, op, infos, outputs, weights)
        return onnx.helper.make_model(graph, opset_imports=OPSETS, ir_version=10), feeds


def run(model, feeds):
    """What onnxruntime makes of a model as it is."""
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
