//! Summarizes many numbers in one line.

use half::{bf16, f16};
use oarlock_core::Dtype;
use serde::Serialize;

use crate::scalar::{ScalarValue, TensorScalars};

/// 2048 numbers of `f64` are 16 KiB, which stays in the L1 cache.
const CHUNK_LENGTH: usize = 2048;

/// Statistics of a tensor. NaN and infinite elements are counted and excluded from the rest.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct ElementStatistics {
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    deviation: Option<f64>,
    nan: usize,
    infinite: usize,
}

impl ElementStatistics {
    /// `None` for complex numbers and texts.
    pub fn from_scalars(scalars: &TensorScalars<'_>) -> Option<Self> {
        let TensorScalars::Bytes(dtype, bytes, count) = scalars else { return None };
        let mut moments = RunningMoments::default();
        macro_rules! each {
            ($ty:ty, $number:expr) => {
                accumulate_chunks(bytes.as_chunks::<{ size_of::<$ty>() }>().0, &mut moments, |bytes| {
                    $number(<$ty>::from_ne_bytes(*bytes))
                })
            };
        }
        match dtype {
            Dtype::F32 => each!(f32, f64::from),
            Dtype::F64 => each!(f64, f64::from),
            Dtype::F16 => each!(f16, f16::to_f64),
            Dtype::BF16 => each!(bf16, bf16::to_f64),
            Dtype::I8 => each!(i8, f64::from),
            Dtype::U8 | Dtype::Bool => each!(u8, f64::from),
            Dtype::I16 => each!(i16, f64::from),
            Dtype::U16 => each!(u16, f64::from),
            Dtype::I32 => each!(i32, f64::from),
            Dtype::U32 => each!(u32, f64::from),
            Dtype::I64 => each!(i64, |number| number as f64),
            Dtype::U64 => each!(u64, |number| number as f64),
            Dtype::C64 | Dtype::C128 | Dtype::String => return None,
            // Packed elements and 8-bit floats.
            _ => {
                let mut numbers = [0.0; CHUNK_LENGTH];
                for first in (0..*count).step_by(CHUNK_LENGTH) {
                    let chunk = &mut numbers[..CHUNK_LENGTH.min(*count - first)];
                    for (place, own) in chunk.iter_mut().enumerate() {
                        *own = scalar_to_number(&scalars.scalar_at(first + place))?;
                    }
                    moments.add_numbers(chunk);
                }
            }
        }
        Some(moments.into_statistics())
    }

    /// Such as `from -1 to 3, mean 0.5, deviation 1.2; 2 are NaN`.
    pub fn to_sentence(&self) -> Option<String> {
        let mut parts = Vec::new();
        if let (Some(min), Some(max), Some(mean), Some(deviation)) =
            (self.min, self.max, self.mean, self.deviation)
        {
            let [min, max, mean, deviation] = [min, max, mean, deviation].map(format_short);
            parts.push(format!("from {min} to {max}, mean {mean}, deviation {deviation}"));
        }
        if self.nan > 0 {
            parts.push(format!("{} NaN", is_or_are(self.nan)));
        }
        if self.infinite > 0 {
            parts.push(format!("{} infinite", is_or_are(self.infinite)));
        }
        if parts.is_empty() { None } else { Some(parts.join("; ")) }
    }
}

/// Converts elements to numbers, one chunk at a time.
fn accumulate_chunks<const SIZE: usize>(
    elements: &[[u8; SIZE]],
    moments: &mut RunningMoments,
    number: impl Fn(&[u8; SIZE]) -> f64,
) {
    let mut numbers = [0.0; CHUNK_LENGTH];
    for part in elements.chunks(CHUNK_LENGTH) {
        let chunk = &mut numbers[..part.len()];
        chunk.iter_mut().zip(part).for_each(|(own, element)| *own = number(element));
        moments.add_numbers(chunk);
    }
}

/// Moments of the numbers so far. Chunks are merged by the method of Chan, Golub and LeVeque, which needs a single pass and
/// keeps a small deviation exact beside a large mean.
#[derive(Default)]
struct RunningMoments {
    count: usize,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
    min: f64,
    max: f64,
    nan: usize,
    infinite: usize,
}

impl RunningMoments {
    fn add_numbers(&mut self, numbers: &[f64]) {
        let (mut count, mut sum) = (0usize, 0.0);
        let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
        for number in numbers.iter().copied() {
            if number.is_finite() {
                count += 1;
                sum += number;
                (min, max) = (min.min(number), max.max(number));
            } else if number.is_nan() {
                self.nan += 1;
            } else {
                self.infinite += 1;
            }
        }
        if count == 0 {
            return;
        }
        let mean = sum / count as f64;
        let finite = numbers.iter().filter(|number| number.is_finite());
        let squares: f64 = finite.map(|number| (number - mean) * (number - mean)).sum();
        if self.count == 0 {
            (self.count, self.mean, self.squares, self.min, self.max) = (count, mean, squares, min, max);
            return;
        }
        let all = (self.count + count) as f64;
        let (own, other, apart) = (self.count as f64 / all, count as f64 / all, mean - self.mean);
        self.squares += squares + apart * apart * own * count as f64;
        self.mean += apart * other;
        self.count += count;
        (self.min, self.max) = (self.min.min(min), self.max.max(max));
    }

    fn into_statistics(self) -> ElementStatistics {
        let Self { count, mean, squares, min, max, nan, infinite } = self;
        if count == 0 {
            return ElementStatistics { nan, infinite, ..ElementStatistics::default() };
        }
        let deviation = Some((squares / count as f64).sqrt());
        ElementStatistics { min: Some(min), max: Some(max), mean: Some(mean), deviation, nan, infinite }
    }
}

