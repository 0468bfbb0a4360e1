//! `ConvInteger` and `QLinearConv`: eight-bit images and weights with zero points, summed in 32 bits.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_sdk::{
    Call, DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, Result, Tensor, dispatch, ensure,
};

use super::layer::Layer;
use super::window::Settings;
use crate::device::Cpu;
use crate::gemm::{Finish, Finished, Parts, Product, Scratch, Side};
use crate::kernels::channels_last::expect_prepared;
use crate::kernels::channels_last::geometry::Geometry;
use crate::kernels::matmul::quantised::{BYTES, Requantised, floats, integers, widened};
use crate::kernels::quantized::layer::bytes;
use crate::kernels::quantized::packed::Panels;
use crate::kernels::quantized::sums::{Operands, Sums};

type Run = dyn Fn(&Cpu, &Call<'_>) -> Result<()> + Send + Sync;

/// Fewer outputs of a group are not worth a vector of them.
const FEW_OUTPUTS: usize = 4;

/// How convolutions are computed.
struct Way {
    settings: Settings,
    groups: i64,
    /// The shapes of images, weights and output.
    dims: [Vec<i64>; 3],
    /// As sums of images whose channels are last, where there are several of them, and the weights for them if these are constant.
    sums: Option<(Sums, Option<Arc<Panels>>)>,
}

pub(super) fn kernels() -> [Kernel<Cpu>; 2] {
    let byte = Operand::new(BYTES);
    let zero = byte.flags(OperandFlags::OPTIONAL);
    let images = byte.rank(3, u32::MAX);
    let integer = Kernel::prepared("ConvInteger", |cpu: &Cpu, call| prepare(cpu, call, 1, conv_integer))
        .since(10)
        .flags(KernelFlags::DETERMINISTIC)
        .inputs([
            images.named("x").group(1),
            images.named("w").group(2),
            zero.named("x_zero_point").group(1),
            zero.named("w_zero_point").group(2),
        ])
        .outputs([Operand::new(DtypeSet::I32).named("y")]);
    let scale = Operand::new(DtypeSet::F32);
    let linear = Kernel::prepared("QLinearConv", |cpu: &Cpu, call| prepare(cpu, call, 3, qlinear_conv))
        .since(10)
        .flags(KernelFlags::DETERMINISTIC)
        .inputs([
            images.named("x").group(1),
            scale.named("x_scale"),
            byte.named("x_zero_point").group(1),
            images.named("w").group(2),
            scale.named("w_scale"),
            byte.named("w_zero_point").group(2),
            scale.named("y_scale"),
            byte.named("y_zero_point").group(3),
            Operand::new(DtypeSet::I32).named("B").rank(1, 1).flags(OperandFlags::OPTIONAL),
        ])
        .outputs([byte.named("y").group(3)]);
    [integer, linear]
}

/// What runs a call whose weights are at a place.
fn prepare(
    cpu: &Cpu,
    call: &Call<'_>,
    place: usize,
    run: fn(&Cpu, &Call<'_>, &Way) -> Result<()>,
) -> Result<Arc<Run>> {
    let (settings, groups) = (Settings::new(call)?, call.int("group")?.unwrap_or(1));
    let (x, w, y) = (call.input(0)?, call.input(place)?, call.output(0)?);
    let last = |dims: &[i64]| match dims {
        [images, channels, spatial @ ..] => [&[*images], spatial, &[*channels]].concat(),
        _ => Vec::new(),
    };
    let geometry = Geometry::of_convolution(&settings, groups, &last(x.dims()), w.dims(), &last(y.dims()));
    let geometry = geometry.ok().filter(|geometry| geometry.outputs_of_group() >= FEW_OUTPUTS);
    let sums = match geometry {
        None => None,
        Some(geometry) => {
            let sums = Sums::of_images(cpu, geometry, [x.dtype(), w.dtype()]);
            let packed = w.is_constant().then(|| sums.pack_constant(cpu, &w)).transpose()?;
            Some((sums, packed))
        }
    };
    let dims = [x.dims(), w.dims(), y.dims()].map(<[i64]>::to_vec);
    let way = Way { settings, groups, dims, sums };
    Ok(Arc::new(move |cpu, call| run(cpu, call, &way)))
}

fn conv_integer(cpu: &Cpu, call: &Call<'_>, way: &Way) -> Result<()> {
    let (x, w, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    expect_prepared(way.dims == [x.dims(), w.dims(), y.dims()])?;
    let layer = Layer::new(&way.settings, way.groups, x.dims(), w.dims(), y.dims())?;
    let zero = |index| call.optional_input(index)?.map_or(Ok(vec![0]), |zero| integers(&zero));
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let y = unsafe { y.elements_mut::<i32>() }?;
    convolve(cpu, call, (way, &layer), (&x, &zero(2)?), (&w, &zero(3)?), Some(y), None)
}

fn qlinear_conv(cpu: &Cpu, call: &Call<'_>, way: &Way) -> Result<()> {
    let (x, w, y) = (call.input(0)?, call.input(3)?, call.output(0)?);
    expect_prepared(way.dims == [x.dims(), w.dims(), y.dims()])?;
    let layer = Layer::new(&way.settings, way.groups, x.dims(), w.dims(), y.dims())?;
    let (x_scale, y_scale) = (one(floats(&call.input(1)?)?)?, one(floats(&call.input(6)?)?)?);
    let (w_scale, y_zero) = (floats(&call.input(4)?)?, one(integers(&call.input(7)?)?)?);
    let bias = call.optional_input(8)?.map(|bias| integers(&bias)).transpose()?;
    let outputs = layer.groups * layer.rows;
    ensure!(
        (w_scale.len() == 1 || w_scale.len() == outputs)
            && bias.as_ref().is_none_or(|bias| bias.len() == outputs),
        invalid_argument,
        "expected one `w_scale` or {outputs} and {outputs} biases or none, found {} and {:?}",
        w_scale.len(),
        bias.map(|bias| bias.len())
    );
    let columns = layer.window.outputs();
    dispatch!(y.dtype(), integral, T => {
        // SAFETY: as above.
        let y = Parts::new(unsafe { y.elements_mut::<T>() }?);
        let finish: &Finish<'_, i32> = &|mut part| {
            let (item, columns_of_part) = (part.item, part.columns.clone());
            for (row, numbers) in part.each_row() {
                let output = item % layer.groups * layer.rows + row;
                let start = (item * layer.rows + row) * columns;
                // SAFETY: each element of the output is finished once, by one thread.
                let elements = unsafe { y.part(start + columns_of_part.start..start + columns_of_part.end) };
                let scale = x_scale * w_scale[output % w_scale.len()] / y_scale;
                let bias = bias.as_ref().map_or(0, |bias| bias[output]);
                for (element, number) in elements.iter_mut().zip(numbers) {
                    *element = T::requantised(number.wrapping_add(bias), scale, y_zero);
                }
            }
        };
        let zeros = (integers(&call.input(2)?)?, integers(&call.input(5)?)?);
        convolve(cpu, call, (way, &layer), (&x, &zeros.0), (&w, &zeros.1), None, Some(finish))
    })
}

/// The one value of an operand.
fn one<T: Copy>(values: Vec<T>) -> Result<T> {
    ensure!(
        values.len() == 1,
        invalid_argument,
        "expected a scale or zero point of one value, found {}",
        values.len()
    );
    Ok(values[0])
}

/// Convolves images and weights, each with its zero points: one, or for weights one for each output channel.
fn convolve(
    cpu: &Cpu,
    call: &Call<'_>,
    (way, layer): (&Way, &Layer),
    (x, x_zero): (&Tensor<'_>, &[i32]),
    (w, w_zero): (&Tensor<'_>, &[i32]),
    output: Option<&mut [i32]>,
    finish: Option<&Finish<'_, i32>>,
) -> Result<()> {
    let (outputs, depth) = (layer.groups * layer.rows, layer.depth());
    ensure!(
        x_zero.len() == 1 && (w_zero.len() == 1 || w_zero.len() == outputs),
        invalid_argument,
        "expected one zero point of images and one or {outputs} of weights, found {} and {}",
        x_zero.len(),
        w_zero.len()
    );
    if layer.sizes().items * layer.rows * layer.window.outputs() == 0 {
        return Ok(());
    }
    if let Some((sums, packed)) = &way.sums {
        // SAFETY: the device's memory is the host's, and the call vouches for its operands.
        let (x, w) = unsafe { (bytes(x)?, bytes(w)?) };
        let now;
        let weights = match packed {
            Some(packed) => &**packed,
            None => {
                now = sums.pack(cpu, w);
                &now
            }
        };
        let zeros = (x_zero, w_zero);
        return of_sums(cpu, layer, (sums, weights), (x, zeros), output, finish, &mut Scratch::of(call));
    }
    let x = widened(x, |_| x_zero[0])?;
    let w = widened(w, |index| w_zero[index / depth % w_zero.len()])?;
    let (left, right) = (layer.left(&w)?, layer.right(&x, cpu.isa())?);
    let (left, right) = (Side::Operand(&left), Side::Operand(&*right));
    let sizes = layer.sizes();
    Product { sizes, left, right, output, finish }.compute(cpu, &mut Scratch::of(call));
    Ok(())
}

/// Convolves images with their channels last, and turns what comes out.
fn of_sums(
    cpu: &Cpu,
    layer: &Layer,
    (sums, weights): (&Sums, &Panels),
    (x, (x_zero, w_zero)): (&[u8], (&[i32], &[i32])),
    output: Option<&mut [i32]>,
    finish: Option<&Finish<'_, i32>>,
    scratch: &mut Scratch<'_>,
) -> Result<()> {
    let (channels, outputs, pixels) =
        (layer.groups * layer.channels, layer.groups * layer.rows, layer.window.outputs());
    let mut images = vec![0; x.len()];
    let inputs = (x.len() / layer.images.max(1)).max(1);
    for (image, from) in images.chunks_exact_mut(inputs).zip(x.chunks_exact(inputs)) {
        turn(from, (channels, inputs / channels.max(1)), image);
    }
    let operands =
        Operands { images: &images, image_zeros: x_zero, weights, weight_zeros: w_zero, bias: None };
    let mut made = vec![0; layer.images * pixels * outputs];
    sums.compute(cpu, &operands, &mut made, None, scratch);
    let mut own = Vec::new();
    let y = match output {
        Some(y) => y,
        None => {
            own.resize(made.len(), 0);
            &mut own[..]
        }
    };
    for (image, from) in y.chunks_exact_mut(pixels * outputs).zip(made.chunks_exact(pixels * outputs)) {
        turn(from, (pixels, outputs), image);
    }
    let Some(finish) = finish else { return Ok(()) };
    for (item, part) in y.chunks_exact_mut(layer.rows * pixels).enumerate() {
        // SAFETY: the rows lie one after the other, and nobody else has them.
        finish(unsafe { Finished::new(item, 0..layer.rows, 0..pixels, part.as_mut_ptr(), pixels) });
    }
    Ok(())
}

/// Rows and columns that are turned at a time.
const BLOCK: usize = 32;

/// Makes columns of rows.
fn turn<T: Copy>(from: &[T], (rows, columns): (usize, usize), to: &mut [T]) {
    for (first_row, first_column) in
        (0..rows).step_by(BLOCK).flat_map(|row| (0..columns).step_by(BLOCK).map(move |column| (row, column)))
    {
        for column in first_column..columns.min(first_column + BLOCK) {
            for row in first_row..rows.min(first_row + BLOCK) {
                to[column * rows + row] = from[row * columns + column];
            }
        }
    }
}
