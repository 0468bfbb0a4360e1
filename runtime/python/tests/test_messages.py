"""Error messages name the called function, what was found, and what to do, in Python terms."""

import operator
import re
import subprocess
import sys
from importlib import import_module

import numpy as np
import oarlock as ol
import pytest
from conftest import REPOSITORY, child

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.matmul,
    operator.lshift, operator.rshift, operator.and_, operator.or_, operator.xor,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
]  # fmt: skip

HUGE = 2**50


@pytest.mark.parametrize("operation", [each for each in BINARY if each is not operator.matmul], ids=lambda one: one.__name__)
def test_a_scalar_of_numpy_stands_before_an_array_as_a_number(operation):
    ours = ol.asarray([1, 2, 3], dtype=ol.int32)
    found, expected = operation(np.int32(2), ours), operation(2, ours)
    assert found.tolist() == expected.tolist() and found.dtype == expected.dtype


@pytest.mark.parametrize(
    ("found", "hint"),
    [
        (b"x", r"it an array with `oarlock\.asarray`$"),
        ({"a": 1}, r"an array of its values with `oarlock\.asarray\("),
        ({1}, r"an array of its elements with `oarlock\.asarray\("),
        (None, "look where it comes from"),
    ],
    ids=lambda found: type(found).__name__,
)
def test_what_python_has_beside_numbers_is_told_in_an_expression(found, hint):
    equal = (operator.eq, operator.ne)
    for operation in BINARY + [operator.iadd, operator.imul, divmod]:
        if operation in equal and not isinstance(found, bytes):
            assert operation(ol.ones(2), found) is (operation is operator.ne)
            continue
        for operands in [(ol.ones(2), found), (found, ol.ones(2))]:
            is_left = operands[0] is found
            if is_left and operation is operator.mod and isinstance(found, bytes):
                # Templates with placeholders come first.
                continue
            with pytest.raises(TypeError, match=f"found {type(found).__name__}\nhint: (make )?{hint}"):
                operation(*operands)


def test_what_knows_arrays_itself_may_still_answer():
    class Other:
        def __radd__(self, array):
            return "added"

        def __eq__(self, array):
            return "compared"

    assert ol.ones(1) + Other() == "added"
    assert (ol.ones(1) == Other()) == "compared"
    assert (ol.ones(1) == None) is False  # noqa: E711


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x - x, "subtract"),
        (lambda x: -x, "negative"),
        (lambda x: x < x, "less"),
        (lambda x: ~x.astype(ol.float32), "bitwise_invert"),
    ],
)
def test_a_dtype_that_a_function_does_not_take_is_a_type_error_that_says_to_convert(call, name):
    with pytest.raises(TypeError, match=f"^`{name}` on `cpu:0`: .*found .*\n.*astype"):
        call(ol.asarray([True, False]))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("zeros", lambda: ol.zeros(HUGE)),
        ("ones", lambda: ol.ones((HUGE, HUGE))),
        ("empty", lambda: ol.empty(2**60)),
        ("full", lambda: ol.full((HUGE,), 7)),
        ("full", lambda: ol.full((HUGE,), ol.asarray(7))),
        ("full_like", lambda: ol.full_like(ol.broadcast_to(ol.ones(1), (3,)), 1, dtype="complex64", device="cpu") / ol.ones(2)),
        ("arange", lambda: ol.arange(HUGE)),
        ("linspace", lambda: ol.linspace(0, 1, HUGE)),
        ("tile", lambda: ol.tile(ol.ones(1), (HUGE,))),
        ("broadcast_to", lambda: ol.broadcast_to(ol.ones(1), (HUGE,)) + 1),
        ("reshape", lambda: ol.reshape(ol.ones(3), (2, 2))),
        ("concat", lambda: ol.concat([ol.ones(1), ol.ones((1, 1))])),
        ("stack", lambda: ol.stack([ol.ones(1), ol.ones(2)])),
        ("take", lambda: ol.take(ol.ones(1), ol.asarray([5]))),
        ("matmul", lambda: ol.ones(2) @ ol.ones(3)),
        ("inv", lambda: ol.linalg.inv(ol.ones((2, 3)))),
        ("tril", lambda: ol.tril(ol.ones(2))),
        ("clip", lambda: ol.clip(ol.ones(2), ol.ones(3))),
    ],
)
def test_an_error_speaks_of_the_function_that_was_called(name, call):
    with pytest.raises((MemoryError, ValueError, IndexError)) as raised:
        call()
    if name == "full_like":
        name = "divide"
    first = str(raised.value).splitlines()[0]
    assert first.startswith(f"`{name}` on `cpu:0`: "), first
    assert re.findall(r"memory for `(\w+)`", first) in ([], [name], ["tensor"])


