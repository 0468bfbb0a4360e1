"""Tables of the zoo in Markdown."""

import textwrap

import running
from common.markdown import geometric_mean, table
from rows import distance_text

HEADS = ["model", "kind", "inputs", "threads", "ms", "× onnxruntime", "start, ms", "× onnxruntime", "peak, MiB", "onnxruntime, MiB"]
HEADS += ["difference", "most time in"]


def list_of(models, packages):
    """The models as a table, with where each comes from."""
    rows = []
    for model in models:
        package = packages[model.packages[0]]
        rows.append([model.name, model.kind, f"{package.registry}: {package.label}", package.license, str(len(model.runs)), model.note])
    return table(["model", "kind", "package", "license", "runs", "note"], rows)


def timed(shown):
    """Every measurement: the row, the threads and the figures."""
    return [(row, threads, times) for _, rows in shown for row in rows for threads, times in row["threads"].items()]


def line(row, threads, times):
    return [
        row["model"],
        row["kind"],
        row["shapes"].replace("|", "\\|"),
        threads,
        f"{times['ms']:.4g}",
        f"{times['ratio']:.2f}",
        f"{times['start_ms']:.4g}",
        f"{times['start_ratio']:.2f}",
        f"{times['peak_mb']:.0f}",
        f"{times['peer_peak_mb']:.0f}",
        far(row["difference"]),
        ", ".join(f"{it['op']} {it['share']:.0%}" for it in times["ops"][:3]),
    ]


def far(difference):
    return "same" if difference == 0 else distance_text(difference)


def means(shown):
    """Geometric means for each kind and of all, for each number of threads."""
    found = timed(shown)
    counts = sorted({threads for _, threads, _ in found}, key=int)
    rows = []
    for kind in [*sorted({row["kind"] for row, _, _ in found}), "all"]:
        cells = [kind, str(len({row["model"] for row, _, _ in found if kind in ("all", row["kind"])}))]
        for count in counts:
            ratios = [times["ratio"] for row, threads, times in found if threads == count and kind in ("all", row["kind"])]
            behind = sum(ratio < 1 for ratio in ratios)
            cells += [str(len(ratios)), f"{geometric_mean(ratios):.2f}", str(behind)] if ratios else ["0", "", ""]
        rows.append(cells)
    heads = ["kind", "models"]
    for count in counts:
        heads += [f"rows, {count} thread{'s' * (count != '1')}", "geometric mean", "below 1"]
    return table(heads, rows)


def tables(shown):
    """All tables: means, rows below 1, other rows, failures and differences."""
    found = sorted(timed(shown), key=lambda it: it[2]["ratio"])
    behind = [line(*it) for it in found if it[2]["ratio"] < 1]
    ahead = [line(*it) for it in sorted(found, key=lambda it: (it[0]["kind"], it[0]["model"])) if it[2]["ratio"] >= 1]
    rows = [row for _, rows in shown for row in rows]
    errors = [[row["model"], row["shapes"], row["error"].replace("|", "\\|")] for row in rows if row["error"]]
    apart = [
        [row["model"], row["shapes"], far(row["difference"]), row["explained"]]
        for row in rows
        if not row["error"] and (row["difference"] is None or row["difference"] > running.TOLERANCE)
    ]
    parts = []
    if found:
        parts += ["## Geometric means\n\n" + means(shown)]
        parts += ["## Rows below 1\n\n" + table(HEADS, behind) if behind else "## Rows below 1\n\nNone."]
    if errors:
        parts.append("## Models that did not run\n\n" + table(["model", "inputs", "error"], errors))
    if apart:
        heads = ["model", "inputs", "difference", "what explains it"]
        parts.append(f"## Differences over {running.TOLERANCE:g}\n\n" + table(heads, apart))
    same = sum(not row["error"] for row in rows) - len(apart)
    parts.append(f"{len(rows)} runs of {len(shown)} models: {same} agree, {len(apart)} differ, {len(errors)} did not run.")
    if ahead:
        parts.append("## The other rows\n\n" + table(HEADS, ahead))
    return "\n\n".join(parts)


PAGE = """# Figures: the zoo

Published models from packages of PyPI and npm, each with several shapes, in turns with onnxruntime. `tests/peers/zoo.toml` lists
them; `scripts/zoo` fetches them and writes this page:

    scripts/zoo --page docs/src/figures/zoo.md

{measured}

- **ms** is the median of a run in f32 or as the model says. **× onnxruntime** is its time over ours: above 1, Oarlock is faster.
- **start** is loading and the first run. **peak** is the memory of the whole process up to then; onnxruntime's includes Python and NumPy.
- **difference** is the largest one between our output and onnxruntime's over the largest element of that output. Where it exceeds
  {tolerance:g}, the page says how far onnxruntime is from itself without optimizations and on one thread, and how far both are from an
  evaluation in float64. Dynamic quantization and sorting turn the last bit of an intermediate value into large differences.
- Models named `light-` are architectures whose weights are constants, as the tests of ONNX have them.
- Paddle models are checked as they are and timed as the ONNX model that `oarlock optimize --plain` makes of them, since onnxruntime does
  not read them.

{tables}

## The packages

{packages}
"""


def settings(shown):
    """How long each run was measured."""
    found = sorted({(row["rounds"], row["seconds"]) for _, rows in shown for row in rows if row["threads"]})
    return " ".join(f"`--rounds {rounds} --seconds {seconds}`: medians of rounds in which each runtime had {seconds} s." for rounds, seconds in found)


def page(shown, packages, machine, provisional):
    """The page of the book."""
    names = {name for model, _ in shown for name in model.packages}
    rows = [
        [package.name, package.registry, package.version, package.license, str(sum(name in model.packages for model, _ in shown))]
        for name, package in sorted(packages.items())
        if name in names
    ]
    dates = sorted({row["date"] for _, found in shown for row in found})
    date = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    measured = f"{date}, commit {machine.commit}, {machine.processor}, onnxruntime {machine.onnxruntime}. {settings(shown)}"
    if provisional:
        measured += f" **Provisional**: {provisional}."
    return PAGE.format(
        measured=textwrap.fill(measured, 140),
        tolerance=running.TOLERANCE,
        tables=tables(shown),
        packages=table(["package", "registry", "version", "license", "models"], rows),
    )
