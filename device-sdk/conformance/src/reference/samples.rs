//! Input values and shapes: few, awkward, and the same in every run.

use oarlock_abi::Dtype;

use super::array::ReferenceArray;
use super::case::{AttributeSet, ReferenceCase};
use crate::elements::{is_float, is_unsigned, largest_finite, round_to_dtype, smallest_normal};

/// The range that input values are drawn from. All but the last few are multiples of a power of two, which short floats represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueDomain {
    /// Small numbers of either sign, and 0.
    Small,
    /// The same without 0.
    NonZero,
    Positive,
    /// Between -1 and 1.
    Unit,
    /// 1 and larger.
    AboveOne,
    /// Numbers of either sign up to 20.
    Wide,
    /// Small whole numbers from 0 to 5, such as exponents and distances of shifts.
    Counts,
}

impl ValueDomain {
    /// The value for a number below 128.
    fn value(self, dtype: Dtype, number: u32) -> f64 {
        let number = f64::from(number);
        let centered = number - 64.0;
        let is_unsigned = is_unsigned(dtype);
        if dtype == Dtype::BOOL {
            return number % 2.0;
        }
        match self {
            Self::Counts => number % 6.0,
            _ if !is_float(dtype) => {
                let small = if is_unsigned { number % 12.0 } else { number % 23.0 - 11.0 };
                match self {
                    Self::NonZero if small == 0.0 => 5.0,
                    Self::Positive | Self::AboveOne => 1.0 + number % 11.0,
                    _ => small,
                }
            }
            Self::Small => centered / 16.0,
            Self::NonZero => {
                if centered == 0.0 {
                    0.5
                } else {
                    centered / 16.0
                }
            }
            Self::Positive => (number + 1.0) / 16.0,
            Self::Unit => centered.clamp(-60.0, 60.0) / 64.0,
            Self::AboveOne => 1.0 + number / 32.0,
            Self::Wide => centered / 3.2,
        }
    }
}

/// Makes the inputs of calls with one combination of dtypes.
#[derive(Clone, Copy)]
pub(crate) struct CaseMaker {
    /// The dtype called `T` in the list of operands.
    pub(crate) dtype: Dtype,
}

impl CaseMaker {
    /// Values of this range; the seed makes arrays of one call different.
    pub(crate) fn array(self, seed: u64, dims: &[usize], domain: ValueDomain) -> ReferenceArray {
        let mut state = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as u32 & 127
        };
        ReferenceArray::from_fn(dims, |_| round_to_dtype(self.dtype, domain.value(self.dtype, next())))
    }

    pub(crate) fn small(self, seed: u64, dims: &[usize]) -> ReferenceArray {
        self.array(seed, dims, ValueDomain::Small)
    }

    /// Values where rounding, overflow and NaN are decided. Integers have none.
    fn special_values(self) -> Vec<f64> {
        let (most, least) = (largest_finite(self.dtype), smallest_normal(self.dtype));
        vec![
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -2.5,
            least,
            -least,
            most,
            -most,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ]
    }
}

/// Shapes of element-wise calls: several dimensions, none, no elements, one, a prime number, and more than one vector or block.
pub(super) const ELEMENTWISE_SHAPES: [&[usize]; 8] =
    [&[2, 3, 5], &[], &[0, 3], &[1], &[1031], &[3, 7, 11, 5], &[2, 1, 3, 1, 17], &[4129]];
/// Pairs of shapes that are broadcast.
const BROADCAST_SHAPES: [[&[usize]; 2]; 5] =
    [[&[4, 1, 3], &[2, 1]], [&[3], &[4, 2, 3]], [&[4, 2, 3], &[1]], [&[5], &[]], [&[0, 1], &[1, 3]]];

/// The calls of an element-wise op with one input, for each set of attributes.
pub(super) fn unary_cases(
    make: CaseMaker,
    domain: ValueDomain,
    has_specials: bool,
    attributes: &[AttributeSet],
) -> Vec<ReferenceCase> {
    let mut cases: Vec<ReferenceCase> = Vec::new();
    for (number, set) in attributes.iter().enumerate() {
        let shapes = if number == 0 { &ELEMENTWISE_SHAPES[..] } else { &ELEMENTWISE_SHAPES[..1] };
        let arrays = shapes.iter().map(|dims| make.array(1, dims, domain));
        cases.extend(arrays.map(|array| ReferenceCase::new(vec![array]).with_attributes(set.clone())));
        if has_specials && is_float(make.dtype) {
            let values = make.special_values();
            let array = ReferenceArray::new(&[values.len()], values);
            cases.push(ReferenceCase::new(vec![array]).with_attributes(set.clone()).named("special values"));
        }
    }
    cases
}

/// The calls of an element-wise op with two inputs.
pub(super) fn binary_cases(
    make: CaseMaker,
    (left, right): (ValueDomain, ValueDomain),
    has_specials: bool,
    attributes: &[AttributeSet],
) -> Vec<ReferenceCase> {
    let mut cases = Vec::new();
    for set in attributes {
        let same = ELEMENTWISE_SHAPES.iter().map(|dims| [*dims, *dims]);
        let pairs = same.chain(BROADCAST_SHAPES);
        cases.extend(pairs.map(|[first, second]| {
            let inputs = vec![make.array(1, first, left), make.array(2, second, right)];
            ReferenceCase::new(inputs).with_attributes(set.clone())
        }));
        if has_specials && is_float(make.dtype) {
            let values = make.special_values();
            let count = values.len();
            let inputs = vec![
                ReferenceArray::from_fn(&[count, count], |at| values[at[0]]),
                ReferenceArray::from_fn(&[count, count], |at| values[at[1]]),
            ];
            cases.push(ReferenceCase::new(inputs).with_attributes(set.clone()).named("special values"));
        }
    }
    cases
}
