"""What onnxruntime has and this has not: who asks for it is told what to do instead."""

from __future__ import annotations

_OF_THE_FILE = "read it from the file, with `onnx.load`"

INSTEAD = {
    "OrtDevice": "name devices by `providers`, or by `device_type` and `device_id`",
    "OrtMemoryInfo": "name devices by `providers`, or by `device_type` and `device_id`",
    "SparseTensor": "use arrays with all elements",
    "add_external_initializers": "write the weights into the model, or into a file beside it",
    "add_initializer": "write the weights into the model, or into a file beside it",
    "create_and_register_allocator": "leave the call out: memory is managed by itself",
    "description": _OF_THE_FILE,
    "domain": _OF_THE_FILE,
    "get_profiling_start_time_ns": "the trace of `end_profiling` says when everything began",
    "graph_description": _OF_THE_FILE,
    "preload_dlls": "leave the call out: libraries are loaded when a device needs them",
    "register_custom_ops_library": "write the op with `oarlock.extension.load` or `oarlock.extension.op`",
    "set_default_logger_verbosity": "leave the call out: what goes wrong is raised",
    "set_providers": "make another session with these `providers`",
    "set_seed": "call `oarlock.set_flags({'random_seed': …})` before the first session",
    "version": _OF_THE_FILE,
}


def absent(where: object, name: str, title: str) -> AttributeError:
    """The error for a name that is not there."""
    hint = f"\nhint: {INSTEAD[name]}" if name in INSTEAD else ""
    return AttributeError(f"expected a name that `{title}` has, found `{name}`{hint}", name=name, obj=where)
