//! `MurmurHash3`: a 32-bit hash of each string or number, by the variant of that algorithm for 32-bit processors.

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::text_operand::read_texts;
use oarlock_sdk::{Dtype, DtypeSet, Element, Kernel, KernelCall, OperandSpec, Result, dtype_set};

const HASHABLE_DTYPES: DtypeSet =
    dtype_set(&[Dtype::I32, Dtype::U32, Dtype::I64, Dtype::U64, Dtype::F32, Dtype::F64, Dtype::STRING]);

pub(super) fn hash_kernels() -> Vec<Kernel<Cpu>> {
    // A seed is 32 bits, whatever sign it was written with.
    let seed = |call: &KernelCall<'_>| Ok(call.int_attribute("seed")?.unwrap_or(0) as u32);
    let kernel = operand_kernel("MurmurHash3", seed, |_, seed, operands| hash_all(*seed, operands));
    let result = OperandSpec::new(dtype_set(&[Dtype::I32, Dtype::U32]));
    vec![
        kernel
            .with_domain(OARLOCK_DOMAIN)
            .with_inputs([OperandSpec::new(HASHABLE_DTYPES).with_name("X")])
            .with_outputs([result.with_name("Y")]),
    ]
}

fn hash_all(seed: u32, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let (x, y) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&y, "Y", x.dims())?;
    match x.dtype() {
        Dtype::STRING => write_hashes(
            operands,
            read_texts(&x)?.into_iter().map(|text| murmur_hash3(text.as_bytes(), seed)),
        ),
        // In little-endian order, so that a hash is the same on every machine.
        Dtype::I32 => hash_numbers(operands, seed, i32::to_le_bytes),
        Dtype::U32 => hash_numbers(operands, seed, u32::to_le_bytes),
        Dtype::F32 => hash_numbers(operands, seed, f32::to_le_bytes),
        Dtype::I64 => hash_numbers(operands, seed, i64::to_le_bytes),
        Dtype::U64 => hash_numbers(operands, seed, u64::to_le_bytes),
        _ => hash_numbers(operands, seed, f64::to_le_bytes),
    }
}

fn hash_numbers<T: Element, const BYTES: usize>(
    operands: &KernelOperands<'_, '_>,
    seed: u32,
    bytes: impl Fn(T) -> [u8; BYTES],
) -> Result<()> {
    write_hashes(
        operands,
        operands.read_input::<T>(0)?.iter().map(|number| murmur_hash3(&bytes(*number), seed)),
    )
}

fn write_hashes(operands: &KernelOperands<'_, '_>, found: impl Iterator<Item = u32>) -> Result<()> {
    if operands.call().output(0)?.dtype() == Dtype::U32 {
        operands.write_output::<u32>(0)?.iter_mut().zip(found).for_each(|(out, hash)| *out = hash);
    } else {
        operands
            .write_output::<i32>(0)?
            .iter_mut()
            .zip(found)
            .for_each(|(out, hash)| *out = hash.cast_signed());
    }
    Ok(())
}

fn murmur_hash3(bytes: &[u8], seed: u32) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut hash = seed;
    for word in words {
        hash = (hash ^ mix_word(u32::from_le_bytes(*word))).rotate_left(13);
        hash = hash.wrapping_mul(5).wrapping_add(0xE654_6B64);
    }
    let rest = rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    // Without remaining bytes this is 0 and changes nothing.
    hash ^= mix_word(rest);
    hash ^= bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xC2B2_AE35);
    hash ^ (hash >> 16)
}

/// Mixes four bytes before they go into a hash.
fn mix_word(word: u32) -> u32 {
    word.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_that_the_method_is_known_for() {
        let known: [(&[u8], u32, u32); 7] = [
            (b"", 0, 0),
            (b"", 1, 0x514E_28B7),
            (b"", u32::MAX, 0x81F1_6F39),
            (&[0xFF; 4], 0, 0x7629_3B50),
            (&[0x21, 0x43, 0x65], 0, 0x7E4A_8634),
            (&[0x21], 0, 0x7266_1CF4),
            (b"Hello, world!", 0x9747_B28C, 0x2488_4CBA),
        ];
        for (bytes, seed, expected) in known {
            assert_eq!(murmur_hash3(bytes, seed), expected, "{bytes:?} {seed}");
        }
    }
}