def test_dtypes_have_the_names_of_python_and_what_somebody_named_keeps_its_own():
    with pytest.raises(TypeError, match="expected float32 like input 0 .*, found int8"):
        ol.op("Add", [ol.ones(1), ol.ones(1, dtype=ol.int8)])
    with pytest.raises(TypeError, match="int8, uint8, .* or uint64, found float32"):
        ol.bitwise_invert(ol.ones(1))
    with pytest.raises(ValueError, match=r"expected float32\[batch, 1, 8, 8\], found float64\[1, 1, 8, 8\]\n.*to float32 first"):
        ol.load(REPOSITORY / "docs/src/models/digits.onnx")(ol.ones((1, 1, 8, 8), dtype=ol.float64))
    with pytest.raises(ValueError, match="found `f32`"):
        ol.op("f32", [ol.ones(1)])

    @ol.extension.op("test.words::told")
    def told(x):
        raise ValueError("found f32 here")

    with pytest.raises(ol.Error, match="found f32 here"):
        ol.op("told", [ol.ones(1)], domain="test.words")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sin", lambda: ol.sin(None)),
        ("isnan", lambda: ol.isnan({3})),
        ("negative", lambda: ol.negative("3")),
        ("real", lambda: ol.real(b"3")),
        ("reshape", lambda: ol.reshape({}, (1, 1))),
        ("permute_dims", lambda: ol.permute_dims(None, (0,))),
    ],
)
def test_what_is_no_array_is_refused_in_the_name_of_the_function(name, call):
    with pytest.raises(TypeError, match=rf"^`{name}` expected an array as `\w+`, found \w+\nhint: .*`oarlock\.asarray`"):
        call()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("positive", lambda: ol.positive(None)),
        ("square", lambda: ol.square({"a": 1})),
        ("sum", lambda: ol.sum({1})),
        ("take", lambda: ol.take(ol.ones(2), None)),
        ("stack", lambda: ol.stack([ol.ones(1), None])),
        ("concat", lambda: ol.concat([object()])),
        ("zeros_like", lambda: ol.zeros_like(len)),
    ],
)
def test_what_becomes_no_array_is_refused_in_the_name_of_the_function(name, call):
    with pytest.raises(TypeError, match=rf"^`{name}` expected numbers, text, arrays or lists of them, found \w+"):
        call()


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: ol.roll(ol.ones(2), (1, 2), axis=0), ValueError, r"as many distances as dimensions for `roll`, found \(1, 2\) for 0"),
        (lambda: ol.roll(ol.ones(2), 1.5), TypeError, "whole numbers to `roll` by, found 1.5"),
        (lambda: ol.tensordot(ol.asarray(1.0), ol.ones(3)), ValueError, r"at least 2 dimensions for `tensordot`, found .*\(\) and \(3,\)"),
        (lambda: ol.ones("a"), TypeError, r"^`ones` expected whole numbers as sizes of a shape, found str\nhint: .*\(2, 3\)"),
        (lambda: ol.asarray(["a"]) == 3, TypeError, "expected text beside an array of text, found a number"),
        (lambda: ol.ones(1) == "a", TypeError, r"beside an array of float32, found text\nhint: .*`float\("),
        (lambda: f"{ol.ones((1, 1)):.3f}", TypeError, r"for the format `\.3f`, found one of shape \[1, 1\]\nhint: .*`array\.item\(\)`"),
        (lambda: ol.clip(ol.ones(1, dtype=ol.int8), 200), OverflowError, r"^`clip` expected a result that int8 has, .* 200\nhint: .*astype"),
        (lambda: ol.asarray(np.array([1, None], dtype=object)), TypeError, r"text in an array of objects, found int\n.*astype\(float\)"),
        (lambda: ol.load(None), TypeError, "the path of a model or its bytes for `load`, found NoneType\nhint: write the path as text"),
        (lambda: ol.load(["a", "b"]), TypeError, "bytes for `load`, found list\nhint: load one file after the other"),
        (
            lambda: ol.load(REPOSITORY / "docs/src/models/digits.onnx").run([ol.ones(1)]),
            TypeError,
            "`run` expected a dictionary .*, found list\nhint: call the model itself",
        ),
    ],
)
def test_an_argument_of_another_type_is_told_with_what_was_expected(call, error, says):
    with pytest.raises(error, match=says):
        call()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("zeros", lambda size: ol.zeros(size)),
        ("ones", lambda size: ol.ones((2, size))),
        ("empty", lambda size: ol.empty(size)),
        ("full", lambda size: ol.full(size, 1)),
        ("reshape", lambda size: ol.reshape(ol.ones(1), size)),
        ("permute_dims", lambda size: ol.permute_dims(ol.ones(1), (size,))),
        ("eye", lambda size: ol.eye(size)),
        ("linspace", lambda size: ol.linspace(0, 1, size)),
        ("arange", lambda size: ol.arange(size)),
        ("tile", lambda size: ol.tile(ol.ones(1), size)),
        ("broadcast_to", lambda size: ol.broadcast_to(ol.ones(1), (size,))),
        ("repeat", lambda size: ol.repeat(ol.ones(1), size)),
    ],
)
def test_a_size_of_more_bits_than_there_are_is_told_of_the_function(name, call):
    with pytest.raises(OverflowError, match=f"^`{name}`.* found 1{'0' * 15}[0-9]*(\nhint: look at what the sizes are computed from)?$"):
        call(10**30)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_a_shape_of_more_elements_than_there_can_be_is_told_with_what_to_do(name):
    with pytest.raises(MemoryError, match=f"^`{name}` on `cpu:0`: expected a shape with fewer than 2.64 elements.*\nhint: "):
        getattr(ol, name)((2**40, 2**40))


