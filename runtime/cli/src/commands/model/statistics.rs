//! What there is to say about many numbers in a line.

use oarlock_core::Tensor;
use serde::Serialize;

use crate::problem::Problem;
use crate::scalar::{Scalar, Scalars};

/// Of the elements of a tensor. Those that are no numbers, or infinite, are counted and left out of the rest.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Elements {
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    deviation: Option<f64>,
    nan: usize,
    infinite: usize,
}

impl Elements {
    /// Nothing for complex numbers and texts.
    pub(super) fn of(tensor: &Tensor, scalars: &Scalars) -> Result<Option<Self>, Problem> {
        let count = usize::try_from(tensor.element_count()).map_err(Problem::new)?;
        let numbers: Option<Vec<f64>> = (0..count).map(|index| number(&scalars.at(index))).collect();
        Ok(numbers.map(|numbers| Self::of_numbers(&numbers)))
    }

    fn of_numbers(numbers: &[f64]) -> Self {
        let nan = numbers.iter().filter(|number| number.is_nan()).count();
        let infinite = numbers.iter().filter(|number| number.is_infinite()).count();
        let finite = || numbers.iter().copied().filter(|number| number.is_finite());
        let count = finite().count();
        if count == 0 {
            return Self { nan, infinite, ..Self::default() };
        }
        let mean = finite().sum::<f64>() / count as f64;
        let variance = finite().map(|number| (number - mean).powi(2)).sum::<f64>() / count as f64;
        Self {
            min: finite().reduce(f64::min),
            max: finite().reduce(f64::max),
            mean: Some(mean),
            deviation: Some(variance.sqrt()),
            nan,
            infinite,
        }
    }

    /// As in `from -1 to 3, mean 0.5, deviation 1.2; 2 are NaN`.
    pub(super) fn sentence(&self) -> Option<String> {
        let mut parts = Vec::new();
        if let (Some(min), Some(max), Some(mean), Some(deviation)) =
            (self.min, self.max, self.mean, self.deviation)
        {
            let [min, max, mean, deviation] = [min, max, mean, deviation].map(short);
            parts.push(format!("from {min} to {max}, mean {mean}, deviation {deviation}"));
        }
        if self.nan > 0 {
            parts.push(format!("{} NaN", are(self.nan)));
        }
        if self.infinite > 0 {
            parts.push(format!("{} infinite", are(self.infinite)));
        }
        if parts.is_empty() { None } else { Some(parts.join("; ")) }
    }
}

fn are(count: usize) -> String {
    format!("{count} {}", if count == 1 { "is" } else { "are" })
}

/// An element as a number; nothing for complex ones and texts.
pub(super) fn number(scalar: &Scalar) -> Option<f64> {
    match scalar {
        Scalar::Bool(value) => Some(f64::from(*value)),
        Scalar::Int(value) => Some(*value as f64),
        Scalar::Unsigned(value) => Some(*value as f64),
        Scalar::Single(value) => Some(f64::from(*value)),
        Scalar::Double(value) => Some(*value),
        Scalar::SingleComplex(..) | Scalar::DoubleComplex(..) | Scalar::Text(_) => None,
    }
}

/// Few figures.
fn short(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        1e-3..1e6 => {
            let text = format!("{number:.4}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{number:.3e}"),
    }
}

/// Of the times of runs, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Times {
    pub(super) median: f64,
    pub(super) mean: f64,
    pub(super) min: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

impl Times {
    /// Nothing of no times.
    pub(super) fn of(times: &[f64]) -> Option<Self> {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let median = median(&sorted);
        Some(Self {
            median,
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            min,
            p50: median,
            p90: at(&sorted, 0.9),
            p99: at(&sorted, 0.99),
            max,
        })
    }
}

/// The median of numbers in order; 0 of none.
pub(super) fn median(sorted: &[f64]) -> f64 {
    at(sorted, 0.5)
}

/// What stands at a fraction of numbers in order, between two of them if need be.
fn at(sorted: &[f64], fraction: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = fraction * last as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_are_no_numbers_are_counted_and_left_out() {
        let elements = Elements::of_numbers(&[1.0, f64::NAN, 3.0, f64::INFINITY]);
        let sentence = elements.sentence().unwrap();
        assert_eq!(sentence, "from 1 to 3, mean 2, deviation 1; 1 is NaN; 1 is infinite");
        assert_eq!(Elements::of_numbers(&[]).sentence(), None);
    }

    #[test]
    fn percentiles_lie_between_the_times_around_them() {
        let times = Times::of(&[4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!((times.min, times.median, times.max, times.mean), (1.0, 2.5, 4.0, 2.5));
        assert!((times.p90 - 3.7).abs() < 1e-9);
        assert_eq!(Times::of(&[]), None);
    }

    #[test]
    fn numbers_are_short_whatever_their_size() {
        assert_eq!(
            [0.0, 1.0, -0.5, 123.456_78, 1e-9, 2.5e9].map(short),
            ["0", "1", "-0.5", "123.4568", "1.000e-9", "2.500e9"]
        );
    }
}
