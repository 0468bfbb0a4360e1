//! `LinearRegressor` and `LinearClassifier`: weighted sums of features.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandSpec, Result, ensure};

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
    /// Columns of the scores of a classifier.
    scores: usize,
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
            scores: results,
        })
    }

    fn read_regressor(call: &KernelCall<'_>) -> Result<Self> {
        Self::new(call, call.int_attribute("targets")?.unwrap_or(1))
    }

    fn read_classifier(call: &KernelCall<'_>) -> Result<Self> {
        let mut labels = call.ints_attribute("classlabels_ints")?.unwrap_or_default().to_vec();
        let intercepts = call.floats_attribute("intercepts")?.unwrap_or_default().len();
        // Two classes may share one row of weights, whose sign tells them apart.
        let results = if intercepts == 0 { labels.len() } else { intercepts };
        let scores = if results == 1 && labels.len() == 2 { 2 } else { results };
        if results == 1 && labels.is_empty() {
            labels = vec![0, 1];
        }
        ensure!(
            if results == 1 { labels.len() == 2 } else { results <= labels.len() },
            invalid_argument,
            "expected one of `intercepts` for each of {} classes, found {intercepts}",
            labels.len()
        );
        Ok(Self { labels, scores, ..Self::new(call, results as i64)? })
    }

    /// The sums of a row, before the attribute `post_transform`.
    fn weighted_sums<'a>(&'a self, row: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        (0..self.results).map(move |result| {
            let weights = &self.coefficients[result * row.len()..][..row.len()];
            let sum: f64 = weights.iter().zip(row).map(|(weight, feature)| weight * feature).sum();
            sum + self.intercepts.get(result).copied().unwrap_or(0.0)
        })
    }

    /// Weights may be left over, which is how models look that were made for more features; onnxruntime ignores them too.
    fn check_width(&self, matrix: &FeatureMatrix) -> Result<()> {
        let (found, columns, results) = (self.coefficients.len(), matrix.columns, self.results);
        ensure!(
            columns.checked_mul(results).is_some_and(|wanted| wanted <= found),
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
        let (rows, columns) = (matrix.rows as i64, self.scores);
        operands.expect_dims(&operands.call().output(0)?, "Y", &[rows])?;
        operands.expect_dims(&operands.call().output(1)?, "Z", &[rows, columns as i64])?;
        let (labels, all_scores) = (operands.write_output::<i64>(0)?, operands.write_output::<f32>(1)?);
        let mut scores = Vec::new();
        for (row, (label, out)) in labels.iter_mut().zip(all_scores.chunks_mut(columns)).enumerate() {
            scores.clear();
            scores.extend(self.weighted_sums(matrix.row(row)));
            let best = if let [score] = scores[..] {
                // One score for two classes is that of the second.
                if columns == 2 {
                    scores = binary_scores(score, self.finish, true).to_vec();
                } else {
                    self.finish.apply_to_scores(&mut scores);
                }
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

#[cfg(test)]
mod tests {
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
    use oarlock_sdk::Dtype;

    use crate::KERNELS;

    /// Labels and scores of two rows with two features.
    fn classify(attributes: &[(&str, TestAttribute<'_>)], columns: i64) -> (Vec<i64>, Vec<f32>) {
        let rows = TestArray::from_values(&[2, 2], &[1.0_f32, 2.0, 3.0, -4.0]);
        let outputs = [Some((Dtype::I64, &[2][..])), Some((Dtype::F32, &[2, columns][..]))];
        let made = KERNELS.run_kernel("ai.onnx.ml:LinearClassifier", 1, attributes, &[Some(&rows)], &outputs);
        let made: Vec<TestArray> = made.unwrap().into_iter().flatten().collect();
        (made[0].values(), made[1].values())
    }

    #[test]
    fn coefficients_and_labels_may_be_left_over() {
        let attributes = [
            ("coefficients", TestAttribute::Floats(&[1.0, 0.5, 2.0, 0.25, -1.5, 3.0, 7.0, 8.0, 9.0])),
            ("intercepts", TestAttribute::Floats(&[0.25, 0.5, 0.75])),
            ("classlabels_ints", TestAttribute::Ints(&[4, 5, 6, 7])),
        ];
        let (labels, scores) = classify(&attributes, 3);
        assert_eq!((labels, scores), (vec![6, 5], vec![2.25, 3.0, 5.25, 1.25, 5.5, -15.75]));
    }

    #[test]
    fn one_row_of_coefficients_tells_two_classes_apart() {
        let mut attributes = vec![
            ("coefficients", TestAttribute::Floats(&[1.0, 0.5])),
            ("intercepts", TestAttribute::Floats(&[-1.5])),
        ];
        assert_eq!(classify(&attributes, 1), (vec![1, 0], vec![0.5, -0.5]));
        attributes.push(("classlabels_ints", TestAttribute::Ints(&[8, 9])));
        assert_eq!(classify(&attributes, 2), (vec![9, 8], vec![0.5, 0.5, 1.5, -0.5]));
    }
}
