//! `SVMRegressor` and `SVMClassifier`: they compare rows with the support vectors that mark the border between classes.

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result, ensure};

use super::FEATURE_DTYPES;
use super::feature_matrix::FeatureMatrix;
use super::linear_model::index_of_largest;
use super::post_transform::{PostTransform, binary_scores};

/// The minimum distance of pairwise probabilities from 0 and 1.
const MIN_PROBABILITY: f64 = 1e-7;

pub(super) fn svm_kernels() -> Vec<Kernel<Cpu>> {
    let rows = OperandSpec::new(FEATURE_DTYPES).with_name("X").with_rank(1, 2);
    let scores = OperandSpec::new(DtypeSet::F32);
    vec![
        operand_kernel("SVMRegressor", SvmRegressor::new, |_, regressor, operands| {
            regressor.regress_rows(operands)
        })
        .with_inputs([rows])
        .with_outputs([scores.with_name("Y")]),
        operand_kernel("SVMClassifier", SvmClassifier::new, |_, classifier, operands| {
            classifier.classify_rows(operands)
        })
        .with_inputs([rows])
        .with_outputs([OperandSpec::new(DtypeSet::I64).with_name("Y"), scores.with_name("Z")]),
    ]
}

/// The similarity of two rows.
enum SvmKernelFunction {
    Linear,
    Polynomial { gamma: f64, offset: f64, degree: f64 },
    Radial { gamma: f64 },
    Sigmoid { gamma: f64, offset: f64 },
}

impl SvmKernelFunction {
    fn from_attributes(call: &KernelCall<'_>) -> Result<Self> {
        let parameters = call.floats_attribute("kernel_params")?.unwrap_or_default();
        let at = |index: usize| parameters.get(index).copied().unwrap_or(0.0);
        let (gamma, offset, degree) = (at(0), at(1), at(2));
        match call.string_attribute("kernel_type")?.unwrap_or("LINEAR") {
            "LINEAR" => Ok(Self::Linear),
            "POLY" => Ok(Self::Polynomial { gamma, offset, degree }),
            "RBF" => Ok(Self::Radial { gamma }),
            "SIGMOID" => Ok(Self::Sigmoid { gamma, offset }),
            other => Err(PluginError::invalid_argument(format!(
                "expected `kernel_type` to be `LINEAR`, `POLY`, `RBF` or `SIGMOID`, found `{other}`"
            ))),
        }
    }

    fn similarity(&self, one: &[f64], other: &[f64]) -> f64 {
        match *self {
            Self::Linear => dot_product(one, other),
            Self::Polynomial { gamma, offset, degree } => {
                (dot_product(one, other) * gamma + offset).powf(degree)
            }
            Self::Radial { gamma } => {
                let distance: f64 = one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum();
                (-gamma * distance).exp()
            }
            Self::Sigmoid { gamma, offset } => (dot_product(one, other) * gamma + offset).tanh(),
        }
    }
}

