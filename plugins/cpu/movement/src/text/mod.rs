//! Ops on strings, and those that count pieces of them.

mod equal;
mod hash;
mod n_grams;
mod normalize;
mod parse_numbers;
mod re2_pattern;
mod regex;
mod split;
mod tokenizer;

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{Kernel, KernelFlags};

pub(crate) fn text_kernels() -> Vec<Kernel<Cpu>> {
    let kernels = [
        equal::text_equal_kernels(),
        hash::hash_kernels(),
        n_grams::n_gram_kernels(),
        normalize::string_normalizer_kernels(),
        parse_numbers::parse_kernels(),
        regex::regex_kernels(),
        split::string_split_kernels(),
        tokenizer::tokenizer_kernels(),
    ];
    kernels.into_iter().flatten().map(|kernel| kernel.with_flags(KernelFlags::DETERMINISTIC)).collect()
}
