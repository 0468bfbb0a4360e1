//! `Gather`. An index out of range gives zeros, and an error when the stream is waited for.

use oarlock_sdk::shape::resolve_axis;
use oarlock_sdk::{Kernel, KernelCall, Result};

use super::elementwise::work_group_count;
use super::registration::{
    ALL_DTYPES, INDEX_DTYPES, check_output_shape, contiguous_operand, input_view, output_view, stream_kernel,
};
use crate::argument_list::ArgumentList;
use crate::device::GpuDevices;
use crate::gpu::Gpu;
use crate::launch::launch_variant;
use crate::source::{IndexedProgram, IndexedSource, ProgramVariant, needs_wide_indices};

pub(super) fn gather_kernels<G: Gpu>() -> Vec<Kernel<GpuDevices<G>>> {
    vec![
        // It only moves bits, so no dtype of the data needs the support of the device.
        stream_kernel("Gather", run_gather::<G>)
            .with_inputs([
                contiguous_operand(ALL_DTYPES).with_dtype_group(1).with_name("data"),
                contiguous_operand(INDEX_DTYPES).with_name("indices"),
            ])
            .with_outputs([contiguous_operand(ALL_DTYPES).with_dtype_group(1).with_name("output")]),
    ]
}

fn run_gather<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (x, indices, y) = (
        input_view(call, 0)?.reinterpret_as_bits(),
        input_view(call, 1)?,
        output_view(call, 0)?.reinterpret_as_bits(),
    );
    let axis = resolve_axis(call.int_attribute("axis")?.unwrap_or(0), x.dims.len())?;
    check_output_shape(&[&x.dims[..axis], &indices.dims, &x.dims[axis + 1..]].concat(), &y)?;
    if y.count == 0 {
        return Ok(());
    }
    // One work-item per element: behind the axis, neighbors read and write adjacent elements.
    let [_, length, inner] = x.split_at_axis(axis);
    let variant = ProgramVariant::Shaped(IndexedProgram {
        source: IndexedSource::Gather,
        operands: vec![("a", x.dtype), ("b", indices.dtype), ("y", y.dtype)],
        is_cooperative: false,
        // The output is not empty, so it has at least as many elements as there are indices.
        is_wide: needs_wide_indices([x.last_index(), y.last_index()]),
    });
    let arguments = ArgumentList::default().with_operands([&x, &indices, &y]).with_integers(&[
        length,
        indices.count,
        inner,
        y.count,
    ]);
    launch_variant(gpus, call, &variant, work_group_count(y.count)?, &arguments)
}
