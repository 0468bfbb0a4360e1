//! Attention: for each row of a query the mean of values, weighted by how well their keys match. [`blocked`] is how it is
//! computed, and [`plain`] how where that does not give all that is asked for. [`linear`] is attention to a sum of the past.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

mod blocked;
mod fold;
mod geometry;
mod linear;
mod mask;
mod plain;
mod rotary;
mod softmax;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use oarlock_sdk::{
    Call, Dtype, DtypeSet, Element, Kernel, KernelFlags, Operand, OperandFlags, Result, bf16, dispatch,
    dtype_set, ensure, f16,
};

use self::blocked::{Cache, Plan};
use self::geometry::Geometry;
use self::mask::Mask;
use crate::device::Cpu;
use crate::gemm::{Parts, Scratch, Stored};

const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);

/// The rows of attention.
pub(crate) fn kernels() -> Vec<Kernel<Cpu>> {
    let float = Operand::new(FLOATS).group(1);
    let optional = float.flags(OperandFlags::OPTIONAL);
    let other = |dtypes| Operand::new(dtypes).flags(OperandFlags::OPTIONAL);
    let attention = Kernel::prepared("Attention", |cpu: &Cpu, call| {
        let geometry = Geometry::new(call)?;
        let dtype = call.input(0)?.dtype();
        let way = if is_plain(&geometry, dtype) { "row by row" } else { "fused, block by block" };
        call.describe(&format!("{way}, {}", cpu.isa().without_tiles()));
        Ok(Arc::new(move |cpu: &Cpu, call: &Call<'_>| run_of(dtype, cpu, &geometry, call)))
    })
    .workspace(|cpu, call| {
        let geometry = Geometry::new(call)?;
        match call.input(0)?.dtype() {
            dtype if is_plain(&geometry, dtype) => Ok(0),
            Dtype::F32 => Ok(Plan::new::<f32>(cpu, &geometry).scratch_size(&geometry)),
            _ => Ok(Plan::new::<f16>(cpu, &geometry).scratch_size(&geometry)),
        }
    })
    .since(23)
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([
        float.named("Q").rank(3, 4),
        float.named("K").rank(3, 4),
        float.named("V").rank(3, 4),
        other(FLOATS.union(DtypeSet::BOOL)).named("attn_mask").rank(1, 4),
        optional.named("past_key").rank(4, 4),
        optional.named("past_value").rank(4, 4),
        other(DtypeSet::I64).named("nonpad_kv_seqlen").rank(1, 1),
    ])
    .outputs([
        float.named("Y"),
        optional.named("present_key"),
        optional.named("present_value"),
        optional.named("qk_matmul_output"),
    ]);
    vec![attention, linear::kernel(), rotary::kernel()]
}

/// Whether a call is computed the plain way.
fn is_plain(geometry: &Geometry, dtype: Dtype) -> bool {
    dtype == Dtype::F64 || geometry.is_double || geometry.score_mode.is_some() || geometry.size == 0
}

fn run_of(dtype: Dtype, cpu: &Cpu, geometry: &Geometry, call: &Call<'_>) -> Result<()> {
    let found = Geometry::new(call)?;
    ensure!(
        found == *geometry,
        invalid_argument,
        "expected operands of the shapes that were prepared for, found others"
    );
    // Of rows without elements there may be more than anybody could go through.
    let mut outputs = (0..4).filter_map(|index| call.optional_output(index).transpose());
    if outputs.try_fold(true, |all, output| Ok(all && output?.dims().contains(&0)))? {
        return Ok(());
    }
    if is_plain(geometry, dtype) {
        dispatch!(dtype, floating_and_half + bf16, T => run_plain::<T>(cpu, geometry, call))
    } else {
        match dtype {
            Dtype::F32 => run_blocked::<f32>(cpu, geometry, call),
            Dtype::F16 => run_blocked::<f16>(cpu, geometry, call),
            _ => run_blocked::<bf16>(cpu, geometry, call),
        }
    }
}

/// The elements of an input that may be left out, and then are none.
fn input<'a, E: Element>(call: &Call<'a>, index: usize) -> Result<&'a [E]> {
    // SAFETY: the device's memory is the host's, and the call vouches that nothing writes its inputs.
    call.optional_input(index)?.map_or(Ok(&[]), |operand| unsafe { operand.elements() })
}

