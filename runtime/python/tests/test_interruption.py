"""Ctrl-C ends an op that takes long, and the process computes on."""

import subprocess
import sys
import time
from signal import SIGINT

import pytest

PROGRAM = """
import signal
import time
import oarlock as ol
from onnx import parser

# A shell that starts tests in the background has them ignore the signal.
signal.signal(signal.SIGINT, signal.default_int_handler)

text = '<ir_version: 10, opset_import: ["": 20]> g (float[n, n] x) => (float[n, n] y) {{ y = MatMul(x, x) }}'
model = ol.load(parser.parse_model(text).SerializeToString())

def seconds(size):
    a = ol.random.default_rng(1).random((size, size), dtype=ol.float32)
    began = time.perf_counter()
    try:
        {work}
    finally:
        global taken
        taken = time.perf_counter() - began

seconds({size})
seconds({size})
# A matrix whose sides are 6 times as long takes 216 times as long.
expected = 216 * taken
print("started", flush=True)
try:
    seconds(6 * {size})
except KeyboardInterrupt:
    x = ol.arange(90_000.0).reshape(300, 300)
    assert (x @ ol.eye(300) == x).all() and (model(ol.eye(300, dtype=ol.float32)) == ol.eye(300)).all()
    print(taken / expected)
"""


@pytest.mark.parametrize(
    ("work", "size"),
    [
        ("a @ a", 2000),
        ("model(a)", 2000),
        ("ol.linalg.eigh(a + a.T)", 400),
        ("ol.linalg.eig(a)", 200),
        ("ol.linalg.svd(a)", 400),
        ("ol.linalg.qr(a)", 700),
    ],
)
def test_a_signal_ends_an_op_that_takes_long(work, size):
    program = PROGRAM.format(work=work, size=size)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(0.5)
        process.send_signal(SIGINT)
        share = float(process.communicate(timeout=120)[0])
    # The time until the signal, and a few tiles.
    assert share < 0.5, share
