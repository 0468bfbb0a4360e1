"""The page of the book."""

import textwrap

import tables
from common.markdown import geometric_mean, table
from saved_rows import CASE_FIELDS, SET_NAMES

# A call costs more than this model, so means leave it out.
OVERHEAD_MODEL = "add1"
INT8 = "_int8"
# A peer and the one that takes its place where products may round to bf16.
PEERS = {"onnxruntime": ("onnxruntime",), "OpenVINO": ("openvino", "openvino-default"), "PyTorch": ("pytorch",)}
CASE_HEADS = ["model", "precision", "batch", "threads", "callers"]

PAGE = """# Figures: models beside their peers

The models that `tests/peers/bench_models` makes, with random weights, in turns with onnxruntime and OpenVINO. `scripts/bench` measures
them and writes this page from all rows that this build of the command has on this processor; with `--instruction-set`, it adds rows
for which all runtimes see no better set:

    scripts/bench --models --batches 1,8 --callers 1,4,8 --page docs/src/figures/peers.md

{measured}

- **×** is how many times as fast Oarlock is: for one caller, the median time of a run in the peer over ours; for several, our runs in a
  second over the peer's. It is the median of the rounds' ratios, so it need not be the ratio of the medians beside it. Above 1, Oarlock
  is faster. Columns of a peer have it in parentheses.
- **callers** are threads that call one loaded model at once. They share the threads of the runtime, and as many processors.
- **precision** `bf16` permits products to round; OpenVINO then has default settings, which do so too.
- `-` is a peer that does not run the model. OpenVINO is told the shapes before it compiles, which makes it faster.
- Models named `{int8}` are those without in 8 bits, as onnxruntime's tools quantize them. `{overhead}` is left out of means: its rows
  show what a call costs, from Python for the peers and from Rust for Oarlock.

{parts}
"""


def page(rows):
    """The page from rows of one processor and one build."""
    parts = []
    order = [*SET_NAMES.values()]
    sets = {row["instruction_set"] for row in rows}
    for name in sorted(sets, key=lambda it: (order.index(it) if it in order else len(order), it)):
        parts.append(f"## {name}\n\n{of_set([row for row in rows if row['instruction_set'] == name])}")
    return PAGE.format(
        measured=textwrap.fill(measured(rows), 140), int8=INT8, overhead=OVERHEAD_MODEL, parts="\n\n".join(parts)
    )


def measured(rows):
    """When, where and beside what."""
    dates = sorted({row["date"] for row in rows})
    commits = sorted({row["commit"] for row in rows})
    peers = sorted({f"{name} {version}" for row in rows for name, version in row["peer_versions"].items()})
    date = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    settings = sorted({f"`--rounds {row['rounds']} --seconds {row['seconds']}`" for row in rows})
    return f"{date}, commit {', '.join(commits)}, {rows[0]['processor']}, {', '.join(peers)}, {' or '.join(settings)}."


def of_set(rows):
    """The tables of one instruction set."""
    good = sorted((row for row in rows if not row["error"]), key=case_order)
    failed = [row for row in rows if row["error"]]
    names = [name for name in PEERS if any(figures(row, name) for row in good)]
    parts = ["### Geometric means\n\n" + means(good, names)]
    if eight := eight_bits(good):
        parts.append("### 8 bits beside f32\n\n" + eight)
    behind = sorted((it for it in map(fastest_peer, good) if it and it[2]["ratio"] < 1), key=lambda it: it[2]["ratio"])
    heads = [*CASE_HEADS, "ms", "runs/s", "faster peer", "its ms", "its runs/s", "×"]
    lines = [[*case_cells(row), *times(row["oarlock"]), name, *times(peer), f"{peer['ratio']:.2f}"] for row, name, peer in behind]
    parts.append("### Rows below 1\n\n" + (table(heads, lines) if behind else "None."))
    if failed:
        lines = [[*case_cells(row), row["error"].replace("|", "\\|")] for row in sorted(failed, key=case_order)]
        parts.append("### Models that did not run\n\n" + table([*CASE_HEADS, "error"], lines))
    parts.append("### All rows")
    for group in dict.fromkeys((row["precision"], row["callers"] > 1) for row in good):
        same = [row for row in good if (row["precision"], row["callers"] > 1) == group]
        keys = [key for name in names for key in PEERS[name] if any(key in row["peers"] for row in same)]
        parts += [tables.title(*group), table(tables.heads(group[0], keys, group[1]), [tables.cells(row, keys) for row in same])]
    return "\n\n".join(parts)


def case_order(row):
    return (row["precision"] != "f32", row["callers"], row["batch"], row["threads"], row["model"])


def case_cells(row):
    return [str(row[field]) for field in CASE_FIELDS]


def times(report):
    return [f"{report['median_ms']:.4g}", f"{report['per_s']:.4g}"]


def figures(row, name):
    """The report of a peer by its name on the page."""
    return next((row["peers"][key] for key in PEERS[name] if key in row["peers"]), None)


def fastest_peer(row):
    """The row with the peer that is fastest, if any ran it."""
    found = [(row, name, peer) for name in PEERS if (peer := figures(row, name))]
    return min(found, key=lambda it: it[2]["ratio"], default=None)


def means(rows, names):
    """A line for each kind of run: the mean over each peer, and in how many rows the faster peer is ahead."""
    group_of = lambda row: (row["precision"], row["batch"], row["threads"], row["callers"])
    lines = []
    for group in dict.fromkeys(map(group_of, rows)):
        same = [row for row in rows if group_of(row) == group and row["model"] != OVERHEAD_MODEL]
        cells = [*map(str, group), str(len(same))]
        for name in names:
            ratios = [peer["ratio"] for row in same if (peer := figures(row, name))]
            cells.append(f"{geometric_mean(ratios):.2f} of {len(ratios)}" if ratios else "-")
        cells.append(str(sum(found[2]["ratio"] < 1 for row in same if (found := fastest_peer(row)))))
        lines.append(cells)
    return table([*CASE_HEADS[1:], "models", *(f"× {name}" for name in names), "below 1"], lines)


def eight_bits(rows):
    """How many times as fast each model is in 8 bits as in f32, both in Oarlock."""
    exact = [row for row in rows if row["precision"] == "f32"]
    by_case = {tuple(case_cells(row)): row for row in exact}
    lines, ratios = [], []
    for row in exact:
        plain = by_case.get(tuple(case_cells(row | {"model": row["model"].removesuffix(INT8)})))
        if not row["model"].endswith(INT8) or not plain:
            continue
        gains = [plain["oarlock"]["median_ms"] / row["oarlock"]["median_ms"], row["oarlock"]["per_s"] / plain["oarlock"]["per_s"]]
        ratios.append(gains[row["callers"] > 1])
        name, _, *rest = case_cells(plain)
        lines.append([name, *rest, *times(plain["oarlock"]), *times(row["oarlock"]), f"{ratios[-1]:.2f}"])
    heads = ["model", *CASE_HEADS[2:], "f32, ms", "runs/s", "8 bits, ms", "runs/s", "×"]
    return f"{table(heads, lines)}\n\nThe geometric mean is {geometric_mean(ratios):.2f}." if lines else ""
