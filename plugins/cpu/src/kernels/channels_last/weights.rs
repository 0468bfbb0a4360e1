//! Weights in the order in which micro-kernels read them.

#![expect(unsafe_code, reason = "numbers are kept in aligned lines")]

use std::ops::Range;

use super::geometry::Geometry;
use super::rounded::{pairs_of, round, round_rows};
use super::tile::Kernels;
use crate::gemm::{Aligned, Parts, Team, View, pack_panel};
use crate::strips::LINE;

/// Matrices of weights, steps by output channels. The channels are cut into panels of whole vectors, the last of which may be
/// narrower and is filled up with 0; a panel has its channels for the first step, then for the second and so on.
pub(super) struct Panels {
    numbers: Aligned<f32>,
    layout: Layout,
}

/// Weights as a model gives them: copies as many as there is room for, from one on.
pub(super) type GivenWeights<'a> = &'a (dyn Fn(usize, &mut [f32]) + Sync);

/// Where each panel lies.
#[derive(Clone, Copy)]
struct Layout {
    steps: usize,
    channels: usize,
    lanes: usize,
    width: usize,
}

impl Layout {
    fn size_of_matrix(&self) -> usize {
        self.steps * self.channels.next_multiple_of(self.lanes)
    }

    fn start(&self, matrix: usize, channel: usize) -> usize {
        matrix * self.size_of_matrix() + channel * self.steps
    }
}

/// Steps that are packed at a time: a line of them for each channel.
const STEPS: usize = 16;

