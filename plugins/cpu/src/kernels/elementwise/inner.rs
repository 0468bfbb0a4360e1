//! Loops over elements that lie side by side: the only loops that compute. Everything else is brought into that form.

#![expect(
    unsafe_code,
    reason = "elements are read and written through pointers, as an output may be an input's memory"
)]

use crate::isa::{Baseline, Isa, Target, Vectorized};

/// Why a result does not exist, as a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault(pub(super) &'static str);

/// A loop over elements that lie side by side.
pub(super) trait Inner: Send + Sync {
    /// Computes `count` elements.
    ///
    /// # Safety
    ///
    /// As many elements can be read at each input and written at the output, of the types that the loop is for and aligned.
    /// An input is no part of the output, unless it is the very same memory with elements of the same size.
    unsafe fn run(&self, isa: Isa, inputs: &[*const u8], output: *mut u8, count: usize) -> Result<(), Fault>;
}

impl<I: Inner + ?Sized> Inner for &'static I {
    unsafe fn run(&self, isa: Isa, inputs: &[*const u8], output: *mut u8, count: usize) -> Result<(), Fault> {
        // SAFETY: as the caller vouches.
        unsafe { (**self).run(isa, inputs, output, count) }
    }
}

/// A function from one element of each input to one of the output.
pub(super) trait Map: Copy + Send + Sync + 'static {
    /// The elements of the inputs, as a tuple.
    type Input: Elements;
    /// The element of the output.
    type Output: Copy;
    /// Whether some elements need more than [`Map::apply`].
    const HAS_EXCEPTIONS: bool = false;
    /// Whether it is compiled for each instruction set. What no set has vectors for, such as divisions of integers, is not, and
    /// neither are numbers that models hardly have: the plugin would be larger by what nobody waits for.
    const IS_VECTORIZED: bool = true;

    /// The function, `#[inline(always)]` and without branches, so that it becomes vector code.
    fn apply<T: Target>(self, input: Self::Input) -> Self::Output;

    /// Whether `apply` must not be used for these elements.
    #[inline(always)]
    fn is_exception(self, _input: Self::Input) -> bool {
        false
    }

    /// The function for any elements, however slow.
    fn apply_to_any(self, input: Self::Input) -> Result<Self::Output, Fault> {
        Ok(self.apply::<Baseline>(input))
    }
}

/// One element of each input.
pub(super) trait Elements: Copy {
    /// Where the elements of each input start.
    type Pointers: Copy;

    /// The first of the pointers with their types.
    fn pointers(inputs: &[*const u8]) -> Self::Pointers;

    /// The elements at an index.
    ///
    /// # Safety
    ///
    /// Each input has an element at the index.
    unsafe fn read(pointers: Self::Pointers, index: usize) -> Self;
}

macro_rules! elements {
    ($($name:ident $index:tt)*) => {
        impl<$($name: Copy),*> Elements for ($($name,)*) {
            type Pointers = ($(*const $name,)*);

            #[inline(always)]
            fn pointers(inputs: &[*const u8]) -> Self::Pointers {
                ($(inputs[$index].cast::<$name>(),)*)
            }

            #[inline(always)]
            unsafe fn read(pointers: Self::Pointers, index: usize) -> Self {
                // SAFETY: as the caller vouches.
                unsafe { ($(pointers.$index.add(index).read(),)*) }
            }
        }
    };
}

elements!(A 0);
elements!(A 0 B 1);
elements!(A 0 B 1 C 2);

/// The loop of a map.
pub(super) struct Loop<M>(pub(super) M);

impl<M: Map> Inner for Loop<M> {
    unsafe fn run(&self, isa: Isa, inputs: &[*const u8], output: *mut u8, count: usize) -> Result<(), Fault> {
        let inputs = M::Input::pointers(inputs);
        let run = Run { map: self.0, inputs, output: output.cast(), count };
        if const { M::IS_VECTORIZED } { isa.vectorize(run) } else { run.run::<Baseline>() }
    }
}

struct Run<M: Map> {
    map: M,
    inputs: <M::Input as Elements>::Pointers,
    output: *mut M::Output,
    count: usize,
}

impl<M: Map> Vectorized for Run<M> {
    type Output = Result<(), Fault>;

    #[inline(always)]
    fn run<T: Target>(self) -> Result<(), Fault> {
        let Self { map, inputs, output, count } = self;
        let chunk = if M::HAS_EXCEPTIONS { CHUNK } else { usize::MAX };
        for begin in (0..count).step_by(chunk) {
            let indices = begin..count.min(begin.saturating_add(chunk));
            if M::HAS_EXCEPTIONS {
                // SAFETY: whoever ran the loop vouches for `count` elements; so below.
                let is_exception = |index| map.is_exception(unsafe { M::Input::read(inputs, index) });
                if indices.clone().fold(false, |any, index| any | is_exception(index)) {
                    self.run_any(indices)?;
                    continue;
                }
            }
            for index in indices {
                // SAFETY: as above.
                unsafe { output.add(index).write(map.apply::<T>(M::Input::read(inputs, index))) };
            }
        }
        Ok(())
    }
}

impl<M: Map> Run<M> {
    #[cold]
    #[inline(never)]
    fn run_any(&self, indices: std::ops::Range<usize>) -> Result<(), Fault> {
        for index in indices {
            // SAFETY: as above.
            unsafe {
                let result = self.map.apply_to_any(M::Input::read(self.inputs, index))?;
                self.output.add(index).write(result);
            }
        }
        Ok(())
    }
}

/// A map of two elements of a type to one of the same that is applied over and over to any number of inputs, and at last a map
/// of the result.
pub(super) struct Fold<M, F> {
    /// Takes in one more input.
    pub(super) step: M,
    /// What is done with the result.
    pub(super) finish: F,
}

/// Elements that are under way at a time where a loop goes over them more than once.
const CHUNK: usize = 256;

impl<E, M, F> Inner for Fold<M, F>
where
    E: Copy + Default,
    M: Map<Input = (E, E), Output = E>,
    F: Map<Input = (E,), Output = E>,
{
    unsafe fn run(&self, isa: Isa, inputs: &[*const u8], output: *mut u8, count: usize) -> Result<(), Fault> {
        let (mut sums, mut other) = ([E::default(); CHUNK], [E::default(); CHUNK]);
        for begin in (0..count).step_by(CHUNK) {
            let length = CHUNK.min(count - begin);
            let at = |input: *const u8| input.cast::<E>().wrapping_add(begin);
            // SAFETY: the caller vouches for `count` elements of each operand, and a chunk has room for `length`.
            unsafe {
                sums.as_mut_ptr().copy_from_nonoverlapping(at(inputs[0]), length);
                for input in &inputs[1..] {
                    let pair = [sums.as_ptr().cast(), at(*input).cast()];
                    Loop(self.step).run(isa, &pair, other.as_mut_ptr().cast(), length)?;
                    std::mem::swap(&mut sums, &mut other);
                }
                let output = output.cast::<E>().add(begin).cast();
                Loop(self.finish).run(isa, &[sums.as_ptr().cast()], output, length)?;
            }
        }
        Ok(())
    }
}
