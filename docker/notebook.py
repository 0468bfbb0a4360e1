#!/usr/bin/python3
"""Serves the tutorial of Oarlock, and what else lies in the directory that is mounted at /work, as notebooks.

    docker run --publish 8888:8888 --volume $PWD:/work oarlock:VERSION-notebook

PASSWORD says what is asked for; without one a token is made up and printed. PORT says where it listens, 8888 if it does not.
USER_PASSWD means the same as PASSWORD, for those who know that from images of PaddlePaddle.
"""

import contextlib
import os
import pathlib
import sys
import tempfile
import urllib.request

TUTORIAL = pathlib.Path("/usr/share/oarlock/notebooks")
WORK = pathlib.Path("/work")


def port():
    """Where it listens."""
    text = os.environ.get("PORT") or "8888"
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        sys.exit(f"error: PORT: expected a number from 1 to 65535, found `{text}`")
    return int(text)


def password():
    """What is asked for, if anything. Programs in notebooks do not inherit it; who has them run may read it of the first process."""
    said = [os.environ.pop(name, "") for name in ("PASSWORD", "USER_PASSWD")]
    return said[0] or said[1]


def put_tutorial():
    """Puts the tutorial where work is kept. What is there stays, so that nothing of anybody is written over."""
    place = WORK / "tutorial"
    try:
        place.mkdir(exist_ok=True)
        for file in TUTORIAL.iterdir():
            with contextlib.suppress(FileExistsError), (place / file.name).open("xb") as new:
                new.write(file.read_bytes())
        tempfile.TemporaryFile(dir=WORK).close()
    except OSError as error:
        sys.exit(
            f"error: expected to write to `{WORK}`, where notebooks are kept, found: {error}; run this as whom the mounted "
            "directory belongs to: docker run --user $(id --user):$(id --group) …"
        )


def choose_home():
    """Where Jupyter keeps what it needs while it runs: who runs this may have no home, or one that is closed to them."""
    home = os.environ.get("HOME", "")
    if not os.access(home, os.W_OK) or home == "/":
        try:
            os.environ["HOME"] = tempfile.mkdtemp(prefix="home-")
        except OSError as error:
            sys.exit(f"error: expected a directory for what is needed for a moment, found: {error}; add --tmpfs /tmp")


def serve():
    choose_home()
    put_tutorial()
    # Both look at the home when they are imported.
    from notebook.auth import passwd
    from notebook.notebookapp import NotebookApp
    from traitlets.config import Config

    config = Config()
    config.NotebookApp.update(
        ip="0.0.0.0",
        port=port(),
        port_retries=0,
        open_browser=False,
        quit_button=False,
        notebook_dir=str(WORK),
        default_url="/tree/tutorial",
        terminado_settings={"shell_command": ["/bin/bash"]},
    )
    secret = password()
    if secret:
        config.NotebookApp.update(password=passwd(secret), token="")
    NotebookApp.launch_instance(argv=[], config=config)


def check():
    """Says whether the page is there, or, where a container does something else, whether Oarlock works."""
    if b"oarlock-notebook" not in pathlib.Path("/proc/1/cmdline").read_bytes():
        os.execlp("oarlock", "oarlock", "doctor")
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port()}/api", timeout=5).close()
    except OSError as error:
        sys.exit(f"error: expected a page at port {port()}, found: {error}")


match sys.argv[1:]:
    case []:
        serve()
    case ["--check"]:
        check()
    case arguments:
        sys.exit(f"error: expected nothing or `--check`, found `{' '.join(arguments)}`\n\n{__doc__}")
