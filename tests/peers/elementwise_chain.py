"""Measures jitted chains of elementwise ops, interleaved with one op and with NumPy, and prints a table.

    elementwise_chain.py [--elements N] [--lengths 1,2,20] [--rounds N]

The steps multiply by a scalar, add one, bound from below, subtract one, bound from above, and so on: each alone takes as long as memory
needs. In each round, every chain runs twenty times in turn; the table has the shortest times. If JAX is installed, its compiled functions take part.
OARLOCK_THREADS sets the threads of the CPU device.
"""

import argparse
import time

import numpy as np

import oarlock as ol

STEPS = [("multiply", 1.01), ("add", 0.5), ("maximum", -3.0), ("subtract", 0.25), ("minimum", 3.0)]


def oarlock_chain(length, x):
    @ol.jit
    def compute(value):
        for index in range(length):
            name, scalar = STEPS[index % len(STEPS)]
            value = getattr(ol, name)(value, scalar)
        return value

    array = ol.asarray(x)
    return lambda: compute(array)


def numpy_chain(length, x):
    out = np.empty_like(x)

    def run():
        value = x
        for index in range(length):
            name, scalar = STEPS[index % len(STEPS)]
            value = getattr(np, name)(value, np.float32(scalar), out=out)
        return value

    return run


def jax_chain(length, x):
    import jax

    def compute(value):
        for index in range(length):
            name, scalar = STEPS[index % len(STEPS)]
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
