//! `LinearRegressor` and `LinearClassifier`: weighted sums of features.

use oarlock_cpu_base::compute_element::ComputeFloat;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_cpu_gemm::GemmElement;
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, OperandSpec, Result, ensure};

use super::FEATURE_DTYPES;
use super::feature_matrix::{FeatureMatrix, matrix_size};
use super::feature_scaling::ColumnPattern;
use super::post_transform::PostTransform;
use super::weight_matrix::WeightMatrix;

pub(super) fn linear_model_kernels() -> Vec<Kernel<Cpu>> {
    let rows = OperandSpec::new(FEATURE_DTYPES).with_name("X").with_rank(1, 2);
    let scores = OperandSpec::new(DtypeSet::F32);
    vec![
        operand_kernel("LinearRegressor", LinearModel::read_regressor, |cpu, linear, operands| {
            linear.regress_rows(cpu, operands)
        })
        .with_inputs([rows])
        .with_outputs([scores.with_name("Y")]),
        operand_kernel("LinearClassifier", LinearModel::read_classifier, |cpu, linear, operands| {
            linear.classify_rows(cpu, operands)
        })
        .with_inputs([rows])
        .with_outputs([OperandSpec::new(DtypeSet::I64).with_name("Y"), scores.with_name("Z")]),
    ]
}

