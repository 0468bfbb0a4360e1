"""The rows that were measured, kept from one call of `scripts/bench --models` to the next.

A file has rows of several processors, instruction sets and builds of the command; what is shown at once is of one processor and
one build.
"""

import dataclasses
import importlib.metadata
import json

from common.files import write_file
from common.machine import best_set, hash_of, processor

# The names for `--instruction-set`.
SET_NAMES = {
    "sse4.1": "SSE4.1",
    "avx2": "AVX2",
    "avx-vnni": "AVX-VNNI",
    "avx512": "AVX-512",
    "avx512-vnni": "AVX-512 with VNNI",
}
CASE_FIELDS = ("model", "precision", "batch", "threads", "callers")
PACKAGES = {"onnxruntime": "onnxruntime", "openvino": "OpenVINO", "torch": "PyTorch"}


@dataclasses.dataclass(frozen=True)
class MeasuringPlace:
    """What measures rows."""

    processor: str
    instruction_set: str
    command: str
    commit: str

    @classmethod
    def here(cls, program, hidden_to, commit):
        best = SET_NAMES[hidden_to] if hidden_to else best_set()
        return cls(processor(), best, hash_of(program), commit)


class SavedRows:
    """The rows in a file, which is written after each of them, so that an interrupted run loses nothing."""

    def __init__(self, path, place):
        self.path, self.place = path, place
        self.rows = {key_of(row): row for row in json.loads(path.read_text())} if path.exists() else {}

    def put(self, row):
        row = dataclasses.asdict(self.place) | {"peer_versions": versions()} | row
        self.rows[key_of(row)] = row
        write_file(self.path, json.dumps(list(self.rows.values()), indent=1).encode())

    def find(self, case, peers):
        """The row of a case that was measured here, beside these peers and without an error."""
        row = self.rows.get(key_of(dataclasses.asdict(self.place) | dataclasses.asdict(case)))
        is_done = row and not row["error"] and set(peers) <= {*row["peers"], *row["refused"]}
        return row if is_done else None

    def of_build(self):
        """The rows of this processor and this build of the command, with any instruction set."""
        wanted = self.place.processor, self.place.command
        return [row for row in self.rows.values() if (row["processor"], row["command"]) == wanted]


def key_of(row):
    return tuple(row[field] for field in ("processor", "instruction_set", "command", *CASE_FIELDS))


def versions():
    """The versions of the peers that are installed."""
    found = {}
    for package, name in PACKAGES.items():
        try:
            found[name] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
