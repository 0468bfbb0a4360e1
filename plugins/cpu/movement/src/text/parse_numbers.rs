//! `Cast` and `CastLike` of strings to numbers. The engine casts numbers to strings, as kernels have nowhere to store new text.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::float_bits::round_to_odd;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::text_operand::read_texts;
use oarlock_sdk::{
    Dtype, DtypeSet, Element, Kernel, OperandSpec, PluginError, Result, bf16, dispatch, dtype_set, f16,
    family,
};

/// The dtypes that strings are parsed as.
const PARSED_DTYPES: DtypeSet = family::FLOATING_AND_INTEGRAL.union(dtype_set(&[
    Dtype::F16,
    Dtype::BF16,
    Dtype::U16,
    Dtype::U32,
    Dtype::U64,
    Dtype::BOOL,
]));

pub(super) fn parse_kernels() -> Vec<Kernel<Cpu>> {
    let (text, number) =
        (OperandSpec::new(DtypeSet::STRING).with_name("input"), OperandSpec::new(PARSED_DTYPES));
    let row = |op: &'static str| operand_kernel(op, |_| Ok(()), |_, (), operands| parse_texts(operands));
    vec![
        row("Cast").since_version(9).with_inputs([text]).with_outputs([number.with_name("output")]),
        row("CastLike")
            .since_version(15)
            .with_inputs([text, number.with_name("target_type").with_dtype_group(1)])
            .with_outputs([number.with_name("output").with_dtype_group(1)]),
    ]
}

fn parse_texts(operands: &KernelOperands<'_, '_>) -> Result<()> {
    let dtype = operands.call().output(0)?.dtype();
    dispatch!(dtype, floating_and_integral + f16 + bf16 + u16 + u32 + u64 + bool, T => parse_texts_as::<T>(operands))
}

fn parse_texts_as<T: ParseNumber>(operands: &KernelOperands<'_, '_>) -> Result<()> {
    let input = operands.call().input(0)?;
    for (number, text) in operands.write_output::<T>(0)?.iter_mut().zip(read_texts(&input)?) {
        *number = T::parse_text(text.trim()).ok_or_else(|| {
            PluginError::invalid_argument(format!(
                "expected a number such as `3`, `-1.5e3` or `nan`, found `{text}`"
            ))
        })?;
    }
    Ok(())
}

trait ParseNumber: Element {
    fn parse_text(text: &str) -> Option<Self>;
}

macro_rules! floats {
    ($($ty:ty: $read:expr),*) => {
        $(impl ParseNumber for $ty {
            fn parse_text(text: &str) -> Option<Self> {
                // Rust reads what ONNX lists: exponents, and `inf` and `nan` in either case.
                text.parse().ok().map($read)
            }
        })*
    };
}

macro_rules! integers {
    ($($ty:ty)*) => {
        $(impl ParseNumber for $ty {
            /// Truncates a fraction, and saturates what is out of range.
            fn parse_text(text: &str) -> Option<Self> {
                let fraction = || text.parse::<f64>().ok().filter(|number| !number.is_nan()).map(|number| number as Self);
                // As an integer first, since large ones lose digits as `f64`.
                text.parse().ok().or_else(fraction)
            }
        })*
    };
}

// `half` converts `f64` by way of `f32`, or without its last 32 bits. Rounded to odd, no digit is lost for the second rounding.
floats!(
    f32: |number: f32| number,
    f64: |number: f64| number,
    f16: |number| f16::from_f32(round_to_odd(number)),
    bf16: |number| bf16::from_f32(round_to_odd(number))
);
integers!(i8 u8 i16 u16 i32 u32 i64 u64);

impl ParseNumber for bool {
    fn parse_text(text: &str) -> Option<Self> {
        let truth = || text.parse::<f64>().ok().map(|number| number != 0.0);
        // Rust reads `true` and `false` in lower case alone.
        text.to_ascii_lowercase().parse().ok().or_else(truth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        let floats = ["3.25", "1e-5", "1E8", "-INF", "+inf", "Infinity", ".5", "7"].map(f32::parse_text);
        let expected = [3.25, 1e-5, 1e8, f32::NEG_INFINITY, f32::INFINITY, f32::INFINITY, 0.5, 7.0];
        assert_eq!(floats, expected.map(Some));
        // Just above the middle of 1 and the next `f16`, which an `f32` does not hold.
        assert_eq!(f16::parse_text("1.00048828126"), Some(f16::from_bits(0x3C01)));
        assert!(f64::parse_text("NaN").is_some_and(f64::is_nan));
        assert_eq!(["12", "-3.9", "300", "-1"].map(u8::parse_text), [Some(12), Some(0), Some(255), Some(0)]);
        assert_eq!(["9223372036854775807", "1e3"].map(i64::parse_text), [Some(i64::MAX), Some(1000)]);
        assert_eq!(
            ["True", "false", "0", "2"].map(bool::parse_text),
            [Some(true), Some(false), Some(false), Some(true)]
        );
        assert_eq!(
            (f32::parse_text("one"), i64::parse_text(""), i32::parse_text("nan"), bool::parse_text("?")),
            (None, None, None, None)
        );
    }
}
