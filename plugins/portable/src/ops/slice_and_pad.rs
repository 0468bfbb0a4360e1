//! `Slice` and `Pad`: both copy a box of one operand into a box of another.

use oarlock_sdk::shape::resolve_axis;
use oarlock_sdk::{Kernel, KernelCall, OperandFlags, PluginError, Result, ensure};

use super::elementwise::{ElementwiseWork, StridedOperand, run_map, work_group_count};
use super::movement::copy_elements;
use super::registration::{
    ALL_DTYPES, FLOAT_DTYPES, INDEX_DTYPES, arithmetic_kernel, check_computable, check_output_shape,
    contiguous_operand, host_operand, input_view, output_view, stream_kernel, strided_operand,
};
use crate::argument_list::{ArgumentList, FormulaNumber};
use crate::device::GpuDevices;
use crate::gpu::Gpu;
use crate::host_operands::{host_integers, host_numbers, optional_host_integers};
use crate::launch::launch_variant;
use crate::operand_view::OperandView;
use crate::source::{
    ElementFormula, IndexedProgram, IndexedSource, PaddingSource, ProgramVariant, needs_wide_indices,
};

pub(super) fn slice_and_pad_kernels<G: Gpu>() -> Vec<Kernel<GpuDevices<G>>> {
    let shape = |name| host_operand(INDEX_DTYPES).with_name(name);
    let optional = |name| shape(name).with_flags(OperandFlags::OPTIONAL);
    let (data, result) =
        (strided_operand(ALL_DTYPES).with_dtype_group(1), contiguous_operand(ALL_DTYPES).with_dtype_group(1));
    vec![
        stream_kernel("Slice", |gpus: &GpuDevices<G>, call| {
            let starts = call.ints_attribute("starts")?.unwrap_or_default();
            run_slice(
                gpus,
                call,
                starts,
                call.ints_attribute("ends")?.unwrap_or_default(),
                call.ints_attribute("axes")?,
                None,
            )
        })
        .until_version(9)
        .with_inputs([data.with_name("data")])
        .with_outputs([result.with_name("output")]),
        stream_kernel("Slice", |gpus: &GpuDevices<G>, call| {
            let (starts, ends) = (host_integers(&call.input(1)?)?, host_integers(&call.input(2)?)?);
            let (axes, steps) = (optional_host_integers(call, 3)?, optional_host_integers(call, 4)?);
            run_slice(gpus, call, &starts, &ends, axes.as_deref(), steps.as_deref())
        })
        .since_version(10)
        .with_inputs([
            data.with_name("data"),
            shape("starts"),
            shape("ends"),
            optional("axes"),
            optional("steps"),
        ])
        .with_outputs([result.with_name("output")]),
        arithmetic_kernel("Pad", |gpus: &GpuDevices<G>, call| {
            let value = FormulaNumber::Float(call.float_attribute("value")?.unwrap_or(0.0));
            run_pad(gpus, call, call.ints_attribute("pads")?.unwrap_or_default(), None, value)
        })
        .with_support_check(check_pad_support)
        .since_version(2)
        .until_version(10)
        .with_inputs([strided_operand(FLOAT_DTYPES).with_dtype_group(1).with_name("data")])
        .with_outputs([contiguous_operand(FLOAT_DTYPES).with_dtype_group(1).with_name("output")]),
        arithmetic_kernel("Pad", |gpus: &GpuDevices<G>, call| {
            let value = call.optional_input(2)?.map(|tensor| host_numbers(&tensor)).transpose()?;
            let value = value.and_then(|value| value.first().copied()).unwrap_or(FormulaNumber::Int(0));
            run_pad(
                gpus,
                call,
                &host_integers(&call.input(1)?)?,
                optional_host_integers(call, 3)?.as_deref(),
                value,
            )
        })
        .with_support_check(check_pad_support)
        .since_version(11)
        .with_inputs([
            data.with_name("data"),
            shape("pads"),
            host_operand(ALL_DTYPES)
                .with_dtype_group(1)
                .with_flags(OperandFlags::OPTIONAL)
                .with_name("constant_value"),
            optional("axes"),
        ])
        .with_outputs([result.with_name("output")]),
    ]
}

