"""Nodes that fall back to the CPU raise a warning, write a log or fail, as the user chooses."""

import json
import subprocess
import sys
import textwrap

import oarlock as ol
import pytest
from conftest import REPOSITORY

MODEL = REPOSITORY / "docs/src/models/digits.onnx"
START = f"""
import json, logging, warnings
import numpy as np
import oarlock as ol
import oarlock.onnxruntime as ort
MODEL = {str(MODEL)!r}
IMAGES = ol.zeros((2, 1, 8, 8))
"""


@pytest.fixture
def on_custom_cpu(with_custom_cpu):
    """A function that runs code in a process with the device `CustomCPU`, which only has a kernel for `Add`, and returns its output."""

    def run(code, **variables):
        command = [sys.executable, "-c", START + textwrap.dedent(code)]
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=120, env=with_custom_cpu | variables)
        assert outcome.returncode == 0, outcome.stderr
        return outcome.stdout, outcome.stderr

    return run


def test_a_model_warns_once_of_what_the_cpu_runs_for_its_device(on_custom_cpu):
    told, _ = on_custom_cpu(
        """
        model = ol.load(MODEL, device="CustomCPU")
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            model(IMAGES)
            model(ol.zeros((3, 1, 8, 8)))
            model.run({"image": IMAGES})
        print(json.dumps([(one.category.__name__, str(one.message), one.filename) for one in heard]))
        """
    )
    ((category, message, filename),) = json.loads(told)
    assert (category, filename) == ("FallbackWarning", "<string>")
    assert message.startswith("7 of the 7 nodes that take a kernel run on `cpu:0`, as `CustomCPU:0` has no kernel for `Relu` (2), `Gemm` (2), ")
    assert message.endswith("; `explain` of the model says why for each node")


def test_a_cpu_that_is_named_is_warned_of_by_nobody_and_explained_all_the_same(on_custom_cpu):
    told, error = on_custom_cpu(
        """
        warnings.simplefilter("error")
        model = ol.load(MODEL, device=["CustomCPU", "cpu"])
        model(IMAGES)
        fallback = model.explain(IMAGES).fallback
        print(json.dumps([fallback.nodes, fallback.of, fallback.cpu_named, fallback.devices, [op.op for op in fallback.ops]]))
        """
    )
    nodes, of, cpu_named, devices, ops = json.loads(told)
    assert (nodes, of, cpu_named, devices) == (7, 7, True, {"CustomCPU:0": 0, "cpu:0": 7})
    assert "Softmax" in ops and not error


@pytest.mark.parametrize(
    ("variables", "arguments"), [({"OARLOCK_KERNEL_FALLBACK": "error"}, ""), ({}, ", fallback='error'")]
)
def test_a_run_raises_where_the_flag_or_the_session_says_error(on_custom_cpu, variables, arguments):
    told, _ = on_custom_cpu(
        f"""
        try:
            ol.load(MODEL, device="CustomCPU"{arguments})(IMAGES)
        except NotImplementedError as error:
            print(error)
        """,
        **variables,
    )
    assert "found none for 7 of 7: `Relu` (2 nodes), `Gemm` (2 nodes), `Conv`, `MaxPool` and `Softmax`" in told
    assert "hint: name `cpu` as the last device, or set `kernel_fallback=models`" in told


def test_a_fallback_that_is_none_is_refused():
    with pytest.raises(ValueError, match="expected the fallback to be `error`, `models` or `cpu`, found `gpu`"):
        ol.load(MODEL, fallback="gpu")


def test_a_session_for_onnxruntime_logs_and_fails_as_sessions_there_do(on_custom_cpu):
    told, error = on_custom_cpu(
        """
        logging.basicConfig(format="%(levelname)s %(name)s %(message)s")
        warnings.simplefilter("error")
        options = ort.SessionOptions()
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        feeds = {"image": np.zeros((1, 1, 8, 8), np.float32)}
        ort.InferenceSession(MODEL, providers=["CustomCPUExecutionProvider", "CPUExecutionProvider"]).run(None, feeds)
        ort.InferenceSession(MODEL, providers=["CustomCPUExecutionProvider"]).run(None, feeds)
        try:
            ort.InferenceSession(MODEL, options, providers=["CustomCPUExecutionProvider"]).run(None, feeds)
        except Exception as error:
            print(type(error).__name__, error)
        """
    )
    (logged,) = error.splitlines()
    assert logged.startswith("WARNING oarlock.onnxruntime Some nodes were not assigned to the preferred execution providers: 7 of")
    assert "found none for 7 of 7" in told
