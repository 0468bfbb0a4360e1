//! Products with one vector or a few. Reading the matrix is the bottleneck, so it is never packed: the kernels run along the
//! direction in which it is contiguous and read each element once.

#![expect(unsafe_code, reason = "rows of the matrix are read through pointers")]

use std::ops::Range;

use oarlock_cpu_base::isa::{Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::prefetch::prefetch_l2;
use oarlock_cpu_base::thread_team::ThreadTeam;

use super::buffer::DisjointSlice;
use super::macro_kernel::OutputBlock;
use super::tile::{DotKernel, DotRows};
use super::{BatchedGemm, GemmElement, GemmOperand, OperandPointer};

/// Up to this many rows on the left, reading the matrix takes longer than multiplying.
pub const FEW_ROWS: usize = 4;
/// The number of matrix elements that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 15;
/// Outputs computed together: 128 KiB of f32, which stays in L2 while the matrix streams past. Longer runs suit the hardware
/// prefetcher better.
const OUTPUTS_AT_ONCE: usize = 1 << 15;
const CACHE_LINE: usize = 64;
/// Rows that several vectors are multiplied with in turn.
const ROWS_IN_L1: usize = 4;
/// Every L2 that prefetches matter for has at least this size.
const MIN_L2_BYTES: usize = 1 << 20;
/// The number of matrix rows that are added at once if the outputs are contiguous. Each output is loaded and stored once per 8 rows
/// instead of once per row.
const ROWS: usize = 8;

/// Computes a product of a few vectors and a matrix if both can be read in place. Otherwise, it does nothing and returns false.
pub(crate) fn compute_gemv<T: GemmElement>(product: &mut BatchedGemm<'_, T>, team: &dyn ThreadTeam) -> bool {
    let sizes = product.sizes;
    let (GemmOperand::Operand(left), GemmOperand::Operand(right)) = (&product.left, &product.right) else {
        return false;
    };
    let Some(output) = product.output.as_deref_mut() else { return false };
    let is_row = sizes.rows <= FEW_ROWS && sizes.columns > 1;
    let elements = |item: usize| {
        let right = if is_row { right.unaligned_elements(item) } else { right.aligned_elements(item) };
        left.aligned_elements(item).zip(right)
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
    let threads = team.worker_count().min(work / MIN_WORK_PER_THREAD).max(1);
    let pieces = if threads == 1 { 1 } else { threads.div_ceil(sizes.items) };
    let chunk = count.div_ceil(pieces).next_multiple_of(64).min(OUTPUTS_AT_ONCE / vectors);
    let chunks = count.div_ceil(chunk);
    let tasks = sizes.items * chunks;
    let share = tasks.div_ceil(threads);
    let output = DisjointSlice::new(output);
    let (epilogue, isa) = (product.epilogue, team.isa());
    team.parallel_for_each(tasks.div_ceil(share), &|lane| {
        for task in lane * share..tasks.min((lane + 1) * share) {
            let (item, begin) = (task / chunks, task % chunks * chunk);
            let lanes = begin..count.min(begin + chunk);
            let Some((left, right)) = elements(item) else { return };
            let (vector, matrix) = if is_row { (left, right) } else { (right, left) };
            let first = item * vectors * count + lanes.start;
            // SAFETY: no two tasks have the same outputs, nor do two vectors of one task.
            let part = |vector: usize| unsafe {
                output.range_mut(first + vector * count..first + vector * count + lanes.len())
            };
            let job = GemvJob { vector, matrix, depth: sizes.depth, lanes: lanes.clone(), add: false };
            // SAFETY: the operands are readable over the ranges of the product.
            unsafe { job.run(isa, vectors, part) };
            if let Some(epilogue) = epilogue {
                let (rows, columns) = if is_row { (0..vectors, lanes) } else { (lanes, 0..1) };
                // SAFETY: the part is complete, and no other task accesses it.
                epilogue(unsafe {
                    OutputBlock::new(item, rows, columns, output.element_pointer(first), sizes.columns)
                });
            }
        }
    });
    true
}

/// A range of outputs of one product, for each of its vectors. Every vector is readable for the whole depth, and the matrix, at any
/// alignment, for the lanes and the depth.
pub(crate) struct GemvJob<T> {
    pub vector: OperandPointer<T>,
    pub matrix: OperandPointer<T>,
    pub depth: usize,
    pub lanes: Range<usize>,
    /// True if sums are added to the output, which requires contiguous lanes.
    pub add: bool,
}

impl<N: GemmElement> GemvJob<N> {
    /// Computes the outputs of up to [`FEW_ROWS`] vectors.
    ///
    /// # Safety
    ///
    /// The operands are readable over the ranges of the job.
    pub(crate) unsafe fn run<'a>(&self, isa: Isa, vectors: usize, output: impl Fn(usize) -> &'a mut [N])
    where
        N: 'a,
    {
        if self.matrix.lane != 1 {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.dot_outputs(N::micro_kernels(isa).dot_kernel(), vectors, output) };
        }
        if const { !N::IS_COMMON } {
            for vector in 0..vectors {
                isa.vectorize(AxpyGemv { job: &self.of_vector(vector), outputs: [output(vector)] });
            }
            return;
        }
        match vectors {
            1 => isa.vectorize(AxpyGemv { job: self, outputs: [output(0)] }),
            2 => isa.vectorize(AxpyGemv { job: self, outputs: [output(0), output(1)] }),
            3 => isa.vectorize(AxpyGemv { job: self, outputs: [output(0), output(1), output(2)] }),
            _ => isa.vectorize(AxpyGemv { job: self, outputs: [output(0), output(1), output(2), output(3)] }),
        }
    }
}

