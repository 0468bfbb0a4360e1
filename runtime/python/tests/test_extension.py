"""Custom ops: compiled once, called like any other op, in models, and in wheels."""

import inspect
import os
import shutil
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import oarlock as ol
import pytest
from conftest import REPOSITORY, child, model_with, same
from oarlock import _oarlock, extension
from oarlock._compile import recipe

OPS = """
#include "oarlock/op.h"
#include "factor.h"

static oarlock_error scaled(void *context, void *state, const oarlock_call *call) {
    double factor = FACTOR;
    int64_t times = 1;
    const float *x = oarlock_data(call->inputs[0]);
    float *y = oarlock_data(call->outputs[0]);
    (void)context, (void)state;
    OARLOCK_TRY(oarlock_read_float(call, "by", &factor));
    OARLOCK_TRY(oarlock_read_int(call, "times", &times));
    for (uint64_t i = 0; i < oarlock_element_count(call->inputs[0]); i++) {
        y[i] = (float)(factor * (double)times * x[i]);
    }
    return 0;
}

OARLOCK_OPERAND(x, OARLOCK_DTYPE_SET_F32, 0);
OARLOCK_OPERAND(y, OARLOCK_DTYPE_SET_F32, 0);
OARLOCK_OP(scale, DOMAIN, OARLOCK_KERNEL_FLAGS_DETERMINISTIC, (&x), (&y), oarlock_infer_like_first, scaled);
OARLOCK_EXTENSION(&scale_op);
"""

SPLIT = """
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "oarlock/op.h"

static oarlock_error sorted(void *, void *, const oarlock_call *call) {
    return oarlock::guard([&]() -> oarlock_error {
        const oarlock_tensor *x = call->inputs[0], *most = call->inputs[1];
        const auto *from = static_cast<const double *>(oarlock_data(x));
        std::vector<double> all(from, from + oarlock_element_count(x));
        if (all.empty()) {
            throw std::length_error("nothing to sort");
        }
        std::sort(all.begin(), all.end());
        const double limit = oarlock_is_present(most) ? *static_cast<const double *>(oarlock_data(most)) : all.back();
        auto *low = static_cast<double *>(oarlock_data(call->outputs[0]));
        auto *high = static_cast<double *>(oarlock_data(call->outputs[1]));
        for (size_t i = 0; i < all.size(); i++) {
            low[i] = std::min(all[i], limit);
            high[i] = std::max(all[i], limit);
        }
        return 0;
    });
}

OARLOCK_OPERAND(x, OARLOCK_DTYPE_SET_F64, 0);
OARLOCK_OPERAND(low, OARLOCK_DTYPE_SET_F64, 0);
OARLOCK_OPERAND(high, OARLOCK_DTYPE_SET_F64, 0);
static const oarlock_operand limit = [] {
    auto operand = oarlock::make<oarlock_operand>();
    operand.name = OARLOCK_STR("limit");
    operand.dtypes = OARLOCK_DTYPE_SET_F64;
    operand.rank_max = OARLOCK_RANK_ANY;
    operand.bits = OARLOCK_OPERAND_FLAGS_OPTIONAL;
    return operand;
}();
OARLOCK_OP(split, "test.cpp", 0, (&x, &limit), (&low, &high), oarlock_infer_like_first, sorted);
OARLOCK_EXTENSION(&split_op);
"""

THROWING = """
#include <stdexcept>

#include "oarlock/op.h"

#define THROW if (call != nullptr) { THROWN; }

static oarlock_error infer(void *context, const oarlock_call *call) {
    INFER
    return oarlock_infer_like_first(context, call);
}

static oarlock_error run(void *, void *, const oarlock_call *call) {
    RUN
    return OARLOCK_CAST(oarlock_error, call == nullptr);
}

OARLOCK_OPERAND(x, OARLOCK_DTYPE_SET_F32, 0);
OARLOCK_OPERAND(y, OARLOCK_DTYPE_SET_F32, 0);
OARLOCK_OP(throws, DOMAIN, 0, (&x), (&y), infer, run);
OARLOCK_EXTENSION(&throws_op);
"""

