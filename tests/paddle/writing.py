"""Shared by both exports: a model that cannot be written does not stop the export, and is reported at the end."""

import pathlib
import sys


def write_all(make_file, models, what):
    """Writes models to the directory that the command line names; each is a name and a function that writes it."""
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    failed = []
    with make_file(directory) as file:
        for name, write in models:
            try:
                write(file)
            except Exception as error:
                failed.append((name, str(error)[-1000:]))
        print(f"paddle: {file.written} {what}")
    for name, error in failed:
        print(name, error.replace("\n", " "))
    if failed:
        sys.exit("error: not all models could be written")
    for ending in [".bin", ".jsonl"]:
        (directory / "unfinished").with_suffix(ending).replace((directory / "models").with_suffix(ending))
