//! `Cast` and `CastLike`: from every dtype of numbers to every other.

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, Operand, Result};

use super::conversion::{conversion, to_be_rounded, unbounded};
use super::inner::Inner;
use super::number::unexpected;
use super::pass::Pass;
use super::port::{Port, computed};
use super::row::{BOOL, NUMBERS, input, output, prepared};
use crate::device::Cpu;

/// What can be cast to and from.
const WHOLE_BYTES: DtypeSet = NUMBERS.union(BOOL).union(DtypeSet::F8E4M3).union(DtypeSet::F8E5M2);
const HALF_BYTES: DtypeSet = DtypeSet::I4.union(DtypeSet::U4);
const ALL: DtypeSet = WHOLE_BYTES.union(HALF_BYTES);

/// The pass from one dtype to another.
///
/// A dtype that is not computed in itself is brought into the one it is computed in on the way. What ends in a float of 16 or 8
/// bits comes there by way of an `f32` that keeps track of having been rounded.
fn pass(from: Dtype, to: Dtype, saturate: bool) -> Result<Pass> {
    let direct = |inner: Option<&'static dyn Inner>| {
        inner.map(|inner| Pass::new(inner, [Port::direct(from)], Port::direct(to)))
    };
    let is_short_float = to != Dtype::F32 && computed(to) == Dtype::F32;
    if from == Dtype::F32 && is_short_float && !saturate {
        return direct(unbounded(to)).ok_or_else(|| unexpected(to));
    }
    if let Some(pass) = direct(conversion(from, to)) {
        return Ok(pass);
    }
    let (source, target) = (computed(from), computed(to));
    let inner = if is_short_float { to_be_rounded(source) } else { conversion(source, target) };
    let inner = inner.ok_or_else(|| unexpected(from))?;
    let output = Port::output(to, target)?;
    let output = if is_short_float && !saturate { output.through(unbounded(to)) } else { output };
    Ok(Pass::new(inner, [Port::input(from, source)?], output))
}

/// A row whose first input is cast to the dtype of the output.
fn row<const N: usize>(op: &'static str, since: u32, inputs: [Operand; N], to: DtypeSet) -> Kernel<Cpu> {
    prepared(op, since, |call: &Call<'_>| {
        let saturate = call.int("saturate")?.unwrap_or(1) != 0;
        let pass = pass(call.input(0)?.dtype(), call.output(0)?.dtype(), saturate)?;
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
    let contiguous = Operand::new(HALF_BYTES).named("input");
    for from in [input("input", WHOLE_BYTES), contiguous] {
        kernels.push(row("Cast", 1, [from], ALL));
        kernels.push(row("CastLike", 15, [from, like(ALL)], ALL));
    }
    kernels
}
