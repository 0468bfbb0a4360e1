//! The operands of a call as slices, each output at most once, and kernels made of a function on them.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::cell::Cell;
use std::sync::Arc;

use oarlock_sdk::{Call, Element, Error, Kernel, Result, Tensor};

use crate::device::Cpu;

/// The operands of one run of a kernel.
pub(crate) struct Operands<'c, 'a> {
    call: &'c Call<'a>,
    /// A bit for each output that was handed out, since two slices of one must never exist together.
    written: Cell<u64>,
}

/// What a kernel does in each run.
pub(crate) type Run = dyn Fn(&Cpu, &Call<'_>) -> Result<()> + Send + Sync;

/// A kernel that reads the attributes once, into a `Plan`, and then runs on operands.
pub(crate) fn kernel<Plan: Send + Sync + 'static>(
    op: &str,
    plan: impl Fn(&Call<'_>) -> Result<Plan> + Send + Sync + 'static,
    run: impl Fn(&Cpu, &Plan, &Operands<'_, '_>) -> Result<()> + Copy + Send + Sync + 'static,
) -> Kernel<Cpu> {
    Kernel::prepared(op, move |_, call| {
        let plan = plan(call)?;
        Ok(on_operands(move |cpu, operands| run(cpu, &plan, operands)))
    })
}

/// A run on operands.
pub(crate) fn on_operands(
    run: impl Fn(&Cpu, &Operands<'_, '_>) -> Result<()> + Send + Sync + 'static,
) -> Arc<Run> {
    Arc::new(move |cpu: &Cpu, call: &Call<'_>| run(cpu, &Operands { call, written: Cell::new(0) }))
}

/// The elements of an input that stay as they are while a prepared kernel lives.
pub(crate) fn constant<'a, T: Element>(input: Tensor<'a>) -> Result<Option<&'a [T]>> {
    if input.is_constant() { elements(input).map(Some) } else { Ok(None) }
}

impl<'a> Operands<'_, 'a> {
    /// The call, for dtypes, shapes and counts.
    pub(crate) fn call(&self) -> &Call<'a> {
        self.call
    }

    /// The elements of an input.
    pub(crate) fn read<T: Element>(&self, index: usize) -> Result<&'a [T]> {
        elements(self.call.input(index)?)
    }

    /// The elements of an input that may be left out.
    pub(crate) fn read_optional<T: Element>(&self, index: usize) -> Result<Option<&'a [T]>> {
        self.call.optional_input(index)?.map(elements).transpose()
    }

    /// The elements of an output, which can be had once.
    pub(crate) fn write<T: Element>(&self, index: usize) -> Result<&'a mut [T]> {
        self.take(self.call.output(index)?, index)
    }

    /// The elements of an output that may be left out, which can be had once.
    pub(crate) fn write_optional<T: Element>(&self, index: usize) -> Result<Option<&'a mut [T]>> {
        self.call.optional_output(index)?.map(|output| self.take(output, index)).transpose()
    }

    fn take<T: Element>(&self, output: Tensor<'a>, index: usize) -> Result<&'a mut [T]> {
        let bit = u32::try_from(index).ok().and_then(|index| 1u64.checked_shl(index));
        let Some(bit) = bit.filter(|bit| self.written.get() & bit == 0) else {
            return Err(Error::out_of_range(format!(
                "expected one of the first 64 outputs, once, found {index}"
            )));
        };
        self.written.set(self.written.get() | bit);
        // SAFETY: the device's memory is the host's, the call vouches that outputs touch no other operand, as kernels made
        // here let no output use the memory of an input, and the bit makes this the only slice.
        unsafe { output.elements_mut() }
    }

    /// Checks that an operand has a shape.
    pub(crate) fn expect_dims(&self, found: &Tensor<'_>, name: &str, expected: &[i64]) -> Result<()> {
        oarlock_sdk::ensure!(
            found.dims() == expected,
            invalid_argument,
            "expected `{name}` of shape {expected:?}, found {:?}",
            found.dims()
        );
        Ok(())
    }
}

fn elements<'a, T: Element>(input: Tensor<'a>) -> Result<&'a [T]> {
    // SAFETY: the device's memory is the host's, and the call vouches that nothing writes its inputs.
    unsafe { input.elements() }
}
