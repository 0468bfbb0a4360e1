//! Products with a vector or a few of them, which take as long as reading the matrix does. They are computed where the matrix
//! lies, along the direction in which its elements lie side by side, so that each is read once.

#![expect(unsafe_code, reason = "rows of the matrix are read through pointers")]

use std::ops::Range;

use super::buffer::Parts;
use super::drive::Finished;
use super::tile::Dot;
use super::{Elements, Number, Product, Side, Team};
use crate::isa::{Isa, Target, Vectorized};

/// So many rows on the left are few: reading the matrix takes longer than multiplying.
pub(crate) const FEW: usize = 4;
/// Elements of the matrix that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 15;
/// Outputs that are computed together, so that they stay in the second cache while the matrix passes by. The longer, the
/// better for how memory is read.
const OUTPUTS_AT_ONCE: usize = 1 << 15;
/// Bytes that memory hands out at once.
const LINE: usize = 64;
/// Bytes of a matrix that may be in the second cache from the last time, where asking for them early only costs time.
const NEAR: usize = 1 << 20;
/// How far behind what is read of a long row, in bytes, more of it is asked for: beyond the page that a processor expects, as to
/// find where the next one lies takes long.
#[cfg(x86_vectors)]
pub(super) const LATER: usize = 8192;
/// Rows of the matrix that are added up at once where the outputs lie side by side.
const ROWS: usize = 8;

/// Computes a product of few vectors and a matrix that can be read where they lie. Says whether it did.
pub(super) fn compute<T: Number>(product: &mut Product<'_, T>, team: &dyn Team) -> bool {
    let sizes = product.sizes;
    let (Side::Operand(left), Side::Operand(right)) = (&product.left, &product.right) else { return false };
    let Some(output) = product.output.as_deref_mut() else { return false };
    let is_row = sizes.rows <= FEW && sizes.columns > 1;
    let elements = |item: usize| {
        let right = if is_row { right.elements_anywhere(item) } else { right.elements(item) };
        left.elements(item).zip(right)
    };
    let Some((left_elements, right_elements)) = elements(0) else { return false };
    let (vector, matrix) =
        if is_row { (left_elements, right_elements) } else { (right_elements, left_elements) };
    let side_by_side = matrix.lane == 1 || matrix.step == 1 && vector.step == 1;
    if !is_row && sizes.columns != 1 || !side_by_side || sizes.depth == 0 {
        return false;
    }
    let (vectors, count) = if is_row { (sizes.rows, sizes.columns) } else { (1, sizes.rows) };
    let work = sizes.items.saturating_mul(count).saturating_mul(sizes.depth);
    let threads = team.worker_count().min(work / WORK_OF_A_THREAD).max(1);
    let pieces = if threads == 1 { 1 } else { threads.div_ceil(sizes.items) };
    let chunk = count.div_ceil(pieces).next_multiple_of(64).min(OUTPUTS_AT_ONCE / vectors);
    let chunks = count.div_ceil(chunk);
    let tasks = sizes.items * chunks;
    let share = tasks.div_ceil(threads);
    let output = Parts::new(output);
    let (finish, isa) = (product.finish, team.isa());
    team.each(tasks.div_ceil(share), &|lane| {
        for task in lane * share..tasks.min((lane + 1) * share) {
            let (item, begin) = (task / chunks, task % chunks * chunk);
            let lanes = begin..count.min(begin + chunk);
            let Some((left, right)) = elements(item) else { return };
            let (vector, matrix) = if is_row { (left, right) } else { (right, left) };
            let first = item * vectors * count + lanes.start;
            // SAFETY: no two tasks have the same outputs, nor do two vectors of one.
            let part = |vector: usize| unsafe {
                output.part(first + vector * count..first + vector * count + lanes.len())
            };
            let job = Job { vector, matrix, depth: sizes.depth, lanes: lanes.clone(), add: false };
            // SAFETY: the operands can be read as far as the product says.
            unsafe { job.run(isa, vectors, part) };
            if let Some(finish) = finish {
                let (rows, columns) = if is_row { (0..vectors, lanes) } else { (lanes, 0..1) };
                // SAFETY: the part is complete and no other task's.
                finish(unsafe { Finished::new(item, rows, columns, output.pointer(first), sizes.columns) });
            }
        }
    });
    true
}

