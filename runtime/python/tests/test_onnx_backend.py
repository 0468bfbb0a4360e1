"""The suite of the `onnx` package runs on Oarlock unchanged. Other tests check the results of every test on every device; this one
checks that Python passes them on, so one test for each kind of value is enough."""

import re
import warnings

import onnx.backend.test
import pytest
from oarlock import onnx_backend

pytestmark = pytest.mark.filterwarnings("ignore")

WANTED = re.compile(
    "test_(abs|add|argmax|cast|concat|convinteger|gemm|identity|if|loop|matmul|optional|sequence|split|string|where)_?.*_cpu$"
)
# The suite calls `len` on values without dimensions.
NOT_COMPARED = {"test_loop16_seq_none_cpu"}

# NumPy warns about operations that some tests expect.
with warnings.catch_warnings(action="ignore"):
    suite = onnx.backend.test.BackendTest(onnx_backend, __name__)

for name, case in suite.test_cases.items():
    if "Node" in name:
        for test in [test for test in vars(case) if test.startswith("test_")]:
            if not WANTED.match(test) or test in NOT_COMPARED:
                delattr(case, test)
        globals()[name] = case


def test_one_node_runs_by_itself():
    import numpy as np

    node = onnx.helper.make_node("Add", ["a", "b"], ["y"])
    (made,) = onnx_backend.run_node(node, [np.float32([1, 2]), np.float32([10])])
    assert made.tolist() == [11, 12] and made.dtype == np.float32
    node = onnx.helper.make_node("Softmax", ["x"], ["y"])
    x = np.ones((1, 2, 2), np.float32)
    assert onnx_backend.run_node(node, x, opset_version=11)[0].ravel().tolist() == [0.25] * 4
    assert onnx_backend.run_node(node, x, opset_version=13)[0].ravel().tolist() == [0.5] * 4
