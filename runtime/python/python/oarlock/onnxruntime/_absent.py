"""Names of onnxruntime that are not supported: the error says what to do instead."""

from __future__ import annotations

from .._absent import name_of_peer

_PROVIDERS = "name devices by `providers`, or by `device_type` and `device_id`"
_WEIGHTS = "write the weights into the model, or into a file beside it"

_COMPILED = "write the model as it was made ready, with `optimized_model_filepath`"
_DEVICES = "`oarlock.devices()` names the devices"
_PACKAGES = "give sessions the file of the model itself"
_EXTERNAL = "compiled parts of models are not read: give sessions the model as it was before"
_QUANTIZE = "prepare models with onnxruntime itself, in another process"
_ASSIGNED = "`oarlock.load(…).explain()` says which kernel runs each node"
_PLUGINS = "install a plugin, as `oarlock.devices()` then shows"
_TUNED = "leave the call out: kernels are chosen by itself"
_SPARSE = "use arrays with all elements"

INSTEAD = {
    "AdapterFormat": _WEIGHTS,
    "ArenaExtendStrategy": "leave it out: memory is managed by itself",
    "LoraAdapter": _WEIGHTS,
    "ModelCompiler": _COMPILED,
    "ModelPackage": _PACKAGES,
    "ModelPackageComponentContext": _PACKAGES,
    "ModelPackageContext": _PACKAGES,
    "ModelPackageOptions": _PACKAGES,
    "ModelPackageWriteMode": _PACKAGES,
    "OrtCompileApiFlags": _COMPILED,
    "OrtCompiledModelCompatibility": _COMPILED,
    "OrtDeviceEpIncompatibilityReason": _DEVICES,
    "OrtEpAssignedNode": _ASSIGNED,
    "OrtEpAssignedSubgraph": _ASSIGNED,
    "OrtEpContextData": _EXTERNAL,
    "OrtEpContextDataBuffer": _EXTERNAL,
    "OrtEpDevice": _DEVICES,
    "OrtExecutionProviderDevicePolicy": _PROVIDERS,
    "OrtExternalInitializerInfo": _WEIGHTS,
    "OrtHardwareDevice": _DEVICES,
    "OrtSyncStream": "use `oarlock.Stream`",
    "OrtValueVector": "use lists of `OrtValue`",
    "SessionIOBinding": "use `IOBinding`",
    "SessionObjectInitializer": "pass `SessionOptions`",
    "SparseBlockSparseView": _SPARSE,
    "SparseCooView": _SPARSE,
    "SparseCsrView": _SPARSE,
    "add_active_adapter": _WEIGHTS,
    "add_external_initializers": _WEIGHTS,
    "add_initializer": _WEIGHTS,
    "add_provider_for_devices": _PROVIDERS,
    "as_blocksparse_view": _SPARSE,
    "as_coo_view": _SPARSE,
    "as_csrc_view": _SPARSE,
    "clear_ep_context_data_read_func": _EXTERNAL,
    "get_all_operator_schema": "`python -m oarlock kernels` lists ops",
    "get_all_opkernel_def": "`python -m oarlock kernels` lists kernels",
    "get_compatibility_info_from_model": _COMPILED,
    "get_compatibility_info_from_model_bytes": _COMPILED,
    "get_ep_devices": _DEVICES,
    "get_hardware_device_ep_incompatibility_details": _DEVICES,
    "get_hardware_devices": _DEVICES,
    "get_input_epdevices": "use `get_input_memory_infos`",
    "get_model_compatibility_for_ep_devices": _COMPILED,
    "get_provider_graph_assignment_info": _ASSIGNED,
    "get_registered_ep_kernel_defs": "`python -m oarlock kernels` lists kernels",
    "get_session_initializer": "pass `SessionOptions`",
    "get_tuning_results": _TUNED,
    "kNextPowerOfTwo": "leave it out: memory is managed by itself",
    "kSameAsRequested": "leave it out: memory is managed by itself",
    "opkernel": "`python -m oarlock kernels` lists kernels",
    "pack_fp4_weights_for_cuda_moe_gemm": _QUANTIZE,
    "quantize_matmul_2bits": _QUANTIZE,
    "quantize_matmul_4bits": _QUANTIZE,
    "quantize_matmul_8bits": _QUANTIZE,
    "quantize_matmul_bnb4": _QUANTIZE,
    "quantize_qdq_matmul_2bits": _QUANTIZE,
    "quantize_qdq_matmul_4bits": _QUANTIZE,
    "register_custom_ops_library": "write the op with `oarlock.extension.load` or `oarlock.extension.op`",
    "register_execution_provider_library": _PLUGINS,
    "run_with_ortvaluevector": "call `run_with_ort_values`",
    "schemadef": "`python -m oarlock kernels` lists ops",
    "set_ep_context_data_read_func": _EXTERNAL,
    "set_ep_dynamic_options": "give options to a new session",
    "set_load_cancellation_flag": "leave the call out: a load ends when it is done",
    "set_provider_selection_policy": _PROVIDERS,
    "set_provider_selection_policy_delegate": _PROVIDERS,
    "set_tuning_results": _TUNED,
    "to_cuda": _SPARSE,
    "unregister_execution_provider_library": _PLUGINS,
}


# Modules of onnxruntime.
MODULES_INSTEAD = {
    "backend": "`oarlock.onnx_backend` is a backend for the package `onnx`",
    "datasets": "name the file of a model",
    "quantization": _QUANTIZE,
    "tools": _QUANTIZE,
    "training": "train with another package: models are run here",
    "transformers": _QUANTIZE,
}


def note_instead(error: ImportError) -> None:
    """Adds to an error about a name or a module of onnxruntime what to do instead."""
    name = (error.name or "").removeprefix("oarlock.")
    if isinstance(error, ModuleNotFoundError):
        advice = MODULES_INSTEAD.get(name.removeprefix("onnxruntime.").partition(".")[0])
    else:
        # Python writes: cannot import name 'NAME' from 'MODULE'.
        advice = INSTEAD.get(str(error).partition("'")[2].partition("'")[0])
    if advice and name.startswith("onnxruntime"):
        error.add_note(f"hint: {advice}")


def absent(where: object, name: str, title: str) -> AttributeError:
    """The error for an unsupported name."""
    return name_of_peer(where, name, title, INSTEAD)
