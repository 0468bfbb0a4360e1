//! Ops that make elements out of nothing.

use oarlock_sdk::{Call, Dtype, Kernel, Result, dtype_set, ensure};

use super::elementwise::{Stepped, Work, map};
use super::row::{ALL, INDICES, arithmetic, on_host, output, plain, row};
use crate::arguments::Number;
use crate::device::Gpus;
use crate::gpu::Gpu;
use crate::host::{numbers, tensor_attribute};
use crate::source::Formula;

pub(super) fn kernels<G: Gpu>() -> Vec<Kernel<Gpus<G>>> {
    let ranged = dtype_set(&[Dtype::I16, Dtype::I32, Dtype::I64, Dtype::F32, Dtype::F64]);
    let bound = on_host(ranged).group(1);
    vec![
        row("ConstantOfShape", constant::<G>)
            .since(9)
            .inputs([on_host(INDICES).named("input")])
            .outputs([plain(ALL).named("output")]),
        arithmetic("Range", range::<G>)
            .since(11)
            .inputs([bound.named("start"), bound.named("limit"), bound.named("delta")])
            .outputs([plain(ranged).group(1).named("output")]),
    ]
}

/// The element is copied as bits, so that every dtype goes one way. Without an attribute it is 0, whatever the dtype.
fn constant<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let y = output(call, 0)?;
    let bits = tensor_attribute(call, "value", y.dtype)?.unwrap_or(0);
    let y = y.bits();
    let work = Work {
        formula: Formula::Plain("p"),
        compute: y.dtype,
        parameters: &[Number::Int(bits.cast_signed())],
    };
    map(gpus, call, work, &y.dims, &[], Stepped { view: &y, steps: &y.steps })
}

fn range<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let y = output(call, 0)?;
    let number = |index: usize| {
        let numbers = numbers(&call.input(index)?)?;
        ensure!(
            numbers.len() == 1,
            invalid_argument,
            "expected one number as input {index}, found {}",
            numbers.len()
        );
        Ok(numbers[0])
    };
    let parameters = [number(0)?, number(2)?];
    ensure!(y.dims.len() == 1, invalid_argument, "expected an output of one dimension, found {:?}", y.dims);
    let formula = Formula::Plain("p + i * q");
    map(
        gpus,
        call,
        Work { formula, compute: y.dtype, parameters: &parameters },
        &y.dims,
        &[],
        Stepped { view: &y, steps: &y.steps },
    )
}
