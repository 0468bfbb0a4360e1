//! How an operand is divided into panels.

#![expect(unsafe_code, reason = "threads pack one panel each")]

use std::ops::Range;

use oarlock_cpu_base::thread_team::ThreadTeam;

use super::buffer::DisjointSlice;
use super::{GemmElement, PanelSource};

/// Bytes of one lane of a panel, 512 steps of f32. A left panel of 14 rows (AVX-512) takes 28 KiB and one of 6 rows (AVX2) 12
/// KiB, so it stays in a 32 KiB L1 while right panels stream past.
const PANEL_LANE_BYTES: usize = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelLayout {
    pub items: usize,
    pub lanes: usize,
    pub depth: usize,
    pub width: usize,
    /// Steps of a panel; those of the last block have fewer.
    pub depth_block: usize,
}

impl PanelLayout {
    pub fn element_count(&self) -> usize {
        let lanes = self.lanes.checked_next_multiple_of(self.width).unwrap_or(usize::MAX);
        self.items.saturating_mul(lanes).saturating_mul(self.depth)
    }

    pub fn panel_start(&self, item: usize, depth_start: usize, panel: usize, steps: usize) -> usize {
        let lanes = self.lanes.next_multiple_of(self.width);
        item % self.items * lanes * self.depth + depth_start * lanes + panel * steps * self.width
    }

    pub fn pack_operand<T: GemmElement>(
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

/// Steps in each block of the depth; the last block may have fewer.
pub(crate) fn depth_block_size<T>(depth: usize) -> usize {
    let most = PANEL_LANE_BYTES / size_of::<T>();
    depth.div_ceil(depth.div_ceil(most).max(1)).max(1)
}

/// The blocks of the depth. There is always at least one, because an empty sum still has to be written.
pub(crate) fn depth_blocks(depth: usize, block: usize) -> impl Iterator<Item = Range<usize>> {
    (0..depth.div_ceil(block).max(1)).map(move |index| index * block..depth.min((index + 1) * block))
}

/// Rows of a left panel: at most as many as a micro-kernel has, evened out so that no tile is left with only a few.
pub(crate) fn left_panel_width(rows: usize, most: usize) -> usize {
    rows.div_ceil(rows.div_ceil(most).max(1)).max(1)
}
