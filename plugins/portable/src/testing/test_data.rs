//! Test operands in host memory.

use oarlock_sdk::{Dtype, bf16, f16};

use crate::operand_walk::contiguous_strides;
use crate::source::element_size;

/// An operand with its elements encoded as the device stores them.
#[derive(Clone, Debug, PartialEq)]
pub struct TestData {
    pub(crate) dtype: Dtype,
    pub(crate) dims: Vec<i64>,
    /// Strides in elements; empty if contiguous.
    pub(crate) strides: Vec<i64>,
    pub(crate) bytes: Vec<u8>,
}

impl TestData {
    /// Rounds each value to the nearest element of `dtype`.
    pub fn new(dtype: Dtype, dims: &[i64], values: &[f64]) -> Self {
        assert_eq!(dims.iter().product::<i64>(), values.len() as i64, "as many numbers as elements");
        let bytes = values.iter().flat_map(|value| encode_element(dtype, *value)).collect();
        Self { dtype, dims: dims.to_vec(), strides: Vec::new(), bytes }
    }

    /// Distinct, nonzero elements, some of them negative if the dtype is signed.
    pub fn sample_elements(dtype: Dtype, dims: &[i64], seed: u64) -> Self {
        let count = dims.iter().product::<i64>() as u64;
        let value = |index: u64| {
            // 7 and 23 have no common factor, so 23 elements in a row are all different.
            let number = ((index * 7 + seed * 5) % 23) as f64 - 11.0;
            let number = if number == 0.0 { 12.0 } else { number };
            match dtype {
                Dtype::BOOL => f64::from((index * 7 + seed).is_multiple_of(3)),
                // Small quarters are exact in every float dtype.
                dtype if is_float(dtype) => number * 0.25,
                Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => number.abs(),
                _ => number,
            }
        };
        let values: Vec<f64> = (0..count).map(value).collect();
        Self::new(dtype, dims, &values)
    }

    /// A 1-D operand of `i64`.
    pub fn from_integers(values: &[i64]) -> Self {
        let values: Vec<f64> = values.iter().map(|value| *value as f64).collect();
        Self::new(Dtype::I64, &[values.len() as i64], &values)
    }

    /// The same bytes with another shape and strides.
    pub fn with_strides(mut self, dims: &[i64], strides: &[i64]) -> Self {
        (self.dims, self.strides) = (dims.to_vec(), strides.to_vec());
        self
    }

    /// Decodes the elements in index order.
    pub fn to_values(&self) -> Vec<f64> {
        let steps =
            if self.strides.is_empty() { contiguous_strides(&self.dims) } else { self.strides.clone() };
        let size = element_size(self.dtype) as usize;
        let element = |index: i64| {
            let mut rest = index;
            let at: i64 = (0..self.dims.len())
                .rev()
                .map(|axis| {
                    let part = rest % self.dims[axis];
                    rest /= self.dims[axis];
                    part * steps[axis]
                })
                .sum();
            decode_element(self.dtype, &self.bytes[at as usize * size..][..size])
        };
        (0..self.dims.iter().product()).map(element).collect()
    }
}

pub(crate) fn is_float(dtype: Dtype) -> bool {
    crate::source::arithmetic_kind(dtype) == crate::source::ArithmeticKind::Float
}

fn encode_element(dtype: Dtype, value: f64) -> Vec<u8> {
    match dtype {
        Dtype::F16 => f16::from_f64(value).to_bits().to_ne_bytes().to_vec(),
        Dtype::BF16 => bf16::from_f64(value).to_bits().to_ne_bytes().to_vec(),
        Dtype::F32 => (value as f32).to_ne_bytes().to_vec(),
        Dtype::F64 => value.to_ne_bytes().to_vec(),
        Dtype::U64 => (value as u64).to_ne_bytes().to_vec(),
        // Little-endian: truncation keeps the low bytes.
        _ => (value as i64).to_le_bytes()[..element_size(dtype) as usize].to_vec(),
    }
}

fn decode_element(dtype: Dtype, bytes: &[u8]) -> f64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(wide);
    match dtype {
        Dtype::F16 => f16::from_bits(bits as u16).into(),
        Dtype::BF16 => bf16::from_bits(bits as u16).into(),
        Dtype::F32 => f32::from_bits(bits as u32).into(),
        Dtype::F64 => f64::from_bits(bits),
        Dtype::I8 => (bits as i8).into(),
        Dtype::I16 => (bits as i16).into(),
        Dtype::I32 => (bits as i32).into(),
        Dtype::I64 => bits as i64 as f64,
        _ => bits as f64,
    }
}
