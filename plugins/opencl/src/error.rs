//! Errors of the OpenCL driver, in the words of the contract.

use oarlock_sdk::Error;
use opencl3::error_codes::{
    CL_DEVICE_NOT_AVAILABLE, CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY,
    CL_OUT_OF_RESOURCES, ClError, error_text,
};

/// The error of a function of the driver that failed.
#[track_caller]
pub(crate) fn failed(function: &str, code: impl Into<ClError>) -> Error {
    let code = code.into().0;
    let message = format!("`{function}` of the OpenCL driver failed with {code}, `{}`", error_text(code));
    let error = match code {
        CL_MEM_OBJECT_ALLOCATION_FAILURE
        | CL_OUT_OF_RESOURCES
        | CL_OUT_OF_HOST_MEMORY
        | CL_INVALID_BUFFER_SIZE => Error::resource_exhausted(message),
        CL_DEVICE_NOT_AVAILABLE => Error::unavailable(message).rule("R-6").device_lost(),
        _ => Error::external(message),
    };
    error.native(code.into())
}
