//! Weights packed for the micro-kernels.

#![expect(unsafe_code, reason = "threads write panels of one slice")]

use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_base::tile_block::TILE_ROW_BYTES;
use oarlock_cpu_gemm::{AlignedBuffer, DisjointSlice};

use super::tile::{PanelFormat, QuantizedMicroKernels};
use super::window_rows::WindowRows;
use crate::channels_last::geometry::NhwcGeometry;
use oarlock_cpu_base::simd::QUAD;

/// The order of dimensions of unpacked weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WeightOrder {
    /// Outputs first, as in a convolution: [M, C / groups, kernel…].
    OutputsFirst,
    /// Outputs last, as on the right side of a product: [C, M].
    OutputsLast,
}

/// Unpacked weights.
#[derive(Clone, Copy)]
pub struct WeightSource<'a> {
    pub bytes: &'a [u8],
    pub order: WeightOrder,
    /// The bits to flip in each byte to make it signed.
    pub sign_flip: u8,
}

/// Packed weights of a convolution, and the sum of each output's weights.
///
/// The channels of each group are divided into panels of whole vectors; the last panel may be narrower and is padded with 0. Tap by
/// tap, a panel contains the weights of each group of four inputs: four per channel. If weights are widened, two per channel and
/// then the other two.
pub struct QuantizedPanels {
    weights: AlignedBuffer<i8>,
    pub sums: Vec<i32>,
    layout: QuantizedPanelLayout,
}

#[derive(Clone, Copy)]
struct QuantizedPanelLayout {
    /// The number of weights per channel, padded to whole cache lines.
    steps: usize,
    channels: usize,
    format: PanelFormat,
    width: usize,
}

impl QuantizedPanelLayout {
    /// The bytes of a group.
    fn group_size(&self) -> usize {
        self.format.factor_bytes * self.steps * self.channels.next_multiple_of(self.format.lanes)
    }

    /// The first byte of a panel.
    fn panel_start(&self, group: usize, channel: usize) -> usize {
        group * self.group_size() + self.format.factor_bytes * channel * self.steps
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
        let format = kernels.panel_format;
        let (taps, depth) = rows.tap_shape();
        let steps = taps * depth.next_multiple_of(QUAD);
        let channels = geometry.outputs_per_group();
        let layout = QuantizedPanelLayout {
            steps: steps.next_multiple_of(TILE_ROW_BYTES),
            channels,
            format,
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
            // SAFETY: each panel is filled by one thread, and no two panels share outputs.
            let (target, sums) = unsafe {
                let size = format.factor_bytes * steps * count.next_multiple_of(format.lanes);
                (target.range_mut(start..start + size), target_sums.range_mut(output..output + count))
            };
            let mut narrow = Vec::new();
            let bytes = if format.factor_bytes == 1 {
                &mut *target
            } else {
                narrow.resize(target.len() / 2, 0);
                &mut narrow
            };
            // Here the weights of a step are contiguous, so they can be packed with vectors.
            if let (WeightOrder::OutputsLast, 1) = (source.order, geometry.tap_count()) {
                let (outputs, sign_flip) = (geometry.outputs, source.sign_flip);
                team.isa().vectorize(ColumnPanel {
                    bytes: source.bytes,
                    sign_flip,
                    outputs,
                    first: output,
                    sums,
                    target: bytes,
                });
            } else {
                fill_panel(geometry, (taps, depth), source, output, sums, bytes, format.lanes);
            }
            if format.factor_bytes != 1 {
                let row = QUAD * count.next_multiple_of(format.lanes);
                team.isa().vectorize(WidenedPanel { narrow: &narrow, row, target });
            }
        });
        Self { weights: packed, sums, layout }
    }

    pub fn panel_pointer(&self, group: usize, channel: usize) -> *const i8 {
        self.weights[self.layout.panel_start(group, channel)..].as_ptr()
    }

    /// The panels of a group, and the bytes of the weights of a channel: the panel of a channel begins at as many times these.
    pub(super) fn group_panels(&self, group: usize) -> (&[i8], usize) {
        let size = self.layout.group_size();
        (&self.weights[group * size..][..size], self.layout.format.factor_bytes * self.layout.steps)
    }

    pub fn panel_width(&self) -> usize {
        self.layout.width
    }
}

