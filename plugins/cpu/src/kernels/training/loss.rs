//! `NegativeLogLikelihoodLoss` and `SoftmaxCrossEntropyLoss`: how unlikely the right classes are.

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Error, Kernel, KernelFlags, Operand, OperandFlags, Result, Tensor, dispatch,
    ensure, family,
};

use crate::device::Cpu;
use crate::kernels::normalize::{LogSoftmax, apply};
use crate::kernels::rows::axis::Axis;
use crate::kernels::rows::number::{Exact, Float, Real};
use crate::kernels::rows::operands::{Operands, kernel};

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let real = Operand::new(family::FLOATING_AND_HALF.union(DtypeSet::BF16)).group(1);
    let classes = Operand::new(DtypeSet::I32.union(DtypeSet::I64));
    let optional = OperandFlags::OPTIONAL;
    let likelihood = kernel("NegativeLogLikelihoodLoss", Options::new, |cpu, options, operands| {
        let dtype = operands.call().input(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16, T => run::<T>(cpu, options, operands, false))
    })
    .inputs([real.named("input"), classes.named("target"), real.named("weight").flags(optional)])
    .outputs([real.named("loss")]);
    let cross_entropy = kernel("SoftmaxCrossEntropyLoss", Options::new, |cpu, options, operands| {
        let dtype = operands.call().input(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16, T => run::<T>(cpu, options, operands, true))
    })
    .inputs([real.named("scores"), classes.named("labels"), real.named("weights").flags(optional)])
    .outputs([real.named("output"), real.named("log_prob").flags(optional)]);
    [likelihood, cross_entropy].map(|kernel| kernel.since(12).flags(KernelFlags::DETERMINISTIC)).into()
}

#[derive(Clone, Copy, PartialEq)]
enum Reduction {
    None,
    Sum,
    Mean,
}

struct Options {
    reduction: Reduction,
    ignored: Option<i64>,
}

impl Options {
    fn new(call: &Call<'_>) -> Result<Self> {
        let reduction = match call.string("reduction")?.unwrap_or("mean") {
            "none" => Reduction::None,
            "sum" => Reduction::Sum,
            "mean" => Reduction::Mean,
            found => {
                return Err(Error::invalid_argument(format!(
                    "expected `reduction` to be `none`, `sum` or `mean`, found `{found}`"
                )));
            }
        };
        Ok(Self { reduction, ignored: call.int("ignore_index")? })
    }
}

/// The sum of losses is kept in `f64`, in the order of the targets.
fn run<T: Real>(
    cpu: &Cpu,
    options: &Options,
    operands: &Operands<'_, '_>,
    takes_softmax: bool,
) -> Result<()> {
    let (input, target, loss) =
        (operands.call().input(0)?, operands.call().input(1)?, operands.call().output(0)?);
    let axis = geometry(&input, &target)?;
    let expected = if options.reduction == Reduction::None { target.dims() } else { &[] };
    operands.expect_dims(&loss, "the loss", expected)?;
    let elements = operands.read::<T>(0)?;
    let weights = weights::<T>(operands, axis.length)?;
    let classes = classes(operands, axis.length, options.ignored)?;
    let mut own_logarithms = Vec::new();
    let mut logarithms = elements;
    if takes_softmax {
        let output = operands.call().optional_output(1)?;
        if let Some(output) = output {
            operands.expect_dims(&output, "log_prob", input.dims())?;
        }
        let target: &mut [T] = match operands.write_optional::<T>(1)? {
            Some(output) => output,
            None => {
                own_logarithms.resize(elements.len(), T::of_float(T::Float::ZERO));
                &mut own_logarithms
            }
        };
        apply::<T, LogSoftmax>(cpu, axis, LogSoftmax, elements, target);
        logarithms = target;
    }
    let of_target = |index: usize, class: usize| {
        let (outer, inner) = (index / axis.inner, index % axis.inner);
        let weight = weights.map_or(1.0, |weights| weights[class].float().to_f64());
        let logarithm = logarithms[(outer * axis.length + class) * axis.inner + inner].float().to_f64();
        (-logarithm * weight, weight)
    };
    let output = operands.write::<T>(0)?;
    if options.reduction == Reduction::None {
        for (index, (result, class)) in output.iter_mut().zip(&classes).enumerate() {
            let loss = class.map_or(0.0, |class| of_target(index, class).0);
            *result = T::of_float(T::Float::of(loss));
        }
        return Ok(());
    }
    let (mut sum, mut weight) = (0.0, 0.0);
    for (index, class) in classes.iter().enumerate().filter_map(|(index, class)| Some((index, (*class)?))) {
        let (loss, share) = of_target(index, class);
        sum += loss;
        weight += share;
    }
    let result = if options.reduction == Reduction::Mean { sum / weight } else { sum };
    output.fill(T::of_float(T::Float::of(result)));
    Ok(())
}

/// The classes are the second dimension of the input; the target has the others.
fn geometry(input: &Tensor<'_>, target: &Tensor<'_>) -> Result<Axis> {
    let axis = Axis::new(input.dims(), 1)?;
    let others: Vec<i64> = [&input.dims()[..1], &input.dims()[2..]].concat();
    ensure!(
        target.dims() == others,
        invalid_argument,
        "expected a target of shape {others:?} for an input of {:?}, found {:?}",
        input.dims(),
        target.dims()
    );
    Ok(axis)
}

fn weights<'a, T: Real>(operands: &Operands<'_, 'a>, classes: usize) -> Result<Option<&'a [T]>> {
    if let Some(found) = operands.call().optional_input(2)? {
        operands.expect_dims(&found, "the weights", &[classes as i64])?;
    }
    operands.read_optional(2)
}

/// The class of each target; `None` where it is ignored.
fn classes(operands: &Operands<'_, '_>, count: usize, ignored: Option<i64>) -> Result<Vec<Option<usize>>> {
    let check = |class: i64| {
        if Some(class) == ignored {
            return Ok(None);
        }
        let found = usize::try_from(class).ok().filter(|class| *class < count);
        found.map(Some).ok_or_else(|| {
            Error::out_of_range(format!("expected classes from 0 to less than {count}, found {class}"))
        })
    };
    if operands.call().input(1)?.dtype() == Dtype::I32 {
        return operands.read::<i32>(1)?.iter().map(|class| check(i64::from(*class))).collect();
    }
    operands.read::<i64>(1)?.iter().map(|class| check(*class)).collect()
}
