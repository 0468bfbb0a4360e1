//! Convolutions as matrix products whose left rows are never materialized (indirect GEMM): for each tap, each pixel of a tile has a
//! pointer to the input channels under it, or to zeros for padding, and the micro-kernel follows these pointers.
//!
//! With few input channels, a whole row of the window is one tap: in a copy of the image that is padded along its rows, the
//! elements of such a row are contiguous.
//!
//! Products may be in bf16. The inputs under the windows of a tile are then rounded into rows, from which the micro-kernel reads.
//! That is little work compared with multiplying them with all weights of a task, and the images stay unchanged. Images that are
//! already bf16 are read in place. With few input channels and AMX, whole images are rounded beforehand, because each input is
//! under many windows.

#![expect(unsafe_code, reason = "threads write parts of one output")]

mod dense_job;

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::row_blocks::{RowBlocks, StripeBuffer};
use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_base::tile_block::BLOCK_ROWS;
use oarlock_cpu_gemm::{DisjointSlice, TaskQueue};

use self::dense_job::DenseConvJob;
use super::bf16_images::{Bf16Images, word_count};
use super::bf16_rounding::{pair_count, round_to_pairs};
use super::epilogue::ConvEpilogue;
use super::geometry::NhwcGeometry;
use super::tile::{ConvMicroKernels, even_tile_size};
use super::weight_panels::WeightPanels;

/// Bytes of weights that a task works on at a time, so that they stay in L2 beside the inputs.
pub(super) const WEIGHTS_BLOCK_BYTES: usize = 1024 * 1024;
/// Multiply-adds that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 17;
/// The `f32` elements of a 4 KiB page, and the ways of L1. An L1 of 32 KiB with 8 ways has 4 KiB per way, so addresses a page apart
/// compete for the same set.
const PAGE_ELEMENTS: usize = 1024;
const CACHE_WAYS: usize = 8;
/// The maximum number of input channels for which a row of the window is one tap.
const FEW_CHANNELS: usize = 15;

/// How the products of a convolution are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ConvPrecision {
    F32,
    /// Weights and images rounded to bf16, in pairs; sums stay f32.
    Bf16,
}

/// A convolution planned for one geometry and number of threads.
pub(super) struct DenseConv {
    geometry: NhwcGeometry,
    precision: ConvPrecision,
    paired: Bf16Images,
    kernels: &'static ConvMicroKernels,
    stripes: Option<RowBlocks>,
    /// True if a row of the window is one tap.
    by_rows: bool,
    /// True if the pixels of a tile are a multiple of the page size apart, and so compete for the same L1 sets.
    is_paged: bool,
    /// Pixels of an image row as it is read, including padding if the images are copied.
    width: usize,
    threads: usize,
    /// Pixels of a tile; pixels and channels of a task.
    tile: usize,
    task: (usize, usize),
    /// Groups of a task. They share the pointers of a tile, which are thus computed once.
    groups: usize,
}

impl DenseConv {
    pub(super) fn new(team: &dyn ThreadTeam, geometry: &NhwcGeometry, precision: ConvPrecision) -> Self {
        Self::for_images(team, geometry, precision, Bf16Images::NONE)
    }

    /// In bf16; the images may hold pairs.
    pub(super) fn new_bf16(team: &dyn ThreadTeam, geometry: &NhwcGeometry, paired: Bf16Images) -> Self {
        Self::for_images(team, geometry, ConvPrecision::Bf16, paired)
    }

