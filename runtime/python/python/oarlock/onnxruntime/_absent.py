"""Names of onnxruntime that are not supported: the error says what to do instead."""

from __future__ import annotations

_PROVIDERS = "name devices by `providers`, or by `device_type` and `device_id`"
_WEIGHTS = "write the weights into the model, or into a file beside it"

INSTEAD = {
    "LoraAdapter": _WEIGHTS,
    "ModelCompiler": "write the model as it was made ready, with `optimized_model_filepath`",
    "OrtDevice": _PROVIDERS,
    "OrtMemoryInfo": _PROVIDERS,
    "SparseTensor": "use arrays with all elements",
    "add_active_adapter": _WEIGHTS,
    "add_external_initializers": _WEIGHTS,
    "add_external_initializers_from_files_in_memory": _WEIGHTS,
    "add_initializer": _WEIGHTS,
    "add_provider_for_devices": _PROVIDERS,
    "create_and_register_allocator": "leave the call out: memory is managed by itself",
    "get_ep_devices": "`oarlock.devices()` names the devices",
    "get_profiling_start_time_ns": "the trace of `end_profiling` says when everything began",
    "preload_dlls": "leave the call out: libraries are loaded when a device needs them",
    "register_custom_ops_library": "write the op with `oarlock.extension.load` or `oarlock.extension.op`",
    "register_execution_provider_library": "install a plugin, as `oarlock.devices()` then shows",
    "run_with_ortvaluevector": "call `run_with_ort_values`",
    "set_default_logger_verbosity": "leave the call out: errors are raised as exceptions",
    "set_provider_selection_policy": _PROVIDERS,
    "set_providers": "make another session with these `providers`",
    "set_seed": "call `oarlock.set_flags({'random_seed': …})` before the first session",
}


def absent(where: object, name: str, title: str) -> AttributeError:
    """The error for an unsupported name."""
    hint = f"\nhint: {INSTEAD[name]}" if name in INSTEAD else ""
    return AttributeError(f"expected a name that `{title}` has, found `{name}`{hint}", name=name, obj=where)
