//! Functions of any number of elements.

use std::marker::PhantomData;

use oarlock_sdk::{Call, DtypeSet, Error, Kernel, OperandFlags, Result, Tensor};

use super::binary::{Larger, Plus, Smaller};
use super::inner::{Fold, Map};
use super::number::{Number, with_number};
use super::pass::{Operand, Pass};
use super::plan::OPERANDS;
use super::port::Port;
use super::row::{FLOATS, NUMBERS, input, output, prepared};
use super::unary::Same;
use crate::device::Cpu;
use crate::isa::Target;

/// Division by the number of inputs.
#[derive(Clone, Copy)]
struct DividedBy<N>(N);

impl<N: Number> Map for DividedBy<N> {
    type Input = (N,);
    type Output = N;
    const IS_VECTORIZED: bool = !N::IS_INTEGER;

    #[inline(always)]
    fn apply<T: Target>(self, (sum,): (N,)) -> N {
        sum.over(self.0)
    }
}

/// How many inputs a pass has at most.
const INPUTS: usize = OPERANDS - 1;

/// The passes over all inputs: the first over the first of them, each later one over the result so far and the next ones.
struct Passes(Vec<Pass>);

impl Passes {
    /// Makes passes, each by its number of inputs and whether it is the last.
    fn new(call: &Call<'_>, pass: impl Fn(usize, bool) -> Result<Pass>) -> Result<Self> {
        let mut left = call.input_count();
        let mut passes = Vec::new();
        while left > 0 {
            let taken = left.min(INPUTS - usize::from(!passes.is_empty()));
            left -= taken;
            passes.push(pass(taken + usize::from(!passes.is_empty()), left == 0)?);
        }
        if passes.is_empty() {
            return Err(Error::invalid_argument("expected at least one input, found none"));
        }
        Ok(Self(passes))
    }

    fn run(&self, cpu: &Cpu, call: &Call<'_>) -> Result<()> {
        let output = call.output(0)?;
        let mut next = 0;
        for pass in &self.0 {
            let target = Operand::of(&output, pass.output())?;
            let mut operands = [target; INPUTS];
            let first = usize::from(next > 0);
            for (operand, port) in operands.iter_mut().zip(pass.inputs()).skip(first) {
                let tensor: Tensor<'_> = call.input(next)?;
                *operand = Operand::of(&tensor, port)?;
                next += 1;
            }
            pass.run_over(cpu, &operands[..pass.inputs().len()], target)?;
        }
        Ok(())
    }
}

/// The pass of a fold over so many inputs of the dtype of the call's first.
macro_rules! fold {
    ($call:expr, $count:expr, $numbers:ident, $step:ident, $number:ident => $finish:expr) => {{
        let dtype = $call.input(0)?.dtype();
        with_number!(dtype, $numbers, $number => {
            let (input, output) = (Port::input(dtype, $number::DTYPE)?, Port::output(dtype, $number::DTYPE)?);
            let fold = Fold { step: $step::<$number>(PhantomData), finish: $finish };
            Ok(Pass::new(fold, vec![input; $count], output))
        })
    }};
}

fn row(
    op: &'static str,
    dtypes: DtypeSet,
    pass: impl Fn(&Call<'_>, usize, bool) -> Result<Pass> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    prepared(op, 1, move |call| {
        let passes = Passes::new(call, |count, is_last| pass(call, count, is_last))?;
        Ok(move |cpu: &Cpu, call: &Call<'_>| passes.run(cpu, call))
    })
    .inputs([input("data_0", dtypes).group(1).flags(OperandFlags::VARIADIC)])
    .outputs([output("", dtypes).group(1)])
    .in_place(0, 0)
}

/// The rows of all functions of any number of elements.
pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    vec![
        row("Max", NUMBERS, |call, count, _| fold!(call, count, all, Larger, N => Same::<N>(PhantomData))),
        row("Min", NUMBERS, |call, count, _| fold!(call, count, all, Smaller, N => Same::<N>(PhantomData))),
        row("Sum", FLOATS, |call, count, _| fold!(call, count, floats, Plus, N => Same::<N>(PhantomData))),
        row("Mean", FLOATS, |call, count, is_last| {
            let inputs = if is_last { call.input_count() as f64 } else { 1.0 };
            fold!(call, count, floats, Plus, N => DividedBy(inputs as N))
        }),
    ]
}
