"""Profiles: the recorded spans, and tables that add up."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import oarlock as ol
import pytest
from oarlock._profile import Span, merged

MODELS = Path(__file__).parents[3] / "docs/src/models"


@pytest.fixture(scope="module")
def profile():
    return ol.load(MODELS / "digits.onnx").profile(np.load(MODELS / "digits.npy"), runs=3)


def rows(view):
    return {row[0]: dict(zip(view.columns, row, strict=True)) for row in view.rows}


def test_there_are_eight_tables(profile):
    titles = [view.title.removesuffix(" Summary") for view in profile.views()]
    assert titles == ["Device", "Overview", "Model", "Distributed", "Operator", "Kernel", "Memory Manipulation", "UserDefined"]
    text = str(profile)
    assert all(title in text for title in titles)


def test_times_add_up(profile):
    overview = rows(profile.overview())
    assert overview["ProfileStep"]["Calls"] == overview["Forward"]["Calls"] == "3"
    in_order = [float(overview[kind]["Time"]) for kind in ("Kernel", "Operator", "Forward", "ProfileStep")]
    assert in_order == sorted(in_order) and in_order[0] > 0
    model = rows(profile.model_view())
    parts = float(model["  Forward"]["Total"]) + float(model["  Others"]["Total"])
    assert parts == pytest.approx(float(model["ProfileStep"]["Total"]), abs=1e-3)
    for view in profile.views():
        for row in rows(view).values():
            if row.get("Avg", "-") != "-":
                assert float(row["Min"]) <= float(row["Avg"]) <= float(row["Max"]) <= float(row["Total"])
    kernels = rows(profile.kernel_view())
    assert sum(float(row["Ratio"].rstrip("%")) for row in kernels.values()) == pytest.approx(100, abs=0.1)


def test_what_happens_at_once_counts_once():
    spans = [Span("a", "Kernel", "x", 0, *span) for span in [(0, 10), (5, 12), (6, 7), (20, 21)]]
    assert merged(spans) == 13


def test_parts_of_a_program_are_named_and_threads_are_told_apart(tmp_path):
    model, image = ol.load(MODELS / "digits.onnx"), np.load(MODELS / "digits.npy")
    with ol.profiler.Profiler() as profiler:
        with ol.profiler.RecordEvent("pause"):
            time.sleep(0.01)
        other = threading.Thread(target=model, args=(image,))
        other.start()
        other.join()
        model(image)
    named = rows(profiler.profile.user_defined_view())
    assert named["pause"]["Calls"] == "1" and float(named["pause"]["Total"]) >= 10
    profiler.export_chrome_tracing(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["args"]["name"] for event in events if event["ph"] == "M"} == {"host, thread 0", "host, thread 1", "cpu:0"}
    begun, ended = ([event["id"] for event in events if event["ph"] == phase] for phase in "sf")
    assert begun == ended and len(begun) > 1
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")


def test_ops_on_arrays_are_noted_with_their_kernels():
    x = ol.asarray(np.ones((64, 64), np.float32))
    model, image = ol.load(MODELS / "digits.onnx"), np.load(MODELS / "digits.npy")
    with ol.profiler.Profiler() as profiler:
        for _ in range(3):
            y = ol.sum(x @ x + 1)
            profiler.step()
        model(image)
    assert float(y) == 64 * 64 * 65
    profile = profiler.profile
    operators = rows(profile.operator_view())
    assert {name: operators[name]["Calls"] for name in ("Add", "MatMul", "ReduceSum")} == dict.fromkeys(("Add", "MatMul", "ReduceSum"), "3")
    (kernel,) = (name for name in rows(profile.kernel_view()) if name.startswith("MatMul on cpu:0: "))
    assert "oarlock-cpu" in kernel
    model_view = rows(profile.model_view())
    parts = [float(model_view[name]["Kernels"]) for name in ("  Forward", "  Others")]
    assert all(parts) and sum(parts) == pytest.approx(float(model_view["ProfileStep"]["Kernels"]), abs=2e-3)
    assert rows(profile.overview())["ProfileStep"]["Calls"] == "4"


def test_copies_to_another_device_are_noted(with_custom_cpu):
    program = """
import oarlock as ol
with ol.profiler.Profiler() as profiler:
    x = ol.asarray([1.0, 2.0]).to_device("CustomCPU")
    x.to_device("CustomCPU")
    (x + x).to_device("cpu")
copies = [span.name for span in profiler.profile.of_kind("Memcpy")]
assert copies == ["copy to CustomCPU:0", "copy to cpu:0"], copies
assert [span.place for span in profiler.profile.of_kind("Kernel")] == ["CustomCPU:0"]
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=with_custom_cpu)


def test_nothing_is_noted_without_a_profiler():
    with ol.profiler.RecordEvent("nobody listens"):
        pass
    with pytest.raises(ol.Error, match="has ended"):
        _ = ol.profiler.Profiler().profile
    with pytest.raises(ValueError, match="found 0"):
        ol.load(MODELS / "digits.onnx").profile(runs=0)
