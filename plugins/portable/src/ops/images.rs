//! Ops on images: `Conv`, pooling and `BatchNormalization`. A 1-D image is treated as a 2-D image of height 1.

use oarlock_sdk::{Kernel, KernelCall, OperandFlags, PluginError, Result, ensure};

use super::elementwise::{ElementwiseWork, StridedOperand, run_map, work_group_count};
use super::registration::{
    FLOAT_DTYPES, arithmetic_kernel, check_computable, check_output_shape, check_planned, contiguous_operand,
    input_view, optional_input_view, output_view,
};
use super::window::ImageWindow;
use crate::argument_list::{ArgumentList, FormulaNumber};
use crate::device::GpuDevices;
use crate::gpu::Gpu;
use crate::launch::launch_variant;
use crate::operand_view::OperandView;
use crate::source::{ElementFormula, IndexedProgram, IndexedSource, ProgramVariant, needs_wide_indices};

pub(super) fn image_kernels<G: Gpu>() -> Vec<Kernel<GpuDevices<G>>> {
    let float = contiguous_operand(FLOAT_DTYPES).with_dtype_group(1);
    let image = float.with_rank(3, 4);
    let pool = |op: &'static str, since| {
        arithmetic_kernel(op, move |gpus: &GpuDevices<G>, call| run_pooling(gpus, call, op))
            .since_version(since)
            .with_support_check(move |gpus, call| check_window_support(gpus, call, op))
            .with_inputs([image.with_name("X")])
            .with_outputs([image.with_name("Y")])
    };
    vec![
        arithmetic_kernel("Conv", run_convolution::<G>)
            .with_support_check(|gpus, call| check_window_support(gpus, call, "Conv"))
            .with_inputs([
                image.with_name("X"),
                image.with_name("W"),
                float.with_rank(1, 1).with_flags(OperandFlags::OPTIONAL).with_name("B"),
            ])
            .with_outputs([image.with_name("Y")]),
        // The check replaces that of `pool`, so it ends with the same one.
        pool("MaxPool", 1).with_support_check(|gpus: &GpuDevices<G>, call| {
            let wants_indices = call.optional_output(1)?.is_some();
            ensure!(!wants_indices, unimplemented, "expected no output `Indices`, found one");
            check_window_support(gpus, call, "MaxPool")
        }),
        pool("AveragePool", 7),
        pool("GlobalMaxPool", 1),
        pool("GlobalAveragePool", 1),
        arithmetic_kernel("BatchNormalization", run_batch_normalization::<G>)
            .since_version(9)
            .with_support_check(|gpus: &GpuDevices<G>, call| {
                // Training takes mean and variance from the batch, which needs reductions.
                let trains = call.int_attribute("training_mode")?.unwrap_or(0) != 0;
                ensure!(!trains, unimplemented, "expected a `training_mode` of 0, found another");
                check_computable(gpus, call)
            })
            .with_inputs(["X", "scale", "B", "input_mean", "input_var"].map(|name| float.with_name(name)))
            .with_outputs([float.with_name("Y")])
            .with_in_place(0, 0),
    ]
}

/// Batch, channels, height and width; a 1-D image has height 1.
fn image_dimensions(dims: &[i64]) -> Result<[i64; 4]> {
    match *dims {
        [batch, channels, width] => Ok([batch, channels, 1, width]),
        [batch, channels, height, width] => Ok([batch, channels, height, width]),
        _ => Err(PluginError::invalid_argument(format!(
            "expected images of one or two dimensions, found shape {dims:?}"
        ))),
    }
}

/// The window of a call: from the weights for `Conv`, from `kernel_shape` for pools, or the whole image for global pools.
fn image_window(call: &KernelCall<'_>, op: &str) -> Result<ImageWindow> {
    let dims = call.input(0)?.dims().to_vec();
    let [_, _, height, width] = image_dimensions(&dims)?;
    match op {
        "Conv" => {
            let [_, _, window_height, window_width] = image_dimensions(call.input(1)?.dims())?;
            ImageWindow::new(call, [height, width], Some([window_height, window_width]), dims.len() - 2)
        }
        "GlobalMaxPool" | "GlobalAveragePool" => Ok(ImageWindow::covering_image([height, width])),
        _ => ImageWindow::new(call, [height, width], None, dims.len() - 2),
    }
}

/// Refuses windows that one work-item cannot process in reasonable time.
fn check_window_support<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>, op: &str) -> Result<()> {
    check_planned(image_window(call, op))?;
    check_computable(gpus, call)
}

