//! An open device: its memory and its programs.

#![expect(unsafe_code, reason = "buffers and programs are made by C functions")]

mod detected;
mod discovery;
mod queue;

use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use oarlock_portable::{CompiledProgram, DiscoveredGpus, Gpu, KERNEL_ENTRY_POINT, KernelLanguage};
use oarlock_sdk::{HostPointer, HostServices, PluginError, Result, Stream, ensure};
use opencl3::command_queue::{enqueue_map_buffer, enqueue_unmap_mem_object};
use opencl3::context::Context;
use opencl3::kernel::Kernel;
use opencl3::memory::{
    Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, ClMem, cl_mem_flags,
};
use opencl3::program::Program;
use opencl3::types::CL_TRUE;

use self::detected::DetectedOpenClDevice;
use self::queue::{OpenClEvent, OpenClQueue};
use crate::error::driver_error;

/// Lines of the compiler's log that an error message shows.
const LOG_LINES: usize = 12;

pub(crate) struct OpenClGpu {
    idle: DetectedOpenClDevice,
    context: Context,
    /// Queue for mapping pinned memory.
    mapping: OpenClQueue,
}

/// A compiled program. Arguments are set one by one, so only one thread at a time can launch it.
pub(crate) struct OpenClProgram(pub(crate) Mutex<Kernel>);

/// Pinned memory: a buffer of the driver that stays mapped.
pub(crate) struct MappedBuffer {
    buffer: Buffer<u8>,
    address: usize,
}

impl OpenClGpu {
    fn create_buffer(&self, flags: cl_mem_flags, size: u64) -> Result<Buffer<u8>> {
        // SAFETY: the context is alive, and no host memory is passed.
        let buffer = unsafe { Buffer::create(&self.context, flags, size as usize, std::ptr::null_mut()) };
        buffer.map_err(|error| driver_error("clCreateBuffer", error))
    }

    fn build_program(&self, mut source: Program) -> Result<(OpenClProgram, Program)> {
        source.build(self.context.devices(), &self.idle.options).map_err(|error| {
            let log = source.get_build_log(self.context.default_device()).unwrap_or_default();
            let lines: Vec<&str> = log.trim().lines().take(LOG_LINES).collect();
            let name = &self.idle.name;
            PluginError::external(format!("the OpenCL compiler of `{name}` says: {}", lines.join("\n")))
                .with_native_code(error.0.into())
        })?;
        let kernel = Kernel::create(&source, KERNEL_ENTRY_POINT)
            .map_err(|error| driver_error("clCreateKernel", error))?;
        Ok((OpenClProgram(Mutex::new(kernel)), source))
    }
}

impl Gpu for OpenClGpu {
    type DetectedDevice = DetectedOpenClDevice;
    type Block = Arc<Buffer<u8>>;
    type Pinned = MappedBuffer;
    type Queue = OpenClQueue;
    type Event = OpenClEvent;
    type Program = OpenClProgram;

    fn find_devices(host: &HostServices) -> Result<DiscoveredGpus<Self>> {
        discovery::find_devices(host)
    }

    fn open_device(idle: &DetectedOpenClDevice) -> Result<Self> {
        let _turn = discovery::lock_driver_setup();
        let context =
            Context::from_device(&idle.device).map_err(|error| driver_error("clCreateContext", error))?;
        let mapping = OpenClQueue::new(&context, Stream(0))?;
        Ok(Self { idle: idle.clone(), context, mapping })
    }

    fn allocate_block(&self, size: u64) -> Result<Self::Block> {
        self.create_buffer(CL_MEM_READ_WRITE, size).map(Arc::new)
    }

    fn free_block(&self, block: Self::Block) -> Result<()> {
        // The driver keeps the memory alive for commands that are still queued.
        drop(block);
        Ok(())
    }

    fn allocate_pinned(&self, size: u64) -> Result<(HostPointer, MappedBuffer)> {
        let most = self.idle.largest_block;
        ensure!(
            size <= most,
            resource_exhausted,
            "expected a request for at most {most} bytes of page-locked memory, found {size}"
        );
        let buffer = self.create_buffer(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size)?;
        let mut address = std::ptr::null_mut();
        self.mapping.enqueue_command("clEnqueueMapBuffer", |queue| {
            let access = CL_MAP_READ | CL_MAP_WRITE;
            let (size, list) = (size as usize, std::ptr::null());
            // SAFETY: queue and buffer are alive, and the whole buffer is mapped.
            unsafe {
                enqueue_map_buffer(queue, buffer.get(), CL_TRUE, access, 0, size, &mut address, 0, list)
            }
        })?;
        let pointer = HostPointer::new(address, "address").map_err(|_| {
            PluginError::resource_exhausted("expected the driver to map its memory, found no address")
        })?;
        Ok((pointer, MappedBuffer { buffer, address: address.expose_provenance() }))
    }

    fn free_pinned(&self, MappedBuffer { buffer, address }: MappedBuffer) -> Result<()> {
        let address = std::ptr::with_exposed_provenance_mut::<c_void>(address);
        self.mapping.enqueue_command("clEnqueueUnmapMemObject", |queue| {
            // SAFETY: queue and buffer are alive, and the buffer was mapped at this address.
            unsafe { enqueue_unmap_mem_object(queue, buffer.get(), address, 0, std::ptr::null()) }
        })
    }

    fn create_queue(&self, stream: Stream, _priority: i32) -> Result<OpenClQueue> {
        OpenClQueue::new(&self.context, stream)
    }

    fn create_event(&self) -> Result<OpenClEvent> {
        Ok(OpenClEvent::default())
    }

    fn kernel_language(&self) -> KernelLanguage {
        KernelLanguage::OpenCl
    }

    fn compiler_identity(&self) -> Result<String> {
        Ok(self.idle.identity.clone())
    }

    fn caches_programs(&self) -> bool {
        self.idle.keeps_programs
    }

    fn compile_program(&self, source: &str, with_binary: bool) -> Result<CompiledProgram<OpenClProgram>> {
        let source = Program::create_from_source(&self.context, source)
            .map_err(|error| driver_error("clCreateProgramWithSource", error))?;
        let (program, built) = self.build_program(source)?;
        if !with_binary {
            return Ok(CompiledProgram { program, binary: None });
        }
        // If the driver exposes no binary, the program is compiled again next time.
        let binary = built.get_binaries().ok().and_then(|binaries| binaries.into_iter().next());
        Ok(CompiledProgram { program, binary: binary.filter(|binary| !binary.is_empty()) })
    }

    fn load_program(&self, binary: &[u8]) -> Result<OpenClProgram> {
        // SAFETY: the devices belong to the context, and there is one binary for the one device.
        let source = unsafe { Program::create_from_binary(&self.context, self.context.devices(), &[binary]) };
        let source = source.map_err(|error| driver_error("clCreateProgramWithBinary", error))?;
        Ok(self.build_program(source)?.0)
    }
}
