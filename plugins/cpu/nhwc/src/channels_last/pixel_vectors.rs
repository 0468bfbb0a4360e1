//! Convolutions with few output channels, computed in vectors of pixels: of a vector of channels, most lanes would be empty. The
//! lines under a window are transposed first, so that adjacent pixels of a channel are adjacent in memory.

#![expect(unsafe_code, reason = "vectors are loaded and stored through pointers")]

use std::ops::Range;

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::rows::plane_transpose::PlaneTranspose;
use oarlock_cpu_base::simd::{F32Vector, F32VectorTask, run_with_vectors};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::{AlignedBuffer, DisjointSlice, TaskQueue};

use super::depthwise::steps_inside;
use super::epilogue::{ConvEpilogue, ResidualSource};
use super::geometry::NhwcGeometry;
use super::tile::ConvMicroKernels;

/// The maximum number of output channels.
const MAX_OUTPUTS: usize = 8;
/// The maximum number of lanes of a vector, and of vectors that are computed at once.
const MAX_LANES: usize = 16;
const MAX_VECTORS: usize = 8;
/// Room for the results of a block: `MAX_VECTORS` of one output, or half as many of two, and so on.
const BLOCK_ELEMENTS: usize = MAX_OUTPUTS * 2 * MAX_LANES;
/// Multiply-adds that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 17;
/// Bytes of transposed lines that a thread works on at a time, so that they stay in L2.
const LINES_BYTES: usize = 128 * 1024;
/// Limit on the elements of the transposed lines: windows with wide gaps span more lines than they read.
const MAX_LINE_ELEMENTS: usize = 1 << 21;
/// The cost, in multiplications of a vector, of transposing an input or a result.
const TRANSPOSE_COST: f64 = 1.0;
/// What other algorithms must cost more, since their costs are only estimated.
const MIN_GAIN: f64 = 1.25;

/// A convolution in vectors of pixels.
pub(super) struct PixelVectorConv {
    geometry: NhwcGeometry,
    threads: usize,
    /// The output pixels of a row that are computed before the next row, and the lines of the input that their windows span.
    strip: usize,
    span: usize,
    /// The elements of a transposed line of one channel.
    line: usize,
}

impl PixelVectorConv {
    /// The convolution, if vectors of pixels have less work than vectors of channels.
    pub(super) fn if_profitable(team: &dyn ThreadTeam, geometry: &NhwcGeometry) -> Option<Self> {
        if !Self::is_supported(geometry) {
            return None;
        }
        let lanes = ConvMicroKernels::for_isa(team.isa()).lanes as f64;
        let NhwcGeometry { channels, outputs, vertical, horizontal, .. } = *geometry;
        let shortest_line = horizontal.extent().saturating_add(2 * MAX_VECTORS * MAX_LANES);
        let lines = [vertical.extent(), channels, horizontal.stride, shortest_line];
        if lines.into_iter().fold(1, usize::saturating_mul) > MAX_LINE_ELEMENTS {
            return None;
        }
        let (channels, outputs) = (channels as f64, outputs as f64);
        // Multiplications of a vector for each output pixel.
        let by_channels = geometry.tap_count() as f64 * channels;
        let inputs = (vertical.stride.min(vertical.kernel) * horizontal.stride) as f64 * channels;
        let fill = {
            let pixels = horizontal.output as f64;
            pixels / ((pixels / lanes).ceil() * lanes)
        };
        let by_pixels = by_channels * outputs / (lanes * fill) + (inputs + outputs) * TRANSPOSE_COST;
        (by_pixels * MIN_GAIN < by_channels).then(|| Self::new(team, geometry))
    }

    pub(super) fn is_supported(geometry: &NhwcGeometry) -> bool {
        let sizes = [geometry.channels, geometry.tap_count(), geometry.output_pixels()];
        geometry.groups == 1 && (1..=MAX_OUTPUTS).contains(&geometry.outputs) && !sizes.contains(&0)
    }

