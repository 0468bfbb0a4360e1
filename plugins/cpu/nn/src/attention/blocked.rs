//! Blocked attention: the scores of a few query rows for a block of keys, their softmax, and the sum of the values by these
//! weights, all in cache. The full score matrix is never materialized.
//!
//! Query heads that share a key head are computed together, as more rows of one query. The computation of a row depends only on its
//! keys, so results do not depend on how rows are distributed over threads.

#![expect(unsafe_code, reason = "threads write disjoint rows of one output")]

use std::ops::Range;

use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::{
    DisjointSlice, FEW_ROWS, GemmRows, LaneView, ScratchBuffer, StoredElement, TaskQueue, multiply_few_rows,
    multiply_rows, pack_panel, row_tile_size,
};

use super::geometry::{AttentionShape, HeadStrides};
use super::lane_reduce::LANES;
use super::mask::AttentionMask;
use super::softmax::{ScaledRow, ScoreRow, SoftmaxBlock, SoftmaxState};

/// The number of keys in a block. With heads of 64 elements, packed keys and values take 64 KiB each and stay in L2, and the scores
/// of a tile of 14 rows take 15 KiB and stay in L1.
const KEYS_PER_BLOCK: usize = 256;
/// The maximum number of query rows in a task: the more rows, the more often packed keys and values are reused.
const MAX_TASK_ROWS: usize = 128;
/// An upper bound of the rows of a tile, for arrays on the stack. Micro-kernels have at most 14.
const MAX_TILE_ROWS: usize = 16;
/// Multiply-adds that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 17;

/// Keys or values: past rows, followed by new ones.
#[derive(Clone, Copy)]
pub(super) struct KeyValueCache<'a, E> {
    pub(super) past: &'a [E],
    pub(super) past_steps: HeadStrides,
    pub(super) fresh: &'a [E],
    pub(super) steps: HeadStrides,
}

pub(super) struct BlockedAttentionOperands<'a, E> {
    pub(super) query: &'a [E],
    pub(super) keys: KeyValueCache<'a, E>,
    pub(super) values: KeyValueCache<'a, E>,
    pub(super) mask: AttentionMask<'a>,
    pub(super) output: DisjointSlice<'a, E>,
    pub(super) present_keys: Option<DisjointSlice<'a, E>>,
    pub(super) present_values: Option<DisjointSlice<'a, E>>,
}

/// How a call is divided into tasks, and the memory that a thread needs for a task.
#[derive(Clone, Copy)]
pub(super) struct BlockedAttentionPlan {
    /// The rows of all query heads that share keys, and the rows of a task.
    rows: usize,
    rows_of_task: usize,
    threads: usize,
    /// The rows of a tile, and the columns of a panel.
    tile: (usize, usize),
    /// The columns of values, rounded up to whole panels.
    padded_values: usize,
    /// The keys of a block, rounded up to whole lane groups and panels.
    padded_keys: usize,
    /// True if keys and values are read in place: for a few rows, packing would cost more than multiplying.
    in_place: bool,
}

impl BlockedAttentionPlan {
    pub(super) fn new<E: StoredElement<ComputeType = f32>>(
        team: &dyn ThreadTeam,
        geometry: &AttentionShape,
    ) -> Self {
        let (most, columns) = row_tile_size::<f32>(team.isa());
        let tile = (most.min(MAX_TILE_ROWS), columns);
        // The heads of a group read the same keys, so their rows are stacked into one taller product, which reuses each packed
        // panel more often.
        let rows = geometry.group_size() * geometry.queries;
        let work = [
            geometry.batches,
            geometry.shared,
            rows,
            geometry.total_keys(),
            geometry.size + geometry.value_size,
        ]
        .into_iter()
        .fold(1usize, |work, size| work.saturating_mul(size));
        let threads = team.worker_count().min(work / MIN_WORK_PER_THREAD).max(1);
        let items = geometry.batches * geometry.shared;
        // A few tasks per thread balance the load if other work runs on the machine.
        let wanted = if threads == 1 { 1 } else { (4 * threads).div_ceil(items.max(1)) };
        // A task has at least two tiles, so that packing the keys pays.
        let tasks = rows.div_ceil(MAX_TASK_ROWS).max(wanted.min(rows.div_ceil(2 * tile.0))).max(1);
        let padded = KEYS_PER_BLOCK.min(geometry.total_keys().max(1)).next_multiple_of(LANES.max(tile.1));
        Self {
            rows,
            rows_of_task: rows.div_ceil(tasks).max(1),
            threads,
            tile,
            padded_values: geometry.value_size.next_multiple_of(tile.1),
            padded_keys: padded,
            // Only `f32` can be read in place; narrow floats must be widened, which packing does anyway.
            in_place: rows <= FEW_ROWS && <E as oarlock_cpu_gemm::ConvertTo<f32>>::IS_IDENTITY,
        }
    }

