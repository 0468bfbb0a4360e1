//! Errors of the OpenCL driver, in the words of the contract.

use oarlock_sdk::PluginError;
use opencl3::error_codes::{
    CL_DEVICE_NOT_AVAILABLE, CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY,
    CL_OUT_OF_RESOURCES, ClError, error_text,
};

#[track_caller]
pub(crate) fn driver_error(function: &str, code: impl Into<ClError>) -> PluginError {
    let code = code.into().0;
    let message = format!("`{function}` of the OpenCL driver failed with {code}, `{}`", error_text(code));
    let error = match code {
        CL_MEM_OBJECT_ALLOCATION_FAILURE
        | CL_OUT_OF_RESOURCES
        | CL_OUT_OF_HOST_MEMORY
        | CL_INVALID_BUFFER_SIZE => PluginError::resource_exhausted(message),
        CL_DEVICE_NOT_AVAILABLE => PluginError::unavailable(message).with_rule("R-6").as_device_lost(),
        _ => PluginError::external(message),
    };
    error.with_native_code(code.into())
}
