//! How a product is computed: what is packed, where the output is cut, how much memory that takes.

use std::ops::Range;

use super::packed::PanelLayout;
use super::{GemmElement, GemmShape, OperandForm, ThreadTeam};
use crate::memory::ALIGNMENT;

/// Bytes of one lane of a panel: few enough that a panel of the left operand stays in the nearest cache.
const PANEL_LANE_BYTES: usize = 2048;
/// Bytes of the right panels that a task works on at a time: they stay in the second cache.
const RIGHT_BLOCK_BYTES: usize = 512 * 1024;
/// Products of two numbers that are worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 17;

/// How an operand reaches the micro-kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GemmOperandAccess {
    /// It is packed already.
    Packed,
    /// It is read where it lies.
    Direct,
    /// All of it is packed before anything is multiplied.
    First(PanelLayout),
    /// Each task packs what it needs.
    Task,
}

/// How a product is computed.
pub(super) struct GemmPlan {
    pub(super) sizes: GemmShape,
    pub(super) left: GemmOperandAccess,
    pub(super) right: GemmOperandAccess,
    /// Rows and columns of a tile.
    pub(super) tile: (usize, usize),
    /// Steps in depth that a panel has.
    pub(super) depth_block: usize,
    /// Rows and columns of the output that a task computes.
    pub(super) task: (usize, usize),
    /// How many tasks run at once.
    pub(super) lanes: usize,
    /// Whether a task keeps its part of the output in memory of its own.
    pub(super) buffered: bool,
}

impl GemmPlan {
    pub(super) fn new<T: GemmElement>(
        team: &dyn ThreadTeam,
        sizes: GemmShape,
        sides: (OperandForm, OperandForm),
        buffered: bool,
    ) -> Self {
        let kernels = T::micro_kernels(team.isa());
        let tile = (left_panel_width(sizes.rows, kernels.max_rows()), kernels.max_columns());
        let depth_block = depth_block_size::<T>(sizes.depth);
        let few_columns =
            sizes.columns <= 4 * tile.1 || sizes.columns <= 8 * tile.1 && sizes.depth <= depth_block;
        let left = match sides.0 {
            OperandForm::Packed => GemmOperandAccess::Packed,
            OperandForm::InPlace { .. } if few_columns => GemmOperandAccess::Direct,
            OperandForm::InPlace { items, .. } | OperandForm::Anew { items } => {
                GemmOperandAccess::First(PanelLayout {
                    items,
                    lanes: sizes.rows,
                    depth: sizes.depth,
                    width: tile.0,
                    depth_block,
                })
            }
        };
        let few_rows =
            sizes.rows <= 3 * kernels.max_rows() || sizes.depth.saturating_mul(sizes.columns) <= 1 << 14;
        let right = match sides.1 {
            OperandForm::Packed => GemmOperandAccess::Packed,
            OperandForm::InPlace { side_by_side: true, .. } if few_rows => GemmOperandAccess::Direct,
            _ => GemmOperandAccess::Task,
        };
        let work = [sizes.items, sizes.rows, sizes.columns, sizes.depth]
            .into_iter()
            .fold(1usize, |work, size| work.saturating_mul(size));
        let threads = team.worker_count().min(work / MIN_WORK_PER_THREAD).max(1);
        let task = task_size::<T>(&sizes, tile, depth_block, threads, buffered);
        let mut plan = Self { sizes, left, right, tile, depth_block, task, lanes: threads, buffered };
        plan.lanes = threads.min(plan.task_count());
        plan
    }

    /// How many tasks there are for one product, along the rows and along the columns.
    pub(super) fn tasks_per_item(&self) -> (usize, usize) {
        (self.sizes.rows.div_ceil(self.task.0), self.sizes.columns.div_ceil(self.task.1))
    }

    /// How many tasks there are.
    pub(super) fn task_count(&self) -> usize {
        let (down, across) = self.tasks_per_item();
        self.sizes.items * down * across
    }

    /// How many elements the packed left operand has.
    pub(super) fn packed_left_size(&self) -> usize {
        if let GemmOperandAccess::First(layout) = self.left { layout.element_count() } else { 0 }
    }

    /// How many elements of right panels a task keeps.
    pub(super) fn right_block_size(&self) -> usize {
        let columns = match self.right {
            GemmOperandAccess::Packed => 0,
            // The last panel is copied when it is not made of whole vectors, since only those can be read.
            GemmOperandAccess::Direct => self.tile.1,
            GemmOperandAccess::First(_) | GemmOperandAccess::Task => {
                self.task.1.next_multiple_of(self.tile.1)
            }
        };
        columns * self.depth_block
    }

    /// How many elements of output a task keeps.
    pub(super) fn buffer_size(&self) -> usize {
        if self.buffered { self.task.0 * self.task.1 } else { 0 }
    }

    /// How many bytes all of it takes.
    pub(super) fn scratch_size<T>(&self) -> u64 {
        let of_a_lane = self.right_block_size().saturating_add(self.buffer_size());
        let elements = self.packed_left_size().saturating_add(self.lanes.saturating_mul(of_a_lane));
        (elements.saturating_mul(size_of::<T>()) as u64).saturating_add(ALIGNMENT as u64)
    }
}

/// Rows and columns of a task.
fn task_size<T>(
    sizes: &GemmShape,
    tile: (usize, usize),
    depth_block: usize,
    threads: usize,
    buffered: bool,
) -> (usize, usize) {
    let panels = (sizes.rows.div_ceil(tile.0).max(1), sizes.columns.div_ceil(tile.1).max(1));
    let most_across = (RIGHT_BLOCK_BYTES / (depth_block.max(1) * tile.1 * size_of::<T>())).max(1);
    let most_down = if buffered { 12 } else { panels.0 };
    // Two tasks for each thread even out what else the machine does, and products of their own are tasks already.
    let wanted = if threads == 1 { 1 } else { (2 * threads).div_ceil(sizes.items) };
    let across = panels.1.div_ceil(most_across).max(wanted.min(panels.1)).max(1);
    let down = panels.0.div_ceil(most_down).max(wanted.div_ceil(across).min(panels.0)).max(1);
    (panels.0.div_ceil(down) * tile.0, panels.1.div_ceil(across) * tile.1)
}

/// Rows of a tile: as many as the micro-kernels have, but such that no tile is left with few.
pub(super) fn left_panel_width(rows: usize, most: usize) -> usize {
    rows.div_ceil(rows.div_ceil(most).max(1)).max(1)
}

/// Steps of each block of the depth, but for the last.
pub(super) fn depth_block_size<T>(depth: usize) -> usize {
    let most = PANEL_LANE_BYTES / size_of::<T>();
    depth.div_ceil(depth.div_ceil(most).max(1)).max(1)
}

/// The blocks of the depth. There is always one, since an empty sum is a sum too.
pub(super) fn depth_blocks(depth: usize, block: usize) -> impl Iterator<Item = Range<usize>> {
    (0..depth.div_ceil(block).max(1)).map(move |index| index * block..depth.min((index + 1) * block))
}