    /// The sizes of the parts of a thread's scratch memory, in numbers.
    fn scratch_sizes(&self, geometry: &AttentionShape) -> [usize; 6] {
        let packs = usize::from(!self.in_place);
        [
            self.rows_of_task.saturating_mul(geometry.size),
            self.padded_keys.saturating_mul(geometry.size) * packs,
            self.padded_keys.saturating_mul(self.padded_values) * packs,
            self.tile.0.max(FEW_ROWS) * self.score_stride(),
            self.rows_of_task.saturating_mul(self.padded_values),
            2 * self.rows_of_task,
        ]
        // Each part starts at a cache line, so that threads share none.
        .map(|size| size.next_multiple_of(16))
    }

    /// The distance between rows of scores: not a power of 2, so that rows do not map to the same L1 sets.
    fn score_stride(&self) -> usize {
        self.padded_keys + 16
    }

    fn worker_scratch_size(&self, geometry: &AttentionShape) -> usize {
        self.scratch_sizes(geometry).into_iter().fold(0, usize::saturating_add)
    }

    pub(super) fn scratch_size(&self, geometry: &AttentionShape) -> u64 {
        // Saturating: a request that is too large then fails as an allocation, with an error message.
        let numbers = self.threads.saturating_mul(self.worker_scratch_size(geometry));
        (numbers.saturating_mul(size_of::<f32>()) as u64).saturating_add(64)
    }
}

/// Computes the output, and the present keys and values if they are outputs.
pub(super) fn compute_blocked<E: StoredElement<ComputeType = f32>>(
    team: &dyn ThreadTeam,
    geometry: &AttentionShape,
    operands: &BlockedAttentionOperands<'_, E>,
    scratch: &mut ScratchBuffer<'_>,
) {
    let plan = BlockedAttentionPlan::new::<E>(team, geometry);
    let lane_size = plan.worker_scratch_size(geometry);
    let memory = DisjointSlice::new(scratch.allocate_elements::<f32>(plan.threads * lane_size));
    let tasks_of_item = plan.rows.div_ceil(plan.rows_of_task).max(1);
    let count = geometry.batches * geometry.shared * tasks_of_item;
    // With a causal mask, later rows see more keys, so tasks differ in length and threads take them from a queue.
    let tasks = TaskQueue::new(count, plan.threads);
    team.parallel_for_each(plan.threads.min(count), &|lane| {
        // SAFETY: each lane has its own part.
        let mut memory = unsafe { memory.range_mut(lane * lane_size..(lane + 1) * lane_size) };
        let [query, keys, values, scores, output, sums] = plan.scratch_sizes(geometry).map(|size| {
            let (part, rest) = std::mem::take(&mut memory).split_at_mut(size);
            memory = rest;
            part
        });
        for task in tasks.tasks_for_worker(lane) {
            let (item, begin) = (task / tasks_of_item, task % tasks_of_item * plan.rows_of_task);
            let (batch, head) = (item / geometry.shared, item % geometry.shared);
            if begin == 0 {
                // The first task of each head copies the cache, so that it is written once.
                operands.write_present(geometry, batch, head);
            }
            AttentionTask {
                team,
                geometry,
                operands,
                plan: &plan,
                batch,
                head,
                rows: begin..plan.rows.min(begin + plan.rows_of_task),
                query,
                keys,
                values,
                scores,
                output,
                sums,
            }
            .run();
        }
    });
}

