"""Measures arrays of the Python package interleaved with NumPy's, and prints a table.

    arrays.py [--only TEXT] [--rounds N] [--seconds S]

In each round, both make each call in turn, so that other work on the machine affects both. The table has the medians over the
rounds, of the ratio too. OARLOCK_THREADS sets the threads of the CPU device.
"""

import argparse
import statistics
import time

import numpy as np

import oarlock as ol

MANY = 4_000_000


def cases():
    """Calls by name, each as a function of a namespace and of a function that converts NumPy arrays."""
    random = np.random.default_rng(7)
    floats = random.standard_normal(MANY).astype(np.float32)
    kinds = {
        "f32": floats,
        "f64": floats.astype(np.float64),
        "i32": random.integers(-(2**31), 2**31, MANY, dtype=np.int32),
        "i64": random.integers(-(2**62), 2**62, MANY),
        "i64 below 1000": random.integers(0, 1000, MANY),
    }
    square = floats[: 2000 * 2000].reshape(2000, 2000)
    matrix = floats[:64].reshape(8, 8)
    mask = random.integers(0, 2, MANY).astype(bool)
    rare = random.integers(0, 50, MANY) == 0
    places = random.integers(0, MANY, 1_000_000)

    def setter(key):
        def of(_, array):
            copy = array(matrix.copy())

            def write():
                copy[key] = 1

            return write

        return of

    def fixed(function, *arrays):
        def of(namespace, array):
            given = [array(one) for one in arrays]
            return lambda: function(namespace, *given)

        return of

    def transform(name, *arrays):
        return fixed(lambda namespace, x: getattr(namespace.fft, name)(x), *arrays)

    small = floats[:1000]
    yield "a + b, 1 element", fixed(lambda _, a, b: a + b, floats[:1], floats[:1])
    yield "a + 1, 8×8", fixed(lambda _, a: a + 1, matrix)
    yield "zeros(3)", lambda namespace, _: lambda: namespace.zeros(3, dtype=namespace.float32)
    yield "zeros((1000, 1000))", lambda namespace, _: lambda: namespace.zeros((1000, 1000), dtype=namespace.float32)
    yield "ones((1000, 1000))", lambda namespace, _: lambda: namespace.ones((1000, 1000), dtype=namespace.float32)
    yield "arange(10)", lambda namespace, _: lambda: namespace.arange(10)
    yield "arange(1000000)", lambda namespace, _: lambda: namespace.arange(1000000)
    yield "asarray([1., 2., 3.])", lambda namespace, _: lambda: namespace.asarray([1.0, 2.0, 3.0])
    yield "a[0]", fixed(lambda _, a: a[0], matrix)
    yield "a[0, 0]", fixed(lambda _, a: a[0, 0], matrix)
    yield "a[1:3]", fixed(lambda _, a: a[1:3], matrix)
    yield "a[:, 1:3]", fixed(lambda _, a: a[:, 1:3], matrix)
    yield "a[::-1]", fixed(lambda _, a: a[::-1], matrix)
    yield "float(a[0, 0])", fixed(lambda _, a: float(a[0, 0]), matrix)
    yield "a[0, 0] = 1, 8×8", setter((0, 0))
    yield "a[1:3] = 1, 8×8", setter(slice(1, 3))

    def large(namespace, array):
        copy = array(square.copy())

        def write():
            copy[0, 0] = 1

        return write

    yield "a[0, 0] = 1, 2000×2000", large
    yield "a[mask], 1000", fixed(lambda _, a, m: a[m], small, mask[:1000])
    yield "a[mask], 4M, half", fixed(lambda _, a, m: a[m], floats, mask)
    yield "a[mask], 4M, 2 %", fixed(lambda _, a, m: a[m], floats, rare)
    yield "a[mask] of rows, 2000×2000", fixed(lambda _, a, m: a[m], square, mask[:2000])
    yield "a[mask], 2000×2000", fixed(lambda _, a, m: a[m], square, mask.reshape(2000, 2000))
    yield "a[places], 1M of 4M", fixed(lambda _, a, p: a[p], floats, places)
    yield "nonzero, 4M, half", fixed(lambda namespace, m: namespace.nonzero(m), mask)
    yield "take, 10 of 1000", fixed(lambda namespace, a, p: namespace.take(a, p, axis=0), small, np.arange(10))
    yield "take, 1M of 4M", fixed(lambda namespace, a, p: namespace.take(a, p, axis=0), floats, places)
    yield "where, 1000", fixed(lambda namespace, m, a, b: namespace.where(m, a, b), mask[:1000], small, floats[1000:2000])
    yield "where, 4M", fixed(lambda namespace, m, a, b: namespace.where(m, a, b), mask, floats, floats[::-1].copy())
    yield "sum, 1000", fixed(lambda namespace, a: namespace.sum(a), small)
    yield "sum, 4M", fixed(lambda namespace, a: namespace.sum(a), floats)
    yield "max(axis=1), 2000×2000", fixed(lambda namespace, a: namespace.max(a, axis=1), square)
    yield "mean, 8×8", fixed(lambda namespace, a: namespace.mean(a), matrix)
    yield "argmax, 4M", fixed(lambda namespace, a: namespace.argmax(a), floats)
    for name, numbers in kinds.items():
        yield f"sort, 4M {name}", fixed(lambda namespace, a: namespace.sort(a), numbers)
    for name, numbers in kinds.items():
        yield f"argsort, 4M {name}", fixed(lambda namespace, a: namespace.argsort(a, stable=True), numbers)
    yield "sort, 10 f32", fixed(lambda namespace, a: namespace.sort(a), floats[:10])
    yield "sort, 1000 f32", fixed(lambda namespace, a: namespace.sort(a), small)
    yield "sort, rows of 2000×2000 f32", fixed(lambda namespace, a: namespace.sort(a), square)
    yield "sort(axis=0), 2000×2000 f32", fixed(lambda namespace, a: namespace.sort(a, axis=0), square)
    yield "argsort, 1000 f32", fixed(lambda namespace, a: namespace.argsort(a, stable=True), small)
    yield "unique_values, 1M f32", fixed(lambda namespace, a: namespace.unique_values(a), floats[:1_000_000])
    yield "unique_values, 1M of 1000", fixed(lambda namespace, a: namespace.unique_values(a), kinds["i64 below 1000"][:1_000_000])
    yield "searchsorted, 1M in 1M", fixed(
        lambda namespace, a, b: namespace.searchsorted(a, b), np.sort(floats[:1_000_000]), floats[1_000_000:2_000_000]
    )
    yield "concat, 2 of 10", fixed(lambda namespace, a, b: namespace.concat([a, b]), floats[:10], floats[10:20])
    yield "concat, 2 of 1M", fixed(lambda namespace, a, b: namespace.concat([a, b]), floats[:1_000_000], floats[1_000_000:2_000_000])
    yield "stack, 2 of 10", fixed(lambda namespace, a, b: namespace.stack([a, b]), floats[:10], floats[10:20])
    yield "reshape, 8×8", fixed(lambda namespace, a: namespace.reshape(a, (64,)), matrix)
    yield "transpose, 8×8", fixed(lambda namespace, a: namespace.permute_dims(a, (1, 0)), matrix)
    yield "matmul, 8×8", fixed(lambda _, a, b: a @ b, matrix, matrix)
    yield "matmul, 64×64", fixed(lambda _, a, b: a @ b, floats[:4096].reshape(64, 64), floats[:4096].reshape(64, 64))
    yield "cumulative_sum, 4M", fixed(lambda namespace, a: namespace.cumulative_sum(a), floats)
    for size in (16, 1000, 1009, 1024, 65536, 1_000_000, 1 << 20):
        yield f"fft, {size} f64", transform("fft", kinds["f64"][:size])
    yield "fft, 1024 c128", transform("fft", kinds["f64"][:1024] * (1 + 1j))
    yield "fft, 1048576 c128", transform("fft", kinds["f64"][: 1 << 20] * (1 + 1j))
    yield "fft, 1048576 f32", transform("fft", floats[: 1 << 20])
    yield "fft, 1000 rows of 1024 c64", transform("fft", (floats[: 1000 * 1024] * np.complex64(1 + 1j)).reshape(1000, 1024))
    yield "rfft, 1024 f64", transform("rfft", kinds["f64"][:1024])
    yield "rfft, 1048576 f64", transform("rfft", kinds["f64"][: 1 << 20])
    yield "irfft, 1048576 f64", transform("irfft", np.fft.rfft(kinds["f64"][: 1 << 20]))
    yield "fftn, 1000×1024 c64", transform("fftn", (floats[: 1000 * 1024] * np.complex64(1 + 1j)).reshape(1000, 1024))
    yield "fft, 262144 c64", transform("fft", floats[: 1 << 18] * np.complex64(1 + 1j))
    thousand = floats[:1_000_000].reshape(1000, 1000)
    yield "asarray(a.T, copy=True), 1000×1000", fixed(lambda namespace, a: namespace.asarray(a.T, copy=True), thousand)
    yield "asarray(a[::2, 1:], copy=True), 1000×1000", fixed(lambda namespace, a: namespace.asarray(a[::2, 1:], copy=True), thousand)

    def added(namespace, array):
        copy = array(thousand.copy())

        def add():
            nonlocal copy
            copy += 1

        return add

    yield "a += 1, 1000×1000", added
    yield "a.sum(), 10", fixed(lambda _, a: a.sum(), floats[:10])
    yield "a.max(axis=0), 8×8", fixed(lambda _, a: a.max(axis=0), matrix)
    yield "a.reshape(-1), 8×8", fixed(lambda _, a: a.reshape(-1), matrix)
    yield "a.tolist(), 1M", fixed(lambda _, a: a.tolist(), floats[:1_000_000])
    symmetric = square[:200, :200] + square[:200, :200].T
    yield "eigh, 200×200", fixed(lambda namespace, a: namespace.linalg.eigh(a), symmetric)
    yield "eig, 100×100 f64", fixed(lambda namespace, a: namespace.linalg.eig(a), kinds["f64"][:10_000].reshape(100, 100))
    yield "median, 1M", fixed(lambda namespace, a: namespace.median(a), floats[:1_000_000])
    yield "histogram, 1M", fixed(lambda namespace, a: namespace.histogram(a, 20), floats[:1_000_000])
    yield "einsum ij,jk->ik, 200", fixed(lambda namespace, a, b: namespace.einsum("ij,jk->ik", a, b), symmetric, symmetric)
    for name, arguments in DRAWN.items():
        yield f"random.{name}, 1M", drawn(name, arguments)


