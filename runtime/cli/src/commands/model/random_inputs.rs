//! Random inputs: the same for the same seed and name, whatever other inputs are given.

use half::{bf16, f16};
use oarlock_abi::DeviceFlags;
use oarlock_core::{Device, Dtype, Tensor, shape};

use crate::problem::CommandError;

/// Limit on random texts, each of which allocates memory of its own.
const MAX_RANDOM_TEXTS: u64 = 1 << 24;

/// A tensor of random elements, unless it is too large: floats from a normal distribution; integers, truth values and texts
/// from 0 and 1, which are valid wherever a model expects indices, tokens or masks.
pub(super) fn random_tensor(
    device: &Device,
    name: &str,
    dtype: Dtype,
    dims: &[i64],
    seed: u64,
) -> Result<Tensor, CommandError> {
    let mut numbers = RandomSequence::new(seed, name);
    let count = shape::element_count(dims)?;
    // Reject a tensor that the machine cannot hold before generating elements.
    let size = shape::size_in_bytes(dtype, dims)?;
    if dtype == Dtype::String {
        if count > MAX_RANDOM_TEXTS {
            let message =
                format!("`{name}`: expected at most {MAX_RANDOM_TEXTS} texts to make up, found {dims:?}");
            return Err(CommandError::new(message));
        }
        let texts = (0..count).map(|_| numbers.random_bit().to_string()).collect();
        return Ok(Tensor::from_strings(device, dims, texts)?);
    }
    let mut bytes = Vec::new();
    let room = usize::try_from(size).ok().and_then(|size| bytes.try_reserve_exact(size).ok());
    if room.is_none() || !has_room(device, size) {
        let message = format!("`{name}`: expected a shape that fits into memory, found {dims:?} of {dtype}");
        return Err(CommandError::new(message));
    }
    let parts = if matches!(dtype, Dtype::C64 | Dtype::C128) { 2 } else { 1 };
    let whole = if dtype.is_packed() { size } else { count * parts };
    for _ in 0..whole {
        push_random_element(dtype, &mut numbers, &mut bytes);
    }
    Ok(Tensor::from_bytes(device, dtype, dims, &bytes)?)
}

/// True if the memory suffices. It is checked up front, because Linux overcommits and only stalls when the pages are used. A
/// device in host memory takes its own copy there too.
fn has_room(device: &Device, size: u64) -> bool {
    let is_of_host = device.description().flags.contains(DeviceFlags::SHARES_HOST_MEMORY);
    let copies = if is_of_host { 2 } else { 1 };
    // If the device does not report its memory, try.
    // A device that does not know its memory says that it has none.
    device
        .host_device()
        .memory_stats()
        .map_or(true, |memory| memory.total == 0 || size.saturating_mul(copies) <= memory.free)
}

/// One random element broadcast to a shape, for when only dtype and shape matter.
pub(super) fn repeated_element_tensor(
    device: &Device,
    name: &str,
    dtype: Dtype,
    dims: &[i64],
) -> Result<Tensor, CommandError> {
    // Packed elements share bytes, so strides cannot broadcast them.
    if dtype.is_packed() || dims.contains(&0) {
        return random_tensor(device, name, dtype, dims, 0);
    }
    let one = random_tensor(device, name, dtype, &[], 0)?;
    Ok(one.expand(dims)?)
}

/// Pushes one element; of packed dtypes as many as fill a byte.
fn push_random_element(dtype: Dtype, numbers: &mut RandomSequence, bytes: &mut Vec<u8>) {
    match dtype {
        Dtype::F64 | Dtype::C128 => bytes.extend(numbers.random_normal().to_ne_bytes()),
        Dtype::F32 | Dtype::C64 => bytes.extend((numbers.random_normal() as f32).to_ne_bytes()),
        Dtype::F16 => bytes.extend(f16::from_f64(numbers.random_normal()).to_ne_bytes()),
        Dtype::BF16 => bytes.extend(bf16::from_f64(numbers.random_normal()).to_ne_bytes()),
        // Every bit but the top one of the exponent: numbers between -2 and 2 in either format.
        Dtype::F8E4M3 | Dtype::F8E5M2 => bytes.push((numbers.next() & 0xBF) as u8),
        // Likewise, with the sign cleared: in these formats a lone sign bit is NaN.
        Dtype::F8E4M3Fnuz | Dtype::F8E5M2Fnuz => bytes.push((numbers.next() & 0x3F) as u8),
        Dtype::F8E8M0 => bytes.push(127 - numbers.random_bit()),
        Dtype::F4E2M1 => bytes.push((numbers.next() & 0xBB) as u8),
        Dtype::I2 | Dtype::U2 => bytes.push((numbers.next() & 0x55) as u8),
        Dtype::I4 | Dtype::U4 => bytes.push((numbers.next() & 0x11) as u8),
        Dtype::Bool | Dtype::I8 | Dtype::U8 => bytes.push(numbers.random_bit()),
        Dtype::I16 | Dtype::U16 => bytes.extend(u16::from(numbers.random_bit()).to_ne_bytes()),
        Dtype::I32 | Dtype::U32 => bytes.extend(u32::from(numbers.random_bit()).to_ne_bytes()),
        Dtype::I64 | Dtype::U64 => bytes.extend(u64::from(numbers.random_bit()).to_ne_bytes()),
        Dtype::String => {}
    }
}

/// A SplitMix64 generator, for which every seed is good.
struct RandomSequence {
    state: u64,
}

impl RandomSequence {
    /// `name` makes the inputs of one seed differ from each other.
    fn new(seed: u64, name: &str) -> Self {
        let mut numbers = Self { state: seed };
        for byte in name.bytes() {
            numbers.state = numbers.next() ^ u64::from(byte);
        }
        numbers
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn random_bit(&mut self) -> u8 {
        (self.next() >> 63) as u8
    }

    /// Uniform in (0, 1].
    fn random_fraction(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal, by the Box-Muller method.
    fn random_normal(&mut self) -> f64 {
        let (length, turn) = (self.random_fraction(), self.random_fraction());
        (-2.0 * length.ln()).sqrt() * (std::f64::consts::TAU * turn).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_depend_on_seed_and_name_and_nothing_else() {
        let first = |seed, name| RandomSequence::new(seed, name).next();
        assert_eq!(first(1, "x"), first(1, "x"));
        assert!(first(1, "x") != first(2, "x") && first(1, "x") != first(1, "y"));
    }

    #[test]
    fn normal_numbers_have_mean_0_and_deviation_1() {
        let mut numbers = RandomSequence::new(7, "x");
        let drawn: Vec<f64> = (0..10_000).map(|_| numbers.random_normal()).collect();
        let mean = drawn.iter().sum::<f64>() / 1e4;
        let variance = drawn.iter().map(|number| number * number).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    #[test]
    fn every_dtype_gets_as_many_bytes_as_it_has() {
        for dtype in Dtype::ALL.iter().copied().filter(|dtype| *dtype != Dtype::String) {
            let (mut numbers, mut bytes) = (RandomSequence::new(0, ""), Vec::new());
            let parts = if matches!(dtype, Dtype::C64 | Dtype::C128) { 2 } else { 1 };
            (0..parts).for_each(|_| push_random_element(dtype, &mut numbers, &mut bytes));
            assert_eq!(bytes.len() as u64, shape::size_in_bytes(dtype, &[1]).unwrap(), "{dtype}");
        }
    }
}
