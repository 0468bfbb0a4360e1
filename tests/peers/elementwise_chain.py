"""Measures chains of elementwise ops as models, interleaved with one op and with NumPy, and prints a table.

    elementwise_chain.py [--elements N] [--lengths 1,2,20] [--rounds N]

The steps multiply by a scalar, add one, bound from below, subtract one, bound from above, and so on: each alone takes as long as memory
needs. In each round, every chain runs twenty times in turn; the table has the shortest times. If JAX is installed, its compiled functions take part.
OARLOCK_THREADS sets the threads of the CPU device.
"""

import argparse
import time

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import oarlock as ol

STEPS = [("Mul", "multiply", 1.01), ("Add", "add", 0.5), ("Max", "maximum", -3.0), ("Sub", "subtract", 0.25), ("Min", "minimum", 3.0)]


def chain_model(length):
    nodes, constants = [], []
    for index in range(length):
        op, _, scalar = STEPS[index % len(STEPS)]
        constants.append(numpy_helper.from_array(np.float32(scalar), f"c{index}"))
        nodes.append(helper.make_node(op, [f"v{index}", f"c{index}"], [f"v{index + 1}"]))
    first, last = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("v0", f"v{length}"))
    graph = helper.make_graph(nodes, "chain", [first], [last], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def oarlock_chain(length, x):
    session, array = ol.load(chain_model(length).SerializeToString()), ol.asarray(x)
    return lambda: session(array)


def numpy_chain(length, x):
    out = np.empty_like(x)

    def run():
        value = x
        for index in range(length):
            _, name, scalar = STEPS[index % len(STEPS)]
            value = getattr(np, name)(value, np.float32(scalar), out=out)
        return value

    return run


def jax_chain(length, x):
    import jax

    def compute(value):
        for index in range(length):
            _, name, scalar = STEPS[index % len(STEPS)]
            value = getattr(jax.numpy, name)(value, np.float32(scalar))
        return value

    array, compiled = jax.numpy.asarray(x), jax.jit(compute)
    return lambda: compiled(array).block_until_ready()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=10_000_000)
    parser.add_argument("--lengths", default="1,2,5,10,20")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    lengths = [int(length) for length in options.lengths.split(",")]
    x = np.random.default_rng(0).standard_normal(options.elements).astype(np.float32)
    peers = {"Oarlock": oarlock_chain, "NumPy": numpy_chain}
    try:
        import jax  # noqa: F401
    except ImportError:
        pass
    else:
        peers["JAX"] = jax_chain
    calls = {(peer, length): make(length, x) for peer, make in peers.items() for length in lengths}
    shortest = dict.fromkeys(calls, float("inf"))
    for _ in range(options.rounds + 1):
        for call, run in calls.items():
            # The first runs find memory as other peers left it.
            for _ in range(20):
                start = time.perf_counter()
                run()
                shortest[call] = min(shortest[call], time.perf_counter() - start)
    print("| ops | " + " | ".join(f"{peer}, ms" for peer in peers) + " |")
    print("|---|" + "---|" * len(peers))
    for length in lengths:
        print(f"| {length} | " + " | ".join(f"{shortest[peer, length] * 1e3:.2f}" for peer in peers) + " |")
    first, last = (shortest["Oarlock", length] for length in (lengths[0], lengths[-1]))
    print(f"\n{lengths[-1]} ops took {last / first:.2f} times as long as {lengths[0]}")


if __name__ == "__main__":
    main()
