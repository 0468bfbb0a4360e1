//! A device in use: its memory, and what is made on it.

#![expect(unsafe_code, reason = "memory is taken by C functions")]

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use cudarc::driver::result::{free_host, free_sync, malloc_host, malloc_sync, mem_get_info};
use cudarc::driver::sys::CU_MEMHOSTALLOC_PORTABLE;
use oarlock_portable::{Compiled, Found, Gpu, Language};
use oarlock_sdk::{Host, HostPointer, Result, Stream};

use crate::blas::Blas;
use crate::compiler;
use crate::context::{Context, Handle};
use crate::event::Point;
use crate::find;
use crate::idle::Idle;
use crate::program::Program;
use crate::queue::Queue;

/// One device in use.
pub(crate) struct Cuda {
    pub(crate) context: Arc<Context>,
    architecture: String,
    blas: OnceLock<Blas>,
}

/// The address of a block on the device.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(crate) u64);

impl Cuda {
    /// The device's cuBLASLt.
    pub(crate) fn blas(&self) -> Result<&Blas> {
        if let Some(blas) = self.blas.get() {
            return Ok(blas);
        }
        let made = Blas::new(&self.context)?;
        // Where another thread was faster, its handle is used.
        Ok(self.blas.get_or_init(|| made))
    }
}

impl Gpu for Cuda {
    type Idle = Idle;
    type Block = Address;
    type Pinned = Handle<*mut c_void>;
    type Queue = Queue;
    type Event = Point;
    type Program = Program;

    fn find(_: &Host) -> Result<Found<Self>> {
        find::find()
    }

    fn open(idle: &Idle) -> Result<Self> {
        let context = Arc::new(Context::retain(idle.raw)?);
        Ok(Self { context, architecture: idle.architecture.clone(), blas: OnceLock::new() })
    }

    fn allocate(&self, size: u64) -> Result<Address> {
        let entered = self.context.enter()?;
        // SAFETY: the memory is given back by `free` only.
        let address = unsafe { malloc_sync(size as usize) };
        entered.check("cuMemAlloc", address).map(Address)
    }

    fn free(&self, Address(address): Address) -> Result<()> {
        // SAFETY: the block was taken by `allocate`, and no other copy of it is used any more.
        self.context.give_back("cuMemFree", || unsafe { free_sync(address) })
    }

    fn memory(&self) -> Result<Option<(u64, u64)>> {
        let entered = self.context.enter()?;
        let (free, total) = entered.check("cuMemGetInfo", mem_get_info())?;
        Ok(Some((total as u64, free as u64)))
    }

    fn allocate_pinned(&self, size: u64) -> Result<(HostPointer, Self::Pinned)> {
        let entered = self.context.enter()?;
        // SAFETY: the memory is given back by `free_pinned` only.
        let address = unsafe { malloc_host(size as usize, CU_MEMHOSTALLOC_PORTABLE) };
        let address = entered.check("cuMemHostAlloc", address)?;
        Ok((HostPointer::new(address, "address")?, Handle(address)))
    }

    fn free_pinned(&self, Handle(address): Self::Pinned) -> Result<()> {
        // SAFETY: the memory was taken by `allocate_pinned`, and is known to nobody else any more.
        self.context.give_back("cuMemFreeHost", || unsafe { free_host(address) })
    }

    fn queue(&self, stream: Stream, priority: i32) -> Result<Queue> {
        Queue::new(&self.context, stream, priority)
    }

    fn event(&self) -> Result<Point> {
        Point::new(&self.context)
    }

    fn language(&self) -> Language {
        Language::Cuda
    }

    fn identity(&self) -> Result<String> {
        let (version, architecture) = (compiler::version()?, &self.architecture);
        Ok(format!("NVRTC {}.{}\n{architecture}\n{}", version.major, version.minor, compiler::OPTIONS))
    }

    fn compile(&self, source: &str, _with_binary: bool) -> Result<Compiled<Program>> {
        let binary = compiler::compile(source, &self.architecture)?;
        Ok(Compiled { program: self.load(&binary)?, binary: Some(binary) })
    }

    fn load(&self, binary: &[u8]) -> Result<Program> {
        Program::load(&self.context, binary)
    }
}
