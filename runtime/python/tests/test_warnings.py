"""Warnings of plugins become Python warnings at the line that called the package."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import warnings

import oarlock as ol
import pytest
from conftest import child

TALKING = """
#include <pthread.h>
#include "oarlock/op.h"

static void *say(void *context) {
    (void)context;
    oarlock_log(OARLOCK_LOG_LEVEL_WARNING, "said on another thread");
    return 0;
}

static oarlock_error talk_run(void *context, void *state, const oarlock_call *call) {
    (void)context, (void)state, (void)call;
    pthread_t thread;
    if (pthread_create(&thread, 0, say, 0) == 0) { pthread_join(thread, 0); }
    for (int i = 0; i < 200; i++) { oarlock_log(OARLOCK_LOG_LEVEL_WARNING, "said %d", i); }
    oarlock_log(OARLOCK_LOG_LEVEL_INFO, "by the way");
    return 0;
}
OARLOCK_OPERAND(x, OARLOCK_DTYPE_SET_F32, 0);
OARLOCK_OPERAND(y, OARLOCK_DTYPE_SET_F32, 0);
OARLOCK_OP(talk, "talking", 0, (&x), (&y), oarlock_infer_like_first, talk_run);
OARLOCK_EXTENSION(&talk_op);
"""


@pytest.fixture(scope="module")
def talk(tmp_path_factory):
    place = tmp_path_factory.mktemp("talking")
    (place / "talking.c").write_text(TALKING)
    return ol.extension.load("talking", place / "talking.c", flags=["-pthread"], cache=place / "cache").talk


def test_what_a_kernel_says_on_any_thread_is_a_warning_when_the_call_returns(talk):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        talk(ol.ones(1))
    said = [str(one.message) for one in heard]
    assert said[:2] == ["`talking`: said on another thread", "`talking`: said 0"]
    assert len(said) == 101 and said[-1] == "`oarlock`: … and 101 warnings more"
    assert {(one.category, one.filename) for one in heard} == {(RuntimeWarning, __file__)}


def test_warnings_that_are_errors_come_one_by_one_and_harm_nothing(talk):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="said on another thread"):
            talk(ol.ones(1))
        with pytest.raises(RuntimeWarning, match="said 0"):
            ol.ones(1) + 1
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert (ol.ones(1) + 1).tolist() == [2.0]
    assert len(heard) == 99


def test_variables_without_effect_are_warned_of_once():
    told = child(
        """
        import json, warnings
        import oarlock as ol
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            ol.ones(1)
            ol.ones(1)
        print(json.dumps([str(one.message) for one in heard]))
        """,
        FLAGS_use_ngraph=1,
        OARLOCK_HOME_OF_ROWERS=1,
        OARLOCK_THREDS=1,
    )
    assert json.loads(told) == [
        "`core`: the environment variable `FLAGS_use_ngraph` has no effect here; the CPU always uses its best instructions, without nGraph",
        "`core`: the environment variable `OARLOCK_HOME_OF_ROWERS` has no effect here; `python -m oarlock flags` lists the variables of flags",
        "`core`: the environment variable `OARLOCK_THREDS` has no effect here; did you mean `OARLOCK_THREADS`?",
    ]


def test_an_option_with_a_wrong_value_is_warned_of_once(tmp_path):
    config = tmp_path / "oarlock.toml"
    config.write_text("[plugin.oarlock-cpu]\nisa = 'best'\n")
    told = child(
        """
        import json, warnings
        import oarlock as ol
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            ol.ones(1)
            ol.ones(1)
        print(json.dumps([str(one.message) for one in heard]))
        """,
        OARLOCK_CONFIG=config,
    )
    (said,) = json.loads(told)
    assert said.startswith("`oarlock-cpu`: expected `isa` to be `scalar`, ") and "found `best`" in said


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (['layers = ["nobody"]'], "`nobody`"),
        (['layers = ["trace"]', "[plugin.trace]", 'file = "/nonexistent/calls.json"'], "/nonexistent/calls.json"),
    ],
)
def test_a_layer_that_does_not_watch_is_warned_of_once_and_found_by_the_doctor(tmp_path, lines, words):
    file = tmp_path / "layers.toml"
    file.write_text("\n".join(["[plugins]", *lines]))
    code = """
        import warnings
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            import oarlock as ol
            ol.ones(1)
        print(*(str(each.message).replace("\\n", " ") for each in heard), sep="\\n")
    """
    (told,) = child(code, OARLOCK_CONFIG=file).splitlines()
    assert words in told
    command = [sys.executable, "-m", "oarlock", "doctor"]
    environment = os.environ | {"OARLOCK_CONFIG": str(file)}
    doctor = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert doctor.returncode == 1 and words in doctor.stdout


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            ['[plugins]', 'layers = ["trace"]', "[plugin.trace]", "foo = 3", 'file = "/dev/null"'],
            "`trace`: expected `file` under .* in the configuration, found `foo`",
        ),
        (["[plugin.oarlock-cpu]", 'iss = "scalar"'], "`oarlock-cpu`: expected `isa` under .* found `iss`; did you mean `isa`"),
        # This layer was not requested.
        (["[plugin.trace]", 'file = "/dev/null"'], ""),
    ],
)
def test_an_option_that_its_plugin_does_not_know_is_warned_of(tmp_path, lines, says):
    file = tmp_path / "options.toml"
    file.write_text("\n".join(lines))
    code = """
        import warnings
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            import oarlock as ol
            ol.ones(1)
        print(*(str(each.message) for each in heard), sep="\\n")
    """
    assert re.fullmatch(says, child(code, OARLOCK_CONFIG=file).strip())


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("calls.json", r"note: `trace`: \d+ calls in `{place}/calls\.json`"),
        ("/dev/full", r"warning: `trace`: expected to write the trace to `/dev/full`, found: No space left on device .*; it ends after 0 calls"),
    ],
)
def test_a_program_that_ends_is_told_where_the_trace_is(tmp_path, file, words):
    layers = tmp_path / "layers.toml"
    layers.write_text(f'[plugins]\nlayers = ["trace"]\n[plugin.trace]\nfile = "{file}"\n')
    command = [sys.executable, "-c", "import oarlock as ol; ol.ones(3) + 1"]
    environment = os.environ | {"OARLOCK_CONFIG": str(layers)}
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, cwd=tmp_path)
    assert outcome.returncode == 0
    assert re.fullmatch(words.replace("{place}", re.escape(str(tmp_path))), outcome.stderr.strip())


def test_a_program_that_is_killed_leaves_what_was_traced_more_than_a_second_ago(tmp_path):
    file = tmp_path / "layers.toml"
    record = tmp_path / "calls"
    file.write_text(f'[plugins]\nlayers = ["trace"]\n[plugin.trace]\nfile = "{record}"\n')
    code = """
        import os, signal, time
        import oarlock as ol
        made = ol.ones(3)
        made + made
        time.sleep(1.1)
        made * made
        os.kill(os.getpid(), signal.SIGTERM)
    """
    environment = os.environ | {"OARLOCK_CONFIG": str(file)}
    outcome = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=60, env=environment)
    assert outcome.returncode == -signal.SIGTERM
    lines = record.read_text().rstrip().removesuffix(",")
    assert any("Add" in json.dumps(event) for event in json.loads(lines + "]"))