RUST = """
use oarlock_sdk::{DtypeSet, HostServices, Kernel, KernelCall, OperandSpec, Plugin, Result, export};

fn negated(_: &(), call: &KernelCall<'_>) -> Result<()> {
    let (x, y) = (call.input(0)?, call.output(0)?);
    // SAFETY: the kernel is for the CPU, whose memory the host can address, and the output is nobody else's.
    let (x, y) = unsafe { (x.elements::<f32>()?, y.elements_mut::<f32>()?) };
    y.iter_mut().zip(x).for_each(|(y, x)| *y = -x);
    Ok(())
}

fn plugin(_: &HostServices) -> Result<Plugin> {
    let kernel = Kernel::new("negated", negated)
        .with_domain("test.rusty")
        .with_device_type("cpu")
        .with_inputs([OperandSpec::new(DtypeSet::F32).with_name("x")])
        .with_outputs([OperandSpec::new(DtypeSet::F32).with_name("y")])
        .with_shape_inference(|_, call| call.allocate_output(0, call.input(0)?.dtype(), call.input(0)?.dims()));
    Ok(Plugin::for_kernels("rusty", "0.1.0").with_kernels([kernel]))
}

export!(plugin);
"""


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """A directory with the sources."""
    place = tmp_path_factory.mktemp("extension")
    (place / "ops.c").write_text(OPS)
    (place / "split.cpp").write_text(SPLIT)
    (place / "factor.h").write_text("#define FACTOR 2\n")
    return place


def load(place, name, **more):
    flags = [f'-DDOMAIN="test.{name}"']
    return extension.load(name, place / "ops.c", flags=flags, cache=place / "cache", **more)


@pytest.fixture(scope="session")
def scaling(place):
    return load(place, "scaling")


def loading(place, name):
    """A program that loads an extension and calls its op."""
    return f"""
    import oarlock as ol
    flags = ['-DDOMAIN="test.{name}"']
    made = ol.extension.load("{name}", {str(place / "ops.c")!r}, flags=flags, cache={str(place / "cache")!r})
    print(made.scale(ol.asarray([1.0])).tolist())
    """


def counting(place):
    """A compiler that records each run."""
    script = place / "counting-cc"
    script.write_text(f'#!/bin/sh\necho ran >> "{place}/runs"\nexec cc "$@"\n')
    script.chmod(0o755)
    return script


def test_ops_are_functions_that_take_attributes_by_name(scaling):
    x = ol.asarray([[1.0, -2.0], [0.5, float("inf")]])
    same(scaling.scale(x), np.asarray(x) * 2)
    same(scaling.scale(x=x, by=-3.0), np.asarray(x) * -3)
    same(scaling.scale(x, by=3, times=2), np.asarray(x) * 6)
    same(scaling.scale(x.mT), np.asarray(x).T * 2)
    assert scaling.scale(ol.zeros((0, 3))).shape == (0, 3)
    same(ol.op("scale", [x], {"by": 4.0}, domain="test.scaling"), np.asarray(x) * 4)
    assert scaling.ops["test.scaling::scale"] is scaling.scale