    pub(super) fn new(team: &dyn ThreadTeam, geometry: &NhwcGeometry) -> Self {
        let NhwcGeometry { images, channels, outputs, vertical, horizontal, .. } = *geometry;
        let span = (vertical.kernel - 1) * vertical.dilation + 1;
        let reach = (horizontal.kernel - 1) * horizontal.dilation;
        let elements = LINES_BYTES / size_of::<f32>() / (span * channels * horizontal.stride).max(1);
        let block = MAX_LANES * 2;
        let strip = elements.saturating_sub(reach / horizontal.stride) / block * block;
        let strip = strip.max(block).min(horizontal.output.next_multiple_of(block));
        // The last vectors of a strip are whole ones, whose lanes past the last pixel read zeros.
        let line = strip + MAX_VECTORS * MAX_LANES + reach / horizontal.stride + 1;
        let work = [images, vertical.output, horizontal.output, channels, outputs, geometry.tap_count()];
        let work = work.into_iter().fold(1usize, usize::saturating_mul);
        let threads = team.worker_count().min(work / MIN_WORK_PER_THREAD).max(1);
        // An odd number of cache lines, so that the channels of a pixel do not compete for the same L1 sets.
        let line = line.div_ceil(MAX_LANES);
        Self { geometry: geometry.clone(), threads, strip, span, line: (line | 1) * MAX_LANES }
    }

    /// The weights of each step of a window row, then of each channel, for all outputs.
    pub(super) fn pack_weights(&self, weights: &[f32]) -> AlignedBuffer<f32> {
        let NhwcGeometry { channels, outputs, .. } = self.geometry;
        let taps = self.geometry.tap_count();
        let mut packed = AlignedBuffer::zeroed(weights.len());
        for (output, weights) in weights.chunks_exact(channels * taps).enumerate() {
            for (channel, weights) in weights.chunks_exact(taps).enumerate() {
                for (tap, weight) in weights.iter().enumerate() {
                    packed[(tap * channels + channel) * outputs + output] = *weight;
                }
            }
        }
        packed
    }

    /// The elements of the transposed lines of one input line: one for each phase of the stride and each channel.
    fn line_elements(&self) -> usize {
        self.geometry.horizontal.stride * self.geometry.channels * self.line
    }

    /// The elements that a thread needs: transposed lines, and the results of a block, transposed and not.
    fn thread_elements(&self) -> usize {
        self.span * self.line_elements() + 2 * BLOCK_ELEMENTS
    }

    /// The elements of scratch memory.
    pub(super) fn scratch_size(&self) -> usize {
        self.threads * self.thread_elements()
    }

    pub(super) fn compute(
        &self,
        team: &dyn ThreadTeam,
        (x, weights): (&[f32], &AlignedBuffer<f32>),
        epilogue: &ConvEpilogue<'_>,
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let rows = self.geometry.images * self.geometry.vertical.output;
        // Each piece transposes all lines of its first windows, so there are few pieces.
        let share = rows.div_ceil(if self.threads == 1 { 1 } else { 2 * self.threads });
        let tasks = TaskQueue::new(rows.div_ceil(share), self.threads);
        let row_size = self.geometry.horizontal.output * self.geometry.outputs;
        let (y, scratch) = (DisjointSlice::new(y), DisjointSlice::new(scratch));
        team.parallel_for_each(self.threads, &|lane| {
            let part = lane * self.thread_elements()..(lane + 1) * self.thread_elements();
            // SAFETY: each lane has its own part.
            let (lines, results) =
                unsafe { scratch.range_mut(part) }.split_at_mut(self.span * self.line_elements());
            for task in tasks.tasks_for_worker(lane) {
                let rows = task * share..rows.min((task + 1) * share);
                // SAFETY: no two tasks share rows.
                let y = unsafe { y.range_mut(rows.start * row_size..rows.end * row_size) };
                let job = PixelVectorRows {
                    isa: team.isa(),
                    conv: self,
                    x,
                    weights,
                    epilogue,
                    rows,
                    y,
                    lines,
                    results,
                };
                run_with_vectors(team.isa(), job);
            }
        });
    }
}

/// Some rows of the output.
struct PixelVectorRows<'a> {
    isa: Isa,
    conv: &'a PixelVectorConv,
    x: &'a [f32],
    weights: &'a AlignedBuffer<f32>,
    epilogue: &'a ConvEpilogue<'a>,
    rows: Range<usize>,
    y: &'a mut [f32],
    /// As many transposed lines as a window spans, each at its index modulo their number.
    lines: &'a mut [f32],
    /// The results of a block.
    results: &'a mut [f32],
}