def test_memory_is_held_by_what_was_called():
    told = child("""
    import oarlock as ol
    kept = [ol.zeros(7), ol.full((7,), ol.asarray(3.0)), ol.ones(7) + 1]
    try: ol.full((2**50,), ol.asarray(7))
    except MemoryError as error: print(str(error).partition("held by")[2])
    """)
    assert "Add" in told and "tensor" in told and "Expand" not in told


def test_who_called_an_op_by_its_name_is_told_of_it():
    with pytest.raises(TypeError, match="^`Add` on `cpu:0`"):
        ol.op("Add", [ol.asarray([True])] * 2)


@pytest.mark.parametrize("name", ["flat", "strides", "permute_dims", "resize_", "type"])
def test_an_attribute_that_is_not_there_names_what_to_use(name):
    x = ol.ones(2)
    with pytest.raises(AttributeError, match=f"found `{name}`\nhint: use `.+`$"):
        getattr(x, name)
    assert not hasattr(x, name) and name not in dir(x) and {"shape", "astype", "sum"} <= set(dir(x))
    for other in ("nonsense", "fft", "float32", "_axis"):
        with pytest.raises(AttributeError, match=f"no attribute '{other}'"):
            getattr(x, other)
    with pytest.raises(AttributeError, match="there are no gradients"):
        x.backward()


