//! Ops that only move elements: each is a copy with suitable strides on one side.

use oarlock_sdk::shape::resolve_axis;
use oarlock_sdk::{Kernel, KernelCall, OperandFlags, Result, ensure};

use super::elementwise::{ElementwiseWork, StridedOperand, run_map};
use super::registration::{
    ALL_DTYPES, INDEX_DTYPES, check_output_shape, contiguous_operand, host_operand, input_view, output_view,
    stream_kernel, strided_operand,
};
use crate::device::GpuDevices;
use crate::gpu::Gpu;
use crate::operand_view::OperandView;
use crate::operand_walk::{contiguous_strides, saturating_element_count};
use crate::source::ElementFormula;

pub(super) fn movement_kernels<G: Gpu>() -> Vec<Kernel<GpuDevices<G>>> {
    let shape = |name| host_operand(INDEX_DTYPES).with_name(name);
    let optional = |name| shape(name).with_flags(OperandFlags::OPTIONAL);
    let one = |kernel: Kernel<GpuDevices<G>>| {
        kernel
            .with_inputs([strided_operand(ALL_DTYPES).with_dtype_group(1)])
            .with_outputs([contiguous_operand(ALL_DTYPES).with_dtype_group(1)])
    };
    // These ops split dimensions of the input, which is simple for contiguous elements only.
    let blocks = |kernel: Kernel<GpuDevices<G>>| {
        kernel
            .with_inputs([contiguous_operand(ALL_DTYPES).with_dtype_group(1)])
            .with_outputs([contiguous_operand(ALL_DTYPES).with_dtype_group(1)])
    };
    let two = |kernel: Kernel<GpuDevices<G>>, second| {
        kernel
            .with_inputs([strided_operand(ALL_DTYPES).with_dtype_group(1), second])
            .with_outputs([contiguous_operand(ALL_DTYPES).with_dtype_group(1)])
    };
    vec![
        one(stream_kernel("Identity", copy_reshaped::<G>)).with_in_place(0, 0),
        one(stream_kernel("Flatten", copy_reshaped::<G>)).with_in_place(0, 0),
        two(stream_kernel("Reshape", copy_reshaped::<G>).since_version(5), shape("shape"))
            .with_in_place(0, 0),
        one(stream_kernel("Squeeze", copy_reshaped::<G>).until_version(12)).with_in_place(0, 0),
        two(stream_kernel("Squeeze", copy_reshaped::<G>).since_version(13), optional("axes"))
            .with_in_place(0, 0),
        one(stream_kernel("Unsqueeze", copy_reshaped::<G>).until_version(12)).with_in_place(0, 0),
        two(stream_kernel("Unsqueeze", copy_reshaped::<G>).since_version(13), shape("axes"))
            .with_in_place(0, 0),
        one(stream_kernel("Transpose", run_transpose::<G>)),
        two(stream_kernel("Expand", run_expand::<G>).since_version(8), shape("shape")),
        two(stream_kernel("Tile", run_tile::<G>).since_version(6), shape("repeats")),
        blocks(stream_kernel("DepthToSpace", depth_to_space::<G>)),
        blocks(stream_kernel("SpaceToDepth", space_to_depth::<G>)),
        stream_kernel("Concat", run_concat::<G>)
            .since_version(4)
            .with_inputs([strided_operand(ALL_DTYPES)
                .with_dtype_group(1)
                .with_flags(OperandFlags::VARIADIC)
                .with_name("inputs")])
            .with_outputs([contiguous_operand(ALL_DTYPES).with_dtype_group(1).with_name("concat_result")]),
        stream_kernel("Split", run_split::<G>)
            .since_version(2)
            .until_version(12)
            .with_inputs([strided_operand(ALL_DTYPES).with_dtype_group(1).with_name("input")])
            .with_outputs([contiguous_operand(ALL_DTYPES)
                .with_dtype_group(1)
                .with_flags(OperandFlags::VARIADIC)
                .with_name("outputs")]),
        stream_kernel("Split", run_split::<G>)
            .since_version(13)
            .with_inputs([
                strided_operand(ALL_DTYPES).with_dtype_group(1).with_name("input"),
                optional("split"),
            ])
            .with_outputs([contiguous_operand(ALL_DTYPES)
                .with_dtype_group(1)
                .with_flags(OperandFlags::VARIADIC)
                .with_name("outputs")]),
    ]
}

