//! Convolutions as products of matrices whose left rows are never made: for each tap, each pixel of a tile has a pointer to
//! the inputs under it, and the micro-kernel walks over them.

#![expect(unsafe_code, reason = "tiles are handed to the micro-kernels as pointers")]

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::finish::{Ending, Finish};
use super::layer::Images;
use super::packed::{Panels, Source};
use super::rows::Rows;
use super::tile::{Kernels, LINE, Outcome, Place, Tile, row_stride};
use super::vector::{QUAD, TURNED};
#[cfg(target_arch = "x86_64")]
use crate::amx::Gathered;
use crate::gemm::{self, Finished, Parts, Scratch, Team};
use crate::kernels::channels_last::geometry::Geometry;

/// Bytes of weights that a task works on at a time: they stay in the second cache beside the inputs.
const WEIGHTS_AT_ONCE: usize = 512 * 1024;
/// Products that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 20;

/// A convolution that is ready to be computed.
pub(super) struct Dense {
    geometry: Geometry,
    kernels: &'static Kernels,
    rows: Rows,
    threads: usize,
    /// Pixels of a tile, and pixels and channels of a task.
    tile: usize,
    task: (usize, usize),
}

/// What sums become, and where it goes.
pub(super) enum Results<'a> {
    /// Numbers of eight bits.
    Bytes(&'a Finish<'a>, &'a mut [u8]),
    /// The sums. Something may be made of them where they lie, while they are in the nearest cache.
    Sums(Option<&'a gemm::Finish<'a, i32>>, &'a mut [i32]),
}

/// The same while threads write it.
enum Written<'a> {
    Bytes(&'a Finish<'a>, Parts<'a, u8>),
    Sums(Option<&'a gemm::Finish<'a, i32>>, Parts<'a, i32>),
}

/// The parts of so many things, each of the same size but for the last, such that none is left with few.
fn even_share(count: usize, most: usize) -> usize {
    count.div_ceil(count.div_ceil(most).max(1)).max(1)
}

impl Dense {
    pub(super) fn new(team: &dyn Team, geometry: &Geometry) -> Self {
        let (pixels, outputs) = (geometry.pixels(), geometry.outputs_of_group());
        let steps = geometry.taps() * geometry.channels_of_group();
        let kernels = Kernels::of(team.isa(), pixels, steps);
        let work = [pixels, geometry.outputs, steps].into_iter().fold(1usize, usize::saturating_mul);
        let threads = team.worker_count().min(work / WORK_OF_A_THREAD).max(1);
        let panels = outputs.div_ceil(kernels.channels()).max(1);
        let most_panels = (WEIGHTS_AT_ONCE / kernels.channels() / steps.max(1)).max(1);
        // Rows are multiplied many at a time, whether they exist or not.
        let tile = if kernels.wants_rows { kernels.pixels() } else { even_share(pixels, kernels.pixels()) };
        let tiles = pixels.div_ceil(tile);
        // Some tasks for each thread even out what else the machine does.
        let wanted = if threads == 1 { 1 } else { (4 * threads).div_ceil(geometry.groups) };
        let across = panels.div_ceil(most_panels).max(1);
        let down = wanted.div_ceil(across).min(tiles).max(1);
        let across = across.max(wanted.div_ceil(down).min(panels));
        let task =
            (tiles.div_ceil(down) * tile, even_share(panels, panels.div_ceil(across)) * kernels.channels());
        Self { geometry: geometry.clone(), kernels, rows: Rows::new(geometry), threads, tile, task }
    }

    /// The taps and the inputs of each, as they are read.
    pub(super) fn taps(&self) -> (usize, usize) {
        self.rows.taps()
    }

    /// The weights in the order in which they are read.
    pub(super) fn pack(&self, team: &dyn Team, weights: Source<'_>) -> Panels {
        Panels::new(team, &self.geometry, &self.rows, weights)
    }

    /// Words of scratch memory: padding, a copy of the images, and for each thread pointers and rows.
    fn parts(&self) -> [usize; 4] {
        let words = |bytes: usize| bytes.div_ceil(WORD);
        let pointers = self.rows.taps().0 * self.kernels.pixels();
        let rows = if self.kernels.wants_rows { self.kernels.pixels() * words(self.row_stride()) } else { 0 };
        // A lane of its own for each thread begins at a line.
        [words(self.rows.padding_size()), words(self.rows.copy_size()), pointers, rows]
            .map(|count| count.next_multiple_of(64 / WORD))
    }

    /// How many times four inputs are read for a pixel.
    fn quads(&self) -> usize {
        let (taps, depth) = self.rows.taps();
        taps * depth.div_ceil(QUAD)
    }

    /// Bytes from a row to the next.
    fn row_stride(&self) -> usize {
        row_stride(self.quads()) * QUAD
    }

    /// How many bytes of scratch memory it takes.
    pub(super) fn scratch_size(&self) -> usize {
        let [padding, copy, pointers, rows] = self.parts();
        // Scratch memory begins at the next line.
        (padding + copy + self.threads * (pointers + rows)) * WORD + 64
    }

    /// Computes the convolution. The sums of each output begin with what is given, in whole vectors for each group.
    pub(super) fn compute(
        &self,
        team: &dyn Team,
        images: &Images<'_>,
        (weights, starts): (&Panels, &[i32]),
        results: Results<'_>,
        scratch: &mut Scratch<'_>,
    ) {
        let [padding_words, copy_words, pointer_words, row_words] = self.parts();
        let lane_words = pointer_words + row_words;
        let scratch = scratch.elements::<u64>(padding_words + copy_words + self.threads * lane_words);
        let (padding, rest) = scratch.split_at_mut(padding_words);
        let (copy, lanes) = rest.split_at_mut(copy_words);
        padding.fill(u64::from_ne_bytes([images.zero; WORD]));
        let images_read = if copy.is_empty() {
            images.x.as_ptr()
        } else {
            let copy = as_bytes(copy);
            self.rows.copy(team, self.threads, images.x, images.zero, copy);
            copy.as_ptr()
        };
        let job = Job {
            dense: self,
            is_signed: images.is_signed,
            images: images_read,
            padding: padding.as_ptr().cast(),
            weights,
            starts,
            written: match results {
                Results::Bytes(finish, y) => Written::Bytes(finish, Parts::new(y)),
                Results::Sums(finish, y) => Written::Sums(finish, Parts::new(y)),
            },
        };
        let (pixels, outputs) = (self.geometry.pixels(), self.geometry.outputs_of_group());
        let (down, across) = (pixels.div_ceil(self.task.0), outputs.div_ceil(self.task.1));
        let count = self.geometry.groups * across * down;
        let (next, lanes) = (AtomicUsize::new(0), Parts::new(lanes));
        team.each(self.threads.min(count), &|lane| {
            let _registers = self.kernels.begin();
            // SAFETY: each lane has a part of its own.
            let memory = unsafe { lanes.part(lane * lane_words..(lane + 1) * lane_words) };
            let (pointers, rows) = memory.split_at_mut(pointer_words);
            loop {
                let task = next.fetch_add(1, Ordering::Relaxed);
                if task >= count {
                    break;
                }
                // Tasks one after the other share their weights.
                let (group, place) = (task / (across * down), task % (across * down));
                let (first, channel) = (place % down * self.task.0, place / down * self.task.1);
                job.run(
                    group,
                    first..pixels.min(first + self.task.0),
                    channel..outputs.min(channel + self.task.1),
                    (pointers.as_mut_ptr().cast(), rows.as_mut_ptr().cast()),
                );
            }
        });
    }
}

/// Bytes of a word of scratch memory, in which a pointer has room.
const WORD: usize = size_of::<u64>();

fn as_bytes(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: a word is as many bytes without gaps, of which every pattern is a number.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

/// One convolution while it is computed.
struct Job<'a> {
    dense: &'a Dense,
    is_signed: bool,
    images: *const u8,
    padding: *const u8,
    weights: &'a Panels,
    starts: &'a [i32],
    written: Written<'a>,
}

// SAFETY: the pointers lead to what no thread writes while the convolution is computed.
unsafe impl Sync for Job<'_> {}

impl Job<'_> {
    /// Computes some pixels and channels of a group.
    fn run(
        &self,
        group: usize,
        pixels: Range<usize>,
        channels: Range<usize>,
        (pointers, rows): (*mut *const u8, *mut u8),
    ) {
        let Geometry { outputs, .. } = self.dense.geometry;
        let (kernels, outputs_of_group) = (self.dense.kernels, self.dense.geometry.outputs_of_group());
        let starts = &self.starts[group * outputs_of_group.next_multiple_of(kernels.lanes)..];
        let (taps, depth) = self.dense.rows.taps();
        let first_output = group * outputs_of_group;
        for first in pixels.clone().step_by(self.dense.tile) {
            let count = self.dense.tile.min(pixels.end - first);
            if taps > 0 {
                // SAFETY: a lane has room for the pointers of a tile.
                unsafe {
                    self.dense.rows.windows().point((self.images, self.padding), first, count, pointers);
                };
            }
            let skip = self.dense.rows.skip(group);
            let begin = rows.cast_const();
            // What the micro-kernels see: rows that were put together are one tap.
            let (inputs, taps, quads, skip) = if kernels.wants_rows {
                self.put_together(count, skip, pointers, rows);
                (&raw const begin, 1, self.dense.quads().next_multiple_of(LINE), 0)
            } else {
                (pointers.cast_const(), taps, depth.div_ceil(QUAD), skip)
            };
            for channel in channels.clone().step_by(self.weights.width()) {
                let width = self.weights.width().min(channels.end - channel);
                let whole = width.next_multiple_of(kernels.lanes);
                let (output, place) = (first_output + channel, first * outputs + first_output + channel);
                // The last result of the tile lies in the output, and so do all before it.
                let last = (count - 1) * outputs + width - 1;
                let outcome = match &self.written {
                    Written::Bytes(finish, y) => Outcome::Bytes(Ending {
                        requantize: *finish.requantize,
                        factors: &finish.factors[output..output + width],
                        residual: finish.residual.map_or(ptr::null(), |residual| residual[place..].as_ptr()),
                        output: y.pointer(place + last).wrapping_sub(last),
                        pixel: outputs,
                    }),
                    Written::Sums(_, y) => Outcome::Sums(Place {
                        output: y.pointer(place + last).wrapping_sub(last),
                        pixel: outputs,
                        channels: width,
                    }),
                };
                // SAFETY: the pointers and weights are there for all taps, and the results are this thread's; what is added
                // has the size of the output.
                unsafe {
                    kernels.get(self.is_signed, count, width)(&Tile {
                        pixels: count,
                        inputs,
                        taps,
                        quads,
                        skip,
                        weights: self.weights.panel(group, channel),
                        start: starts[channel..channel + whole].as_ptr(),
                        outcome: &outcome,
                    });
                }
                if let (Written::Sums(Some(finish), _), Outcome::Sums(place)) = (&self.written, &outcome) {
                    let (pixels, outputs) = (first..first + count, output..output + width);
                    // SAFETY: the sums are this thread's.
                    finish(unsafe { Finished::new(0, pixels, outputs, place.output, place.pixel) });
                }
            }
        }
    }

    /// Copies what is under the windows of a tile, behind `skip` bytes of each pixel, to rows of unsigned numbers.
    fn put_together(&self, count: usize, skip: usize, pointers: *const *const u8, rows: *mut u8) {
        #[cfg(target_arch = "x86_64")]
        {
            let (parts, depth) = self.dense.rows.taps();
            let gathered = Gathered {
                sources: pointers,
                rows: count,
                parts,
                length: depth.next_multiple_of(QUAD),
                skip,
                turned: if self.is_signed { TURNED } else { 0 },
            };
            // SAFETY: the machine has AMX. For each tap and pixel there is a pointer to as many inputs, of which whole fours can
            // be read, and there is room for as many rows.
            unsafe { gathered.copy(rows, self.dense.row_stride()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (count, skip, pointers, rows);
    }
}
