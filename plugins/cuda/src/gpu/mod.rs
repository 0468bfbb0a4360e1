//! An open device: its memory, and everything created on it.

#![expect(unsafe_code, reason = "memory is taken by C functions")]

mod detected;
mod discovery;
mod queue;

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use cudarc::driver::result::{free_host, free_sync, malloc_host, malloc_sync, mem_get_info};
use cudarc::driver::sys::CU_MEMHOSTALLOC_PORTABLE;
use oarlock_portable::{CompiledProgram, DiscoveredGpus, Gpu, KernelLanguage};
use oarlock_sdk::{HostPointer, HostServices, Result, Stream};

use self::detected::DetectedCudaDevice;
use self::queue::{CudaEvent, CudaQueue};
use crate::compiler;
use crate::context::{DriverHandle, PrimaryContext};
use crate::cublas::CublasHandle;
use crate::program::CudaProgram;

pub(crate) struct CudaGpu {
    pub(crate) context: Arc<PrimaryContext>,
    architecture: String,
    blas: OnceLock<CublasHandle>,
}

#[derive(Clone, Copy)]
pub(crate) struct CudaAddress(pub(crate) u64);

impl CudaGpu {
    /// The device's cuBLASLt handle, created on first use.
    pub(crate) fn cublas_handle(&self) -> Result<&CublasHandle> {
        if let Some(blas) = self.blas.get() {
            return Ok(blas);
        }
        let made = CublasHandle::new(&self.context)?;
        // If another thread was faster, its handle is used.
        Ok(self.blas.get_or_init(|| made))
    }
}

impl Gpu for CudaGpu {
    type DetectedDevice = DetectedCudaDevice;
    type Block = CudaAddress;
    type Pinned = DriverHandle<*mut c_void>;
    type Queue = CudaQueue;
    type Event = CudaEvent;
    type Program = CudaProgram;

    fn find_devices(_: &HostServices) -> Result<DiscoveredGpus<Self>> {
        discovery::find_devices()
    }

    fn open_device(idle: &DetectedCudaDevice) -> Result<Self> {
        let context = Arc::new(PrimaryContext::retain_primary_context(idle.raw)?);
        Ok(Self { context, architecture: idle.architecture.clone(), blas: OnceLock::new() })
    }

    fn allocate_block(&self, size: u64) -> Result<CudaAddress> {
        let entered = self.context.enter_context()?;
        // SAFETY: only `free_block` frees the memory.
        let address = unsafe { malloc_sync(size as usize) };
        entered.check_result("cuMemAlloc", address).map(CudaAddress)
    }

    fn free_block(&self, CudaAddress(address): CudaAddress) -> Result<()> {
        // SAFETY: `allocate_block` allocated the block, and no clone of it is in use.
        self.context.release_resource("cuMemFree", || unsafe { free_sync(address) })
    }

    fn memory_usage(&self) -> Result<Option<(u64, u64)>> {
        let entered = self.context.enter_context()?;
        let (free, total) = entered.check_result("cuMemGetInfo", mem_get_info())?;
        Ok(Some((total as u64, free as u64)))
    }

    fn allocate_pinned(&self, size: u64) -> Result<(HostPointer, Self::Pinned)> {
        let entered = self.context.enter_context()?;
        // SAFETY: only `free_pinned` frees the memory.
        let address = unsafe { malloc_host(size as usize, CU_MEMHOSTALLOC_PORTABLE) };
        let address = entered.check_result("cuMemHostAlloc", address)?;
        Ok((HostPointer::new(address, "address")?, DriverHandle(address)))
    }

    fn free_pinned(&self, DriverHandle(address): Self::Pinned) -> Result<()> {
        // SAFETY: `allocate_pinned` allocated the memory, and nothing else knows of it any more.
        self.context.release_resource("cuMemFreeHost", || unsafe { free_host(address) })
    }

    fn create_queue(&self, stream: Stream, priority: i32) -> Result<CudaQueue> {
        CudaQueue::new(&self.context, stream, priority)
    }

    fn create_event(&self) -> Result<CudaEvent> {
        CudaEvent::new(&self.context)
    }

    fn kernel_language(&self) -> KernelLanguage {
        KernelLanguage::Cuda
    }

    fn compiler_identity(&self) -> Result<String> {
        let (version, architecture) = (compiler::nvrtc_version()?, &self.architecture);
        Ok(format!(
            "NVRTC {}.{}\n{architecture}\n{}",
            version.major,
            version.minor,
            compiler::COMPILER_OPTIONS
        ))
    }

    fn compile_program(&self, source: &str, _with_binary: bool) -> Result<CompiledProgram<CudaProgram>> {
        let binary = compiler::compile_source(source, &self.architecture)?;
        Ok(CompiledProgram { program: self.load_program(&binary)?, binary: Some(binary) })
    }

    fn load_program(&self, binary: &[u8]) -> Result<CudaProgram> {
        CudaProgram::load_program(&self.context, binary)
    }
}
