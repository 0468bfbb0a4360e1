//! `ConvInteger` and `QLinearConv`: eight-bit images and weights with zero points, summed in 32 bits.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::sync::Arc;

use oarlock_sdk::{
    Call, DtypeSet, Kernel, KernelFlags, Operand, OperandFlags, Result, Tensor, dispatch, ensure,
};

use super::layer::Layer;
use super::window::Settings;
use crate::device::Cpu;
use crate::gemm::{Finish, Parts, Product, Scratch, Side};
use crate::kernels::matmul::quantised::{BYTES, Requantised, floats, integers, widened};

type Run = dyn Fn(&Cpu, &Call<'_>) -> Result<()> + Send + Sync;

pub(super) fn kernels() -> [Kernel<Cpu>; 2] {
    let byte = Operand::new(BYTES);
    let zero = byte.flags(OperandFlags::OPTIONAL);
    let images = byte.rank(3, u32::MAX);
    let integer = Kernel::prepared("ConvInteger", |_: &Cpu, call| prepare(call, conv_integer))
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
    let linear = Kernel::prepared("QLinearConv", |_: &Cpu, call| prepare(call, qlinear_conv))
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

fn prepare(call: &Call<'_>, run: fn(&Cpu, &Call<'_>, &Settings, i64) -> Result<()>) -> Result<Arc<Run>> {
    let (settings, groups) = (Settings::new(call)?, call.int("group")?.unwrap_or(1));
    Ok(Arc::new(move |cpu, call| run(cpu, call, &settings, groups)))
}

fn conv_integer(cpu: &Cpu, call: &Call<'_>, settings: &Settings, groups: i64) -> Result<()> {
    let (x, w, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let layer = Layer::new(settings, groups, x.dims(), w.dims(), y.dims())?;
    let zero = |index| call.optional_input(index)?.map_or(Ok(vec![0]), |zero| integers(&zero));
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let y = unsafe { y.elements_mut::<i32>() }?;
    convolve(cpu, call, &layer, (&x, &zero(2)?), (&w, &zero(3)?), Some(y), None)
}

fn qlinear_conv(cpu: &Cpu, call: &Call<'_>, settings: &Settings, groups: i64) -> Result<()> {
    let (x, w, y) = (call.input(0)?, call.input(3)?, call.output(0)?);
    let layer = Layer::new(settings, groups, x.dims(), w.dims(), y.dims())?;
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
        convolve(cpu, call, &layer, (&x, &zeros.0), (&w, &zeros.1), None, Some(finish))
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
    layer: &Layer,
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
    let x = widened(x, |_| x_zero[0])?;
    let w = widened(w, |index| w_zero[index / depth % w_zero.len()])?;
    let (left, right) = (layer.left(&w)?, layer.right(&x, cpu.isa())?);
    let (left, right) = (Side::Operand(&left), Side::Operand(&*right));
    let sizes = layer.sizes();
    Product { sizes, left, right, output, finish }.compute(cpu, &mut Scratch::of(call));
    Ok(())
}
