//! `SVMRegressor` and `SVMClassifier`: they compare rows with the support vectors that mark the border between classes.

mod support_vectors;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::OnceLock;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_cpu_base::with_isa;
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result, ensure};

use self::support_vectors::{SimilarityFunction, SupportVectors, dot_product};
use super::FEATURE_DTYPES;
use super::feature_matrix::FeatureMatrix;
use super::linear_model::index_of_largest;
use super::post_transform::{PostTransform, binary_scores};
use super::weight_matrix::WeightMatrix;

/// The minimum distance of pairwise probabilities from 0 and 1.
const MIN_PROBABILITY: f64 = 1e-7;

pub(super) fn svm_kernels() -> Vec<Kernel<Cpu>> {
    let rows = OperandSpec::new(FEATURE_DTYPES).with_name("X").with_rank(1, 2);
    let scores = OperandSpec::new(DtypeSet::F32);
    vec![
        operand_kernel("SVMRegressor", SvmRegressor::new, |cpu, regressor, operands| {
            regressor.regress_rows(cpu, operands)
        })
        .with_inputs([rows])
        .with_outputs([scores.with_name("Y")]),
        operand_kernel("SVMClassifier", SvmClassifier::new, |cpu, classifier, operands| {
            classifier.classify_rows(cpu, operands)
        })
        .with_inputs([rows])
        .with_outputs([OperandSpec::new(DtypeSet::I64).with_name("Y"), scores.with_name("Z")]),
    ]
}

/// Support vectors and the coefficients of their similarities. Without vectors, the features themselves are weighted.
struct SupportVectorMachine {
    function: SimilarityFunction,
    vectors: Vec<f64>,
    /// The number of vectors.
    count: usize,
    coefficients: Vec<f64>,
    offsets: Vec<f64>,
    finish: PostTransform,
    /// What each margin sums.
    terms: Vec<MarginTerms>,
    /// Made in the first call, which tells the number of features.
    rule: OnceLock<MarginRule>,
}

/// The parts of a margin: vectors, and the line of coefficients that weighs them.
type MarginTerms = Vec<(Range<usize>, usize)>;

/// How margins are computed.
enum MarginRule {
    /// As weighted sums of features: there are no vectors, or linear ones, whose weighted sum is a row of weights.
    Weights(WeightMatrix<f64>),
    Similarities(SupportVectors),
}