    fn for_images(
        team: &dyn ThreadTeam,
        geometry: &NhwcGeometry,
        precision: ConvPrecision,
        paired: Bf16Images,
    ) -> Self {
        let (pixels, outputs) = (geometry.output_pixels(), geometry.outputs_per_group());
        let steps = geometry.tap_count() * geometry.channels_per_group();
        let kernels = match precision {
            ConvPrecision::F32 => ConvMicroKernels::for_isa(team.isa()),
            ConvPrecision::Bf16 => ConvMicroKernels::for_pairs(team.isa()),
        };
        let horizontal = geometry.horizontal;
        // With groups or gaps, a row of a window is not contiguous. By the limit of the pads, the copy is at
        // most twice as wide as the image.
        let by_rows = geometry.groups == 1
            && geometry.channels <= FEW_CHANNELS
            && horizontal.kernel > 1
            && horizontal.dilation == 1
            && horizontal.pad.0 + horizontal.pad.1 <= horizontal.input
            && !paired.input;
        let is_paged = (precision == ConvPrecision::F32 || paired.input)
            && kernels.max_pixels() > CACHE_WAYS
            && geometry.tap_count() == 1
            && geometry.groups == 1
            && geometry.channels > 0
            && (horizontal.stride * word_count(geometry.channels, paired.input))
                .is_multiple_of(PAGE_ELEMENTS);
        let width =
            if by_rows { horizontal.input + horizontal.pad.0 + horizontal.pad.1 } else { horizontal.input };
        let work = [pixels, geometry.outputs, steps].into_iter().fold(1usize, usize::saturating_mul);
        let threads = team.worker_count().min(work / MIN_WORK_PER_THREAD).max(1);
        let panels = outputs.div_ceil(kernels.max_channels()).max(1);
        let lines = if precision == ConvPrecision::Bf16 { pair_count(steps) } else { steps };
        let most_panels =
            (WEIGHTS_BLOCK_BYTES / (kernels.max_channels() * size_of::<f32>()) / lines.max(1)).max(1);
        let tile = even_tile_size(pixels, kernels.max_pixels());
        let tiles = pixels.div_ceil(tile);
        // Several tasks per thread balance the load if other work runs on the machine.
        let tasks = if threads == 1 { 1 } else { 4 * threads };
        let channel_tasks = panels.div_ceil(most_panels).max(1);
        // Rounded rows belong to one group, so groups cannot share them.
        let can_share = channel_tasks == 1 && (precision == ConvPrecision::F32 || paired.input);
        let shared = (most_panels / panels).min(geometry.groups / tasks.div_ceil(tiles.max(1)));
        let groups = if can_share { shared.max(1) } else { 1 };
        let wanted = tasks.div_ceil(geometry.groups.div_ceil(groups));
        let pixel_tasks = wanted.div_ceil(channel_tasks).min(tiles).max(1);
        let channel_tasks = channel_tasks.max(wanted.div_ceil(pixel_tasks).min(panels));
        let task = (
            tiles.div_ceil(pixel_tasks) * tile,
            even_tile_size(panels, panels.div_ceil(channel_tasks)) * kernels.max_channels(),
        );
        let geometry = geometry.clone();
        let dense = Self {
            geometry,
            precision,
            paired,
            kernels,
            stripes: None,
            by_rows,
            is_paged,
            width,
            threads,
            tile,
            task,
            groups,
        };
        match precision {
            ConvPrecision::Bf16 => dense.with_row_blocks(team.isa(), (pixels, pair_count(steps))),
            ConvPrecision::F32 => dense,
        }
    }

    /// Switches to row blocks (AMX) if that pays.
    fn with_row_blocks(self, isa: Isa, (pixels, pairs): (usize, usize)) -> Self {
        let Some(stripes) = RowBlocks::for_rows(isa, pixels, pairs * size_of::<f32>()) else { return self };
        // One task per thread, because every further task would read its weights again.
        let wanted = self.threads.div_ceil(self.geometry.groups);
        let task = stripes.task_size(pixels, self.geometry.outputs_per_group(), wanted);
        Self { stripes: Some(stripes), is_paged: false, tile: BLOCK_ROWS, task, groups: 1, ..self }
    }

    pub(super) fn pack_weights(&self, team: &dyn ThreadTeam, weights: &[f32]) -> WeightPanels {
        match self.precision {
            ConvPrecision::F32 => WeightPanels::from_groups(team, &self.geometry, weights),
            ConvPrecision::Bf16 => WeightPanels::from_bf16_groups(team, &self.geometry, weights),
        }
    }

    pub(super) fn precision(&self) -> ConvPrecision {
        self.precision
    }

    /// The number of taps, and the elements of each.
    fn tap_shape(&self) -> (usize, usize) {
        let NhwcGeometry { vertical, horizontal, .. } = self.geometry;
        let depth = self.geometry.channels_per_group();
        if depth == 0 {
            return (0, 0);
        }
        if self.by_rows {
            (vertical.kernel, horizontal.kernel * depth)
        } else {
            (self.geometry.tap_count(), depth)
        }
    }

    /// True if whole images are rounded beforehand.
    fn rounds_images(&self) -> bool {
        self.stripes.is_some() && self.by_rows
    }

    /// The sizes of the parts of scratch memory: zeros, the padded copy of the images, the rounded images, and for each thread
    /// pointers and copied rows.
    fn scratch_sizes(&self) -> [usize; 5] {
        let NhwcGeometry { images, channels, vertical, horizontal, .. } = self.geometry;
        let (taps, depth) = self.tap_shape();
        let all = images * vertical.input * self.width * channels;
        let copy = if self.width > horizontal.input { all } else { 0 };
        let rounded = if self.rounds_images() { pair_count(all) } else { 0 };
        let most_pixels = self.tile.max(self.kernels.max_pixels());
        let pointers = taps * most_pixels * size_of::<*const f32>() / size_of::<f32>();
        let rows = match self.precision {
            _ if let Some(stripes) = &self.stripes => stripes.stripe_size() / size_of::<f32>(),
            ConvPrecision::Bf16 if !self.paired.input => most_pixels * self.rounded_row_stride(),
            _ if self.is_paged => most_pixels * (word_count(depth, self.paired.input) + 16),
            _ => 0,
        };
        // In whole cache lines, so that no two parts share one.
        [channels.max(depth), copy, rounded, pointers, rows].map(|count| count.next_multiple_of(16))
    }

