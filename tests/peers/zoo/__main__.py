"""Fetches the models of the zoo, checks them against onnxruntime, and measures both; `scripts/zoo --help` explains the options."""

import argparse
import json
import os
import pathlib
import sys
import tempfile

import numpy

# What the comparison of models needs too.
sys.path.append(os.fspath(pathlib.Path(__file__).parents[1]))

import inputs
import report
import rows
from common.processes import RunError
from packages import FetchError, Store
from records import ListError, read_list


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/zoo")
    parser.add_argument("--oarlock", required=True, type=os.path.realpath)
    parser.add_argument("--place", required=True, type=pathlib.Path)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--only", default="")
    parser.add_argument("--kind", default="")
    parser.add_argument("--threads", default=[1, 2], type=lambda text: [int(count) for count in text.split(",")])
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--seconds", default=0.7, type=float)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--offline", action="store_true")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--provisional", default="")
    return parser.parse_args()


def main():
    options = arguments()
    try:
        packages, models = read_list()
    except (ListError, KeyError) as problem:
        sys.exit(f"error: {problem}")
    kinds = sorted({model.kind for model in models})
    if options.kind and options.kind not in kinds:
        sys.exit(f"error: expected a kind of {', '.join(kinds)}, found `{options.kind}`")
    chosen = [it for it in models if options.only in it.name and options.kind in ("", it.kind)]
    if not chosen:
        sys.exit(f"error: expected a model with `{options.only}` in its name, found none; see `scripts/zoo --list`")
    if options.list:
        print(report.list_of(chosen, packages))
        return
    if not os.access(options.oarlock, os.X_OK):
        sys.exit(f"error: `{options.oarlock}`: expected the command `oarlock`, found no such program")
    store = Store(options.place, packages, options.offline)
    saved = rows.Saved(options.place / "rows.json", rows.Machine.here(options.oarlock, options.commit))
    is_done = lambda model: options.kept or options.missing and saved.has(model, [] if options.check else options.threads)
    needed = [model for model in chosen if not is_done(model)]
    for number, model in enumerate(needed, 1):
        print(f"==> [{number}/{len(needed)}] {model.name}", file=sys.stderr, flush=True)
        saved.put(model, rows_of(options, store, model, saved))
    shown = saved.of(models if options.page else chosen)
    if options.json:
        print(json.dumps([row for _, found in shown for row in found]))
    elif options.page:
        options.page.write_text(report.page(shown, packages, saved.machine, options.provisional))
    else:
        print(report.tables(shown))
    if any(row["error"] for _, found in shown for row in found):
        sys.exit(1)


def rows_of(options, store, model, saved):
    """The rows of a model, one for each run; a model that cannot be fetched has one row with the error."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        try:
            path = store.model(model)
            twin = rows.onnx_twin(options.oarlock, path, folder)
        except (FetchError, RunError) as problem:
            return [rows.failed(model, 0, "", problem)]
        found = []
        for index in range(len(model.runs)):
            given = folder / "inputs.npz"
            try:
                arrays = inputs.make(model, twin, index)
            except inputs.InputError as problem:
                found.append(rows.failed(model, index, "", problem))
                continue
            numpy.savez(given, **arrays)
            checked = saved.checked(model, index) if options.missing else None
            found.append(rows.row(options, model, index, path, twin, given, inputs.shown(arrays), folder, checked))
        return found


if __name__ == "__main__":
    main()
