//! Ops over whole rows: `ArgMax`, `ArgMin`, `Softmax`, `LogSoftmax` and `LayerNormalization`.

use oarlock_sdk::shape::resolve_axis;
use oarlock_sdk::{Dtype, Kernel, KernelCall, OperandFlags, Result, dtype_set, ensure};

use super::MIN_COOPERATIVE_ROW;
use super::elementwise::{check_work_group_count, work_group_count};
use super::registration::{
    FLOAT_DTYPES, NUMERIC_DTYPES, arithmetic_kernel, check_computable, check_output_shape, check_planned,
    contiguous_operand, input_view, optional_input_view, output_view,
};
use crate::argument_list::{ArgumentList, FormulaNumber};
use crate::device::GpuDevices;
use crate::gpu::Gpu;
use crate::launch::launch_variant;
use crate::operand_view::OperandView;
use crate::operand_walk::saturating_element_count;
use crate::source::{IndexedProgram, IndexedSource, ProgramVariant, needs_wide_indices};

pub(super) fn rowwise_kernels<G: Gpu>() -> Vec<Kernel<GpuDevices<G>>> {
    let extremes = ["ArgMax", "ArgMin"].into_iter().map(|op| {
        arithmetic_kernel(op, move |gpus: &GpuDevices<G>, call| run_arg_extreme(gpus, call, op == "ArgMax"))
            .with_inputs([contiguous_operand(NUMERIC_DTYPES).with_name("data")])
            .with_outputs([contiguous_operand(dtype_set(&[Dtype::I64])).with_name("reduced")])
    });
    let softmax = ["Softmax", "LogSoftmax"].into_iter().flat_map(|op| {
        let is_log = op == "LogSoftmax";
        let make = move |whole: bool| {
            arithmetic_kernel(op, move |gpus: &GpuDevices<G>, call| run_softmax(gpus, call, is_log, whole))
                .with_inputs([contiguous_operand(FLOAT_DTYPES).with_dtype_group(1).with_name("input")])
                .with_outputs([contiguous_operand(FLOAT_DTYPES).with_dtype_group(1).with_name("output")])
                .with_in_place(0, 0)
        };
        [make(true).until_version(12), make(false).since_version(13)]
    });
    let float = contiguous_operand(FLOAT_DTYPES).with_dtype_group(1);
    let statistic =
        contiguous_operand(dtype_set(&[Dtype::F32, Dtype::F64])).with_flags(OperandFlags::OPTIONAL);
    let normalization = arithmetic_kernel("LayerNormalization", run_layer_normalization::<G>)
        .since_version(17)
        .with_support_check(|gpus, call| {
            check_planned(normalized_row_length(call))?;
            check_computable(gpus, call)
        })
        .with_inputs([
            float.with_name("X"),
            float.with_name("Scale"),
            float.with_flags(OperandFlags::OPTIONAL).with_name("B"),
        ])
        .with_outputs([float.with_name("Y"), statistic.with_name("Mean"), statistic.with_name("InvStdDev")]);
    extremes.chain(softmax).chain([normalization]).collect()
}

/// Runs a program over `rows` rows of `length` elements each.
fn launch_rows<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    source: IndexedSource,
    operands: &[(&'static str, &OperandView)],
    (rows, length): (i64, i64),
    arguments: impl FnOnce(ArgumentList) -> ArgumentList,
) -> Result<()> {
    // A row is never split among groups: softmax and normalization need its sums before they store an element.
    let is_cooperative = length >= MIN_COOPERATIVE_ROW;
    let variant = ProgramVariant::Shaped(IndexedProgram {
        source,
        operands: operands.iter().map(|(name, view)| (*name, view.dtype)).collect(),
        is_cooperative,
        is_wide: needs_wide_indices(operands.iter().map(|(_, view)| view.last_index())),
    });
    let arguments = arguments(ArgumentList::default().with_operands(operands.iter().map(|(_, view)| *view)));
    let groups = if is_cooperative { check_work_group_count(rows)? } else { work_group_count(rows)? };
    launch_variant(gpus, call, &variant, groups, &arguments)
}

fn run_arg_extreme<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>, is_max: bool) -> Result<()> {
    let (x, y) = (input_view(call, 0)?, output_view(call, 0)?);
    let axis = resolve_axis(call.int_attribute("axis")?.unwrap_or(0), x.dims.len())?;
    let mut expected = x.dims.clone();
    if call.int_attribute("keepdims")?.unwrap_or(1) != 0 {
        expected[axis] = 1;
    } else {
        expected.remove(axis);
    }
    check_output_shape(&expected, &y)?;
    let [_, length, inner] = x.split_at_axis(axis);
    // An empty row has no greatest element, and the kernel reads the first one unconditionally.
    ensure!(length > 0, invalid_argument, "expected a row with an element, found shape {:?}", x.dims);
    if y.count == 0 {
        return Ok(());
    }
    let is_last = call.int_attribute("select_last_index")?.unwrap_or(0) != 0;
    let source = IndexedSource::Extreme { is_max, is_last };
    launch_rows(gpus, call, source, &[("a", &x), ("y", &y)], (y.count, length), |arguments| {
        arguments.with_integers(&[length, inner, y.count])
    })
}

