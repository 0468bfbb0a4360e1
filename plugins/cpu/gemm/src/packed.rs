//! Operands that are packed once and used in many calls.

use std::ops::Range;

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::thread_team::ThreadTeam;

use super::buffer::AlignedBuffer;
use super::panel_layout::{PanelLayout, depth_block_size, left_panel_width};
use super::{GemmElement, PanelSource};

/// An operand in panels, ordered by product, then block of the depth, then panel.
pub struct PackedOperand<T> {
    elements: AlignedBuffer<T>,
    layout: PanelLayout,
}

impl<T> PackedOperand<T> {
    pub fn panel_layout(&self) -> PanelLayout {
        self.layout
    }

    pub fn lane_count(&self) -> usize {
        self.layout.lanes
    }

    pub fn depth(&self) -> usize {
        self.layout.depth
    }
}

impl<T: GemmElement> PackedOperand<T> {
    pub fn pack_left(team: &dyn ThreadTeam, operand: &dyn PanelSource<T>, rows: usize, depth: usize) -> Self {
        Self::new(team, operand, rows, depth, left_panel_width(rows, T::micro_kernels(team.isa()).max_rows()))
    }

    pub fn pack_right(
        team: &dyn ThreadTeam,
        operand: &dyn PanelSource<T>,
        columns: usize,
        depth: usize,
    ) -> Self {
        Self::new(team, operand, columns, depth, Self::right_panel_width(team))
    }

    /// The width of a right panel. It depends on the instruction set, and so do packed operands.
    pub fn right_panel_width(team: &dyn ThreadTeam) -> usize {
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
        let weights = FlushedWeights { operand, isa: team.isa() };
        layout.pack_operand(&weights, team, team.worker_count(), &mut elements);
        Self { elements, layout }
    }

    pub fn elements(&self) -> &[T] {
        &self.elements
    }
}

/// Weights, without those that are slow to multiply and too small to matter.
struct FlushedWeights<'a, T> {
    operand: &'a dyn PanelSource<T>,
    isa: Isa,
}

impl<T: GemmElement> PanelSource<T> for FlushedWeights<'_, T> {
    fn item_count(&self) -> usize {
        self.operand.item_count()
    }

    fn pack_panel(
        &self,
        item: usize,
        depth: Range<usize>,
        lanes: Range<usize>,
        width: usize,
        panel: &mut [T],
    ) {
        self.operand.pack_panel(item, depth, lanes, width, panel);
        T::flush_weights(self.isa, panel);
    }
}
