"""The options of the CPU device in Python, as in `docs/src/user/cpu.md`."""

import os
import subprocess
import sys
from pathlib import Path

import oarlock as ol
import pytest
from conftest import FORCED_ISA, REPOSITORY

EXPLAIN = """
import os
{before}
import oarlock as ol
model = ol.load("docs/src/models/digits.onnx")
print(*[step.how for step in model.explain().steps if "MatMul" in step.op], sep="\\n")
"""


def printed(code):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OARLOCK_")}
    command = [sys.executable, "-c", code]
    outcome = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=120)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


@pytest.mark.parametrize("isa", ["scalar", "sse4.1", "avx2"])
def test_a_file_says_which_instructions_are_used(tmp_path, isa):
    if isa != "scalar" and isa.replace(".", "_") not in Path("/proc/cpuinfo").read_text():
        pytest.skip(f"the processor has no {isa}")
    file = tmp_path / "config.toml"
    file.write_text(f'[plugin.oarlock-cpu]\nisa = "{isa}"\n')
    told = printed(EXPLAIN.format(before=f"os.environ['OARLOCK_CONFIG'] = {str(file)!r}"))
    assert told and all(line.endswith(f", {isa}") for line in told.splitlines()), told


@pytest.mark.skipif(not FORCED_ISA, reason="no instruction set is forced")
def test_kernels_use_the_instruction_set_that_is_forced():
    model = ol.load(REPOSITORY / "docs/src/models/digits.onnx")
    told = [step.how for step in model.explain().steps if "MatMul" in step.op]
    # AMX tiles do not multiply f32 numbers.
    wanted = FORCED_ISA.replace("amx", "avx512")
    assert told and all(how.endswith(f", {wanted}") for how in told), told


def test_flags_are_chosen_by_the_program_before_the_environment():
    flags = "os.environ |= {'OARLOCK_THREADS': '3', 'OARLOCK_RANDOM_SEED': '7'}; import oarlock; oarlock.set_flags({'threads': 1})"
    told = printed(f"import os; {flags}; print(*[oarlock.get_flags()[name] for name in ('threads', 'random_seed')])")
    assert told == "1 7\n"


def test_flags_are_read_by_name_and_by_those_that_users_of_paddle_know():
    told = printed("""
import oarlock as ol
ol.set_flags({"FLAGS_paddle_num_threads": 3})
print(ol.get_flags("threads"), ol.get_flags(["FLAGS_paddle_num_threads", "deterministic"]))
""")
    assert told == "{'threads': '3'} {'FLAGS_paddle_num_threads': '3', 'deterministic': 'false'}\n"


def test_flags_of_paddle_without_effect_say_what_to_use():
    told = printed("""
import oarlock as ol
for call in [lambda: ol.set_flags({"FLAGS_selected_gpus": "0"}), lambda: ol.get_flags("FLAGS_selected_gpus")]:
    try:
        call()
    except Exception as error:
        print(error)
""")
    expected = "hint: it has no effect here; choose devices with `-d cuda:0`, `set_device(\"cuda:0\")` or `CUDA_VISIBLE_DEVICES`"
    assert [line for line in told.splitlines() if line.startswith("hint")] == [expected] * 2


def test_what_is_refused_where_all_must_be_deterministic():
    told = printed("""
import oarlock as ol
ol.set_flags({"deterministic": True})
x = ol.asarray([[2.0, 1.0], [1.0, 3.0]])
print((x @ x).tolist())
for call in [lambda: ol.linalg.cholesky(x), lambda: ol.op("RandomNormalLike", [x])]:
    try:
        call()
    except NotImplementedError as error:
        print("refused")
""")
    assert told == "[[5.0, 5.0], [5.0, 10.0]]\nrefused\nrefused\n"


def test_memory_is_limited():
    told = printed("""
import oarlock as ol
ol.set_flags({"device_memory_limit": "64 MiB"})
try:
    ol.ones(2**26)
except MemoryError as error:
    print("the limit is 64.0 MiB" in str(error))
""")
    assert told == "True\n"