/// Before version 13 everything from the axis on is one row.
fn run_softmax<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>, is_log: bool, whole: bool) -> Result<()> {
    let (x, y) = (input_view(call, 0)?, output_view(call, 0)?);
    check_output_shape(&x.dims, &y)?;
    if y.count == 0 {
        return Ok(());
    }
    let rank = x.dims.len();
    let [_, length, inner] = if whole {
        let named = call.int_attribute("axis")?.unwrap_or(1);
        let first = if named == rank as i64 { rank } else { resolve_axis(named, rank)? };
        [1, saturating_element_count(&x.dims[first..]), 1]
    } else {
        x.split_at_axis(resolve_axis(call.int_attribute("axis")?.unwrap_or(-1), rank)?)
    };
    // The output is not empty, so `length` is not 0.
    let rows = x.count / length;
    launch_rows(
        gpus,
        call,
        IndexedSource::Softmax { is_log },
        &[("a", &x), ("y", &y)],
        (rows, length),
        |arguments| arguments.with_integers(&[length, inner, rows]),
    )
}

/// Length of a normalized row; checks that `Scale` and `B` have one element for each position.
fn normalized_row_length(call: &KernelCall<'_>) -> Result<i64> {
    let (x, scale, bias) = (input_view(call, 0)?, input_view(call, 1)?, optional_input_view(call, 2)?);
    let first = resolve_axis(call.int_attribute("axis")?.unwrap_or(-1), x.dims.len())?;
    let length = saturating_element_count(&x.dims[first..]);
    // The kernel reads one element per position. The op also allows operands that broadcast; another device may take those.
    for operand in std::iter::once(&scale).chain(&bias) {
        ensure!(
            operand.count == length,
            unimplemented,
            "expected `Scale` and `B` of {length} elements, one for each of {:?}, found {:?}",
            &x.dims[first..],
            operand.dims
        );
    }
    // Without elements nothing is launched, and the statistics would stay unwritten.
    let is_asked = call.optional_output(1)?.is_some() || call.optional_output(2)?.is_some();
    ensure!(
        x.count > 0 || !is_asked,
        unimplemented,
        "expected rows of one element and more, found shape {:?}",
        x.dims
    );
    Ok(length)
}

fn run_layer_normalization<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (x, scale, y) = (input_view(call, 0)?, input_view(call, 1)?, output_view(call, 0)?);
    let bias = optional_input_view(call, 2)?;
    check_output_shape(&x.dims, &y)?;
    let length = normalized_row_length(call)?;
    if y.count == 0 {
        return Ok(());
    }
    let rows = x.count / length;
    let epsilon = [FormulaNumber::Float(call.float_attribute("epsilon")?.unwrap_or(1e-5))];
    let mut outputs = vec![("y", y)];
    for (index, name) in [(1, "means"), (2, "scales")] {
        if let Some(tensor) = call.optional_output(index)? {
            let statistic = OperandView::new(&tensor)?;
            ensure!(
                statistic.count == rows,
                invalid_argument,
                "expected a statistic for each of {rows} rows, found shape {:?}",
                statistic.dims
            );
            outputs.push((name, statistic));
        }
    }
    // A source has a single output. Statistics are rarely asked for, so they are computed again and not shared.
    for (name, output) in &outputs {
        let mut operands = vec![("a", &x), ("b", &scale)];
        operands.extend(bias.iter().map(|bias| ("c", bias)));
        operands.push((name, output));
        launch_rows(gpus, call, IndexedSource::LayerNormalization, &operands, (rows, length), |arguments| {
            arguments.with_integers(&[length, rows]).with_numbers(x.dtype, &epsilon)
        })?;
    }
    Ok(())
}
