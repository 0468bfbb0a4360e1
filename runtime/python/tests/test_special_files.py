"""What is no regular file is written to, and stays what it is."""

import errno
import os
import stat
import threading

import numpy as np
import oarlock as ol
import pytest
from conftest import node_model


@pytest.mark.parametrize(
    ("name", "write", "begin"),
    [
        ("pipe.npy", lambda path: ol.save(path, [1, 2]), b"\x93NUMPY"),
        ("pipe.npz", lambda path: ol.savez_compressed(path, a=[1, 2]), b"PK\x03\x04"),
        ("pipe", lambda path: ol.savetxt(path, [1, 2], fmt="%d"), b"1\n2\n"),
        ("pipe", lambda path: ol.load(node_model("Neg")).save(path), b"\x08"),
    ],
    ids=["save", "savez", "savetxt", "model"],
)
def test_a_pipe_is_written_to_and_not_replaced(tmp_path, name, write, begin):
    path, found = tmp_path / name, []
    os.mkfifo(path)
    # The main end is open for both, so that nobody waits for a reader that never comes.
    end = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    reader = threading.Thread(target=lambda: found.append(os.read(end, 1 << 16)))
    write(path)
    reader.start()
    reader.join()
    os.close(end)
    assert stat.S_ISFIFO(path.stat().st_mode) and os.listdir(tmp_path) == [name]
    assert found[0].startswith(begin)


def test_a_directory_in_the_place_of_a_file_is_an_error(tmp_path):
    (tmp_path / "x.npy").mkdir()
    with pytest.raises(IsADirectoryError, match=r"^`save` expected a file `.*x\.npy`, found a directory\nhint: "):
        ol.save(tmp_path / "x.npy", np.ones(2))
    assert os.listdir(tmp_path) == ["x.npy"]


def test_a_file_in_the_place_of_a_directory_is_an_error(tmp_path):
    (tmp_path / "x").write_text("text")
    with pytest.raises(NotADirectoryError, match="^`save` expected a directory `.*x` to write `y.npy` to, found none\nhint: ") as raised:
        ol.save(tmp_path / "x" / "y", np.ones(2))
    assert raised.value.errno == errno.ENOTDIR and os.listdir(tmp_path) == ["x"]
