//! `Dropout`: in training, zeroes elements at random and scales up the others; otherwise a copy.

use oarlock_cpu_base::compute_element::{ComputeElement, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, OperandFlags, OperandSpec, PluginError, Result, dispatch, ensure,
    family,
};

use super::mersenne_twister::MersenneTwister;
use super::random_source;

const DROPOUT_DTYPES: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);

pub(super) fn dropout_kernels() -> Vec<Kernel<Cpu>> {
    let (data, optional) = (OperandSpec::new(DROPOUT_DTYPES).with_dtype_group(1), OperandFlags::OPTIONAL);
    let mask = |dtypes: DtypeSet| OperandSpec::new(dtypes).with_name("mask").with_flags(optional);
    let without_training = |kernel: Kernel<Cpu>| kernel.with_inputs([data.with_name("data")]);
    vec![
        without_training(
            operand_kernel("Dropout", |_| Ok(None), run_dropout).since_version(7).until_version(9),
        )
        // Before version 10 a mask has the dtype of the data.
        .with_outputs([data.with_name("output"), mask(DROPOUT_DTYPES).with_dtype_group(1)]),
        without_training(
            operand_kernel("Dropout", |_| Ok(None), run_dropout).since_version(10).until_version(11),
        )
        .with_outputs([data.with_name("output"), mask(DtypeSet::BOOL)]),
        operand_kernel("Dropout", read_seed, run_dropout)
            .since_version(12)
            .with_inputs([
                data.with_name("data"),
                OperandSpec::new(DROPOUT_DTYPES).with_name("ratio").with_rank(0, 1).with_flags(optional),
                OperandSpec::new(DtypeSet::BOOL)
                    .with_name("training_mode")
                    .with_rank(0, 1)
                    .with_flags(optional),
            ])
            .with_outputs([data.with_name("output"), mask(DtypeSet::BOOL)]),
    ]
}

fn read_seed(call: &KernelCall<'_>) -> Result<Option<u32>> {
    Ok(call.int_attribute("seed")?.map(|seed| seed as u32))
}

/// The probability that an element becomes 0.
fn read_ratio(operands: &KernelOperands<'_, '_>) -> Result<f64> {
    let is_training = match operands.read_optional_input::<bool>(2)? {
        None => false,
        Some([is_training]) => *is_training,
        Some(more) => {
            return Err(PluginError::invalid_argument(format!(
                "expected one value of `training_mode`, found {}",
                more.len()
            )));
        }
    };
    if !is_training {
        return Ok(0.0);
    }
    // The schema's default.
    let Some(found) = operands.call().optional_input(1)? else { return Ok(0.5) };
    let ratio = dispatch!(found.dtype(), floating_and_half + bf16, T => {
        match operands.read_input::<T>(1)? {
            [ratio] => Ok(ratio.to_float().to_f64()),
            more => Err(PluginError::invalid_argument(format!("expected one `ratio`, found {}", more.len()))),
        }
    })?;
    ensure!(
        (0.0..1.0).contains(&ratio),
        invalid_argument,
        "expected `ratio` from 0 to less than 1, found {ratio}"
    );
    Ok(ratio)
}

fn run_dropout(cpu: &Cpu, seed: &Option<u32>, operands: &KernelOperands<'_, '_>) -> Result<()> {
    let (data, output) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&output, "output", data.dims())?;
    let mask = operands.call().optional_output(1)?;
    if let Some(mask) = &mask {
        operands.expect_dims(mask, "mask", data.dims())?;
    }
    let is_bool = mask.is_none_or(|mask| mask.dtype() == Dtype::BOOL);
    dispatch!(data.dtype(), floating_and_half + bf16, T => {
        if is_bool {
            drop_elements::<T, bool>(cpu, *seed, operands)
        } else {
            drop_elements::<T, T>(cpu, *seed, operands)
        }
    })
}

fn drop_elements<T: FloatElement, M: ComputeElement>(
    cpu: &Cpu,
    seed: Option<u32>,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let (source, ratio) = (random_source(operands.call(), None), read_ratio(operands)?);
    let (input, output) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    let mask = operands.write_optional_output::<M>(1)?.map(|mask| OutputRows::new(mask, 1));
    let factor = T::Float::from_f64(1.0 / (1.0 - ratio));
    let marks = [M::from_float(M::Float::from_f64(0.0)), M::from_float(M::Float::from_f64(1.0))];
    let count = output.len();
    // Seeded numbers depend on those before them, so no thread can begin in the middle.
    let seeded: Option<Vec<bool>> = seed.filter(|_| ratio > 0.0).map(|seed| {
        let mut numbers = MersenneTwister::new(seed);
        // As in ONNX's reference, a number of at least `ratio` keeps its element.
        (0..count).map(|_| numbers.next_f64() >= ratio).collect()
    });
    parallel_for_parts(
        cpu,
        count,
        grain_for(8),
        (OutputRows::new(output, 1), mask),
        |begin, (output, mut mask)| {
            if ratio == 0.0 {
                output.copy_from_slice(&input[begin..begin + output.len()]);
                if let Some(mask) = mask {
                    mask.fill(marks[1]);
                }
                return;
            }
            for (index, element) in output.iter_mut().enumerate() {
                let stays = match &seeded {
                    Some(stays) => stays[begin + index],
                    None => f64::from(source.f32_at(begin + index)) >= ratio,
                };
                let kept = input[begin + index].to_float() * factor;
                // Not a product with 0: a dropped element is 0 even if it was infinite or NaN.
                *element = T::from_float(if stays { kept } else { T::Float::from_f64(0.0) });
                if let Some(mask) = &mut mask {
                    mask[index] = marks[usize::from(stays)];
                }
            }
        },
    );
    Ok(())
}
