//! `Dropout`: in training, zeroes elements at random and scales up the others; otherwise a copy.

use oarlock_cpu_base::by_size;
use oarlock_cpu_base::compute_element::{ComputeElement, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::element_bytes::{copy_contiguous, element_bytes_mut, for_parallel_pieces};
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_sdk::{
    DtypeSet, Kernel, KernelCall, OperandFlags, OperandSpec, PluginError, Result, TensorView, dispatch,
    ensure, family,
};

use super::mersenne_twister::MersenneTwister;
use super::{cell_of_one, random_source};

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
    let (source, ratio) = (random_source(operands.call(), None), read_ratio(operands)?);
    if ratio == 0.0 {
        copy_contiguous(cpu, &data, &output)?;
        return write_mask(cpu, mask.as_ref(), |_| true);
    }
    let mut stays = try_filled_vec(true, output.element_count()?)?;
    if let Some(seed) = seed {
        // Seeded numbers depend on those before them, so no thread can begin in the middle.
        let mut numbers = MersenneTwister::new(*seed);
        // As in ONNX's reference, a number of at least `ratio` keeps its element.
        stays.iter_mut().for_each(|stays| *stays = numbers.next_f64() >= ratio);
    } else {
        for_parallel_pieces(cpu, &mut stays, 1, |begin, part| {
            for (index, stays) in (begin..).zip(part) {
                *stays = f64::from(source.f32_at(index)) >= ratio;
            }
        });
    }
    dispatch!(data.dtype(), floating_and_half + bf16, T => {
        drop_elements::<T>(cpu, &stays, 1.0 / (1.0 - ratio), operands)
    })?;
    write_mask(cpu, mask.as_ref(), |index| stays[index])
}

/// Scales up the elements that stay.
fn drop_elements<T: FloatElement>(
    cpu: &Cpu,
    stays: &[bool],
    factor: f64,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let (input, output) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    let factor = T::Float::from_f64(factor);
    for_parallel_pieces(cpu, output, 1, |begin, part| {
        for (index, element) in (begin..).zip(part) {
            let kept = input[index].to_float() * factor;
            // Not a product with 0: a dropped element is 0 even if it was infinite or NaN.
            *element = T::from_float(if stays[index] { kept } else { T::Float::from_f64(0.0) });
        }
    });
    Ok(())
}

/// Writes 1 for the elements that stay, and 0 for the others.
fn write_mask(cpu: &Cpu, mask: Option<&TensorView<'_>>, stays: impl Fn(usize) -> bool + Sync) -> Result<()> {
    let Some(mask) = mask else { return Ok(()) };
    by_size!(mask.dtype(), N => {
        let one = cell_of_one::<N>(mask.dtype());
        for_parallel_pieces(cpu, element_bytes_mut::<N>(mask)?, 1, |begin, part| {
            for (index, mark) in (begin..).zip(part) {
                *mark = if stays(index) { one } else { [0; N] };
            }
        });
    });
    Ok(())
}
