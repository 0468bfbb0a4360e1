//! Convolutions as products of matrices whose left rows are never made: for each tap, each pixel of a tile has a pointer to
//! the input channels under it, or to zeros in the padding, and the micro-kernel walks over them.
//!
//! Where there are few input channels, all of a row of the window is one tap: its elements lie side by side in an image that
//! is padded along its rows.
//!
//! Products may be of numbers in bf16. Then the inputs under the windows of a tile are rounded, into rows that are read instead:
//! that is little work beside multiplying them with all the weights of a task, and leaves images what they are. Images that
//! hold numbers in bf16 are read as they lie. Where there are few input channels, and strips, all of the images is rounded before,
//! as each input is under many windows.

#![expect(unsafe_code, reason = "threads write parts of one output")]

mod job;

use self::job::Job;
use super::finish::Finish;
use super::geometry::Geometry;
use super::rounded::{pairs_of, round};
use super::tile::{Kernels, even_share};
use super::weights::Panels;
use crate::gemm::{Parts, Tasks, Team};
use crate::isa::Isa;
use crate::strips::{BLOCK, Memory, Strips};

/// Bytes of weights that a task works on at a time: they stay in the second cache beside the inputs.
const WEIGHTS_AT_ONCE: usize = 1024 * 1024;
/// Products that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 17;
/// Elements of a page, and how many of the nearest cache's lines can lie at the same place of different pages.
const PAGE: usize = 1024;
const WAYS: usize = 8;
/// Input channels of a window whose rows are taps, at most.
const FEW_CHANNELS: usize = 15;

/// What is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Factors {
    /// Numbers as they are.
    Whole,
    /// Numbers rounded to bf16, in pairs.
    Rounded,
}

/// Which images hold numbers in bf16: in the place of each number of f32 a pair of them, two channels of a pixel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Paired {
    pub(super) input: bool,
    pub(super) residual: bool,
    pub(super) output: bool,
}

impl Paired {
    /// None of them.
    pub(super) const NONE: Self = Self { input: false, residual: false, output: false };
}

/// How many numbers of f32 so many numbers take where they may be pairs, each whole.
pub(super) fn words(numbers: usize, are_paired: bool) -> usize {
    if are_paired { numbers / 2 } else { numbers }
}

/// A convolution that is ready to be computed.
pub(super) struct Dense {
    geometry: Geometry,
    factors: Factors,
    paired: Paired,
    kernels: &'static Kernels,
    strips: Option<Strips>,
    /// Whether a row of the window is one tap.
    by_rows: bool,
    /// Whether the pixels of a tile are whole pages apart. They would fight for the same lines of the nearest cache.
    is_paged: bool,
    /// How wide an image is, with padding where it is copied with it.
    width: usize,
    threads: usize,
    /// Pixels of a tile, and pixels and channels of a task.
    tile: usize,
    task: (usize, usize),
    /// Groups of a task, which share the pointers of a tile.
    groups: usize,
}

impl Dense {
    pub(super) fn new(team: &dyn Team, geometry: &Geometry, factors: Factors) -> Self {
        Self::of_images(team, geometry, factors, Paired::NONE)
    }

    /// One with rounded factors, whose images may hold pairs.
    pub(super) fn of_pairs(team: &dyn Team, geometry: &Geometry, paired: Paired) -> Self {
        Self::of_images(team, geometry, Factors::Rounded, paired)
    }

