//! Functions of any number of elements.

use std::marker::PhantomData;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::SimdTarget;
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandFlags, PluginError, Result, TensorView};

use super::binary::{Larger, Plus, Smaller};
use super::element_loop::{ElementMap, FoldLoop};
use super::iteration_space::MAX_OPERANDS;
use super::number::{ArithmeticElement, with_number};
use super::port::OperandPort;
use super::prepared_loop::{LoopOperand, PreparedLoop};
use super::registration::{FLOATS, NUMBERS, input_operand, output_operand, prepared_kernel};
use super::unary::Same;

#[derive(Clone, Copy)]
struct DivideByCount<N>(N);

impl<N: ArithmeticElement> ElementMap for DivideByCount<N> {
    type Input = (N,);
    type Output = N;
    const IS_VECTORIZED: bool = !N::IS_INTEGER;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (sum,): (N,)) -> N {
        sum.divided_by(self.0)
    }
}

/// The maximum number of inputs of a loop.
const MAX_INPUTS: usize = MAX_OPERANDS - 1;

/// The loops over all inputs: the first takes the first of them, each later one the result so far and the next ones.
struct VariadicLoops(Vec<PreparedLoop>);

impl VariadicLoops {
    /// Makes loops, each by its number of inputs and whether it is the last.
    fn new(call: &KernelCall<'_>, pass: impl Fn(usize, bool) -> Result<PreparedLoop>) -> Result<Self> {
        let mut left = call.input_count();
        let mut passes = Vec::new();
        while left > 0 {
            // All but the first loop also read the result so far.
            let taken = left.min(MAX_INPUTS - usize::from(!passes.is_empty()));
            left -= taken;
            passes.push(pass(taken + usize::from(!passes.is_empty()), left == 0)?);
        }
        if passes.is_empty() {
            return Err(PluginError::invalid_argument("expected at least one input, found none"));
        }
        Ok(Self(passes))
    }

    fn run(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        let output = call.output(0)?;
        let mut next = 0;
        // The output may be the memory of the first input, which the first loop has read before another one writes.
        for pass in &self.0 {
            let target = LoopOperand::from_tensor(&output, pass.output_port())?;
            // Later loops find the result so far in the output, as their first input.
            let mut operands = [target; MAX_INPUTS];
            let first = usize::from(next > 0);
            for (operand, port) in operands.iter_mut().zip(pass.input_ports()).skip(first) {
                let tensor: TensorView<'_> = call.input(next)?;
                *operand = LoopOperand::from_tensor(&tensor, port)?;
                next += 1;
            }
            pass.run_on_operands(cpu, &operands[..pass.input_ports().len()], target)?;
        }
        Ok(())
    }
}

/// The loop of a fold over some inputs of the dtype of the call's first.
macro_rules! fold {
    ($call:expr, $count:expr, $numbers:ident, $step:ident, $number:ident => $finish:expr) => {{
        let dtype = $call.input(0)?.dtype();
        with_number!(dtype, $numbers, $number => {
            let (input, output) = (OperandPort::for_input(dtype, $number::DTYPE)?, OperandPort::for_output(dtype, $number::DTYPE)?);
            let fold = FoldLoop { step: $step::<$number>(PhantomData), finish: $finish };
            Ok(PreparedLoop::new(fold, vec![input; $count], output))
        })
    }};
}

fn variadic_kernel(
    op: &'static str,
    dtypes: DtypeSet,
    pass: impl Fn(&KernelCall<'_>, usize, bool) -> Result<PreparedLoop> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    prepared_kernel(op, 1, move |call| {
        let passes = VariadicLoops::new(call, |count, is_last| pass(call, count, is_last))?;
        Ok(move |cpu: &Cpu, call: &KernelCall<'_>| passes.run(cpu, call))
    })
    .with_inputs([input_operand("data_0", dtypes).with_dtype_group(1).with_flags(OperandFlags::VARIADIC)])
    .with_outputs([output_operand("", dtypes).with_dtype_group(1)])
    .with_in_place(0, 0)
}

pub(super) fn variadic_kernels() -> Vec<Kernel<Cpu>> {
    vec![
        variadic_kernel(
            "Max",
            NUMBERS,
            |call, count, _| fold!(call, count, all, Larger, N => Same::<N>(PhantomData)),
        ),
        variadic_kernel(
            "Min",
            NUMBERS,
            |call, count, _| fold!(call, count, all, Smaller, N => Same::<N>(PhantomData)),
        ),
        variadic_kernel(
            "Sum",
            FLOATS,
            |call, count, _| fold!(call, count, floats, Plus, N => Same::<N>(PhantomData)),
        ),
        variadic_kernel("Mean", FLOATS, |call, count, is_last| {
            let inputs = if is_last { call.input_count() as f64 } else { 1.0 };
            fold!(call, count, floats, Plus, N => DivideByCount(inputs as N))
        }),
    ]
}
