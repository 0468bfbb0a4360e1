"""What a measurement depends on besides the model: the processor, its instruction sets, and the command."""

import hashlib

# Flags of the kernel and the names of what they stand for, better ones last.
SETS = [
    ("sse4_1", "SSE4.1"),
    ("avx2", "AVX2"),
    ("avx_vnni", "AVX-VNNI"),
    ("avx512f", "AVX-512"),
    ("avx512_vnni", "AVX-512 with VNNI"),
    ("amx_int8", "AVX-512 and AMX"),
]


def processor():
    """The name of the processor, and how many there are."""
    names = fields("model name")
    return f"{names[0] if names else 'unknown'}, {len(names)} processors"


def best_set():
    """The best instruction set of the processor."""
    flags = (fields("flags") or [""])[0].split()
    return ([name for flag, name in SETS if flag in flags] or ["none"])[-1]


def fields(name):
    with open("/proc/cpuinfo") as file:
        return [line.partition(":")[2].strip() for line in file if line.partition(":")[0].strip() == name]


def hash_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