fn dot_product(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// Support vectors and the coefficients of their similarities. Without vectors, the features themselves are weighted.
struct SupportVectorMachine {
    similarity: SvmKernelFunction,
    vectors: Vec<f64>,
    /// The number of vectors.
    count: usize,
    coefficients: Vec<f64>,
    offsets: Vec<f64>,
    finish: PostTransform,
}

impl SupportVectorMachine {
    fn new(call: &KernelCall<'_>, count: usize) -> Result<Self> {
        let list = |name| Ok::<_, PluginError>(call.floats_attribute(name)?.unwrap_or_default().to_vec());
        let machine = Self {
            similarity: if count == 0 {
                SvmKernelFunction::Linear
            } else {
                SvmKernelFunction::from_attributes(call)?
            },
            vectors: list("support_vectors")?,
            count,
            coefficients: list("coefficients")?,
            offsets: list("rho")?,
            finish: PostTransform::from_name(call.string_attribute("post_transform")?.unwrap_or("NONE"))?,
        };
        ensure!(
            !machine.offsets.is_empty(),
            invalid_argument,
            "expected `rho` of one number at least, found none"
        );
        Ok(machine)
    }

    /// Checks that the vectors have as many features as the rows, and that there are as many rows of coefficients.
    fn check_sizes(&self, columns: usize, rows: usize) -> Result<()> {
        let (vectors, coefficients) = (self.vectors.len(), self.coefficients.len());
        let width = if self.count == 0 { columns } else { self.count };
        // Sizes are attributes, and their products may overflow.
        let fits = (self.count == 0 || self.count.checked_mul(columns) == Some(vectors))
            && rows.checked_mul(width) == Some(coefficients);
        ensure!(
            fits,
            invalid_argument,
            "expected {} vectors of {columns} features and {rows} rows of coefficients, found {vectors} numbers in \
             `support_vectors` and {coefficients} in `coefficients`",
            self.count
        );
        Ok(())
    }

    /// The similarity of a row to each vector.
    fn vector_similarities(&self, row: &[f64]) -> Vec<f64> {
        (0..self.count)
            .map(|at| self.similarity.similarity(row, &self.vectors[at * row.len()..][..row.len()]))
            .collect()
    }
}

fn size_from_integer(number: i64, name: &str) -> Result<usize> {
    usize::try_from(number).map_err(|_| {
        PluginError::invalid_argument(format!("expected `{name}` of at least 0, found {number}"))
    })
}

struct SvmRegressor {
    machine: SupportVectorMachine,
    /// True if only the side of the border is asked for.
    is_one_class: bool,
}

impl SvmRegressor {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let count = size_from_integer(call.int_attribute("n_supports")?.unwrap_or(0), "n_supports")?;
        let is_one_class = call.int_attribute("one_class")?.unwrap_or(0) != 0;
        Ok(Self { machine: SupportVectorMachine::new(call, count)?, is_one_class })
    }

    fn regress_rows(&self, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let (matrix, machine) = (FeatureMatrix::new(operands)?, &self.machine);
        machine.check_sizes(matrix.columns, 1)?;
        operands.expect_dims(&operands.call().output(0)?, "Y", &[matrix.rows as i64, 1])?;
        for (at, out) in operands.write_output::<f32>(0)?.iter_mut().enumerate() {
            let row = matrix.row(at);
            let sum = if machine.count == 0 {
                dot_product(row, &machine.coefficients)
            } else {
                dot_product(&machine.vector_similarities(row), &machine.coefficients)
            } + machine.offsets[0];
            let mut result = [if self.is_one_class { if sum > 0.0 { 1.0 } else { -1.0 } } else { sum }];
            machine.finish.apply_to_scores(&mut result);
            *out = result[0] as f32;
        }
        Ok(())
    }
}

struct SvmClassifier {
    machine: SupportVectorMachine,
    labels: Vec<i64>,
    /// The range of vectors of each class.
    classes: Vec<std::ops::Range<usize>>,
    /// The scale and the offset that turn the score of each pair of classes into a probability.
    shares: Vec<(f64, f64)>,
}

