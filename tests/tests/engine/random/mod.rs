//! Random graphs: with and without passes they compute the same.
//!
//! `OARLOCK_TEST_SEEDS`, as `BEGIN..END`, selects other seeds.

mod attention;
mod dynamic;
mod floats;
mod quantized;

use std::ops::Range;

use oarlock_engine::RuntimeValue;

use crate::sketch::GraphSketch;

/// A pseudo-random generator.
pub(crate) struct SeededRandom(pub(crate) u64);

impl SeededRandom {
    pub(crate) fn next_below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % count as u64).unwrap_or(0)
    }

    pub(crate) fn pick_one<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.next_below(list.len())]
    }
}

/// Seeds of the graphs to try.
fn test_seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(stated) = std::env::var("OARLOCK_TEST_SEEDS") else { return usual };
    let (begin, end) = stated.split_once("..").expect("`BEGIN..END`");
    begin.parse().expect("a number")..end.parse().expect("a number")
}

/// Runs a graph with and without passes, and returns the remaining ops.
fn check_passes(seed: u64, sketch: &GraphSketch, inputs: &[RuntimeValue]) -> Vec<String> {
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sketch.check_optimized(inputs)));
    checked.unwrap_or_else(|_| panic!("the graph of seed {seed}:\n{}", sketch.graph))
}
