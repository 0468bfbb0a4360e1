//! Weights packed for the micro-kernels.

#![expect(unsafe_code, reason = "numbers are kept in aligned lines")]

use std::ops::Range;

use oarlock_cpu_base::subnormals::flush_subnormal_weights;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_base::tile_block::TILE_ROW_BYTES;
use oarlock_cpu_gemm::{AlignedBuffer, DisjointSlice, LaneView, pack_panel};

use super::bf16_rounding::{pair_count, round_interleaved_rows, round_to_pairs};
use super::geometry::NhwcGeometry;
use super::tile::ConvMicroKernels;

/// Weight matrices of steps by output channels. The channels are divided into panels of whole vectors; the last panel may be
/// narrower and is padded with 0. A panel contains its channels for the first step, then for the second, and so on.
pub(super) struct WeightPanels {
    numbers: AlignedBuffer<f32>,
    layout: WeightPanelLayout,
}

/// The original weights: copies weights into the slice, from an index on.
pub(super) type OriginalWeights<'a> = &'a (dyn Fn(usize, &mut [f32]) + Sync);

#[derive(Clone, Copy)]
struct WeightPanelLayout {
    steps: usize,
    channels: usize,
    lanes: usize,
    width: usize,
}

impl WeightPanelLayout {
    fn matrix_size(&self) -> usize {
        // Only the last panel is padded, and only to whole vectors.
        self.steps * self.channels.next_multiple_of(self.lanes)
    }

    fn panel_start(&self, matrix: usize, channel: usize) -> usize {
        matrix * self.matrix_size() + channel * self.steps
    }
}

/// Steps that are packed at a time: the weights of a channel for these are one cache line.
const PACKED_STEPS: usize = 16;

