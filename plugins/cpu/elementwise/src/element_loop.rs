//! Loops over contiguous elements: the only loops that compute. Operands in any other form are copied or converted first.

#![expect(
    unsafe_code,
    reason = "elements are read and written through pointers, as an output may be an input's memory"
)]

use oarlock_cpu_base::isa::{BaselineTarget, Isa, SimdTarget, SimdTask};

/// Why an element has no result, as a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElementFault(pub(super) &'static str);

pub(super) trait ElementLoop: Send + Sync {
    /// Computes `count` elements.
    ///
    /// # Safety
    ///
    /// As many elements can be read at each input and written at the output, of the types that the loop is for and aligned. An
    /// input does not overlap the output, unless it is the very same memory with elements of the same size.
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
    /// One element of each input, as a tuple.
    type Input: InputElements;
    type Output: Copy;
    /// True if some elements need [`ElementMap::apply_to_any`].
    const HAS_EXCEPTIONS: bool = false;
    /// True if it is compiled for each instruction set. Maps without SIMD instructions, such as integer division, are not, and
    /// neither are dtypes that models hardly use: they would only make the plugin larger.
    const IS_VECTORIZED: bool = true;

    /// The function, `#[inline(always)]` and without branches, so that loops over it vectorize.
    fn apply<T: SimdTarget>(self, input: Self::Input) -> Self::Output;

    /// True if `apply` must not be used for these elements.
    #[inline(always)]
    fn is_exception(self, _input: Self::Input) -> bool {
        false
    }

    /// The function for all elements, however slow.
    fn apply_to_any(self, input: Self::Input) -> Result<Self::Output, ElementFault> {
        Ok(self.apply::<BaselineTarget>(input))
    }
}

/// One element of each input.
pub(super) trait InputElements: Copy {
    /// A typed pointer to each input.
    type Pointers: Copy;

    /// Casts the first of the pointers to the types of the elements.
    fn typed_pointers(inputs: &[*const u8]) -> Self::Pointers;

    /// Reads the elements at an index.
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
        // A chunk is checked before it is computed: a branch per element would keep the loop from vectorizing. Its elements are
        // still in L1 when they are read again.
        let chunk = if M::HAS_EXCEPTIONS { FOLD_CHUNK } else { usize::MAX };
        for begin in (0..count).step_by(chunk) {
            let indices = begin..count.min(begin.saturating_add(chunk));
            if M::HAS_EXCEPTIONS {
                // SAFETY: the caller of the loop vouches for `count` elements; so below.
                let is_exception = |index| map.is_exception(unsafe { M::Input::read_at(inputs, index) });
                // `|` instead of `any`, whose early exit would keep the loop from vectorizing.
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

/// Folds any number of inputs with a map of two elements, and applies another map to the result, if there is one.
pub(super) struct FoldLoop<M, F> {
    /// Adds one more input to the partial result.
    pub(super) step: M,
    /// Applied to the last partial result.
    pub(super) finish: Option<F>,
}

/// Elements per chunk where a loop reads them more than once. Two buffers of 256 elements of 8 bytes are 4 KiB, which fit into L1
/// beside the inputs.
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
        let (step, first) = (MapLoop(self.step), inputs[0]);
        if let (None, [_, _]) = (&self.finish, inputs) {
            // SAFETY: as the caller vouches.
            return unsafe { step.run_loop(isa, inputs, output, count) };
        }
        // Partial results stay in buffers: the output may be the memory of an input that is still to be read.
        let mut buffers = [[E::default(); FOLD_CHUNK]; 2];
        let [mut free, mut next_free] = buffers.each_mut().map(|buffer| buffer.as_mut_ptr().cast::<u8>());
        for begin in (0..count).step_by(FOLD_CHUNK) {
            let length = FOLD_CHUNK.min(count - begin);
            let at = |input: *const u8| input.cast::<E>().wrapping_add(begin).cast::<u8>();
            let output = output.cast::<E>().wrapping_add(begin).cast::<u8>();
            let mut sums = at(first);
            for (index, input) in inputs.iter().enumerate().skip(1) {
                // Only the last step may write where inputs are.
                let is_result = self.finish.is_none() && index + 1 == inputs.len();
                let target = if is_result { output } else { free };
                // SAFETY: the caller vouches for `count` elements of each operand, and a buffer has room for `length`.
                unsafe { step.run_loop(isa, &[sums, at(*input)], target, length)? };
                sums = target;
                std::mem::swap(&mut free, &mut next_free);
            }
            // SAFETY: as above. The result of one input may be that input.
            unsafe {
                match &self.finish {
                    Some(finish) => MapLoop(*finish).run_loop(isa, &[sums], output, length)?,
                    None if inputs.len() == 1 => output.copy_from(sums, length * size_of::<E>()),
                    None => {}
                }
            }
        }
        Ok(())
    }
}
