//! A transposed convolution while it is computed: tiles go straight to the output where their pixels are evenly apart in it and
//! complete, and otherwise by way of the nearest cache.

#![expect(unsafe_code, reason = "tiles are handed to the micro-kernels as pointers")]

use std::ops::Range;
use std::ptr;

use super::super::dense::Paired;
use super::super::finish::{Finish, Residual};
use super::super::lanes::{Lanes, Work, with_lanes};
use super::super::tile::{Ending, Kernels, Tile};
use super::super::weights::Panels;
use super::products::{Product, Products, Sizes, Task};
use crate::gemm::Parts;
use crate::isa::Isa;

/// One convolution while it is computed.
pub(super) struct Job<'a> {
    pub(super) all: &'a Products,
    pub(super) isa: Isa,
    pub(super) x: &'a [f32],
    pub(super) zeros: &'a [f32],
    pub(super) weights: &'a [Panels],
    /// What follows, with a bias for each column.
    pub(super) finish: &'a Finish<'a>,
    pub(super) y: Parts<'a, f32>,
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
    /// Does a task, with room for the pointers of a tile and for its results.
    pub(super) fn run(&self, task: &Task, pointers: *mut *const f32, tile: &mut [f32]) {
        let Sizes { channels, outputs, along, .. } = self.all.sizes;
        let (depth, first_output) = (self.all.sizes.depth(), task.group * self.all.sizes.outputs_of_group());
        let (product, weights) = (&self.all.products[task.product], &self.weights[task.product]);
        let kernels = Kernels::of(self.isa);
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
                        ending: Ending {
                            bias: self.finish.bias_from(first_output + column),
                            output,
                            pixel,
                            residual,
                            channels: width,
                            bounds,
                            paired: Paired::NONE,
                        },
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
