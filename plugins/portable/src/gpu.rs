//! What a GPU plugin provides, so that all kernels of this crate run on it.

use oarlock_sdk::{Call, Memory, Result, Stream};

use crate::program::Programs;
use crate::source::Variant;

/// The language a driver compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// OpenCL C 1.2.
    OpenCl,
    /// CUDA C++, as NVRTC compiles it without headers.
    Cuda,
    /// HIP C++, as hipRTC compiles it.
    Hip,
}

/// The name of the one function in every source.
pub const ENTRY: &str = "oarlock_kernel";

/// How many work-items a work-group has at most; a device that has room for fewer cannot run these kernels.
pub const WORK_GROUP: u32 = 256;

/// How much local memory a kernel needs at most, in bytes.
pub const LOCAL_MEMORY: u64 = 32 << 10;

/// What sources and calls depend on beside their operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Whether the device computes in 64-bit floating point.
    pub has_f64: bool,
}

/// A program as it is compiled, and what to keep of it.
#[derive(Debug)]
pub struct Compiled<P> {
    /// The program, ready to be launched.
    pub program: P,
    /// The program as [`Gpu::load`] takes it, where the driver hands it out.
    pub binary: Option<Vec<u8>>,
}

/// How many work-groups of how many work-items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The number of work-groups, all in the first dimension.
    pub groups: u32,
    /// The work-items of a group in the first and the second dimension, which are also written into the source.
    pub block: [u32; 2],
}

/// One argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument<'a> {
    /// The start of a block of device memory; where in it an operand starts is an argument of its own, the next one. The
    /// bytes from `begin` to before `end` of the block are touched, so a driver that knows the size of its blocks refuses
    /// what lies outside. `Memory(0)` stands for no memory, which is not touched.
    Memory {
        /// The block.
        block: Memory,
        /// The first byte.
        begin: u64,
        /// The byte behind the last.
        end: u64,
    },
    /// A value as it lies in memory: an integer, a floating-point number or a struct of 64-bit integers.
    Value(&'a [u8]),
}

/// A GPU: compiles sources and launches them. Everything else about kernels is in this crate.
///
/// A driver implements this for the type that implements [`Core`](oarlock_sdk::Core), and registers
/// [`kernels`](crate::kernels) with its plugin.
pub trait Gpu: Send + Sync + Sized + 'static {
    /// A compiled program of one function, [`ENTRY`].
    type Program: Send + Sync + 'static;

    /// The language that [`Gpu::compile`] takes.
    fn language(&self) -> Language;

    /// What a device can do. Asked in every call, so it only reads what is known.
    fn limits(&self, device: u32) -> Result<Limits>;

    /// Device, driver and compiler options as text: a binary is used again where this is the same.
    fn identity(&self, device: u32) -> Result<String>;

    /// The driver's programs, which this crate fills.
    fn programs(&self) -> &Programs<Self::Program>;

    /// Compiles a source. The error of one that does not compile starts with what the compiler said.
    fn compile(&self, device: u32, source: &str) -> Result<Compiled<Self::Program>>;

    /// Makes a program of a binary that [`Gpu::compile`] handed out earlier. Failing means that it is compiled again.
    fn load(&self, device: u32, binary: &[u8]) -> Result<Self::Program>;

    /// Puts one run of a program into a stream; in stream 0 it is done when this returns. The arguments are those of
    /// [`ENTRY`], in its order.
    fn launch(
        &self,
        device: u32,
        stream: Stream,
        program: &Self::Program,
        grid: Grid,
        arguments: &[Argument<'_>],
    ) -> Result<()>;
}

/// Runs a variant for a call.
pub(crate) fn launch<G: Gpu>(
    gpu: &G,
    call: &Call<'_>,
    variant: &Variant,
    groups: u32,
    arguments: &[Argument<'_>],
) -> Result<()> {
    let program = gpu.programs().get(gpu, call.device(), variant)?;
    let grid = Grid { groups, block: variant.block() };
    gpu.launch(call.device(), call.stream(), &program, grid, arguments)
}
