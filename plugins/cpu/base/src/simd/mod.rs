//! SIMD vectors of each instruction set behind traits, so that a micro-kernel is written once and still controls its registers, on
//! which its speed depends.
//!
//! A new instruction set implements [`FloatVector`] for `f32` and `f64`, [`F32Vector`] and [`IntegerVector`] in a file here, and
//! gets its arm in [`run_with_vectors`] and in the tables of micro-kernels (`gemm/src/tile`, `nhwc/src/channels_last/tile.rs`,
//! `nhwc/src/quantized/tile.rs`). All other code with intrinsics in these crates has a portable version beside it, which a new
//! instruction set uses until it has its own.
//!
//! Creating a vector requires the instruction set, which the caller guarantees once; a vector that exists proves it.

#![expect(
    unsafe_code,
    reason = "vectors are loaded and stored through pointers, with instructions a machine may lack"
)]

mod bf16_pairs;
mod float_vector;
mod integer_vector;
#[cfg(arm_vectors)]
mod neon;
mod portable;
mod sorting;
#[cfg(target_arch = "x86_64")]
mod sse2;
#[cfg(target_arch = "x86_64")]
mod sse41;
mod vector_task;
#[cfg(x86_vectors)]
mod x86;
#[cfg(target_arch = "x86_64")]
mod x86_floats;

pub use bf16_pairs::PortablePairVector;
#[cfg(target_arch = "x86_64")]
pub use bf16_pairs::Sse41PairVector;
#[cfg(x86_vectors)]
pub use bf16_pairs::{Avx2PairVector, Avx512PairVector};
#[cfg(arm_vectors)]
pub use bf16_pairs::{NeonBf16PairVector, NeonPairVector};
pub use float_vector::{F32Vector, FloatVector, MAX_LANES};
pub use integer_vector::{IntegerVector, QUAD, SIGN_BIT};
#[cfg(arm_vectors)]
pub use neon::{LaneProducts, NeonF32Vector, NeonF64Vector};
pub use portable::{PortableF32Vector, PortableI32Vector};
pub use sorting::{PARTITION_ROOM, SortElement};
#[cfg(target_arch = "x86_64")]
pub use sse2::Sse2I32Vector;
#[cfg(target_arch = "x86_64")]
pub use sse41::{Sse41F32Vector, Sse41F64Vector};
pub use vector_task::{F32VectorTask, run_with_bf16_vectors, run_with_vectors};
#[cfg(x86_vectors)]
pub use x86::{
    Avx2F32Vector, Avx2F64Vector, Avx2I32Vector, Avx512F32Vector, Avx512F64Vector, Avx512VnniVector,
    Avx512VnniWordVector, Avx512WordVector, AvxVnniVector, AvxVnniWordVector,
};
