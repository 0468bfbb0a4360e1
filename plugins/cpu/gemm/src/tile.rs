//! Micro-kernels: the innermost loop of a product. Each computes one tile of the output from a left panel and a right panel; a
//! tile is small enough that all its accumulators stay in registers.
//!
//! There is one function for each number of rows and vectors, so that small or ragged products do no work for missing rows or
//! vectors. Each type and instruction set has a table of these functions.

#[cfg(any(target_arch = "x86_64", arm_vectors))]
mod dot;
#[cfg(arm_vectors)]
mod neon;
mod portable;
#[cfg(target_arch = "x86_64")]
mod vectors;

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::subnormals::flush_subnormal_weights;

use super::ConvertTo;

/// The arguments of a micro-kernel.
pub struct GemmTile<T> {
    /// Products per sum.
    pub depth: usize,
    /// The first element of the left panel, and the distances between its rows and between its steps.
    pub left: *const T,
    pub left_row: isize,
    pub left_depth: isize,
    /// The first element of the right panel, whose columns are contiguous, and the distance between its steps.
    pub right: *const T,
    pub right_depth: isize,
    /// The first element of the output, whose columns are contiguous, and the distance between its rows.
    pub output: *mut T,
    pub output_row: usize,
    /// Columns to write. The right panel is readable up to the next whole vector.
    pub columns: usize,
    /// True if sums are added to the output instead of replacing it.
    pub add: bool,
    /// The address to prefetch for later tiles, and the bytes by which it advances with each step. A prefetch never faults, so any
    /// address is valid.
    pub ahead: *const u8,
    pub ahead_step: isize,
}

/// # Safety
///
/// For the number of rows of the function, the panels are readable and the output is writable as [`GemmTile`] describes. Nothing
/// else accesses the output meanwhile, and the processor has the instruction set of the function's table.
pub(crate) type GemmMicroKernel<T> = unsafe fn(&GemmTile<T>);

/// A range and rows to multiply it with, each of which has `depth` contiguous elements.
pub(crate) struct DotRows<T> {
    pub left: *const T,
    /// The first row, which may have any alignment, and the distance between rows.
    pub right: *const T,
    pub right_row: usize,
    pub depth: usize,
    /// True if rows are read from memory, so that prefetching pays.
    pub is_far: bool,
}

/// Computes the dot products of a range with as many rows as there are sums.
///
/// # Safety
///
/// The range and these rows have as many elements as `depth`, and the processor has the instruction set of the function's table.
pub(crate) type DotKernel<T> = unsafe fn(&DotRows<T>, &mut [T]);

/// The micro-kernels of one type and one instruction set.
pub struct GemmMicroKernels<T: 'static> {
    /// Lanes of a vector.
    vector: usize,
    /// Indexed by number of vectors, then by number of rows, each minus one.
    tiles: &'static [&'static [GemmMicroKernel<T>]],
    dot: DotKernel<T>,
}

impl<T> GemmMicroKernels<T> {
    pub fn max_rows(&self) -> usize {
        self.tiles[0].len()
    }

    pub fn max_columns(&self) -> usize {
        self.tiles.len() * self.vector
    }

    /// Lanes of a vector. Right panels are read in whole vectors.
    pub fn vector_lanes(&self) -> usize {
        self.vector
    }

    pub(crate) fn dot_kernel(&self) -> DotKernel<T> {
        self.dot
    }

    pub fn micro_kernel(&self, rows: usize, columns: usize) -> GemmMicroKernel<T> {
        self.tiles[columns.div_ceil(self.vector) - 1][rows - 1]
    }
}

/// A type in which products are computed. Integers wrap around, so unsigned ones are computed as signed ones of their size.
pub trait GemmElement: ArithmeticElement + ConvertTo<Self> {
    /// True if most models multiply such numbers. For others, code for each small number of rows would only enlarge the plugin.
    const IS_COMMON: bool = false;

    /// The micro-kernels for an instruction set that the machine has.
    fn micro_kernels(isa: Isa) -> &'static GemmMicroKernels<Self>;

    /// Replaces weights by zero that are slow to multiply, and too small to matter beside others.
    fn flush_weights(_isa: Isa, _weights: &mut [Self]) {}
}

macro_rules! floats {
    ($($float:ident: $sse41:ident $avx2:ident $avx512:ident $neon:ident $({ $($method:item)* })?)*) => {
        $(impl GemmElement for $float {
            // Otherwise each crate that multiplies would compile the kernels again.
            #[inline(never)]
            fn micro_kernels(isa: Isa) -> &'static GemmMicroKernels<Self> {
                match isa {
                    #[cfg(x86_vectors)]
                    Isa::Avx512 | Isa::Amx => &vectors::$avx512::MICRO_KERNELS,
                    #[cfg(x86_vectors)]
                    Isa::Avx2 | Isa::AvxVnni => &vectors::$avx2::MICRO_KERNELS,
                    #[cfg(target_arch = "x86_64")]
                    Isa::Sse41 => &vectors::$sse41::MICRO_KERNELS,
                    #[cfg(arm_vectors)]
                    Isa::Neon | Isa::DotProd | Isa::I8mm => &neon::$neon::MICRO_KERNELS,
                    _ => portable::baseline_kernels(),
                }
            }

            $($($method)*)?
        })*
    };
}

macro_rules! integers {
    ($($integer:ty)*) => {
        $(impl GemmElement for $integer {
            // Otherwise each crate that multiplies would compile the kernels again.
            #[inline(never)]
            fn micro_kernels(isa: Isa) -> &'static GemmMicroKernels<Self> {
                portable::best_kernels(isa)
            }
        })*
    };
}

floats! {
    f32: sse41_f32 avx2_f32 avx512_f32 neon_f32 {
        const IS_COMMON: bool = true;

        fn flush_weights(isa: Isa, weights: &mut [f32]) {
            flush_subnormal_weights(isa, weights);
        }
    }
    f64: sse41_f64 avx2_f64 avx512_f64 neon_f64
}
integers!(i32 i64);
