//! The attribute `post_transform`: a function of the final scores.

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::{math, with_isa};
use oarlock_sdk::{PluginError, Result};

/// A function of the scores of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostTransform {
    None,
    Softmax,
    Logistic,
    /// As `Softmax`, but scores of 0 stay 0 and do not count.
    SoftmaxOfOthers,
    Probit,
}

impl PostTransform {
    pub(super) fn from_name(name: &str) -> Result<Self> {
        match name {
            "NONE" => Ok(Self::None),
            "SOFTMAX" => Ok(Self::Softmax),
            "LOGISTIC" => Ok(Self::Logistic),
            "SOFTMAX_ZERO" => Ok(Self::SoftmaxOfOthers),
            "PROBIT" => Ok(Self::Probit),
            other => Err(PluginError::invalid_argument(format!(
                "expected `post_transform` to be `NONE`, `SOFTMAX`, `LOGISTIC`, `SOFTMAX_ZERO` or `PROBIT`, found `{other}`"
            ))),
        }
    }

    pub(super) fn from_number(number: i64) -> Result<Self> {
        let all = [Self::None, Self::Softmax, Self::Logistic, Self::SoftmaxOfOthers, Self::Probit];
        let found = usize::try_from(number).ok().and_then(|number| all.get(number));
        found.copied().ok_or_else(|| {
            PluginError::invalid_argument(format!("expected `post_transform` from 0 to 4, found {number}"))
        })
    }

    pub(super) fn apply_to_scores(self, scores: &mut [f64]) {
        match self {
            Self::None => {}
            Self::Logistic => scores.iter_mut().for_each(|score| *score = logistic(*score)),
            Self::Probit => scores.iter_mut().for_each(|score| *score = probit(*score)),
            Self::Softmax => softmax_scores(scores, |_| true),
            // As in onnxruntime, scores this close to 0 count as 0.
            Self::SoftmaxOfOthers => softmax_scores(scores, |score| score.abs() > 1e-7),
        }
    }
}

impl PostTransform {
    /// Like [`Self::apply_to_scores`], for many rows of this width.
    pub(super) fn apply_to_rows(self, isa: Isa, scores: &mut [f64], width: usize) {
        match self {
            Self::None => {}
            Self::Logistic => apply_logistic(isa, scores),
            Self::Softmax => {
                for row in scores.chunks_mut(width) {
                    let largest = largest_score(row);
                    row.iter_mut().for_each(|score| *score -= largest);
                }
                with_isa!(isa, Level => || {
                                    for score in scores.iter_mut() {
                 *score = math::exp::<Level, _>(*score);
                }
                                });
                for row in scores.chunks_mut(width) {
                    divide_by_sum(row, row.iter().sum());
                }
            }
            Self::SoftmaxOfOthers | Self::Probit => {
                scores.chunks_mut(width).for_each(|row| self.apply_to_scores(row));
            }
        }
    }

    /// [`binary_scores`] of many rows with a score each, which is a share.
    pub(super) fn binary_scores_of_rows(self, isa: Isa, scores: &[f64]) -> Vec<f64> {
        if self != Self::Logistic {
            return scores.iter().flat_map(|score| binary_scores(*score, self, true)).collect();
        }
        let mut both: Vec<f64> = scores.iter().flat_map(|score| [-score, *score]).collect();
        apply_logistic(isa, &mut both);
        both
    }
}

fn apply_logistic(isa: Isa, scores: &mut [f64]) {
    with_isa!(isa, Level => || {
            for score in scores.iter_mut() {
     *score = math::sigmoid::<Level, _>(*score);
    }
        });
}

/// The scores of two classes, given one score. `is_share` says that it lies between 0 and 1.
pub(super) fn binary_scores(score: f64, finish: PostTransform, is_share: bool) -> [f64; 2] {
    match finish {
        // Taken from 1, the smaller of the two would lose its digits.
        PostTransform::Logistic => [logistic(-score), logistic(score)],
        _ if is_share => [1.0 - score, score],
        _ => [-score, score],
    }
}

fn logistic(score: f64) -> f64 {
    1.0 / (1.0 + (-score).exp())
}

/// The inverse of the normal distribution function, by an approximation of the inverse error function.
fn probit(score: f64) -> f64 {
    // Winitzki's approximation, which onnxruntime uses as well. `(1 - x) (1 + x)` loses fewer digits than `1 - x²`.
    let x = 2.0 * score - 1.0;
    let logarithm = ((1.0 - x) * (1.0 + x)).ln();
    let half = 2.0 / (std::f64::consts::PI * 0.147) + 0.5 * logarithm;
    let root = (-half + (half * half - logarithm / 0.147).sqrt()).sqrt();
    std::f64::consts::SQRT_2 * root.copysign(x)
}

fn softmax_scores(scores: &mut [f64], counts: impl Fn(f64) -> bool) {
    let largest = largest_score(scores);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        if counts(*score) {
            *score = (*score - largest).exp();
            sum += *score;
        } else {
            *score = 0.0;
        }
    }
    divide_by_sum(scores, sum);
}

/// Relative to the largest, no exponential overflows.
fn largest_score(scores: &[f64]) -> f64 {
    scores.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn divide_by_sum(scores: &mut [f64], sum: f64) {
    if sum > 0.0 {
        scores.iter_mut().for_each(|score| *score /= sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_a_row_become_shares() {
        let mut scores = [0.0, 1.0, 1.0];
        PostTransform::SoftmaxOfOthers.apply_to_scores(&mut scores);
        assert_eq!(scores, [0.0, 0.5, 0.5]);
        let mut scores = [1000.0, 1000.0];
        PostTransform::Softmax.apply_to_scores(&mut scores);
        assert_eq!(scores, [0.5, 0.5]);
        let mut scores = [0.0, 0.5];
        PostTransform::Logistic.apply_to_scores(&mut scores[..1]);
        PostTransform::Probit.apply_to_scores(&mut scores[1..]);
        assert_eq!(scores, [0.5, 0.0]);
        assert!(
            PostTransform::from_name("MAX").is_err()
                && PostTransform::from_number(5).is_err()
                && PostTransform::from_number(-1).is_err()
        );
    }
}
