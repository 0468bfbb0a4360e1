//! Plans a product: which operands are packed, how the output is divided into tasks, and how much scratch memory is needed.

use oarlock_cpu_base::memory::ALIGNMENT;
use oarlock_cpu_base::thread_team::ThreadTeam;

use super::panel_layout::{PanelLayout, depth_block_size, left_panel_width};
use super::{GemmElement, GemmShape, OperandForm};

/// Bytes of right panels that a task works on at a time: 8 panels of 32 columns (AVX-512) or 16 of 16 (AVX2). They stay in an L2 of
/// 1 MiB, with room for the left panels.
const RIGHT_BLOCK_BYTES: usize = 512 * 1024;
/// Multiply-adds that make it worth waking another thread: 4,096 cycles at 32 a cycle, which is two AVX-512 FMA units on f32.
const MIN_WORK_PER_THREAD: usize = 1 << 17;

/// How an operand reaches the micro-kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GemmOperandAccess {
    /// Packed before the first call.
    Packed,
    /// Read in place.
    Direct,
    /// Packed as a whole before any task multiplies.
    First(PanelLayout),
    /// Each task packs the part that it needs.
    Task,
}

pub(crate) struct GemmPlan {
    pub sizes: GemmShape,
    pub left: GemmOperandAccess,
    pub right: GemmOperandAccess,
    /// Rows and columns of a tile.
    pub tile: (usize, usize),
    /// Steps of the depth in one panel.
    pub depth_block: usize,
    pub task: (usize, usize),
    /// Tasks that run at once, each with its own part of the scratch memory.
    pub lanes: usize,
    /// True if a task keeps its part of the output in its own scratch memory.
    pub buffered: bool,
}

impl GemmPlan {
    pub(crate) fn new<T: GemmElement>(
        team: &dyn ThreadTeam,
        sizes: GemmShape,
        sides: (OperandForm, OperandForm),
        buffered: bool,
    ) -> Self {
        let kernels = T::micro_kernels(team.isa());
        let tile = (left_panel_width(sizes.rows, kernels.max_rows()), kernels.max_columns());
        let depth_block = depth_block_size::<T>(sizes.depth);
        // Packing the left operand pays off only if each panel is reused for many columns.
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

    /// Tasks of one product, along the rows and along the columns.
    pub(crate) fn tasks_per_item(&self) -> (usize, usize) {
        (self.sizes.rows.div_ceil(self.task.0), self.sizes.columns.div_ceil(self.task.1))
    }

    pub(crate) fn task_count(&self) -> usize {
        let (down, across) = self.tasks_per_item();
        self.sizes.items * down * across
    }

    pub(crate) fn packed_left_size(&self) -> usize {
        if let GemmOperandAccess::First(layout) = self.left { layout.element_count() } else { 0 }
    }

    /// Elements of right panels that a task keeps.
    pub(crate) fn right_block_size(&self) -> usize {
        let columns = match self.right {
            GemmOperandAccess::Packed => 0,
            // Micro-kernels read whole vectors, so a ragged last panel is copied.
            GemmOperandAccess::Direct => self.tile.1,
            GemmOperandAccess::First(_) | GemmOperandAccess::Task => {
                self.task.1.next_multiple_of(self.tile.1)
            }
        };
        columns * self.depth_block
    }

    /// Output elements that a task keeps.
    pub(crate) fn buffer_size(&self) -> usize {
        if self.buffered { self.task.0 * self.task.1 } else { 0 }
    }

    /// The bytes of scratch memory that the plan needs.
    pub(crate) fn scratch_size<T>(&self) -> u64 {
        let of_a_lane = self.right_block_size().saturating_add(self.buffer_size());
        let elements = self.packed_left_size().saturating_add(self.lanes.saturating_mul(of_a_lane));
        (elements.saturating_mul(size_of::<T>()) as u64).saturating_add(ALIGNMENT as u64)
    }
}

fn task_size<T>(
    sizes: &GemmShape,
    tile: (usize, usize),
    depth_block: usize,
    threads: usize,
    buffered: bool,
) -> (usize, usize) {
    let panels = (sizes.rows.div_ceil(tile.0).max(1), sizes.columns.div_ceil(tile.1).max(1));
    let most_across = (RIGHT_BLOCK_BYTES / (depth_block.max(1) * tile.1 * size_of::<T>())).max(1);
    // A buffered task keeps its whole part of the output in scratch memory, so its height is bounded.
    let most_down = if buffered { 12 } else { panels.0 };
    // Two tasks per thread balance the load if other work runs on the machine. The products of a batch are separate tasks anyway.
    let wanted = if threads == 1 { 1 } else { (2 * threads).div_ceil(sizes.items) };
    let least_across = panels.1.div_ceil(most_across).max(1);
    let right_bytes = sizes.depth.saturating_mul(sizes.columns).saturating_mul(size_of::<T>());
    // Threads that share the rows read and write different rows, which other threads of other calls may have written likewise: less
    // moves between the caches of processors than if they shared the columns, and all read the left operand.
    let is_by_rows = least_across == 1
        && panels.0 >= 2 * wanted
        && (right_bytes <= RIGHT_BLOCK_BYTES || sizes.rows >= sizes.columns);
    let across = if is_by_rows { 1 } else { least_across.max(wanted.min(panels.1)) };
    let down = panels.0.div_ceil(most_down).max(wanted.div_ceil(across).min(panels.0)).max(1);
    (panels.0.div_ceil(down) * tile.0, panels.1.div_ceil(across) * tile.1)
}
