"""A plugin of pytest that has the arrays of a suite lie on the device that `OARLOCK_SUITE_DEVICE` names, and says in the end
which ops the CPU did in its place."""

import os

import oarlock

profiler = oarlock.profiler.Profiler()


def pytest_configure():
    oarlock.set_device(os.environ["OARLOCK_SUITE_DEVICE"])
    profiler.start()


def pytest_terminal_summary(terminalreporter):
    profiler.stop()
    on_cpu, on_device = set(), set()
    for span in profiler.profile.of_kind("Kernel"):
        if not span.place.startswith("cpu:"):
            (on_cpu if span.name == "the CPU, with copies" else on_device).add(span.op)
    for title, ops in {
        "done by the device": on_device - on_cpu,
        "done by the device or, for other operands, by the CPU": on_device & on_cpu,
        "done by the CPU": on_cpu - on_device,
    }.items():
        terminalreporter.write_line(f"{title}: {', '.join(sorted(ops)) or 'none'}")
