//! `Clip`: the bounds are attributes in old versions of the op and operands in new ones.

use oarlock_sdk::{Call, Kernel, OperandFlags, Result};

use super::elementwise::{Work, elementwise, repeated};
use super::row::{FLOATS, NUMBERS, arithmetic, input, optional_input, output, plain, strided};
use crate::arguments::Number;
use crate::device::Gpus;
use crate::gpu::Gpu;
use crate::source::Formula;

pub(super) fn kernels<G: Gpu>() -> Vec<Kernel<Gpus<G>>> {
    let bound = strided(NUMBERS).group(1).rank(0, 1).flags(OperandFlags::OPTIONAL);
    vec![
        arithmetic("Clip", between_attributes::<G>)
            .since(6)
            .until(10)
            .inputs([strided(FLOATS).group(1).named("input")])
            .outputs([plain(FLOATS).group(1).named("output")])
            .in_place(0, 0),
        arithmetic("Clip", between_operands::<G>)
            .since(11)
            .inputs([strided(NUMBERS).group(1).named("input"), bound.named("min"), bound.named("max")])
            .outputs([plain(NUMBERS).group(1).named("output")])
            .in_place(0, 0),
    ]
}

fn between_attributes<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (x, y) = (input(call, 0)?, output(call, 0)?);
    let least = Number::Float(call.float("min")?.unwrap_or(f32::MIN.into()));
    let greatest = Number::Float(call.float("max")?.unwrap_or(f32::MAX.into()));
    let formula = Formula::Plain("minimum(maximum(a, p), q)");
    let work = Work { formula, compute: x.dtype, parameters: &[least, greatest] };
    elementwise(gpus, call, work, &[&x], &y)
}

fn between_operands<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (x, y) = (input(call, 0)?, output(call, 0)?);
    let (least, greatest) = (optional_input(call, 1)?, optional_input(call, 2)?);
    let formula = match (&least, &greatest) {
        (None, None) => "a",
        (Some(_), None) => "maximum(a, b)",
        (None, Some(_)) => "minimum(a, b)",
        (Some(_), Some(_)) => "minimum(maximum(a, b), c)",
    };
    let mut inputs = vec![&x];
    inputs.extend(least.iter().chain(&greatest));
    super::row::check_shape(&x.dims, &y)?;
    repeated(gpus, call, Work::plain(Formula::Plain(formula), x.dtype), &inputs, &y)
}
