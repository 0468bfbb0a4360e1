//! Loops over elements that lie side by side: the only loops that compute. Everything else is brought into that form.

#![expect(
    unsafe_code,
    reason = "elements are read and written through pointers, as an output may be an input's memory"
)]

use crate::isa::{BaselineTarget, Isa, SimdTarget, SimdTask};

/// Why a result does not exist, as a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementFault(pub(super) &'static str);

/// A loop over elements that lie side by side.
pub(super) trait ElementLoop: Send + Sync {
    /// Computes `count` elements.
    ///
    /// # Safety
    ///
    /// As many elements can be read at each input and written at the output, of the types that the loop is for and aligned.
    /// An input is no part of the output, unless it is the very same memory with elements of the same size.
    unsafe fn run_loop(
        &self,
        isa: Isa,
        inputs: &[*const u8],
        output: *mut u8,
        count: usize,
    ) -> Result<(), ElementFault>;
}

impl<I: ElementLoop + ?Sized> ElementLoop for &'static I {
    unsafe fn run_loop(
        &self,
        isa: Isa,
        inputs: &[*const u8],
        output: *mut u8,
        count: usize,
    ) -> Result<(), ElementFault> {
        // SAFETY: as the caller vouches.
        unsafe { (**self).run_loop(isa, inputs, output, count) }
    }
}

/// A function from one element of each input to one of the output.
pub(super) trait ElementMap: Copy + Send + Sync + 'static {
    /// The elements of the inputs, as a tuple.
    type Input: InputElements;
    /// The element of the output.
    type Output: Copy;
    /// Whether some elements need more than [`ElementMap::apply_with_isa`].
    const HAS_EXCEPTIONS: bool = false;
    /// Whether it is compiled for each instruction set. What no set has vectors for, such as divisions of integers, is not, and
    /// neither are numbers that models hardly have: the plugin would be larger by what nobody waits for.
    const IS_VECTORIZED: bool = true;

    /// The function, `#[inline(always)]` and without branches, so that it becomes vector code.
    fn apply<T: SimdTarget>(self, input: Self::Input) -> Self::Output;

    /// Whether `apply` must not be used for these elements.
    #[inline(always)]
    fn is_exception(self, _input: Self::Input) -> bool {
        false
    }

    /// The function for any elements, however slow.
    fn apply_to_any(self, input: Self::Input) -> Result<Self::Output, ElementFault> {
        Ok(self.apply::<BaselineTarget>(input))
    }
}

/// One element of each input.
pub(super) trait InputElements: Copy {
    /// Where the elements of each input start.
    type Pointers: Copy;

    /// The first of the pointers with their types.
    fn typed_pointers(inputs: &[*const u8]) -> Self::Pointers;

    /// The elements at an index.
    ///
    /// # Safety
    ///
    /// Each input has an element at the index.
    unsafe fn read_at(pointers: Self::Pointers, index: usize) -> Self;
}

macro_rules! elements {
    ($($name:ident $index:tt)*) => {
        impl<$($name: Copy),*> InputElements for ($($name,)*) {
            type Pointers = ($(*const $name,)*);

            #[inline(always)]
            fn typed_pointers(inputs: &[*const u8]) -> Self::Pointers {
                ($(inputs[$index].cast::<$name>(),)*)
            }

            #[inline(always)]
            unsafe fn read_at(pointers: Self::Pointers, index: usize) -> Self {
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
pub(super) struct MapLoop<M>(pub(super) M);

impl<M: ElementMap> ElementLoop for MapLoop<M> {
    unsafe fn run_loop(
        &self,
        isa: Isa,
        inputs: &[*const u8],
        output: *mut u8,
        count: usize,
    ) -> Result<(), ElementFault> {
        let inputs = M::Input::typed_pointers(inputs);
        let run = MapTask { map: self.0, inputs, output: output.cast(), count };
        if const { M::IS_VECTORIZED } { isa.vectorize(run) } else { run.run_on_target::<BaselineTarget>() }
    }
}

struct MapTask<M: ElementMap> {
    map: M,
    inputs: <M::Input as InputElements>::Pointers,
    output: *mut M::Output,
    count: usize,
}

impl<M: ElementMap> SimdTask for MapTask<M> {
    type Output = Result<(), ElementFault>;

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) -> Result<(), ElementFault> {
        let Self { map, inputs, output, count } = self;
        let chunk = if M::HAS_EXCEPTIONS { FOLD_CHUNK } else { usize::MAX };
        for begin in (0..count).step_by(chunk) {
            let indices = begin..count.min(begin.saturating_add(chunk));
            if M::HAS_EXCEPTIONS {
                // SAFETY: whoever ran the loop vouches for `count` elements; so below.
                let is_exception = |index| map.is_exception(unsafe { M::Input::read_at(inputs, index) });
                if indices.clone().fold(false, |any, index| any | is_exception(index)) {
                    self.run_with_exceptions(indices)?;
                    continue;
                }
            }
            for index in indices {
                // SAFETY: as above.
                unsafe { output.add(index).write(map.apply::<T>(M::Input::read_at(inputs, index))) };
            }
        }
        Ok(())
    }
}

impl<M: ElementMap> MapTask<M> {
    #[cold]
    #[inline(never)]
    fn run_with_exceptions(&self, indices: std::ops::Range<usize>) -> Result<(), ElementFault> {
        for index in indices {
            // SAFETY: as above.
            unsafe {
                let result = self.map.apply_to_any(M::Input::read_at(self.inputs, index))?;
                self.output.add(index).write(result);
            }
        }
        Ok(())
    }
}

/// A map of two elements of a type to one of the same that is applied over and over to any number of inputs, and at last a map
/// of the result.
pub(super) struct FoldLoop<M, F> {
    /// Takes in one more input.
    pub(super) step: M,
    /// What is done with the result.
    pub(super) finish: F,
}

/// Elements that are under way at a time where a loop goes over them more than once.
const FOLD_CHUNK: usize = 256;

impl<E, M, F> ElementLoop for FoldLoop<M, F>
where
    E: Copy + Default,
    M: ElementMap<Input = (E, E), Output = E>,
    F: ElementMap<Input = (E,), Output = E>,
{
    unsafe fn run_loop(
        &self,
        isa: Isa,
        inputs: &[*const u8],
        output: *mut u8,
        count: usize,
    ) -> Result<(), ElementFault> {
        let (mut sums, mut other) = ([E::default(); FOLD_CHUNK], [E::default(); FOLD_CHUNK]);
        for begin in (0..count).step_by(FOLD_CHUNK) {
            let length = FOLD_CHUNK.min(count - begin);
            let at = |input: *const u8| input.cast::<E>().wrapping_add(begin);
            // SAFETY: the caller vouches for `count` elements of each operand, and a chunk has room for `length`.
            unsafe {
                sums.as_mut_ptr().copy_from_nonoverlapping(at(inputs[0]), length);
                for input in &inputs[1..] {
                    let pair = [sums.as_ptr().cast(), at(*input).cast()];
                    MapLoop(self.step).run_loop(isa, &pair, other.as_mut_ptr().cast(), length)?;
                    std::mem::swap(&mut sums, &mut other);
                }
                let output = output.cast::<E>().add(begin).cast();
                MapLoop(self.finish).run_loop(isa, &[sums.as_ptr().cast()], output, length)?;
            }
        }
        Ok(())
    }
}
