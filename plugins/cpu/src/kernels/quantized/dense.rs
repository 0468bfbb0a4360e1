//! Convolutions as products of matrices whose left rows are never made: for each tap, each pixel of a tile has a pointer to
//! the inputs under it, and the micro-kernel walks over them.

#![expect(unsafe_code, reason = "tiles are handed to the micro-kernels as pointers")]

use std::ops::Range;
use std::ptr;

use super::finish::{Ending, Finish};
use super::layer::Images;
use super::packed::{Panels, Source};
use super::rows::Rows;
use super::tile::{Kernels, MOST_PIXELS, Outcome, Place, Tile, of_blocks};
use super::vector::QUAD;
#[cfg(x86_vectors)]
use super::vector::TURNED;
#[cfg(x86_vectors)]
use crate::amx;
use crate::gemm::{self, Finished, Parts, Scratch, Tasks, Team};
use crate::kernels::channels_last::geometry::Geometry;
use crate::strips::{BLOCK, LINE, Lying, Memory, Strips};

/// Bytes of weights that a task works on at a time: they stay in the second cache beside the inputs.
const WEIGHTS_AT_ONCE: usize = 512 * 1024;
/// Products that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 20;

/// A convolution that is ready to be computed.
pub(super) struct Dense {
    geometry: Geometry,
    rows: Rows,
    strips: Option<Strips>,
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
        let kernels = Kernels::of(team.isa());
        let (pixels, outputs) = (geometry.pixels(), geometry.outputs_of_group());
        let steps = geometry.taps() * geometry.channels_of_group();
        let work = [pixels, geometry.outputs, steps].into_iter().fold(1usize, usize::saturating_mul);
        let threads = team.worker_count().min(work / WORK_OF_A_THREAD).max(1);
        let panels = outputs.div_ceil(kernels.channels()).max(1);
        let most_panels = (WEIGHTS_AT_ONCE / kernels.channels() / steps.max(1)).max(1);
        let tile = even_share(pixels, kernels.pixels());
        let tiles = pixels.div_ceil(tile);
        // Some tasks for each thread even out what else the machine does.
        let wanted = if threads == 1 { 1 } else { (4 * threads).div_ceil(geometry.groups) };
        let across = panels.div_ceil(most_panels).max(1);
        let down = wanted.div_ceil(across).min(tiles).max(1);
        let across = across.max(wanted.div_ceil(down).min(panels));
        let task =
            (tiles.div_ceil(down) * tile, even_share(panels, panels.div_ceil(across)) * kernels.channels());
        let rows = Rows::new(geometry);
        let (taps, depth) = rows.taps();
        let strips = Strips::of_rows(team.isa(), pixels, taps * depth.next_multiple_of(QUAD));
        let (tile, task) = match &strips {
            // A task for each thread, as each reads all of its weights.
            Some(strips) => (BLOCK, strips.task(pixels, outputs, threads.div_ceil(geometry.groups))),
            None => (tile, task),
        };
        Self { geometry: geometry.clone(), rows, strips, threads, tile, task }
    }

    /// The taps and the inputs of each, as they are read.
    pub(super) fn taps(&self) -> (usize, usize) {
        self.rows.taps()
    }

    /// The weights in the order in which they are read.
    pub(super) fn pack(&self, team: &dyn Team, weights: Source<'_>) -> Panels {
        Panels::new(team, &self.geometry, &self.rows, weights)
    }

    /// Words of scratch memory: padding, a copy of the images, and for each thread pointers and the rows of a strip.
    fn parts(&self) -> [usize; 4] {
        let words = |bytes: usize| bytes.div_ceil(WORD);
        let pointers = self.rows.taps().0 * self.tile.max(MOST_PIXELS);
        let rows = words(self.strips.as_ref().map_or(0, Strips::size));
        // A lane of its own for each thread begins at a line.
        [words(self.rows.padding_size()), words(self.rows.copy_size()), pointers, rows]
            .map(|count| count.next_multiple_of(LINE / WORD))
    }

    /// How many bytes of scratch memory it takes.
    pub(super) fn scratch_size(&self) -> usize {
        let [padding, copy, pointers, rows] = self.parts();
        // Scratch memory begins at the next line.
        (padding + copy + self.threads * (pointers + rows)) * WORD + LINE
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
            kernels: Kernels::of(team.isa()),
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
        let (tasks, lanes) = (Tasks::new(count, self.threads), Parts::new(lanes));
        team.each(self.threads.min(count), &|lane| {
            let _registers = self.strips.as_ref().map(Strips::registers);
            // SAFETY: each lane has a part of its own.
            let memory = unsafe { lanes.part(lane * lane_words..(lane + 1) * lane_words) };
            let (pointers, rows) = memory.split_at_mut(pointer_words);
            let mut rows = Memory::new(rows.as_mut_ptr().cast());
            for task in tasks.of(lane) {
                let (group, place) = (task / (across * down), task % (across * down));
                // Tasks one after the other share their weights, or the strip that a thread put together.
                let (first, channel) = match self.strips {
                    None => (place % down, place / down),
                    Some(_) => (place / across, place % across),
                };
                let (first, channel) = (first * self.task.0, channel * self.task.1);
                job.run(
                    group,
                    first..pixels.min(first + self.task.0),
                    channel..outputs.min(channel + self.task.1),
                    (pointers.as_mut_ptr().cast(), &mut rows),
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
    kernels: &'static Kernels,
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
        (pointers, rows): (*mut *const u8, &mut Memory),
    ) {
        let starts = |channel: usize| self.starts(group, channel);
        if let Some(strips) = &self.dense.strips {
            strips.run(
                group,
                (pixels, channels),
                rows,
                (self.lying(group), |pixels: Range<usize>, rows: *mut u8| {
                    let count = pixels.len();
                    self.point(pixels, pointers);
                    self.put_together(group, count, pointers, rows);
                }),
                |channel| self.weights.panel(group, channel).cast(),
                |pixels, panel, block| {
                    let outcome = self.outcome(group, pixels.clone(), panel.clone());
                    // SAFETY: rows and weights of the block are there, the results are this thread's, and so are its registers;
                    // what is added has the size of the output.
                    unsafe { of_blocks(panel.len())(block, starts(panel.start), &outcome) };
                    self.finish(group, pixels, panel, &outcome);
                },
            );
            return;
        }
        let (taps, depth) = self.dense.rows.taps();
        for first in pixels.clone().step_by(self.dense.tile) {
            let tile = first..pixels.end.min(first + self.dense.tile);
            if taps > 0 {
                self.point(tile.clone(), pointers);
            }
            for channel in channels.clone().step_by(self.weights.width()) {
                let panel = channel..channels.end.min(channel + self.weights.width());
                let outcome = self.outcome(group, tile.clone(), panel.clone());
                // SAFETY: the pointers and weights are there for all taps, and the results are this thread's; what is added
                // has the size of the output.
                unsafe {
                    self.kernels.get(self.is_signed, tile.len(), panel.len())(&Tile {
                        inputs: pointers,
                        taps,
                        quads: depth.div_ceil(QUAD),
                        skip: self.dense.rows.skip(group),
                        weights: self.weights.panel(group, channel),
                        start: starts(channel),
                        outcome: &outcome,
                    });
                }
                self.finish(group, tile.clone(), panel, &outcome);
            }
        }
    }

    /// The pixels of a group, where they are the rows of blocks as they lie.
    fn lying(&self, group: usize) -> Option<Lying> {
        let geometry = &self.dense.geometry;
        let fits =
            !self.is_signed && geometry.is_pointwise() && geometry.channels_of_group().is_multiple_of(LINE);
        let first = self.images.wrapping_add(self.dense.rows.skip(group));
        fits.then_some(Lying { first, stride: geometry.channels })
    }

    /// Where the sums of a channel and those after it begin, in whole vectors.
    fn starts(&self, group: usize, channel: usize) -> *const i32 {
        let outputs = self.dense.geometry.outputs_of_group().next_multiple_of(self.kernels.lanes);
        self.starts[group * outputs..][..outputs][channel..].as_ptr()
    }

    /// What becomes of the sums of some pixels and channels of a group.
    fn outcome(&self, group: usize, pixels: Range<usize>, channels: Range<usize>) -> Outcome<'_> {
        let outputs = self.dense.geometry.outputs;
        let output = group * self.dense.geometry.outputs_of_group() + channels.start;
        let (width, place) = (channels.len(), pixels.start * outputs + output);
        // The last result lies in the output, and so do all before it.
        let last = (pixels.len() - 1) * outputs + width - 1;
        match &self.written {
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
        }
    }

    /// Makes of sums what is to become of them where they lie.
    fn finish(&self, group: usize, pixels: Range<usize>, channels: Range<usize>, outcome: &Outcome<'_>) {
        if let (Written::Sums(Some(finish), _), Outcome::Sums(place)) = (&self.written, outcome) {
            let first = group * self.dense.geometry.outputs_of_group();
            let outputs = first + channels.start..first + channels.end;
            // SAFETY: the sums are this thread's.
            finish(unsafe { Finished::new(0, pixels, outputs, place.output, place.pixel) });
        }
    }

    /// Writes the pointers of some pixels, for each tap.
    fn point(&self, pixels: Range<usize>, pointers: *mut *const u8) {
        let places = (self.images, self.padding);
        // SAFETY: a lane has room for the pointers of a tile.
        unsafe { self.dense.rows.windows().point(places, pixels.start, pixels.len(), pointers) };
    }

    /// Copies what is under the windows of a tile to rows of unsigned numbers.
    fn put_together(&self, group: usize, count: usize, pointers: *const *const u8, rows: *mut u8) {
        #[cfg(x86_vectors)]
        if let Some(strips) = &self.dense.strips {
            let (parts, depth) = self.dense.rows.taps();
            let gathered = amx::Gathered {
                sources: pointers,
                rows: count,
                parts,
                length: depth.next_multiple_of(QUAD),
                skip: self.dense.rows.skip(group),
                turned: if self.is_signed { TURNED } else { 0 },
            };
            // SAFETY: where there are strips there is AVX-512. For each tap and pixel there is a pointer to as many inputs, of
            // which whole fours can be read, and there is room for as many rows.
            unsafe { gathered.copy(rows, strips.stride()) };
        }
        #[cfg(not(x86_vectors))]
        unreachable!(
            "no machine of this kind has strips of {count} pixels of {group}, {pointers:?}, {rows:?}"
        );
    }
}
