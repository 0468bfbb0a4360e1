//! Attention: for each query row, the mean of the values, weighted by how well their keys match. [`blocked`] is the fast algorithm,
//! and [`plain`] is the fallback for calls that it does not support. [`linear`] attends to a running sum of the past.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

mod blocked;
mod geometry;
mod lane_reduce;
mod linear;
mod mask;
mod plain;
mod rotary;
mod softmax;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_gemm::{DisjointSlice, ScratchBuffer, StoredElement};
use oarlock_sdk::{
    Dtype, DtypeSet, Element, Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, Result, bf16,
    dispatch, dtype_set, ensure, f16,
};

use self::blocked::{BlockedAttentionPlan, KeyValueCache};
use self::geometry::AttentionShape;
use self::mask::AttentionMask;

const FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32, Dtype::F64]);

pub(crate) fn attention_kernels() -> Vec<Kernel<Cpu>> {
    let float = OperandSpec::new(FLOATS).with_dtype_group(1);
    let optional = float.with_flags(OperandFlags::OPTIONAL);
    let other = |dtypes| OperandSpec::new(dtypes).with_flags(OperandFlags::OPTIONAL);
    let attention = Kernel::new_prepared("Attention", |cpu: &Cpu, call| {
        let geometry = AttentionShape::new(call)?;
        let dtype = call.input(0)?.dtype();
        // AMX does not multiply `f32`, so this kernel has no variant for it.
        let description = if is_plain(&geometry, dtype) { "row by row" } else { "fused, block by block" };
        call.describe_kernel(&format!("{description}, {}", cpu.isa().without_amx()));
        Ok(Arc::new(move |cpu: &Cpu, call: &KernelCall<'_>| run_attention(dtype, cpu, &geometry, call)))
    })
    .with_workspace(|cpu, call| {
        let geometry = AttentionShape::new(call)?;
        match call.input(0)?.dtype() {
            dtype if is_plain(&geometry, dtype) => Ok(0),
            Dtype::F32 => Ok(BlockedAttentionPlan::new::<f32>(cpu, &geometry).scratch_size(&geometry)),
            // The plan depends only on whether elements are widened, so `f16` represents both 16-bit types.
            _ => Ok(BlockedAttentionPlan::new::<f16>(cpu, &geometry).scratch_size(&geometry)),
        }
    })
    .since_version(23)
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        float.with_name("Q").with_rank(3, 4),
        float.with_name("K").with_rank(3, 4),
        float.with_name("V").with_rank(3, 4),
        other(FLOATS.union(DtypeSet::BOOL)).with_name("attn_mask").with_rank(1, 4),
        optional.with_name("past_key").with_rank(4, 4),
        optional.with_name("past_value").with_rank(4, 4),
        other(DtypeSet::I64).with_name("nonpad_kv_seqlen").with_rank(1, 1),
    ])
    .with_outputs([
        float.with_name("Y"),
        optional.with_name("present_key"),
        optional.with_name("present_value"),
        optional.with_name("qk_matmul_output"),
    ]);
    vec![attention, linear::linear_attention_kernel(), rotary::rotary_embedding_kernel()]
}

/// True if a call needs the plain algorithm.
fn is_plain(geometry: &AttentionShape, dtype: Dtype) -> bool {
    dtype == Dtype::F64 || geometry.is_double || geometry.score_mode.is_some() || geometry.size == 0
}

fn run_attention(dtype: Dtype, cpu: &Cpu, geometry: &AttentionShape, call: &KernelCall<'_>) -> Result<()> {
    let found = AttentionShape::new(call)?;
    ensure!(
        found == *geometry,
        invalid_argument,
        "expected operands of the shapes that were prepared for, found others"
    );
    // A shape with a 0 may have more rows than a loop could visit.
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

/// The elements of an optional input; empty if it is absent.
fn optional_input_elements<'a, E: Element>(call: &KernelCall<'a>, index: usize) -> Result<&'a [E]> {
    // SAFETY: device memory is host memory, and the call guarantees that nothing writes its inputs.
    call.optional_input(index)?.map_or(Ok(&[]), |operand| unsafe { operand.elements() })
}

