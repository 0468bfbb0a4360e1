//! The operands of a call as slices, each output at most once, and kernels made from a function of these.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::cell::Cell;
use std::sync::Arc;

use oarlock_sdk::{Element, Kernel, KernelCall, PluginError, Result, TensorView};

use crate::device::Cpu;

pub struct KernelOperands<'c, 'a> {
    call: &'c KernelCall<'a>,
    /// A bit for each output whose slice was handed out: two slices of one output must never coexist.
    written: Cell<u64>,
}

pub type KernelRun = dyn Fn(&Cpu, &KernelCall<'_>) -> Result<()> + Send + Sync;

/// A kernel that reads its attributes once, into a `Plan`, and runs on operands.
pub fn operand_kernel<Plan: Send + Sync + 'static>(
    op: &str,
    plan: impl Fn(&KernelCall<'_>) -> Result<Plan> + Send + Sync + 'static,
    run: impl Fn(&Cpu, &Plan, &KernelOperands<'_, '_>) -> Result<()> + Copy + Send + Sync + 'static,
) -> Kernel<Cpu> {
    Kernel::new_prepared(op, move |_, call| {
        let plan = plan(call)?;
        Ok(run_on_operands(move |cpu, operands| run(cpu, &plan, operands)))
    })
}

pub fn run_on_operands(
    run: impl Fn(&Cpu, &KernelOperands<'_, '_>) -> Result<()> + Send + Sync + 'static,
) -> Arc<KernelRun> {
    Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| {
        run(cpu, &KernelOperands { call, written: Cell::new(0) })
    })
}

/// The elements of an input, if they are constant while a prepared kernel lives.
pub fn constant_elements<'a, T: Element>(input: TensorView<'a>) -> Result<Option<&'a [T]>> {
    if input.is_constant() { contiguous_elements(input).map(Some) } else { Ok(None) }
}

impl<'a> KernelOperands<'_, 'a> {
    /// The call, for access to dtypes, shapes and counts.
    pub fn call(&self) -> &KernelCall<'a> {
        self.call
    }

    pub fn read_input<T: Element>(&self, index: usize) -> Result<&'a [T]> {
        contiguous_elements(self.call.input(index)?)
    }

    pub fn read_optional_input<T: Element>(&self, index: usize) -> Result<Option<&'a [T]>> {
        self.call.optional_input(index)?.map(contiguous_elements).transpose()
    }

    /// The elements of an output, which can be taken once.
    pub fn write_output<T: Element>(&self, index: usize) -> Result<&'a mut [T]> {
        self.claim_output(self.call.output(index)?, index)
    }

    /// The elements of an optional output, which can be taken once.
    pub fn write_optional_output<T: Element>(&self, index: usize) -> Result<Option<&'a mut [T]>> {
        self.call.optional_output(index)?.map(|output| self.claim_output(output, index)).transpose()
    }

    fn claim_output<T: Element>(&self, output: TensorView<'a>, index: usize) -> Result<&'a mut [T]> {
        let bit = u32::try_from(index).ok().and_then(|index| 1u64.checked_shl(index));
        let Some(bit) = bit.filter(|bit| self.written.get() & bit == 0) else {
            return Err(PluginError::out_of_range(format!(
                "expected one of the first 64 outputs, once, found {index}"
            )));
        };
        self.written.set(self.written.get() | bit);
        // SAFETY: the device uses host memory; outputs overlap no other operands, since kernels made here do not permit an output
        // to share the memory of an input; and the bit makes this the only slice.
        unsafe { output.elements_mut() }
    }

    pub fn expect_dims(&self, found: &TensorView<'_>, name: &str, expected: &[i64]) -> Result<()> {
        oarlock_sdk::ensure!(
            found.dims() == expected,
            invalid_argument,
            "expected `{name}` of shape {expected:?}, found {:?}",
            found.dims()
        );
        Ok(())
    }
}

fn contiguous_elements<'a, T: Element>(input: TensorView<'a>) -> Result<&'a [T]> {
    // SAFETY: the device uses host memory, and the call vouches that nothing writes its inputs.
    unsafe { input.elements() }
}
