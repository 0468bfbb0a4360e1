"""Python functions as ops: called by name, used in models, and replaced."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oarlock as ol
import pytest
from conftest import child, model_with, same
from oarlock import extension


@extension.op("test.python::soft")
def soft(x, bias=None, *, sharpness=1.0):
    made = x / (abs(x) + 1 / sharpness)
    return made if bias is None else made + bias


def call(name, *inputs, outputs=1, **attributes):
    return ol.op(name, inputs, attributes, outputs=outputs, domain="test.python")


def test_a_function_of_python_is_an_op_with_optional_inputs_and_attributes():
    x = ol.asarray([1.0, -3.0])
    same(soft(x), np.array([0.5, -0.75], np.float32))
    same(call("soft", x), np.array([0.5, -0.75], np.float32))
    same(call("soft", x, x, sharpness=0.5), np.asarray(x) / (abs(np.asarray(x)) + np.float32(2)) + np.asarray(x))
    same(call("soft", ol.zeros((0, 2))), np.zeros((0, 2), np.float32))


def test_a_function_gives_any_shapes_and_dtypes_of_any_library():
    @extension.op("test.python::several", outputs=3)
    def several(*all_inputs, times=(1,), kind="plain"):
        return all_inputs[0] > 0, np.array([len(all_inputs), *times]), [[kind == "other", True]]

    x = ol.asarray([[1.0, -3.0]]).mT
    first, second, third = call("several", x, ol.asarray([1]), outputs=3, times=[5, 6], kind="other")
    same(first, np.array([[True], [False]]))
    same(second, np.array([2, 5, 6]))
    same(third, np.array([[True, True]]))


def test_an_array_that_a_function_kept_stays_as_it_was():
    kept = []

    @extension.op("test.python::keeps")
    def keeps(x):
        kept.append(x)
        return x + 1

    for value in range(5):
        call("keeps", ol.full((1000,), value))
    assert [int(each[0]) for each in kept] == list(range(5))


@pytest.mark.parametrize("seconds", [0.01, 60])
def test_the_end_of_the_interpreter_is_no_end_of_functions_on_other_threads(seconds):
    code = f"""
        import threading, time
        import oarlock as ol
        entered = threading.Semaphore(0)

        @ol.extension.op("test.python::slow")
        def slow(x):
            entered.release()
            time.sleep({seconds})
            return x

        def work():
            while True:
                ol.op("slow", [ol.ones(2)], domain="test.python")

        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        for _ in range(4):
            entered.acquire()
        print("over")
    """
    assert child(code) == "over\n"


@pytest.mark.parametrize("outputs", [-1, 0, 65537, 10**9, 10**30])
def test_a_number_of_outputs_that_no_op_has_is_refused(outputs):
    with pytest.raises(ValueError, match=f"at most 65536, found {outputs}"):
        extension.op("test.python::many", outputs=outputs)(abs)


def test_what_a_function_raises_is_the_cause_of_the_error():
    @extension.op("test.python::raises")
    def raises(x):
        error = KeyboardInterrupt if x.shape == (2,) else KeyError
        raise error("what went wrong" * 100)

    with pytest.raises(ol.Error, match=r"`raises` on `cpu:0`.*KeyError.*what went wrong") as raised:
        call("raises", ol.ones(1))
    assert isinstance(raised.value.__cause__, KeyError)
    with pytest.raises(KeyboardInterrupt):
        call("raises", ol.ones(2))
    with pytest.raises(NotImplementedError) as raised:
        call("raises", ol.ones(1), ol.ones(1))
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("given", [(1, 2), "text", object()])
def test_what_is_no_array_or_too_many_is_refused(given):
    @extension.op("test.python::odd")
    def odd(x):
        return given

    with pytest.raises((ol.Error, ValueError, TypeError)):
        call("odd", ol.ones(1))


def test_a_function_is_put_in_the_place_of_one_with_the_same_parameters():
    @extension.op("test.python::again")
    def again(x):
        return x

    same(call("again", ol.ones(1)), np.ones(1, np.float32))

    with pytest.warns(UserWarning, match=r"`test.python::again` was .*again, and is .*another from now on") as warned:
        @extension.op("test.python::again")
        def another(x):
            return -x

    assert warned[0].filename == __file__
    same(call("again", ol.ones(1)), -np.ones(1, np.float32))
    with pytest.raises(ValueError, match="hint: start the program anew"):
        extension.op("test.python::again")(lambda x, y: x)


def test_a_cell_that_runs_again_puts_its_function_in_place_in_silence():
    cell = "@op('test.python::cell')\ndef cell(x):\n    return x * {}\n"
    for factor in [1, 2]:
        with warnings.catch_warnings(action="error"):
            exec(cell.format(factor), {"op": extension.op, "__name__": "__main__"})
        same(call("cell", ol.ones(1)), np.full(1, factor, np.float32))


@pytest.mark.parametrize(("name", "outputs"), [("again", 1), ("::again", 1), ("test::", 1), ("test::x", 0)])
def test_names_and_outputs_that_cannot_be_are_refused(name, outputs):
    with pytest.raises(ValueError, match="expected"):
        extension.op(name, outputs=outputs)(abs)


def test_a_domain_with_schemas_takes_no_function():
    with pytest.raises(ValueError, match=r"ai\.onnx"):
        extension.op("ai.onnx::Relu")(lambda X: X)


def test_a_model_has_functions_as_nodes_on_many_threads():
    model = model_with("test.python", "soft", sharpness=2.0)

    def run(size):
        data = np.arange(size, dtype=np.float32) - 2
        positive = np.maximum(data, 0)
        for _ in range(50):
            same(model(data), -(positive / (positive + np.float32(0.5))))
            same(call("soft", ol.asarray(data)), data / (abs(data) + 1))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run, range(8), timeout=100))


def test_where_all_must_be_deterministic_a_function_promises_it():
    program = """
    import oarlock as ol
    ol.set_flags({"deterministic": True})
    for promise in (True, False):
        ol.extension.op(f"test.promise::op{promise}", deterministic=promise)(lambda x: x + 1)
        try:
            print(ol.op(f"op{promise}", [ol.ones(1)], domain="test.promise").tolist())
        except NotImplementedError as error:
            print("other bits each time" in str(error))
    """
    assert child(program) == "[2.0]\nTrue\n"


def test_in_a_stream_a_function_is_refused_and_not_waited_for():
    with ol.Stream("cpu"), pytest.raises(NotImplementedError, match="outside of streams"):
        call("soft", ol.ones(3))
