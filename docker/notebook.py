#!/usr/bin/python3
"""Serves the Oarlock tutorial, and any other notebooks in the directory mounted at /work.

    docker run --publish 8888:8888 --volume $PWD:/work oarlock:VERSION-notebook

PASSWORD sets the password; without one, a random token is generated and printed. PORT sets the port, 8888 by default.
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
    """The port to listen on."""
    text = os.environ.get("PORT") or "8888"
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        sys.exit(f"error: PORT: expected a number from 1 to 65535, found `{text}`")
    return int(text)


def password():
    """The password, if any. Programs in notebooks do not inherit the variable, but they could read it from the first process."""
    said = [os.environ.pop(name, "") for name in ("PASSWORD", "USER_PASSWD")]
    return said[0] or said[1]


def put_tutorial():
    """Copies the tutorial to the work directory. Existing files are never overwritten."""
    place = WORK / "tutorial"
    try:
        place.mkdir(exist_ok=True)
        for file in TUTORIAL.iterdir():
            with contextlib.suppress(FileExistsError), (place / file.name).open("xb") as new:
                new.write(file.read_bytes())
        tempfile.TemporaryFile(dir=WORK).close()
    except OSError as error:
        sys.exit(
            f"error: expected to write to `{WORK}`, where notebooks are kept, found: {error}; run the container as the owner "
            "of the mounted directory: docker run --user $(id --user):$(id --group) …"
        )


def choose_home():
    """A directory for Jupyter's temporary files: the user may have no home, or one without access."""
    home = os.environ.get("HOME", "")
    if not os.access(home, os.W_OK) or home == "/":
        try:
            os.environ["HOME"] = tempfile.mkdtemp(prefix="home-")
        except OSError as error:
            sys.exit(f"error: expected a directory for temporary files, found: {error}; add --tmpfs /tmp")


def serve():
    choose_home()
    put_tutorial()
    # Both read the home directory on import.
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
    """The health check: whether the page is served or, in a container that runs something else, whether Oarlock works."""
    if b"oarlock-notebook" not in pathlib.Path("/proc/1/cmdline").read_bytes():
        # Not `doctor`, which fails if the driver of an installed plugin is missing.
        os.execlp("oarlock", "oarlock", "devices")
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