/// Some outputs of one product. The vectors, of which the matrix is multiplied with each, can be read for the depth, and the
/// matrix, whose elements may lie at any address, for the lanes and the depth.
pub(super) struct Job<T> {
    pub(super) vector: Elements<T>,
    pub(super) matrix: Elements<T>,
    pub(super) depth: usize,
    pub(super) lanes: Range<usize>,
    /// Whether the sums are added to what is there, which needs lanes that lie side by side.
    pub(super) add: bool,
}

impl<N: Number> Job<N> {
    /// Computes the outputs of each of a few vectors.
    ///
    /// # Safety
    ///
    /// The operands can be read as far as the job says.
    pub(super) unsafe fn run<'a>(&self, isa: Isa, vectors: usize, output: impl Fn(usize) -> &'a mut [N])
    where
        N: 'a,
    {
        if self.matrix.lane != 1 {
            // SAFETY: as the caller vouches.
            return unsafe { self.dot(N::kernels(isa).dot(), vectors, output) };
        }
        match vectors {
            1 => isa.vectorize(Work { job: self, outputs: [output(0)] }),
            2 => isa.vectorize(Work { job: self, outputs: [output(0), output(1)] }),
            3 => isa.vectorize(Work { job: self, outputs: [output(0), output(1), output(2)] }),
            _ => isa.vectorize(Work { job: self, outputs: [output(0), output(1), output(2), output(3)] }),
        }
    }
}

/// A job whose lanes lie side by side and where its outputs go, for each vector. The operands can be read as far as the job
/// says.
struct Work<'a, T, const VECTORS: usize> {
    job: &'a Job<T>,
    outputs: [&'a mut [T]; VECTORS],
}

impl<N: Number, const VECTORS: usize> Vectorized for Work<'_, N, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        let Self { job, mut outputs } = self;
        if !job.add {
            outputs.iter_mut().for_each(|output| output.fill(N::default()));
        }
        // SAFETY: the operands can be read as far as the job says.
        unsafe {
            if T::HAS_FMA {
                job.combine::<true, VECTORS>(outputs);
            } else {
                job.combine::<false, VECTORS>(outputs);
            }
        }
    }
}

impl<T: Number> Job<T> {
    /// Whether the matrix is too large to be in the second cache.
    fn is_far(&self) -> bool {
        self.depth * self.lanes.len() * size_of::<T>() > NEAR
    }

    /// Adds rows to the outputs, eight at a time, where the lanes lie side by side.
    #[inline(always)]
    unsafe fn combine<const FUSED: bool, const VECTORS: usize>(&self, mut outputs: [&mut [T]; VECTORS]) {
        let whole = self.depth / ROWS * ROWS;
        let is_far = self.is_far();
        for begin in (0..whole).step_by(ROWS) {
            // The rows after these are far away, so that no processor expects them.
            let is_asked_for = is_far && begin + 2 * ROWS <= whole;
            let ahead = if is_asked_for { ROWS * self.matrix.step } else { 0 };
            // SAFETY: these steps are less than the depth.
            unsafe { self.add_rows::<FUSED, VECTORS, ROWS>(&mut outputs, begin, ahead) };
        }
        for step in whole..self.depth {
            // SAFETY: the step is less than the depth.
            unsafe { self.add_rows::<FUSED, VECTORS, 1>(&mut outputs, step, 0) };
        }
    }

