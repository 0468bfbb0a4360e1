//! Small integers in blocks along the last dimension, as in the weights of language models. A block has one scale and one zero
//! point, and its elements are contiguous.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::Dtype;

#[derive(Clone, Copy)]
pub(super) enum SmallIntegerFormat {
    U4,
    I4,
    U8,
    I8,
}

impl SmallIntegerFormat {
    pub(super) fn from_dtype(dtype: Dtype) -> Option<Self> {
        match dtype {
            Dtype::U4 => Some(Self::U4),
            Dtype::I4 => Some(Self::I4),
            Dtype::U8 => Some(Self::U8),
            Dtype::I8 => Some(Self::I8),
            _ => None,
        }
    }

    /// The number of integers that share a byte.
    fn per_byte(self) -> usize {
        match self {
            Self::U4 | Self::I4 => 2,
            Self::U8 | Self::I8 => 1,
        }
    }

    fn decode_at(self, bytes: &[u8], index: usize) -> f32 {
        let byte = bytes[index / self.per_byte()];
        // As ONNX packs them, the first of two integers is in the low bits.
        match (self, index % 2) {
            (Self::U8, _) => f32::from(byte),
            (Self::I8, _) => f32::from(byte.cast_signed()),
            (Self::U4, 0) => low_nibble(byte),
            (Self::U4, _) => high_nibble(byte),
            (Self::I4, 0) => low_signed_nibble(byte),
            (Self::I4, _) => high_signed_nibble(byte),
        }
    }
}

#[inline(always)]
fn low_nibble(byte: u8) -> f32 {
    f32::from(byte & 15)
}

#[inline(always)]
fn high_nibble(byte: u8) -> f32 {
    f32::from(byte >> 4)
}

#[inline(always)]
fn low_signed_nibble(byte: u8) -> f32 {
    // The shift to the left brings the sign to the top; the one to the right extends it.
    f32::from((byte << 4).cast_signed() >> 4)
}

#[inline(always)]
fn high_signed_nibble(byte: u8) -> f32 {
    f32::from(byte.cast_signed() >> 4)
}

/// Rows of quantized blocks.
#[derive(Clone, Copy)]
pub(super) struct QuantizedBlocks<'a> {
    pub(super) integers: SmallIntegerFormat,
    pub(super) bytes: &'a [u8],
    pub(super) scales: &'a [f32],
    pub(super) zeros: Option<&'a [u8]>,
    /// The number of integers in a row and in a block.
    pub(super) row: usize,
    pub(super) block: usize,
}

impl QuantizedBlocks<'_> {
    /// True if no byte has integers of two blocks.
    #[inline(always)]
    fn are_byte_aligned(&self) -> bool {
        let shared = self.integers.per_byte();
        self.row.is_multiple_of(shared) && self.block.is_multiple_of(shared)
    }

    pub(super) fn dequantize_into(self, cpu: &Cpu, output: &mut [f32]) {
        let rows = output.len() / self.row;
        parallel_for_parts(
            cpu,
            rows,
            grain_for(self.row),
            OutputRows::new(output, self.row),
            |first, part| {
                cpu.isa().vectorize(DequantizeTask { blocks: self, first, output: part });
            },
        );
    }
}

/// Dequantizes rows from `first` on.
struct DequantizeTask<'a, 'b> {
    blocks: QuantizedBlocks<'a>,
    first: usize,
    output: &'b mut [f32],
}

impl SimdTask for DequantizeTask<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let QuantizedBlocks { integers, bytes, scales, zeros, row, block } = self.blocks;
        let shared = integers.per_byte();
        let zero_of = |place: usize| zeros.map_or(0.0, |zeros| integers.decode_at(zeros, place));
        // A byte may belong to two blocks or rows, so each element is addressed on its own.
        if !self.blocks.are_byte_aligned() {
            for (index, output) in (self.first * row..).zip(self.output) {
                let place = index / row * row.div_ceil(block) + index % row / block;
                *output = (integers.decode_at(bytes, index) - zero_of(place)) * scales[place];
            }
            return;
        }
        for (index, output) in (self.first..).zip(self.output.chunks_exact_mut(row)) {
            let first_block = index * row.div_ceil(block);
            let mut bytes = &bytes[index * row / shared..];
            // Blocks end with their row, so the last one may be shorter.
            for (place, output) in (first_block..).zip(output.chunks_mut(block)) {
                let (own, rest) = bytes.split_at(output.len() / shared);
                bytes = rest;
                let zero = zero_of(place);
                let scale = scales[place];
                let number = |integer: f32| (integer - zero) * scale;
                // The format is matched once per block, not per element, so that the inner loops have no branches.
                match integers {
                    SmallIntegerFormat::U8 => decode_bytes(own, output, |byte| number(f32::from(byte))),
                    SmallIntegerFormat::I8 => {
                        decode_bytes(own, output, |byte| number(f32::from(byte.cast_signed())));
                    }
                    SmallIntegerFormat::U4 => decode_nibbles(own, output, |byte| {
                        [number(low_nibble(byte)), number(high_nibble(byte))]
                    }),
                    SmallIntegerFormat::I4 => {
                        decode_nibbles(own, output, |byte| {
                            [number(low_signed_nibble(byte)), number(high_signed_nibble(byte))]
                        });
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn decode_bytes(bytes: &[u8], output: &mut [f32], number: impl Fn(u8) -> f32) {
    output.iter_mut().zip(bytes).for_each(|(output, byte)| *output = number(*byte));
}

#[inline(always)]
fn decode_nibbles(bytes: &[u8], output: &mut [f32], numbers: impl Fn(u8) -> [f32; 2]) {
    output.chunks_exact_mut(2).zip(bytes).for_each(|(output, byte)| output.copy_from_slice(&numbers(*byte)));
}
