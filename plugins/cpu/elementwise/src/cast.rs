//! `Cast` and `CastLike`: from every numeric dtype to every other.

use oarlock_cpu_base::device::Cpu;
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result};

use super::conversion::{
    find_conversion, find_round_to_odd, find_unbounded_conversion, power_of_two_conversion,
};
use super::dtype_dispatch::unexpected_dtype;
use super::element_loop::ElementLoop;
use super::operand_conversion::{OperandConversion, compute_dtype};
use super::prepared_loop::PreparedLoop;
use super::registration::{
    BOOL, BYTE_FLOATS, NUMBERS, PACKED, input_operand, output_operand, prepared_kernel,
};
use super::small_floats::PowerRounding;

/// The dtypes that can be cast, except packed ones.
const CASTABLE_WHOLE_BYTES: DtypeSet = NUMBERS.union(BOOL).union(BYTE_FLOATS);
const CASTABLE: DtypeSet = CASTABLE_WHOLE_BYTES.union(PACKED);

/// The loop from one dtype to another.
///
/// A dtype that is not computed in itself is first converted to the one it is computed in. A conversion to a float of 16 or 8
/// bits goes through an `f32` that is rounded to odd, so that rounding twice gives what rounding once would.
fn cast_loop(from: Dtype, to: Dtype, saturate: bool, rounding: PowerRounding) -> Result<PreparedLoop> {
    let direct = |inner: Option<&'static dyn ElementLoop>| {
        inner.map(|inner| {
            PreparedLoop::new(
                inner,
                [OperandConversion::without_conversion(from)],
                OperandConversion::without_conversion(to),
            )
        })
    };
    let is_short_float = to != Dtype::F32 && compute_dtype(to) == Dtype::F32;
    let shortened = match to {
        Dtype::F8E8M0 => Some(power_of_two_conversion(rounding, saturate)),
        _ if saturate => find_conversion(Dtype::F32, to),
        _ => find_unbounded_conversion(to),
    };
    // From an `f32` there is nothing to round before, so the last conversion is the whole loop.
    let found = if from == Dtype::F32 && is_short_float { shortened } else { find_conversion(from, to) };
    // Packed elements are only placed in their byte by the conversion at the end of a loop.
    if !OperandConversion::without_conversion(to).is_packed()
        && let Some(pass) = direct(found)
    {
        return Ok(pass);
    }
    let (source, target) = (compute_dtype(from), compute_dtype(to));
    let inner = if is_short_float { find_round_to_odd(source) } else { find_conversion(source, target) };
    let inner = inner.ok_or_else(|| unexpected_dtype(from))?;
    let output = OperandConversion::for_output(to, target)?;
    let output = if is_short_float { output.with_conversion(shortened) } else { output };
    Ok(PreparedLoop::new(inner, [OperandConversion::for_input(from, source)?], output))
}

/// The kernel of a cast of the first input to the dtype of the output.
fn cast_kernel<const N: usize>(
    op: &'static str,
    since: u32,
    inputs: [OperandSpec; N],
    to: DtypeSet,
) -> Kernel<Cpu> {
    prepared_kernel(op, since, |call: &KernelCall<'_>| {
        let saturate = call.int_attribute("saturate")?.unwrap_or(1) != 0;
        let rounding = match call.string_attribute("round_mode")?.unwrap_or("up") {
            "up" => PowerRounding::Up,
            "down" => PowerRounding::Down,
            "nearest" => PowerRounding::Nearest,
            other => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `round_mode` to be `up`, `down` or `nearest`, found `{other}`"
                )));
            }
        };
        let pass = cast_loop(call.input(0)?.dtype(), call.output(0)?.dtype(), saturate, rounding)?;
        Ok(move |cpu: &Cpu, call: &KernelCall<'_>| pass.run::<1>(cpu, call))
    })
    .with_inputs(inputs)
    .with_outputs([output_operand("output", to)])
}

pub(super) fn cast_kernels() -> Vec<Kernel<Cpu>> {
    let like = |dtypes: DtypeSet| input_operand("target_type", dtypes).with_dtype_group(1);
    let mut kernels = Vec::new();
    // Packed elements have no strides, so they have rows of their own.
    let contiguous = OperandSpec::new(PACKED).with_name("input");
    for from in [input_operand("input", CASTABLE_WHOLE_BYTES), contiguous] {
        kernels.push(cast_kernel("Cast", 1, [from], CASTABLE));
        kernels.push(cast_kernel("CastLike", 15, [from, like(CASTABLE)], CASTABLE));
    }
    kernels
}
