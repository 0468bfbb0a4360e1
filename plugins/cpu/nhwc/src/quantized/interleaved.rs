//! Depthwise convolutions with instructions that multiply and add several pairs of factors per lane. Four adjacent pixels are
//! interleaved so that the four bytes of a channel are contiguous, and then multiplied with the weights of that channel: by VNNI, or
//! by AVX2 or SSE4.1 once they are widened to 16 bits. With a stride of one pixel, the next window reuses the interleaved pixels.
//!
//! Outside the image, a window reads pixels that consist of zero points.

#![expect(unsafe_code, reason = "pixels, weights and results are reached through pointers")]

#[cfg(arm_vectors)]
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;
#[cfg(any(target_arch = "x86_64", arm_vectors))]
use std::ptr;

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::DisjointSlice;

use super::byte_operands::QuantizedImages;
use super::requantize::RequantizeParameters;
use crate::channels_last::geometry::NhwcGeometry;
use oarlock_cpu_base::simd::{QUAD, SIGN_BIT};

/// Multiply-adds that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 18;
/// The maximum number of groups of four pixels in a window, so that the pointers fit in arrays on the stack.
const MAX_QUADS: usize = 64;

/// What the layout of weights depends on besides the window.
#[derive(Clone, Copy, Debug)]
struct InterleavedFormat {
    /// Channels of a block: vectors of bytes of three widths, or of fewer. The last block may have fewer channels.
    blocks: [usize; 3],
    /// Bytes of a weight: 2 if pixels are widened.
    factor_bytes: usize,
}

impl InterleavedFormat {
    /// `None` if there are no instructions for it.
    fn for_isa(isa: Isa) -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        return x86::format(isa);
        #[cfg(arm_vectors)]
        return arm::format(isa);
        #[cfg(not(any(target_arch = "x86_64", arm_vectors)))]
        {
            _ = isa;
            None
        }
    }

    /// The number of channels, padded to whole blocks.
    fn padded_channels(&self, channels: usize) -> usize {
        channels.next_multiple_of(self.blocks[2])
    }

    /// The first channel and the size of the block that contains a channel.
    fn channel_block(&self, channel: usize, channels: usize) -> (usize, usize) {
        let mut first = 0;
        loop {
            let size =
                self.blocks.into_iter().find(|size| first + size <= channels).unwrap_or(self.blocks[2]);
            if channel < first + size {
                return (first, size);
            }
            first += size;
        }
    }

    /// The position of a channel in the weights. Unpack instructions work within 16-byte lanes, so the first vector gets the first
    /// four channels of each lane, the second vector the next four, and so on.
    fn channel_position(&self, channel: usize, channels: usize) -> usize {
        let (first, size) = self.channel_block(channel, channels);
        let (lane, inner) = ((channel - first) / 16, (channel - first) % 16);
        first + inner / 4 * (size / 4) + lane * 4 + inner % 4
    }
}

/// How a depthwise convolution groups its windows and pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct InterleavedDepthwise {
    isa: Isa,
    format: InterleavedFormat,
    /// Windows that are computed at a time, one pixel apart.
    windows: usize,
    /// The groups of four pixels in a line of these windows, and in all lines.
    quads_of_line: usize,
    quads: usize,
}

/// Packed weights, and the sum of each channel's weights.
///
/// The dimensions, slowest first, are: block of channels, group of four pixels, window, channel, pixel in the group. The channels
/// of a block are in the order that interleaving produces.
pub(super) struct InterleavedWeights {
    bytes: Vec<i8>,
    pub(super) sums: Vec<i32>,
}

impl InterleavedDepthwise {
    /// `None` if the instruction set or the size of the window does not permit it.
    pub(super) fn new(isa: Isa, geometry: &NhwcGeometry) -> Option<Self> {
        let NhwcGeometry { vertical, horizontal, .. } = geometry;
        let format = InterleavedFormat::for_isa(isa)?;
        // Two windows that overlap in all but one pixel share the interleaving, which takes as long as the products.
        let windows =
            if horizontal.stride == 1 && horizontal.dilation == 1 && horizontal.output > 1 { 2 } else { 1 };
        let quads_of_line = horizontal.kernel.checked_add(windows - 1)?.div_ceil(QUAD);
        let quads = quads_of_line.checked_mul(vertical.kernel)?;
        (quads <= MAX_QUADS).then_some(Self { isa, format, windows, quads_of_line, quads })
    }

    /// Everything that the order of the weights depends on besides the window and the instruction set.
    pub(super) fn weights_key(&self) -> (usize, usize) {
        (self.windows, self.quads)
    }