impl SupportVectorMachine {
    fn new(call: &KernelCall<'_>, count: usize, terms: Vec<MarginTerms>) -> Result<Self> {
        let list = |name| Ok::<_, PluginError>(call.floats_attribute(name)?.unwrap_or_default().to_vec());
        let machine = Self {
            function: if count == 0 {
                SimilarityFunction::Linear
            } else {
                SimilarityFunction::from_attributes(call)?
            },
            vectors: list("support_vectors")?,
            count,
            coefficients: list("coefficients")?,
            offsets: list("rho")?,
            finish: PostTransform::from_name(call.string_attribute("post_transform")?.unwrap_or("NONE"))?,
            terms,
            rule: OnceLock::new(),
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

    /// The number of margins of a row.
    fn margin_count(&self) -> usize {
        self.terms.len()
    }

    fn margin_rule(&self, columns: usize) -> MarginRule {
        if self.count == 0 {
            return MarginRule::Weights(WeightMatrix::new(self.coefficients.clone(), self.margin_count()));
        }
        if !matches!(self.function, SimilarityFunction::Linear) {
            return MarginRule::Similarities(SupportVectors::new(
                self.function,
                &self.vectors,
                self.count,
                columns,
            ));
        }
        let mut weights = vec![0.0; self.margin_count() * columns];
        for (weights, terms) in weights.chunks_mut(columns.max(1)).zip(&self.terms) {
            for (vectors, line) in terms {
                for vector in vectors.clone() {
                    let coefficient = self.coefficients[line * self.count + vector];
                    let elements = &self.vectors[vector * columns..][..columns];
                    weights.iter_mut().zip(elements).for_each(|(sum, element)| *sum += coefficient * element);
                }
            }
        }
        MarginRule::Weights(WeightMatrix::new(weights, self.margin_count()))
    }

    /// The margins of all rows, whose sizes fit.
    fn margins(&self, cpu: &Cpu, matrix: &FeatureMatrix<'_, f64>) -> Result<Vec<f64>> {
        let count = self.margin_count();
        let mut margins = try_filled_vec(0.0, matrix.rows * count)?;
        match self.rule.get_or_init(|| self.margin_rule(matrix.columns)) {
            MarginRule::Weights(weights) => {
                weights.multiply(cpu, &matrix.elements, (matrix.rows, matrix.columns), &mut margins, None)?;
            }
            MarginRule::Similarities(vectors) => {
                vectors.for_blocks(cpu, matrix, |rows, similarities| {
                    let margins = OutputRows::new(&mut margins[rows.start * count..rows.end * count], count);
                    parallel_for_parts(
                        cpu,
                        rows.len(),
                        grain_for(self.count * count),
                        margins,
                        |first, margins| {
                            let similarities = &similarities[first * self.count..];
                            with_isa!(cpu.isa(), || self.weigh_similarities(similarities, margins));
                        },
                    );
                })?;
            }
        }
        for (at, margin) in margins.iter_mut().enumerate() {
            // Classes of a model without vectors share an offset.
            *margin += self.offsets.get(at % count).unwrap_or(&self.offsets[0]);
        }
        Ok(margins)
    }

    #[inline(always)]
    fn weigh_similarities(&self, similarities: &[f64], margins: &mut [f64]) {
        let rows = margins.chunks_mut(self.margin_count()).zip(similarities.chunks(self.count));
        for (margins, similarities) in rows {
            for (margin, terms) in margins.iter_mut().zip(&self.terms) {
                for (vectors, line) in terms {
                    let weights = &self.coefficients[line * self.count..][vectors.clone()];
                    *margin += dot_product(weights, &similarities[vectors.clone()]);
                }
            }
        }
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
        let terms = vec![vec![(0..count, 0)]];
        Ok(Self { machine: SupportVectorMachine::new(call, count, terms)?, is_one_class })
    }

    fn regress_rows(&self, cpu: &Cpu, operands: &KernelOperands<'_, '_>) -> Result<()> {
        let (matrix, machine) = (FeatureMatrix::new(operands)?, &self.machine);
        machine.check_sizes(matrix.columns, 1)?;
        operands.expect_dims(&operands.call().output(0)?, "Y", &[matrix.rows as i64, 1])?;
        let mut scores = machine.margins(cpu, &matrix)?;
        if self.is_one_class {
            scores.iter_mut().for_each(|score| *score = if *score > 0.0 { 1.0 } else { -1.0 });
        }
        machine.finish.apply_to_rows(cpu.isa(), &mut scores, 1);
        for (out, score) in operands.write_output::<f32>(0)?.iter_mut().zip(&scores) {
            *out = *score as f32;
        }
        Ok(())
    }
}

struct SvmClassifier {
    machine: SupportVectorMachine,
    labels: Vec<i64>,
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
        // Support vector machines separate two classes, so there is one for each pair.
        let pairs = labels.len() * (labels.len() - 1) / 2;
        let has_classes = classes.len() == labels.len();
        let terms = match count {
            // A model without vectors weighs the features for each class.
            0 => vec![Vec::new(); labels.len()],
            // The layout of libsvm: each vector has a coefficient for each other class.
            _ if has_classes => class_pairs(labels.len())
                .map(|(one, other)| vec![(classes[one].clone(), other - 1), (classes[other].clone(), one)])
                .collect(),
            _ => Vec::new(),
        };
        let list = |name| Ok::<_, PluginError>(call.floats_attribute(name)?.unwrap_or_default());
        let (factors, summands) = (list("prob_a")?, list("prob_b")?);
        let machine = SupportVectorMachine::new(call, count, terms)?;
        let fits = count == 0 || has_classes && machine.offsets.len() == pairs;
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
        Ok(Self { machine, labels, shares })
    }

    fn classify_rows(&self, cpu: &Cpu, operands: &KernelOperands<'_, '_>) -> Result<()> {
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
        let margins = self.machine.margins(cpu, &matrix)?;
        let width = self.machine.margin_count();
        let out = (
            OutputRows::new(operands.write_output::<i64>(0)?, 1),
            OutputRows::new(operands.write_output::<f32>(1)?, count),
        );
        parallel_for_parts(cpu, matrix.rows, grain_for(32 * count), out, |first, (labels, out)| {
            let margins = margins[first * width..].chunks(width);
            for ((label, out), margins) in labels.iter_mut().zip(out.chunks_mut(count)).zip(margins) {
                let (best, scores) = self.classify_margins(margins);
                *label = self.labels[best];
                out.iter_mut().zip(&scores).for_each(|(out, score)| *out = *score as f32);
            }
        });
        Ok(())
    }

    /// The best class of a row, and its scores.
    fn classify_margins(&self, margins: &[f64]) -> (usize, Vec<f64>) {
        let finish = self.machine.finish;
        let mut scores = margins.to_vec();
        if self.machine.count == 0 {
            finish.apply_to_scores(&mut scores);
            return (index_of_largest(margins), scores);
        }
        let best = self.most_frequent_winner(margins);
        if !self.shares.is_empty() {
            scores = self.class_probabilities(margins);
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

    /// The class that wins most pairs, given the margin by which the first of each pair wins.
    fn most_frequent_winner(&self, margins: &[f64]) -> usize {
        let mut votes = vec![0.0; self.labels.len()];
        for ((one, other), margin) in class_pairs(self.labels.len()).zip(margins) {
            // As in libsvm, the second of a pair wins a tie.
            votes[if *margin > 0.0 { one } else { other }] += 1.0;
        }
        index_of_largest(&votes)
    }

    /// The probability of each class, from those within each pair, by the method of Wu, Lin and Weng, which makes all pairs agree
    /// as well as possible.
    fn class_probabilities(&self, scores: &[f64]) -> Vec<f64> {
        let classes = self.labels.len();
        let mut wins = vec![vec![0.0; classes]; classes];
        for ((one, other), (score, (factor, summand))) in
            class_pairs(classes).zip(scores.iter().zip(&self.shares))
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

/// The pairs of classes, in the order of their coefficients.
fn class_pairs(classes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..classes).flat_map(move |one| (one + 1..classes).map(move |other| (one, other)))
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
