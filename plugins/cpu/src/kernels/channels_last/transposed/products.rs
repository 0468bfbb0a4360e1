//! Transposed convolutions as ordinary ones, whose outputs lie among each other. Each output is one sum, computed by the
//! micro-kernels of [`super::super::dense`] from the inputs that reach it, so nothing is added up in memory.

#![expect(unsafe_code, reason = "each thread works in a part of the scratch memory")]

use std::ops::Range;

use super::super::finish::Finish;
use super::super::tile::{Kernels, MOST_PIXELS, even_share};
use super::super::weights::Panels;
use super::job::Job;
use super::phase::Phase;
use crate::gemm::{Parts, Tasks, Team};
use crate::kernels::conv::window::Axis;

/// Bytes of weights that a task works on at a time: they stay in the second cache beside the inputs.
const WEIGHTS_AT_ONCE: usize = 1024 * 1024;
/// Products that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 17;
/// The most lanes of two vectors.
const MOST_CHANNELS: usize = 32;

/// The sizes of a transposed convolution. The windows of its axes lie over the output.
#[derive(Clone, Debug)]
pub(in super::super) struct Sizes {
    pub(in super::super) images: usize,
    /// All channels of the input and of the output.
    pub(in super::super) channels: usize,
    pub(in super::super) outputs: usize,
    pub(in super::super) groups: usize,
    /// Down an image and along a row of it.
    pub(in super::super) down: Axis,
    pub(in super::super) along: Axis,
}

impl Sizes {
    pub(super) fn depth(&self) -> usize {
        self.channels / self.groups
    }

    pub(super) fn outputs_of_group(&self) -> usize {
        self.outputs / self.groups
    }

    /// What packed weights depend on beside the weights and the instruction set.
    pub(super) fn key(&self) -> [usize; 9] {
        let Self { groups, down, along, .. } = self;
        let of_group = [self.depth(), self.outputs_of_group(), *groups];
        let [a, b, c] = of_group;
        [a, b, c, down.kernel, down.stride, down.dilation, along.kernel, along.stride, along.dilation]
    }
}

/// An ordinary convolution that makes some of the outputs. Its columns are, for each remainder down and along, all output
/// channels of a group.
pub(super) struct Product {
    pub(super) down: Phase,
    pub(super) along: Phase,
    /// Columns that lie side by side in the output, and all columns.
    pub(super) run: usize,
    columns: usize,
    pub(super) taps: usize,
    /// Pixels of a tile, and tiles of a row.
    pub(super) tile: usize,
    pub(super) tiles: usize,
}

impl Product {
    fn new(sizes: &Sizes, most: usize, down: Phase, along: Phase) -> Self {
        let run = along.remainders.len() * sizes.outputs_of_group();
        let tile = even_share(along.quotients.len(), most);
        Self {
            run,
            columns: down.remainders.len() * run,
            taps: down.backs.len() * along.backs.len(),
            tile,
            tiles: along.quotients.len().div_ceil(tile),
            down,
            along,
        }
    }

    fn pixels(&self, images: usize) -> usize {
        images * self.down.quotients.len() * self.along.quotients.len()
    }
}

/// Some tiles and columns of a group of a product.
pub(super) struct Task {
    pub(super) product: usize,
    pub(super) group: usize,
    pub(super) tiles: Range<usize>,
    pub(super) columns: Range<usize>,
}

/// A transposed convolution that is ready to be computed.
pub(in super::super) struct Products {
    pub(super) sizes: Sizes,
    pub(super) products: Vec<Product>,
    tasks: Vec<Task>,
    threads: usize,
}

