//! Compiling by NVRTC, for one architecture at a time, to the code of the chip.

#![expect(unsafe_code, reason = "NVRTC is a C library")]

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use cudarc::nvrtc::{result, sys};
use oarlock_sdk::{Error, Result, Version};

use crate::error::nvrtc_failed;
use crate::libraries;

/// How many lines of what the compiler says a user gets to see.
const LOG_LINES: usize = 12;

/// The options beside the architecture. Warnings are for whoever writes kernels.
pub(crate) const OPTIONS: &str = "--disable-warnings";

/// Whether NVRTC is on the machine. It has to be asked before anything else here is.
pub(crate) fn is_there() -> bool {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    *IS_THERE.get_or_init(|| {
        libraries::open(libraries::NVRTC);
        // SAFETY: opening NVRTC runs nothing but its own start.
        unsafe { sys::is_culib_present() }
    })
}

/// Refuses to go on without NVRTC.
pub(crate) fn check() -> Result<()> {
    if is_there() {
        return Ok(());
    }
    Err(Error::unavailable(format!("expected the compiler {}", libraries::missing(libraries::NVRTC))))
}

/// The version of NVRTC.
pub(crate) fn version() -> Result<Version> {
    check()?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both numbers are ours to write.
    let code = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
    code.result().map_err(|error| nvrtc_failed("nvrtcVersion", error))?;
    Ok(Version { major: major.cast_unsigned(), minor: minor.cast_unsigned(), ..Version::EMPTY })
}

/// A program of NVRTC, given back when dropped.
struct Program(sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program is alive and not used after this. There is nobody to tell of a failure.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

impl Program {
    /// What the compiler said, without the end.
    fn log(&self) -> String {
        // SAFETY: the program is alive.
        let log = unsafe { result::get_program_log(self.0) }.unwrap_or_default();
        let bytes: Vec<u8> =
            log.into_iter().take_while(|letter| *letter != 0).map(c_char::cast_unsigned).collect();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        text.trim().lines().take(LOG_LINES).collect::<Vec<_>>().join("\n")
    }
}

/// Compiles a source for an architecture such as `sm_90`.
pub(crate) fn compile(source: &str, architecture: &str) -> Result<Vec<u8>> {
    check()?;
    let source = CString::new(source)
        .map_err(|_| Error::invalid_argument("expected a source of text, found a byte of 0 in it"))?;
    let program = result::create_program(&source, None);
    let program = Program(program.map_err(|error| nvrtc_failed("nvrtcCreateProgram", error))?);
    let options = [format!("--gpu-architecture={architecture}"), OPTIONS.to_owned()];
    // SAFETY: the program is alive, as below.
    unsafe { result::compile_program(program.0, &options) }.map_err(|error| {
        let log = program.log();
        let said = if log.is_empty() { format!("{error:?}") } else { log };
        Error::external(format!("NVRTC for {architecture} says: {said}")).native(error.0 as i64)
    })?;
    let mut size = 0;
    // SAFETY: the size is ours to write.
    unsafe { sys::nvrtcGetCUBINSize(program.0, &raw mut size) }
        .result()
        .map_err(|error| nvrtc_failed("nvrtcGetCUBINSize", error))?;
    let mut binary = vec![0u8; size];
    // SAFETY: there is room for as many bytes as the compiler has.
    unsafe { sys::nvrtcGetCUBIN(program.0, binary.as_mut_ptr().cast()) }
        .result()
        .map_err(|error| nvrtc_failed("nvrtcGetCUBIN", error))?;
    Ok(binary)
}
