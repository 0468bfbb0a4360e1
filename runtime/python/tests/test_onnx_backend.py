"""The suite of the `onnx` package, which runs on Oarlock unchanged. What each test has to give on each device is checked by the
tests of the engine; here it is whether the way through Python keeps it."""

import onnx.backend.test
from oarlock import onnx_backend

suite = onnx.backend.test.BackendTest(onnx_backend, __name__)
suite.include("test_(add|abs|argmax|cast|concat|conv|gemm|if|identity|loop|matmul|optional|reduce_sum|sequence|slice|softmax|split|string|where)")
globals().update(suite.enable_report().test_cases)
