//! Operands that are packed once and used in many calls.

#![expect(unsafe_code, reason = "panels are numbers in raw memory, and threads pack one each")]

use super::buffer::{AlignedBuffer, DisjointSlice};
use super::plan::{depth_block_size, depth_blocks, left_panel_width};
use super::{GemmElement, PanelSource, ThreadTeam};

/// An operand in panels, ordered by product, then block of the depth, then panel.
pub(crate) struct PackedOperand<T> {
    elements: AlignedBuffer<T>,
    layout: PanelLayout,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PanelLayout {
    pub(super) items: usize,
    pub(super) lanes: usize,
    pub(super) depth: usize,
    pub(super) width: usize,
    /// Steps of a panel; those of the last block have fewer.
    pub(super) depth_block: usize,
}

impl PanelLayout {
    pub(super) fn element_count(&self) -> usize {
        let lanes = self.lanes.checked_next_multiple_of(self.width).unwrap_or(usize::MAX);
        self.items.saturating_mul(lanes).saturating_mul(self.depth)
    }

    pub(super) fn panel_start(&self, item: usize, depth_start: usize, panel: usize, steps: usize) -> usize {
        let lanes = self.lanes.next_multiple_of(self.width);
        item % self.items * lanes * self.depth + depth_start * lanes + panel * steps * self.width
    }

    pub(super) fn pack_operand<T: GemmElement>(
        &self,
        operand: &dyn PanelSource<T>,
        team: &dyn ThreadTeam,
        lanes: usize,
        target: &mut [T],
    ) {
        let panels = self.lanes.div_ceil(self.width);
        let all = self.items * panels;
        let target = DisjointSlice::new(target);
        let pack = |index: usize| {
            let (item, panel) = (index / panels, index % panels);
            let first = panel * self.width;
            for depth in depth_blocks(self.depth, self.depth_block) {
                let start = self.panel_start(item, depth.start, panel, depth.len());
                // SAFETY: no two panels overlap.
                let target = unsafe { target.range_mut(start..start + depth.len() * self.width) };
                operand.pack_panel(
                    item,
                    depth,
                    first..self.lanes.min(first + self.width),
                    self.width,
                    target,
                );
            }
        };
        let share = all.div_ceil(lanes.max(1));
        team.parallel_for_each(all.div_ceil(share.max(1)), &|lane| {
            (lane * share..all.min((lane + 1) * share)).for_each(pack);
        });
    }
}

impl<T> PackedOperand<T> {
    pub(super) fn panel_layout(&self) -> PanelLayout {
        self.layout
    }

    pub(crate) fn lane_count(&self) -> usize {
        self.layout.lanes
    }

    pub(crate) fn depth(&self) -> usize {
        self.layout.depth
    }
}

impl<T: GemmElement> PackedOperand<T> {
    pub(crate) fn pack_left(
        team: &dyn ThreadTeam,
        operand: &dyn PanelSource<T>,
        rows: usize,
        depth: usize,
    ) -> Self {
        Self::new(team, operand, rows, depth, left_panel_width(rows, T::micro_kernels(team.isa()).max_rows()))
    }

    pub(crate) fn pack_right(
        team: &dyn ThreadTeam,
        operand: &dyn PanelSource<T>,
        columns: usize,
        depth: usize,
    ) -> Self {
        Self::new(team, operand, columns, depth, Self::right_panel_width(team))
    }

    /// Lanes of a right panel. Packed operands depend on it, and with it on the instruction set.
    pub(crate) fn right_panel_width(team: &dyn ThreadTeam) -> usize {
        T::micro_kernels(team.isa()).max_columns()
    }

    fn new(
        team: &dyn ThreadTeam,
        operand: &dyn PanelSource<T>,
        lanes: usize,
        depth: usize,
        width: usize,
    ) -> Self {
        let depth_block = depth_block_size::<T>(depth);
        let layout = PanelLayout { items: operand.item_count(), lanes, depth, width, depth_block };
        let mut elements = AlignedBuffer::zeroed(layout.element_count());
        layout.pack_operand(operand, team, team.worker_count(), &mut elements);
        Self { elements, layout }
    }

    pub(super) fn elements(&self) -> &[T] {
        &self.elements
    }
}
