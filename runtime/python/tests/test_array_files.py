"""Files of arrays: NumPy reads what Oarlock writes and the other way round, and nothing hostile gets in."""

import io
import os
import zipfile

import numpy as np
import oarlock as ol
import pytest
from conftest import child, same
from hypothesis import given as drawn
from hypothesis import strategies as st

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
SHAPES = [(), (1,), (3,), (0,), (2, 0, 3), (2, 3), (123456,), (2, 3, 4)]


def some(dtype, *shape):
    made = 100 * np.random.default_rng(0).normal(size=shape)
    return np.asarray(made + 1j * made[..., ::-1] if np.dtype(dtype).kind == "c" and shape else made).astype(dtype)


def file_of(*arrays, save=np.save, **named):
    made = io.BytesIO()
    save(made, *arrays, **named)
    made.seek(0)
    return made


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "complex128"])
def test_a_file_of_an_array_is_that_of_numpy_to_the_last_byte(dtype, tmp_path):
    for shape in SHAPES:
        array = some(dtype, *shape)
        written = file_of(ol.asarray(array), save=ol.save).getvalue()
        assert written == file_of(array).getvalue()
        same(ol.load(io.BytesIO(written)), array)
        path = tmp_path / "array"
        ol.save(path, array)
        assert not path.exists()
        same(ol.load(f"{path}.npy"), np.load(f"{path}.npy"))
    transposed = ol.asarray(some(dtype, 3, 4)).mT
    same(ol.load(file_of(transposed, save=ol.save)), transposed.numpy())


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "complex128", "<U5"])
@pytest.mark.parametrize("shape", SHAPES)
def test_any_order_of_axes_and_bytes_is_read(dtype, shape):
    array = some("int8", *shape).astype(dtype)
    for each in (array, np.asfortranarray(array)):
        for order in "<>":
            found = ol.load(file_of(each.astype(each.dtype.newbyteorder(order))))
            assert found.shape == each.shape
            assert found.tolist() == each.tolist()


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_any_version_of_the_format_is_read(version):
    made = io.BytesIO()
    np.lib.format.write_array(made, some("float32", 2, 3), version=version)
    same(ol.load(made.getvalue()), some("float32", 2, 3))


def test_text_and_narrow_numbers_are_kept():
    texts = [["a", "öß"], ["", "a longer 🚣"]]
    written = file_of(ol.asarray(texts), save=ol.save)
    assert np.load(written).tolist() == texts
    assert ol.load(written.getvalue()).tolist() == texts
    assert ol.load(file_of(ol.full((0, 2), ""), save=ol.save)).shape == (0, 2)
    narrow = ol.asarray([1.5, -2.0, float("inf")]).astype(ol.bfloat16)
    again = ol.load(file_of(narrow, save=ol.save))
    assert again.dtype == ol.bfloat16 and again.tolist() == narrow.tolist()
    with pytest.raises(
        TypeError, match="^`save` expected a dtype that NumPy's format has, found float8_e4m3fn\nhint: convert it"
    ):
        ol.save(io.BytesIO(), narrow.astype("float8_e4m3fn"))


def test_several_arrays_follow_each_other_in_one_file():
    made = io.BytesIO()
    for size in (3, 0, 2):
        ol.save(made, np.arange(size))
    made.seek(0)
    assert [ol.load(made).tolist() for _ in range(3)] == [[0, 1, 2], [], [0, 1]]