    fn of_images(team: &dyn Team, geometry: &Geometry, factors: Factors, paired: Paired) -> Self {
        let (pixels, outputs) = (geometry.pixels(), geometry.outputs_of_group());
        let steps = geometry.taps() * geometry.channels_of_group();
        let kernels = match factors {
            Factors::Whole => Kernels::of(team.isa()),
            Factors::Rounded => Kernels::of_pairs(team.isa()),
        };
        let along = geometry.along;
        let by_rows = geometry.groups == 1
            && geometry.channels <= FEW_CHANNELS
            && along.kernel > 1
            && along.dilation == 1
            && along.pad.0 + along.pad.1 <= along.input
            && !paired.input;
        let is_paged = (factors == Factors::Whole || paired.input)
            && kernels.pixels() > WAYS
            && geometry.taps() == 1
            && geometry.groups == 1
            && geometry.channels > 0
            && (along.stride * words(geometry.channels, paired.input)).is_multiple_of(PAGE);
        let width = if by_rows { along.input + along.pad.0 + along.pad.1 } else { along.input };
        let work = [pixels, geometry.outputs, steps].into_iter().fold(1usize, usize::saturating_mul);
        let threads = team.worker_count().min(work / WORK_OF_A_THREAD).max(1);
        let panels = outputs.div_ceil(kernels.channels()).max(1);
        let lines = if factors == Factors::Rounded { pairs_of(steps) } else { steps };
        let most_panels = (WEIGHTS_AT_ONCE / (kernels.channels() * size_of::<f32>()) / lines.max(1)).max(1);
        let tile = even_share(pixels, kernels.pixels());
        let tiles = pixels.div_ceil(tile);
        // Some tasks for each thread even out what else the machine does.
        let tasks = if threads == 1 { 1 } else { 4 * threads };
        let across = panels.div_ceil(most_panels).max(1);
        // What is rounded is that of one group.
        let can_share = across == 1 && (factors == Factors::Whole || paired.input);
        let shared = (most_panels / panels).min(geometry.groups / tasks.div_ceil(tiles.max(1)));
        let groups = if can_share { shared.max(1) } else { 1 };
        let wanted = tasks.div_ceil(geometry.groups.div_ceil(groups));
        let down = wanted.div_ceil(across).min(tiles).max(1);
        let across = across.max(wanted.div_ceil(down).min(panels));
        let task =
            (tiles.div_ceil(down) * tile, even_share(panels, panels.div_ceil(across)) * kernels.channels());
        let geometry = geometry.clone();
        let dense = Self {
            geometry,
            factors,
            paired,
            kernels,
            strips: None,
            by_rows,
            is_paged,
            width,
            threads,
            tile,
            task,
            groups,
        };
        match factors {
            Factors::Rounded => dense.in_strips(team.isa(), (pixels, pairs_of(steps))),
            Factors::Whole => dense,
        }
    }

    /// The same in strips of pixels, where that is worth it.
    fn in_strips(self, isa: Isa, (pixels, pairs): (usize, usize)) -> Self {
        let Some(strips) = Strips::of_rows(isa, pixels, pairs * size_of::<f32>()) else { return self };
        // A task for each thread, as each reads all of its weights.
        let wanted = self.threads.div_ceil(self.geometry.groups);
        let task = strips.task(pixels, self.geometry.outputs_of_group(), wanted);
        Self { strips: Some(strips), is_paged: false, tile: BLOCK, task, groups: 1, ..self }
    }

    /// The weights in the order in which they are read.
    pub(super) fn pack(&self, team: &dyn Team, weights: &[f32]) -> Panels {
        match self.factors {
            Factors::Whole => Panels::of_groups(team, &self.geometry, weights),
            Factors::Rounded => Panels::of_rounded_groups(team, &self.geometry, weights),
        }
    }

    /// What it multiplies.
    pub(super) fn factors(&self) -> Factors {
        self.factors
    }

    /// The taps, and how many elements each has.
    fn taps(&self) -> (usize, usize) {
        let Geometry { down, along, .. } = self.geometry;
        let depth = self.geometry.channels_of_group();
        if depth == 0 {
            return (0, 0);
        }
        if self.by_rows { (down.kernel, along.kernel * depth) } else { (self.geometry.taps(), depth) }
    }

    /// Whether the images are rounded as a whole.
    fn rounds_images(&self) -> bool {
        self.strips.is_some() && self.by_rows
    }

    /// Elements of scratch memory: zeros, a padded copy of the images, the same rounded, and for each thread pointers and copied
    /// rows.
    fn parts(&self) -> [usize; 5] {
        let Geometry { images, channels, down, along, .. } = self.geometry;
        let (taps, depth) = self.taps();
        let all = images * down.input * self.width * channels;
        let copy = if self.width > along.input { all } else { 0 };
        let rounded = if self.rounds_images() { pairs_of(all) } else { 0 };
        let most_pixels = self.tile.max(self.kernels.pixels());
        let pointers = taps * most_pixels * size_of::<*const f32>() / size_of::<f32>();
        let rows = match self.factors {
            _ if let Some(strips) = &self.strips => strips.size() / size_of::<f32>(),
            Factors::Rounded if !self.paired.input => most_pixels * self.rounded_row(),
            _ if self.is_paged => most_pixels * (words(depth, self.paired.input) + 16),
            _ => 0,
        };
        [channels.max(depth), copy, rounded, pointers, rows].map(|count| count.next_multiple_of(16))
    }

