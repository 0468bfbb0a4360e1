//! Errors of the CUDA libraries, in the words of the contract.

use cudarc::cublaslt::result::CublasError;
use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;
use cudarc::nvrtc::result::NvrtcError;
use oarlock_sdk::PluginError;

/// True if every later call on the device's context fails after this error.
pub(crate) fn is_sticky_error(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
    )
}

#[track_caller]
pub(crate) fn driver_error(function: &str, DriverError(code): DriverError) -> PluginError {
    let message = format!("`{function}` of the CUDA driver failed with {}, `{code:?}`", code as u32);
    let error = match code {
        _ if is_sticky_error(code) => PluginError::unavailable(message).with_rule("R-6").as_device_lost(),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => PluginError::resource_exhausted(message),
        _ => PluginError::external(message),
    };
    error.with_native_code(code as i64)
}

/// Maps "not ready" to false, for queries of events and streams.
pub(crate) fn is_complete(state: Result<(), DriverError>) -> Result<bool, DriverError> {
    match state {
        Ok(()) => Ok(true),
        Err(DriverError(CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
        Err(error) => Err(error),
    }
}

#[track_caller]
pub(crate) fn nvrtc_error(function: &str, NvrtcError(code): NvrtcError) -> PluginError {
    PluginError::external(format!("`{function}` of NVRTC failed with {}, `{code:?}`", code as u32))
        .with_native_code(code as i64)
}

#[track_caller]
pub(crate) fn cublas_error(function: &str, CublasError(code): CublasError) -> PluginError {
    PluginError::external(format!("`{function}` of cuBLASLt failed with {}, `{code:?}`", code as u32))
        .with_native_code(code as i64)
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Code;

    use super::*;

    #[test]
    fn what_breaks_a_context_is_told_apart_from_what_does_not() {
        let code = |code| driver_error("cuLaunchKernel", DriverError(code)).code();
        assert_eq!(code(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS), Code::UNAVAILABLE);
        assert_eq!(code(CUresult::CUDA_ERROR_OUT_OF_MEMORY), Code::RESOURCE_EXHAUSTED);
        assert_eq!(code(CUresult::CUDA_ERROR_INVALID_VALUE), Code::EXTERNAL);
    }
}
