//! Computes the outputs of tiles with an infinity or NaN directly, as sums over their windows, so that it affects only the outputs
//! whose windows contain it.

use std::ops::Range;

use oarlock_cpu_base::isa::{SimdTarget, SimdTask};

use super::WinogradBlock;
use crate::channels_last::geometry::NhwcGeometry;
use oarlock_cpu_base::simd::MAX_LANES;

/// The outputs of the larger tile, four by four.
const MAX_OUTPUTS: usize = 16;

/// The inputs under the windows of a tile.
pub(super) struct ExactSums<'a> {
    block: &'a WinogradBlock<'a>,
    /// For each output of the tile, its inputs in the order of the weights; empty if the output is outside the image.
    windows: Vec<Vec<f32>>,
}

impl<'a> ExactSums<'a> {
    #[cold]
    #[inline(never)]
    pub(super) fn new(block: &'a WinogradBlock<'a>, tile: usize) -> Self {
        let NhwcGeometry { channels, vertical, horizontal, .. } = block.winograd.tiles.geometry();
        let count = block.winograd.outputs.output_count();
        let (image, top, left) = block.winograd.tiles.tile_position(tile);
        let windows = (0..count * count).map(|output| {
            let (row, column) = (top + output / count, left + output % count);
            if row >= vertical.output || column >= horizontal.output {
                return Vec::new();
            }
            let mut window = vec![0.0; channels * 9];
            for tap in 0..9 {
                let place =
                    vertical.input_position(row, tap / 3).zip(horizontal.input_position(column, tap % 3));
                let Some((y, x)) = place else { continue };
                let pixel =
                    &block.x[((image * vertical.input + y) * horizontal.input + x) * channels..][..*channels];
                for (to, value) in window[tap..].iter_mut().step_by(9).zip(pixel) {
                    *to = *value;
                }
            }
            window
        });
        Self { windows: windows.collect(), block }
    }

    /// The sums of at most a vector of channels. It is cold, so that the common path stays small.
    #[cold]
    #[inline(never)]
    pub(super) fn channel_sums(&self, channels: Range<usize>) -> [[f32; MAX_LANES]; MAX_OUTPUTS] {
        let mut sums = [[0.0; MAX_LANES]; MAX_OUTPUTS];
        let mut weights = vec![0.0; self.block.winograd.tiles.geometry().channels * 9];
        for (lane, channel) in channels.enumerate() {
            (self.block.given)(channel * weights.len(), &mut weights);
            for (sums, window) in sums.iter_mut().zip(&self.windows) {
                sums[lane] = self.block.isa.vectorize(RowDotProduct([window, &weights]));
            }
        }
        sums
    }
}

/// The dot product of two rows; 0 if one is empty.
struct RowDotProduct<'a>([&'a [f32]; 2]);

impl SimdTask for RowDotProduct<'_> {
    type Output = f32;

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) -> f32 {
        // One sum per lane, so that the loop vectorizes and has independent chains.
        let mut sums = [0.0f32; MAX_LANES];
        let [(one, one_rest), (other, other_rest)] = self.0.map(|row| row.as_chunks::<MAX_LANES>());
        for (one, other) in one.iter().zip(other) {
            for lane in 0..MAX_LANES {
                let (left, right) = (one[lane], other[lane]);
                sums[lane] =
                    if T::HAS_FMA { left.mul_add(right, sums[lane]) } else { sums[lane] + left * right };
            }
        }
        let rest = one_rest.iter().zip(other_rest).map(|(one, other)| one * other);
        sums.into_iter().chain(rest).sum()
    }
}
