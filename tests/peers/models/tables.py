"""Rows as tables while they are measured."""

from common.markdown import geometric_mean
from measuring import PERCENTILES, ready

NONE = "-"


def title(precision, is_shared):
    return f"{precision}, {'several callers' if is_shared else 'one caller'}:"


def heads(precision, peers, is_shared):
    """The heads of a table: for one caller with starts and memory, for several with percentiles."""
    case = ["model", "batch", "threads"]
    if is_shared:
        found = [*case, "callers", "runs/s", "p50, ms", "p90, ms", "p99, ms"]
        for peer in peers:
            found += [f"{peer}, runs/s", "p50, ms", "p90, ms", "p99, ms"]
        return found
    found = [*case, "ms", *peers, "load + first run, ms", *peers, "peak of weights + arena, MB", *peers]
    return found if precision == "f32" else [*found, "difference from f32"]


def cells(row, peers):
    """A row of the table with these heads."""
    case = [row["model"], str(row["batch"]), str(row["threads"])]
    is_shared = row["callers"] > 1
    if is_shared:
        case.append(str(row["callers"]))
    if row["error"]:
        return [*case, "did not run", *[NONE] * (len(heads(row["precision"], peers, is_shared)) - len(case) - 1)]
    return [*case, *(shared_cells(row, peers) if is_shared else single_cells(row, peers))]


def single_cells(row, peers):
    own, found = row["oarlock"], [row["peers"].get(peer) for peer in peers]
    shown = [f"{own['median_ms']:.4g}"]
    shown += [f"{it['median_ms']:.4g} ({it['ratio']:.2f}×)" if it else NONE for it in found]
    shown.append(f"{ready(own):.4g}")
    shown += [f"{it['start_ratio']:.2f}×" if it else NONE for it in found]
    shown.append(f"{own['peak_mb']:.0f} of {own['weights_mb']:.0f} + {own['arena_mb']:.0f}")
    shown += [f"{it['peak_mb']:.0f}" if it else NONE for it in found]
    if row["precision"] != "f32":
        shown.append(NONE if own["difference"] is None else f"{own['difference']:.1e}")
    return shown


def shared_cells(row, peers):
    own = row["oarlock"]
    shown = [f"{own['per_s']:.4g}", *(f"{own[key]:.4g}" for key in PERCENTILES)]
    for it in (row["peers"].get(peer) for peer in peers):
        shown.append(f"{it['per_s']:.4g} ({it['ratio']:.2f}×)" if it else NONE)
        shown += [f"{it[key]:.4g}" if it else NONE for key in PERCENTILES]
    return shown


def means(rows, peers):
    """The geometric mean over each peer, a line for each number of threads, batch and number of callers."""
    lines = []
    for threads, batch, callers in sorted({(row["threads"], row["batch"], row["callers"]) for row in rows}):
        same = [row for row in rows if (row["threads"], row["batch"], row["callers"]) == (threads, batch, callers)]
        for peer in peers:
            ratios = [row["peers"][peer]["ratio"] for row in same if peer in row["peers"]]
            if ratios:
                what = "runs in a second" if callers > 1 else "times"
                order = f"ours over {peer}'s" if callers > 1 else f"{peer}'s over ours"
                where = f"{threads} thread{'s' * (threads > 1)}, batch {batch}, {callers} caller{'s' * (callers > 1)}"
                lines.append(f"- {what}, {order}, {where}: geometric mean {geometric_mean(ratios):.2f}×, models: {len(ratios)}")
    return "\n".join(lines)