    /// How many elements of scratch memory it takes.
    pub(super) fn scratch_size(&self) -> usize {
        let [zeros, copy, rounded, pointers, rows] = self.parts();
        zeros + copy + rounded + self.threads * (pointers + rows)
    }

    /// Computes the convolution.
    pub(super) fn compute(
        &self,
        team: &dyn Team,
        (x, weights): (&[f32], &Panels),
        finish: &Finish<'_>,
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let [zeros, copy, rounded, pointers, rows] = self.parts();
        let (zeros, rest) = scratch.split_at_mut(zeros);
        let (copy, rest) = rest.split_at_mut(copy);
        let (rounded, lanes) = rest.split_at_mut(rounded);
        zeros.fill(0.0);
        if !copy.is_empty() {
            self.copy_padded(team, x, copy);
        }
        let images = if copy.is_empty() { x } else { copy };
        if !rounded.is_empty() {
            self.round_images(team, images, rounded);
        }
        let lanes = Parts::new(lanes);
        let y = Parts::new(y);
        let job = Job { dense: self, isa: team.isa(), images, rounded, zeros, weights, finish, y };
        let (pixels, outputs) = (self.geometry.pixels(), self.geometry.outputs_of_group());
        let (down, across) = (pixels.div_ceil(self.task.0), outputs.div_ceil(self.task.1));
        let groups = self.geometry.groups;
        let count = groups.div_ceil(self.groups) * across * down;
        let tasks = Tasks::new(count, self.threads);
        team.each(self.threads.min(count), &|lane| {
            let _registers = self.strips.as_ref().map(Strips::registers);
            // SAFETY: each lane has a part of its own.
            let memory = unsafe { lanes.part(lane * (pointers + rows)..(lane + 1) * (pointers + rows)) };
            let (pointers, rows) = memory.split_at_mut(pointers);
            let mut rows = Memory::new(rows.as_mut_ptr().cast());
            for task in tasks.of(lane) {
                let (group, place) = (task / (across * down) * self.groups, task % (across * down));
                // Tasks one after the other share their weights, or the strip that a thread put together.
                let (first, channel) = match self.strips {
                    None => (place % down, place / down),
                    Some(_) => (place / across, place % across),
                };
                let (first, channel) = (first * self.task.0, channel * self.task.1);
                job.run(
                    group..groups.min(group + self.groups),
                    first..pixels.min(first + self.task.0),
                    channel..outputs.min(channel + self.task.1),
                    (pointers.as_mut_ptr().cast(), &mut rows),
                );
            }
        });
    }

    /// From one row of rounded inputs to the next: whole vectors and one more, as rows that are pages apart would fight for the
    /// same lines of the nearest cache.
    fn rounded_row(&self) -> usize {
        let (taps, depth) = self.taps();
        self.strips.as_ref().map_or_else(
            || pairs_of(taps * depth).next_multiple_of(16) + 16,
            |strips| strips.stride() / size_of::<f32>(),
        )
    }

    /// Rounds the images, as they lie.
    fn round_images(&self, team: &dyn Team, images: &[f32], rounded: &mut [f32]) {
        let share = pairs_of(images.len()).div_ceil(self.threads);
        let rounded = Parts::new(rounded);
        team.each(pairs_of(images.len()).div_ceil(share.max(1)), &|lane| {
            let numbers = &images[2 * lane * share..images.len().min(2 * (lane + 1) * share)];
            let start = lane * share;
            // SAFETY: each lane has a part of its own.
            round(team.isa(), numbers, unsafe { rounded.part(start..start + pairs_of(numbers.len())) });
        });
    }

    /// Copies the images with padding at both ends of their rows.
    fn copy_padded(&self, team: &dyn Team, x: &[f32], copy: &mut [f32]) {
        let Geometry { images, channels, down, along, .. } = self.geometry;
        let (rows, wide, narrow) = (images * down.input, self.width * channels, along.input * channels);
        let share = rows.div_ceil(self.threads).max(1);
        let copy = Parts::new(copy);
        team.each(rows.div_ceil(share), &|lane| {
            for row in lane * share..rows.min((lane + 1) * share) {
                // SAFETY: no two rows overlap.
                let target = unsafe { copy.part(row * wide..(row + 1) * wide) };
                let (before, rest) = target.split_at_mut(along.pad.0 * channels);
                let (inside, after) = rest.split_at_mut(narrow);
                before.fill(0.0);
                inside.copy_from_slice(&x[row * narrow..][..narrow]);
                after.fill(0.0);
            }
        });
    }
}
