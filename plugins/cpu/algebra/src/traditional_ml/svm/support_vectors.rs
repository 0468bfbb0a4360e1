//! Similarities of rows to support vectors.

use std::ops::Range;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::SimdTarget;
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_cpu_base::{math, with_isa};
use oarlock_cpu_gemm::OutputBlock;
use oarlock_sdk::{KernelCall, PluginError, Result};

use crate::traditional_ml::feature_matrix::FeatureMatrix;
use crate::traditional_ml::weight_matrix::WeightMatrix;

/// Similarities that a thread keeps: 512 KiB, which stay in L2 until they are summed.
const SIMILARITIES_PER_THREAD: usize = 1 << 16;
/// Whole degrees up to this are powers by multiplication.
const MAX_WHOLE_DEGREE: f64 = 16.0;

/// A function of the product of a row and a vector.
#[derive(Clone, Copy)]
pub(super) enum SimilarityFunction {
    Linear,
    Polynomial { gamma: f64, offset: f64, degree: f64 },
    Radial { gamma: f64 },
    Sigmoid { gamma: f64, offset: f64 },
}

impl SimilarityFunction {
    pub(super) fn from_attributes(call: &KernelCall<'_>) -> Result<Self> {
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

    /// Turns the products of a row with vectors into similarities. Given are also the squared lengths of the row and of the vectors.
    #[inline(always)]
    fn apply_to_products<T: SimdTarget>(self, products: &mut [f64], square: f64, squares: &[f64]) {
        match self {
            Self::Linear => {}
            Self::Polynomial { gamma, offset, degree } => {
                for product in products.iter_mut() {
                    *product = *product * gamma + offset;
                }
                raise_to_power(products, degree);
            }
            Self::Radial { gamma } => {
                for (product, own) in products.iter_mut().zip(squares) {
                    let distance = square + own - 2.0 * *product;
                    // Rounding may leave less than 0 of the distance of equal rows. NaN stays.
                    let distance = if distance < 0.0 { 0.0 } else { distance };
                    // A row with an infinite feature is infinitely far from everything.
                    let distance = if square == f64::INFINITY { square } else { distance };
                    *product = math::exp::<T, f64>(-gamma * distance);
                }
            }
            Self::Sigmoid { gamma, offset } => {
                for product in products.iter_mut() {
                    *product = math::tanh::<T, f64>(*product * gamma + offset);
                }
            }
        }
    }
}

#[inline(always)]
fn raise_to_power(bases: &mut [f64], degree: f64) {
    if degree.fract() != 0.0 || !(1.0..=MAX_WHOLE_DEGREE).contains(&degree) {
        return bases.iter_mut().for_each(|base| *base = base.powf(degree));
    }
    let factors = degree as usize - 1;
    for bases in bases.chunks_mut(16) {
        let mut powers = [0.0; 16];
        let powers = &mut powers[..bases.len()];
        powers.copy_from_slice(bases);
        for _ in 0..factors {
            for (power, base) in powers.iter_mut().zip(bases.iter()) {
                *power *= base;
            }
        }
        bases.copy_from_slice(powers);
    }
}

/// The sum of the products of two lists of one length, as several sums, so that additions do not wait for each other.
#[inline(always)]
pub(super) fn dot_product(one: &[f64], other: &[f64]) -> f64 {
    const SUMS: usize = 16;
    let (ones, others) = (one.chunks_exact(SUMS), other.chunks_exact(SUMS));
    let rest: f64 = ones.remainder().iter().zip(others.remainder()).map(|(one, other)| one * other).sum();
    let mut sums = [0.0; SUMS];
    for (one, other) in ones.zip(others) {
        for lane in 0..SUMS {
            sums[lane] += one[lane] * other[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Support vectors with features.
pub(super) struct SupportVectors {
    function: SimilarityFunction,
    vectors: WeightMatrix<f64>,
    count: usize,
    /// The squared length of each vector.
    squares: Vec<f64>,
}

impl SupportVectors {
    pub(super) fn new(function: SimilarityFunction, vectors: &[f64], count: usize, columns: usize) -> Self {
        let square = |at: usize| squared_length(&vectors[at * columns..][..columns]);
        let squares = (0..count).map(square).collect();
        Self { function, vectors: WeightMatrix::new(vectors.to_vec(), count), count, squares }
    }

    /// Runs `body` on blocks of rows, one after another, with the similarities of each row to each vector.
    pub(super) fn for_blocks(
        &self,
        cpu: &Cpu,
        matrix: &FeatureMatrix<'_, f64>,
        mut body: impl FnMut(Range<usize>, &[f64]),
    ) -> Result<()> {
        let at_once =
            (SIMILARITIES_PER_THREAD * cpu.worker_count() / self.count).clamp(1, matrix.rows.max(1));
        let mut similarities = try_filled_vec(0.0, at_once * self.count)?;
        for begin in (0..matrix.rows).step_by(at_once) {
            let rows = begin..matrix.rows.min(begin + at_once);
            let features = &matrix.elements[rows.start * matrix.columns..rows.end * matrix.columns];
            let squares: Vec<f64> = rows.clone().map(|row| squared_length(matrix.row(row))).collect();
            let similarities = &mut similarities[..rows.len() * self.count];
            let finish = |mut block: OutputBlock<'_, f64>| {
                let columns = block.columns.clone();
                for (row, products) in block.rows_mut() {
                    let (square, squares) = (squares[row], &self.squares[columns.clone()]);
                    with_isa!(cpu.isa(), Level => || {
                        self.function.apply_to_products::<Level>(products, square, squares);
                    });
                }
            };
            self.vectors.multiply(
                cpu,
                features,
                (rows.len(), matrix.columns),
                similarities,
                Some(&finish),
            )?;
            body(rows, similarities);
        }
        Ok(())
    }
}

fn squared_length(row: &[f64]) -> f64 {
    dot_product(row, row)
}