/// Fills the panel of some outputs of a product, whose weights are contiguous.
struct ColumnPanel<'a> {
    bytes: &'a [u8],
    sign_flip: u8,
    outputs: usize,
    first: usize,
    sums: &'a mut [i32],
    target: &'a mut [i8],
}

impl SimdTask for ColumnPanel<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { bytes, sign_flip, outputs, first, sums, target } = self;
        let (count, rows) = (sums.len(), bytes.len() / outputs.max(1));
        let (quads, _) = target.as_chunks_mut::<QUAD>();
        let width = quads.len() / rows.div_ceil(QUAD).max(1);
        for (index, quads) in quads.chunks_exact_mut(width.max(1)).enumerate() {
            // A missing row stays 0.
            let row = |step: usize| {
                let row = index * QUAD + step;
                if row < rows { &bytes[row * outputs + first..][..count] } else { &[] }
            };
            let [a, b, c, d] = [row(0), row(1), row(2), row(3)];
            if d.is_empty() {
                for (step, row) in [a, b, c, d].into_iter().enumerate() {
                    for ((quad, byte), sum) in quads.iter_mut().zip(row).zip(&mut *sums) {
                        quad[step] = (byte ^ sign_flip).cast_signed();
                        *sum = sum.wrapping_add(quad[step].into());
                    }
                }
                continue;
            }
            let bytes = a.iter().zip(b).zip(c.iter().zip(d));
            for ((quad, ((a, b), (c, d))), sum) in quads.iter_mut().zip(bytes).zip(&mut *sums) {
                *quad = [*a, *b, *c, *d].map(|byte| (byte ^ sign_flip).cast_signed());
                // The sum of four weights is at most 512 in magnitude. That fits in an `i16`, of which a register contains twice as
                // many as of `i32`.
                let of_quad: i16 = quad.iter().map(|weight| i16::from(*weight)).sum();
                *sum = sum.wrapping_add(of_quad.into());
            }
        }
    }
}

/// Widens a panel: the first two weights of each quad of a row become a row, and the other two the next row.
struct WidenedPanel<'a> {
    narrow: &'a [i8],
    row: usize,
    target: &'a mut [i8],
}

impl SimdTask for WidenedPanel<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        // The low byte comes first, and the high byte repeats the sign.
        let widen = |[low, high]: [i8; 2]| [low, low >> 7, high, high >> 7];
        for (quads, rows) in
            self.narrow.chunks_exact(self.row).zip(self.target.chunks_exact_mut(2 * self.row))
        {
            let (first, second) = rows.split_at_mut(self.row);
            let targets = first.as_chunks_mut::<QUAD>().0.iter_mut().zip(second.as_chunks_mut::<QUAD>().0);
            for (&[a, b, c, d], (first, second)) in quads.as_chunks::<QUAD>().0.iter().zip(targets) {
                (*first, *second) = (widen([a, b]), widen([c, d]));
            }
        }
    }
}

/// Fills the panel of some outputs.
fn fill_panel(
    geometry: &NhwcGeometry,
    (taps, depth): (usize, usize),
    WeightSource { bytes, order, sign_flip }: WeightSource<'_>,
    first: usize,
    sums: &mut [i32],
    target: &mut [i8],
    lanes: usize,
) {
    let (channels, taps_of_window) = (geometry.channels_per_group(), geometry.tap_count());
    // The distances between the weights of two outputs and of two channels.
    let (output_step, channel_step) = match order {
        WeightOrder::OutputsFirst => (channels * taps_of_window, taps_of_window),
        WeightOrder::OutputsLast => (1, geometry.outputs),
    };
    let row = QUAD * sums.len().next_multiple_of(lanes);
    for tap in 0..taps {
        for input in 0..depth {
            // A tap that is a row of the window consists of several adjacent steps.
            let step = tap * depth + input;
            let place = step % channels * channel_step + step / channels;
            let quad = tap * depth.div_ceil(QUAD) + input / QUAD;
            let target = &mut target[quad * row..][..row];
            let (quads, _) = target.as_chunks_mut::<QUAD>();
            for ((output, quad), sum) in (first..).zip(quads).zip(&mut *sums) {
                let weight = (bytes[output * output_step + place] ^ sign_flip).cast_signed();
                quad[input % QUAD] = weight;
                *sum = sum.wrapping_add(weight.into());
            }
        }
    }
}
