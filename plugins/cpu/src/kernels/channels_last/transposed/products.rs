//! Transposed convolutions as ordinary ones, whose outputs lie among each other. Each output is one sum, computed by the
//! micro-kernels of [`super::super::dense`] from the inputs that reach it, so nothing is added up in memory.

#![expect(unsafe_code, reason = "tiles are handed to the micro-kernels as pointers")]

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::finish::{Finish, Residual};
use super::super::lanes::{Lanes, Work, with_lanes};
use super::super::tile::{Kernels, MOST_PIXELS, Tile, even_share};
use super::super::weights::Panels;
use super::phase::Phase;
use crate::gemm::{Parts, Team};
use crate::isa::Isa;
use crate::kernels::conv::window::Axis;

/// Bytes of weights that a task works on at a time: they stay in the second cache beside the inputs.
const WEIGHTS_AT_ONCE: usize = 1024 * 1024;
/// Products that are worth waking another thread.
const WORK_OF_A_THREAD: usize = 1 << 18;
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
    fn depth(&self) -> usize {
        self.channels / self.groups
    }

    fn outputs_of_group(&self) -> usize {
        self.outputs / self.groups
    }
}

/// An ordinary convolution that makes some of the outputs. Its columns are, for each remainder down and along, all output
/// channels of a group.
struct Product {
    down: Phase,
    along: Phase,
    /// Columns that lie side by side in the output, and all columns.
    run: usize,
    columns: usize,
    taps: usize,
    /// Pixels of a tile, and tiles of a row.
    tile: usize,
    tiles: usize,
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
struct Task {
    product: usize,
    group: usize,
    tiles: Range<usize>,
    columns: Range<usize>,
}

/// A transposed convolution that is ready to be computed.
pub(in super::super) struct Products {
    sizes: Sizes,
    products: Vec<Product>,
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

    /// How many channels the output has.
    pub(in super::super) fn outputs(&self) -> usize {
        self.sizes.outputs
    }

    /// What packed weights depend on beside the weights and the instruction set.
    pub(in super::super) fn key(&self) -> [usize; 9] {
        let Sizes { groups, down, along, .. } = self.sizes;
        let of_group = [self.sizes.depth(), self.sizes.outputs_of_group(), groups];
        let [a, b, c] = of_group;
        [a, b, c, down.kernel, down.stride, down.dilation, along.kernel, along.stride, along.dilation]
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
        let next = AtomicUsize::new(0);
        team.each(self.threads.min(self.tasks.len()), &|lane| {
            // SAFETY: each lane has a part of its own.
            let memory = unsafe { lanes.part(lane * (pointers + tile)..(lane + 1) * (pointers + tile)) };
            let (pointers, tile) = memory.split_at_mut(pointers);
            while let Some(task) = self.tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                job.run(task, pointers.as_mut_ptr().cast(), tile);
            }
        });
    }
}

/// One convolution while it is computed.
struct Job<'a> {
    all: &'a Products,
    isa: Isa,
    x: &'a [f32],
    zeros: &'a [f32],
    weights: &'a [Panels],
    finish: &'a Finish<'a>,
    y: Parts<'a, f32>,
}

/// Some pixels of a row of a product.
struct Place<'a> {
    product: &'a Product,
    group: usize,
    image: usize,
    /// The quotient down and those along.
    row: usize,
    pixels: Range<usize>,
}

