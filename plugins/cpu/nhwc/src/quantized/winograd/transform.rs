//! The transforms, for the points 0, ±1, ±2 and infinity.

use std::ops::Range;

use oarlock_cpu_base::isa::{SimdTarget, SimdTask};
use oarlock_cpu_base::simd::SIGN_BIT;

use super::{PAIR, QuantizedWinogradBlock};
use crate::channels_last::geometry::NhwcGeometry;

/// Outputs of a tile along each axis, and its points.
pub(super) const OUTPUTS: usize = 4;
pub(super) const POINTS: usize = OUTPUTS + 2;

/// Channels that are transformed at a time: 512 bits of inputs, or 256 where more would leave half of them empty, and 512 bits of outputs.
const INPUT_LANES: usize = 32;
const FEWER_INPUT_LANES: usize = 16;
const OUTPUT_LANES: usize = 16;

/// The transforms along one axis.
///
/// Unscaled, the transform of weights has the factors 1/4, 1/6 and 1/24. It is computed 24 times as large, except at infinity, where the
/// transform of outputs doubles the product instead: so all transformed weights fit into 16 bits.
pub(super) struct FourOutputs;

impl FourOutputs {
    /// The largest result that can be found from its remainder modulo 2³². Results are 24 · 24 = 64 · 9 times as large: a division by 9
    /// loses nothing modulo 2³², and the one by 64 loses six bits.
    pub(super) const MAX_RESULT: usize = (1 << 25) - 1;

    /// The inverse of 9 modulo 2³².
    const NINTH: i32 = 0x38e3_8e39;

    /// Transformed twice, inputs of 8 bits are between -8,160 and 17,340.
    #[inline(always)]
    fn transform_inputs([d0, d1, d2, d3, d4, d5]: [i16; POINTS]) -> [i16; POINTS] {
        let (even, odd) = (d4 - d2, 2 * (d3 - d1));
        let (even_one, odd_one) = (d4 - 4 * d2, d3 - 4 * d1);
        [
            4 * (d0 - d2) + even,
            even_one + odd_one,
            even_one - odd_one,
            even + odd,
            even - odd,
            d5 - d3 - 2 * odd,
        ]
    }

    /// Transformed twice, weights of 8 bits are between -18,432 and 18,432.
    #[inline(always)]
    pub(super) fn transform_weights([g0, g1, g2]: [i16; 3]) -> [i16; POINTS] {
        let (even, odd) = (g0 + 4 * g2, 2 * g1);
        [6 * g0, -4 * (g0 + g1 + g2), -4 * (g0 - g1 + g2), even + odd, even - odd, 12 * g2]
    }

    /// Results are 24 times as large along each axis, modulo 2³².
    #[inline(always)]
    fn transform_outputs([m0, m1, m2, m3, m4, m5]: [i32; POINTS]) -> [i32; OUTPUTS] {
        let (sum_one, difference_one) = (m1.wrapping_add(m2), m1.wrapping_sub(m2));
        let (sum_two, difference_two) = (m3.wrapping_add(m4), m3.wrapping_sub(m4));
        [
            m0.wrapping_add(sum_one).wrapping_add(sum_two),
            difference_one.wrapping_add(difference_two << 1),
            sum_one.wrapping_add(sum_two << 2),
            difference_one.wrapping_add(difference_two << 3).wrapping_add(m5 << 1),
        ]
    }

    /// The result itself, from a sum that is 576 times as large modulo 2³².
    #[inline(always)]
    fn unscale(sum: i32) -> i32 {
        sum.wrapping_mul(Self::NINTH) >> 6
    }
}

/// Runs a transform on each lane of some rows. Lanes are the innermost loop, over references and without closures of the standard
/// library, so that the compiler turns it into vectors.
#[inline(always)]
pub(super) fn transform_rows<T: Copy, U, const LANES: usize, const IN: usize, const OUT: usize>(
    transform: impl Fn([T; IN]) -> [U; OUT],
    rows: [&[T; LANES]; IN],
    results: [&mut [U; LANES]; OUT],
) where
    U: Copy,
{
    for lane in 0..LANES {
        let mut inputs = [rows[0][lane]; IN];
        for step in 1..IN {
            inputs[step] = rows[step][lane];
        }
        let values = transform(inputs);
        for step in 0..OUT {
            results[step][lane] = values[step];
        }
    }
}

/// Transforms the inputs of some tiles.
pub(super) struct TransformInputs<'a> {
    pub(super) block: &'a QuantizedWinogradBlock<'a>,
    pub(super) tiles: Range<usize>,
}

impl SimdTask for TransformInputs<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let channels = self.block.winograd.tiles.geometry().channels;
        for tile in self.tiles {
            if channels.div_ceil(FEWER_INPUT_LANES).is_multiple_of(2) {
                self.block.transform_input_tile::<INPUT_LANES>(tile);
            } else {
                self.block.transform_input_tile::<FEWER_INPUT_LANES>(tile);
            }
        }
    }
}

/// Transforms the sums of some tiles back and requantizes them.
pub(super) struct TransformOutputs<'a> {
    pub(super) block: &'a QuantizedWinogradBlock<'a>,
    pub(super) tiles: Range<usize>,
}

impl SimdTask for TransformOutputs<'_> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        for tile in self.tiles {
            self.block.transform_output_tile(tile);
        }
    }
}

