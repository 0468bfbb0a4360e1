//! Operations on whole rows of matrices, compiled for each instruction set.

use oarlock_cpu_base::isa::{SimdTarget, SimdTask};

use super::field::ScalarField;

/// Independent partial sums. 16 `f64` are four ymm registers: four chains of FMAs hide most of its latency of about four cycles.
const SUM_LANES: usize = 16;

/// `to += by * from`
#[inline(always)]
pub(super) fn add_scaled<T: SimdTarget, F: ScalarField>(to: &mut [F], by: F, from: &[F]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.add_product::<T>(by, *from);
    }
}

/// The sum of products, without conjugation.
#[inline(always)]
pub(super) fn dot_product<T: SimdTarget, F: ScalarField>(one: &[F], other: &[F]) -> F {
    let ((one, one_rest), (other, other_rest)) =
        (one.as_chunks::<SUM_LANES>(), other.as_chunks::<SUM_LANES>());
    let rest =
        one_rest.iter().zip(other_rest).fold(F::ZERO, |sum, (one, other)| sum.add_product::<T>(*one, *other));
    if one.is_empty() {
        return rest;
    }
    let mut sums = [F::ZERO; SUM_LANES];
    for (one, other) in one.iter().zip(other) {
        for lane in 0..SUM_LANES {
            sums[lane] = sums[lane].add_product::<T>(one[lane], other[lane]);
        }
    }
    // Joined in an order that only the length decides.
    sum_lanes(sums) + rest
}

/// Adds up lanes by halves.
#[inline(always)]
pub(super) fn sum_lanes<F: ScalarField>(mut lanes: [F; SUM_LANES]) -> F {
    let mut half = SUM_LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = lanes[lane] + lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Rows of a matrix at a stride, from a column on.
pub(super) struct MatrixRows<'a, F> {
    pub(super) elements: &'a mut [F],
    pub(super) stride: usize,
    pub(super) columns: std::ops::Range<usize>,
}

impl<F> MatrixRows<'_, F> {
    #[inline(always)]
    pub(super) fn iter_rows(&mut self) -> impl Iterator<Item = &mut [F]> {
        let columns = self.columns.clone();
        // A matrix without columns has no elements, but chunks of 0 would panic.
        self.elements.chunks_mut(self.stride.max(1)).map(move |row| &mut row[columns.clone()])
    }
}

/// Divides the first element of each row by the pivot, and subtracts that factor times the pivot row. The factor replaces the
/// first element.
pub(super) struct EliminateRows<'a, F> {
    /// The pivot row, from the pivot on.
    pub(super) pivot: &'a [F],
    /// The rows below, in the same columns.
    pub(super) below: MatrixRows<'a, F>,
}

impl<F: ScalarField> SimdTask for EliminateRows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(mut self) {
        let Some((own, pivot)) = self.pivot.split_first() else { return };
        for row in self.below.iter_rows() {
            let Some((first, rest)) = row.split_first_mut() else { return };
            // Not a product with the reciprocal, which is rounded once more, and infinite for a tiny pivot.
            *first = *first / *own;
            add_scaled::<T, F>(rest, -*first, pivot);
        }
    }
}

/// Subtracts other rows from a row, each times a factor.
pub(super) struct SubtractRows<'a, F> {
    pub(super) row: &'a mut [F],
    pub(super) factors: &'a [F],
    /// The other rows, from the column where `row` begins.
    pub(super) others: &'a [F],
    pub(super) stride: usize,
}

impl<F: ScalarField> SimdTask for SubtractRows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        for (index, factor) in self.factors.iter().enumerate() {
            add_scaled::<T, F>(self.row, -*factor, &self.others[index * self.stride..]);
        }
    }
}

pub(super) struct SubtractMatrix<'a, F> {
    pub(super) from: MatrixRows<'a, F>,
    pub(super) other: &'a [F],
}

impl<F: ScalarField> SimdTask for SubtractMatrix<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(mut self) {
        let width = self.from.columns.len();
        for (row, other) in self.from.iter_rows().zip(self.other.chunks(width.max(1))) {
            row.iter_mut().zip(other).for_each(|(to, other)| *to = *to - *other);
        }
    }
}

/// Multiplies rows with the reflection `1 - factor * normal * normal.adjoint()`, from the left.
pub(super) struct ReflectRows<'a, F> {
    pub(super) normal: &'a [F],
    pub(super) factor: F,
    pub(super) rows: MatrixRows<'a, F>,
    /// Scratch memory for a row.
    pub(super) along: &'a mut [F],
}

impl<F: ScalarField> SimdTask for ReflectRows<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(mut self) {
        let along = &mut self.along[..self.rows.columns.len()];
        // Row by row in both passes, though the product is along columns: memory is read in order and each step is vector code.
        along.fill(F::ZERO);
        for (row, normal) in self.rows.iter_rows().zip(self.normal) {
            add_scaled::<T, F>(along, normal.conjugate(), row);
        }
        along.iter_mut().for_each(|along| *along = -(self.factor * *along));
        for (row, normal) in self.rows.iter_rows().zip(self.normal) {
            add_scaled::<T, F>(row, *normal, along);
        }
    }
}

/// A rotation of two rows in the plane that they span.
#[derive(Clone, Copy)]
pub(super) struct GivensRotation {
    pub(super) rows: [usize; 2],
    pub(super) cosine: f64,
    pub(super) sine: f64,
}

/// Rotates rows, one pair after the other.
pub(super) struct RotateRows<'a> {
    pub(super) elements: &'a mut [f64],
    pub(super) stride: usize,
    pub(super) turns: &'a [GivensRotation],
}

impl SimdTask for RotateRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        for GivensRotation { rows: [one, other], cosine, sine } in self.turns {
            let (first, last) = (*one.min(other), *one.max(other));
            let (before, from) = self.elements.split_at_mut(last * self.stride);
            let (first, last) = (&mut before[first * self.stride..][..self.stride], &mut from[..self.stride]);
            // `first` and `last` are in memory order, so the rotation is reversed if the rows are given the other way around.
            let sine = if one < other { *sine } else { -*sine };
            for (first, last) in first.iter_mut().zip(last) {
                let (a, b) = (*first, *last);
                *first = (cosine * a).add_product::<T>(sine, b);
                *last = (cosine * b).add_product::<T>(-sine, a);
            }
        }
    }
}