def test_a_function_that_is_not_there_names_what_to_use():
    from oarlock._absent import ATTRIBUTES, FUNCTIONS, OF_MODULES

    for module, table in OF_MODULES.items():
        for name, instead in table.items():
            hint = "use `.+`" if instead else "there is nothing here that it would set; leave it out"
            with pytest.raises(AttributeError, match=f"^module `{module}` has no `{name}`\nhint: {hint}$"):
                getattr(import_module(module), name)
        with pytest.raises(AttributeError, match=f"^module `{module}` has no `nonsense`$"):
            import_module(module).nonsense
    hints = [str(each) for table in (ATTRIBUTES, *OF_MODULES.values()) for each in table.values()]
    assert [each for hint in hints for each in re.findall(r"\boarlock((?:\.\w+)+)", hint) if not reached(ol, each)] == []
    there = [re.findall(r"\bx\.(\w+)", str(instead)) for instead in [*ATTRIBUTES.values(), *FUNCTIONS.values()]]
    assert [name for names in there for name in names if not hasattr(ol.ones(1), name)] == []
    assert [name for name in ATTRIBUTES if hasattr(ol.Tensor, name)] == []
    assert [name for name in FUNCTIONS if name in ol.__all__] == []


def test_functions_in_other_modules_are_named():
    for instead in ("linalg.svd", "nn.functional.conv2d", "fft.fftn", "random.default_rng"):
        name = instead.rpartition(".")[2]
        with pytest.raises(AttributeError, match=rf"^module `oarlock` has no `{name}`\nhint: use `oarlock\.{instead}\(…\)`$"):
            getattr(ol, name)
    with pytest.raises(AttributeError, match="^module `oarlock.fft` has no `svd`$"):
        ol.fft.svd  # noqa: B018
    with pytest.raises(AttributeError, match="hint: use `numpy.array"):
        ol.ones(2).setflags(write=False)


def test_what_is_named_computes_the_same():
    from oarlock._absent import FUNCTIONS

    x = ol.asarray([0.25, 0.5, 0.75])
    for name, expected in [
        ("erf", [0.2763264, 0.5204999, 0.7111556]),
        ("erfc", [0.7236736, 0.4795001, 0.2888444]),
        ("rsqrt", [2.0, 1.4142136, 1.1547005]),
        ("expit", [0.5621765, 0.6224593, 0.6791787]),
        ("logit", [-1.0986123, 0.0, 1.0986123]),
        ("entr", [0.3465736, 0.3465736, 0.2157615]),
        ("frac", [0.25, 0.5, 0.75]),
        ("logsumexp", [[1.6193380]]),
    ]:
        found = eval(FUNCTIONS[name], {"oarlock": ol, "x": x})
        np.testing.assert_allclose(np.asarray(found).ravel(), np.ravel(expected), rtol=1e-5, atol=1e-6)
    for name in ("expit", "entr"):
        with pytest.raises(AttributeError, match=f"^expected an attribute that arrays have, found `{name}`\nhint: use `"):
            getattr(x, name)


def reached(module, path):
    """Whether a path such as `.fft.fft` leads somewhere."""
    for name in path.split(".")[1:]:
        if not hasattr(module, name):
            return False
        module = getattr(module, name)
    return True


def test_what_numpy_has_and_the_package_has_not_is_left_to_numpy():
    for module in ("oarlock", "oarlock.linalg", "oarlock.fft"):
        theirs = import_module(module.replace("oarlock", "numpy"))
        theirs.only_there = len
        try:
            with pytest.raises(AttributeError, match=rf"hint: use `oarlock\.asarray\({theirs.__name__}\.only_there\(…\)\)`$"):
                import_module(module).only_there
        finally:
            del theirs.only_there
    with pytest.raises(AttributeError, match=r"^module `oarlock` has no `gcd`\nhint: use `oarlock\.asarray\(numpy\.gcd\(…\)\)`$"):
        ol.gcd


def test_a_generator_names_what_to_use_for_distributions_that_it_lacks():
    rng = ol.random.default_rng(1)
    with pytest.raises(AttributeError, match=r"^'Generator' object has no attribute 'zipf'\nhint: use `oarlock\.asarray\(numpy\.random\."):
        rng.zipf(2.0)
    with pytest.raises(AttributeError, match="^'Generator' object has no attribute 'nonsense'$"):
        rng.nonsense


def test_help_of_arrays_has_what_exists():
    shown = child("import oarlock as ol; help(ol.Tensor)")
    assert "Absent" not in shown and "sum(x" in shown and "The cumulative sum" in shown


