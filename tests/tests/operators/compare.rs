//! Comparison of elements: exact for integers, within a tolerance for floating point.

use half::{bf16, f16};
use libtest_mimic::Trial;
use oarlock_core::Dtype;

/// Permitted difference between numbers.
#[derive(Clone, Copy)]
pub(crate) struct NumericTolerance {
    /// Relative to the expected number.
    pub(crate) relative: f64,
    /// Added to the relative part.
    pub(crate) absolute: f64,
}

impl NumericTolerance {
    /// Raises the tolerance to what a narrow float can represent, whatever a case asks for.
    fn widen_to(self, relative: f64, absolute: f64) -> Self {
        Self { relative: self.relative.max(relative), absolute: self.absolute.max(absolute) }
    }

    fn accepts_difference(self, expected: f64, found: f64) -> bool {
        expected == found
            || (expected.is_nan() && found.is_nan())
            || (expected - found).abs() <= self.absolute + self.relative * expected.abs()
                && expected.is_finite()
    }
}

/// Describes where elements differ, if they do.
pub(crate) fn compare_numbers(
    dtype: Dtype,
    expected: &[u8],
    found: &[u8],
    tolerance: NumericTolerance,
) -> Result<(), String> {
    match dtype {
        Dtype::F16 => {
            let decode = |bytes| f16::from_le_bytes(bytes).to_f64();
            compare_floats(expected, found, decode, tolerance.widen_to(2e-3, 1e-4))
        }
        Dtype::BF16 => {
            let decode = |bytes| bf16::from_le_bytes(bytes).to_f64();
            compare_floats(expected, found, decode, tolerance.widen_to(1.6e-2, 1e-3))
        }
        Dtype::F32 | Dtype::C64 => {
            compare_floats(expected, found, |bytes| f64::from(f32::from_le_bytes(bytes)), tolerance)
        }
        Dtype::F64 | Dtype::C128 => compare_floats(expected, found, f64::from_le_bytes, tolerance),
        Dtype::F8E4M3 => compare_bytes(expected, found, |byte| byte & 0x7f == 0x7f),
        Dtype::F8E5M2 => compare_bytes(expected, found, |byte| byte & 0x7f > 0x7c),
        _ => {
            let size = dtype.byte_size().unwrap_or(1) as usize;
            find_differences(expected.chunks(size), found.chunks(size), |expected, found| expected == found)
        }
    }
}

fn compare_floats<const SIZE: usize>(
    expected: &[u8],
    found: &[u8],
    decode: impl Fn([u8; SIZE]) -> f64,
    tolerance: NumericTolerance,
) -> Result<(), String> {
    let numbers = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|bytes| decode(*bytes)).collect::<Vec<f64>>();
    let (expected, found) = (numbers(expected), numbers(found));
    find_differences(expected.iter(), found.iter(), |expected, found| {
        tolerance.accepts_difference(**expected, **found)
    })
}

fn compare_bytes(expected: &[u8], found: &[u8], is_nan: impl Fn(u8) -> bool) -> Result<(), String> {
    let is_same = |expected: &&u8, found: &&u8| expected == found || is_nan(**expected) && is_nan(**found);
    find_differences(expected.iter(), found.iter(), is_same)
}

fn find_differences<T: std::fmt::Debug>(
    expected: impl ExactSizeIterator<Item = T>,
    found: impl ExactSizeIterator<Item = T>,
    is_same: impl Fn(&T, &T) -> bool,
) -> Result<(), String> {
    let count = expected.len();
    if count != found.len() {
        return Err(format!("expected {count} elements, found {}", found.len()));
    }
    let mut different = expected.zip(found).enumerate().filter(|(_, (left, right))| !is_same(left, right));
    let Some((index, (expected, found))) = different.next() else { return Ok(()) };
    let others = different.count();
    Err(format!("element {index} of {count}: expected {expected:?}, found {found:?}; {others} others differ"))
}

/// A trial of the comparison itself: differences must be found.
pub(crate) fn comparison_trial() -> Trial {
    let judge = |expected: f32, found: f32| {
        let tolerance = NumericTolerance { relative: 1e-3, absolute: 1e-6 };
        compare_numbers(Dtype::F32, &expected.to_le_bytes(), &found.to_le_bytes(), tolerance)
    };
    Trial::test("the comparison tells near numbers from others", move || {
        for (expected, found) in
            [(1.0, 1.0009), (f32::NAN, -f32::NAN), (f32::INFINITY, f32::INFINITY), (0.0, -0.0)]
        {
            judge(expected, found)?;
        }
        let others = [(1.0, 1.002), (0.0, 1e-5), (f32::NAN, 0.0), (0.0, f32::NAN), (f32::INFINITY, f32::MAX)];
        for (expected, found) in
            others.into_iter().chain([(f32::INFINITY, f32::NEG_INFINITY), (1.0, f32::INFINITY)])
        {
            if judge(expected, found).is_ok() {
                return Err(format!("{found} passes for {expected}").into());
            }
        }
        let integers =
            compare_numbers(Dtype::I8, &[1, 2], &[1, 3], NumericTolerance { relative: 1.0, absolute: 1.0 });
        integers.err().map(drop).ok_or_else(|| "3 passes for 2 where elements are integers".into())
    })
}
