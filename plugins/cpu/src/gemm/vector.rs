//! Products with a vector, which take as long as reading the matrix does. They are computed where the matrix lies, along the
//! direction in which its elements lie side by side.

#![expect(unsafe_code, reason = "rows of the matrix are read through pointers")]

use std::ops::Range;

use super::buffer::Parts;
use super::drive::Finished;
use super::{Elements, Number, Product, Side, Team};
use crate::isa::{Target, Vectorized};

/// Elements of the matrix that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 17;
/// Outputs that are computed together, so that they stay in the nearest cache while the matrix passes by.
const OUTPUTS_AT_ONCE: usize = 2048;

/// Computes a product of a vector and a matrix that can be read where they lie. Says whether it did.
pub(super) fn compute<T: Number>(product: &mut Product<'_, T>, team: &dyn Team) -> bool {
    let sizes = product.sizes;
    let (Side::Operand(left), Side::Operand(right)) = (&product.left, &product.right) else { return false };
    let Some(output) = product.output.as_deref_mut() else { return false };
    let (Some(left_elements), Some(right_elements)) = (left.elements(0), right.elements(0)) else {
        return false;
    };
    let is_row = sizes.rows == 1;
    let (vector, matrix) =
        if is_row { (left_elements, right_elements) } else { (right_elements, left_elements) };
    let side_by_side = matrix.lane == 1 || matrix.step == 1 && vector.step == 1;
    if sizes.rows.min(sizes.columns) != 1 || !side_by_side || sizes.depth == 0 {
        return false;
    }
    let count = sizes.rows * sizes.columns;
    let work = sizes.items.saturating_mul(count).saturating_mul(sizes.depth);
    let threads = team.worker_count().min(work / WORK_OF_A_THREAD).max(1);
    let chunk = count.div_ceil(threads).next_multiple_of(64).min(OUTPUTS_AT_ONCE);
    let chunks = count.div_ceil(chunk);
    let tasks = sizes.items * chunks;
    let share = tasks.div_ceil(threads);
    let output = Parts::new(output);
    let (left, right, finish, isa) = (*left, *right, product.finish, team.isa());
    team.each(tasks.div_ceil(share), &|lane| {
        for task in lane * share..tasks.min((lane + 1) * share) {
            let (item, begin) = (task / chunks, task % chunks * chunk);
            let lanes = begin..count.min(begin + chunk);
            let (Some(left), Some(right)) = (left.elements(item), right.elements(item)) else { return };
            let (vector, matrix) = if is_row { (left, right) } else { (right, left) };
            // SAFETY: no two tasks have the same outputs.
            let part = unsafe { output.part(item * count + lanes.start..item * count + lanes.end) };
            let job = Job { vector, matrix, depth: sizes.depth, lanes: lanes.clone() };
            isa.vectorize(Work { job: &job, output: part });
            if let Some(finish) = finish {
                let (rows, columns) = if is_row { (0..1, lanes) } else { (lanes, 0..1) };
                // SAFETY: the part is complete and no other task's.
                finish(unsafe { Finished::new(item, rows, columns, part.as_mut_ptr(), sizes.columns) });
            }
        }
    });
    true
}

/// Some outputs of one product. The vector can be read for the depth, the matrix for the lanes and the depth.
struct Job<T> {
    vector: Elements<T>,
    matrix: Elements<T>,
    depth: usize,
    lanes: Range<usize>,
}

/// A job and where its outputs go. The operands can be read as far as the job says.
struct Work<'a, T> {
    job: &'a Job<T>,
    output: &'a mut [T],
}

impl<N: Number> Vectorized for Work<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        let Self { job, output } = self;
        // SAFETY: the operands can be read as far as the job says.
        unsafe {
            match (job.matrix.lane == 1, T::HAS_FMA) {
                (true, true) => job.combine::<true>(output),
                (true, false) => job.combine::<false>(output),
                (false, true) => job.dot::<true>(output),
                (false, false) => job.dot::<false>(output),
            }
        }
    }
}