@pytest.mark.parametrize("save", ["savez", "savez_compressed"])
def test_arrays_have_names_in_one_file(save, tmp_path):
    named = {"weights": some("float32", 3, 4), "rows": some("int8", 2), "ö": some("bool", 3), "empty": some("float64", 0)}
    getattr(ol, save)(tmp_path / "ours", some("int16", 5), 2.5, **named)
    getattr(np, save)(tmp_path / "theirs", some("int16", 5), np.float32(2.5), **named)
    expected = {"arr_0": some("int16", 5), "arr_1": np.float32(2.5), **named}
    with np.load(tmp_path / "ours.npz") as read:
        assert set(read.files) == set(expected)
        for name, array in expected.items():
            assert read[name].dtype == array.dtype and np.array_equal(read[name], array)
    for path in ("ours.npz", "theirs.npz"):
        with ol.load(tmp_path / path) as read:
            assert set(read.files) == set(read) == set(expected) and len(read) == 6
            for name, array in expected.items():
                same(read[name], array)
            assert "weights" in read and "weights.npy" in read and "other" not in read
            same(read["weights.npy"], expected["weights"])
            assert {name: x.shape for name, x in read.items()} == {name: x.shape for name, x in expected.items()}
            assert repr(read).startswith("NpzFile('") and "weights" in repr(read)
            with pytest.raises(KeyError, match="expected one of .*`weights`.*, found `other`"):
                read["other"]
        with pytest.raises(ValueError, match="^expected a file that is open, found one that was closed\nhint"):
            read["weights"]
    for given in ((tmp_path / "ours.npz").read_bytes(), open(tmp_path / "ours.npz", "rb")):  # noqa: SIM115
        with ol.load(given) as read:
            same(read["ö"], expected["ö"])
    given.close()
    with pytest.raises(ValueError, match=f"^`{save}` expected another name than `arr_0`"):
        getattr(ol, save)(io.BytesIO(), 1, arr_0=2)
    assert ol.load(file_of(file=[1], save=getattr(ol, save)))["file"].tolist() == [1]
    assert len(file_of(np.zeros(9999), save=ol.savez_compressed).getvalue()) < 1000


def test_a_file_without_arrays_is_empty_and_a_zip_of_something_else_is_refused(tmp_path):
    assert ol.load(file_of(save=ol.savez)).files == []
    for name, found in [
        ("notes.txt", "`notes.txt` in it\nhint: export a model"),
        ("m/data.pkl", "a file of PyTorch\nhint: export a model by `torch.onnx.export`"),
        ("model.weights.h5", "a model of Keras\nhint: load it with Keras"),
        ("a/model.onnx", "an ONNX model in it\nhint: unpack"),
        ("[Content_Types].xml", "a document of an office program\nhint: .*pandas"),
    ]:
        with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
            archive.writestr(name, b"")
        with pytest.raises(ValueError, match=f"^expected a ZIP of arrays in the format `.npy`, found {found}"):
            ol.load(tmp_path / "other.zip")


