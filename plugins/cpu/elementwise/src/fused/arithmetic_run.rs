//! Runs of arithmetic on elements that stay in SIMD registers from the first step to the last. Through memory, even L1, each step would
//! take twice as long.

#![expect(unsafe_code, reason = "elements are read and written through pointers")]

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::prefetch::{prefetch_l1, prefetch_to_write};
use oarlock_cpu_base::simd::{F32Vector, F32VectorTask, run_with_vectors};
use oarlock_cpu_base::unrolled;

use super::super::element_loop::{ElementFault, ElementLoop};

/// Vectors of a block. With as many, one step of the block takes as long as a result of the last one needs to be ready.
const BLOCK_VECTORS: usize = 8;

/// How many elements ahead memory is fetched. The processor's own prefetches come too late if there is much to compute in between.
const PREFETCH_DISTANCE: usize = 1024;

/// Elements of a cache line.
const LINE_ELEMENTS: usize = 64 / size_of::<f32>();

/// Defines steps with a formula of the elements and an operand: one if the operand is a scalar, and one if it is an input.
macro_rules! arithmetic_steps {
    ($($with_scalar:ident $($with_input:ident)? ($x:ident, $y:ident) => $body:expr;)*) => {
        /// A step of a run. Each has a name of its own for scalars and for inputs, by the position among the inputs of the run, because
        /// a single jump for each step and block is all that there is time for.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(super) enum ArithmeticStep {
            $($with_scalar(f32), $($with_input(usize),)?)*
            Square,
            Magnitude,
        }

        impl ArithmeticStep {
            /// Applies the step to a block of vectors.
            ///
            /// # Safety
            ///
            /// The machine has the instructions of `V`, and `load` may load every vector of each input.
            #[inline(always)]
            unsafe fn apply_to_block<V: F32Vector, const VECTORS: usize>(
                self,
                block: &mut [V; VECTORS],
                load: impl Fn(usize, usize) -> V,
            ) {
                match self {
                    $(
                        Self::$with_scalar(scalar) => {
                            // SAFETY: as the caller vouches.
                            let $y = unsafe { V::splat(scalar) };
                            unrolled!(INDEX in 0..VECTORS, at most 12 {
                                let $x = block[INDEX];
                                block[INDEX] = $body;
                            });
                        }
                        $(Self::$with_input(input) => {
                            unrolled!(INDEX in 0..VECTORS, at most 12 {
                                let ($x, $y) = (block[INDEX], load(input, INDEX));
                                block[INDEX] = $body;
                            });
                        })?
                    )*
                    Self::Square => {
                        unrolled!(INDEX in 0..VECTORS, at most 12 {
                            block[INDEX] = block[INDEX].multiply(block[INDEX]);
                        });
                    }
                    Self::Magnitude => {
                        // SAFETY: as the caller vouches.
                        let zero = unsafe { V::splat(0.0) };
                        unrolled!(INDEX in 0..VECTORS, at most 12 {
                            // The negation comes first, which is 0 for both zeros, and stays if the two are equal.
                            block[INDEX] = zero.subtract(block[INDEX]).max(block[INDEX]);
                        });
                    }
                }
            }
        }
    };
}

arithmetic_steps! {
    AddScalar AddInput(x, y) => x.add(y);
    SubtractScalar SubtractInput(x, y) => x.subtract(y);
    SubtractFromScalar SubtractFromInput(x, y) => y.subtract(x);
    MultiplyScalar MultiplyInput(x, y) => x.multiply(y);
    DivideScalar DivideInput(x, y) => x.divide(y);
    DivideIntoScalar DivideIntoInput(x, y) => y.divide(x);
    // NaN stays in these two, and so do elements that are equal to the bound.
    AtLeastScalar(x, low) => x.max(low);
    AtMostScalar(x, high) => x.min(high);
}

/// Steps on the elements of the first input; others may be operands of the steps.
pub(super) struct ArithmeticRun(pub(super) Vec<ArithmeticStep>);

impl ElementLoop for ArithmeticRun {
    unsafe fn run_loop(
        &self,
        isa: Isa,
        inputs: &[*const u8],
        output: *mut u8,
        count: usize,
    ) -> Result<(), ElementFault> {
        run_with_vectors(isa, ArithmeticTask { steps: &self.0, inputs, output: output.cast(), count });
        Ok(())
    }
}

struct ArithmeticTask<'a> {
    steps: &'a [ArithmeticStep],
    inputs: &'a [*const u8],
    output: *mut f32,
    count: usize,
}

impl F32VectorTask for ArithmeticTask<'_> {
    #[inline(always)]
    unsafe fn run_on_vectors<V: F32Vector>(self) {
        let input = |index: usize, begin: usize| self.inputs[index].cast::<f32>().wrapping_add(begin);
        let blocks = self.count / (BLOCK_VECTORS * V::LANES);
        for begin in (0..blocks).map(|block| block * BLOCK_VECTORS * V::LANES) {
            let ahead = begin + PREFETCH_DISTANCE;
            for line in (ahead..ahead + BLOCK_VECTORS * V::LANES).step_by(LINE_ELEMENTS) {
                (0..self.inputs.len()).for_each(|index| prefetch_l1(input(index, line)));
                prefetch_to_write(self.output.wrapping_add(line));
            }
            // SAFETY: the caller of the loop vouches for `count` elements of each operand, and of the task for the instructions; so
            // below.
            unsafe {
                let load = |index, vector| V::load(input(index, begin + vector * V::LANES));
                let store = |vector: V, index| vector.store(self.output.add(begin + index * V::LANES));
                self.run_block::<V, BLOCK_VECTORS>(load, store);
            }
        }
        for begin in (blocks * BLOCK_VECTORS * V::LANES..self.count).step_by(V::LANES) {
            let lanes = V::LANES.min(self.count - begin);
            // SAFETY: as above.
            unsafe {
                let load = |index, _| V::load_partial(input(index, begin), lanes);
                let store = |vector: V, _| vector.store_partial(self.output.add(begin), lanes);
                self.run_block::<V, 1>(load, store);
            }
        }
    }
}

impl ArithmeticTask<'_> {
    /// Runs all steps on a block of vectors.
    ///
    /// # Safety
    ///
    /// The machine has the instructions of `V`, and `load` and `store` may be called for every vector and input.
    #[inline(always)]
    unsafe fn run_block<V: F32Vector, const VECTORS: usize>(
        &self,
        load: impl Fn(usize, usize) -> V + Copy,
        store: impl Fn(V, usize),
    ) {
        let mut block: [V; VECTORS] = std::array::from_fn(|vector| load(0, vector));
        for step in self.steps {
            // SAFETY: as the caller vouches.
            unsafe { step.apply_to_block(&mut block, load) };
        }
        unrolled!(INDEX in 0..VECTORS, at most 12 {
            store(block[INDEX], INDEX);
        });
    }
}