/// The elements of an optional output.
fn optional_output_slice<'a, E: Element>(
    call: &KernelCall<'a>,
    index: usize,
    dims: &[usize],
) -> Result<Option<DisjointSlice<'a, E>>> {
    let Some(operand) = call.optional_output(index)? else { return Ok(None) };
    ensure!(
        operand.dims().iter().copied().eq(dims.iter().map(|dim| *dim as i64)),
        invalid_argument,
        "expected output {index} of shape {dims:?}, found {:?}",
        operand.dims()
    );
    // SAFETY: device memory is host memory, and the call guarantees that outputs touch no other operand.
    Ok(Some(DisjointSlice::new(unsafe { operand.elements_mut() }?)))
}

/// The output, and the optional outputs for present keys and values.
type AttentionOutputs<'a, E> = (DisjointSlice<'a, E>, [Option<DisjointSlice<'a, E>>; 2]);

fn attention_outputs<'a, E: Element>(
    call: &KernelCall<'a>,
    geometry: &AttentionShape,
) -> Result<AttentionOutputs<'a, E>> {
    let AttentionShape { batches, heads, shared, queries, size, value_size, .. } = *geometry;
    // The shape of the output follows that of the query; past and present are always of four dimensions.
    let is_narrow = call.input(0)?.dims().len() == 3;
    let dims = if is_narrow {
        &[batches, queries, heads * value_size][..]
    } else {
        &[batches, heads, queries, value_size]
    };
    let y = optional_output_slice(call, 0, dims)?
        .ok_or_else(|| oarlock_sdk::PluginError::invalid_argument("expected an output, found none"))?;
    let present =
        |index, size| optional_output_slice(call, index, &[batches, shared, geometry.total_keys(), size]);
    Ok((y, [present(1, size)?, present(2, value_size)?]))
}

fn run_blocked<E: StoredElement<ComputeType = f32>>(
    cpu: &Cpu,
    geometry: &AttentionShape,
    call: &KernelCall<'_>,
) -> Result<()> {
    let (output, [present_keys, present_values]) = attention_outputs::<E>(call, geometry)?;
    let operands = blocked::BlockedAttentionOperands {
        query: optional_input_elements(call, 0)?,
        keys: KeyValueCache {
            past: optional_input_elements(call, 4)?,
            past_steps: geometry.past_key,
            fresh: optional_input_elements(call, 1)?,
            steps: geometry.key,
        },
        values: KeyValueCache {
            past: optional_input_elements(call, 5)?,
            past_steps: geometry.past_value,
            fresh: optional_input_elements(call, 2)?,
            steps: geometry.value,
        },
        mask: AttentionMask::new(call, geometry)?,
        output,
        present_keys,
        present_values,
    };
    // The host provides the workspace that `with_workspace` requested, so scratch memory is not allocated in each call.
    blocked::compute_blocked(cpu, geometry, &operands, &mut ScratchBuffer::from_call(call));
    Ok(())
}

fn run_plain<E: ComputeElement>(cpu: &Cpu, geometry: &AttentionShape, call: &KernelCall<'_>) -> Result<()> {
    let AttentionShape { batches, heads, queries, .. } = *geometry;
    let (output_rows, [present_keys, present_values]) = attention_outputs::<E>(call, geometry)?;
    let (key, value, past_key, past_value) = (
        optional_input_elements(call, 1)?,
        optional_input_elements(call, 2)?,
        optional_input_elements(call, 4)?,
        optional_input_elements(call, 5)?,
    );
    let keys =
        KeyValueCache { past: past_key, past_steps: geometry.past_key, fresh: key, steps: geometry.key };
    let values = KeyValueCache {
        past: past_value,
        past_steps: geometry.past_value,
        fresh: value,
        steps: geometry.value,
    };
    // Copied before the threads start, since several query heads share a key head.
    for head in 0..batches * geometry.shared {
        let place = [head / geometry.shared, head % geometry.shared];
        keys.copy_present(geometry, place, (geometry.present_key, geometry.size), present_keys.as_ref());
        values.copy_present(
            geometry,
            place,
            (geometry.present_value, geometry.value_size),
            present_values.as_ref(),
        );
    }
    let operands = plain::PlainAttentionOperands {
        query: optional_input_elements(call, 0)?,
        key,
        value,
        past_key,
        past_value,
        mask: AttentionMask::new(call, geometry)?,
        output: output_rows,
        scores: optional_output_slice(call, 3, &[batches, heads, queries, geometry.total_keys()])?,
    };
    plain::compute_plain(cpu, geometry, &operands);
    Ok(())
}
