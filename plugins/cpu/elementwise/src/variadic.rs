//! Functions of any number of elements.

use std::marker::PhantomData;

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::SimdTarget;
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandFlags, PluginError, Result, TensorView};

use super::binary::{Larger, Plus, Smaller};
use super::dtype_dispatch::with_number;
use super::element_loop::{ElementMap, FoldLoop};
use super::iteration_space::{MAX_OPERANDS, OperandShape};
use super::operand_conversion::OperandConversion;
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

/// The loops over all inputs: the first takes the first of them, each later one the partial result and the next ones.
struct VariadicLoops(Vec<PreparedLoop>);

/// One of these loops.
struct VariadicPass {
    /// The number of inputs, with the partial result of the loops before.
    operands: usize,
    is_first: bool,
    is_last: bool,
}

impl VariadicLoops {
    fn new(call: &KernelCall<'_>, prepare: impl Fn(VariadicPass) -> Result<PreparedLoop>) -> Result<Self> {
        let mut left = call.input_count();
        let mut passes = Vec::new();
        while left > 0 {
            let is_first = passes.is_empty();
            let partial = usize::from(!is_first);
            let inputs = left.min(MAX_INPUTS - partial);
            left -= inputs;
            passes.push(prepare(VariadicPass { operands: inputs + partial, is_first, is_last: left == 0 })?);
        }
        if passes.is_empty() {
            return Err(PluginError::invalid_argument("expected at least one input, found none"));
        }
        Ok(Self(passes))
    }

    fn run(&self, cpu: &Cpu, call: &KernelCall<'_>) -> Result<()> {
        let output = call.output(0)?;
        let [first, .., last] = &self.0[..] else { return self.run_passes(cpu, call, None) };
        // The output may be the memory of the first input, which the first loop has read before another one writes.
        if first.output_conversion().dtype == last.output_conversion().dtype {
            return self.run_passes(cpu, call, None);
        }
        let size = first.output_conversion().byte_count(output.element_count()?);
        let mut partial = try_filled_vec(0u64, size.div_ceil(size_of::<u64>()))?;
        let shape = OperandShape { dims: output.dims(), strides: &[] };
        self.run_passes(cpu, call, Some(LoopOperand { shape, address: partial.as_mut_ptr() as usize, size }))
    }

    /// Runs the loops; partial results are in memory of their own, or in the output.
    fn run_passes(&self, cpu: &Cpu, call: &KernelCall<'_>, partial: Option<LoopOperand<'_>>) -> Result<()> {
        let output = call.output(0)?;
        let mut next = 0;
        for (index, pass) in self.0.iter().enumerate() {
            let result = LoopOperand::from_tensor(&output, self.0[self.0.len() - 1].output_conversion())?;
            let partial = partial.unwrap_or(result);
            let target = if index + 1 == self.0.len() { result } else { partial };
            let mut operands = [partial; MAX_INPUTS];
            let first = usize::from(index > 0);
            for (operand, conversion) in operands.iter_mut().zip(pass.input_conversions()).skip(first) {
                let tensor: TensorView<'_> = call.input(next)?;
                *operand = LoopOperand::from_tensor(&tensor, conversion)?;
                next += 1;
            }
            pass.run_on_operands(cpu, &operands[..pass.input_conversions().len()], target)?;
        }
        Ok(())
    }
}

/// The loop of a fold over inputs of the dtype of the call's first. Partial results have the dtype in which the loop computes, so that
/// narrow floats are rounded once, and only a result that is too large overflows.
macro_rules! fold {
    ($call:expr, $pass:expr, $numbers:ident, $step:ident, $number:ident => $finish:expr) => {{
        let dtype = $call.input(0)?.dtype();
        with_number!(dtype, $numbers, $number => {
            let (input, output) = (OperandConversion::for_input(dtype, $number::DTYPE)?, OperandConversion::for_output(dtype, $number::DTYPE)?);
            let mut inputs = vec![input; $pass.operands];
            if !$pass.is_first {
                inputs[0] = OperandConversion::without_conversion($number::DTYPE);
            }
            let output = if $pass.is_last { output } else { OperandConversion::without_conversion($number::DTYPE) };
            let fold = FoldLoop { step: $step::<$number>(PhantomData), finish: $finish };
            Ok(PreparedLoop::new(fold, inputs, output))
        })
    }};
}

fn variadic_kernel(
    op: &'static str,
    dtypes: DtypeSet,
    prepare: impl Fn(&KernelCall<'_>, VariadicPass) -> Result<PreparedLoop> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    prepared_kernel(op, 1, move |call| {
        let passes = VariadicLoops::new(call, |pass| prepare(call, pass))?;
        Ok(move |cpu: &Cpu, call: &KernelCall<'_>| passes.run(cpu, call))
    })
    .with_inputs([input_operand("data_0", dtypes).with_dtype_group(1).with_flags(OperandFlags::VARIADIC)])
    .with_outputs([output_operand("", dtypes).with_dtype_group(1)])
    .with_in_place(0, 0)
}

pub(super) fn variadic_kernels() -> Vec<Kernel<Cpu>> {
    vec![
        variadic_kernel("Max", NUMBERS, |call, pass| fold!(call, pass, all, Larger, N => None::<Same<N>>)),
        variadic_kernel("Min", NUMBERS, |call, pass| fold!(call, pass, all, Smaller, N => None::<Same<N>>)),
        variadic_kernel("Sum", FLOATS, |call, pass| fold!(call, pass, floats, Plus, N => None::<Same<N>>)),
        variadic_kernel("Mean", FLOATS, |call, pass| {
            // Only the last loop divides by the count.
            let count = pass.is_last.then(|| call.input_count() as f64);
            fold!(call, pass, floats, Plus, N => count.map(|count| DivideByCount(count as N)))
        }),
    ]
}