impl WeightPanels {
    /// Creates panels and fills them by `fill`, which fills one panel of channels in all matrices per call.
    pub(super) fn new(
        team: &dyn ThreadTeam,
        sizes: (usize, usize, usize),
        fill: impl Fn(&mut PanelWriter<'_>) + Sync,
    ) -> Self {
        let (matrices, steps, _) = sizes;
        Self::fill_for_kernels(ConvMicroKernels::for_isa(team.isa()), team, sizes, |panel| {
            fill(panel);
            for matrix in 0..matrices {
                flush_subnormal_weights(team.isa(), panel.rows_mut(matrix, 0..steps).0);
            }
        })
    }

    /// Panels of pairs, padded with 0 to whole cache lines.
    fn from_pairs(
        team: &dyn ThreadTeam,
        (matrices, pairs, channels): (usize, usize, usize),
        fill: impl Fn(&mut PanelWriter<'_>) + Sync,
    ) -> Self {
        let kernels = ConvMicroKernels::for_pairs(team.isa());
        Self::fill_for_kernels(
            kernels,
            team,
            (matrices, pairs.next_multiple_of(TILE_ROW_BYTES / size_of::<f32>()), channels),
            fill,
        )
    }

    fn fill_for_kernels(
        kernels: &ConvMicroKernels,
        team: &dyn ThreadTeam,
        (matrices, steps, channels): (usize, usize, usize),
        fill: impl Fn(&mut PanelWriter<'_>) + Sync,
    ) -> Self {
        let layout =
            WeightPanelLayout { steps, channels, lanes: kernels.lanes, width: kernels.max_channels() };
        let mut numbers = AlignedBuffer::zeroed(matrices * layout.matrix_size());
        let target = DisjointSlice::new(&mut numbers);
        team.parallel_for_each(channels.div_ceil(layout.width), &|panel| {
            let first = panel * layout.width;
            let count = layout.width.min(channels - first);
            fill(&mut PanelWriter { first, count, layout, target: &target });
        });
        Self { numbers, layout }
    }

    /// The weights of a convolution [M, C / groups, kernel…]: a matrix for each group, whose steps are all channels of the first
    /// tap, then of the second, and so on.
    pub(super) fn from_groups(team: &dyn ThreadTeam, geometry: &NhwcGeometry, weights: &[f32]) -> Self {
        let (depth, taps) = (geometry.channels_per_group(), geometry.tap_count());
        let (outputs, steps) = (geometry.outputs_per_group(), depth * taps);
        Self::new(team, (geometry.groups, steps, outputs), |panel| {
            for group in 0..geometry.groups {
                let source = &weights[(group * outputs + panel.first) * steps..][..panel.count * steps];
                for begin in (0..steps).step_by(PACKED_STEPS) {
                    let mut places = [0; PACKED_STEPS];
                    let places = &mut places[..PACKED_STEPS.min(steps - begin)];
                    for (step, place) in (begin..).zip(&mut *places) {
                        // In ONNX, taps are the last dimensions; the kernels read all channels of a tap before the next tap.
                        *place = step % depth * taps + step / depth;
                    }
                    let (rows, width) = panel.rows_mut(group, begin..begin + places.len());
                    for (channel, source) in source.chunks_exact(steps).enumerate() {
                        for (row, place) in rows.chunks_exact_mut(width).zip(&*places) {
                            row[channel] = source[*place];
                        }
                    }
                }
            }
        })
    }

    /// Like [`Self::from_groups`], rounded to bf16: two steps become one step of pairs.
    pub(super) fn from_bf16_groups(team: &dyn ThreadTeam, geometry: &NhwcGeometry, weights: &[f32]) -> Self {
        let (depth, taps) = (geometry.channels_per_group(), geometry.tap_count());
        let (outputs, steps) = (geometry.outputs_per_group(), depth * taps);
        let (isa, pairs) = (team.isa(), pair_count(steps));
        Self::from_pairs(team, (geometry.groups, pairs, outputs), |panel| {
            // Weights are reordered before rounding, because a pair is two consecutive steps.
            let (mut in_order, mut rounded) = (vec![0.0; steps], vec![0.0; panel.count * pairs]);
            for group in 0..geometry.groups {
                let source = &weights[(group * outputs + panel.first) * steps..][..panel.count * steps];
                let channels = source.chunks_exact(steps.max(1)).zip(rounded.chunks_exact_mut(pairs.max(1)));
                for (source, rounded) in channels {
                    // With a single tap, the order is right already.
                    if taps == 1 {
                        round_to_pairs(isa, source, rounded);
                        continue;
                    }
                    for (channel, source) in source.chunks_exact(taps).enumerate() {
                        for (tap, weight) in source.iter().enumerate() {
                            in_order[tap * depth + channel] = *weight;
                        }
                    }
                    round_to_pairs(isa, &in_order, rounded);
                }
                let sizes = (panel.count, pairs);
                let (rows, width) = panel.rows_mut(group, 0..pairs);
                pack_panel(isa, LaneView { elements: &rounded, lane: pairs, step: 1 }, sizes, width, rows);
            }
        })
    }

    /// A matrix with `outputs` contiguous columns per step, rounded to bf16.
    pub(super) fn from_bf16_steps(team: &dyn ThreadTeam, outputs: usize, matrix: &[f32]) -> Self {
        let steps = matrix.len().checked_div(outputs).unwrap_or(0);
        let (isa, pairs) = (team.isa(), pair_count(steps));
        Self::from_pairs(team, (1, pairs, outputs), |panel| {
            let (first, count) = (panel.first, panel.count);
            let row = |step: usize| {
                // An odd last step is paired with zeros.
                if step < steps { &matrix[step * outputs + first..][..count] } else { &[] }
            };
            let (rows, width) = panel.rows_mut(0, 0..pairs);
            for (pair, target) in rows.chunks_exact_mut(width).enumerate() {
                round_interleaved_rows(isa, [row(2 * pair), row(2 * pair + 1)], &mut target[..count]);
            }
        })
    }

    pub(super) fn panel_pointer(&self, matrix: usize, channel: usize) -> *const f32 {
        self.numbers[self.layout.panel_start(matrix, channel)..].as_ptr()
    }

    pub(super) fn panel_width(&self) -> usize {
        self.layout.width
    }
}

/// Writes the same panel of all matrices.
pub(super) struct PanelWriter<'a> {
    /// The first channel, and the number of channels.
    pub(super) first: usize,
    pub(super) count: usize,
    layout: WeightPanelLayout,
    target: &'a DisjointSlice<'a, f32>,
}

impl PanelWriter<'_> {
    /// The weights of a matrix for some steps, and the width of each step. Weights past the last channel stay 0.
    pub(super) fn rows_mut(&mut self, matrix: usize, steps: Range<usize>) -> (&mut [f32], usize) {
        let width = self.count.next_multiple_of(self.layout.lanes);
        let start = self.layout.panel_start(matrix, self.first);
        // SAFETY: each panel is filled by one thread, and this borrows it.
        (unsafe { self.target.range_mut(start + steps.start * width..start + steps.end * width) }, width)
    }
}