    pub(super) fn scratch_size(&self) -> usize {
        let [zeros, copy, rounded, pointers, rows] = self.scratch_sizes();
        zeros + copy + rounded + self.threads * (pointers + rows)
    }

    pub(super) fn compute(
        &self,
        team: &dyn ThreadTeam,
        (x, weights): (&[f32], &WeightPanels),
        epilogue: &ConvEpilogue<'_>,
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let [zeros, copy, rounded, pointers, rows] = self.scratch_sizes();
        let (zeros, rest) = scratch.split_at_mut(zeros);
        let (copy, rest) = rest.split_at_mut(copy);
        let (rounded, lanes) = rest.split_at_mut(rounded);
        // Scratch memory is not initialized, and padding is read from here.
        zeros.fill(0.0);
        if !copy.is_empty() {
            self.copy_padded(team, x, copy);
        }
        let images = if copy.is_empty() { x } else { copy };
        if !rounded.is_empty() {
            self.round_images(team, images, rounded);
        }
        let lanes = DisjointSlice::new(lanes);
        let y = DisjointSlice::new(y);
        let job = DenseConvJob { dense: self, isa: team.isa(), images, rounded, zeros, weights, epilogue, y };
        let (pixels, outputs) = (self.geometry.output_pixels(), self.geometry.outputs_per_group());
        let (pixel_tasks, channel_tasks) = (pixels.div_ceil(self.task.0), outputs.div_ceil(self.task.1));
        let groups = self.geometry.groups;
        let count = groups.div_ceil(self.groups) * channel_tasks * pixel_tasks;
        let tasks = TaskQueue::new(count, self.threads);
        team.parallel_for_each(self.threads.min(count), &|lane| {
            let _registers = self.stripes.as_ref().map(RowBlocks::configure_registers);
            // SAFETY: each lane has its own part.
            let memory = unsafe { lanes.range_mut(lane * (pointers + rows)..(lane + 1) * (pointers + rows)) };
            let (pointers, rows) = memory.split_at_mut(pointers);
            let mut rows = StripeBuffer::new(rows.as_mut_ptr().cast());
            for task in tasks.tasks_for_worker(lane) {
                let (group, place) = (
                    task / (channel_tasks * pixel_tasks) * self.groups,
                    task % (channel_tasks * pixel_tasks),
                );
                // Consecutive tasks share their weights, or with row blocks the stripe that a thread has gathered.
                let (first, channel) = match self.stripes {
                    None => (place % pixel_tasks, place / pixel_tasks),
                    Some(_) => (place / channel_tasks, place % channel_tasks),
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

    /// The distance between rows of rounded inputs: whole vectors plus one more, so that rows are never a multiple of the page size
    /// apart and compete for the same L1 sets.
    fn rounded_row_stride(&self) -> usize {
        let (taps, depth) = self.tap_shape();
        self.stripes.as_ref().map_or_else(
            || pair_count(taps * depth).next_multiple_of(16) + 16,
            |stripes| stripes.row_stride() / size_of::<f32>(),
        )
    }

    fn round_images(&self, team: &dyn ThreadTeam, images: &[f32], rounded: &mut [f32]) {
        let share = pair_count(images.len()).div_ceil(self.threads);
        let rounded = DisjointSlice::new(rounded);
        team.parallel_for_each(pair_count(images.len()).div_ceil(share.max(1)), &|lane| {
            let numbers = &images[2 * lane * share..images.len().min(2 * (lane + 1) * share)];
            let start = lane * share;
            // SAFETY: each lane has its own part.
            round_to_pairs(team.isa(), numbers, unsafe {
                rounded.range_mut(start..start + pair_count(numbers.len()))
            });
        });
    }

    /// Copies the images with padding at both ends of each row.
    fn copy_padded(&self, team: &dyn ThreadTeam, x: &[f32], copy: &mut [f32]) {
        let NhwcGeometry { images, channels, vertical, horizontal, .. } = self.geometry;
        let (rows, wide, narrow) =
            (images * vertical.input, self.width * channels, horizontal.input * channels);
        let share = rows.div_ceil(self.threads).max(1);
        let copy = DisjointSlice::new(copy);
        team.parallel_for_each(rows.div_ceil(share), &|lane| {
            for row in lane * share..rows.min((lane + 1) * share) {
                // SAFETY: no two rows overlap.
                let target = unsafe { copy.range_mut(row * wide..(row + 1) * wide) };
                let (before, rest) = target.split_at_mut(horizontal.pad.0 * channels);
                let (inside, after) = rest.split_at_mut(narrow);
                before.fill(0.0);
                inside.copy_from_slice(&x[row * narrow..][..narrow]);
                after.fill(0.0);
            }
        });
    }
}