impl<'a, E: Copy> KeyValueCache<'a, E> {
    /// A head of the past (`part` 0) or of the new elements (`part` 1), and the distance between its rows.
    fn head_rows(
        &self,
        geometry: &AttentionShape,
        part: usize,
        batch: usize,
        head: usize,
    ) -> (&'a [E], usize) {
        let (elements, steps, rows) = match part {
            0 => (self.past, self.past_steps, geometry.past),
            _ => (self.fresh, self.steps, geometry.fresh),
        };
        let start = steps.row_start(batch, head, 0);
        // An empty tensor has no element at `start`, which may be past its end.
        (if rows == 0 { &[] } else { &elements[start..] }, steps.row)
    }

    /// Copies a head to the present output, the past first.
    pub(super) fn copy_present(
        &self,
        geometry: &AttentionShape,
        [batch, head]: [usize; 2],
        (steps, size): (HeadStrides, usize),
        present: Option<&DisjointSlice<'_, E>>,
    ) {
        let Some(present) = present.filter(|_| size > 0) else { return };
        let start = steps.row_start(batch, head, 0);
        // SAFETY: each head is copied once.
        let target = unsafe { present.range_mut(start..start + geometry.total_keys() * size) };
        let (past, fresh) = target.split_at_mut(geometry.past * size);
        for (part, target) in [past, fresh].into_iter().enumerate() {
            let (elements, step) = self.head_rows(geometry, part, batch, head);
            for (row, target) in target.chunks_exact_mut(size).enumerate() {
                target.copy_from_slice(&elements[row * step..][..size]);
            }
        }
    }
}

impl<E: StoredElement<ComputeType = f32>> BlockedAttentionOperands<'_, E> {
    fn write_present(&self, geometry: &AttentionShape, batch: usize, head: usize) {
        let (keys, values) = (&self.present_keys, &self.present_values);
        self.keys.copy_present(geometry, [batch, head], (geometry.present_key, geometry.size), keys.as_ref());
        let form = (geometry.present_value, geometry.value_size);
        self.values.copy_present(geometry, [batch, head], form, values.as_ref());
    }
}

/// Some rows of the query heads that share a key head, and the scratch memory of a thread.
struct AttentionTask<'t, 'a, E> {
    team: &'t dyn ThreadTeam,
    geometry: &'t AttentionShape,
    operands: &'t BlockedAttentionOperands<'a, E>,
    plan: &'t BlockedAttentionPlan,
    batch: usize,
    head: usize,
    rows: Range<usize>,
    query: &'t mut [f32],
    keys: &'t mut [f32],
    values: &'t mut [f32],
    scores: &'t mut [f32],
    output: &'t mut [f32],
    sums: &'t mut [f32],
}

impl<E: StoredElement<ComputeType = f32>> AttentionTask<'_, '_, E> {
    fn run(mut self) {
        let geometry = self.geometry;
        self.read_query();
        self.output.fill(0.0);
        for sums in self.sums.as_chunks_mut::<2>().0 {
            *sums = [SoftmaxState::EMPTY.greatest, SoftmaxState::EMPTY.sum];
        }
        let seen = self.visible_keys(0..self.rows.len());
        // Past and new rows are separate operands. Processing one after the other avoids concatenating them.
        for (part, first, count) in [(0, 0, geometry.past), (1, geometry.past, geometry.fresh)] {
            for begin in (0..count).step_by(KEYS_PER_BLOCK) {
                let block = begin..count.min(begin + KEYS_PER_BLOCK);
                // Blocks that are hidden from all rows are skipped: with a causal mask, up to half of them.
                if first + block.start < seen.end && seen.start < first + block.end {
                    self.accumulate_block(part, first, block);
                }
            }
        }
        self.write_output();
    }

