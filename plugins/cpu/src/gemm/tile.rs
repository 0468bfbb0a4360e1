//! Micro-kernels: the innermost loop of a product. Each computes one tile of the output, small enough that all its sums stay
//! in registers, from a panel of the left matrix and a panel of the right one.
//!
//! There is one function for each number of rows and of vectors, so that a small or ragged product does no more work than
//! it has elements, and a table of them for each type and instruction set.

#[cfg(x86_vectors)]
mod avx2;
#[cfg(x86_vectors)]
mod avx512;
mod portable;

use oarlock_sdk::Element;

use super::ConvertTo;
use crate::isa::Isa;

/// What a micro-kernel works on.
pub(super) struct GemmTile<T> {
    /// How many products each sum has.
    pub(super) depth: usize,
    /// The first element of the left panel, and how far apart its rows and its steps in depth are.
    pub(super) left: *const T,
    pub(super) left_row: isize,
    pub(super) left_depth: isize,
    /// The first element of the right panel, whose columns lie side by side, and how far apart its steps in depth are.
    pub(super) right: *const T,
    pub(super) right_depth: isize,
    /// The first element of the output, whose columns lie side by side, and how far apart its rows are.
    pub(super) output: *mut T,
    pub(super) output_row: usize,
    /// How many columns are written. The right panel can be read up to the next whole vector.
    pub(super) columns: usize,
    /// Whether the sums are added to what is there.
    pub(super) add: bool,
    /// What other tiles will read, to be asked for meanwhile, and by how many bytes it goes on with each step in depth. Nobody
    /// reads there now, so it may be any address.
    #[cfg_attr(not(x86_vectors), expect(dead_code, reason = "nothing is asked for early there"))]
    pub(super) ahead: *const u8,
    #[cfg_attr(not(x86_vectors), expect(dead_code, reason = "nothing is asked for early there"))]
    pub(super) ahead_step: isize,
}

/// Computes one tile.
///
/// # Safety
///
/// The panels can be read and the output written as [`GemmTile`] says, for as many rows as the function is for, nothing else
/// touches the output meanwhile, and the processor has the instruction set of the table the function is from.
pub(super) type GemmMicroKernel<T> = unsafe fn(&GemmTile<T>);

/// Computes the sum of the products of so many elements that lie side by side. It is told whether the right ones come from
/// memory, where more of them lie behind.
///
/// # Safety
///
/// Both sides have so many elements, and the processor has the instruction set of the table the function is from.
pub(super) type DotKernel<T> = unsafe fn(*const T, *const T, usize, bool) -> T;

/// The micro-kernels of one type for one instruction set.
pub(super) struct GemmMicroKernels<T: 'static> {
    /// How many elements a vector has.
    vector: usize,
    /// The functions, by vectors and then by rows, each less one.
    tiles: &'static [&'static [GemmMicroKernel<T>]],
    dot: DotKernel<T>,
}

impl<T> GemmMicroKernels<T> {
    /// The most rows of a tile.
    pub(super) fn max_rows(&self) -> usize {
        self.tiles[0].len()
    }

    /// The most columns of a tile.
    pub(super) fn max_columns(&self) -> usize {
        self.tiles.len() * self.vector
    }

    /// How many elements a vector has: whole vectors of the right panel are read.
    pub(super) fn vector_lanes(&self) -> usize {
        self.vector
    }

    /// The function for sums of products of elements that lie side by side.
    pub(super) fn dot_kernel(&self) -> DotKernel<T> {
        self.dot
    }

    /// The function for so many rows and columns.
    pub(super) fn micro_kernel(&self, rows: usize, columns: usize) -> GemmMicroKernel<T> {
        self.tiles[columns.div_ceil(self.vector) - 1][rows - 1]
    }
}

/// A type that products are computed in. Integers wrap around.
pub(crate) trait GemmElement: Element + Default + PartialEq + ConvertTo<Self> {
    /// `self + left * right`, rounded once where that costs nothing.
    fn add_product<const FUSED: bool>(self, left: Self, right: Self) -> Self;

    /// `self + other`.
    fn add_element(self, other: Self) -> Self;

    /// The micro-kernels for an instruction set, which the machine must have.
    #[expect(private_interfaces, reason = "the trait is for this crate, the table for this module")]
    fn micro_kernels(isa: Isa) -> &'static GemmMicroKernels<Self>;
}

macro_rules! floats {
    ($($float:ident)*) => {
        $(impl GemmElement for $float {
            #[inline(always)]
            fn add_product<const FUSED: bool>(self, left: Self, right: Self) -> Self {
                if FUSED { left.mul_add(right, self) } else { self + left * right }
            }

            #[inline(always)]
            fn add_element(self, other: Self) -> Self {
                self + other
            }

            #[expect(private_interfaces, reason = "as in the trait")]
            fn micro_kernels(isa: Isa) -> &'static GemmMicroKernels<Self> {
                match isa {
                    #[cfg(x86_vectors)]
                    Isa::Avx512 | Isa::Amx => &avx512::$float::MICRO_KERNELS,
                    #[cfg(x86_vectors)]
                    Isa::Avx2 => &avx2::$float::MICRO_KERNELS,
                    _ => portable::baseline_kernels(),
                }
            }
        })*
    };
}

macro_rules! integers {
    ($($integer:ty)*) => {
        $(impl GemmElement for $integer {
            #[inline(always)]
            fn add_product<const FUSED: bool>(self, left: Self, right: Self) -> Self {
                self.wrapping_add(left.wrapping_mul(right))
            }

            #[inline(always)]
            fn add_element(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[expect(private_interfaces, reason = "as in the trait")]
            fn micro_kernels(isa: Isa) -> &'static GemmMicroKernels<Self> {
                portable::best_kernels(isa)
            }
        })*
    };
}

floats!(f32 f64);
integers!(i32 i64 u32 u64);