impl<T: Number> Job<T> {
    /// Adds up rows, eight at a time, where the lanes lie side by side.
    #[inline(always)]
    unsafe fn combine<const FUSED: bool>(&self, output: &mut [T]) {
        const ROWS: usize = 8;
        output.fill(T::default());
        let whole = self.depth / ROWS * ROWS;
        for begin in (0..whole).step_by(ROWS) {
            // SAFETY: these steps are less than the depth.
            let (factors, rows) = unsafe { (self.factors::<ROWS>(begin), self.rows::<ROWS>(begin)) };
            for (lane, output) in output.iter_mut().enumerate() {
                let mut sum = *output;
                for (factor, row) in factors.iter().zip(&rows) {
                    sum = sum.plus_product::<FUSED>(*factor, row[lane]);
                }
                *output = sum;
            }
        }
        for step in whole..self.depth {
            // SAFETY: the step is less than the depth.
            let ([factor], [row]) = unsafe { (self.factors(step), self.rows(step)) };
            for (output, element) in output.iter_mut().zip(row) {
                *output = output.plus_product::<FUSED>(factor, *element);
            }
        }
    }

    #[inline(always)]
    unsafe fn factors<const COUNT: usize>(&self, begin: usize) -> [T; COUNT] {
        let mut factors = [T::default(); COUNT];
        for (index, factor) in factors.iter_mut().enumerate() {
            // SAFETY: the caller keeps the steps below the depth.
            *factor = unsafe { *self.vector.pointer.add((begin + index) * self.vector.step) };
        }
        factors
    }

    #[inline(always)]
    unsafe fn rows<const COUNT: usize>(&self, begin: usize) -> [&[T]; COUNT] {
        let mut rows: [&[T]; COUNT] = [&[]; COUNT];
        for (index, row) in rows.iter_mut().enumerate() {
            let start = (begin + index) * self.matrix.step + self.lanes.start;
            // SAFETY: the caller keeps the steps below the depth, and the lanes lie side by side.
            *row = unsafe { std::slice::from_raw_parts(self.matrix.pointer.add(start), self.lanes.len()) };
        }
        rows
    }

    /// Computes each output by itself, where the steps of the depth lie side by side.
    #[inline(always)]
    unsafe fn dot<const FUSED: bool>(&self, output: &mut [T]) {
        const SUMS: usize = 64;
        // SAFETY: the vector's steps lie side by side and can be read.
        let vector = unsafe { std::slice::from_raw_parts(self.vector.pointer, self.depth) };
        let (factor_blocks, last_factors) = vector.as_chunks::<SUMS>();
        for (lane, output) in self.lanes.clone().zip(output) {
            // SAFETY: the lane and its steps can be read.
            let row = unsafe {
                std::slice::from_raw_parts(self.matrix.pointer.add(lane * self.matrix.lane), self.depth)
            };
            let (blocks, rest) = row.as_chunks::<SUMS>();
            let mut sums = [T::default(); SUMS];
            for (factors, elements) in factor_blocks.iter().zip(blocks) {
                for ((sum, factor), element) in sums.iter_mut().zip(factors).zip(elements) {
                    *sum = sum.plus_product::<FUSED>(*factor, *element);
                }
            }
            for ((sum, factor), element) in sums.iter_mut().zip(last_factors).zip(rest) {
                *sum = sum.plus_product::<FUSED>(*factor, *element);
            }
            *output = add_up(sums);
        }
    }
}

/// The sum of all, in halves.
#[inline(always)]
fn add_up<T: Number, const COUNT: usize>(mut sums: [T; COUNT]) -> T {
    let mut half = COUNT / 2;
    while half > 0 {
        for index in 0..half {
            sums[index] = sums[index].plus(sums[index + half]);
        }
        half /= 2;
    }
    sums[0]
}
