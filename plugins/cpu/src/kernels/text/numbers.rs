//! `Cast` and `CastLike` of text to numbers. What numbers become as text is made by the engine, as kernels have nowhere to put
//! new text.

use oarlock_sdk::{
    Dtype, DtypeSet, Element, Error, Kernel, Operand, Result, bf16, dispatch, dtype_set, f16, family,
};

use super::operand::texts;
use crate::device::Cpu;
use crate::kernels::rows::operands::{Operands, kernel};

/// What text is read as.
const NUMBERS: DtypeSet = family::FLOATING_AND_INTEGRAL.union(dtype_set(&[
    Dtype::F16,
    Dtype::BF16,
    Dtype::U16,
    Dtype::U32,
    Dtype::U64,
    Dtype::BOOL,
]));

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let (text, number) = (Operand::new(DtypeSet::STRING).named("input"), Operand::new(NUMBERS));
    let row = |op: &'static str| kernel(op, |_| Ok(()), |_, (), operands| read_all(operands));
    vec![
        row("Cast").since(9).inputs([text]).outputs([number.named("output")]),
        row("CastLike")
            .since(15)
            .inputs([text, number.named("target_type").group(1)])
            .outputs([number.named("output").group(1)]),
    ]
}

fn read_all(operands: &Operands<'_, '_>) -> Result<()> {
    let dtype = operands.call().output(0)?.dtype();
    dispatch!(dtype, floating_and_integral + f16 + bf16 + u16 + u32 + u64 + bool, T => read_as::<T>(operands))
}

fn read_as<T: Read>(operands: &Operands<'_, '_>) -> Result<()> {
    let input = operands.call().input(0)?;
    for (number, text) in operands.write::<T>(0)?.iter_mut().zip(texts(&input)?) {
        *number = T::read(text.trim()).ok_or_else(|| {
            Error::invalid_argument(format!(
                "expected a number such as `3`, `-1.5e3` or `nan`, found `{text}`"
            ))
        })?;
    }
    Ok(())
}

/// What can be read from text.
trait Read: Element {
    fn read(text: &str) -> Option<Self>;
}

macro_rules! floats {
    ($($ty:ty: $read:expr),*) => {
        $(impl Read for $ty {
            fn read(text: &str) -> Option<Self> {
                text.parse().ok().map($read)
            }
        })*
    };
}

macro_rules! integers {
    ($($ty:ty)*) => {
        $(impl Read for $ty {
            /// A fraction is cut off, and what is out of range becomes what is nearest.
            fn read(text: &str) -> Option<Self> {
                let fraction = || text.parse::<f64>().ok().filter(|number| !number.is_nan()).map(|number| number as Self);
                text.parse().ok().or_else(fraction)
            }
        })*
    };
}

floats!(f32: |number: f32| number, f64: |number: f64| number, f16: f16::from_f32, bf16: bf16::from_f32);
integers!(i8 u8 i16 u16 i32 u32 i64 u64);

impl Read for bool {
    fn read(text: &str) -> Option<Self> {
        let truth = || text.parse::<f64>().ok().map(|number| number != 0.0);
        text.to_ascii_lowercase().parse().ok().or_else(truth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        let floats = ["3.25", "1e-5", "1E8", "-INF", "+inf", "Infinity", ".5", "7"].map(f32::read);
        let expected = [3.25, 1e-5, 1e8, f32::NEG_INFINITY, f32::INFINITY, f32::INFINITY, 0.5, 7.0];
        assert_eq!(floats, expected.map(Some));
        assert!(f64::read("NaN").is_some_and(f64::is_nan));
        assert_eq!(["12", "-3.9", "300", "-1"].map(u8::read), [Some(12), Some(0), Some(255), Some(0)]);
        assert_eq!(["9223372036854775807", "1e3"].map(i64::read), [Some(i64::MAX), Some(1000)]);
        assert_eq!(
            ["True", "false", "0", "2"].map(bool::read),
            [Some(true), Some(false), Some(false), Some(true)]
        );
        assert_eq!(
            (f32::read("one"), i64::read(""), i32::read("nan"), bool::read("?")),
            (None, None, None, None)
        );
    }
}