    /// The batch, the query head and the row within that head, for a row of the task.
    fn row_position(&self, row: usize) -> [usize; 3] {
        let (number, queries) = (self.rows.start + row, self.geometry.queries);
        [self.batch, self.head * self.geometry.group_size() + number / queries, number % queries]
    }

    /// The smallest range that contains all keys visible to any of these rows.
    fn visible_keys(&self, rows: Range<usize>) -> Range<usize> {
        if let Some(keys) = self.operands.mask.common_keys(self.geometry) {
            return keys;
        }
        let (mut begin, mut end) = (usize::MAX, 0);
        for row in rows {
            let [batch, _, row] = self.row_position(row);
            let keys = self.operands.mask.visible_keys(self.geometry, batch, row);
            if !keys.is_empty() {
                (begin, end) = (begin.min(keys.start), end.max(keys.end));
            }
        }
        begin.min(end)..end
    }

    fn read_query(&mut self) {
        let (size, scale) = (self.geometry.size, self.geometry.scale as f32);
        for row in 0..self.rows.len() {
            let [batch, head, row_of_head] = self.row_position(row);
            let start = self.geometry.query.row_start(batch, head, row_of_head);
            // Scaling the query once is cheaper than scaling every score.
            let elements = &self.operands.query[start..][..size];
            let to = &mut self.query[row * size..][..size];
            self.team.isa().vectorize(ScaledRow { from: elements, to, factor: scale });
        }
    }

    /// Adds the contribution of a block of keys to the output.
    fn accumulate_block(&mut self, part: usize, first: usize, block: Range<usize>) {
        let AttentionShape { size, value_size, .. } = *self.geometry;
        let (keys, key_step) = self.operands.keys.head_rows(self.geometry, part, self.batch, self.head);
        let (values, value_step) = self.operands.values.head_rows(self.geometry, part, self.batch, self.head);
        let keys = LaneView { elements: &keys[block.start * key_step..], lane: key_step, step: 1 };
        let values = LaneView {
            elements: values.get(block.start * value_step..).unwrap_or(&[]),
            lane: 1,
            step: value_step,
        };
        let in_place = if self.plan.in_place { as_f32_view(keys).zip(as_f32_view(values)) } else { None };
        let (isa, width) = (self.team.isa(), self.plan.tile.1);
        // Each task packs keys and values for itself: sharing them would need a barrier between packing and use.
        if in_place.is_none() {
            for panel in 0..block.len().div_ceil(width) {
                let begin = panel * width;
                let keys = LaneView { elements: &keys.elements[begin * key_step..], ..keys };
                let target = &mut self.keys[begin * size..][..width * size];
                pack_panel(isa, keys, (width.min(block.len() - begin), size), width, target);
            }
            for panel in 0..value_size.div_ceil(width) {
                let begin = panel * width;
                let values = LaneView { elements: &values.elements[begin..], ..values };
                let target = &mut self.values[begin * self.plan.padded_keys..][..width * block.len()];
                pack_panel(isa, values, (width.min(value_size - begin), block.len()), width, target);
            }
        }
        let stride = self.plan.score_stride();
        let whole = first + block.start..first + block.end;
        // Scores, softmax and values are computed for one tile of rows at a time, so its scores never leave L1.
        for begin in (0..self.rows.len()).step_by(self.plan.tile.0) {
            let rows = begin..self.rows.len().min(begin + self.plan.tile.0);
            // The range of this tile alone: near the diagonal of a causal mask, it is shorter than that of the task.
            let seen = self.visible_keys(rows.clone());
            if seen.end <= whole.start || whole.end <= seen.start {
                continue;
            }
            // Keys after the last visible one are not multiplied at all. Hidden keys before the first one are: panels begin at the
            // start of the block.
            let count = seen.end.min(whole.end) - whole.start;
            let query = GemmRows {
                elements: &self.query[begin * size..rows.end * size],
                count: rows.len(),
                stride: size,
            };
            let scores = GemmRows { elements: &mut *self.scores, count: rows.len(), stride };
            match in_place {
                Some((keys, _)) => multiply_few_rows(isa, query, keys, size, scores, count, false),
                None => multiply_rows(isa, query, (self.keys, width * size), size, scores, count, false),
            }
            self.softmax_rows(rows.clone(), &whole, count);
            let scores = GemmRows { elements: &*self.scores, count: rows.len(), stride };
            let stride = self.plan.padded_values;
            let output = GemmRows { elements: &mut self.output[begin * stride..], count: rows.len(), stride };
            match in_place {
                Some((_, values)) => multiply_few_rows(isa, scores, values, count, output, value_size, true),
                None => {
                    let panels = (&*self.values, width * self.plan.padded_keys);
                    multiply_rows(isa, scores, panels, count, output, value_size, true);
                }
            }
        }
    }

