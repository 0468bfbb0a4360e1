//! Weights in the order in which they are read.

#![expect(unsafe_code, reason = "threads write panels of one slice")]

use super::simd::QUAD;
use super::tile::QuantizedMicroKernels;
use super::window_rows::WindowRows;
use crate::gemm::{AlignedBuffer, DisjointSlice, ThreadTeam};
use crate::isa::{SimdTarget, SimdTask};
use crate::kernels::channels_last::geometry::NhwcGeometry;
use crate::row_blocks::LINE_BYTES;

/// In what order the dimensions of weights are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WeightOrder {
    /// The outputs first, as a convolution has them: [M, C / groups, kernel…].
    OutputsFirst,
    /// The outputs last, as the right side of a product has them: [C, M].
    OutputsLast,
}

/// Weights as they are given.
#[derive(Clone, Copy)]
pub(super) struct WeightSource<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) order: WeightOrder,
    /// What is turned in each byte so that it is a signed number.
    pub(super) turned: u8,
}

/// Weights of a convolution, and the sum of those of each output.
///
/// For each group its channels are cut into panels of whole vectors, the last of which may be narrower and is filled up with
/// 0. A panel has, tap by tap, four inputs at a time, the four weights of each channel.
pub(crate) struct QuantizedPanels {
    weights: AlignedBuffer<i8>,
    pub(super) sums: Vec<i32>,
    layout: QuantizedPanelLayout,
}

/// Where each panel lies.
#[derive(Clone, Copy)]
struct QuantizedPanelLayout {
    /// Weights of a channel, with those that fill up, in whole lines.
    steps: usize,
    channels: usize,
    lanes: usize,
    width: usize,
}

impl QuantizedPanelLayout {
    fn group_size(&self) -> usize {
        self.steps * self.channels.next_multiple_of(self.lanes)
    }

    fn panel_start(&self, group: usize, channel: usize) -> usize {
        group * self.group_size() + channel * self.steps
    }
}

impl QuantizedPanels {
    pub(super) fn new(
        team: &dyn ThreadTeam,
        geometry: &NhwcGeometry,
        rows: &WindowRows,
        source: WeightSource<'_>,
    ) -> Self {
        let kernels = QuantizedMicroKernels::for_isa(team.isa());
        let (taps, depth) = rows.tap_shape();
        let steps = taps * depth.next_multiple_of(QUAD);
        let channels = geometry.outputs_per_group();
        let layout = QuantizedPanelLayout {
            steps: steps.next_multiple_of(LINE_BYTES),
            channels,
            lanes: kernels.lanes,
            width: kernels.max_channels(),
        };
        let mut packed = AlignedBuffer::zeroed(geometry.groups * layout.group_size());
        let mut sums = vec![0; geometry.outputs];
        let (target, target_sums) = (DisjointSlice::new(&mut packed), DisjointSlice::new(&mut sums));
        let panels = channels.div_ceil(layout.width);
        team.parallel_for_each(geometry.groups * panels, &|panel| {
            let (group, first) = (panel / panels, panel % panels * layout.width);
            let count = layout.width.min(channels - first);
            let (start, output) = (layout.panel_start(group, first), group * channels + first);
            // SAFETY: each panel is filled by one thread, and the outputs of no two are the same.
            let (target, sums) = unsafe {
                let size = steps * count.next_multiple_of(layout.lanes);
                (target.range_mut(start..start + size), target_sums.range_mut(output..output + count))
            };
            if let (WeightOrder::OutputsLast, 1) = (source.order, geometry.tap_count()) {
                let (outputs, turned) = (geometry.outputs, source.turned);
                team.isa().vectorize(ColumnPanel {
                    bytes: source.bytes,
                    turned,
                    outputs,
                    first: output,
                    sums,
                    target,
                });
            } else {
                fill_panel(geometry, (taps, depth), source, output, sums, target, layout.lanes);
            }
        });
        Self { weights: packed, sums, layout }
    }

    /// The panel that begins with a channel.
    pub(super) fn panel_pointer(&self, group: usize, channel: usize) -> *const i8 {
        self.weights[self.layout.panel_start(group, channel)..].as_ptr()
    }

    /// Channels of a panel.
    pub(super) fn panel_width(&self) -> usize {
        self.layout.width
    }
}

/// Fills the panel of some outputs of a product, whose weights lie side by side.
struct ColumnPanel<'a> {
    bytes: &'a [u8],
    turned: u8,
    outputs: usize,
    first: usize,
    sums: &'a mut [i32],
    target: &'a mut [i8],
}

impl SimdTask for ColumnPanel<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { bytes, turned, outputs, first, sums, target } = self;
        let (count, rows) = (sums.len(), bytes.len() / outputs.max(1));
        let (quads, _) = target.as_chunks_mut::<QUAD>();
        let width = quads.len() / rows.div_ceil(QUAD).max(1);
        for (index, quads) in quads.chunks_exact_mut(width.max(1)).enumerate() {
            // A row that is not there stays 0.
            let row = |step: usize| {
                let row = index * QUAD + step;
                if row < rows { &bytes[row * outputs + first..][..count] } else { &[] }
            };
            let [a, b, c, d] = [row(0), row(1), row(2), row(3)];
            if d.is_empty() {
                for (step, row) in [a, b, c, d].into_iter().enumerate() {
                    for ((quad, byte), sum) in quads.iter_mut().zip(row).zip(&mut *sums) {
                        quad[step] = (byte ^ turned).cast_signed();
                        *sum = sum.wrapping_add(quad[step].into());
                    }
                }
                continue;
            }
            let bytes = a.iter().zip(b).zip(c.iter().zip(d));
            for ((quad, ((a, b), (c, d))), sum) in quads.iter_mut().zip(bytes).zip(&mut *sums) {
                *quad = [*a, *b, *c, *d].map(|byte| (byte ^ turned).cast_signed());
                let of_quad: i16 = quad.iter().map(|weight| i16::from(*weight)).sum();
                *sum = sum.wrapping_add(of_quad.into());
            }
        }
    }
}

/// Fills the panel of some outputs.
fn fill_panel(
    geometry: &NhwcGeometry,
    (taps, depth): (usize, usize),
    WeightSource { bytes, order, turned }: WeightSource<'_>,
    first: usize,
    sums: &mut [i32],
    target: &mut [i8],
    lanes: usize,
) {
    let (channels, taps_of_window) = (geometry.channels_per_group(), geometry.tap_count());
    // How far the weights of two outputs are apart, and those of two channels.
    let (output_step, channel_step) = match order {
        WeightOrder::OutputsFirst => (channels * taps_of_window, taps_of_window),
        WeightOrder::OutputsLast => (1, geometry.outputs),
    };
    let row = QUAD * sums.len().next_multiple_of(lanes);
    for tap in 0..taps {
        for input in 0..depth {
            // Taps that are rows of a window have several of its steps side by side.
            let step = tap * depth + input;
            let place = step % channels * channel_step + step / channels;
            let quad = tap * depth.div_ceil(QUAD) + input / QUAD;
            let target = &mut target[quad * row..][..row];
            let (quads, _) = target.as_chunks_mut::<QUAD>();
            for ((output, quad), sum) in (first..).zip(quads).zip(&mut *sums) {
                let weight = (bytes[output * output_step + place] ^ turned).cast_signed();
                quad[input % QUAD] = weight;
                *sum = sum.wrapping_add(weight.into());
            }
        }
    }
}