/// The elements of an output, where it is wanted.
fn output<'a, E: Element>(call: &Call<'a>, index: usize, dims: &[usize]) -> Result<Option<Parts<'a, E>>> {
    let Some(operand) = call.optional_output(index)? else { return Ok(None) };
    ensure!(
        operand.dims().iter().copied().eq(dims.iter().map(|dim| *dim as i64)),
        invalid_argument,
        "expected output {index} of shape {dims:?}, found {:?}",
        operand.dims()
    );
    // SAFETY: the device's memory is the host's, and the call vouches that outputs touch no other operand.
    Ok(Some(Parts::new(unsafe { operand.elements_mut() }?)))
}

/// The output itself, and where keys and values are wanted together with those of the past.
type Outputs<'a, E> = (Parts<'a, E>, [Option<Parts<'a, E>>; 2]);

fn outputs<'a, E: Element>(call: &Call<'a>, geometry: &Geometry) -> Result<Outputs<'a, E>> {
    let Geometry { batches, heads, shared, queries, size, value_size, .. } = *geometry;
    let is_narrow = call.input(0)?.dims().len() == 3;
    let dims = if is_narrow {
        &[batches, queries, heads * value_size][..]
    } else {
        &[batches, heads, queries, value_size]
    };
    let y = output(call, 0, dims)?
        .ok_or_else(|| oarlock_sdk::Error::invalid_argument("expected an output, found none"))?;
    let present = |index, size| output(call, index, &[batches, shared, geometry.total(), size]);
    Ok((y, [present(1, size)?, present(2, value_size)?]))
}

fn run_blocked<E: Stored<Computed = f32>>(cpu: &Cpu, geometry: &Geometry, call: &Call<'_>) -> Result<()> {
    let (output, [present_keys, present_values]) = outputs::<E>(call, geometry)?;
    let operands = blocked::Operands {
        query: input(call, 0)?,
        keys: Cache {
            past: input(call, 4)?,
            past_steps: geometry.past_key,
            fresh: input(call, 1)?,
            steps: geometry.key,
        },
        values: Cache {
            past: input(call, 5)?,
            past_steps: geometry.past_value,
            fresh: input(call, 2)?,
            steps: geometry.value,
        },
        mask: Mask::new(call, geometry)?,
        output,
        present_keys,
        present_values,
    };
    blocked::compute(cpu, geometry, &operands, &mut Scratch::of(call));
    Ok(())
}

fn run_plain<E: plain::Real>(cpu: &Cpu, geometry: &Geometry, call: &Call<'_>) -> Result<()> {
    let Geometry { batches, heads, queries, .. } = *geometry;
    let (output_rows, [present_keys, present_values]) = outputs::<E>(call, geometry)?;
    let (key, value, past_key, past_value) =
        (input(call, 1)?, input(call, 2)?, input(call, 4)?, input(call, 5)?);
    let keys = Cache { past: past_key, past_steps: geometry.past_key, fresh: key, steps: geometry.key };
    let values =
        Cache { past: past_value, past_steps: geometry.past_value, fresh: value, steps: geometry.value };
    for head in 0..batches * geometry.shared {
        let place = [head / geometry.shared, head % geometry.shared];
        keys.copy_to(geometry, place, (geometry.present_key, geometry.size), present_keys.as_ref());
        values.copy_to(
            geometry,
            place,
            (geometry.present_value, geometry.value_size),
            present_values.as_ref(),
        );
    }
    let operands = plain::Operands {
        query: input(call, 0)?,
        key,
        value,
        past_key,
        past_value,
        mask: Mask::new(call, geometry)?,
        output: output_rows,
        scores: output(call, 3, &[batches, heads, queries, geometry.total()])?,
    };
    plain::compute(cpu, geometry, &operands);
    Ok(())
}