def test_a_keyword_that_no_kernel_can_ask_for_is_warned_of(place, scaling):
    x = ol.ones(2)
    for _ in range(2):
        with pytest.warns(UserWarning, match="`scale` was given `yb`, which stands nowhere in the sources of `scaling`") as warned:
            same(scaling.scale(x, yb=3.0), np.full(2, 2, np.float32))
        assert warned[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        scaling.scale(x, by=3.0, times=2)
        # The sources of a plugin that others built are unknown.
        extension.Extension("scaling", None).scale(x, yb=3.0)


def test_names_in_headers_and_flags_are_known(place):
    (place / "names.h").write_text('#define FIRST "named_in_a_header"\n')
    source = OPS.replace('"by"', "FIRST").replace('"times"', "SECOND").replace("factor.h", "names.h").replace("FACTOR", "2")
    (place / "named.c").write_text(source)
    flags = ['-DDOMAIN="test.named"', '-DSECOND="named_in_a_flag"']
    named = extension.load("named", place / "named.c", flags=flags, cache=place / "cache")
    with warnings.catch_warnings(action="error"):
        same(named.scale(ol.ones(1), named_in_a_header=3.0, named_in_a_flag=2), np.array([6], np.float32))
    for name in ["by", "beta", "oarlock_find_attribute"]:
        with pytest.warns(UserWarning, match=f"`{name}`"):
            named.scale(ol.ones(1), **{name: 1.0})


def test_a_function_says_what_it_takes(scaling):
    signature = inspect.signature(scaling.scale)
    assert list(signature.parameters) == ["x", "attributes"]
    assert signature.parameters["x"].annotation is ol.Tensor and signature.return_annotation is ol.Tensor
    assert scaling.scale.__annotations__["return"] is ol.Tensor
    assert scaling.scale.__name__ == "scale"
    for words in ["`scale` of the domain `test.scaling`", "On `cpu`", "x: float32", "y: float32"]:
        assert words in scaling.scale.__doc__


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda op: op({1.0}), TypeError, "`scale` expected numbers, text, arrays or lists of them, found set"),
        (lambda op: op(), TypeError, "`scale` expected operands `x`: missing .*'x'"),
        (lambda op: op(ol.ones(1), ol.ones(1)), TypeError, "too many"),
        (lambda op: op(ol.asarray([1])), NotImplementedError, "as float32, and this is int64"),
        (lambda op: op(ol.ones(1), by=object()), TypeError, "for `by` of `scale`, found object"),
        (lambda op: op(ol.ones(1), by="much"), ValueError, "expected `by` to be a number"),
        (lambda op: op(ol.ones(1), times=1.5), ValueError, "expected `times` to be a whole number"),
    ],
)
def test_wrong_inputs_are_named(scaling, call, error, words):
    with pytest.raises(error, match=words):
        call(scaling.scale)


def test_an_op_that_is_not_there_is_named_with_those_that_are(scaling):
    with pytest.raises(AttributeError, match=r"test\.scaling::scale.*found `scael`"):
        scaling.scael  # noqa: B018


def test_cpp_has_optional_inputs_several_outputs_and_exceptions(place):
    split = extension.load("splitting", [place / "split.cpp"], cache=place / "cache").split
    low, high = split(ol.asarray([3.0, 1.0, 2.0], dtype=ol.float64), limit=ol.asarray(2.0, dtype=ol.float64))
    same(low, np.array([1.0, 2.0, 2.0]))
    same(high, np.array([2.0, 2.0, 3.0]))
    low, high = split(ol.asarray([3.0, 1.0], dtype=ol.float64))
    same(high, np.array([3.0, 3.0]))
    assert inspect.signature(split).parameters["limit"].default is None
    with pytest.raises(ol.Error, match="nothing to sort"):
        split(ol.zeros(0, dtype=ol.float64))


@pytest.mark.parametrize(("thrown", "words"), [('std::runtime_error("what went wrong")', "what went wrong"), ("7", "not a std::exception")])
@pytest.mark.parametrize("slot", ["infer", "run"])
def test_an_exception_of_cpp_that_nobody_catches_is_an_error(place, thrown, words, slot):
    name = f"throwing-{slot}-{len(thrown)}"
    source = THROWING.replace("DOMAIN", f'"test.{name}"').replace("THROWN", f"throw {thrown}")
    source = source.replace("INFER", "THROW" if slot == "infer" else "").replace("RUN", "THROW" if slot == "run" else "")
    (place / f"{name}.cpp").write_text(source)
    throwing = extension.load(name, place / f"{name}.cpp", cache=place / "cache")
    with pytest.raises(ol.Error, match=words):
        throwing.throws(ol.ones(1))


def test_a_model_has_nodes_of_the_ops(scaling):
    model = model_with("test.scaling", "scale", by=5.0)
    for size in (0, 1, 5):
        data = np.arange(size, dtype=np.float32) - 2
        same(model(data), -np.maximum(data, 0) * np.float32(5))
    assert "scale" in str(model.explain(np.zeros(3, np.float32)))


