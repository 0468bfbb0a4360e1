"""Models from any source, what is known about them, and their end."""

import asyncio
import io
import threading
from pathlib import Path

import numpy as np
import oarlock as ol
import onnx
import pytest
from conftest import REPOSITORY, same

FILE = REPOSITORY / "docs/src/models/digits.onnx"
IMAGE = np.load(FILE.with_suffix(".npy"))


class Pipe(io.RawIOBase):
    """A file in which one cannot go back."""

    def __init__(self, content):
        self._content = io.BytesIO(content)

    def readable(self):
        return True

    def readinto(self, into):
        return self._content.readinto(into)


@pytest.mark.parametrize(
    "source",
    [
        lambda: FILE,
        lambda: str(FILE),
        lambda: FILE.read_bytes(),
        lambda: bytearray(FILE.read_bytes()),
        lambda: memoryview(FILE.read_bytes()),
        lambda: io.BytesIO(FILE.read_bytes()),
        lambda: Pipe(FILE.read_bytes()),
        lambda: onnx.load(FILE),
    ],
    ids=["path", "text", "bytes", "bytearray", "memoryview", "BytesIO", "pipe", "ModelProto"],
)
def test_a_model_is_loaded_from_any_source(source):
    same(ol.load(source())(IMAGE), ol.load(FILE)(IMAGE).numpy())


def test_an_open_file_is_read_from_its_place():
    with open(FILE, "rb") as stream:
        assert ol.load(stream).graph_name == "digits"
    behind = io.BytesIO(b"something" + FILE.read_bytes())
    behind.seek(9)
    assert ol.load(behind).graph_name == "digits"


def test_arrays_come_from_a_pipe_too():
    content = io.BytesIO()
    ol.save(content, [1, 2])
    same(ol.load(Pipe(content.getvalue())), np.array([1, 2]))
    content = io.BytesIO()
    ol.savez(content, x=[1, 2])
    same(ol.load(Pipe(content.getvalue()))["x"], np.array([1, 2]))


def test_what_is_no_source_is_refused():
    with pytest.raises(TypeError, match="^expected the path of a model or its bytes for `load`, found int\nhint: write the path as text"):
        ol.load(5)
    with pytest.raises(
        TypeError, match='^expected a file of bytes for `load`, found one of text\nhint: open it in the mode "rb"$'
    ):
        ol.load(io.StringIO("text"))
    for empty in (b"", io.BytesIO()):
        with pytest.raises(ValueError, match="expected"):
            ol.load(empty)


@pytest.fixture
def described():
    model = onnx.load(FILE)
    model.producer_name, model.producer_version, model.doc_string = "maker", "7", "Says what a digit is.\nAnd more."
    onnx.helper.set_model_props(model, {"author": "somebody", "license": "MIT"})
    return ol.load(model)


def test_a_model_tells_what_is_known_about_it(described):
    assert described.graph_name == "digits"
    assert described.producer.startswith("maker") and "7" in described.producer
    assert described.opsets == {"ai.onnx": 17}
    assert described.metadata == {"author": "somebody", "license": "MIT"}
    assert described.description == "Says what a digit is.\nAnd more."
    shown = repr(described).splitlines()
    assert shown[0] == "Session((image) -> (probabilities))"
    assert [line.split()[0] for line in shown[1:]] == ["inputs", "outputs", "devices", "graph", "opsets", "metadata", "about"]
    for part in (
        "image float32[batch, 1, 8, 8]",
        "cpu:0",
        "digits by maker",
        "ai.onnx 17",
        "author, license",
        "Says what a digit is.",
    ):
        assert part in repr(described)
    assert "metadata" not in repr(ol.load(FILE)) and "about" not in repr(ol.load(FILE))


def test_a_model_of_many_inputs_is_shown_in_a_few_lines():
    names = [f"a_long_name_of_an_input_{at}" for at in range(100)]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n"]) for name in [*names, "y"]]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Sum", names, ["y"])], "g", ends[:-1], ends[-1:])
    model = ol.load(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8))
    assert "92 more" in repr(model) and max(map(len, repr(model).splitlines())) < 400


def test_a_closed_model_runs_no_more_but_is_still_known():
    with ol.load(FILE) as model:
        expected = model(IMAGE).numpy()
    model.close()
    for call in (
        lambda: model(IMAGE),
        lambda: model.run({"image": IMAGE}),
        lambda: asyncio.run(model.arun({"image": IMAGE})),
        lambda: model.save("nowhere.onnx"),
        lambda: model.explain(IMAGE),
        lambda: model.profile(IMAGE),
        lambda: model.__enter__(),
    ):
        with pytest.raises(
            ol.Error,
            match="^expected a model that is open, found one that was closed\nhint: load it again with `oarlock.load`$",
        ):
            call()
    assert not Path("nowhere.onnx").exists()
    assert isinstance(model, ol.Session) and model.inputs[0].name == "image" and model.graph_name == "digits"
    assert repr(model).startswith("Session((image) -> (probabilities), closed)\n")
    same(ol.load(FILE)(IMAGE), expected)


def test_a_block_closes_the_model_after_an_error():
    with pytest.raises(KeyError), ol.load(FILE) as model:
        raise KeyError
    with pytest.raises(ol.Error, match="^expected a model that is open"):
        model(IMAGE)


def test_runs_that_have_begun_end_when_the_model_is_closed():
    model, outcomes, began = ol.load(FILE), [], threading.Event()

    def work():
        try:
            while True:
                outcomes.append(model(IMAGE).shape)
                began.set()
        except ol.Error as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert began.wait(60)
    model.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert sum(isinstance(each, str) for each in outcomes) == 4
    assert {each[:20] for each in outcomes if isinstance(each, str)} == {"expected a model tha"}
