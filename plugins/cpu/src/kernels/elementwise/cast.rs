//! `Cast` and `CastLike`: from every dtype of numbers to every other.

use oarlock_sdk::{Call, Dtype, DtypeSet, Error, Kernel, Operand, Result};

use super::conversion::{conversion, to_be_rounded, to_power, unbounded};
use super::inner::Inner;
use super::number::unexpected;
use super::pass::Pass;
use super::port::{Port, computed};
use super::row::{BOOL, BYTE_FLOATS, NUMBERS, PACKED, input, output, prepared};
use super::small_floats::PowerRounding;
use crate::device::Cpu;

/// What can be cast to and from.
const WHOLE_BYTES: DtypeSet = NUMBERS.union(BOOL).union(BYTE_FLOATS);
const ALL: DtypeSet = WHOLE_BYTES.union(PACKED);

/// The pass from one dtype to another.
///
/// A dtype that is not computed in itself is brought into the one it is computed in on the way. What ends in a float of 16 or 8
/// bits comes there by way of an `f32` that keeps track of having been rounded.
fn pass(from: Dtype, to: Dtype, saturate: bool, rounding: PowerRounding) -> Result<Pass> {
    let direct = |inner: Option<&'static dyn Inner>| {
        inner.map(|inner| Pass::new(inner, [Port::direct(from)], Port::direct(to)))
    };
    let is_short_float = to != Dtype::F32 && computed(to) == Dtype::F32;
    let shortened = match to {
        Dtype::F8E8M0 => Some(to_power(rounding, saturate)),
        _ if saturate => conversion(Dtype::F32, to),
        _ => unbounded(to),
    };
    let found = if from == Dtype::F32 && is_short_float { shortened } else { conversion(from, to) };
    // A part of a byte is put in its place only on the way out of a loop.
    if !Port::direct(to).is_packed()
        && let Some(pass) = direct(found)
    {
        return Ok(pass);
    }
    let (source, target) = (computed(from), computed(to));
    let inner = if is_short_float { to_be_rounded(source) } else { conversion(source, target) };
    let inner = inner.ok_or_else(|| unexpected(from))?;
    let output = Port::output(to, target)?;
    let output = if is_short_float { output.through(shortened) } else { output };
    Ok(Pass::new(inner, [Port::input(from, source)?], output))
}

/// A row whose first input is cast to the dtype of the output.
fn row<const N: usize>(op: &'static str, since: u32, inputs: [Operand; N], to: DtypeSet) -> Kernel<Cpu> {
    prepared(op, since, |call: &Call<'_>| {
        let saturate = call.int("saturate")?.unwrap_or(1) != 0;
        let rounding = match call.string("round_mode")?.unwrap_or("up") {
            "up" => PowerRounding::Up,
            "down" => PowerRounding::Down,
            "nearest" => PowerRounding::Nearest,
            other => {
                return Err(Error::invalid_argument(format!(
                    "expected `round_mode` to be `up`, `down` or `nearest`, found `{other}`"
                )));
            }
        };
        let pass = pass(call.input(0)?.dtype(), call.output(0)?.dtype(), saturate, rounding)?;
        Ok(move |cpu: &Cpu, call: &Call<'_>| pass.run::<1>(cpu, call))
    })
    .inputs(inputs)
    .outputs([output("output", to)])
}

/// The rows of `Cast` and `CastLike`.
pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let like = |dtypes: DtypeSet| input("target_type", dtypes).group(1);
    let mut kernels = Vec::new();
    // Elements that share bytes have no strides, so they have rows of their own.
    let contiguous = Operand::new(PACKED).named("input");
    for from in [input("input", WHOLE_BYTES), contiguous] {
        kernels.push(row("Cast", 1, [from], ALL));
        kernels.push(row("CastLike", 15, [from, like(ALL)], ALL));
    }
    kernels
}
