//! Compiling and launching.

#![expect(unsafe_code, reason = "kernels of the driver are C objects, and their arguments are untyped")]

use std::sync::{Arc, Mutex, PoisonError};

use oarlock_portable::{Argument, Compiled, ENTRY, Gpu, Grid, Language, Limits, Programs};
use oarlock_sdk::{Error, Memory, Result, Stream};
use opencl3::command_queue::enqueue_nd_range_kernel;
use opencl3::kernel::{Kernel, set_kernel_arg};
use opencl3::memory::{Buffer, ClMem};
use opencl3::program::Program as Source;
use opencl3::types::cl_mem;

use crate::device::Device;
use crate::error::failed;
use crate::state::OpenCl;

/// How many lines of what the compiler says a user gets to see.
const LOG_LINES: usize = 12;

/// A compiled program. Its arguments are set one by one, so that one thread at a time can launch it.
pub(crate) struct Program(Mutex<Kernel>);

impl Program {
    fn new(device: &Device, mut source: Source) -> Result<(Self, Source)> {
        let built = source.build(device.context.devices(), &device.facts.options);
        built.map_err(|error| {
            let log = source.get_build_log(device.context.default_device()).unwrap_or_default();
            let lines: Vec<&str> = log.trim().lines().take(LOG_LINES).collect();
            Error::external(format!(
                "the OpenCL compiler of `{}` says: {}",
                device.facts.name,
                lines.join("\n")
            ))
            .native(error.0.into())
        })?;
        let kernel = Kernel::create(&source, ENTRY).map_err(|error| failed("clCreateKernel", error))?;
        Ok((Self(Mutex::new(kernel)), source))
    }
}

impl Gpu for OpenCl {
    type Program = Program;

    fn language(&self) -> Language {
        Language::OpenCl
    }

    fn limits(&self, device: u32) -> Result<Limits> {
        Ok(Limits { has_f64: self.device(device)?.facts.has_f64 })
    }

    fn identity(&self, device: u32) -> Result<String> {
        Ok(self.device(device)?.facts.identity.clone())
    }

    fn programs(&self) -> &Programs<Program> {
        &self.programs
    }

    fn compile(&self, device: u32, source: &str) -> Result<Compiled<Program>> {
        let device = self.device(device)?;
        let source = Source::create_from_source(&device.context, source)
            .map_err(|error| failed("clCreateProgramWithSource", error))?;
        let (program, built) = Program::new(device, source)?;
        // A driver that keeps its binaries to itself costs compiling again.
        let binary = built.get_binaries().ok().and_then(|binaries| binaries.into_iter().next());
        Ok(Compiled { program, binary: binary.filter(|binary| !binary.is_empty()) })
    }

    fn load(&self, device: u32, binary: &[u8]) -> Result<Program> {
        let device = self.device(device)?;
        // SAFETY: the devices are the context's, and there is one binary for the one device.
        let source =
            unsafe { Source::create_from_binary(&device.context, device.context.devices(), &[binary]) };
        let source = source.map_err(|error| failed("clCreateProgramWithBinary", error))?;
        Ok(Program::new(device, source)?.0)
    }

    fn launch(
        &self,
        device: u32,
        stream: Stream,
        program: &Program,
        grid: Grid,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        let (device, queue) = self.queue(device, stream)?;
        let block = |argument: &Argument<'_>| match *argument {
            Argument::Memory { block: Memory(0), .. } | Argument::Value(_) => Ok(None),
            Argument::Memory { block, begin, end } => {
                Ok(Some(device.blocks.range(block, begin, end)?.buffer))
            }
        };
        // Held until the command is in the queue, which then holds them itself.
        let buffers: Vec<Option<Arc<Buffer<u8>>>> = arguments.iter().map(block).collect::<Result<_>>()?;
        let kernel = program.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, (argument, buffer)) in arguments.iter().zip(&buffers).enumerate() {
            let memory: cl_mem = buffer.as_ref().map_or(std::ptr::null_mut(), |buffer| buffer.get());
            let bytes = match argument {
                Argument::Memory { .. } => (size_of::<cl_mem>(), (&raw const memory).cast()),
                Argument::Value(bytes) => (bytes.len(), bytes.as_ptr().cast()),
            };
            // SAFETY: the kernel is alive, and the bytes are read before the call returns. The driver checks the rest.
            unsafe { set_kernel_arg(kernel.get(), index as u32, bytes.0, bytes.1) }
                .map_err(|code| failed("clSetKernelArg", code))?;
        }
        let [x, y] = grid.block.map(|items| items as usize);
        let (global, local) = ([grid.groups as usize * x, y], [x, y]);
        queue.put("clEnqueueNDRangeKernel", move |queue| {
            // SAFETY: queue and kernel are alive and of one context, both sizes have two dimensions, and the list to wait
            // for is empty. What the kernel touches lies in the blocks that were checked above.
            let event = unsafe {
                enqueue_nd_range_kernel(
                    queue,
                    kernel.get(),
                    2,
                    std::ptr::null(),
                    global.as_ptr(),
                    local.as_ptr(),
                    0,
                    std::ptr::null(),
                )
            };
            // The command has the arguments now, so others may set theirs while this one runs.
            drop(kernel);
            event
        })
    }
}