impl SvmClassifier {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let labels = call.ints_attribute("classlabels_ints")?.unwrap_or_default().to_vec();
        ensure!(!labels.is_empty(), unimplemented, "expected classes with integers as labels, found none");
        let (mut classes, mut count) = (Vec::new(), 0usize);
        for vectors in call.ints_attribute("vectors_per_class")?.unwrap_or_default() {
            let end = count.checked_add(size_from_integer(*vectors, "vectors_per_class")?);
            let end = end.ok_or_else(|| {
                PluginError::invalid_argument("expected fewer vectors than numbers can count")
            })?;
            classes.push(count..end);
            count = end;
        }
        let list = |name| Ok::<_, PluginError>(call.floats_attribute(name)?.unwrap_or_default());
        let (factors, summands) = (list("prob_a")?, list("prob_b")?);
        let machine = SupportVectorMachine::new(call, count)?;
        // Support vector machines separate two classes, so there is one for each pair.
        let pairs = labels.len() * (labels.len() - 1) / 2;
        let fits = count == 0 || classes.len() == labels.len() && machine.offsets.len() == pairs;
        ensure!(
            fits && factors.len() == summands.len() && (factors.is_empty() || factors.len() == pairs),
            invalid_argument,
            "expected vectors for each of {} classes, and `rho`, `prob_a` and `prob_b` for each pair of them, found {}, {}, {} \
             and {}",
            labels.len(),
            classes.len(),
            machine.offsets.len(),
            factors.len(),
            summands.len()
        );
        // A linear model scores classes and has no pairs, to which probabilities could belong.
        let shares = if count == 0 {
            Vec::new()
        } else {
            factors.iter().copied().zip(summands.iter().copied()).collect()
        };
        Ok(Self { machine, labels, classes, shares })
    }

    fn classify_rows(&self, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let (matrix, classes) = (FeatureMatrix::new(operands)?, self.labels.len());
        let has_vectors = self.machine.count > 0;
        self.machine.check_sizes(matrix.columns, if has_vectors { classes - 1 } else { classes })?;
        // Linear models and probabilities score each class. Margins are one per pair, but of two classes both get the one they
        // share.
        let count = match classes {
            _ if !has_vectors || !self.shares.is_empty() => classes,
            2 => 2,
            _ => self.machine.offsets.len(),
        };
        let rows = matrix.rows as i64;
        operands.expect_dims(&operands.call().output(0)?, "Y", &[rows])?;
        operands.expect_dims(&operands.call().output(1)?, "Z", &[rows, count as i64])?;
        let (labels, all) = (operands.write_output::<i64>(0)?, operands.write_output::<f32>(1)?);
        for (at, (label, out)) in labels.iter_mut().zip(all.chunks_mut(count)).enumerate() {
            let (best, scores) = self.classify_row(matrix.row(at));
            *label = self.labels[best];
            out.iter_mut().zip(&scores).for_each(|(out, score)| *out = *score as f32);
        }
        Ok(())
    }

    /// The best class of a row, and its scores.
    fn classify_row(&self, row: &[f64]) -> (usize, Vec<f64>) {
        let finish = self.machine.finish;
        if self.machine.count == 0 {
            let weights = self.machine.coefficients.chunks(row.len().max(1));
            let mut scores: Vec<f64> =
                weights.map(|weights| dot_product(row, weights) + self.machine.offsets[0]).collect();
            // Without features there are no weights to go through, and each score is the offset.
            scores.resize(self.labels.len(), self.machine.offsets[0]);
            let best = index_of_largest(&scores);
            finish.apply_to_scores(&mut scores);
            return (best, scores);
        }
        let (votes, mut scores) = self.pairwise_votes(row);
        let best = index_of_largest(&votes);
        if !self.shares.is_empty() {
            scores = self.class_probabilities(&scores);
        }
        if let ([score], 2) = (&scores[..], self.labels.len()) {
            let mut two = binary_scores(*score, finish, false).to_vec();
            // `binary_scores` has applied the logistic function already.
            if finish != PostTransform::Logistic {
                finish.apply_to_scores(&mut two);
            }
            return (best, two);
        }
        finish.apply_to_scores(&mut scores);
        (best, scores)
    }

    /// The pairs of classes, in the order of their coefficients.
    fn class_pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let classes = self.labels.len();
        (0..classes).flat_map(move |one| (one + 1..classes).map(move |other| (one, other)))
    }

    /// The number of wins of each class against another, and the margin by which the first of each pair wins.
    fn pairwise_votes(&self, row: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let similarities = self.machine.vector_similarities(row);
        let weighed = |line: usize, class: usize| {
            // The layout of libsvm: each vector has a coefficient for each other class.
            let vectors = self.classes[class].clone();
            let weights = &self.machine.coefficients[line * self.machine.count..][..self.machine.count];
            dot_product(&weights[vectors.clone()], &similarities[vectors])
        };
        let (mut votes, mut scores) = (vec![0.0; self.labels.len()], Vec::new());
        for ((one, other), offset) in self.class_pairs().zip(&self.machine.offsets) {
            let score = weighed(other - 1, one) + weighed(one, other) + offset;
            // As in libsvm, the second of a pair wins a tie.
            votes[if score > 0.0 { one } else { other }] += 1.0;
            scores.push(score);
        }
        (votes, scores)
    }

    /// The probability of each class, from those within each pair, by the method of Wu, Lin and Weng, which makes all pairs agree
    /// as well as possible.
    fn class_probabilities(&self, scores: &[f64]) -> Vec<f64> {
        let classes = self.labels.len();
        let mut wins = vec![vec![0.0; classes]; classes];
        for ((one, other), (score, (factor, summand))) in
            self.class_pairs().zip(scores.iter().zip(&self.shares))
        {
            let share = 1.0 / (1.0 + (score * factor + summand).exp());
            // As in libsvm: a pair that is certain could leave a class without any conflict, by which the
            // coupling divides.
            let share = share.clamp(MIN_PROBABILITY, 1.0 - MIN_PROBABILITY);
            (wins[one][other], wins[other][one]) = (share, 1.0 - share);
        }
        couple_probabilities(&wins)
    }
}