impl F32VectorTask for PixelVectorRows<'_> {
    #[inline(always)]
    unsafe fn run_on_vectors<V: F32Vector>(self) {
        // The more outputs, the fewer vectors have their sums in registers: AVX2 has 16.
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.conv.geometry.outputs {
                1 => self.compute_rows::<V, 1, 8, 2>(),
                2 => self.compute_rows::<V, 2, 4, 2>(),
                3 => self.compute_rows::<V, 3, 3, 1>(),
                4 => self.compute_rows::<V, 4, 3, 1>(),
                5 => self.compute_rows::<V, 5, 2, 1>(),
                6 => self.compute_rows::<V, 6, 2, 1>(),
                7 => self.compute_rows::<V, 7, 2, 1>(),
                _ => self.compute_rows::<V, 8, 2, 1>(),
            }
        }
    }
}

impl PixelVectorRows<'_> {
    /// Computes the rows, `MANY` vectors at once and the rest `FEW` at once.
    #[inline(always)]
    unsafe fn compute_rows<V: F32Vector, const OUTPUTS: usize, const MANY: usize, const FEW: usize>(
        mut self,
    ) {
        let NhwcGeometry { vertical, horizontal, .. } = self.conv.geometry;
        for start in (0..horizontal.output).step_by(self.conv.strip) {
            let strip = start..horizontal.output.min(start + self.conv.strip);
            // The padding beside an image is the same for all lines.
            self.lines.fill(0.0);
            let mut transposed_end = 0;
            for row in self.rows.clone() {
                let (image, window) = (row / vertical.output, row % vertical.output);
                let steps = steps_inside(&vertical, window);
                let line_of = |step: usize| {
                    image * vertical.input + window * vertical.stride + step * vertical.dilation
                        - vertical.pad.0
                };
                if !steps.is_empty() {
                    // Windows move down, so each line is transposed once.
                    let end = line_of(steps.end - 1) + 1;
                    for line in transposed_end.max(line_of(steps.start))..end {
                        self.transpose_line(line, &strip);
                    }
                    transposed_end = end;
                }
                let mut pixel = strip.start;
                while pixel < strip.end {
                    let is_whole = strip.end - pixel >= MANY * V::LANES;
                    let count = (strip.end - pixel).min(if is_whole { MANY } else { FEW } * V::LANES);
                    let first_line = if steps.is_empty() { 0 } else { line_of(steps.start) };
                    let block = PixelBlock {
                        row,
                        pixel,
                        count,
                        shift: pixel - strip.start,
                        steps: steps.clone(),
                        first_line,
                    };
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        if is_whole {
                            self.compute_block::<V, OUTPUTS, MANY>(&block);
                        } else {
                            self.compute_block::<V, OUTPUTS, FEW>(&block);
                        }
                    }
                    pixel += count;
                }
                if self.epilogue.has_remaining() {
                    let place = (row - self.rows.start) * horizontal.output;
                    let results = (place + strip.start) * OUTPUTS..(place + strip.end) * OUTPUTS;
                    self.epilogue.apply_remaining(self.isa, &mut self.y[results]);
                }
            }
        }
    }

    /// Transposes the part of an input line that is under the windows of a strip of pixels.
    #[inline(always)]
    fn transpose_line(&mut self, line: usize, strip: &Range<usize>) {
        let NhwcGeometry { channels, horizontal, .. } = self.conv.geometry;
        let input = &self.x[line * horizontal.input * channels..][..horizontal.input * channels];
        let size = self.conv.line_elements();
        let lines = &mut self.lines[line % self.conv.span * size..][..size];
        let reach = (horizontal.kernel - 1) * horizontal.dilation / horizontal.stride + 1;
        let phases = lines.chunks_exact_mut(channels * self.conv.line).enumerate();
        for (phase, out) in phases {
            // Place `p` of a transposed line has column (strip.start + p) · stride + phase − pad of the input.
            let first = (horizontal.pad.0.saturating_sub(phase)).div_ceil(horizontal.stride).max(strip.start);
            let last =
                (horizontal.input + horizontal.pad.0).saturating_sub(phase).div_ceil(horizontal.stride);
            let end = last.min(strip.end + reach);
            if first >= end {
                continue;
            }
            let column = first * horizontal.stride + phase - horizontal.pad.0;
            let (input, out) = (&input[column * channels..], &mut out[first - strip.start..]);
            if channels * horizontal.stride == 1 {
                out[..end - first].copy_from_slice(&input[..end - first]);
                continue;
            }
            PlaneTranspose {
                input,
                stride: channels * horizontal.stride,
                out,
                pitch: self.conv.line,
                rows: channels,
                columns: end - first,
            }
            .transpose_plane(self.isa);
        }
    }

    /// Computes some vectors of pixels for all outputs.
    #[inline(always)]
    unsafe fn compute_block<V: F32Vector, const OUTPUTS: usize, const VECTORS: usize>(
        &mut self,
        block: &PixelBlock,
    ) {
        let NhwcGeometry { channels, vertical, horizontal, .. } = self.conv.geometry;
        let line = self.conv.line;
        // SAFETY: lines and weights are as large as the sizes of the convolution say, and the vectors past the last pixel lie in
        // the rest of a line; the caller guarantees the instructions.
        unsafe {
            let mut sums = [[V::splat(0.0); VECTORS]; OUTPUTS];
            if let Some(bias) = self.epilogue.bias {
                sums = std::array::from_fn(|output| [V::splat(bias[output]); VECTORS]);
            }
            let mut weights =
                self.weights[block.steps.start * horizontal.kernel * channels * OUTPUTS..].as_ptr();
            for step in 0..block.steps.len() {
                let slot = (block.first_line + step * vertical.dilation) % self.conv.span;
                let lines = self.lines[slot * self.conv.line_elements() + block.shift..].as_ptr();
                let (mut phase, mut offset) = (0, 0);
                for _ in 0..horizontal.kernel {
                    let mut inputs = lines.add(phase * channels * line + offset);
                    for _ in 0..channels {
                        let factors: [V; VECTORS] =
                            std::array::from_fn(|vector| V::load(inputs.add(vector * V::LANES)));
                        for (output, sums) in sums.iter_mut().enumerate() {
                            let weight = V::splat(*weights.add(output));
                            for (sum, factor) in sums.iter_mut().zip(factors) {
                                *sum = sum.add_product(factor, weight);
                            }
                        }
                        inputs = inputs.wrapping_add(line);
                        weights = weights.add(OUTPUTS);
                    }
                    phase += horizontal.dilation;
                    while phase >= horizontal.stride {
                        (phase, offset) = (phase - horizontal.stride, offset + 1);
                    }
                }
            }
            let bounds = self.epilogue.clamp_bounds();
            if let (Some([low, high]), ResidualSource::None) = (bounds, self.epilogue.residual) {
                let (low, high) = (V::splat(low), V::splat(high));
                sums = sums.map(|sums| sums.map(|sum| sum.max(low).min(high)));
            }
            let results = &mut self.results[..OUTPUTS * VECTORS * V::LANES];
            for (vector, sum) in sums.as_flattened().iter().enumerate() {
                sum.store(results[vector * V::LANES..][..V::LANES].as_mut_ptr());
            }
            self.store_results::<OUTPUTS>(block, VECTORS * V::LANES);
        }
    }

    /// Stores the results of a block, of which each output has as many as given, with residual and bounds.
    #[inline(always)]
    fn store_results<const OUTPUTS: usize>(&mut self, block: &PixelBlock, pixels: usize) {
        let width = self.conv.geometry.horizontal.output;
        let place = ((block.row - self.rows.start) * width + block.pixel) * OUTPUTS;
        let output = &mut self.y[place..][..block.count * OUTPUTS];
        let (sums, in_order) = self.results.split_at_mut(BLOCK_ELEMENTS);
        let transpose = |out: &mut [f32]| {
            if OUTPUTS == 1 {
                out.copy_from_slice(&sums[..block.count]);
                return;
            }
            let (rows, columns) = (block.count, OUTPUTS);
            PlaneTranspose { input: sums, stride: pixels, out, pitch: OUTPUTS, rows, columns }
                .transpose_plane(self.isa);
        };
        if let ResidualSource::None = self.epilogue.residual {
            transpose(output);
            return;
        }
        let in_order = &mut in_order[..output.len()];
        transpose(in_order);
        if let ResidualSource::Apart(residual) = self.epilogue.residual {
            output.copy_from_slice(&residual[(block.row * width + block.pixel) * OUTPUTS..][..output.len()]);
        }
        let [low, high] = self.epilogue.clamp_bounds().unwrap_or([f32::NEG_INFINITY, f32::INFINITY]);
        for (output, sum) in output.iter_mut().zip(in_order) {
            let value = *sum + *output;
            // Written so that NaN stays.
            *output = if value < low {
                low
            } else if value > high {
                high
            } else {
                value
            };
        }
    }
}

/// Adjacent pixels of a row.
struct PixelBlock {
    row: usize,
    /// The first pixel, and the number of pixels.
    pixel: usize,
    count: usize,
    /// The distance of the first pixel from the start of the strip.
    shift: usize,
    /// The vertical steps of the windows that lie in the image, and the line under the first of them.
    steps: Range<usize>,
    first_line: usize,
}
