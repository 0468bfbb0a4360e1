"""Prints what a package makes of its sample, as JSON: `python answer.py NAME`. Which runtime it uses is the caller's choice."""

import json
import sys

import images
import numpy as np
import sounds
import texts
import tools

ANSWERS = {
    name: answer
    for module in (images, sounds, texts, tools)
    for name, answer in vars(module).items()
    if getattr(answer, "__module__", "") == module.__name__ and name not in {"bgr", "png"}
}


def plain(value):
    """Numbers, text, lists and dictionaries of them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"expected something that JSON can say, found {type(value).__name__}")


def main():
    import onnxruntime

    # Some packages draw random numbers.
    np.random.seed(0)
    answer = ANSWERS[sys.argv[1]]()
    # Packages print to standard output as well, so the answer is the last line.
    print(json.dumps({"by": onnxruntime.InferenceSession.__module__, "answer": answer}, default=plain))


if __name__ == "__main__":
    main()