def test_what_was_compiled_is_found_again_even_without_a_compiler(place):
    compiler = counting(place)
    runs = place / "runs"
    # The headers are written again, unchanged.
    for headers in (place / "cache").glob("include-*"):
        shutil.rmtree(headers)
    for _ in range(2):
        assert child(loading(place, "kept"), CC=compiler) == "[2.0]\n"
        # One source is compiled, and linked.
        assert runs.read_text() == "ran\n" * 2
    (lock,) = (place / "cache").glob("kept-*/lock")
    lock.unlink()
    assert child(loading(place, "kept"), CC="/nonexistent/cc") == "[2.0]\n"
    # Nothing is written, so the cache may be read-only.
    assert not lock.exists()
    runs.unlink()


def test_a_header_a_flag_or_a_compiler_that_changed_compiles_anew(place):
    compiler = counting(place)
    assert child(loading(place, "changing"), CC=compiler) == "[2.0]\n"
    (place / "factor.h").write_text("#define FACTOR 7\n")
    try:
        assert child(loading(place, "changing"), CC=compiler) == "[7.0]\n"
    finally:
        (place / "factor.h").write_text("#define FACTOR 2\n")
    assert child(loading(place, "changing"), CC=compiler) == "[2.0]\n"
    (place / "runs").unlink()
    compiler.write_text(compiler.read_text() + "\n")
    assert child(loading(place, "changing"), CC=compiler) == "[2.0]\n"
    assert (place / "runs").read_text() == "ran\n" * 2
    (place / "runs").unlink()


def test_what_changes_while_it_is_compiled_is_compiled_again(place):
    compiler = place / "slow-cc"
    compiler.write_text(f'#!/bin/sh\ncc "$@"\nsleep 0.1\necho "#define FACTOR 9" > "{place}/slow/factor.h"\n')
    compiler.chmod(0o755)
    (place / "slow").mkdir()
    for name in ("ops.c", "factor.h"):
        shutil.copy(place / name, place / "slow" / name)
    assert child(loading(place / "slow", "slow"), CC=compiler) == "[2.0]\n"
    assert child(loading(place / "slow", "slow"), CC=compiler) == "[9.0]\n"


def test_names_of_files_may_be_odd(place, tmp_path):
    odd = tmp_path / "a $b #c"
    odd.mkdir()
    for name in ("ops.c", "factor.h"):
        shutil.copy(place / name, odd / name)
    assert child(loading(odd, "odd.name")) == "[2.0]\n"
    (odd / "factor.h").write_text("#define FACTOR 3\n")
    assert child(loading(odd, "odd.name")) == "[3.0]\n"


def test_what_is_made_for_this_processor_is_kept_for_it_alone(place, monkeypatch):
    def key(*flags):
        return recipe("native", place / "ops.c", flags, (), ()).key()

    before = key(), key("-march=native")
    monkeypatch.setattr("oarlock._compile.processor", lambda: "another one")
    assert key() == before[0] and key("-march=native") not in (*before, key("-mtune=generic"))


def test_of_processes_that_come_at_once_one_compiles(place):
    command = [sys.executable, "-c", textwrap.dedent(loading(place, "racing"))]
    environment = os.environ | {"CC": str(counting(place))}
    racing = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(4)]
    assert [process.communicate(timeout=120)[0] for process in racing] == ["[2.0]\n"] * 4
    assert (place / "runs").read_text() == "ran\n" * 2
    (place / "runs").unlink()


def test_what_a_process_left_half_done_is_not_used(place):
    assert child(loading(place, "broken")) == "[2.0]\n"
    (home,) = (place / "cache").glob("broken-*")
    (record,) = home.glob("made-*.json")
    record.write_text(record.read_text()[:20])
    left = home / "build-left"
    left.mkdir()
    assert child(loading(place, "broken")) == "[2.0]\n"
    assert not left.exists()
    (library,) = home.glob("lib*.so")
    for spoilt in (library.read_bytes()[:100], b""):
        library.write_bytes(spoilt)
        assert child(loading(place, "broken")) == "[2.0]\n"
    library.unlink()
    for header in (place / "cache").glob("include-*/oarlock/*.h"):
        header.unlink()
    assert child(loading(place, "broken")) == "[2.0]\n"