    /// Reorders one value per channel into the order of the weights.
    pub(super) fn reorder_channels<T: Copy + Default>(&self, of_channels: &[T]) -> Vec<T> {
        let channels = of_channels.len();
        let mut ordered = vec![T::default(); self.format.padded_channels(channels)];
        for (channel, value) in of_channels.iter().enumerate() {
            ordered[self.format.channel_position(channel, channels)] = *value;
        }
        ordered
    }

    /// Packs weights [C, 1, kernel…].
    pub(super) fn pack_weights(&self, geometry: &NhwcGeometry, weights: &[i8]) -> InterleavedWeights {
        let InterleavedFormat { factor_bytes, .. } = self.format;
        let (channels, kernel) = (geometry.channels, geometry.horizontal.kernel);
        let of_channel = self.bytes_of_channel();
        let mut bytes = vec![0; self.format.padded_channels(channels) * of_channel];
        let taps = geometry.tap_count().max(1);
        let sums = weights.chunks_exact(taps).map(|taps| taps.iter().map(|tap| i32::from(*tap)).sum());
        for (channel, weights) in weights.chunks_exact(taps).enumerate() {
            let (first, size) = self.format.channel_block(channel, channels);
            let position = self.format.channel_position(channel, channels) - first;
            // The vector of the block that has the channel, and its lane.
            let lanes = size / QUAD;
            let (vector, lane) = (position / lanes, position % lanes);
            for (tap, weight) in weights.iter().enumerate() {
                for window in 0..self.windows {
                    // The second window is one pixel further along the same pixels, so its weights are shifted by one byte.
                    let pixel = tap % kernel + window;
                    let quad = tap / kernel * self.quads_of_line + pixel / QUAD;
                    // In the order in which the kernel reads, so that it needs only one pointer.
                    let place = ((quad * self.windows + window) * QUAD + vector) * size * factor_bytes;
                    let target = &mut bytes[first * of_channel + place..][..size * factor_bytes];
                    if factor_bytes == 1 {
                        target[lane * QUAD + pixel % QUAD] = *weight;
                    } else {
                        // First the even pixels of all lanes, then the odd ones; the low byte first, then the one with the sign.
                        let half = pixel % 2 * size + lane * QUAD + pixel % QUAD / 2 * factor_bytes;
                        target[half..][..factor_bytes]
                            .copy_from_slice(&i16::from(*weight).to_le_bytes().map(u8::cast_signed));
                    }
                }
            }
        }
        InterleavedWeights { bytes, sums: sums.collect() }
    }

    /// The zero point of images as the kernels read them, given the one of their dtype.
    pub(super) fn zero_as_read(&self, zero: i32, is_signed: bool) -> i32 {
        // Dot products of ARM take signed bytes, unless the processor also has some of unsigned with signed ones.
        let takes_signed = cfg!(arm_vectors) && (is_signed || self.isa < Isa::I8mm);
        let offset = i32::from(SIGN_BIT);
        match (takes_signed, is_signed) {
            (true, false) => zero.wrapping_sub(offset),
            (false, true) => zero.wrapping_add(offset),
            _ => zero,
        }
    }

    /// The bytes of the weights of a channel.
    fn bytes_of_channel(&self) -> usize {
        self.quads * self.windows * QUAD * self.format.factor_bytes
    }
}

/// The operands besides images and output.
pub(super) struct InterleavedOperands<'a> {
    pub(super) weights: &'a InterleavedWeights,
    /// The initial value of each channel's sums, and its factor, in the order of the weights.
    pub(super) starts: &'a [i32],
    pub(super) factors: &'a [f32],
    /// A pixel that consists of zero points.
    pub(super) padding: &'a [u8],
    #[cfg_attr(
        not(any(target_arch = "x86_64", arm_vectors)),
        expect(dead_code, reason = "there are no instructions for it")
    )]
    pub(super) requantize: &'a RequantizeParameters,
}