fn check_pad_support<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    padding_source(call)?;
    check_computable(gpus, call)
}

/// The element source outside the operand, or `None` for a constant.
fn padding_source(call: &KernelCall<'_>) -> Result<Option<PaddingSource>> {
    match call.string_attribute("mode")?.unwrap_or("constant") {
        "constant" => Ok(None),
        "edge" => Ok(Some(PaddingSource::Edge)),
        "reflect" => Ok(Some(PaddingSource::Reflect)),
        "wrap" => Ok(Some(PaddingSource::Wrap)),
        mode => Err(PluginError::unimplemented(format!(
            "expected `constant`, `edge`, `reflect` or `wrap` as `mode`, found `{mode}`"
        ))),
    }
}

/// The named axes, or the first `count`.
fn resolve_axes(axes: Option<&[i64]>, count: usize, rank: usize) -> Result<Vec<usize>> {
    // Without names the axes are counted, and the count may exceed the rank.
    let axes = match axes {
        Some(axes) => axes.iter().map(|at| resolve_axis(*at, rank)).collect::<Result<Vec<usize>>>()?,
        None => (0..count).collect(),
    };
    ensure!(
        axes.len() == count && axes.iter().all(|axis| *axis < rank),
        invalid_argument,
        "expected {count} axes of {rank} dimensions, found {axes:?}"
    );
    // The offset of an axis is added to that of the others, so an axis given twice would read outside of the operand.
    let is_repeated = |(at, axis): (usize, &usize)| axes[..at].contains(axis);
    ensure!(
        !axes.iter().enumerate().any(is_repeated),
        invalid_argument,
        "expected each axis once, found {axes:?}"
    );
    Ok(axes)
}

fn run_slice<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    starts: &[i64],
    ends: &[i64],
    axes: Option<&[i64]>,
    steps: Option<&[i64]>,
) -> Result<()> {
    let (x, y) = (input_view(call, 0)?.reinterpret_as_bits(), output_view(call, 0)?.reinterpret_as_bits());
    let count = starts.len();
    ensure!(
        ends.len() == count && steps.is_none_or(|steps| steps.len() == count),
        invalid_argument,
        "expected as many `ends` and `steps` as `starts`, found {starts:?}, {ends:?} and {steps:?}"
    );
    let (mut dims, mut strides, mut first) = (x.dims.clone(), x.steps.clone(), 0);
    for (index, axis) in resolve_axes(axes, count, x.dims.len())?.into_iter().enumerate() {
        let step = steps.map_or(1, |steps| steps[index]);
        ensure!(step != 0, invalid_argument, "expected steps other than 0, found {steps:?}");
        let dim = x.dims[axis];
        // Models write the greatest and the least `i64` for "to the end", so the sum saturates.
        let clamp = |at: i64, low, high| if at < 0 { at.saturating_add(dim) } else { at }.clamp(low, high);
        let (start, length) = if step > 0 {
            let start = clamp(starts[index], 0, dim);
            (start, (clamp(ends[index], 0, dim) - start).max(0))
        } else {
            // With a negative step, a start before the first element is clamped to the first.
            let start = clamp(starts[index], 0, (dim - 1).max(0));
            (start, if dim == 0 { 0 } else { (start - clamp(ends[index], -1, dim - 1)).max(0) })
        };
        dims[axis] = (length as u64).div_ceil(step.unsigned_abs()) as i64;
        // The start of an empty slice may lie past the end, where no view may begin.
        if dims[axis] > 0 {
            first += start * x.steps[axis];
            // Clamping is safe: a step beyond the dimension is never taken, and it keeps the product from overflowing.
            strides[axis] = step.clamp(-dim, dim) * x.steps[axis];
        }
    }
    check_output_shape(&dims, &y)?;
    if y.count == 0 {
        return Ok(());
    }
    copy_elements(gpus, call, &dims, &x.subview(first, &dims, strides), &y)
}