def test_without_a_compiler_what_was_never_compiled_is_an_error_that_says_what_to_do(place, monkeypatch):
    monkeypatch.setenv("CC", "/nonexistent/cc")
    with pytest.raises(ol.Error, match=r"compiler of C as `/nonexistent/cc`, found none\nhint: .*`CC`"):
        load(place, "never")


def test_a_mistake_in_a_source_is_told_with_the_compilers_words_and_its_command(place):
    (place / "wrong.c").write_text('#include "oarlock/op.h"\nint f(void) { return nobody_knows_this; }\n')
    with pytest.raises(ol.Error, match=r"cc .*-c .*wrong\.c") as raised:
        extension.load("wrong", place / "wrong.c", cache=place / "cache")
    assert "nobody_knows_this" in str(raised.value)


def test_a_source_that_is_no_plugin_is_refused(place):
    (place / "none.c").write_text("int f(void) { return 1; }\n")
    with pytest.raises(ValueError, match="oarlock_plugin_query"):
        extension.load("none", place / "none.c", cache=place / "cache")


@pytest.mark.parametrize(
    ("name", "sources", "error", "words"),
    [
        ("a b", "ops.c", ValueError, "found 'a b'"),
        ("a", [], ValueError, "found none"),
        ("a", "missing.c", FileNotFoundError, "missing.c"),
        ("a", "factor.h", ValueError, "`.cpp`"),
    ],
)
def test_names_and_sources_that_cannot_be_are_refused(place, monkeypatch, name, sources, error, words):
    monkeypatch.chdir(place)
    with pytest.raises(error, match=words):
        extension.load(name, sources)


@pytest.mark.parametrize(("which", "given"), [("flags", "-O2"), ("include", "a"), ("libraries", "m"), ("include", Path("a"))])
def test_one_text_in_the_place_of_a_list_is_refused(place, which, given):
    with pytest.raises(TypeError, match=f"expected a list as `{which}`, such as `\\[.*{given}"):
        extension.load("lists", place / "ops.c", **{which: given})


def test_what_is_loaded_is_the_same_again_and_cannot_change(place, scaling):
    assert load(place, "scaling") is scaling is extension.loaded("scaling")
    with pytest.raises(ValueError, match="it has changed\nhint: start the program anew"):
        load(place, "scaling", include=[place])
    with pytest.raises(ValueError, match="none of the name `nobody`"):
        extension.loaded("nobody")


def crate_of(place, name, sdk):
    """Writes a crate with the dependency `sdk`, and returns its manifest."""
    if shutil.which("cargo") is None:
        pytest.skip("there is no cargo")
    crate = place / name
    (crate / "src").mkdir(parents=True)
    (crate / "Cargo.toml").write_text(
        f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2024"\n\n[lib]\ncrate-type = ["cdylib"]\n\n'
        f"[dependencies]\noarlock-sdk = {sdk}\n\n[workspace]\n"
    )
    (crate / "src/lib.rs").write_text(RUST.replace("rusty", name))
    return crate / "Cargo.toml"


def test_a_crate_is_built_by_cargo(place):
    crate = crate_of(place, "rusty", f'{{ path = "{REPOSITORY / "device-sdk/sdk"}" }}')
    shutil.copy(REPOSITORY / "Cargo.lock", crate.with_name("Cargo.lock"))
    made = extension.load("rusty", crate, cache=place / "cache")
    same(made.negated(ol.asarray([1.0, -2.0])), np.array([-1, 2], np.float32))
    assert extension.load("rusty", crate, cache=place / "cache") is made


@pytest.mark.parametrize(("name", "sdk"), [("alone", '"0.1"'), ("alone-too", '{ version = "0.1" }')])
def test_a_crate_needs_nothing_but_cargo_and_the_package(place, tmp_path, monkeypatch, name, sdk):
    crate = crate_of(tmp_path, name, sdk)
    # A directory without a crate.
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "home"))
    made = extension.load(name, crate, cache=place / "cache")
    same(made.negated(ol.asarray([1.0, -2.0])), np.array([-1, 2], np.float32))
    with pytest.warns(UserWarning, match="`rank_max`, which stands nowhere"):
        made.negated(ol.ones(1), rank_max=3)
    assert extension.load(name, crate, cache=place / "cache") is made


