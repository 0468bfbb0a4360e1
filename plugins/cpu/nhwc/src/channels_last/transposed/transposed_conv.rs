//! Transposed convolutions as ordinary ones with interleaved outputs. The micro-kernels of [`super::super::dense`] compute each
//! output as one sum over the inputs that contribute to it, so nothing is accumulated in memory.

#![expect(unsafe_code, reason = "each thread works in a part of the scratch memory")]

use oarlock_cpu_base::thread_team::ThreadTeam;
use oarlock_cpu_gemm::{DisjointSlice, TaskQueue};

use super::super::dense::WEIGHTS_BLOCK_BYTES;
use super::super::epilogue::ConvEpilogue;
use super::super::tile::{ConvMicroKernels, MAX_TILE_PIXELS, even_tile_size};
use super::super::weight_panels::WeightPanels;
use super::phase::OutputPhase;
use super::phase_conv::{PhaseConv, PhaseTask};
use super::transposed_job::TransposedConvJob;
use super::transposed_shape::NhwcTransposedShape;

/// Multiply-adds that make it worth waking another thread.
const MIN_WORK_PER_THREAD: usize = 1 << 17;
/// The lanes of two vectors of the widest kind.
const MAX_CHANNELS: usize = 32;

/// A transposed convolution planned for one geometry and number of threads.
pub(crate) struct TransposedConv {
    sizes: NhwcTransposedShape,
    products: Vec<PhaseConv>,
    tasks: Vec<PhaseTask>,
    threads: usize,
}

impl TransposedConv {
    pub(crate) fn new(team: &dyn ThreadTeam, sizes: &NhwcTransposedShape) -> Self {
        let kernels = ConvMicroKernels::for_isa(team.isa());
        let horizontal = OutputPhase::all_phases(&sizes.horizontal, sizes.groups == 1);
        // Rows of the output are never adjacent, so they are only computed together if that saves vectors.
        let run = sizes.horizontal.stride * sizes.outputs_per_group();
        let joined = sizes.vertical.stride * run;
        let saves = joined <= kernels.max_channels()
            && joined.div_ceil(kernels.lanes) < sizes.vertical.stride * run.div_ceil(kernels.lanes);
        let vertical =
            OutputPhase::all_phases(&sizes.vertical, sizes.groups == 1 && horizontal.len() == 1 && saves);
        let products: Vec<_> = vertical
            .iter()
            .flat_map(|vertical| {
                horizontal.iter().map(move |horizontal| (vertical.clone(), horizontal.clone()))
            })
            .map(|(vertical, horizontal)| PhaseConv::new(sizes, kernels.max_pixels(), vertical, horizontal))
            .collect();
        let work = products.iter().fold(0usize, |work, product| {
            let factors = [
                product.pixel_count(sizes.images),
                sizes.groups,
                product.columns,
                product.taps,
                sizes.depth(),
            ];
            work.saturating_add(factors.into_iter().fold(1, usize::saturating_mul))
        });
        let threads = team.worker_count().min(work / MIN_WORK_PER_THREAD).max(1);
        // Several tasks per thread balance the load if other work runs on the machine.
        let wanted = if threads == 1 { 1 } else { (4 * threads).div_ceil(products.len() * sizes.groups) };
        let mut tasks = Vec::new();
        for (at, product) in products.iter().enumerate() {
            let panels = product.columns.div_ceil(kernels.max_channels());
            let bytes_of_panel = kernels.max_channels() * product.taps * sizes.depth() * size_of::<f32>();
            let least_tasks = panels.div_ceil((WEIGHTS_BLOCK_BYTES / bytes_of_panel.max(1)).max(1));
            let tiles = sizes.images * product.vertical.quotients.len() * product.tiles;
            let pixel_tasks = wanted.div_ceil(least_tasks.max(1)).min(tiles).max(1);
            let channel_tasks = least_tasks.max(wanted.div_ceil(pixel_tasks).min(panels)).max(1);
            let columns =
                even_tile_size(panels, panels.div_ceil(channel_tasks).max(1)) * kernels.max_channels();
            let share = tiles.div_ceil(pixel_tasks).max(1);
            for group in 0..sizes.groups {
                for column in (0..product.columns).step_by(columns) {
                    let columns = column..product.columns.min(column + columns);
                    tasks.extend((0..tiles).step_by(share).map(|tile| PhaseTask {
                        product: at,
                        group,
                        tiles: tile..tiles.min(tile + share),
                        columns: columns.clone(),
                    }));
                }
            }
        }
        Self { sizes: sizes.clone(), products, tasks, threads }
    }

