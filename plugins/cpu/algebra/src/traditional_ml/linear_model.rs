//! `LinearRegressor` and `LinearClassifier`: weighted sums of features.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result, ensure};

use super::FEATURE_DTYPES;
use super::feature_matrix::FeatureMatrix;
use super::post_transform::{PostTransform, binary_scores};

pub(super) fn linear_model_kernels() -> Vec<Kernel<Cpu>> {
    let rows = OperandSpec::new(FEATURE_DTYPES).with_name("X").with_rank(1, 2);
    let scores = OperandSpec::new(DtypeSet::F32);
    vec![
        operand_kernel("LinearRegressor", LinearModel::read_regressor, |_, linear, operands| {
            linear.regress_rows(operands)
        })
        .with_inputs([rows])
        .with_outputs([scores.with_name("Y")]),
        operand_kernel("LinearClassifier", LinearModel::read_classifier, |_, linear, operands| {
            linear.classify_rows(operands)
        })
        .with_inputs([rows])
        .with_outputs([OperandSpec::new(DtypeSet::I64).with_name("Y"), scores.with_name("Z")]),
    ]
}

struct LinearModel {
    /// A row of weights for each result.
    coefficients: Vec<f64>,
    intercepts: Vec<f64>,
    results: usize,
    finish: PostTransform,
    labels: Vec<i64>,
}

impl LinearModel {
    fn new(call: &KernelCall<'_>, results: i64) -> Result<Self> {
        let intercepts = call.floats_attribute("intercepts")?.unwrap_or_default().to_vec();
        let results = usize::try_from(results).unwrap_or(0);
        ensure!(
            results > 0 && (intercepts.is_empty() || intercepts.len() == results),
            invalid_argument,
            "expected no `intercepts` or one for each of {results} results, found {}",
            intercepts.len()
        );
        Ok(Self {
            coefficients: call.floats_attribute("coefficients")?.unwrap_or_default().to_vec(),
            intercepts,
            results,
            finish: PostTransform::from_name(call.string_attribute("post_transform")?.unwrap_or("NONE"))?,
            labels: Vec::new(),
        })
    }

    fn read_regressor(call: &KernelCall<'_>) -> Result<Self> {
        Self::new(call, call.int_attribute("targets")?.unwrap_or(1))
    }

    fn read_classifier(call: &KernelCall<'_>) -> Result<Self> {
        let labels = call.ints_attribute("classlabels_ints")?.unwrap_or_default().to_vec();
        if labels.is_empty() {
            return Err(PluginError::unimplemented("expected classes with integers as labels, found none"));
        }
        let intercepts = call.floats_attribute("intercepts")?.unwrap_or_default().len();
        // Two classes may share one row of weights, whose sign tells them apart.
        let results = if intercepts == 0 { labels.len() } else { intercepts };
        ensure!(
            results == labels.len() || results == 1 && labels.len() == 2,
            invalid_argument,
            "expected one of `intercepts` for each of {} classes, found {intercepts}",
            labels.len()
        );
        Ok(Self { labels, ..Self::new(call, results as i64)? })
    }

    /// The sums of a row, before the attribute `post_transform`.
    fn weighted_sums<'a>(&'a self, row: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        (0..self.results).map(move |result| {
            let weights = &self.coefficients[result * row.len()..][..row.len()];
            let sum: f64 = weights.iter().zip(row).map(|(weight, feature)| weight * feature).sum();
            sum + self.intercepts.get(result).copied().unwrap_or(0.0)
        })
    }

    fn check_width(&self, matrix: &FeatureMatrix) -> Result<()> {
        let (found, columns, results) = (self.coefficients.len(), matrix.columns, self.results);
        ensure!(
            columns.checked_mul(results) == Some(found),
            invalid_argument,
            "expected `coefficients` for {results} results of {columns} features, found {found}"
        );
        Ok(())
    }

    fn regress_rows(&self, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let matrix = FeatureMatrix::new(operands)?;
        self.check_width(&matrix)?;
        let dims = [matrix.rows as i64, self.results as i64];
        operands.expect_dims(&operands.call().output(0)?, "Y", &dims)?;
        let mut scores = Vec::new();
        for (row, out) in operands.write_output::<f32>(0)?.chunks_mut(self.results).enumerate() {
            scores.clear();
            scores.extend(self.weighted_sums(matrix.row(row)));
            self.finish.apply_to_scores(&mut scores);
            out.iter_mut().zip(&scores).for_each(|(out, score)| *out = *score as f32);
        }
        Ok(())
    }

    fn classify_rows(&self, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let matrix = FeatureMatrix::new(operands)?;
        self.check_width(&matrix)?;
        let (rows, classes) = (matrix.rows as i64, self.labels.len());
        operands.expect_dims(&operands.call().output(0)?, "Y", &[rows])?;
        operands.expect_dims(&operands.call().output(1)?, "Z", &[rows, classes as i64])?;
        let (labels, all_scores) = (operands.write_output::<i64>(0)?, operands.write_output::<f32>(1)?);
        let mut scores = Vec::new();
        for (row, (label, out)) in labels.iter_mut().zip(all_scores.chunks_mut(classes)).enumerate() {
            scores.clear();
            scores.extend(self.weighted_sums(matrix.row(row)));
            let best = if let [score] = scores[..] {
                // One score for two classes is that of the second.
                scores = binary_scores(score, self.finish, true).to_vec();
                usize::from(score > 0.0)
            } else {
                let best = index_of_largest(&scores);
                self.finish.apply_to_scores(&mut scores);
                best
            };
            *label = self.labels[best];
            out.iter_mut().zip(&scores).for_each(|(out, score)| *out = *score as f32);
        }
        Ok(())
    }
}

/// The position of the largest score; the first among equal ones.
pub(super) fn index_of_largest(scores: &[f64]) -> usize {
    (1..scores.len()).fold(0, |best, at| if scores[at] > scores[best] { at } else { best })
}