fn launch_shaped<G: Gpu>(
    gpus: &GpuDevices<G>,
    call: &KernelCall<'_>,
    source: IndexedSource,
    operands: &[(&'static str, &OperandView)],
    count: i64,
    shape: &[i64],
) -> Result<()> {
    let variant = ProgramVariant::Shaped(IndexedProgram {
        source,
        operands: operands.iter().map(|(name, view)| (*name, view.dtype)).collect(),
        // A work-item per element of the output. Neighbors read overlapping parts of the image, which the caches of the device serve.
        is_cooperative: false,
        is_wide: needs_wide_indices(operands.iter().map(|(_, view)| view.last_index())),
    });
    let arguments =
        ArgumentList::default().with_operands(operands.iter().map(|(_, view)| *view)).with_integers(shape);
    launch_variant(gpus, call, &variant, work_group_count(count)?, &arguments)
}

fn run_convolution<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (x, weights, y) = (input_view(call, 0)?, input_view(call, 1)?, output_view(call, 0)?);
    let bias = optional_input_view(call, 2)?;
    let ([batch, channels, height, width], [out_channels, group_in, ..]) =
        (image_dimensions(&x.dims)?, image_dimensions(&weights.dims)?);
    let group_count = call.int_attribute("group")?.unwrap_or(1);
    // The first condition guards the divisions by the number of groups after it.
    let fits = group_count > 0
        && x.dims.len() == weights.dims.len()
        && channels.checked_div(group_count) == Some(group_in)
        && channels % group_count == 0
        && out_channels % group_count == 0
        && bias.as_ref().is_none_or(|bias| bias.count == out_channels);
    ensure!(
        fits,
        invalid_argument,
        "expected weights for {channels} channels in {group_count} groups, found shape {:?}",
        weights.dims
    );
    let window = image_window(call, "Conv")?;
    let [_, _, out_height, out_width] = image_dimensions(&y.dims)?;
    let out = window.output_shape([height, width], [out_height, out_width], false)?;
    let mut expected = vec![batch, out_channels, out[0], out[1]];
    if x.dims.len() == 3 {
        expected.remove(2);
    }
    check_output_shape(&expected, &y)?;
    if y.count == 0 {
        return Ok(());
    }
    let mut operands = vec![("a", &x), ("b", &weights)];
    operands.extend(bias.iter().map(|bias| ("c", bias)));
    operands.push(("y", &y));
    let mut shape = vec![y.count, channels, height, width, out_channels, out[0], out[1], group_in];
    // The order of `struct shape` in convolution.c.
    shape.push(out_channels / group_count);
    shape.extend(window.kernel_parameters());
    launch_shaped(gpus, call, IndexedSource::Convolution, &operands, y.count, &shape)
}

fn run_pooling<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>, op: &str) -> Result<()> {
    let (x, y) = (input_view(call, 0)?, output_view(call, 0)?);
    let [batch, channels, height, width] = image_dimensions(&x.dims)?;
    let window = image_window(call, op)?;
    let [_, _, out_height, out_width] = image_dimensions(&y.dims)?;
    let rounds_up = call.int_attribute("ceil_mode")?.unwrap_or(0) != 0;
    let out = window.output_shape([height, width], [out_height, out_width], rounds_up)?;
    let mut expected = vec![batch, channels, out[0], out[1]];
    if x.dims.len() == 3 {
        expected.remove(2);
    }
    check_output_shape(&expected, &y)?;
    if y.count == 0 {
        return Ok(());
    }
    let counts_pads = call.int_attribute("count_include_pad")?.unwrap_or(0);
    // The order of `struct shape` in pool.c.
    let mut shape = vec![y.count, height, width, out[0], out[1]];
    shape.extend(window.kernel_parameters());
    shape.extend(window.padded_ends([height, width]));
    shape.push(i64::from(counts_pads != 0));
    let source = IndexedSource::Pool { is_max: op.ends_with("MaxPool") };
    launch_shaped(gpus, call, source, &[("a", &x), ("y", &y)], y.count, &shape)
}

/// Scales and shifts each channel: an element-wise op whose other operands vary only along the channel dimension.
fn run_batch_normalization<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let y = output_view(call, 0)?;
    let inputs: Vec<OperandView> = (0..5).map(|index| input_view(call, index)).collect::<Result<_>>()?;
    check_output_shape(&inputs[0].dims, &y)?;
    let rank = y.dims.len();
    let channels = if rank > 1 { y.dims[1] } else { 1 };
    ensure!(
        inputs[1..].iter().all(|view| view.dims == [channels]),
        invalid_argument,
        "expected operands of {channels} elements, one for each channel, found {:?}",
        inputs[1..].iter().map(|view| &view.dims).collect::<Vec<_>>()
    );
    // With a step of 0 along all other dimensions, the statistics need no copy of the size of the image.
    let mut along_channels = vec![0; rank];
    if rank > 1 {
        along_channels[1] = 1;
    }
    let stepped: Vec<StridedOperand<'_>> = inputs
        .iter()
        .enumerate()
        .map(|(index, view)| StridedOperand {
            view,
            steps: if index == 0 { &view.steps } else { &along_channels },
        })
        .collect();
    let epsilon = [FormulaNumber::Float(call.float_attribute("epsilon")?.unwrap_or(1e-5))];
    let work = ElementwiseWork {
        // Folding the statistics into one factor and one addend per channel would take a launch and memory of its own.
        formula: ElementFormula::Plain("(a - d) / sqrt(e + p) * b + c"),
        compute: y.dtype,
        parameters: &epsilon,
    };
    run_map(gpus, call, work, &y.dims, &stepped, StridedOperand { view: &y, steps: &y.steps })
}