fn is_or_are(count: usize) -> String {
    format!("{count} {}", if count == 1 { "is" } else { "are" })
}

/// `None` for complex numbers and texts.
pub fn scalar_to_number(scalar: &ScalarValue) -> Option<f64> {
    match scalar {
        ScalarValue::Bool(value) => Some(f64::from(*value)),
        ScalarValue::Int(value) => Some(*value as f64),
        ScalarValue::Unsigned(value) => Some(*value as f64),
        ScalarValue::Single(value) => Some(f64::from(*value)),
        ScalarValue::Double(value) => Some(*value),
        ScalarValue::SingleComplex(..) | ScalarValue::DoubleComplex(..) | ScalarValue::Text(_) => None,
    }
}

/// Formats with few significant digits.
fn format_short(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        1e-3..1e6 => {
            let text = format!("{number:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{number:.3e}"),
    }
}

/// Statistics of run times, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeStatistics {
    /// Half are shorter.
    pub median: f64,
    /// Their sum over their number.
    pub mean: f64,
    /// The shortest.
    pub min: f64,
    /// The median once more, beside the other percentiles.
    pub p50: f64,
    /// Nine of ten are shorter.
    pub p90: f64,
    /// 99 of 100 are shorter.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl TimeStatistics {
    /// `None` if there are no times.
    pub fn from_times(times: &[f64]) -> Option<Self> {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let median = sorted_median(&sorted);
        Some(Self {
            median,
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            min,
            p50: median,
            p90: quantile_at(&sorted, 0.9),
            p99: quantile_at(&sorted, 0.99),
            max,
        })
    }
}

/// The median of sorted numbers; 0 if there are none.
pub fn sorted_median(sorted: &[f64]) -> f64 {
    quantile_at(sorted, 0.5)
}

/// The quantile of sorted numbers, interpolated linearly.
fn quantile_at(sorted: &[f64], fraction: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = fraction * last as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statistics_of_bytes(dtype: Dtype, bytes: &[u8]) -> ElementStatistics {
        let count = bytes.len() / oarlock_core::shape::size_in_bytes(dtype, &[1]).unwrap() as usize;
        ElementStatistics::from_scalars(&TensorScalars::Bytes(dtype, bytes.into(), count)).unwrap()
    }

    #[test]
    fn nan_and_infinite_elements_are_counted_and_left_out() {
        let elements = statistics_of_bytes(
            Dtype::F64,
            &[1.0, f64::NAN, 3.0, f64::INFINITY].map(f64::to_ne_bytes).concat(),
        );
        let sentence = elements.to_sentence().unwrap();
        assert_eq!(sentence, "from 1 to 3, mean 2, deviation 1; 1 is NaN; 1 is infinite");
        assert_eq!(statistics_of_bytes(Dtype::F32, &[]).to_sentence(), None);
    }

    #[test]
    fn chunked_statistics_match_a_single_pass() {
        // A mean that is large beside the deviation, with a last chunk that is not full.
        let numbers: Vec<f64> = (0..3 * CHUNK_LENGTH + 5).map(|index| 1e6 + (index % 7) as f64).collect();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let ElementStatistics { min, max, mean, deviation, .. } = statistics_of_bytes(Dtype::F64, &bytes);
        let count = numbers.len() as f64;
        let expected = numbers.iter().map(|number| number - 1e6).sum::<f64>() / count + 1e6;
        let variance = numbers.iter().map(|number| (number - expected).powi(2)).sum::<f64>() / count;
        assert_eq!((min, max), (Some(1e6), Some(1e6 + 6.0)));
        assert!((mean.unwrap() - expected).abs() < 1e-6, "{mean:?} {expected}");
        assert!((deviation.unwrap() - variance.sqrt()).abs() < 1e-6, "{deviation:?} {variance}");
    }

    #[test]
    fn every_dtype_of_numbers_is_read_as_it_is() {
        for dtype in Dtype::ALL.iter().copied().filter(|dtype| *dtype != Dtype::String) {
            let bytes = [0x31, 0xB2, 0x03, 0xC4].repeat(32);
            let size = oarlock_core::shape::size_in_bytes(dtype, &[8]).unwrap() as usize;
            let mut bytes = bytes[..size].to_vec();
            if dtype == Dtype::Bool {
                bytes.iter_mut().for_each(|byte| *byte &= 1);
            }
            let scalars = TensorScalars::Bytes(dtype, bytes.into(), 8);
            let numbers: Option<Vec<f64>> =
                (0..8).map(|index| scalar_to_number(&scalars.scalar_at(index))).collect();
            let found = ElementStatistics::from_scalars(&scalars);
            assert_eq!(found.is_some(), numbers.is_some(), "{dtype}");
            let finite = || numbers.iter().flatten().copied().filter(|number| number.is_finite());
            if let Some(found) = found {
                assert_eq!(
                    (found.min, found.max),
                    (finite().reduce(f64::min), finite().reduce(f64::max)),
                    "{dtype}"
                );
            }
        }
    }

    #[test]
    fn percentiles_lie_between_the_times_around_them() {
        let times = TimeStatistics::from_times(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((times.min, times.median, times.max, times.mean), (1.0, 2.5, 4.0, 2.5));
        assert!((times.p90 - 3.7).abs() < 1e-9);
        assert_eq!(TimeStatistics::from_times(&[]), None);
    }

    #[test]
    fn numbers_are_short_whatever_their_size() {
        assert_eq!(
            [0.0, 1.0, -0.5, 123.456_78, 1e-9, 2.5e9].map(format_short),
            ["0", "1", "-0.5", "123.4568", "1.000e-9", "2.500e9"]
        );
    }
}
