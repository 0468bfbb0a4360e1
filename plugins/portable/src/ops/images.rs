//! Ops on images: `Conv`, pooling and `BatchNormalization`. One dimension of space is taken for two, the first of 1.

use oarlock_sdk::{Call, Error, Kernel, OperandFlags, Result, ensure};

use super::elementwise::{Stepped, Work, groups, map};
use super::row::{
    FLOATS, arithmetic, can_compute, check_shape, input, optional_input, output, plain, refused,
};
use super::window::Window;
use crate::arguments::{Arguments, Number};
use crate::device::Gpus;
use crate::gpu::Gpu;
use crate::program::launch;
use crate::source::{Formula, Indexed, Shaped, Variant, is_wide};
use crate::view::View;

pub(super) fn kernels<G: Gpu>() -> Vec<Kernel<Gpus<G>>> {
    let float = plain(FLOATS).group(1);
    let image = float.rank(3, 4);
    let pool = |op: &'static str, since| {
        arithmetic(op, move |gpus: &Gpus<G>, call| pool(gpus, call, op))
            .since(since)
            .supports(move |gpus, call| can_slide(gpus, call, op))
            .inputs([image.named("X")])
            .outputs([image.named("Y")])
    };
    vec![
        arithmetic("Conv", convolve::<G>)
            .supports(|gpus, call| can_slide(gpus, call, "Conv"))
            .inputs([
                image.named("X"),
                image.named("W"),
                float.rank(1, 1).flags(OperandFlags::OPTIONAL).named("B"),
            ])
            .outputs([image.named("Y")]),
        pool("MaxPool", 1).supports(|gpus: &Gpus<G>, call| {
            let wants_indices = call.optional_output(1)?.is_some();
            ensure!(!wants_indices, unimplemented, "expected no output `Indices`, found one");
            can_slide(gpus, call, "MaxPool")
        }),
        pool("AveragePool", 7),
        pool("GlobalMaxPool", 1),
        pool("GlobalAveragePool", 1),
        arithmetic("BatchNormalization", normalize::<G>)
            .since(9)
            .supports(|gpus: &Gpus<G>, call| {
                let trains = call.int("training_mode")?.unwrap_or(0) != 0;
                ensure!(!trains, unimplemented, "expected a `training_mode` of 0, found another");
                can_compute(gpus, call)
            })
            .inputs(["X", "scale", "B", "input_mean", "input_var"].map(|name| float.named(name)))
            .outputs([float.named("Y")])
            .in_place(0, 0),
    ]
}

/// Batch, channels, height and width of an image; an image of one dimension has height 1.
fn image(dims: &[i64]) -> Result<[i64; 4]> {
    match *dims {
        [batch, channels, width] => Ok([batch, channels, 1, width]),
        [batch, channels, height, width] => Ok([batch, channels, height, width]),
        _ => Err(Error::invalid_argument(format!(
            "expected images of one or two dimensions, found shape {dims:?}"
        ))),
    }
}

/// The window of a call: that of its weights, of its attribute, or everything.
fn window(call: &Call<'_>, op: &str) -> Result<Window> {
    let dims = call.input(0)?.dims().to_vec();
    let [_, _, height, width] = image(&dims)?;
    match op {
        "Conv" => {
            let [_, _, window_height, window_width] = image(call.input(1)?.dims())?;
            Window::new(call, [height, width], Some([window_height, window_width]), dims.len() - 2)
        }
        "GlobalMaxPool" | "GlobalAveragePool" => Ok(Window::whole([height, width])),
        _ => Window::new(call, [height, width], None, dims.len() - 2),
    }
}

/// Refuses windows that are too large for one work-item.
fn can_slide<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>, op: &str) -> Result<()> {
    refused(window(call, op))?;
    can_compute(gpus, call)
}

