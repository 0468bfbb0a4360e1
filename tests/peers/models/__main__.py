"""Runs models in Oarlock and other runtimes in turn, and prints a comparison; `scripts/bench --help` explains the options.

The models are DIR/NAME.onnx with NAME.inputs.npz beside them, and NAME.batch8.npz where a batch of 8 is measured too. Each
measurement is a separate process, bound to as many processors as it has threads; in each round, all runtimes take turns. Tables
have the medians over the rounds of each runtime's medians, and the medians of the ratios. Peak memory is that of the whole
process, which includes some 45 MB for Python and NumPy in the other runtimes.

With `--instruction-set`, all runtimes believe that the processor has nothing beyond that set. That takes gcc and an Intel
processor that can trap CPUID; `cpuid_mask.c` says how.

There are tables for each precision. If products may round to bf16, the peer is OpenVINO with default settings, which uses bf16
on processors that have it; the last column is the difference of our outputs from those in f32.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
# What the zoo needs too.
sys.path.append(os.fspath(HERE.parent))

from common.markdown import table, table_line

import page
import tables
from measuring import MeasuredCase, find_models, inputs_of, measure, peers_for
from saved_rows import SET_NAMES, MeasuringPlace, SavedRows

PEERS = ["onnxruntime", "openvino", "pytorch"]
PRECISIONS = ["f32", "bf16"]


def numbers(text):
    found = text.split(",")
    if not all(number.isdecimal() and int(number) > 0 for number in found):
        raise argparse.ArgumentTypeError(f"expected numbers from 1, such as `1,8`, found `{text}`")
    return [int(number) for number in found]


def words_of(allowed):
    """Reads a list of words."""

    def words(text):
        found = text.split(",")
        for word in found:
            if word not in allowed:
                raise argparse.ArgumentTypeError(f"expected {', '.join(allowed)}, found `{word}`")
        return found

    return words


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench", usage="scripts/bench --models [DIR] [OPTION…]; see scripts/bench --help")
    parser.add_argument("--oarlock", required=True, type=os.path.realpath)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--rows", required=True, type=pathlib.Path)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--threads", default=[1, 2], type=numbers)
    parser.add_argument("--batches", default=[1], type=numbers)
    parser.add_argument("--callers", default=[1], type=numbers)
    parser.add_argument("--peers", default=PEERS[:2], type=words_of(PEERS))
    parser.add_argument("--precisions", default=PRECISIONS, type=words_of(PRECISIONS))
    parser.add_argument("--rounds", default=5, type=int)
    parser.add_argument("--seconds", default=2.0, type=float)
    parser.add_argument("--only", default="")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--instruction-set", choices=SET_NAMES)
    return parser.parse_args()


def main():
    options = arguments()
    paths = find_models(options.models, options.only)
    if not paths:
        named = f" with `{options.only}` in their names" if options.only else ""
        sys.exit(f"error: `{options.models}`: expected NAME.onnx and NAME.inputs.npz{named} in it, found none")
    if not any(inputs_of(path, batch).exists() for path in paths for batch in options.batches):
        wanted = ", ".join(f"`{inputs_of(paths[0], batch).name}`" for batch in options.batches)
        sys.exit(f"error: `{options.models}`: expected inputs such as {wanted} in it, found none; `--batches` names others")
    saved = SavedRows(options.rows, MeasuringPlace.here(options.oarlock, options.instruction_set, options.commit))
    with tempfile.TemporaryDirectory() as folder:
        if options.instruction_set:
            hide_instruction_sets(options.instruction_set, folder)
        rows = [row for precision in options.precisions for row in measure_all(options, paths, precision, saved)]
    if options.json:
        print(json.dumps(rows))
    if options.page:
        options.page.write_text(page.page(saved.of_build()))
    if any(row["error"] for row in rows):
        sys.exit(1)


def hide_instruction_sets(best, folder):
    """Hides everything beyond a set from the processes that this one starts."""
    mask = f"{folder}/cpuid_mask.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", HERE.parent / "cpuid_mask.c", "-o", mask], check=True)
    os.environ.update(CPUID_MASK=best, LD_PRELOAD=mask)


def measure_all(options, paths, precision, saved):
    """Measures all models in one precision, and prints each row: a table for one caller, and a table for several."""
    peers = peers_for(options, precision)
    all_rows = []
    for is_shared in (False, True):
        callers = [count for count in options.callers if (count > 1) == is_shared]
        if not callers:
            continue
        if not options.json:
            print(f"{tables.title(precision, is_shared)}\n\n{table(tables.heads(precision, peers, is_shared), [])}", flush=True)
        rows = []
        for path, case in cases(paths, precision, options, callers):
            kept = saved.find(case, peers) if options.missing else None
            row = kept or measure(options, path, case)
            if not kept:
                saved.put(row)
            rows.append(row)
            if not options.json:
                print(table_line(tables.cells(row, peers)), flush=True)
        if not options.json:
            print(f"\n{tables.means(rows, peers)}\n", flush=True)
        all_rows += rows
    return all_rows


def cases(paths, precision, options, callers):
    """What to measure: models without inputs for a batch have no rows for it."""
    for count in callers:
        for threads in options.threads:
            for batch in options.batches:
                for path in paths:
                    if inputs_of(path, batch).exists():
                        yield path, MeasuredCase(path.stem, precision, batch, threads, count)


if __name__ == "__main__":
    main()
