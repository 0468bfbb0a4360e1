//! `Dropout`: in training, elements that become 0 by chance while the others grow; otherwise a copy.

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Error, Kernel, Operand, OperandFlags, Result, dispatch, ensure, family,
};

use super::source;
use super::twister::Twister;
use crate::device::Cpu;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Float, Number, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};

const REALS: DtypeSet = family::FLOATING_AND_HALF.union(DtypeSet::BF16);

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let (data, optional) = (Operand::new(REALS).group(1), OperandFlags::OPTIONAL);
    let mask = |dtypes: DtypeSet| Operand::new(dtypes).named("mask").flags(optional);
    let without_training = |kernel: Kernel<Cpu>| kernel.inputs([data.named("data")]);
    vec![
        without_training(kernel("Dropout", |_| Ok(None), run).since(7).until(9))
            .outputs([data.named("output"), mask(REALS).group(1)]),
        without_training(kernel("Dropout", |_| Ok(None), run).since(10).until(11))
            .outputs([data.named("output"), mask(DtypeSet::BOOL)]),
        kernel("Dropout", seed, run)
            .since(12)
            .inputs([
                data.named("data"),
                Operand::new(REALS).named("ratio").rank(0, 1).flags(optional),
                Operand::new(DtypeSet::BOOL).named("training_mode").rank(0, 1).flags(optional),
            ])
            .outputs([data.named("output"), mask(DtypeSet::BOOL)]),
    ]
}

fn seed(call: &Call<'_>) -> Result<Option<u32>> {
    Ok(call.int("seed")?.map(|seed| seed as u32))
}

/// How likely an element is to become 0.
fn ratio(operands: &Operands<'_, '_>) -> Result<f64> {
    let is_training = match operands.read_optional::<bool>(2)? {
        None => false,
        Some([is_training]) => *is_training,
        Some(more) => {
            return Err(Error::invalid_argument(format!(
                "expected one value of `training_mode`, found {}",
                more.len()
            )));
        }
    };
    if !is_training {
        return Ok(0.0);
    }
    let Some(found) = operands.call().optional_input(1)? else { return Ok(0.5) };
    let ratio = dispatch!(found.dtype(), floating_and_half + bf16, T => {
        match operands.read::<T>(1)? {
            [ratio] => Ok(ratio.float().to_f64()),
            more => Err(Error::invalid_argument(format!("expected one `ratio`, found {}", more.len()))),
        }
    })?;
    ensure!(
        (0.0..1.0).contains(&ratio),
        invalid_argument,
        "expected `ratio` from 0 to less than 1, found {ratio}"
    );
    Ok(ratio)
}

fn run(cpu: &Cpu, seed: &Option<u32>, operands: &Operands<'_, '_>) -> Result<()> {
    let (data, output) = (operands.call().input(0)?, operands.call().output(0)?);
    operands.expect_dims(&output, "output", data.dims())?;
    let mask = operands.call().optional_output(1)?;
    if let Some(mask) = &mask {
        operands.expect_dims(mask, "mask", data.dims())?;
    }
    let is_bool = mask.is_none_or(|mask| mask.dtype() == Dtype::BOOL);
    dispatch!(data.dtype(), floating_and_half + bf16, T => {
        if is_bool {
            drop_out::<T, bool>(cpu, *seed, operands)
        } else {
            drop_out::<T, T>(cpu, *seed, operands)
        }
    })
}

fn drop_out<T: Real, M: Number>(cpu: &Cpu, seed: Option<u32>, operands: &Operands<'_, '_>) -> Result<()> {
    let (source, ratio) = (source(operands.call(), None), ratio(operands)?);
    let (input, output) = (operands.read::<T>(0)?, operands.write::<T>(0)?);
    let mask = operands.write_optional::<M>(1)?.map(|mask| Rows::new(mask, 1));
    let factor = T::Float::of(1.0 / (1.0 - ratio));
    let marks = [M::of_float(M::Float::of(0.0)), M::of_float(M::Float::of(1.0))];
    let count = output.len();
    // Seeded numbers follow from each other, so that no thread can begin in the middle.
    let seeded: Option<Vec<bool>> = seed.filter(|_| ratio > 0.0).map(|seed| {
        let mut numbers = Twister::new(seed);
        (0..count).map(|_| numbers.double() >= ratio).collect()
    });
    in_parallel(cpu, count, grain(8), (Rows::new(output, 1), mask), |begin, (output, mut mask)| {
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
                None => f64::from(source.single(begin + index)) >= ratio,
            };
            let kept = input[begin + index].float() * factor;
            *element = T::of_float(if stays { kept } else { T::Float::of(0.0) });
            if let Some(mask) = &mut mask {
                mask[index] = marks[usize::from(stays)];
            }
        }
    });
    Ok(())
}