/// Copies `dims` elements between two views with different strides.
pub(super) fn copy_elements<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    dims: &[i64],
    from: &OperandView,
    to: &OperandView,
) -> Result<()> {
    let (source, target) =
        (StridedOperand { view: from, steps: &from.steps }, StridedOperand { view: to, steps: &to.steps });
    run_map(
        gpus,
        call,
        ElementwiseWork::without_parameters(ElementFormula::Plain("a"), to.dtype),
        dims,
        &[source],
        target,
    )
}

fn copy_reshaped<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (x, y) = (input_view(call, 0)?.reinterpret_as_bits(), output_view(call, 0)?.reinterpret_as_bits());
    ensure!(
        x.count == y.count,
        invalid_argument,
        "expected an output of {} elements for an input of shape {:?}, found one of shape {:?}",
        x.count,
        x.dims,
        y.dims
    );
    if y.count == 0 {
        return Ok(());
    }
    // Reshaping keeps the order of the elements, so the output is written as if it had the shape of the input.
    let y = y.subview(0, &x.dims, contiguous_strides(&x.dims));
    copy_elements(gpus, call, &x.dims, &x, &y)
}

fn run_transpose<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (x, y) = (input_view(call, 0)?.reinterpret_as_bits(), output_view(call, 0)?.reinterpret_as_bits());
    let rank = x.dims.len();
    let order: Vec<usize> = match call.ints_attribute("perm")? {
        None => (0..rank).rev().collect(),
        Some(order) => order.iter().map(|at| resolve_axis(*at, rank)).collect::<Result<_>>()?,
    };
    // A repeated axis leaves another one out; sorting finds both.
    let mut sorted = order.clone();
    sorted.sort_unstable();
    ensure!(
        sorted.iter().copied().eq(0..rank),
        invalid_argument,
        "expected a `perm` that names each of {rank} dimensions once, found {order:?}"
    );
    copy_permuted(gpus, call, &x, &order, &y)
}

/// Copies with permuted dimensions. The output has the permuted shape, perhaps with some dimensions merged.
fn copy_permuted<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    x: &OperandView,
    order: &[usize],
    y: &OperandView,
) -> Result<()> {
    let dims: Vec<i64> = order.iter().map(|axis| x.dims[*axis]).collect();
    if dims.len() == y.dims.len() {
        check_output_shape(&dims, y)?;
    }
    if y.count == 0 {
        return Ok(());
    }
    // Work-items follow the order of the output: adjacent writes join, and only the reads are scattered.
    let x = x.subview(0, &dims, order.iter().map(|axis| x.steps[*axis]).collect());
    copy_elements(gpus, call, &dims, &x, &y.subview(0, &dims, contiguous_strides(&dims)))
}

fn run_expand<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (x, y) = (input_view(call, 0)?.reinterpret_as_bits(), output_view(call, 0)?.reinterpret_as_bits());
    super::elementwise::run_broadcast(
        gpus,
        call,
        ElementwiseWork::without_parameters(ElementFormula::Plain("a"), y.dtype),
        &[&x],
        &y,
    )
}

/// Splits each dimension into a repeat count, along which the input has stride 0, and the original dimension.
fn run_tile<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (x, y) = (input_view(call, 0)?.reinterpret_as_bits(), output_view(call, 0)?.reinterpret_as_bits());
    let fits = x.dims.len() == y.dims.len()
        // The condition on the input guards the remainder after it.
        && x.dims.iter().zip(&y.dims).all(|(own, dim)| *dim == 0 || (*own > 0 && dim % own == 0));
    ensure!(
        fits,
        invalid_argument,
        "expected an output whose dimensions are multiples of {:?}, found {:?}",
        x.dims,
        y.dims
    );
    if y.count == 0 {
        return Ok(());
    }
    // Up to 24 dimensions, but with one strided operand: 384 bytes of the 1,024 for arguments.
    let dims: Vec<i64> = x.dims.iter().zip(&y.dims).flat_map(|(own, dim)| [dim / own, *own]).collect();
    let steps = x.steps.iter().flat_map(|step| [0, *step]).collect();
    copy_elements(
        gpus,
        call,
        &dims,
        &x.subview(0, &dims, steps),
        &y.subview(0, &dims, contiguous_strides(&dims)),
    )
}

