//! Programs in the memory of a device.

#![expect(unsafe_code, reason = "modules are C objects")]

use std::ffi::CString;
use std::sync::Arc;

use cudarc::driver::result::module;
use cudarc::driver::sys::{CUfunction, CUmodule};
use oarlock_portable::ENTRY;
use oarlock_sdk::{Error, Result};

use crate::context::{Context, Handle};

/// What the code of a chip starts with.
const MAGIC: &[u8] = b"\x7fELF";

/// A program in the memory of a device.
pub(crate) struct Program {
    context: Arc<Context>,
    module: Handle<CUmodule>,
    pub(crate) function: Handle<CUfunction>,
}

impl Program {
    pub(crate) fn load(context: &Arc<Context>, binary: &[u8]) -> Result<Self> {
        // The driver finds the size in the code itself, so that it must not be anything else.
        if !binary.starts_with(MAGIC) {
            return Err(Error::invalid_argument(
                "expected a program that was compiled for a chip, found other bytes",
            ));
        }
        let entered = context.enter()?;
        // SAFETY: the bytes are code that NVRTC has made, which is kept with a hash.
        let module = unsafe { module::load_data(binary.as_ptr().cast()) };
        let module = Handle(entered.check("cuModuleLoadData", module)?);
        let name =
            CString::new(ENTRY).map_err(|_| Error::fatal("the name of the kernel holds a byte of 0"))?;
        // SAFETY: the module is alive.
        let function = unsafe { module::get_function(module.0, name) };
        // Made first, so that the module is given back where it has no such function.
        let mut program =
            Self { context: Arc::clone(context), module, function: Handle(std::ptr::null_mut()) };
        program.function = Handle(entered.check("cuModuleGetFunction", function)?);
        Ok(program)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // There is nobody to tell of a failure.
        let _ = self.context.give_back("cuModuleUnload", || {
            // SAFETY: the module is alive and not used after this.
            unsafe { module::unload(self.module.0) }
        });
    }
}
