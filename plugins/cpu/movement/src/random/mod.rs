//! Random numbers: uniform, normal, of a probability, of a distribution, and dropout.
//!
//! A `Dropout` with a seed uses [`mersenne_twister`], whose numbers follow from each other. All others use [`philox`], a function
//! of a seed and a counter, so a number depends on its place alone and not on threads. One counter value gives four words of 32
//! bits. Element i of an output in `f64`, and draw i of `Multinomial`, use two words: the counter value `offset + i / 2`. Element
//! i of every other output uses one word: the counter value `offset + i / 4`. Normal numbers are made in pairs from the words of
//! a pair. So a call that makes n numbers uses at most the n counter values from `offset` on. The seed and the offset are the
//! call's; an attribute `seed` replaces the seed.

mod dropout;
mod fill;
mod lanes;
mod mersenne_twister;
mod multinomial;
mod philox;
mod sample;
mod trials;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{Dtype, Kernel, KernelCall, Result, bf16, f16};

use self::philox::PhiloxSource;

pub(crate) fn random_kernels() -> Vec<Kernel<Cpu>> {
    let families: [fn() -> Vec<Kernel<Cpu>>; 4] = [
        fill::fill_kernels,
        multinomial::multinomial_kernels,
        dropout::dropout_kernels,
        sample::sample_kernels,
    ];
    families.iter().flat_map(|family| family()).collect()
}

/// The attribute `seed` of all ops but `Dropout`: a float whose bits are the seed.
fn read_seed(call: &KernelCall<'_>) -> Result<Option<u64>> {
    Ok(call.float_attribute("seed")?.map(|seed| u64::from((seed as f32).to_bits())))
}

fn random_source(call: &KernelCall<'_>, seed: Option<u64>) -> PhiloxSource {
    let (own_seed, offset) = call.random_state();
    PhiloxSource::new(seed.unwrap_or(own_seed), offset)
}

/// A 1 as an element of a dtype of this size. The bytes of a 0 are 0 in all dtypes.
fn cell_of_one<const N: usize>(dtype: Dtype) -> [u8; N] {
    let bits = match dtype {
        Dtype::F16 => f16::ONE.to_bits().into(),
        Dtype::BF16 => bf16::ONE.to_bits().into(),
        Dtype::F32 => 1f32.to_bits().into(),
        Dtype::F64 => 1f64.to_bits().into(),
        _ => 1u128,
    };
    let mut cell = [0; N];
    cell.copy_from_slice(&bits.to_le_bytes()[..N]);
    cell
}

#[cfg(test)]
mod tests;