impl QuantizedWinogradBlock<'_> {
    #[inline(always)]
    fn transform_input_tile<const LANES: usize>(&self, tile: usize) {
        let tiles = &self.winograd.tiles;
        let channels = tiles.geometry().channels;
        let windows: [[&[u8]; POINTS]; POINTS] = tiles.input_pixels(tile).map(|row| {
            row.map(|pixel| {
                pixel.map_or(self.padding, |pixel| &self.images.x[pixel * channels..][..channels])
            })
        });
        let sign_flip = if self.images.is_signed { SIGN_BIT } else { 0 };
        let layout = self.layouts[0];
        let target = self.inputs.wrapping_add((tile - self.first) * layout.row).cast::<[i16; PAIR]>();
        let mut columns = [[[0; LANES]; POINTS]; POINTS];
        let mut points = [[0; LANES]; POINTS];
        for first in (0..channels).step_by(LANES) {
            for (column, [p0, p1, p2, p3, p4, p5]) in columns.iter_mut().enumerate() {
                let mut buffers = [[sign_flip; LANES]; POINTS];
                let [b0, b1, b2, b3, b4, b5] = &mut buffers;
                let rows = [
                    whole_lanes(windows[0][column], first, b0),
                    whole_lanes(windows[1][column], first, b1),
                    whole_lanes(windows[2][column], first, b2),
                    whole_lanes(windows[3][column], first, b3),
                    whole_lanes(windows[4][column], first, b4),
                    whole_lanes(windows[5][column], first, b5),
                ];
                transform_rows(
                    |[d0, d1, d2, d3, d4, d5]: [u8; POINTS]| {
                        let widen = |byte: u8| i16::from(byte ^ sign_flip);
                        FourOutputs::transform_inputs([
                            widen(d0),
                            widen(d1),
                            widen(d2),
                            widen(d3),
                            widen(d4),
                            widen(d5),
                        ])
                    },
                    rows,
                    [p0, p1, p2, p3, p4, p5],
                );
            }
            let [c0, c1, c2, c3, c4, c5] = &columns;
            for row in 0..POINTS {
                let [p0, p1, p2, p3, p4, p5] = &mut points;
                transform_rows(
                    FourOutputs::transform_inputs,
                    [&c0[row], &c1[row], &c2[row], &c3[row], &c4[row], &c5[row]],
                    [p0, p1, p2, p3, p4, p5],
                );
                for (column, values) in points.iter().enumerate() {
                    let place = target.wrapping_add((row * POINTS + column) * layout.point + first / PAIR);
                    // SAFETY: rows are padded to whole groups of lanes, and only this thread accesses those of the tile.
                    unsafe { place.cast::<[i16; LANES]>().write(*values) };
                }
            }
        }
    }

    #[inline(always)]
    fn transform_output_tile(&self, tile: usize) {
        let tiles = &self.winograd.tiles;
        let NhwcGeometry { outputs, horizontal, .. } = *tiles.geometry();
        let (start, [rows, columns]) = tiles.output_pixels(tile);
        let layout = self.layouts[1];
        let source = self.sums.wrapping_add((tile - self.first) * layout.row);
        let requantize = *self.epilogue.requantize;
        let mut halves = [[[0; OUTPUT_LANES]; OUTPUTS]; POINTS];
        let mut results = [[0; OUTPUT_LANES]; OUTPUTS];
        for first in (0..outputs).step_by(OUTPUT_LANES) {
            let count = OUTPUT_LANES.min(outputs - first);
            for (column, [h0, h1, h2, h3]) in halves.iter_mut().enumerate() {
                let sums = |row: usize| {
                    let place = source.wrapping_add((row * POINTS + column) * layout.point + first);
                    // SAFETY: rows are padded to whole groups of lanes, and complete.
                    unsafe { &*place.cast::<[i32; OUTPUT_LANES]>() }
                };
                transform_rows(
                    FourOutputs::transform_outputs,
                    [sums(0), sums(1), sums(2), sums(3), sums(4), sums(5)],
                    [h0, h1, h2, h3],
                );
            }
            let mut initial = [0; OUTPUT_LANES];
            initial[..count].copy_from_slice(&self.starts[first..][..count]);
            let [h0, h1, h2, h3, h4, h5] = &halves;
            for row in 0..rows {
                let [r0, r1, r2, r3] = &mut results;
                transform_rows(
                    FourOutputs::transform_outputs,
                    [&h0[row], &h1[row], &h2[row], &h3[row], &h4[row], &h5[row]],
                    [r0, r1, r2, r3],
                );
                for (column, results) in results.iter_mut().enumerate().take(columns) {
                    for (result, start) in results.iter_mut().zip(&initial) {
                        *result = FourOutputs::unscale(*result).wrapping_add(*start);
                    }
                    let place = (start + row * horizontal.output + column) * outputs + first;
                    // SAFETY: these outputs belong to no other tile.
                    let bytes = unsafe { self.y.range_mut(place..place + count) };
                    self.epilogue.finish_pixel(&requantize, &results[..count], (first, place), bytes);
                }
            }
        }
    }
}

/// A group of channels of a pixel. If it is not whole, the buffer gets its channels.
#[inline(always)]
fn whole_lanes<'a, const LANES: usize>(
    pixel: &'a [u8],
    first: usize,
    buffer: &'a mut [u8; LANES],
) -> &'a [u8; LANES] {
    let rest = &pixel[first..];
    match rest.first_chunk() {
        Some(lanes) => lanes,
        None => {
            buffer[..rest.len()].copy_from_slice(rest);
            buffer
        }
    }
}
