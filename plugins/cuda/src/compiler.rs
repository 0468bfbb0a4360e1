//! Compiles with NVRTC for one architecture at a time, to machine code (cubin).

#![expect(unsafe_code, reason = "NVRTC is a C library")]

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use cudarc::nvrtc::{result, sys};
use oarlock_sdk::{PluginError, Result, Version};

use crate::error::nvrtc_error;
use crate::libraries;

/// Lines of the compiler's log that an error message shows.
const LOG_LINES: usize = 12;

/// Options besides the architecture. Warnings only concern authors of kernels.
pub(crate) const COMPILER_OPTIONS: &str = "--disable-warnings";

/// True if NVRTC is installed. Every use of NVRTC must check this first, because `cudarc` panics without it.
pub(crate) fn is_nvrtc_available() -> bool {
    static IS_AVAILABLE: OnceLock<bool> = OnceLock::new();
    *IS_AVAILABLE.get_or_init(|| {
        libraries::open_library(libraries::NVRTC_LIBRARY);
        // SAFETY: opening NVRTC runs nothing but its own initialization.
        unsafe { sys::is_culib_present() }
    })
}

pub(crate) fn check_nvrtc_available() -> Result<()> {
    if is_nvrtc_available() {
        return Ok(());
    }
    Err(PluginError::unavailable(format!(
        "expected the compiler {}",
        libraries::missing_library_message(libraries::NVRTC_LIBRARY)
    )))
}

/// The version of NVRTC.
pub(crate) fn nvrtc_version() -> Result<Version> {
    check_nvrtc_available()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both numbers are locals that the call may write.
    let code = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
    code.result().map_err(|error| nvrtc_error("nvrtcVersion", error))?;
    Ok(Version { major: major.cast_unsigned(), minor: minor.cast_unsigned(), ..Version::EMPTY })
}

/// A program of NVRTC, destroyed when dropped.
struct NvrtcProgram(sys::nvrtcProgram);

impl Drop for NvrtcProgram {
    fn drop(&mut self) {
        // SAFETY: the program is alive and not used after this. `drop` cannot report a failure.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

impl NvrtcProgram {
    /// The first lines of the compiler's log.
    fn compiler_log(&self) -> String {
        // SAFETY: the program is alive.
        let log = unsafe { result::get_program_log(self.0) }.unwrap_or_default();
        // Characters of C have a sign on x86-64 and none on ARM.
        let bytes = log.into_iter().take_while(|letter| *letter != 0).flat_map(c_char::to_ne_bytes);
        let bytes: Vec<u8> = bytes.collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.trim().lines().take(LOG_LINES).collect::<Vec<_>>().join("\n")
    }
}

/// Compiles a source for an architecture such as `sm_90`.
pub(crate) fn compile_source(source: &str, architecture: &str) -> Result<Vec<u8>> {
    check_nvrtc_available()?;
    let source = CString::new(source)
        .map_err(|_| PluginError::invalid_argument("expected a source of text, found a byte of 0 in it"))?;
    let program = result::create_program(&source, None);
    let program = NvrtcProgram(program.map_err(|error| nvrtc_error("nvrtcCreateProgram", error))?);
    let options = [format!("--gpu-architecture={architecture}"), COMPILER_OPTIONS.to_owned()];
    // SAFETY: the program is alive until the end of this function, here and below.
    unsafe { result::compile_program(program.0, &options) }.map_err(|error| {
        let log = program.compiler_log();
        let said = if log.is_empty() { format!("{error:?}") } else { log };
        PluginError::external(format!("NVRTC for {architecture} says: {said}"))
            .with_native_code(error.0 as i64)
    })?;
    let mut size = 0;
    // SAFETY: the size is a local that the call may write.
    unsafe { sys::nvrtcGetCUBINSize(program.0, &raw mut size) }
        .result()
        .map_err(|error| nvrtc_error("nvrtcGetCUBINSize", error))?;
    let mut binary = vec![0u8; size];
    // SAFETY: the buffer has the size that the compiler reported.
    unsafe { sys::nvrtcGetCUBIN(program.0, binary.as_mut_ptr().cast()) }
        .result()
        .map_err(|error| nvrtc_error("nvrtcGetCUBIN", error))?;
    Ok(binary)
}
