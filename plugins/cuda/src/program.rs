//! Programs in the memory of a device.

#![expect(unsafe_code, reason = "modules are C objects")]

use std::ffi::CString;
use std::sync::Arc;

use cudarc::driver::result::module;
use cudarc::driver::sys::{CUfunction, CUmodule};
use oarlock_portable::KERNEL_ENTRY_POINT;
use oarlock_sdk::{PluginError, Result};

use crate::context::{DriverHandle, PrimaryContext};

/// What the code of a chip starts with.
const ELF_MAGIC: &[u8] = b"\x7fELF";

/// A program in the memory of a device.
pub(crate) struct CudaProgram {
    context: Arc<PrimaryContext>,
    module: DriverHandle<CUmodule>,
    pub(crate) function: DriverHandle<CUfunction>,
}

impl CudaProgram {
    pub(crate) fn load_program(context: &Arc<PrimaryContext>, binary: &[u8]) -> Result<Self> {
        // The driver finds the size in the code itself, so that it must not be anything else.
        if !binary.starts_with(ELF_MAGIC) {
            return Err(PluginError::invalid_argument(
                "expected a program that was compiled for a chip, found other bytes",
            ));
        }
        let entered = context.enter_context()?;
        // SAFETY: the bytes are code that NVRTC has made, which is kept with a hash.
        let module = unsafe { module::load_data(binary.as_ptr().cast()) };
        let module = DriverHandle(entered.check_result("cuModuleLoadData", module)?);
        let name = CString::new(KERNEL_ENTRY_POINT)
            .map_err(|_| PluginError::fatal("the name of the kernel holds a byte of 0"))?;
        // SAFETY: the module is alive.
        let function = unsafe { module::get_function(module.0, name) };
        // Made first, so that the module is given back where it has no such function.
        let mut program =
            Self { context: Arc::clone(context), module, function: DriverHandle(std::ptr::null_mut()) };
        program.function = DriverHandle(entered.check_result("cuModuleGetFunction", function)?);
        Ok(program)
    }
}

impl Drop for CudaProgram {
    fn drop(&mut self) {
        // There is nobody to tell of a failure.
        let _ = self.context.release_resource("cuModuleUnload", || {
            // SAFETY: the module is alive and not used after this.
            unsafe { module::unload(self.module.0) }
        });
    }
}
