"""Runs packages on onnxruntime and on Oarlock, each in a process of its own, and compares what they say.

`python compare.py [NAME...]` runs the named ones, or all. It ends with 1 if an answer differs or a package fails.
"""

import json
import math
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# Both runtimes round sums in another order. Logarithms of tiny numbers and differences of large ones show that most.
TOLERANCE = 5e-3


def said(name, runtime):
    """The answer of a package, or nothing, and the end of its error."""
    command = [sys.executable, *runtime, str(HERE / "answer.py"), name]
    outcome = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if outcome.returncode:
        return None, "\n".join(outcome.stderr.strip().splitlines()[-3:])
    return json.loads(outcome.stdout.splitlines()[-1]), ""


def difference(one, other):
    """The largest difference of two answers: relative for numbers beyond 1, and infinite if their form differs."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return max((difference(one[key], other[key]) for key in one), default=0)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return max(map(difference, one, other), default=0)
    if isinstance(one, float | int) and isinstance(other, float | int):
        if one == other or (math.isnan(one) and math.isnan(other)):
            return 0
        return abs(one - other) / max(1, abs(one), abs(other))
    return 0 if one == other else math.inf


def main():
    # Imported late, because other programs import `difference`.
    from answer import ANSWERS

    wrong = 0
    for name in sys.argv[1:] or ANSWERS:
        expected, their_error = said(name, [])
        found, our_error = said(name, ["-m", "oarlock.onnxruntime"])
        if expected is None or found is None:
            who, error = ("onnxruntime", their_error) if expected is None else ("Oarlock", our_error)
            print(f"{name}: fails on {who}:\n{error}")
            wrong += 1
            continue
        assert expected["by"].startswith("onnxruntime.") and found["by"].startswith("oarlock."), "both ran on the same runtime"
        off = difference(expected["answer"], found["answer"])
        wrong += off > TOLERANCE
        verdict = "agrees" if off <= TOLERANCE else "DIFFERS"
        print(f"{name}: {verdict}, by at most {off:.2g}", flush=True)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