    /// Adds some rows times what the vectors have in their place, and asks for those that are `ahead` by so many elements.
    #[inline(always)]
    unsafe fn add_rows<const FUSED: bool, const VECTORS: usize, const COUNT: usize>(
        &self,
        outputs: &mut [&mut [T]; VECTORS],
        begin: usize,
        ahead: usize,
    ) {
        let mut factors = [[T::default(); COUNT]; VECTORS];
        let mut rows = [self.matrix.pointer; COUNT];
        for index in 0..COUNT {
            for (vector, factors) in factors.iter_mut().enumerate() {
                let place = vector * self.vector.lane + (begin + index) * self.vector.step;
                // SAFETY: the caller keeps the steps below the depth.
                factors[index] = unsafe { *self.vector.pointer.add(place) };
            }
            let start = (begin + index) * self.matrix.step + self.lanes.start;
            rows[index] = self.matrix.pointer.wrapping_add(start);
        }
        let count = self.lanes.len();
        let in_line = LINE / size_of::<T>();
        let lines = count / in_line;
        for line in 0..lines {
            let lanes = line * in_line..(line + 1) * in_line;
            if ahead > 0 {
                rows.iter().for_each(|row| ask_for(row.wrapping_add(lanes.start + ahead)));
            }
            // SAFETY: the caller keeps the steps below the depth, and the lanes lie side by side.
            unsafe { Self::add_lanes::<FUSED, VECTORS, COUNT>(outputs, &factors, &rows, lanes) };
        }
        // SAFETY: as above.
        unsafe {
            Self::add_lanes::<FUSED, VECTORS, COUNT>(outputs, &factors, &rows, lines * in_line..count);
        }
    }

    /// Adds some lanes of the rows, which can be read.
    #[inline(always)]
    unsafe fn add_lanes<const FUSED: bool, const VECTORS: usize, const COUNT: usize>(
        outputs: &mut [&mut [T]; VECTORS],
        factors: &[[T; COUNT]; VECTORS],
        rows: &[*const T; COUNT],
        lanes: Range<usize>,
    ) {
        for (output, factors) in outputs.iter_mut().zip(factors) {
            for (offset, output) in output[lanes.clone()].iter_mut().enumerate() {
                let mut sum = *output;
                for (factor, row) in factors.iter().zip(rows) {
                    // SAFETY: the lanes are those of the outputs, of which each row has as many.
                    let element = unsafe { row.add(lanes.start + offset).read_unaligned() };
                    sum = sum.plus_product::<FUSED>(*factor, element);
                }
                *output = sum;
            }
        }
    }

    /// Computes each output by itself, where the steps of the depth lie side by side.
    unsafe fn dot<'a>(&self, dot: Dot<T>, vectors: usize, output: impl Fn(usize) -> &'a mut [T])
    where
        T: 'a,
    {
        let first = self.lanes.start;
        let is_far = self.is_far();
        let mut outputs: [&mut [T]; FEW] = Default::default();
        outputs.iter_mut().take(vectors).enumerate().for_each(|(vector, target)| *target = output(vector));
        for lane in self.lanes.clone() {
            let row = self.matrix.pointer.wrapping_add(lane * self.matrix.lane);
            for (vector, output) in outputs.iter_mut().take(vectors).enumerate() {
                let vector = self.vector.pointer.wrapping_add(vector * self.vector.lane);
                // SAFETY: the vectors and the lanes have steps for the depth, which lie side by side, and tables are of
                // instruction sets that the machine has.
                output[lane - first] = unsafe { dot(vector, row, self.depth, is_far) };
            }
        }
    }
}

/// Asks for the memory at an address, which need not be there, before it is needed: into the second cache, since the nearest
/// is too small for rows that come so much later.
#[inline(always)]
pub(super) fn ask_for<T>(address: *const T) {
    #[cfg(x86_vectors)]
    // SAFETY: it only is a hint, and every processor of the architecture has it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(address.cast());
    }
    #[cfg(not(x86_vectors))]
    let _ = address;
}