impl Panels {
    /// Panels of matrices that `fill` fills: all steps of a panel of one matrix, and those of the other matrices for the same
    /// channels.
    pub(super) fn new(
        team: &dyn Team,
        sizes: (usize, usize, usize),
        fill: impl Fn(&mut Panel<'_>) + Sync,
    ) -> Self {
        Self::for_kernels(Kernels::of(team.isa()), team, sizes, fill)
    }

    /// The same of pairs, of which there are whole lines: those after the last are 0.
    fn of_pairs(
        team: &dyn Team,
        (matrices, pairs, channels): (usize, usize, usize),
        fill: impl Fn(&mut Panel<'_>) + Sync,
    ) -> Self {
        let kernels = Kernels::of_pairs(team.isa());
        Self::for_kernels(
            kernels,
            team,
            (matrices, pairs.next_multiple_of(LINE / size_of::<f32>()), channels),
            fill,
        )
    }

    fn for_kernels(
        kernels: &Kernels,
        team: &dyn Team,
        (matrices, steps, channels): (usize, usize, usize),
        fill: impl Fn(&mut Panel<'_>) + Sync,
    ) -> Self {
        let layout = Layout { steps, channels, lanes: kernels.lanes, width: kernels.channels() };
        let mut numbers = Aligned::zeroed(matrices * layout.size_of_matrix());
        let target = Parts::new(&mut numbers);
        team.each(channels.div_ceil(layout.width), &|panel| {
            let first = panel * layout.width;
            let count = layout.width.min(channels - first);
            fill(&mut Panel { first, count, layout, target: &target });
        });
        Self { numbers, layout }
    }

    /// The weights of a convolution [M, C / groups, kernel…]: a matrix for each group, whose steps are taps, each with
    /// all its
    /// channels.
    pub(super) fn of_groups(team: &dyn Team, geometry: &Geometry, weights: &[f32]) -> Self {
        let (depth, taps) = (geometry.channels_of_group(), geometry.taps());
        let (outputs, steps) = (geometry.outputs_of_group(), depth * taps);
        Self::new(team, (geometry.groups, steps, outputs), |panel| {
            for group in 0..geometry.groups {
                let source = &weights[(group * outputs + panel.first) * steps..][..panel.count * steps];
                for begin in (0..steps).step_by(STEPS) {
                    let mut places = [0; STEPS];
                    let places = &mut places[..STEPS.min(steps - begin)];
                    for (step, place) in (begin..).zip(&mut *places) {
                        *place = step % depth * taps + step / depth;
                    }
                    let (rows, width) = panel.rows(group, begin..begin + places.len());
                    for (channel, source) in source.chunks_exact(steps).enumerate() {
                        for (row, place) in rows.chunks_exact_mut(width).zip(&*places) {
                            row[channel] = source[*place];
                        }
                    }
                }
            }
        })
    }

    /// The same rounded to bf16: two steps are one of pairs.
    pub(super) fn of_rounded_groups(team: &dyn Team, geometry: &Geometry, weights: &[f32]) -> Self {
        let (depth, taps) = (geometry.channels_of_group(), geometry.taps());
        let (outputs, steps) = (geometry.outputs_of_group(), depth * taps);
        let (isa, pairs) = (team.isa(), pairs_of(steps));
        Self::of_pairs(team, (geometry.groups, pairs, outputs), |panel| {
            let (mut in_order, mut rounded) = (vec![0.0; steps], vec![0.0; panel.count * pairs]);
            for group in 0..geometry.groups {
                let source = &weights[(group * outputs + panel.first) * steps..][..panel.count * steps];
                let channels = source.chunks_exact(steps.max(1)).zip(rounded.chunks_exact_mut(pairs.max(1)));
                for (source, rounded) in channels {
                    if taps == 1 {
                        round(isa, source, rounded);
                        continue;
                    }
                    for (channel, source) in source.chunks_exact(taps).enumerate() {
                        for (tap, weight) in source.iter().enumerate() {
                            in_order[tap * depth + channel] = *weight;
                        }
                    }
                    round(isa, &in_order, rounded);
                }
                let sizes = (panel.count, pairs);
                let (rows, width) = panel.rows(group, 0..pairs);
                pack_panel(isa, View { elements: &rounded, lane: pairs, step: 1 }, sizes, width, rows);
            }
        })
    }

    /// A matrix, of which so many outputs of each step lie side by side, rounded to bf16.
    pub(super) fn of_rounded_steps(team: &dyn Team, outputs: usize, matrix: &[f32]) -> Self {
        let steps = matrix.len().checked_div(outputs).unwrap_or(0);
        let (isa, pairs) = (team.isa(), pairs_of(steps));
        Self::of_pairs(team, (1, pairs, outputs), |panel| {
            let (first, count) = (panel.first, panel.count);
            let row = |step: usize| {
                if step < steps { &matrix[step * outputs + first..][..count] } else { &[] }
            };
            let (rows, width) = panel.rows(0, 0..pairs);
            for (pair, target) in rows.chunks_exact_mut(width).enumerate() {
                round_rows(isa, [row(2 * pair), row(2 * pair + 1)], &mut target[..count]);
            }
        })
    }

    /// The panel that begins with a channel.
    pub(super) fn panel(&self, matrix: usize, channel: usize) -> *const f32 {
        self.numbers[self.layout.start(matrix, channel)..].as_ptr()
    }

    /// Channels of a panel.
    pub(super) fn width(&self) -> usize {
        self.layout.width
    }
}

/// The same panel of all matrices, to be filled.
pub(super) struct Panel<'a> {
    /// The first channel, and how many there are.
    pub(super) first: usize,
    pub(super) count: usize,
    layout: Layout,
    target: &'a Parts<'a, f32>,
}

impl Panel<'_> {
    /// The weights of a matrix and some steps, and how many each step has, of which those past the last channel stay 0.
    pub(super) fn rows(&mut self, matrix: usize, steps: Range<usize>) -> (&mut [f32], usize) {
        let width = self.count.next_multiple_of(self.layout.lanes);
        let start = self.layout.start(matrix, self.first);
        // SAFETY: each panel is filled by one thread, and this borrows it.
        (unsafe { self.target.part(start + steps.start * width..start + steps.end * width) }, width)
    }
}
