//! Random numbers: uniform, normal, of a probability, of a distribution, and dropout.
//!
//! Those of a `Dropout` with a seed come from [`twister`], one after the other. All others come from [`philox`], a function of a
//! seed and a counter, so a number depends on its place alone and not on threads. One counter value gives four words of 32
//! bits. Element i of an output in `f64`, and draw i of `Multinomial`, use two words: the counter value `offset + i / 2`.
//! Element i of every other output uses one word: the counter value `offset + i / 4`. Normal numbers are made in pairs from the words of a pair. So a call that makes n numbers uses at most
//! the n counter values from `offset` on. The seed and the offset are the call's; an attribute `seed` replaces the seed.

mod dropout;
mod fill;
mod multinomial;
mod philox;
mod twister;

use oarlock_sdk::{Call, Kernel, Result};

use self::philox::Source;
use crate::device::Cpu;

pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    [fill::kernels(), multinomial::kernels(), dropout::kernels()].into_iter().flatten().collect()
}

/// The attribute `seed` of all but `Dropout`, which is a float: its bits are the seed.
fn seed(call: &Call<'_>) -> Result<Option<u64>> {
    Ok(call.float("seed")?.map(|seed| u64::from((seed as f32).to_bits())))
}

/// The numbers of a call.
fn source(call: &Call<'_>, seed: Option<u64>) -> Source {
    let (own_seed, offset) = call.random();
    Source::new(seed.unwrap_or(own_seed), offset)
}

#[cfg(test)]
mod tests;