    /// Turns the scores of some rows for the first `count` keys of a block into weights, and rescales the output of rows in which a
    /// greater score appeared.
    fn softmax_rows(&mut self, rows: Range<usize>, block: &Range<usize>, count: usize) {
        let (isa, stride) = (self.team.isa(), self.plan.score_stride());
        let (mask, common) = (&self.operands.mask, self.operands.mask.common_keys(self.geometry));
        // Without bounds or a mask, all rows are treated alike, so their positions need not be computed.
        let is_plain = common.is_some() && mask.is_absent();
        let mut all: [ScoreRow<'_>; MAX_TILE_ROWS] = std::array::from_fn(|_| ScoreRow::EMPTY);
        let states = &mut all[..rows.len()];
        for (state, row) in states.iter_mut().zip(rows.clone()) {
            let place = if is_plain { [self.batch, 0, 0] } else { self.row_position(row) };
            let seen = common.clone().unwrap_or_else(|| mask.visible_keys(self.geometry, place[0], place[2]));
            let begin = seen.start.clamp(block.start, block.start + count);
            let end = seen.end.clamp(begin, block.start + count);
            state.keys = begin - block.start..end - block.start;
            state.bias = mask.row_bias(place, begin..end);
            state.sums = SoftmaxState { greatest: self.sums[2 * row], sum: self.sums[2 * row + 1] };
        }
        let padded = count.next_multiple_of(LANES);
        isa.vectorize(SoftmaxBlock {
            isa,
            scores: self.scores,
            stride,
            padded,
            rows: states,
            softcap: self.geometry.softcap as f32,
        });
        for (state, row) in states.iter().zip(rows) {
            let factor = state.factor;
            // The greatest score rarely changes after the first blocks, so most rows skip this pass. Before the first visible key,
            // the output is 0 and needs none.
            if factor != 1.0 && self.sums[2 * row + 1] != 0.0 {
                let output = &mut self.output[row * self.plan.padded_values..][..self.plan.padded_values];
                output.iter_mut().for_each(|number| *number *= factor);
            }
            (self.sums[2 * row], self.sums[2 * row + 1]) = (state.sums.greatest, state.sums.sum);
        }
    }

    fn write_output(&self) {
        let size = self.geometry.value_size;
        for row in 0..self.rows.len() {
            let (place, sum) = (self.row_position(row), self.sums[2 * row + 1]);
            let start = self.geometry.output.row_start(place[0], place[1], place[2]);
            // SAFETY: each row of the output is written once, by its task.
            let target = unsafe { self.operands.output.range_mut(start..start + size) };
            let numbers = &self.output[row * self.plan.padded_values..][..size];
            // Without a visible key the result is 0, even if the scores were NaN.
            let is_empty = sum == 0.0 || sum.is_nan() && self.operands.mask.hides_all(self.geometry, place);
            if is_empty {
                target.fill(E::from_computed(0.0));
            } else {
                self.team.isa().vectorize(ScaledRow { from: numbers, to: target, factor: 1.0 / sum });
            }
        }
    }
}

/// The view as `f32`, if that is its element type.
fn as_f32_view<E: StoredElement<ComputeType = f32>>(view: LaneView<'_, E>) -> Option<LaneView<'_, f32>> {
    let elements = oarlock_cpu_gemm::as_computed(view.elements)?;
    Some(LaneView { elements, lane: view.lane, step: view.step })
}
