//! Numbers as multiples of a scale: `QuantizeLinear`, `DequantizeLinear` and `DynamicQuantizeLinear`.

mod blocks;
mod dynamic;
mod scales;

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, Operand, OperandFlags, Result, dtype_set};

pub(crate) use self::dynamic::quantize_by_range;
use self::scales::Scaled;
use super::conversion::unbounded;
use super::inner::{Loop, Map};
use super::math;
use super::pass::Pass;
use super::port::Port;
use super::row::{BYTE_FLOATS, PACKED, output, prepared};
use crate::device::Cpu;
use crate::isa::Target;

/// What a number is quantized to.
const QUANTIZED: DtypeSet =
    dtype_set(&[Dtype::I8, Dtype::U8, Dtype::I16, Dtype::U16]).union(BYTE_FLOATS).union(PACKED);
const SCALES: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32]);

/// x / scale, rounded and moved, within bounds.
#[derive(Clone, Copy)]
struct Quantize {
    low: f32,
    high: f32,
}

impl Map for Quantize {
    type Input = (f32, f32, f32);
    type Output = f32;

    #[inline(always)]
    fn apply<T: Target>(self, (x, scale, zero): (f32, f32, f32)) -> f32 {
        math::bounded((x / scale).round_ties_even() + zero, self.low, self.high)
    }
}

/// x / scale, for floats.
#[derive(Clone, Copy)]
struct Divide;

impl Map for Divide {
    type Input = (f32, f32, f32);
    type Output = f32;

    #[inline(always)]
    fn apply<T: Target>(self, (x, scale, zero): (f32, f32, f32)) -> f32 {
        x / scale + zero
    }
}

/// (x - zero) · scale.
#[derive(Clone, Copy)]
struct Dequantize;

impl Map for Dequantize {
    type Input = (f32, f32, f32);
    type Output = f32;

    #[inline(always)]
    fn apply<T: Target>(self, (x, scale, zero): (f32, f32, f32)) -> f32 {
        (x - zero) * scale
    }
}

/// The smallest and the largest integer of a dtype; none of a float.
fn bounds(dtype: Dtype) -> Option<(f32, f32)> {
    Some(match dtype {
        Dtype::I2 => (-2.0, 1.0),
        Dtype::U2 => (0.0, 3.0),
        Dtype::I4 => (-8.0, 7.0),
        Dtype::U4 => (0.0, 15.0),
        Dtype::I8 => (-128.0, 127.0),
        Dtype::U8 => (0.0, 255.0),
        Dtype::I16 => (-32768.0, 32767.0),
        Dtype::U16 => (0.0, 65535.0),
        _ => return None,
    })
}

/// The ways of an element, its scale and its zero point, of which one that is left out is 0.
fn inputs(call: &Call<'_>) -> Result<[Port; 3]> {
    let zero = call.optional_input(2)?.map_or(Dtype::F32, |zero| zero.dtype());
    Ok([
        Port::input(call.input(0)?.dtype(), Dtype::F32)?,
        Port::input(call.input(1)?.dtype(), Dtype::F32)?,
        Port::input(zero, Dtype::F32)?,
    ])
}

fn quantize(call: &Call<'_>) -> Result<Pass> {
    let (inputs, dtype) = (inputs(call)?, call.output(0)?.dtype());
    let output = Port::output(dtype, Dtype::F32)?;
    if let Some((low, high)) = bounds(dtype) {
        return Ok(Pass::new(Loop(Quantize { low, high }), inputs, output));
    }
    let saturate = call.int("saturate")?.unwrap_or(1) != 0;
    let output = if saturate { output } else { output.through(unbounded(dtype)) };
    Ok(Pass::new(Loop(Divide), inputs, output))
}

fn dequantize(call: &Call<'_>) -> Result<Pass> {
    let output = Port::output(call.output(0)?.dtype(), Dtype::F32)?;
    Ok(Pass::new(Loop(Dequantize), inputs(call)?, output))
}

fn row(
    op: &'static str,
    [x, y]: [Operand; 2],
    zero: DtypeSet,
    pass: impl Fn(&Call<'_>) -> Result<Pass> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    let zero = Operand::new(zero).group(2).flags(OperandFlags::OPTIONAL);
    prepared(op, 10, move |call| {
        let scaled = Scaled::new(call, pass(call)?)?;
        Ok(move |cpu: &Cpu, call: &Call<'_>| scaled.run(cpu, call))
    })
    .inputs([x, Operand::new(SCALES), zero])
    .outputs([y])
}

/// The rows of quantization.
pub(super) fn kernels() -> [Kernel<Cpu>; 3] {
    let floats = Operand::new(SCALES.union(DtypeSet::I32)).named("x");
    let stored = QUANTIZED.union(DtypeSet::I32);
    let y = output("y", QUANTIZED).group(2);
    let dequantized = output("y", SCALES);
    [
        row("QuantizeLinear", [floats, y], QUANTIZED, quantize),
        row("DequantizeLinear", [Operand::new(stored).named("x").group(2), dequantized], stored, dequantize),
        dynamic::kernel(),
    ]
}