    /// Packs weights [C, M / groups, kernel…].
    pub(crate) fn pack_weights(&self, team: &dyn ThreadTeam, weights: &[f32]) -> Vec<WeightPanels> {
        let (depth, outputs) = (self.sizes.depth(), self.sizes.outputs_per_group());
        let kernel = self.sizes.vertical.kernel * self.sizes.horizontal.kernel;
        let pack = |product: &PhaseConv| {
            let PhaseConv { vertical, horizontal, columns, taps, .. } = product;
            WeightPanels::new(team, (self.sizes.groups, taps * depth, *columns), |panel| {
                for tap in 0..*taps {
                    let row_back = vertical.backs[tap / horizontal.backs.len()];
                    let column_back = horizontal.backs[tap % horizontal.backs.len()];
                    let mut places = [0; MAX_CHANNELS];
                    for (column, place) in (panel.first..).zip(&mut places[..panel.count]) {
                        let (phase, output) = (column / outputs, column % outputs);
                        let row_remainder = vertical.remainders.start + phase / horizontal.remainders.len();
                        let column_remainder =
                            horizontal.remainders.start + phase % horizontal.remainders.len();
                        let step = vertical.kernel_step(row_back, row_remainder)
                            * self.sizes.horizontal.kernel
                            + horizontal.kernel_step(column_back, column_remainder);
                        *place = output * kernel + step;
                    }
                    for group in 0..self.sizes.groups {
                        let places = &places[..panel.count];
                        let (rows, width) = panel.rows_mut(group, tap * depth..(tap + 1) * depth);
                        for (channel, row) in (group * depth..).zip(rows.chunks_exact_mut(width)) {
                            let source = &weights[channel * outputs * kernel..][..outputs * kernel];
                            for (weight, place) in row.iter_mut().zip(places) {
                                *weight = source[*place];
                            }
                        }
                    }
                }
            })
        };
        self.products.iter().map(pack).collect()
    }

    /// The sizes of the parts of scratch memory: zeros, biases for the widest phase, and for each thread pointers and a tile.
    fn scratch_sizes(&self) -> [usize; 4] {
        let most = |of: fn(&PhaseConv) -> usize| self.products.iter().map(of).max().unwrap_or(0);
        let pointers =
            most(|product| product.taps) * MAX_TILE_PIXELS * size_of::<*const f32>() / size_of::<f32>();
        let biases = self.sizes.outputs.max(most(|product| product.columns));
        [self.sizes.channels, biases, pointers, MAX_TILE_PIXELS * MAX_CHANNELS]
            .map(|count| count.next_multiple_of(16))
    }

    pub(crate) fn scratch_size(&self) -> usize {
        let [zeros, biases, pointers, tile] = self.scratch_sizes();
        zeros + biases + self.threads * (pointers + tile)
    }

    pub(crate) fn compute(
        &self,
        team: &dyn ThreadTeam,
        (x, weights): (&[f32], &[WeightPanels]),
        epilogue: &ConvEpilogue<'_>,
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let [zeros, biases, pointers, tile] = self.scratch_sizes();
        let (zeros, rest) = scratch.split_at_mut(zeros);
        let (biases, lanes) = rest.split_at_mut(biases);
        zeros.fill(0.0);
        if let Some(bias) = epilogue.bias.filter(|bias| !bias.is_empty()) {
            // A bias for each column: those of the channels, repeated for each remainder.
            biases.chunks_mut(bias.len()).for_each(|biases| biases.copy_from_slice(&bias[..biases.len()]));
        }
        let epilogue = ConvEpilogue { bias: epilogue.bias.map(|_| &*biases), ..*epilogue };
        let lanes = DisjointSlice::new(lanes);
        let job = TransposedConvJob {
            sizes: &self.sizes,
            products: &self.products,
            isa: team.isa(),
            x,
            zeros,
            weights,
            epilogue: &epilogue,
            y: DisjointSlice::new(y),
        };
        let tasks = TaskQueue::new(self.tasks.len(), self.threads);
        team.parallel_for_each(self.threads.min(self.tasks.len()), &|lane| {
            // SAFETY: each lane has its own part.
            let memory = unsafe { lanes.range_mut(lane * (pointers + tile)..(lane + 1) * (pointers + tile)) };
            let (pointers, tile) = memory.split_at_mut(pointers);
            for task in tasks.tasks_for_worker(lane) {
                job.run_task(&self.tasks[task], pointers.as_mut_ptr().cast(), tile);
            }
        });
    }
}