/// A job with contiguous lanes, and its outputs for each vector. The operands are readable over the ranges of the job.
struct AxpyGemv<'a, T, const VECTORS: usize> {
    job: &'a GemvJob<T>,
    outputs: [&'a mut [T]; VECTORS],
}

impl<N: GemmElement, const VECTORS: usize> SimdTask for AxpyGemv<'_, N, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { job, mut outputs } = self;
        if !job.add {
            outputs.iter_mut().for_each(|output| output.fill(N::default()));
        }
        // SAFETY: the operands are readable over the ranges of the job.
        unsafe {
            if T::HAS_FMA {
                job.accumulate_rows::<true, VECTORS>(outputs);
            } else {
                job.accumulate_rows::<false, VECTORS>(outputs);
            }
        }
    }
}

impl<T: GemmElement> GemvJob<T> {
    /// The same job for one of its vectors alone.
    fn of_vector(&self, vector: usize) -> Self {
        let pointer = self.vector.pointer.wrapping_add(vector * self.vector.lane);
        let vector = OperandPointer { pointer, ..self.vector };
        Self { vector, matrix: self.matrix, lanes: self.lanes.clone(), ..*self }
    }

    /// True if the matrix is too large for L2. A smaller one may still be there from the last call, and then software prefetches only
    /// cost time: on a Xeon with an L2 of 2 MiB, up to half of it.
    fn is_far(&self) -> bool {
        let bytes = self.depth * self.lanes.len() * size_of::<T>();
        #[cfg(target_arch = "x86_64")]
        let l2_bytes = || oarlock_cpu_base::machine::l2_bytes();
        // Elsewhere prefetches do nothing.
        #[cfg(not(target_arch = "x86_64"))]
        let l2_bytes = || usize::MAX;
        bytes > MIN_L2_BYTES && bytes > l2_bytes()
    }

    /// Adds rows to the outputs, eight at a time. Requires contiguous lanes.
    #[inline(always)]
    unsafe fn accumulate_rows<const FUSED: bool, const VECTORS: usize>(
        &self,
        mut outputs: [&mut [T]; VECTORS],
    ) {
        let whole = self.depth / ROWS * ROWS;
        let is_far = self.is_far();
        for begin in (0..whole).step_by(ROWS) {
            // The next rows are a long stride away, which the hardware prefetcher does not follow.
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

    /// Adds some rows, multiplied by the vectors' elements, and prefetches the rows `ahead` elements further.
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
        let in_line = CACHE_LINE / size_of::<T>();
        let lines = count / in_line;
        // Works on one cache line of each row at a time, so that each prefetch fetches a new line.
        for line in 0..lines {
            let lanes = line * in_line..(line + 1) * in_line;
            if ahead > 0 {
                rows.iter().for_each(|row| prefetch_l2(row.wrapping_add(lanes.start + ahead)));
            }
            // SAFETY: the caller keeps the steps below the depth, and the lanes are contiguous.
            unsafe { Self::add_lanes::<FUSED, VECTORS, COUNT>(outputs, &factors, &rows, lanes) };
        }
        // SAFETY: as above.
        unsafe {
            Self::add_lanes::<FUSED, VECTORS, COUNT>(outputs, &factors, &rows, lines * in_line..count);
        }
    }

    /// Adds one range of lanes of the rows, which must be readable.
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
                    // SAFETY: each row has as many lanes as there are outputs.
                    let element = unsafe { row.add(lanes.start + offset).read_unaligned() };
                    sum = sum.add_product::<FUSED>(*factor, element);
                }
                *output = sum;
            }
        }
    }

    /// Computes each output as a dot product. Requires contiguous steps.
    unsafe fn dot_outputs<'a>(&self, dot: DotKernel<T>, vectors: usize, output: impl Fn(usize) -> &'a mut [T])
    where
        T: 'a,
    {
        let mut outputs: [&mut [T]; FEW_ROWS] = Default::default();
        outputs.iter_mut().take(vectors).enumerate().for_each(|(vector, target)| *target = output(vector));
        // Several vectors are multiplied with rows while these are in L1.
        let group = if vectors > 1 { ROWS_IN_L1 } else { self.lanes.len() };
        let is_far = self.is_far();
        for begin in (0..self.lanes.len()).step_by(group.max(1)) {
            let lanes = begin..self.lanes.len().min(begin + group);
            let row = (self.lanes.start + begin) * self.matrix.lane;
            for (vector, output) in outputs.iter_mut().take(vectors).enumerate() {
                let product = DotRows {
                    left: self.vector.pointer.wrapping_add(vector * self.vector.lane),
                    right: self.matrix.pointer.wrapping_add(row),
                    right_row: self.matrix.lane,
                    depth: self.depth,
                    is_far,
                };
                // SAFETY: the vectors and lanes have `depth` contiguous steps, and tables only exist for instruction sets that
                // the machine has.
                unsafe { dot(&product, &mut output[lanes.clone()]) };
            }
        }
    }
}
