//! Runs the tasks of a plan.

#![expect(unsafe_code, reason = "panels and tiles are handed to the micro-kernels as pointers")]

use std::marker::PhantomData;
use std::ops::Range;

use oarlock_cpu_base::thread_team::ThreadTeam;

use super::buffer::{DisjointSlice, ScratchBuffer};
use super::panel_layout::PanelLayout;
use super::panel_layout::depth_blocks;
use super::plan::{GemmOperandAccess, GemmPlan};
use super::task_queue::TaskQueue;
use super::tile::{GemmMicroKernels, GemmTile};
use super::{BatchedGemm, GemmElement, GemmOperand, OperandPointer};

/// A part of an output whose sums are complete, which the epilogue processes.
pub struct OutputBlock<'a, T> {
    pub item: usize,
    pub rows: Range<usize>,
    pub columns: Range<usize>,
    elements: *mut T,
    row_stride: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

impl<'a, T> OutputBlock<'a, T> {
    /// # Safety
    ///
    /// `elements` points to the elements of the part, whose rows are `row_stride` apart, and nothing else accesses them for `'a`.
    pub unsafe fn new(
        item: usize,
        rows: Range<usize>,
        columns: Range<usize>,
        elements: *mut T,
        row_stride: usize,
    ) -> Self {
        Self { item, rows, columns, elements, row_stride, borrowed: PhantomData }
    }

    pub fn reborrow(&mut self) -> OutputBlock<'_, T> {
        OutputBlock { rows: self.rows.clone(), columns: self.columns.clone(), borrowed: PhantomData, ..*self }
    }

    /// The rows, each with its index.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = (usize, &mut [T])> {
        let (columns, elements, row_stride) = (self.columns.len(), self.elements, self.row_stride);
        self.rows.clone().enumerate().map(move |(index, row)| {
            // SAFETY: the row belongs to the part, and no two rows overlap.
            (row, unsafe { std::slice::from_raw_parts_mut(elements.add(index * row_stride), columns) })
        })
    }
}

pub(crate) fn compute_gemm<T: GemmElement>(
    product: BatchedGemm<'_, T>,
    team: &dyn ThreadTeam,
    scratch: &mut ScratchBuffer,
) {
    let sides = (product.left.operand_form(), product.right.operand_form());
    let plan = GemmPlan::new::<T>(team, product.sizes, sides, product.output.is_none());
    let lane_size = plan.right_block_size() + plan.buffer_size();
    let memory = scratch.allocate_elements::<T>(plan.packed_left_size() + plan.lanes * lane_size);
    let (left, lanes) = memory.split_at_mut(plan.packed_left_size());
    if let (GemmOperandAccess::First(layout), GemmOperand::Operand(operand)) = (&plan.left, &product.left) {
        layout.pack_operand(*operand, team, plan.lanes, left);
    }
    let BatchedGemm { right, output, epilogue, left: left_side, .. } = product;
    let job = GemmJob {
        kernels: T::micro_kernels(team.isa()),
        left_side,
        left,
        right,
        output: output.map(DisjointSlice::new),
        epilogue,
        plan,
    };
    let lanes_memory = DisjointSlice::new(lanes);
    let tasks = TaskQueue::new(job.plan.task_count(), job.plan.lanes);
    team.parallel_for_each(job.plan.lanes, &|lane| {
        // SAFETY: each lane has its own part.
        let memory = unsafe { lanes_memory.range_mut(lane * lane_size..(lane + 1) * lane_size) };
        for task in tasks.tasks_for_worker(lane) {
            job.run_task(task, memory);
        }
    });
}

/// The part of a packed right operand that is read next, for another block or task. Each tile of the current block prefetches a
/// share of it, from the panel at its column.
struct PanelPrefetch {
    /// The first byte of the panels.
    start: *const u8,
    /// Bytes per panel.
    panel: usize,
    /// Bytes of each panel that one panel of rows prefetches.
    share: usize,
}

impl PanelPrefetch {
    /// The first address that a tile prefetches, and the bytes to advance with each step of the depth.
    fn tile_prefetch(&self, row: usize, column: usize, steps: usize) -> (*const u8, isize) {
        let start = self.start.wrapping_add(column * self.panel + row * self.share);
        (start, self.share.div_ceil(steps.max(1)) as isize)
    }
}