fn launch_shaped<G: Gpu>(
    gpus: &Gpus<G>,
    call: &Call<'_>,
    source: Indexed,
    operands: &[(&'static str, &View)],
    count: i64,
    shape: &[i64],
) -> Result<()> {
    let variant = Variant::Shaped(Shaped {
        source,
        operands: operands.iter().map(|(name, view)| (*name, view.dtype)).collect(),
        is_cooperative: false,
        is_wide: is_wide(operands.iter().map(|(_, view)| view.last())),
    });
    let arguments = Arguments::default().operands(operands.iter().map(|(_, view)| *view)).integers(shape);
    launch(gpus, call, &variant, groups(count)?, &arguments)
}

fn convolve<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (x, weights, y) = (input(call, 0)?, input(call, 1)?, output(call, 0)?);
    let bias = optional_input(call, 2)?;
    let ([batch, channels, height, width], [out_channels, group_in, ..]) =
        (image(&x.dims)?, image(&weights.dims)?);
    let group_count = call.int("group")?.unwrap_or(1);
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
    let window = window(call, "Conv")?;
    let [_, _, out_height, out_width] = image(&y.dims)?;
    let out = window.output([height, width], [out_height, out_width], false)?;
    let mut expected = vec![batch, out_channels, out[0], out[1]];
    if x.dims.len() == 3 {
        expected.remove(2);
    }
    check_shape(&expected, &y)?;
    if y.count == 0 {
        return Ok(());
    }
    let mut operands = vec![("a", &x), ("b", &weights)];
    operands.extend(bias.iter().map(|bias| ("c", bias)));
    operands.push(("y", &y));
    let mut shape = vec![y.count, channels, height, width, out_channels, out[0], out[1], group_in];
    shape.push(out_channels / group_count);
    shape.extend(window.numbers());
    launch_shaped(gpus, call, Indexed::Convolution, &operands, y.count, &shape)
}

fn pool<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>, op: &str) -> Result<()> {
    let (x, y) = (input(call, 0)?, output(call, 0)?);
    let [batch, channels, height, width] = image(&x.dims)?;
    let window = window(call, op)?;
    let [_, _, out_height, out_width] = image(&y.dims)?;
    let rounds_up = call.int("ceil_mode")?.unwrap_or(0) != 0;
    let out = window.output([height, width], [out_height, out_width], rounds_up)?;
    let mut expected = vec![batch, channels, out[0], out[1]];
    if x.dims.len() == 3 {
        expected.remove(2);
    }
    check_shape(&expected, &y)?;
    if y.count == 0 {
        return Ok(());
    }
    let counts_pads = call.int("count_include_pad")?.unwrap_or(0);
    let mut shape = vec![y.count, height, width, out[0], out[1]];
    shape.extend(window.numbers());
    shape.extend(window.ends([height, width]));
    shape.push(i64::from(counts_pads != 0));
    let source = Indexed::Pool { is_max: op.ends_with("MaxPool") };
    launch_shaped(gpus, call, source, &[("a", &x), ("y", &y)], y.count, &shape)
}

/// Every channel is shifted and scaled by numbers of its own: an element-wise op whose operands lie along one dimension.
fn normalize<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let y = output(call, 0)?;
    let inputs: Vec<View> = (0..5).map(|index| input(call, index)).collect::<Result<_>>()?;
    check_shape(&inputs[0].dims, &y)?;
    let rank = y.dims.len();
    let channels = if rank > 1 { y.dims[1] } else { 1 };
    ensure!(
        inputs[1..].iter().all(|view| view.dims == [channels]),
        invalid_argument,
        "expected operands of {channels} elements, one for each channel, found {:?}",
        inputs[1..].iter().map(|view| &view.dims).collect::<Vec<_>>()
    );
    let mut along_channels = vec![0; rank];
    if rank > 1 {
        along_channels[1] = 1;
    }
    let stepped: Vec<Stepped<'_>> = inputs
        .iter()
        .enumerate()
        .map(|(index, view)| Stepped { view, steps: if index == 0 { &view.steps } else { &along_channels } })
        .collect();
    let epsilon = [Number::Float(call.float("epsilon")?.unwrap_or(1e-5))];
    let work = Work {
        formula: Formula::Plain("(a - d) / sqrt(e + p) * b + c"),
        compute: y.dtype,
        parameters: &epsilon,
    };
    map(gpus, call, work, &y.dims, &stepped, Stepped { view: &y, steps: &y.steps })
}