impl InterleavedDepthwise {
    pub(super) fn compute(
        &self,
        team: &dyn ThreadTeam,
        geometry: &NhwcGeometry,
        images: &QuantizedImages<'_>,
        operands: &InterleavedOperands<'_>,
        y: &mut [u8],
    ) {
        let rows = geometry.images * geometry.vertical.output;
        let row_size = geometry.horizontal.output * geometry.channels;
        let work = row_size.saturating_mul(geometry.tap_count()).saturating_mul(rows);
        let threads = team.worker_count().min(work / MIN_WORK_PER_THREAD).max(1);
        let inputs =
            geometry.images * geometry.vertical.input * geometry.horizontal.input * geometry.channels;
        let ordered = self.format.padded_channels(geometry.channels);
        assert!(
            images.x.len() == inputs
                && y.len() == rows * row_size
                && operands.padding.len() >= geometry.channels
                && operands.starts.len().min(operands.factors.len()) >= ordered
                && operands.weights.bytes.len() >= ordered * self.bytes_of_channel(),
            "operands of the sizes of the convolution"
        );
        // A few pieces per thread balance the load if other work runs on the machine.
        let share = rows.div_ceil(if threads == 1 { 1 } else { 4 * threads }).max(1);
        let y = DisjointSlice::new(y);
        team.parallel_for_each(rows.div_ceil(share), &|piece| {
            let rows = piece * share..rows.min((piece + 1) * share);
            // SAFETY: no two pieces share rows.
            let y = unsafe { y.range_mut(rows.start * row_size..rows.end * row_size) };
            let job = InterleavedJob { depthwise: self, geometry, x: images.x, operands, rows, y };
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the operands have the sizes of the convolution.
            unsafe {
                x86::compute_rows(job, images.is_signed);
            }
            #[cfg(arm_vectors)]
            // SAFETY: as above.
            unsafe {
                arm::compute_rows(job, images.is_signed);
            }
            #[cfg(not(any(target_arch = "x86_64", arm_vectors)))]
            {
                _ = job;
            }
        });
    }
}

#[cfg_attr(
    not(any(target_arch = "x86_64", arm_vectors)),
    expect(dead_code, reason = "there are no instructions for it")
)]
struct InterleavedJob<'a> {
    depthwise: &'a InterleavedDepthwise,
    geometry: &'a NhwcGeometry,
    x: &'a [u8],
    operands: &'a InterleavedOperands<'a>,
    rows: Range<usize>,
    y: &'a mut [u8],
}

#[cfg(any(target_arch = "x86_64", arm_vectors))]
impl InterleavedJob<'_> {
    /// Writes the addresses of the image lines that a row of the output reads; null for padding.
    fn fill_line_pointers(&self, row: usize, lines: &mut [*const u8]) {
        let NhwcGeometry { channels, vertical, horizontal, .. } = *self.geometry;
        let (image, window) = (row / vertical.output, row % vertical.output);
        for (step, line) in lines.iter_mut().enumerate() {
            // Above the image this wraps to a huge number, so one comparison tests both borders.
            let top = (window * vertical.stride + step * vertical.dilation).wrapping_sub(vertical.pad.0);
            let place = (image * vertical.input).wrapping_add(top).wrapping_mul(horizontal.input * channels);
            *line = if top < vertical.input { self.x.as_ptr().wrapping_add(place) } else { ptr::null() };
        }
    }

    /// The first column under the windows. Positions before the line wrap to huge numbers.
    fn window_start(&self, column: usize) -> usize {
        let horizontal = self.geometry.horizontal;
        (column * horizontal.stride).wrapping_sub(horizontal.pad.0)
    }

    /// The number of pixels in a line that windows read that are computed together.
    fn window_reach(&self) -> usize {
        self.geometry.horizontal.kernel + self.depthwise.windows - 1
    }

    /// True if the windows at this column lie inside their lines.
    #[inline(always)]
    fn are_inside(&self, column: usize) -> bool {
        let (horizontal, left) = (self.geometry.horizontal, self.window_start(column));
        left < horizontal.input && left + (self.window_reach() - 1) * horizontal.dilation < horizontal.input
    }

    /// Writes the addresses of the pixels under these windows, and the distances to the corresponding pixels under the next
    /// windows.
    fn fill_pixel_pointers(
        &self,
        lines: &[*const u8],
        column: usize,
        pixels: &mut [[*const u8; QUAD]],
        steps: &mut [[usize; QUAD]],
    ) {
        let NhwcGeometry { channels, horizontal, .. } = *self.geometry;
        let (left, reach, padding) =
            (self.window_start(column), self.window_reach(), self.operands.padding.as_ptr());
        let step = self.depthwise.windows * horizontal.stride * channels;
        let mut quad = 0;
        for line in lines {
            for index in 0..QUAD * self.depthwise.quads_of_line {
                let place = left.wrapping_add(index * horizontal.dilation);
                // Beyond the reach the weights are 0, but the pixel must be readable.
                let is_there = place < horizontal.input && !line.is_null() && index < reach;
                let inside = line.wrapping_add(place.wrapping_mul(channels));
                pixels[quad + index / QUAD][index % QUAD] = if is_there { inside } else { padding };
                // Padding is the same pixel for every window, so its pointer does not move.
                steps[quad + index / QUAD][index % QUAD] = if is_there { step } else { 0 };
            }
            quad += self.depthwise.quads_of_line;
        }
    }
}
