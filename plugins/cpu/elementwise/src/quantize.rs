//! Numbers as multiples of a scale: `QuantizeLinear` and `DequantizeLinear`.

mod block_dequantize;
mod byte_map;
mod byte_table;
mod scales;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::SimdTarget;
use oarlock_cpu_base::math;
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, OperandFlags, OperandSpec, Result, dtype_set};

use self::scales::ScaledLoop;
use super::conversion::find_unbounded_conversion;
use super::element_loop::{ElementMap, MapLoop};
use super::operand_conversion::OperandConversion;
use super::prepared_loop::PreparedLoop;
use super::registration::{BYTE_FLOATS, PACKED, output_operand, prepared_kernel};

const QUANTIZED: DtypeSet =
    dtype_set(&[Dtype::I8, Dtype::U8, Dtype::I16, Dtype::U16]).union(BYTE_FLOATS).union(PACKED);
const SCALES: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32]);

/// x / scale, rounded, shifted by the zero point and clamped.
#[derive(Clone, Copy)]
struct QuantizeMap {
    low: f32,
    high: f32,
}

impl ElementMap for QuantizeMap {
    type Input = (f32, f32, f32);
    type Output = f32;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x, scale, zero): (f32, f32, f32)) -> f32 {
        // Ties go to the even integer, and the zero point is added to what is rounded, as in the schema.
        math::clamp_keeping_nan((x / scale).round_ties_even() + zero, self.low, self.high)
    }
}

/// x / scale, for floats.
#[derive(Clone, Copy)]
struct DivideByScale;

impl ElementMap for DivideByScale {
    type Input = (f32, f32, f32);
    type Output = f32;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x, scale, zero): (f32, f32, f32)) -> f32 {
        // The conversion to the output's dtype rounds.
        x / scale + zero
    }
}

/// (x - zero) · scale.
#[derive(Clone, Copy)]
struct DequantizeMap;

impl ElementMap for DequantizeMap {
    type Input = (f32, f32, f32);
    type Output = f32;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x, scale, zero): (f32, f32, f32)) -> f32 {
        // For integers of up to 24 bits the difference is exact, so only the product rounds.
        (x - zero) * scale
    }
}

/// The smallest and the largest value of an integer dtype; `None` for floats.
fn integer_bounds(dtype: Dtype) -> Option<(f32, f32)> {
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

/// The conversions of an element, its scale and its zero point; an absent zero point is 0.
fn input_conversions(call: &KernelCall<'_>) -> Result<[OperandConversion; 3]> {
    let zero = call.optional_input(2)?.map_or(Dtype::F32, |zero| zero.dtype());
    Ok([
        OperandConversion::for_input(call.input(0)?.dtype(), Dtype::F32)?,
        OperandConversion::for_input(call.input(1)?.dtype(), Dtype::F32)?,
        OperandConversion::for_input(zero, Dtype::F32)?,
    ])
}

fn quantize_loop(call: &KernelCall<'_>) -> Result<PreparedLoop> {
    let (inputs, dtype) = (input_conversions(call)?, call.output(0)?.dtype());
    let output = OperandConversion::for_output(dtype, Dtype::F32)?;
    if let Some((low, high)) = integer_bounds(dtype) {
        return Ok(PreparedLoop::new(MapLoop(QuantizeMap { low, high }), inputs, output));
    }
    // The schema defines the attribute for 8-bit floats alone.
    let saturate = call.int_attribute("saturate")?.unwrap_or(1) != 0;
    let output = if saturate { output } else { output.with_conversion(find_unbounded_conversion(dtype)) };
    Ok(PreparedLoop::new(MapLoop(DivideByScale), inputs, output))
}

fn dequantize_loop(call: &KernelCall<'_>) -> Result<PreparedLoop> {
    let output = OperandConversion::for_output(call.output(0)?.dtype(), Dtype::F32)?;
    Ok(PreparedLoop::new(MapLoop(DequantizeMap), input_conversions(call)?, output))
}

fn quantize_kernel(
    op: &'static str,
    [x, y]: [OperandSpec; 2],
    zero: DtypeSet,
    pass: impl Fn(&KernelCall<'_>) -> Result<PreparedLoop> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    let zero = OperandSpec::new(zero).with_dtype_group(2).with_flags(OperandFlags::OPTIONAL);
    prepared_kernel(op, 10, move |call| {
        let scaled = ScaledLoop::new(call, pass(call)?)?;
        Ok(move |cpu: &Cpu, call: &KernelCall<'_>| scaled.run(cpu, call))
    })
    .with_inputs([x, OperandSpec::new(SCALES), zero])
    .with_outputs([y])
}

pub(super) fn quantize_kernels() -> [Kernel<Cpu>; 3] {
    let floats = OperandSpec::new(SCALES.union(DtypeSet::I32)).with_name("x");
    let stored = QUANTIZED.union(DtypeSet::I32);
    let y = output_operand("y", QUANTIZED).with_dtype_group(2);
    let dequantized = output_operand("y", SCALES);
    [
        quantize_kernel("QuantizeLinear", [floats, y], QUANTIZED, quantize_loop),
        quantize_kernel(
            "DequantizeLinear",
            [OperandSpec::new(stored).with_name("x").with_dtype_group(2), dequantized],
            stored,
            dequantize_loop,
        ),
        byte_map::byte_map_kernel(),
    ]
}
