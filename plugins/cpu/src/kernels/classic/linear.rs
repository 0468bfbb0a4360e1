//! `LinearRegressor` and `LinearClassifier`: sums of weighed features.

use oarlock_sdk::{Call, DtypeSet, Error, Kernel, Operand, Result, ensure};

use super::NUMBERS;
use super::finish::{Finish, of_two};
use super::matrix::Matrix;
use crate::device::Cpu;
use crate::kernels::rows::operands::{Operands, kernel};

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let rows = Operand::new(NUMBERS).named("X").rank(1, 2);
    let scores = Operand::new(DtypeSet::F32);
    vec![
        kernel("LinearRegressor", Linear::regressor, |_, linear, operands| linear.regress(operands))
            .inputs([rows])
            .outputs([scores.named("Y")]),
        kernel("LinearClassifier", Linear::classifier, |_, linear, operands| linear.classify(operands))
            .inputs([rows])
            .outputs([Operand::new(DtypeSet::I64).named("Y"), scores.named("Z")]),
    ]
}

struct Linear {
    /// A row of weights for each result.
    coefficients: Vec<f64>,
    intercepts: Vec<f64>,
    results: usize,
    finish: Finish,
    labels: Vec<i64>,
}

impl Linear {
    fn new(call: &Call<'_>, results: i64) -> Result<Self> {
        let intercepts = call.floats("intercepts")?.unwrap_or_default().to_vec();
        let results = usize::try_from(results).unwrap_or(0);
        ensure!(
            results > 0 && (intercepts.is_empty() || intercepts.len() == results),
            invalid_argument,
            "expected no `intercepts` or one for each of {results} results, found {}",
            intercepts.len()
        );
        Ok(Self {
            coefficients: call.floats("coefficients")?.unwrap_or_default().to_vec(),
            intercepts,
            results,
            finish: Finish::of_name(call.string("post_transform")?.unwrap_or("NONE"))?,
            labels: Vec::new(),
        })
    }

    fn regressor(call: &Call<'_>) -> Result<Self> {
        Self::new(call, call.int("targets")?.unwrap_or(1))
    }

    fn classifier(call: &Call<'_>) -> Result<Self> {
        let labels = call.ints("classlabels_ints")?.unwrap_or_default().to_vec();
        if labels.is_empty() {
            return Err(Error::unimplemented("expected classes with integers as labels, found none"));
        }
        let intercepts = call.floats("intercepts")?.unwrap_or_default().len();
        let results = if intercepts == 0 { labels.len() } else { intercepts };
        ensure!(
            results == labels.len() || results == 1 && labels.len() == 2,
            invalid_argument,
            "expected one of `intercepts` for each of {} classes, found {intercepts}",
            labels.len()
        );
        Ok(Self { labels, ..Self::new(call, results as i64)? })
    }

    /// The sums of a row, before they are finished.
    fn sums<'a>(&'a self, row: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        (0..self.results).map(move |result| {
            let weights = &self.coefficients[result * row.len()..][..row.len()];
            let sum: f64 = weights.iter().zip(row).map(|(weight, feature)| weight * feature).sum();
            sum + self.intercepts.get(result).copied().unwrap_or(0.0)
        })
    }

    fn check(&self, matrix: &Matrix) -> Result<()> {
        let (found, columns, results) = (self.coefficients.len(), matrix.columns, self.results);
        ensure!(
            columns.checked_mul(results) == Some(found),
            invalid_argument,
            "expected `coefficients` for {results} results of {columns} features, found {found}"
        );
        Ok(())
    }

    fn regress(&self, operands: &Operands<'_, '_>) -> Result<()> {
        let matrix = Matrix::new(operands)?;
        self.check(&matrix)?;
        let dims = [matrix.rows as i64, self.results as i64];
        operands.expect_dims(&operands.call().output(0)?, "Y", &dims)?;
        let mut scores = Vec::new();
        for (row, out) in operands.write::<f32>(0)?.chunks_mut(self.results).enumerate() {
            scores.clear();
            scores.extend(self.sums(matrix.row(row)));
            self.finish.apply(&mut scores);
            out.iter_mut().zip(&scores).for_each(|(out, score)| *out = *score as f32);
        }
        Ok(())
    }

    fn classify(&self, operands: &Operands<'_, '_>) -> Result<()> {
        let matrix = Matrix::new(operands)?;
        self.check(&matrix)?;
        let (rows, classes) = (matrix.rows as i64, self.labels.len());
        operands.expect_dims(&operands.call().output(0)?, "Y", &[rows])?;
        operands.expect_dims(&operands.call().output(1)?, "Z", &[rows, classes as i64])?;
        let (labels, all_scores) = (operands.write::<i64>(0)?, operands.write::<f32>(1)?);
        let mut scores = Vec::new();
        for (row, (label, out)) in labels.iter_mut().zip(all_scores.chunks_mut(classes)).enumerate() {
            scores.clear();
            scores.extend(self.sums(matrix.row(row)));
            let best = if let [score] = scores[..] {
                // One score for two classes speaks for the second.
                scores = of_two(score, self.finish, true).to_vec();
                usize::from(score > 0.0)
            } else {
                let best = largest(&scores);
                self.finish.apply(&mut scores);
                best
            };
            *label = self.labels[best];
            out.iter_mut().zip(&scores).for_each(|(out, score)| *out = *score as f32);
        }
        Ok(())
    }
}

/// Where the largest score stands; of equal ones the first.
pub(super) fn largest(scores: &[f64]) -> usize {
    (1..scores.len()).fold(0, |best, at| if scores[at] > scores[best] { at } else { best })
}