/// `DepthToSpace` and `SpaceToDepth` are transposes of a 6-D view; `dims` gives its shape for a contiguous input.
fn permute_blocks<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    dims: impl Fn(&[i64], i64) -> [i64; 6],
    order: &[usize],
) -> Result<()> {
    let (x, y) = (input_view(call, 0)?.reinterpret_as_bits(), output_view(call, 0)?.reinterpret_as_bits());
    let size = call.int_attribute("blocksize")?.unwrap_or(0);
    // No dimension is larger than a block of 2^31, and the square of a larger size would overflow.
    ensure!(
        x.dims.len() == 4 && (1..1 << 31).contains(&size),
        invalid_argument,
        "expected 4 dimensions and a `blocksize`, found {:?} and {size}",
        x.dims
    );
    // `dims` rounds quotients down, so the products differ if anything is left over.
    let dims = dims(&x.dims, size);
    ensure!(
        saturating_element_count(&dims) == x.count && x.count == y.count,
        invalid_argument,
        "expected dimensions that can be divided by the `blocksize` {size}, found {:?} and {:?}",
        x.dims,
        y.dims
    );
    let x = x.subview(0, &dims, contiguous_strides(&dims));
    copy_permuted(gpus, call, &x, order, &y)
}

fn depth_to_space<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let is_column_first = call.string_attribute("mode")? == Some("CRD");
    if is_column_first {
        let dims = |x: &[i64], size: i64| [x[0], x[1] / (size * size), size, size, x[2], x[3]];
        return permute_blocks(gpus, call, dims, &[0, 1, 4, 2, 5, 3]);
    }
    let dims = |x: &[i64], size: i64| [x[0], size, size, x[1] / (size * size), x[2], x[3]];
    permute_blocks(gpus, call, dims, &[0, 3, 4, 1, 5, 2])
}

fn space_to_depth<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let dims = |x: &[i64], size: i64| [x[0], x[1], x[2] / size, size, x[3] / size, size];
    let is_column_first = call.string_attribute("mode")? == Some("CRD");
    let order = if is_column_first { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
    permute_blocks(gpus, call, dims, &order)
}

/// Checks that the parts match the whole in every dimension but `axis`, and add up to it along `axis`.
fn check_parts(parts: &[OperandView], whole: &OperandView, axis: usize) -> Result<()> {
    let alike = |part: &OperandView| {
        part.dims.len() == whole.dims.len()
            && part
                .dims
                .iter()
                .zip(&whole.dims)
                .enumerate()
                .all(|(at, (part, whole))| at == axis || part == whole)
    };
    let mut sizes = parts.iter().map(|part| part.dims.get(axis).copied().unwrap_or(0));
    let sum = sizes.try_fold(0, i64::checked_add);
    let fills = parts.iter().all(alike) && sum == whole.dims.get(axis).copied();
    ensure!(
        fills,
        invalid_argument,
        "expected shapes that fill {:?} along axis {axis}, found {:?}",
        whole.dims,
        parts.iter().map(|part| &part.dims).collect::<Vec<_>>()
    );
    Ok(())
}

fn run_concat<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let y = output_view(call, 0)?.reinterpret_as_bits();
    let axis = resolve_axis(call.int_attribute("axis")?.unwrap_or(0), y.dims.len())?;
    let parts: Vec<OperandView> = (0..call.input_count())
        .map(|index| Ok(input_view(call, index)?.reinterpret_as_bits()))
        .collect::<Result<_>>()?;
    check_parts(&parts, &y, axis)?;
    let mut first = 0;
    for part in &parts {
        // A launch per part: one kernel for all would have as many parameters as a call has inputs, without a limit.
        let place = y.subview(first * y.steps[axis], &part.dims, y.steps.clone());
        copy_elements(gpus, call, &part.dims, part, &place)?;
        first += part.dims[axis];
    }
    Ok(())
}

/// The output shapes, already inferred by the host, say where to split.
fn run_split<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let x = input_view(call, 0)?.reinterpret_as_bits();
    let axis = resolve_axis(call.int_attribute("axis")?.unwrap_or(0), x.dims.len())?;
    let parts: Vec<OperandView> = (0..call.output_count())
        .map(|index| Ok(output_view(call, index)?.reinterpret_as_bits()))
        .collect::<Result<_>>()?;
    check_parts(&parts, &x, axis)?;
    let mut first = 0;
    for part in &parts {
        let place = x.subview(first * x.steps[axis], &part.dims, x.steps.clone());
        copy_elements(gpus, call, &part.dims, &place, part)?;
        first += part.dims[axis];
    }
    Ok(())
}