impl Job<'_> {
    fn run(&self, task: &Task, pointers: *mut *const f32, tile: &mut [f32]) {
        let Sizes { channels, outputs, groups, along, .. } = self.all.sizes;
        let (depth, first_output) = (self.all.sizes.depth(), task.group * self.all.sizes.outputs_of_group());
        let (product, weights) = (&self.all.products[task.product], &self.weights[task.product]);
        let kernels = Kernels::of(self.isa);
        debug_assert!(groups == 1 || product.columns == self.all.sizes.outputs_of_group());
        for index in task.tiles.clone() {
            let (row, first) = (index / product.tiles, index % product.tiles * product.tile);
            let rows = product.down.quotients.len();
            let begin = product.along.quotients.start + first;
            let place = Place {
                product,
                group: task.group,
                image: row / rows,
                row: product.down.quotients.start + row % rows,
                pixels: begin..product.along.quotients.end.min(begin + product.tile),
            };
            if channels > 0 {
                self.point(&place, pointers);
            }
            let is_direct = !self.finish.is_left()
                && product.down.remainders.len() == 1
                && product.along.is_whole(place.pixels.clone());
            for column in task.columns.clone().step_by(weights.width()) {
                let width = weights.width().min(task.columns.end - column);
                let (output, pixel, residual, bounds) = if is_direct {
                    let pixel = product.along.output(begin, product.along.remainders.start);
                    let row = self.row_of(&place, product.down.remainders.start);
                    let element = row + pixel * outputs + column;
                    let output = self.y.pointer(element);
                    let residual = self.finish.residual_from(element, output);
                    (output, along.stride * outputs, residual, self.finish.bounds())
                } else {
                    (tile.as_mut_ptr(), width, ptr::null(), None)
                };
                // SAFETY: the pointers and weights are there for all taps, a tile has room for all pixels of all columns, and
                // the outputs of a task are its alone.
                unsafe {
                    kernels.get(place.pixels.len(), width)(&Tile {
                        inputs: pointers,
                        taps: if channels > 0 { product.taps } else { 0 },
                        depth,
                        skip: task.group * depth,
                        weights: weights.panel(task.group, column),
                        bias: self.finish.bias_from(first_output + column),
                        output,
                        pixel,
                        residual,
                        channels: width,
                        bounds,
                    });
                }
                if !is_direct {
                    self.put_apart(&place, column..column + width, tile);
                }
            }
        }
    }

    /// Writes the pointers of some pixels, for each tap.
    fn point(&self, place: &Place<'_>, pointers: *mut *const f32) {
        let Sizes { channels, down, along, .. } = self.all.sizes;
        let mut at = pointers;
        for back in &place.product.down.backs {
            // What lies before the image is a huge number.
            let line = place.row.wrapping_sub(*back);
            for back in &place.product.along.backs {
                for pixel in place.pixels.clone() {
                    let column = pixel.wrapping_sub(*back);
                    let is_inside = line < down.output && column < along.output;
                    let input = if is_inside {
                        let pixel = (place.image * down.output + line) * along.output + column;
                        self.x[pixel * channels..].as_ptr()
                    } else {
                        self.zeros.as_ptr()
                    };
                    // SAFETY: there is room for the pointers of a tile for each tap.
                    unsafe {
                        *at = input;
                        at = at.add(1);
                    }
                }
            }
        }
    }

    /// Where a row of the output begins for the outputs of a group.
    fn row_of(&self, place: &Place<'_>, remainder: usize) -> usize {
        let Sizes { outputs, down, along, .. } = &self.all.sizes;
        let row = place.image * down.input + place.product.down.output(place.row, remainder);
        row * along.input * outputs + place.group * self.all.sizes.outputs_of_group()
    }

    /// Does what follows to some columns of a tile and writes them to where they belong.
    fn put_apart(&self, place: &Place<'_>, columns: Range<usize>, tile: &mut [f32]) {
        let results = &mut tile[..place.pixels.len() * columns.len()];
        let put = |results: &mut [f32], target| {
            // Each piece has a place of its own in the output.
            with_lanes(self.isa, Pieces { job: self, place, columns: columns.clone(), results, target });
        };
        if !matches!(self.finish.residual, Residual::None) {
            put(results, Target::Results);
        }
        self.finish.apply(self.isa, results);
        put(results, Target::Output);
    }
}

/// What is read and written where columns of a tile meet the output.
#[derive(Clone, Copy)]
enum Target {
    /// The residual is added to the results.
    Results,
    /// The results become the output.
    Output,
}

/// Columns of a tile, which lie together, and the pieces of the output that they are.
struct Pieces<'a> {
    job: &'a Job<'a>,
    place: &'a Place<'a>,
    columns: Range<usize>,
    results: &'a mut [f32],
    target: Target,
}

impl Work for Pieces<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Self { job, place, columns, results, target } = self;
        let Product { down, along, run, .. } = place.product;
        let outputs = job.all.sizes.outputs_of_group();
        for remainder in down.remainders_at(place.row) {
            let row = job.row_of(place, remainder);
            let start = (remainder - down.remainders.start) * run;
            for (pixel, results) in place.pixels.clone().zip(results.chunks_exact_mut(columns.len())) {
                let remainders = along.remainders_at(pixel);
                let first = start + (remainders.start - along.remainders.start) * outputs;
                let begin = first.max(columns.start);
                let end = (first + remainders.len() * outputs).min(columns.end);
                if begin >= end {
                    continue;
                }
                let column = along.output(pixel, remainders.start) * job.all.sizes.outputs;
                let element = row + column + begin - first;
                let results = &mut results[begin - columns.start..end - columns.start];
                let output = job.y.pointer(element);
                let (with, to) = match target {
                    Target::Results => (job.finish.residual_from(element, output), results.as_mut_ptr()),
                    Target::Output => (ptr::null(), output),
                };
                // SAFETY: so many results are there, and so much of the output, which is this task's alone.
                unsafe { add::<V>(results.as_ptr(), with, to, results.len()) };
            }
        }
    }
}

/// Writes numbers, plus others unless they are null.
///
/// # Safety
///
/// So many of each can be read and written, and the machine has the instructions.
#[inline(always)]
unsafe fn add<V: Lanes>(from: *const f32, with: *const f32, to: *mut f32, count: usize) {
    // SAFETY: as the caller vouches.
    unsafe {
        for index in (0..count).step_by(V::COUNT) {
            let lanes = V::COUNT.min(count - index);
            let mut sum = V::load_some(from.add(index), lanes);
            if !with.is_null() {
                sum = sum.plus(V::load_some(with.add(index), lanes));
            }
            sum.store_some(to.add(index), lanes);
        }
    }
}