def test_cargo_checks_a_crate_with_the_sdk_of_the_package(tmp_path, monkeypatch):
    crate = crate_of(tmp_path, "checked", '"0.1"')
    monkeypatch.setenv("CARGO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    check = [shutil.which("cargo"), "check", "--offline", "--quiet", "--manifest-path", crate]
    assert subprocess.run(check, capture_output=True, timeout=300).returncode != 0
    (tmp_path / ".cargo").mkdir()
    directory = extension.sdk_directory()
    (tmp_path / ".cargo/config.toml").write_text(f'[patch.crates-io]\noarlock-sdk = {{ path = "{directory}" }}\n')
    outcome = subprocess.run(check, capture_output=True, text=True, timeout=300, cwd=crate.parent)
    assert outcome.returncode == 0, outcome.stderr


def test_the_package_has_all_of_the_sdk():
    device_sdk = REPOSITORY / "device-sdk"
    files = [file for part in ("abi", "sdk", "sdk/macros") for file in (device_sdk / part / "src").iterdir()]
    sources = {str(file.relative_to(device_sdk)): file.read_text() for file in files}
    assert {path: text for path, text in _oarlock._sdk() if path.endswith(".rs")} == sources


def test_a_wheel_brings_ops_to_where_it_is_installed(place, tmp_path):
    project = tmp_path / "project"
    (project / "acme_ops").mkdir(parents=True)
    (project / "acme_ops/__init__.py").write_text("")
    for name in ("ops.c", "factor.h"):
        shutil.copy(place / name, project / name)
    (project / "setup.py").write_text(
        "from setuptools import setup\n"
        "from oarlock.extension import setup_arguments\n"
        "plugin = setup_arguments('acme-ops', ['ops.c'], package='acme_ops', version='1.2', flags=['-DDOMAIN=\"acme\"'])\n"
        "setup(name='acme-ops', version='1.2', packages=['acme_ops'], **plugin)\n"
    )
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps"]
    build = [*pip, "wheel", *offline, "--no-build-isolation", "--wheel-dir", str(tmp_path), str(project)]
    # Warnings of pip do not matter here.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    outcome = subprocess.run(build, capture_output=True, text=True, env=environment)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith("acme_ops-1.2-py3-none-linux_")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv/bin/python"
    subprocess.run([*pip, "--python", str(python), "install", "--quiet", *offline, str(wheel)], check=True, env=environment)
    code = """
        import oarlock as ol
        import warnings
        acme = ol.extension.loaded("acme-ops")
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            print(acme.scale(ol.asarray([1.0]), by=3.0).tolist(), acme.file, len(heard))
            acme.scale(ol.asarray([1.0]), yb=3.0)
        print(heard[0].message)
    """
    found = subprocess.run([str(python), "-c", textwrap.dedent(code)], capture_output=True, text=True, env=environment)
    assert found.stdout.startswith("[3.0] None 0\n`scale` was given `yb`, which stands nowhere"), found.stderr + found.stdout
    report = subprocess.run([str(python), "-m", "oarlock", "doctor"], capture_output=True, text=True, env=environment)
    assert "acme-ops" in report.stdout and report.returncode == 0, report.stdout


def test_layers_see_the_ops_that_a_program_adds(place):
    record, file = place / "calls", place / "layers.toml"
    file.write_text(f'[plugins]\nlayers = ["trace"]\n\n[plugin.trace]\nfile = "{record}"\n')
    code = loading(place, "watched") + """
    @ol.extension.op("test.watched::twice")
    def twice(x):
        return x + x
    # The layer writes down thousands of calls at once.
    for _ in range(5000):
        made = ol.op("twice", [ol.ones(1)], domain="test.watched")
    print(made.tolist())
    """
    assert child(code, OARLOCK_CONFIG=file) == "[2.0]\n[2.0]\n"
    told = record.read_text()
    assert '"watched' in told and "python.test.watched.twice" in told