def commands():
    """The commands that errors of the core recommend, from the sources of the package."""
    roots = [REPOSITORY / "runtime" / part / "src" for part in ("core", "engine", "python")]
    texts = [file.read_text() for root in roots for file in sorted(root.rglob("*.rs"))]
    told = [line for text in texts for line in text.splitlines() if not line.lstrip().startswith("//")]
    return sorted({word for line in told for word in re.findall(r"`oarlock ([a-z]+)", line)})


def test_commands_that_errors_name_are_there_in_python():
    found = commands()
    assert {"devices", "doctor", "flags", "kernels"} <= set(found)
    for command in found:
        subprocess.run([sys.executable, "-m", "oarlock", command, "--help"], check=True, capture_output=True)


def test_hints_name_what_python_has():
    for call in [lambda: ol.Device("npu"), lambda: ol.op("Unhinted", [ol.ones(1)]), lambda: ol.op("Relu", [ol.asarray(["a"])])]:
        with pytest.raises((ValueError, NotImplementedError, TypeError)) as raised:
            call()
        assert "`oarlock " not in str(raised.value)
    with pytest.raises(ValueError, match=r"`oarlock\.devices\(\)`.*`python -m oarlock doctor`"):
        ol.Device("tpu")
    wrong = "import oarlock; oarlock.set_flags({'thread': 1})"
    outcome = subprocess.run([sys.executable, "-c", wrong], capture_output=True, text=True)
    assert "did you mean `threads`? `python -m oarlock flags` lists them" in outcome.stderr


def command(*words):
    outcome = subprocess.run([sys.executable, "-m", "oarlock", *words], capture_output=True, text=True, timeout=60)
    return outcome.returncode, outcome.stdout


def test_the_command_lists_flags_and_kernels():
    code, flags = command("flags")
    assert code == 0 and "variable OARLOCK_THREADS" in flags and set(ol.get_flags()) <= set(flags.splitlines())
    code, variables = command("flags", "--paddle")
    assert code == 0 and "FLAGS_rpc_deadline\n" in variables and "    sets the flag threads\n" in variables
    code, kernels = command("kernels", "--op", "Relu")
    assert code == 0 and "ai.onnx::Relu" in kernels and "float32" in kernels and "Add" not in kernels
    assert command("kernels", "--op", "Unheard") == (1, "no plugin has a kernel for `Unheard`\n")


