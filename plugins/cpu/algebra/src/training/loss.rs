//! `NegativeLogLikelihoodLoss` and `SoftmaxCrossEntropyLoss`: how unlikely the right classes are.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::FloatElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::axis::AxisLayout;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, PluginError, Result,
    TensorView, dispatch, ensure, family,
};

use crate::normalize::{LogSoftmaxLine, normalize_axis};

pub(super) fn loss_kernels() -> Vec<Kernel<Cpu>> {
    let real = OperandSpec::new(family::FLOATING_AND_HALF.union(DtypeSet::BF16)).with_dtype_group(1);
    let classes = OperandSpec::new(DtypeSet::I32.union(DtypeSet::I64));
    let optional = OperandFlags::OPTIONAL;
    let likelihood =
        operand_kernel("NegativeLogLikelihoodLoss", LossOptions::new, |cpu, options, operands| {
            let dtype = operands.call().input(0)?.dtype();
            dispatch!(dtype, floating_and_half + bf16, T => run_loss::<T>(cpu, options, operands, false))
        })
        .with_inputs([
            real.with_name("input"),
            classes.with_name("target"),
            real.with_name("weight").with_flags(optional),
        ])
        .with_outputs([real.with_name("loss")]);
    let cross_entropy =
        operand_kernel("SoftmaxCrossEntropyLoss", LossOptions::new, |cpu, options, operands| {
            let dtype = operands.call().input(0)?.dtype();
            dispatch!(dtype, floating_and_half + bf16, T => run_loss::<T>(cpu, options, operands, true))
        })
        .with_inputs([
            real.with_name("scores"),
            classes.with_name("labels"),
            real.with_name("weights").with_flags(optional),
        ])
        .with_outputs([real.with_name("output"), real.with_name("log_prob").with_flags(optional)]);
    [likelihood, cross_entropy]
        .map(|kernel| kernel.since_version(12).with_flags(KernelFlags::DETERMINISTIC))
        .into()
}

#[derive(Clone, Copy, PartialEq)]
enum LossReduction {
    None,
    Sum,
    Mean,
}

struct LossOptions {
    reduction: LossReduction,
    ignored: Option<i64>,
}

impl LossOptions {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let reduction = match call.string_attribute("reduction")?.unwrap_or("mean") {
            "none" => LossReduction::None,
            "sum" => LossReduction::Sum,
            "mean" => LossReduction::Mean,
            found => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `reduction` to be `none`, `sum` or `mean`, found `{found}`"
                )));
            }
        };
        Ok(Self { reduction, ignored: call.int_attribute("ignore_index")? })
    }
}

/// Losses are summed in `f64`, in the order of the targets.
fn run_loss<T: FloatElement>(
    cpu: &Cpu,
    options: &LossOptions,
    operands: &KernelOperands<'_, '_>,
    takes_softmax: bool,
) -> Result<()> {
    let (input, target, loss) =
        (operands.call().input(0)?, operands.call().input(1)?, operands.call().output(0)?);
    let axis = class_axis(&input, &target)?;
    let expected = if options.reduction == LossReduction::None { target.dims() } else { &[] };
    operands.expect_dims(&loss, "the loss", expected)?;
    let elements = operands.read_input::<T>(0)?;
    let weights = read_weights::<T>(operands, axis.length)?;
    let classes = read_classes(operands, axis.length, options.ignored)?;
    let mut own_logarithms = Vec::new();
    let mut logarithms = elements;
    if takes_softmax {
        let output = operands.call().optional_output(1)?;
        if let Some(output) = output {
            operands.expect_dims(&output, "log_prob", input.dims())?;
        }
        let target: &mut [T] = match operands.write_optional_output::<T>(1)? {
            Some(output) => output,
            None => {
                // The loss needs the logarithms even if nobody asks for them.
                own_logarithms.resize(elements.len(), T::from_float(T::Float::ZERO));
                &mut own_logarithms
            }
        };
        normalize_axis::<T, LogSoftmaxLine>(cpu, axis, LogSoftmaxLine, elements, target);
        logarithms = target;
    }
    let of_target = |index: usize, class: usize| {
        // The target lacks the axis of classes, so its index splits into what is before and behind that.
        let (outer, inner) = (index / axis.inner, index % axis.inner);
        let weight = weights.map_or(1.0, |weights| weights[class].to_float().to_f64());
        let logarithm = logarithms[(outer * axis.length + class) * axis.inner + inner].to_float().to_f64();
        (-logarithm * weight, weight)
    };
    let output = operands.write_output::<T>(0)?;
    if options.reduction == LossReduction::None {
        for (index, (result, class)) in output.iter_mut().zip(&classes).enumerate() {
            // An ignored target keeps its place in the output, with a loss of 0.
            let loss = class.map_or(0.0, |class| of_target(index, class).0);
            *result = T::from_float(T::Float::from_f64(loss));
        }
        return Ok(());
    }
    let (mut sum, mut weight) = (0.0, 0.0);
    for (index, class) in classes.iter().enumerate().filter_map(|(index, class)| Some((index, (*class)?))) {
        let (loss, share) = of_target(index, class);
        sum += loss;
        weight += share;
    }
    // ONNX's mean is weighted. If all targets are ignored it is 0 / 0, NaN.
    let result = if options.reduction == LossReduction::Mean { sum / weight } else { sum };
    output.fill(T::from_float(T::Float::from_f64(result)));
    Ok(())
}

/// The classes are the second dimension of the input; the target has the others.
fn class_axis(input: &TensorView<'_>, target: &TensorView<'_>) -> Result<AxisLayout> {
    let axis = AxisLayout::new(input.dims(), 1)?;
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

fn read_weights<'a, T: FloatElement>(
    operands: &KernelOperands<'_, 'a>,
    classes: usize,
) -> Result<Option<&'a [T]>> {
    if let Some(found) = operands.call().optional_input(2)? {
        operands.expect_dims(&found, "the weights", &[classes as i64])?;
    }
    operands.read_optional_input(2)
}

/// The class of each target; `None` if it is ignored.
fn read_classes(
    operands: &KernelOperands<'_, '_>,
    count: usize,
    ignored: Option<i64>,
) -> Result<Vec<Option<usize>>> {
    let check = |class: i64| {
        // Before the check of the range, as the ignored index may lie outside.
        if Some(class) == ignored {
            return Ok(None);
        }
        let found = usize::try_from(class).ok().filter(|class| *class < count);
        found.map(Some).ok_or_else(|| {
            PluginError::out_of_range(format!("expected classes from 0 to less than {count}, found {class}"))
        })
    };
    if operands.call().input(1)?.dtype() == Dtype::I32 {
        return operands.read_input::<i32>(1)?.iter().map(|class| check(i64::from(*class))).collect();
    }
    operands.read_input::<i64>(1)?.iter().map(|class| check(*class)).collect()
}
