//! Compiling, loading and launching.

#![expect(unsafe_code, reason = "modules are C objects, and the arguments of a kernel are untyped")]

use std::ffi::{CString, c_void};
use std::sync::Arc;

use cudarc::driver::result::{launch_kernel, module};
use cudarc::driver::sys::{CUfunction, CUmodule};
use oarlock_portable::{Argument, Compiled, ENTRY, Gpu, Grid, Language, Limits, Programs};
use oarlock_sdk::{Error, Memory, Result, Stream};

use crate::compiler;
use crate::context::{Context, Handle};
use crate::state::Cuda;

/// What the code of a chip starts with.
const MAGIC: &[u8] = b"\x7fELF";

/// A program in the memory of a device.
pub(crate) struct Program {
    context: Arc<Context>,
    module: Handle<CUmodule>,
    function: Handle<CUfunction>,
}

impl Program {
    fn load(context: &Arc<Context>, binary: &[u8]) -> Result<Self> {
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

impl Gpu for Cuda {
    type Program = Program;

    fn language(&self) -> Language {
        Language::Cuda
    }

    fn limits(&self, device: u32) -> Result<Limits> {
        self.device(device)?;
        Ok(Limits { has_f64: true })
    }

    fn identity(&self, device: u32) -> Result<String> {
        let architecture = &self.device(device)?.facts.architecture;
        let version = compiler::version()?;
        Ok(format!("NVRTC {}.{}\n{architecture}\n{}", version.major, version.minor, compiler::OPTIONS))
    }

    fn programs(&self) -> &Programs<Program> {
        &self.programs
    }

    fn compile(&self, device: u32, source: &str) -> Result<Compiled<Program>> {
        let device = self.device(device)?;
        let binary = compiler::compile(source, &device.facts.architecture)?;
        let program = Program::load(&device.session()?.context, &binary)?;
        Ok(Compiled { program, binary: Some(binary) })
    }

    fn load(&self, device: u32, binary: &[u8]) -> Result<Program> {
        Program::load(&self.session(device)?.context, binary)
    }

    fn launch(
        &self,
        device: u32,
        stream: Stream,
        program: &Program,
        grid: Grid,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        let session = self.session(device)?;
        let queue = session.queue(stream)?;
        let address = |argument: &Argument<'_>| match *argument {
            Argument::Memory { block: Memory(0), .. } | Argument::Value(_) => Ok(0),
            Argument::Memory { block, begin, end } => session.blocks.range(block, begin, end),
        };
        let addresses: Vec<u64> = arguments.iter().map(address).collect::<Result<_>>()?;
        let place = |(argument, address): (&Argument<'_>, &u64)| match argument {
            Argument::Memory { .. } => (&raw const *address).cast_mut().cast(),
            Argument::Value(bytes) => bytes.as_ptr().cast_mut().cast(),
        };
        let mut places: Vec<*mut c_void> = arguments.iter().zip(&addresses).map(place).collect();
        let (groups, block) = ((grid.groups, 1, 1), (grid.block[0], grid.block[1], 1));
        queue.put("cuLaunchKernel", |stream| {
            // SAFETY: function and stream are alive and of one context, and there is a place for each parameter, which is
            // read before the call returns. What the kernel touches lies in the blocks that were checked above.
            unsafe { launch_kernel(program.function.0, groups, block, 0, stream, &mut places) }
        })
    }
}
