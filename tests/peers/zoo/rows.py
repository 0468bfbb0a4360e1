"""The rows of the zoo: what was found for one run of one model, kept from one call of `scripts/zoo` to the next."""

import dataclasses
import importlib.metadata
import json
import sys
import time

import running
from common.files import write_file
from common.machine import best_set, hash_of, processor
from common.processes import RunError


@dataclasses.dataclass(frozen=True)
class Machine:
    """What measured rows: rows of different machines are not put into one table."""

    processor: str
    onnxruntime: str
    command: str
    commit: str

    @classmethod
    def here(cls, program, commit):
        return cls(f"{processor()}, {best_set()}", importlib.metadata.version("onnxruntime"), hash_of(program), commit)


class Saved:
    """The rows in a file, written after each model, so that an interrupted run loses nothing."""

    def __init__(self, path, machine):
        self.path = path
        self.machine = machine
        kept = json.loads(path.read_text()) if path.exists() else {}
        same = [key for key in ("processor", "onnxruntime", "command") if kept.get(key) == getattr(machine, key)]
        self.rows = kept["rows"] if len(same) == 3 else {}
        if len(same) == 3:
            # The command was built at that commit or before.
            self.machine = dataclasses.replace(machine, commit=kept["commit"])
        elif kept:
            print("==> earlier rows are of another command, processor or onnxruntime, and are left out", file=sys.stderr)

    def put(self, model, rows):
        before = {row["shapes"]: row for row in self.rows.get(model.name, [])}
        for row in rows:
            # A check alone does not take away the times of the same command.
            if not row["threads"] and not row["error"] and row["shapes"] in before:
                row["threads"] = before[row["shapes"]]["threads"]
        self.rows[model.name] = rows
        content = {**dataclasses.asdict(self.machine), "rows": self.rows}
        write_file(self.path, json.dumps(content, indent=1).encode())

    def has(self, model, threads):
        """Whether all runs of a model were checked, and measured on these numbers of threads."""
        rows = self.rows.get(model.name, [])
        is_done = lambda row: not row["error"] and {str(count) for count in threads} <= set(row["threads"])
        return [row["run"] for row in rows] == list(model.runs) and all(map(is_done, rows))

    def checked(self, model, index):
        """The row of a run that was checked without an error."""
        same = [row for row in self.rows.get(model.name, []) if row["run"] == model.runs[index] and not row["error"]]
        return same[0] if same else None

    def of(self, models):
        return [(model, self.rows[model.name]) for model in models if model.name in self.rows]


def onnx_twin(program, path, folder):
    """The model as onnxruntime takes it: a Paddle program is converted first."""
    if path.suffix == ".onnx":
        return path
    twin = folder / "twin.onnx"
    running.ask([program, "optimize", path, "-o", twin, "--plain"], 1)
    return twin


def failed(model, index, shapes, problem):
    """The row of a run that did not get further."""
    row = {"model": model.name, "kind": model.kind, "run": model.runs[index], "shapes": shapes, "date": time.strftime("%Y-%m-%d")}
    return row | {"difference": None, "explained": "", "threads": {}, "error": str(problem)}


def row(options, model, index, path, twin, given, shapes, folder, checked):
    """Checks one run, unless its checked row is given, and measures it unless only checks are asked for."""
    found = checked or check(options, model, index, path, twin, given, shapes, folder)
    if options.check or found["error"]:
        return found
    found["rounds"], found["seconds"] = options.rounds, options.seconds
    try:
        for threads in options.threads:
            found["threads"][str(threads)] = running.measure(options.oarlock, twin, given, threads, options.rounds, options.seconds)
    except RunError as problem:
        found["error"] = str(problem)
    return found


def check(options, model, index, path, twin, given, shapes, folder):
    """Compares the outputs of one run."""
    try:
        own = running.own_outputs(options.oarlock, path, given, folder)
    except RunError as problem:
        return failed(model, index, shapes, f"Oarlock: {problem}")
    try:
        peer = running.peer_outputs(twin, given, folder)
        difference = running.difference(own, peer)
    except RunError as problem:
        return failed(model, index, shapes, f"onnxruntime: {problem}")
    found = failed(model, index, shapes, "") | {"difference": difference}
    if difference is None or difference > running.TOLERANCE:
        found["explained"] = explained(twin, given, folder, {"Oarlock": own, "onnxruntime": peer})
    return found


def explained(twin, given, folder, sides):
    """How far onnxruntime is from itself without optimizations and threads, and how far both runtimes are from float64."""
    texts = []
    try:
        plain = running.peer_outputs(twin, given, folder, "onnxruntime-plain", 1)
        texts.append(f"onnxruntime from itself {distance_text(running.difference(plain, sides['onnxruntime']))}")
    except RunError as problem:
        texts.append(f"onnxruntime alone: {problem}")
    try:
        exact = running.double_outputs(twin, given, folder)
        far = {side: running.difference([it for it in found if it is not None], exact) for side, found in sides.items()}
        texts += [f"{side} from float64 {distance_text(distance)}" for side, distance in far.items()]
    except RunError as problem:
        texts.append(f"no float64: {problem}")
    return "; ".join(texts)


def distance_text(difference):
    return "not comparable" if difference is None else f"{difference:.0e}"