impl Products {
    pub(in super::super) fn new(team: &dyn Team, sizes: &Sizes) -> Self {
        let kernels = Kernels::of(team.isa());
        let along = Phase::all(&sizes.along, sizes.groups == 1);
        // Rows of the output are never side by side, so they are only computed together where that saves vectors.
        let run = sizes.along.stride * sizes.outputs_of_group();
        let joined = sizes.down.stride * run;
        let saves = joined <= kernels.channels()
            && joined.div_ceil(kernels.lanes) < sizes.down.stride * run.div_ceil(kernels.lanes);
        let down = Phase::all(&sizes.down, sizes.groups == 1 && along.len() == 1 && saves);
        let products: Vec<_> = down
            .iter()
            .flat_map(|down| along.iter().map(move |along| (down.clone(), along.clone())))
            .map(|(down, along)| Product::new(sizes, kernels.pixels(), down, along))
            .collect();
        let work = products.iter().fold(0usize, |work, product| {
            let factors =
                [product.pixels(sizes.images), sizes.groups, product.columns, product.taps, sizes.depth()];
            work.saturating_add(factors.into_iter().fold(1, usize::saturating_mul))
        });
        let threads = team.worker_count().min(work / WORK_OF_A_THREAD).max(1);
        // Some tasks for each thread even out what else the machine does.
        let wanted = if threads == 1 { 1 } else { (4 * threads).div_ceil(products.len() * sizes.groups) };
        let mut tasks = Vec::new();
        for (at, product) in products.iter().enumerate() {
            let panels = product.columns.div_ceil(kernels.channels());
            let bytes_of_panel = kernels.channels() * product.taps * sizes.depth() * size_of::<f32>();
            let least = panels.div_ceil((WEIGHTS_AT_ONCE / bytes_of_panel.max(1)).max(1));
            let tiles = sizes.images * product.down.quotients.len() * product.tiles;
            let down = wanted.div_ceil(least.max(1)).min(tiles).max(1);
            let across = least.max(wanted.div_ceil(down).min(panels)).max(1);
            let columns = even_share(panels, panels.div_ceil(across).max(1)) * kernels.channels();
            let share = tiles.div_ceil(down).max(1);
            for group in 0..sizes.groups {
                for column in (0..product.columns).step_by(columns) {
                    let columns = column..product.columns.min(column + columns);
                    tasks.extend((0..tiles).step_by(share).map(|tile| Task {
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

    /// Weights [C, M / groups, kernel…] in the order in which they are read.
    pub(in super::super) fn pack(&self, team: &dyn Team, weights: &[f32]) -> Vec<Panels> {
        let (depth, outputs) = (self.sizes.depth(), self.sizes.outputs_of_group());
        let kernel = self.sizes.down.kernel * self.sizes.along.kernel;
        let pack = |product: &Product| {
            let Product { down, along, columns, taps, .. } = product;
            Panels::new(team, (self.sizes.groups, taps * depth, *columns), |panel| {
                for tap in 0..*taps {
                    let back_down = down.backs[tap / along.backs.len()];
                    let back_along = along.backs[tap % along.backs.len()];
                    let mut places = [0; MOST_CHANNELS];
                    for (column, place) in (panel.first..).zip(&mut places[..panel.count]) {
                        let (phase, output) = (column / outputs, column % outputs);
                        let remainder_down = down.remainders.start + phase / along.remainders.len();
                        let remainder_along = along.remainders.start + phase % along.remainders.len();
                        let step = down.step(back_down, remainder_down) * self.sizes.along.kernel
                            + along.step(back_along, remainder_along);
                        *place = output * kernel + step;
                    }
                    for group in 0..self.sizes.groups {
                        let places = &places[..panel.count];
                        let (rows, width) = panel.rows(group, tap * depth..(tap + 1) * depth);
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

    /// Elements of scratch memory: zeros, biases of the most columns, and for each thread pointers and a tile.
    fn parts(&self) -> [usize; 4] {
        let most = |of: fn(&Product) -> usize| self.products.iter().map(of).max().unwrap_or(0);
        let pointers =
            most(|product| product.taps) * MOST_PIXELS * size_of::<*const f32>() / size_of::<f32>();
        let biases = self.sizes.outputs.max(most(|product| product.columns));
        [self.sizes.channels, biases, pointers, MOST_PIXELS * MOST_CHANNELS]
            .map(|count| count.next_multiple_of(16))
    }

    /// How many elements of scratch memory it takes.
    pub(in super::super) fn scratch_size(&self) -> usize {
        let [zeros, biases, pointers, tile] = self.parts();
        zeros + biases + self.threads * (pointers + tile)
    }

    /// Computes the convolution.
    pub(in super::super) fn compute(
        &self,
        team: &dyn Team,
        (x, weights): (&[f32], &[Panels]),
        finish: &Finish<'_>,
        y: &mut [f32],
        scratch: &mut [f32],
    ) {
        let [zeros, biases, pointers, tile] = self.parts();
        let (zeros, rest) = scratch.split_at_mut(zeros);
        let (biases, lanes) = rest.split_at_mut(biases);
        zeros.fill(0.0);
        if let Some(bias) = finish.bias.filter(|bias| !bias.is_empty()) {
            biases.chunks_mut(bias.len()).for_each(|biases| biases.copy_from_slice(&bias[..biases.len()]));
        }
        let finish = Finish { bias: finish.bias.map(|_| &*biases), ..*finish };
        let lanes = Parts::new(lanes);
        let job = Job { all: self, isa: team.isa(), x, zeros, weights, finish: &finish, y: Parts::new(y) };
        let tasks = Tasks::new(self.tasks.len(), self.threads);
        team.each(self.threads.min(self.tasks.len()), &|lane| {
            // SAFETY: each lane has a part of its own.
            let memory = unsafe { lanes.part(lane * (pointers + tile)..(lane + 1) * (pointers + tile)) };
            let (pointers, tile) = memory.split_at_mut(pointers);
            for task in tasks.of(lane) {
                job.run(&self.tasks[task], pointers.as_mut_ptr().cast(), tile);
            }
        });
    }
}
