//! Reads the elements of constants as integers or floating-point numbers.

use half::{bf16, f16};

use crate::{Constant, Dtype, Error, Result};

/// A limit well above the length of any list of dimensions. Longer constants are not read.
const MAX_READ_ELEMENTS: usize = 1 << 16;

/// The elements as integers; `None` if there are more than any shape needs.
pub(super) fn read_ints(value: &Constant) -> Result<Option<Vec<i64>>> {
    let ints = match value.dtype() {
        Dtype::I8 => read_elements(value, |bytes| i64::from(i8::from_ne_bytes(bytes))),
        Dtype::U8 | Dtype::Bool => read_elements(value, |bytes| i64::from(u8::from_ne_bytes(bytes))),
        Dtype::I16 => read_elements(value, |bytes| i64::from(i16::from_ne_bytes(bytes))),
        Dtype::U16 => read_elements(value, |bytes| i64::from(u16::from_ne_bytes(bytes))),
        Dtype::I32 => read_elements(value, |bytes| i64::from(i32::from_ne_bytes(bytes))),
        Dtype::U32 => read_elements(value, |bytes| i64::from(u32::from_ne_bytes(bytes))),
        Dtype::I64 => read_elements(value, i64::from_ne_bytes),
        Dtype::U64 => {
            read_elements(value, |bytes| i64::try_from(u64::from_ne_bytes(bytes)).unwrap_or(i64::MAX))
        }
        Dtype::F16 | Dtype::BF16 | Dtype::F32 | Dtype::F64 => {
            // `as` rounds toward zero and saturates.
            return Ok(
                read_floats(value)?.map(|floats| floats.into_iter().map(|float| float as i64).collect())
            );
        }
        other => return Err(Error::invalid_argument(format!("expected integers, found {other}"))),
    };
    Ok(ints)
}

/// The elements as floating-point numbers; `None` if there are more than any shape needs.
pub(super) fn read_floats(value: &Constant) -> Result<Option<Vec<f64>>> {
    Ok(match value.dtype() {
        Dtype::F16 => read_elements(value, |bytes| f16::from_ne_bytes(bytes).to_f64()),
        Dtype::BF16 => read_elements(value, |bytes| bf16::from_ne_bytes(bytes).to_f64()),
        Dtype::F32 => read_elements(value, |bytes| f64::from(f32::from_ne_bytes(bytes))),
        Dtype::F64 => read_elements(value, f64::from_ne_bytes),
        _ => read_ints(value)?.map(|ints| ints.into_iter().map(|int| int as f64).collect()),
    })
}

fn read_elements<const SIZE: usize, T>(value: &Constant, decode: impl Fn([u8; SIZE]) -> T) -> Option<Vec<T>> {
    let bytes = value.bytes().ok().filter(|bytes| bytes.len() <= MAX_READ_ELEMENTS * SIZE)?;
    let (elements, _) = bytes.as_chunks::<SIZE>();
    (elements.len() <= MAX_READ_ELEMENTS).then(|| elements.iter().map(|bytes| decode(*bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_size_are_read() {
        let half = Constant::new(
            Dtype::F16,
            &[2],
            [f16::from_f32(1.5).to_ne_bytes(), f16::from_f32(-2.0).to_ne_bytes()].concat(),
        );
        assert_eq!(read_floats(&half.unwrap()).unwrap(), Some(vec![1.5, -2.0]));
        let bytes = Constant::new(Dtype::I8, &[1], vec![255]).unwrap();
        assert_eq!(read_ints(&bytes).unwrap(), Some(vec![-1]));
        let complex = Constant::new(Dtype::C64, &[1], vec![0; 8]).unwrap();
        assert!(read_ints(&complex).unwrap_err().message().contains("c64"));
    }
}
