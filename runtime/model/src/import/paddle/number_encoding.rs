//! Numbers as the bytes of a dtype.

use half::{bf16, f16};
use oarlock_core::{Dtype, Error, Result};

/// Encodes numbers in a dtype.
pub(super) fn encode_numbers(values: &[f64], dtype: Dtype) -> Result<Vec<u8>> {
    fn encode_all<const SIZE: usize>(values: &[f64], encode: impl Fn(f64) -> [u8; SIZE]) -> Vec<u8> {
        values.iter().flat_map(|value| encode(*value)).collect()
    }
    Ok(match dtype {
        Dtype::F16 => encode_all(values, |value| f16::from_f64(value).to_ne_bytes()),
        Dtype::BF16 => encode_all(values, |value| bf16::from_f64(value).to_ne_bytes()),
        Dtype::F32 => encode_all(values, |value| (value as f32).to_ne_bytes()),
        Dtype::F64 => encode_all(values, f64::to_ne_bytes),
        Dtype::Bool => encode_all(values, |value| [u8::from(value != 0.0)]),
        Dtype::I8 => encode_all(values, |value| (value as i8).to_ne_bytes()),
        Dtype::U8 => encode_all(values, |value| (value as u8).to_ne_bytes()),
        Dtype::I16 => encode_all(values, |value| (value as i16).to_ne_bytes()),
        Dtype::I32 => encode_all(values, |value| (value as i32).to_ne_bytes()),
        Dtype::I64 => encode_all(values, |value| (value as i64).to_ne_bytes()),
        other => {
            return Err(Error::unimplemented(format!("expected numbers of a common dtype, found {other}")));
        }
    })
}