def test_a_file_of_another_kind_says_what_reads_it(tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n3,4\n")
    with pytest.raises(ValueError, match=r"found a text\nhint: `oarlock.loadtxt\(file, delimiter=\",\"\)` reads the numbers .* `.csv`$"):
        ol.load(tmp_path / "x.csv")
    with pytest.raises(FileNotFoundError):
        ol.load(tmp_path / "none.csv")
    for name, found in [("m/data.pkl", "a whole file, found a file of PyTorch"), ("x.npy", "a file in the format `.npz`, found one")]:
        with zipfile.ZipFile(tmp_path / "cut.pt", "w") as archive:
            archive.writestr(name, bytes(1000))
        content = (tmp_path / "cut.pt").read_bytes()[:500]
        (tmp_path / "cut.pt").write_bytes(content)
        for file in (tmp_path / "cut.pt", content):
            with pytest.raises(ValueError, match=f"^expected {found} that is broken: "):
                ol.load(file)


def test_a_file_is_replaced_only_as_a_whole(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    ol.save(path, [1, 2])
    before = path.read_bytes()

    class Full(io.FileIO):
        def write(self, _):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("builtins.open", lambda name, mode: Full(name, mode.replace("b", "")))
    for call in (
        lambda: ol.save(path, np.ones(1000)),
        lambda: ol.savez(tmp_path / "x.npz", np.ones(9)),
        lambda: ol.savetxt(path, [1]),
    ):
        with pytest.raises(OSError, match="No space left"):
            call()
    monkeypatch.undo()
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["x.npy"]
    missing = r"expected a directory `.*nowhere` to write `x\.npy` to, found none\nhint: make it by `os\.makedirs\("
    with pytest.raises(FileNotFoundError, match=f"^`save` {missing}"):
        ol.save(tmp_path / "nowhere" / "x", 1)
    with pytest.raises(
        TypeError, match="^`save` expected the path of a file, or an object to write to, found Tensor\nhint: the file comes"
    ):
        ol.save(ol.ones(2), str(path))


def npy(header, content=b"", version=b"\x01\x00", size=None):
    text = header.encode("latin1")
    return b"\x93NUMPY" + version + (len(text) if size is None else size).to_bytes(2, "little") + text + content


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"

HOSTILE = {
    "expected 8 bytes for the start of an array, found 7": b"\x93NUMPY\x01",
    "expected a version of the format from 1 to 3, found 9": npy(GOOD, version=b"\x09\x00"),
    "expected 2 bytes for the size of a header, found 1": b"\x93NUMPY\x01\x00\x05",
    "expected 300 bytes for a header, found": npy(GOOD, size=300),
    "expected a header of at most 10000 bytes, found 65535": npy(GOOD, size=65535),
    "expected 8 bytes for elements of the shape .*, found 4": npy(GOOD, bytes(4)),
    "expected 4000000000000 bytes for elements": npy(GOOD.replace("(2,)", "(1000000000000,)"), bytes(100)),
    "expected a shape that memory has": npy(GOOD.replace("(2,)", "(99999999999, 9999999999)")),
    "expected a shape that memory has, found ": npy(GOOD.replace("(2,)", "(2,,3)")),
    "expected the header of an array, .* found '{'descr'": npy(GOOD.replace("(2,)", "(-2,)")),
    "expected the header of an array, .* found \"\\{'descr'": npy(GOOD.replace("(2,)", "2")),
    "expected the header of an array, .*__import__": npy(GOOD.replace("False", "__import__('os')")),
    "expected the header of an array, .* found 'nothing'": npy("nothing"),
    "expected the header of an array, .* found ''": npy(""),
    "expected the header of an array, .*more": npy(GOOD + " more"),
    "expected the header of an array, .*other": npy(GOOD.replace("shape", "other")),
    "expected the header of an array, with": npy(GOOD.replace("'fortran_order': False, ", "")),
}


@pytest.mark.parametrize("message", HOSTILE)
def test_a_file_with_a_wrong_header_or_too_few_elements_is_refused(message, tmp_path):
    if message.endswith("'{'descr'"):
        message = "expected the header of an array, .*-2"
        content = HOSTILE["expected the header of an array, .* found '{'descr'"]
    else:
        content = HOSTILE[message]
    (tmp_path / "x.npy").write_bytes(content)
    for source in (content, tmp_path / "x.npy", io.BytesIO(content)):
        with pytest.raises(ValueError, match=f"^{message}"):
            ol.load(source)


def test_a_large_array_of_which_little_is_there_costs_little_memory():
    code = f"""
        import resource, oarlock as ol
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        try:
            ol.load({npy(GOOD.replace("(2,)", "(2000000000,)"), bytes(100))!r})
        except ValueError as error:
            print(error)
    """
    assert child(code).startswith("expected 8000000000 bytes")


def test_objects_and_fields_are_refused():
    for array, message in (
        (
            np.array([{}, None], object),
            "expected numbers or text, found pickled objects, which may run any code\nhint: if you trust",
        ),
        (np.zeros(2, [("a", "f4"), ("b", "i4")]), "expected elements of one dtype, found several fields\nhint"),
        (np.array(["2020-01-01"], "M8[D]"), r"expected a dtype of numbers or text, found `<M8\[D\]`\nhint"),
        (np.array([b"ab"]), r"expected a dtype of numbers or text, found `\|S2`\nhint"),
        (np.zeros(2, np.longdouble), "expected a dtype of numbers or text, found `<f16`\nhint"),
    ):
        content = file_of(array, allow_pickle=True).getvalue()
        with pytest.raises(TypeError, match=f"^{message}"):
            ol.load(content)
        with pytest.raises(TypeError, match=f"^{message}"):
            ol.load(file_of(array, save=np.savez))["arr_0"]


def test_a_memory_map_is_refused_with_what_to_use(tmp_path):
    ol.save(tmp_path / "x", [1])
    with pytest.raises(ValueError, match="^`load` expected no `mmap_mode`, found 'r'\nhint: `oarlock.asarray"):
        ol.load(tmp_path / "x.npy", "r")


SEEDS = [
    file_of(some("float32", 2, 3)).getvalue(),
    file_of(np.array(["ab", "c"])).getvalue(),
    file_of(some("float32", 30), x=some("int8", 3), save=np.savez).getvalue(),
    file_of(some("float32", 30), x=some("int8", 3), save=np.savez_compressed).getvalue(),
]


@drawn(st.sampled_from(SEEDS), st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=5), st.integers(0, 2000))
def test_a_damaged_file_gives_arrays_or_an_error_that_is_meant(seed, changes, end):
    damaged = bytearray(seed)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    if end < len(damaged):
        del damaged[end:]
    try:
        loaded = ol.load(damaged)
        arrays = [loaded[name] for name in loaded] if hasattr(loaded, "files") else [loaded]
        assert all(isinstance(x, ol.Tensor) for x in arrays)
    except (ValueError, TypeError) as error:
        # Errors of codecs and of the standard library are of the same classes, but do not say what was expected.
        assert "expected" in str(error), repr(error)


@pytest.mark.parametrize("save", ["savez", "savez_compressed"])
def test_an_element_that_changed_is_found(save):
    content = bytearray(file_of(x=np.zeros(100), save=getattr(ol, save)).getvalue())
    # Behind the names and sizes at the start, and before those at the end.
    content[len(content) // 2 if save == "savez" else content.index(b"x.npy") + 90] ^= 1
    with pytest.raises(ValueError, match="^expected .*, found a broken part of the file"):
        ol.load(content)["x"]


def test_arrays_are_saved_and_read_without_numpy(tmp_path):
    code = f"""
        import sys
        sys.modules["numpy"] = None
        import oarlock as ol
        ol.savez({str(tmp_path / "x")!r}, ol.asarray([1.5, 2.0]), text=ol.asarray(["a"]), z=ol.asarray([1j]))
        read = ol.load({str(tmp_path / "x.npz")!r})
        print(read["arr_0"].tolist(), read["text"].tolist(), read["z"].tolist())
    """
    assert child(code).strip() == "[1.5, 2.0] ['a'] [1j]"


def test_functions_of_numpy_write_arrays_of_oarlock(tmp_path):
    x = ol.asarray([[1.5, 2.0]])
    np.save(tmp_path / "x", x, allow_pickle=False)
    np.savez(tmp_path / "x", x, y=x, allow_pickle=False)
    np.savetxt(tmp_path / "x.txt", x)
    same(ol.load(tmp_path / "x.npy", None, True), x.numpy())
    assert ol.load(tmp_path / "x.npz").files == np.load(tmp_path / "x.npz").files == ["y", "arr_0"]
    assert np.loadtxt(tmp_path / "x.txt").tolist() == [1.5, 2.0]


@pytest.mark.parametrize("name", ["frombuffer", "fromfile", "fromstring"])
def test_functions_that_are_absent_name_others(name):
    with pytest.raises(AttributeError, match=f"^module `oarlock` has no `{name}`\nhint: use `oarlock"):
        getattr(ol, name)