TEXT = ol.asarray(["a", "b"])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: ol.op("Add", x), TypeError, "the operands of `Add` in a list, found Tensor"),
        (lambda x: ol.op("Add", [x, 1]), TypeError, "arrays as operands of `Add`, found int"),
        (lambda x: ol.op("Softmax", [x], {"axis": object()}), TypeError, "numbers or texts for `axis` of `Softmax`, found object"),
        (lambda x: ol.asarray(["a"], dtype=ol.float32), TypeError, "numbers for an array of float32, found text"),
        (lambda x: ol.full((2,), "a", dtype=ol.int8), TypeError, "numbers for an array of int8, found text"),
        (lambda x: ol.concat([ol.asarray(1.0)]), IndexError, "an array that has dimensions, found one without"),
        (lambda x: ol.sort(ol.asarray(1.0)), IndexError, "an array that has dimensions, found one without"),
        (lambda x: ol.take(ol.zeros(0), ol.asarray([0])), IndexError, "an element in dimension 0, found none"),
        (lambda x: ol.zeros(0)[0], IndexError, "an element in dimension 0, found none"),
        (lambda x: ol.stack([ol.ones(2), ol.ones(3)]), ValueError, r"arrays of one shape, found \[2\] and \[3\]"),
        (lambda x: ol.take_along_axis(x, ol.asarray([1])), ValueError, "as many dimensions as the array, 2, found 1"),
        (lambda x: ol.get_flags(5), TypeError, "`get_flags` expected the name of a flag, or a list of names, found int"),
        (lambda x: ol.get_flags("FLAGS_rpc_deadline"), ValueError, "it has no effect here; Oarlock has no parameter servers and no RPC"),
        (lambda x: ol.set_flags(5), TypeError, "`set_flags` expected a dictionary .*, found int"),
        (lambda x: x.__dlpack__(max_version="x"), TypeError, "`__dlpack__` expected two numbers for `max_version`, found 'x'"),
        (lambda x: ol.var(x, correction="a"), TypeError, "a number for `correction`, found str"),
        (lambda x: x == b"x", TypeError, r"found bytes\n.*asarray"),
        (lambda x: ol.add(x, None), TypeError, r"found NoneType\nhint: "),
        (lambda x: x.__setitem__(0, None), TypeError, r"found NoneType\nhint: "),
        (lambda x: x.__setitem__(0, [1, 2]), ValueError, r"elements whose shape repeats to \[3\], found \[2\]"),
        (lambda x: x + [[1], [2, 3]], ValueError, "expected lists of 1 items beside each other, found one of 2"),
        (lambda x: ol.add("a", "b"), TypeError, "an array among the operands, found two texts"),
        (lambda x: x.astype(int) ** -1, ValueError, "a power below 0\nhint: .*`astype`"),
    ],
)
def test_what_cannot_be_is_told_as_what_was_given(call, error, words):
    with pytest.raises(error, match=words):
        call(ol.ones((2, 3)))


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "count_nonzero", "cumulative_sum"])
def test_text_is_no_number_to_add_or_compare(name):
    with pytest.raises(TypeError, match=f"^`{name}` expected numbers, found an array of str\nhint: .*astype"):
        getattr(ol, name)(ol.asarray(["1", "2"]))
    with pytest.raises(TypeError, match="^`sum` expected numbers, found an array of str"):
        ol.sum(ol.asarray(["1", "2"]), dtype=ol.float32)


@pytest.mark.parametrize("call", [lambda: TEXT < "b", lambda: TEXT + "x", lambda: ol.sort(TEXT)])
def test_text_that_an_op_does_not_take_has_the_name_of_its_dtype_and_no_advice(call):
    with pytest.raises(TypeError, match="found str$"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: ol.asarray([1.5]).astype(str),
        lambda: ol.asarray(ol.asarray([1]), dtype=str),
        lambda: ol.asarray(np.asarray([True]), dtype=str),
    ],
)
def test_numbers_do_not_become_text_by_themselves(call):
    with pytest.raises(TypeError, match=r"expected a dtype of numbers .* found str\nhint: make text of each number, as in `oarlock\.asarray"):
        call()
    with pytest.raises(TypeError, match=r"numbers to make complex ones of, found str\nhint: .*float32"):
        TEXT.astype(ol.complex64)


@pytest.mark.parametrize(
    ("axis", "error", "words"),
    [
        (2, IndexError, "expected a dimension of -2 to before 2, found 2"),
        (-3, IndexError, "expected a dimension of -2 to before 2, found -3"),
        (2**70, IndexError, "expected a dimension of -2 to before 2, found 1180591620717411303424"),
        ((0, -2), ValueError, r"expected each dimension once, found \(0, -2\)"),
        (1.5, TypeError, "expected a whole number as a dimension, found 1.5"),
        ((0, "x"), TypeError, "expected a whole number as a dimension, found 'x'"),
    ],
)
def test_dimensions_that_are_none_are_told(axis, error, words):
    for function in [ol.sum, ol.max, ol.flip, ol.any]:
        with pytest.raises(error, match=words):
            function(ol.ones((2, 3)), axis=axis)


def test_text_is_written_and_chosen_as_text():
    text = ol.asarray(["a", "b"])
    with pytest.raises(TypeError, match="^expected text for an array of str, found a number$"):
        text[0] = 1
    with pytest.raises(TypeError, match="hint: give text in place of numbers"):
        ol.zeros(2, dtype=text.dtype)
    assert ol.full((2,), "", dtype=text.dtype).tolist() == ["", ""]
    mask = ol.asarray([True, False])
    assert ol.where(mask, text, "z").tolist() == ["a", "z"]
    assert ol.where(mask, "z", text).tolist() == ["z", "b"]