/// The probabilities that contradict the pairwise ones least.
fn couple_probabilities(wins: &[Vec<f64>]) -> Vec<f64> {
    let classes = wins.len();
    let conflict = |one: usize, other: usize| -> f64 {
        if one == other {
            (0..classes).filter(|third| *third != one).map(|third| wins[third][one].powi(2)).sum()
        } else {
            -wins[other][one] * wins[one][other]
        }
    };
    let conflicts: Vec<Vec<f64>> =
        (0..classes).map(|one| (0..classes).map(|other| conflict(one, other)).collect()).collect();
    let mut shares = vec![1.0 / classes as f64; classes];
    // Limit and tolerance are those of libsvm, so that probabilities agree with it.
    for _ in 0..classes.max(100) {
        let mut pulls: Vec<f64> = conflicts.iter().map(|line| dot_product(line, &shares)).collect();
        let mut whole = dot_product(&shares, &pulls);
        if pulls.iter().all(|pull| (pull - whole).abs() < 0.005 / classes as f64) {
            break;
        }
        for one in 0..classes {
            let more = (whole - pulls[one]) / conflicts[one][one];
            shares[one] += more;
            whole = (whole + more * (more * conflicts[one][one] + 2.0 * pulls[one])) / (1.0 + more).powi(2);
            shares.iter_mut().for_each(|share| *share /= 1.0 + more);
            for (pull, conflict) in pulls.iter_mut().zip(&conflicts[one]) {
                *pull = (*pull + more * conflict) / (1.0 + more);
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    const SAMPLE_ROWS: [f32; 6] = [1.0, 0.0, -1.0, 2.0, 0.5, -2.0];
    const SAMPLE_VECTORS: [f64; 6] = [1.0, 0.0, -1.0, 1.0, 0.0, -1.0];

    fn run_svm(
        op: &str,
        attributes: &[(&str, TestAttribute<'_>)],
        outputs: &[Option<(Dtype, &[i64])>],
    ) -> Vec<TestArray> {
        let rows = TestArray::from_values(&[3, 2], &SAMPLE_ROWS);
        let made =
            KERNELS.run_kernel(&format!("ai.onnx.ml:{op}"), 1, attributes, &[Some(&rows)], outputs).unwrap();
        made.into_iter().flatten().collect()
    }

    #[track_caller]
    fn assert_near(found: &[f32], expected: &[f32]) {
        let is_near = |(found, expected): (&f32, &f32)| (found - expected).abs() < 2e-5;
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(is_near),
            "{found:?} for {expected:?}"
        );
    }

    fn run_classifier(attributes: &[(&str, TestAttribute<'_>)], scores: i64) -> (Vec<i64>, Vec<f32>) {
        let made = run_svm(
            "SVMClassifier",
            attributes,
            &[Some((Dtype::I64, &[3])), Some((Dtype::F32, &[3, scores]))],
        );
        (made[0].values(), made[1].values())
    }

    #[test]
    fn of_three_classes_each_pair_has_a_score_or_each_class_a_probability() {
        let three = |kind, more: &[(&'static str, TestAttribute<'static>)]| {
            let mut attributes = vec![
                ("kernel_type", TestAttribute::Text(kind)),
                ("kernel_params", TestAttribute::Floats(&[0.5, 1.0, 2.0])),
                ("support_vectors", TestAttribute::Floats(&SAMPLE_VECTORS)),
                ("vectors_per_class", TestAttribute::Ints(&[1, 1, 1])),
                ("coefficients", TestAttribute::Floats(&[1.0, -1.0, 0.5, 0.5, -0.75, -1.0])),
                ("rho", TestAttribute::Floats(&[0.1, -0.2, 0.05])),
                ("classlabels_ints", TestAttribute::Ints(&[4, 5, 6])),
            ];
            attributes.extend_from_slice(more);
            run_classifier(&attributes, 3)
        };
        let (labels, scores) = three("RBF", &[]);
        assert_eq!(labels, [4, 6, 4]);
        assert_near(
            &scores,
            &[1.017915, 0.48394, -0.379443, -0.488215, -0.187473, -0.411636, 0.215826, 0.127347, -0.487966],
        );
        let shares = [
            ("prob_a", TestAttribute::Floats(&[-1.0, -2.0, -1.5])),
            ("prob_b", TestAttribute::Floats(&[0.0, 0.1, -0.1])),
        ];
        let (labels, scores) = three("POLY", &shares);
        assert_eq!(labels, [4, 6, 4]);
        assert_near(
            &scores,
            &[0.867222, 0.065401, 0.067377, 0.200227, 0.08889, 0.710882, 0.897663, 0.082548, 0.019789],
        );
    }

    #[test]
    fn of_two_classes_each_has_a_score() {
        let two = |more: &[(&'static str, TestAttribute<'static>)]| {
            let mut attributes = vec![
                ("kernel_type", TestAttribute::Text("SIGMOID")),
                ("kernel_params", TestAttribute::Floats(&[0.5, 0.1, 0.0])),
                ("support_vectors", TestAttribute::Floats(&SAMPLE_VECTORS[..4])),
                ("vectors_per_class", TestAttribute::Ints(&[1, 1])),
                ("coefficients", TestAttribute::Floats(&[1.0, -1.0])),
                ("rho", TestAttribute::Floats(&[0.1])),
                ("classlabels_ints", TestAttribute::Ints(&[0, 1])),
            ];
            attributes.extend_from_slice(more);
            run_classifier(&attributes, 2)
        };
        let (labels, scores) = two(&[]);
        assert_eq!(labels, [0, 1, 0]);
        assert_near(&scores, &[-1.016999, 1.016999, 1.201617, -1.201617, -1.25413, 1.25413]);
        let (_, scores) = two(&[("post_transform", TestAttribute::Text("LOGISTIC"))]);
        assert_near(&scores, &[0.265612, 0.734388, 0.768812, 0.231188, 0.221986, 0.778014]);
        let (_, scores) =
            two(&[("prob_a", TestAttribute::Floats(&[-1.0])), ("prob_b", TestAttribute::Floats(&[0.2]))]);
        assert_near(&scores, &[0.693599, 0.306401, 0.197522, 0.802478, 0.741567, 0.258433]);
    }

    #[test]
    fn a_regression_weighs_vectors_or_without_any_features() {
        let regress = |attributes: &[(&str, TestAttribute<'_>)]| -> Vec<f32> {
            run_svm("SVMRegressor", attributes, &[Some((Dtype::F32, &[3, 1]))])[0].values()
        };
        let mut vectors = vec![
            ("kernel_type", TestAttribute::Text("RBF")),
            ("kernel_params", TestAttribute::Floats(&[0.5, 0.0, 0.0])),
            ("support_vectors", TestAttribute::Floats(&SAMPLE_VECTORS[..4])),
            ("coefficients", TestAttribute::Floats(&[2.0, -1.0])),
            ("rho", TestAttribute::Floats(&[0.25])),
            ("n_supports", TestAttribute::Int(2)),
        ];
        assert_near(&regress(&vectors), &[2.167915, -0.319899, 0.485259]);
        vectors.push(("one_class", TestAttribute::Int(1)));
        assert_near(&regress(&vectors), &[1.0, -1.0, 1.0]);
        let features =
            [("coefficients", TestAttribute::Floats(&[2.0, -1.0])), ("rho", TestAttribute::Floats(&[0.25]))];
        assert_near(&regress(&features), &[2.25, -3.75, 3.25]);
    }
}
