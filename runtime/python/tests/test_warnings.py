"""What plugins warn of is a warning of Python, of the line that called the package."""

import json
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