DRAWN = {
    "random": (),
    "standard_normal": (),
    "standard_exponential": (),
    "integers": (0, 1000),
    "gamma": (2.5,),
    "poisson": (4.0,),
    "binomial": (100, 0.3),
    "permutation": None,
}
"""Methods of a generator, with arguments before the size; `None` where a number stands for it."""


def drawn(name, arguments):
    """A million random numbers, of f32 where both have them."""

    def of(namespace, _):
        draw = getattr(namespace.random.default_rng(1), name)
        if arguments is None:
            return lambda: draw(1_000_000)
        narrow = {"dtype": namespace.float32} if name in ("random", "standard_normal", "standard_exponential") else {}
        return lambda: draw(*arguments, size=1_000_000, **narrow)

    return of


def calibrated(call, seconds):
    """How often a call fits into a time, at least once."""
    call()
    begin = time.perf_counter()
    call()
    return max(1, int(seconds / max(time.perf_counter() - begin, 1e-8)))


def taken(call, times):
    """The nanoseconds of a call, as the mean of several in a row."""
    begin = time.perf_counter_ns()
    for _ in range(times):
        call()
    return (time.perf_counter_ns() - begin) / times


def in_units(nanoseconds):
    """A time in a readable unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05)
    options = parser.parse_args()
    print("| call | NumPy | Oarlock | ratio |\n| --- | --- | --- | --- |")
    for name, of in cases():
        if options.only not in name:
            continue
        calls = [of(np, lambda array: array), of(ol, ol.asarray)]
        times = [calibrated(call, options.seconds) for call in calls]
        rounds = [[taken(call, count) for call, count in zip(calls, times)] for _ in range(options.rounds)]
        numpy, oarlock = (statistics.median(one[which] for one in rounds) for which in (0, 1))
        ratio = statistics.median(one[1] / one[0] for one in rounds)
        print(f"| {name} | {in_units(numpy)} | {in_units(oarlock)} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