struct LinearModel {
    /// A row of weights for each result, for features of each type.
    narrow_weights: WeightMatrix<f32>,
    weights: WeightMatrix<f64>,
    /// The number of weights.
    weight_count: usize,
    intercepts: ColumnPattern<f64>,
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
        let weights = call.floats_attribute("coefficients")?.unwrap_or_default().to_vec();
        Ok(Self {
            narrow_weights: WeightMatrix::new(weights.iter().map(|weight| *weight as f32).collect(), results),
            weight_count: weights.len(),
            weights: WeightMatrix::new(weights, results),
            intercepts: ColumnPattern::new(intercepts.into_iter(), results, usize::MAX),
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

    /// The rows of a call, and the weighted sums of each.
    fn weighted_sums(&self, cpu: &Cpu, operands: &KernelOperands<'_, '_>) -> Result<WeightedSums> {
        match operands.call().input(0)?.dtype() {
            // As exact as the features are.
            Dtype::F32 | Dtype::F16 | Dtype::BF16 => {
                let features = FeatureMatrix::<f32>::new(operands)?;
                let sums = self.multiply(cpu, &features, &self.narrow_weights)?;
                Ok(WeightedSums { rows: features.rows, sums: sums.into_iter().map(f64::from).collect() })
            }
            _ => {
                let features = FeatureMatrix::<f64>::new(operands)?;
                Ok(WeightedSums { rows: features.rows, sums: self.multiply(cpu, &features, &self.weights)? })
            }
        }
    }

    /// Weights may be left over, which is how models look that were made for more features; onnxruntime ignores them too.
    fn multiply<F: GemmElement + ComputeFloat>(
        &self,
        cpu: &Cpu,
        features: &FeatureMatrix<'_, F>,
        weights: &WeightMatrix<F>,
    ) -> Result<Vec<F>> {
        let (found, columns, results) = (self.weight_count, features.columns, self.results);
        ensure!(
            columns.checked_mul(results).is_some_and(|wanted| wanted <= found),
            invalid_argument,
            "expected `coefficients` for {results} results of {columns} features, found {found}"
        );
        let mut sums = try_filled_vec(F::ZERO, features.rows * results)?;
        weights.multiply(cpu, &features.elements, (features.rows, columns), &mut sums, None)?;
        Ok(sums)
    }

    /// Adds the intercepts to sums, before the attribute `post_transform`.
    fn add_intercepts(&self, sums: &mut [f64]) {
        if self.intercepts.width() > 0 {
            for sums in sums.chunks_mut(self.intercepts.width()) {
                sums.iter_mut()
                    .zip(self.intercepts.elements())
                    .for_each(|(sum, intercept)| *sum += intercept);
            }
        }
    }

    fn regress_rows(&self, cpu: &Cpu, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let (rows, _) = matrix_size(&operands.call().input(0)?)?;
        operands.expect_dims(&operands.call().output(0)?, "Y", &[rows as i64, self.results as i64])?;
        let made = self.weighted_sums(cpu, operands)?;
        let out = OutputRows::new(operands.write_output::<f32>(0)?, self.results);
        parallel_for_parts(cpu, made.rows, grain_for(self.results), out, |first, out| {
            let mut scores = made.sums[first * self.results..][..out.len()].to_vec();
            self.add_intercepts(&mut scores);
            self.finish.apply_to_rows(cpu.isa(), &mut scores, self.results);
            store_scores(out, &scores);
        });
        Ok(())
    }

    fn classify_rows(&self, cpu: &Cpu, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let (rows, _) = matrix_size(&operands.call().input(0)?)?;
        let columns = self.scores;
        operands.expect_dims(&operands.call().output(0)?, "Y", &[rows as i64])?;
        operands.expect_dims(&operands.call().output(1)?, "Z", &[rows as i64, columns as i64])?;
        let made = self.weighted_sums(cpu, operands)?;
        let out = (
            OutputRows::new(operands.write_output::<i64>(0)?, 1),
            OutputRows::new(operands.write_output::<f32>(1)?, columns),
        );
        parallel_for_parts(cpu, made.rows, grain_for(columns), out, |first, (labels, out)| {
            let mut scores = made.sums[first * self.results..][..labels.len() * self.results].to_vec();
            self.add_intercepts(&mut scores);
            if self.results == 1 {
                for (label, score) in labels.iter_mut().zip(&scores) {
                    *label = self.labels[usize::from(*score > 0.0)];
                }
            } else {
                for (label, scores) in labels.iter_mut().zip(scores.chunks(self.results)) {
                    *label = self.labels[index_of_largest(scores)];
                }
            }
            if self.results == 1 && columns == 2 {
                // One score for two classes is that of the second.
                scores = self.finish.binary_scores_of_rows(cpu.isa(), &scores);
            } else {
                self.finish.apply_to_rows(cpu.isa(), &mut scores, columns);
            }
            store_scores(out, &scores);
        });
        Ok(())
    }
}

/// The products of rows of features with all rows of weights.
struct WeightedSums {
    rows: usize,
    sums: Vec<f64>,
}

fn store_scores(out: &mut [f32], scores: &[f64]) {
    out.iter_mut().zip(scores).for_each(|(out, score)| *out = *score as f32);
}

/// The position of the largest score; the first among equal ones.
pub(super) fn index_of_largest(scores: &[f64]) -> usize {
    let mut best = (0, scores.first().copied().unwrap_or(f64::NAN));
    for (at, score) in scores.iter().enumerate() {
        // Without a branch, which processors could not predict.
        best = if *score > best.1 { (at, *score) } else { best };
    }
    best.0
}

#[cfg(test)]
mod tests {
    use oarlock_cpu_testing::isa_levels::isa_levels;
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

    #[test]
    fn many_rows_are_weighed_as_few_are() {
        const ROWS: usize = 3000;
        const COLUMNS: usize = 37;
        let number = |at: usize| ((at * 29 % 97) as f64 - 48.0) / 64.0;
        let features: Vec<f32> = (0..ROWS * COLUMNS).map(|at| number(at) as f32).collect();
        for results in [1, 2, 5] {
            let weights: Vec<f64> = (0..results * COLUMNS).map(|at| number(at + 11)).collect();
            let intercepts: Vec<f64> = (0..results).map(|at| number(at + 3)).collect();
            let attributes = [
                ("coefficients", TestAttribute::Floats(&weights)),
                ("intercepts", TestAttribute::Floats(&intercepts)),
                ("targets", TestAttribute::Int(results as i64)),
                ("post_transform", TestAttribute::Text("SOFTMAX")),
            ];
            let mut expected = Vec::new();
            for row in features.chunks(COLUMNS) {
                let sums = weights.chunks(COLUMNS).zip(&intercepts).map(|(weights, intercept)| {
                    let products =
                        weights.iter().zip(row).map(|(weight, feature)| weight * f64::from(*feature));
                    (products.sum::<f64>() + intercept).exp()
                });
                let sums: Vec<f64> = sums.collect();
                let whole: f64 = sums.iter().sum();
                expected.extend(sums.iter().map(|sum| sum / whole));
            }
            let wide: Vec<f64> = features.iter().map(|feature| f64::from(*feature)).collect();
            let dims = [ROWS as i64, COLUMNS as i64];
            let inputs = [TestArray::from_values(&dims, &features), TestArray::from_values(&dims, &wide)];
            let outputs = [Some((Dtype::F32, &[ROWS as i64, results as i64][..]))];
            for (isa, rows) in isa_levels().flat_map(|isa| inputs.iter().map(move |rows| (isa, rows))) {
                let op = "ai.onnx.ml:LinearRegressor";
                let made =
                    KERNELS.run_with_isa(&isa.to_string(), op, 1, &attributes, &[Some(rows)], &outputs);
                let made: Vec<f32> = made.unwrap().remove(0).unwrap().values();
                for (at, (found, expected)) in made.iter().zip(&expected).enumerate() {
                    assert!(
                        (f64::from(*found) - expected).abs() < 3e-6,
                        "{isa} score {at}: {found} for {expected}"
                    );
                }
            }
        }
    }
}
