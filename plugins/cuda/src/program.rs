//! Compiled programs, loaded on a device.

#![expect(unsafe_code, reason = "modules are C objects")]

use std::ffi::CString;
use std::sync::Arc;

use cudarc::driver::result::module;
use cudarc::driver::sys::{CUfunction, CUmodule};
use oarlock_portable::KERNEL_ENTRY_POINT;
use oarlock_sdk::{PluginError, Result};

use crate::context::{DriverHandle, PrimaryContext};

/// Magic bytes of machine code for the chip (cubin).
const ELF_MAGIC: &[u8] = b"\x7fELF";

pub(crate) struct CudaProgram {
    context: Arc<PrimaryContext>,
    module: DriverHandle<CUmodule>,
    pub(crate) function: DriverHandle<CUfunction>,
}

impl CudaProgram {
    pub(crate) fn load_program(context: &Arc<PrimaryContext>, binary: &[u8]) -> Result<Self> {
        // The driver takes the size from the ELF header, so other bytes would make it read out of bounds.
        if !binary.starts_with(ELF_MAGIC) {
            return Err(PluginError::invalid_argument(
                "expected a program that was compiled for a chip, found other bytes",
            ));
        }
        let entered = context.enter_context()?;
        // SAFETY: the bytes are code from NVRTC, and a hash protects the stored copy.
        let module = unsafe { module::load_data(binary.as_ptr().cast()) };
        let module = DriverHandle(entered.check_result("cuModuleLoadData", module)?);
        let name = CString::new(KERNEL_ENTRY_POINT)
            .map_err(|_| PluginError::fatal("the name of the kernel holds a byte of 0"))?;
        // SAFETY: the module is alive.
        let function = unsafe { module::get_function(module.0, name) };
        // Built before the lookup is checked, so that the module is unloaded if it has no such function.
        let mut program =
            Self { context: Arc::clone(context), module, function: DriverHandle(std::ptr::null_mut()) };
        program.function = DriverHandle(entered.check_result("cuModuleGetFunction", function)?);
        Ok(program)
    }
}

impl Drop for CudaProgram {
    fn drop(&mut self) {
        // `drop` cannot report a failure.
        let _ = self.context.release_resource("cuModuleUnload", || {
            // SAFETY: the module is alive and not used after this.
            unsafe { module::unload(self.module.0) }
        });
    }
}
