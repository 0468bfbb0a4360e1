//! Runs work that is compiled once for each type of `f32` vector.

use super::bf16_pairs::{PairVector, UnpairedFactors};
use super::float_vector::F32Vector;
#[cfg(arm_vectors)]
use super::neon::NeonF32Vector;
use super::portable::PortableF32Vector;
#[cfg(target_arch = "x86_64")]
use super::sse41::Sse41F32Vector;
#[cfg(x86_vectors)]
use super::x86::{Avx2F32Vector, Avx512F32Vector};
use crate::isa::Isa;

/// Work that is compiled once for each vector type.
pub trait F32VectorTask {
    /// Does the work. As for [`crate::isa::SimdTask`], this function and everything that it calls in loops must be
    /// `#[inline(always)]`: only then is it compiled with the instructions of `V`.
    ///
    /// # Safety
    ///
    /// The machine has the instructions of `V`.
    unsafe fn run_on_vectors<V: F32Vector>(self);
}

/// Runs work with the widest vectors of an instruction set.
pub fn run_with_vectors(isa: Isa, work: impl F32VectorTask) {
    match isa {
        // SAFETY: an `Isa` above the lowest only exists on machines that have it.
        #[cfg(x86_vectors)]
        Isa::Avx512 | Isa::Amx => unsafe { run_avx512(work) },
        // SAFETY: as above.
        #[cfg(x86_vectors)]
        Isa::Avx2 | Isa::AvxVnni => unsafe { run_avx2(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Sse41 => unsafe { run_sse41(work) },
        // SAFETY: every processor of the architecture has the instructions.
        #[cfg(arm_vectors)]
        Isa::Neon | Isa::DotProd | Isa::I8mm => unsafe { work.run_on_vectors::<NeonF32Vector>() },
        // SAFETY: this kind of vector needs no special instructions.
        _ => unsafe { work.run_on_vectors::<PortableF32Vector>() },
    }
}

/// Like [`run_with_vectors`], with vectors that load and store bf16.
pub fn run_with_bf16_vectors(isa: Isa, work: impl F32VectorTask) {
    #[cfg(x86_vectors)]
    if isa.has_bf16() {
        // SAFETY: the machine has the instructions.
        return unsafe { run_bf16(work) };
    }
    #[cfg(arm_vectors)]
    if isa >= Isa::Neon {
        // SAFETY: every processor of the architecture has the instructions.
        return unsafe { work.run_on_vectors::<PairVector<NeonF32Vector, UnpairedFactors>>() };
    }
    let _ = isa;
    // SAFETY: this kind of vector needs no special instructions.
    unsafe { work.run_on_vectors::<PairVector<PortableF32Vector, UnpairedFactors>>() }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn run_bf16<W: F32VectorTask>(work: W) {
    // SAFETY: this function is only called on machines that have the instructions.
    unsafe { work.run_on_vectors::<PairVector<Avx512F32Vector, UnpairedFactors>>() }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma,avx512f")]
unsafe fn run_avx512<W: F32VectorTask>(work: W) {
    // SAFETY: this function is only called on machines that have the instructions.
    unsafe { work.run_on_vectors::<Avx512F32Vector>() }
}

#[cfg(x86_vectors)]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_avx2<W: F32VectorTask>(work: W) {
    // SAFETY: as above.
    unsafe { work.run_on_vectors::<Avx2F32Vector>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.1,ssse3")]
unsafe fn run_sse41<W: F32VectorTask>(work: W) {
    // SAFETY: as above.
    unsafe { work.run_on_vectors::<Sse41F32Vector>() }
}