struct GemmJob<'a, T: 'static> {
    plan: GemmPlan,
    kernels: &'static GemmMicroKernels<T>,
    left_side: GemmOperand<'a, T>,
    /// Panels of the left operand, if this call packed it.
    left: &'a [T],
    right: GemmOperand<'a, T>,
    output: Option<DisjointSlice<'a, T>>,
    epilogue: Option<&'a super::GemmEpilogue<'a, T>>,
}

struct GemmTask<T> {
    item: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    /// First element of the task's part of the output.
    output: *mut T,
    output_row: usize,
}

impl<T: GemmElement> GemmJob<'_, T> {
    fn run_task(&self, index: usize, memory: &mut [T]) {
        let GemmPlan { sizes, tile, task, .. } = &self.plan;
        let (down, across) = self.plan.tasks_per_item();
        let (item, place) = (index / (down * across), index % (down * across));
        // Consecutive tasks share their columns, and with them the right panels, which are then still in L2.
        let (row, column) = (place % down * task.0, place / down * task.1);
        let rows = row..sizes.rows.min(row + task.0);
        let columns = column..sizes.columns.min(column + task.1);
        let (right, buffer) = memory.split_at_mut(self.plan.right_block_size());
        let (output, output_row) = match &self.output {
            Some(output) => {
                (output.element_pointer((item * sizes.rows + row) * sizes.columns + column), sizes.columns)
            }
            None => (buffer.as_mut_ptr(), task.1),
        };
        let task = GemmTask { item, rows, columns, output, output_row };
        // One block of the depth at a time: its right panels (at most `RIGHT_BLOCK_BYTES`) are loaded into L2 once, and every panel
        // of rows reuses them.
        for depth in depth_blocks(sizes.depth, self.plan.depth_block) {
            self.pack_right_panels(&task, &depth, right);
            let ahead = self.panel_prefetch(&task, &depth, index);
            for row in task.rows.clone().step_by(tile.0) {
                self.multiply_panel(&task, depth.clone(), row, right, ahead.as_ref());
            }
        }
    }

    /// What is read after a block, if that is known: the next block of the depth for the same columns, or the columns of the next
    /// task.
    fn panel_prefetch(
        &self,
        task: &GemmTask<T>,
        depth: &Range<usize>,
        index: usize,
    ) -> Option<PanelPrefetch> {
        let GemmOperand::Packed(packed) = &self.right else { return None };
        let GemmPlan { sizes, tile, task: (_, width), .. } = &self.plan;
        let (down, across) = self.plan.tasks_per_item();
        let (start, column) = if depth.end < sizes.depth {
            (depth.end, task.columns.start)
        } else {
            let next = index + 1;
            let (item, place) = (next / (down * across), next % (down * across));
            let column = place / down * width;
            // If the columns are the same, the panels already are in cache. Nothing is prefetched across products.
            if item != task.item || column == task.columns.start {
                return None;
            }
            (0, column)
        };
        let steps = self.plan.depth_block.min(sizes.depth - start);
        let elements = packed.elements();
        let first = packed.panel_layout().panel_start(task.item, start, column / tile.1, steps);
        let panel = steps * tile.1 * size_of::<T>();
        let share = panel.div_ceil(task.rows.len().div_ceil(tile.0).max(1));
        Some(PanelPrefetch { start: elements[first..].as_ptr().cast(), panel, share })
    }

    /// Packs the part of the right operand that the task cannot read in place.
    fn pack_right_panels(&self, task: &GemmTask<T>, depth: &Range<usize>, block: &mut [T]) {
        let GemmOperand::Operand(operand) = &self.right else { return };
        let width = self.plan.tile.1;
        let panel_size = depth.len() * width;
        let first = match self.plan.right {
            GemmOperandAccess::Task => task.columns.start,
            // Micro-kernels read whole vectors, so a ragged last panel cannot be read in place.
            _ if !task.columns.len().is_multiple_of(self.kernels.vector_lanes()) => {
                self.last_panel_start(task)
            }
            _ => return,
        };
        for (index, column) in (first..task.columns.end).step_by(width).enumerate() {
            let columns = column..task.columns.end.min(column + width);
            let panel = &mut block[index * panel_size..][..panel_size];
            operand.pack_panel(task.item, depth.clone(), columns, width, panel);
        }
    }

    /// The first column of the last panel of a task.
    fn last_panel_start(&self, task: &GemmTask<T>) -> usize {
        task.columns.start + (task.columns.len() - 1) / self.plan.tile.1 * self.plan.tile.1
    }

    /// Computes the tiles of one panel of rows and runs the epilogue on all of them while they are in L1.
    fn multiply_panel(
        &self,
        task: &GemmTask<T>,
        depth: Range<usize>,
        row: usize,
        right_block: &[T],
        ahead: Option<&PanelPrefetch>,
    ) {
        let GemmPlan { sizes, tile, .. } = &self.plan;
        let rows = row..task.rows.end.min(row + tile.0);
        // The left panel is the operand that stays in L1: it is read once for each right panel, and those stream from L2.
        let left = self.left_panel(task.item, &depth, row);
        let last = depth.end == sizes.depth;
        let first = task.output.wrapping_add((row - task.rows.start) * task.output_row);
        for (place, column) in task.columns.clone().step_by(tile.1).enumerate() {
            let columns = column..task.columns.end.min(column + tile.1);
            let (right, right_depth) = self.right_panel(task, &depth, &columns, right_block);
            let output = first.wrapping_add(column - task.columns.start);
            let kernel = self.kernels.micro_kernel(rows.len(), columns.len());
            let (ahead, ahead_step) = ahead.map_or((right.cast(), 0), |ahead| {
                ahead.tile_prefetch((row - task.rows.start) / tile.0, place, depth.len())
            });
            // SAFETY: the panels have these rows, columns and steps, and only this task accesses the tile of the output.
            unsafe {
                kernel(&GemmTile {
                    depth: depth.len(),
                    left: left.pointer,
                    left_row: left.lane as isize,
                    left_depth: left.step as isize,
                    right,
                    right_depth: right_depth as isize,
                    output,
                    output_row: task.output_row,
                    columns: columns.len(),
                    add: depth.start > 0,
                    ahead,
                    ahead_step,
                });
            }
        }
        if let Some(epilogue) = self.epilogue.filter(|_| last) {
            let columns = task.columns.clone();
            // SAFETY: these rows are complete, and nothing else accesses them until the task ends.
            epilogue(unsafe { OutputBlock::new(task.item, rows, columns, first, task.output_row) });
        }
    }

    fn left_panel(&self, item: usize, depth: &Range<usize>, row: usize) -> OperandPointer<T> {
        let panel = |layout: &PanelLayout, panels: &[T]| {
            let start = layout.panel_start(item, depth.start, row / layout.width, depth.len());
            OperandPointer { pointer: panels[start..].as_ptr(), lane: 1, step: layout.width }
        };
        match (&self.plan.left, &self.left_side) {
            (GemmOperandAccess::First(layout), _) => panel(layout, self.left),
            (_, GemmOperand::Packed(packed)) => panel(&packed.panel_layout(), packed.elements()),
            (_, GemmOperand::Operand(operand)) => {
                let elements = operand.aligned_elements(item).expect("an operand that is read where it lies");
                let offset = row * elements.lane + depth.start * elements.step;
                OperandPointer { pointer: elements.pointer.wrapping_add(offset), ..elements }
            }
        }
    }

    /// The address of the right panel for some columns, and the distance between its steps.
    fn right_panel(
        &self,
        task: &GemmTask<T>,
        depth: &Range<usize>,
        columns: &Range<usize>,
        block: &[T],
    ) -> (*const T, usize) {
        let width = self.plan.tile.1;
        match (&self.plan.right, &self.right) {
            (_, GemmOperand::Packed(packed)) => {
                let start = packed.panel_layout().panel_start(
                    task.item,
                    depth.start,
                    columns.start / width,
                    depth.len(),
                );
                (packed.elements()[start..].as_ptr(), width)
            }
            (GemmOperandAccess::Direct, GemmOperand::Operand(operand)) => {
                if !columns.len().is_multiple_of(self.kernels.vector_lanes()) {
                    return (block.as_ptr(), width);
                }
                let elements =
                    operand.aligned_elements(task.item).expect("an operand that is read where it lies");
                (elements.pointer.wrapping_add(columns.start + depth.start * elements.step), elements.step)
            }
            _ => {
                let panel = (columns.start - task.columns.start) / width;
                (block[panel * depth.len() * width..].as_ptr(), width)
            }
        }
    }
}