/// Negative pads crop; the rest of the input is copied into the output. The border is a constant, or taken from inside by the
/// mode.
fn run_pad<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    pads: &[i64],
    axes: Option<&[i64]>,
    value: FormulaNumber,
) -> Result<()> {
    let (x, y) = (input_view(call, 0)?, output_view(call, 0)?);
    let rank = x.dims.len();
    ensure!(
        pads.len().is_multiple_of(2),
        invalid_argument,
        "expected a pad for both ends of each axis, found {pads:?}"
    );
    let half = pads.len() / 2;
    let (mut dims, mut kept) = (x.dims.clone(), x.dims.clone());
    let (mut from, mut to) = (0, vec![0; rank]);
    for (index, axis) in resolve_axes(axes, half, rank)?.into_iter().enumerate() {
        let (before, after) = (pads[index], pads[half + index]);
        let dim = x.dims[axis];
        // Pads are arbitrary numbers of the model.
        let sum = before.checked_add(after).and_then(|pads| pads.checked_add(dim)).filter(|sum| *sum >= 0);
        ensure!(
            sum.is_some(),
            out_of_range,
            "expected pads that leave a shape, found {pads:?} for {:?}",
            x.dims
        );
        dims[axis] = sum.unwrap_or(0);
        // Crops may overlap, and then nothing is kept.
        kept[axis] = (dim + before.min(0) + after.min(0)).max(0);
        // No further than the end, so that the view stays inside of the operand.
        from += before.saturating_neg().max(0).min(dim) * x.steps[axis];
        to[axis] = before.max(0);
    }
    check_output_shape(&dims, &y)?;
    let inside = x.subview(from, &kept, x.steps.clone()).reinterpret_as_bits();
    if let Some(outside) = padding_source(call)?.filter(|_| rank > 0) {
        return pad_from_inside(gpus, call, outside, &inside, &to, &y.reinterpret_as_bits());
    }
    // Everything is filled, and the inside copied over it. The stream is in order, so the copy comes last.
    fill_output(gpus, call, &y, value)?;
    if inside.count == 0 {
        return Ok(());
    }
    let first = to.iter().zip(&y.steps).map(|(at, step)| at * step).sum();
    let steps = y.steps.clone();
    copy_elements(gpus, call, &kept, &inside, &y.reinterpret_as_bits().subview(first, &kept, steps))
}

/// Fills the output from the operand, with the border taken from the operand itself.
fn pad_from_inside<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    outside: PaddingSource,
    inside: &OperandView,
    begins: &[i64],
    y: &OperandView,
) -> Result<()> {
    if y.count == 0 {
        return Ok(());
    }
    ensure!(
        inside.count > 0,
        invalid_argument,
        "expected elements to pad with, found the shape {:?}",
        inside.dims
    );
    let variant = ProgramVariant::Shaped(IndexedProgram {
        source: IndexedSource::Pad { outside, rank: y.dims.len() as u8 },
        operands: vec![("a", inside.dtype), ("y", y.dtype)],
        is_cooperative: false,
        is_wide: needs_wide_indices([inside.last_index(), y.last_index()]),
    });
    // The order of `struct shape` in pad.c.
    let shape = [&[y.count], &y.dims[..], &inside.dims, begins, &inside.steps].concat();
    let arguments = ArgumentList::default().with_operands([inside, y]).with_integers(&shape);
    launch_variant(gpus, call, &variant, work_group_count(y.count)?, &arguments)
}

/// Fills a view with one number.
fn fill_output<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    y: &OperandView,
    value: FormulaNumber,
) -> Result<()> {
    // A number and not bits: the host has it as `i64` or `f64`, and the store converts it.
    let work =
        ElementwiseWork { formula: ElementFormula::Plain("p"), compute: y.dtype, parameters: &[value] };
    run_map(gpus, call, work, &y.dims, &[], StridedOperand { view: y, steps: &y.steps })
}
