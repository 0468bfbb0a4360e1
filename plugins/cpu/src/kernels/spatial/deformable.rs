//! `DeformConv`: a convolution that reads each pixel under its window at a place of its own.
//!
//! What the windows see is gathered into a matrix, so that the rest is a product of matrices.

use oarlock_sdk::{Call, Error, Kernel, Operand, OperandFlags, Result, dispatch, ensure};

use super::FLOATS;
use super::taps::{Beyond, Method, Taps};
use super::window::{MOST, Settings};
use crate::device::Cpu;
use crate::gemm::{Convert, Matrix, Number as Product, Product as Products, Scratch, Side, Sizes};
use crate::kernels::rows::axis::count;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Float, Number, Real};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};
use crate::kernels::rows::room::filled;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let image = Operand::new(FLOATS).group(1).rank(4, 4);
    let optional = OperandFlags::OPTIONAL;
    let kernel = kernel("DeformConv", Attributes::new, |cpu, attributes, operands| {
        let dtype = operands.call().input(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16, T => convolve::<T>(cpu, attributes, operands))
    });
    let inputs = [
        image.named("X"),
        image.named("W"),
        image.named("offset"),
        Operand::new(FLOATS).group(1).rank(1, 1).named("B").flags(optional),
        image.named("mask").flags(optional),
    ];
    vec![kernel.since(19).inputs(inputs).outputs([image.named("Y")])]
}

struct Attributes {
    window: Settings,
    groups: i64,
    offset_groups: i64,
}

impl Attributes {
    fn new(call: &Call<'_>) -> Result<Self> {
        let groups = |name| match call.int(name)?.unwrap_or(1) {
            found @ 1..=MOST => Ok(found),
            found => Err(Error::invalid_argument(format!("expected `{name}` of at least 1, found {found}"))),
        };
        Ok(Self {
            window: Settings::new(call)?,
            groups: groups("group")?,
            offset_groups: groups("offset_group")?,
        })
    }
}

/// The sizes that operands have to agree on.
struct Layer {
    channels: usize,
    /// Height and width of images, windows and outputs.
    input: [usize; 2],
    kernel: [usize; 2],
    output: [usize; 2],
    strides: [f64; 2],
    dilations: [f64; 2],
    pads: [f64; 2],
    /// Output channels of a group.
    rows: usize,
    groups: usize,
    offset_groups: usize,
}

impl Layer {
    fn new(attributes: &Attributes, operands: &Operands<'_, '_>) -> Result<Self> {
        let call = operands.call();
        let (x, w, offset, y) = (call.input(0)?, call.input(1)?, call.input(2)?, call.output(0)?);
        let (&[images, channels, height, width], &[rows, depth, high, wide], &[_, _, out_height, out_width]) =
            (x.dims(), w.dims(), y.dims())
        else {
            return Err(Error::invalid_argument(format!(
                "expected images and weights of four dimensions, found {:?} and {:?}",
                x.dims(),
                w.dims()
            )));
        };
        let all = [images, channels, height, width, rows, depth, high, wide, out_height, out_width];
        let &Attributes { groups, offset_groups, .. } = attributes;
        ensure!(
            all.iter().all(|dim| (0..=MOST).contains(dim))
                && depth.checked_mul(groups) == Some(channels)
                && rows % groups == 0
                && channels % offset_groups == 0
                && high > 0
                && wide > 0,
            invalid_argument,
            "expected weights [M, C / group, …] for images [N, C, …] in {groups} groups with {offset_groups} groups of \
             offsets, found {:?} and {:?}",
            w.dims(),
            x.dims()
        );
        let [strides, dilations, pads] = attributes.window.of_axes(2)?;
        let fits = |axis: usize, input: i64, kernel: i64, output: i64| {
            let padded = input + pads[axis] + pads[axis + 2];
            let extent = (kernel - 1).saturating_mul(dilations[axis]).saturating_add(1);
            extent <= padded && output == (padded - extent) / strides[axis] + 1
        };
        ensure!(
            fits(0, height, high, out_height) && fits(1, width, wide, out_width),
            invalid_argument,
            "expected an output for windows of {high} times {wide} on images of {height} times {width}, found {:?}",
            y.dims()
        );
        let steps = count(&[high, wide, offset_groups])? as i64;
        operands.expect_dims(&offset, "offset", &[images, steps.saturating_mul(2), out_height, out_width])?;
        operands.expect_dims(&y, "Y", &[images, rows, out_height, out_width])?;
        if let Some(mask) = call.optional_input(4)? {
            operands.expect_dims(&mask, "mask", &[images, steps, out_height, out_width])?;
        }
        if let Some(bias) = call.optional_input(3)? {
            operands.expect_dims(&bias, "B", &[rows])?;
        }
        Ok(Self {
            channels: channels as usize,
            input: [height as usize, width as usize],
            kernel: [high as usize, wide as usize],
            output: [out_height as usize, out_width as usize],
            strides: [strides[0] as f64, strides[1] as f64],
            dilations: [dilations[0] as f64, dilations[1] as f64],
            pads: [pads[0] as f64, pads[1] as f64],
            rows: (rows / groups) as usize,
            groups: groups as usize,
            offset_groups: offset_groups as usize,
        })
    }

    fn outputs(&self) -> usize {
        self.output[0] * self.output[1]
    }

    fn steps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Gathers what the windows see of one channel at one step, for all outputs.
    fn gather<T: Number>(
        &self,
        x: &[T],
        offsets: [&[T]; 2],
        mask: Option<&[T]>,
        step: usize,
        out: &mut [T::Float],
    ) {
        let [height, width] = self.input;
        let within = [step / self.kernel[1], step % self.kernel[1]];
        for (index, out) in out.iter_mut().enumerate() {
            let place = [index / self.output[1], index % self.output[1]];
            let along = |axis: usize| {
                let regular =
                    place[axis] as f64 * self.strides[axis] + within[axis] as f64 * self.dilations[axis];
                let place = regular - self.pads[axis] + offsets[axis][index].float().to_f64();
                let last = self.input[axis] as f64 - 1.0;
                Taps::new(place, [height, width][axis], Method::Linear, Beyond::Zeros, (0.0, last))
            };
            let across = along(1);
            let mut sum = T::Float::default();
            for (row, down) in along(0).iter() {
                for (column, across) in across.iter() {
                    if let (Some(row), Some(column)) = (row, column) {
                        sum = sum + x[row * width + column].float() * T::Float::of(down * across);
                    }
                }
            }
            *out = mask.map_or(sum, |mask| sum * mask[index].float());
        }
    }
}

fn convolve<T: Real>(cpu: &Cpu, attributes: &Attributes, operands: &Operands<'_, '_>) -> Result<()>
where
    T::Float: Product + Convert<T::Float>,
{
    let layer = Layer::new(attributes, operands)?;
    let (outputs, steps) = (layer.outputs(), layer.steps());
    let weights = T::floats(operands.read::<T>(1)?);
    let (x, offset) = (operands.read::<T>(0)?, operands.read::<T>(2)?);
    let (bias, mask) = (operands.read_optional::<T>(3)?, operands.read_optional::<T>(4)?);
    let y = operands.write::<T>(0)?;
    if y.is_empty() {
        return Ok(());
    }
    ensure!(
        layer.input[0] > 0 && layer.input[1] > 0,
        invalid_argument,
        "expected images with pixels, found {:?}",
        layer.input
    );
    let depth = layer.channels / layer.groups * steps;
    let image_size = layer.channels * layer.input[0] * layer.input[1];
    let per_offset_group = layer.channels / layer.offset_groups;
    let mut columns = filled(T::Float::default(), (layer.channels * steps).saturating_mul(outputs))?;
    let mut product = filled(T::Float::default(), layer.groups * layer.rows * outputs)?;
    for (image, y) in y.chunks_mut(product.len()).enumerate() {
        let x = &x[image * image_size..][..image_size];
        let rows = Rows::new(&mut columns, outputs);
        in_parallel(cpu, layer.channels * steps, grain(outputs * 4), rows, |first, rows| {
            for (index, out) in rows.chunks_mut(outputs).enumerate() {
                let (channel, step) = ((first + index) / steps, (first + index) % steps);
                let group = image * layer.offset_groups + channel / per_offset_group;
                let at = (group * steps + step) * outputs;
                let offsets = [&offset[2 * at..][..outputs], &offset[2 * at + outputs..][..outputs]];
                let mask = mask.map(|mask| &mask[at..][..outputs]);
                let area = layer.input[0] * layer.input[1];
                layer.gather(&x[channel * area..][..area], offsets, mask, step, out);
            }
        });
        let offsets = |size: usize| (0..layer.groups).map(|group| group * size).collect();
        let left = Matrix::new(&weights, offsets(layer.rows * depth), (layer.rows, depth), (depth, 1));
        let right = Matrix::new(&columns, offsets(depth * outputs), (outputs, 1), (depth, outputs));
        let (Some(left), Some(right)) = (left, right) else {
            return Err(Error::out_of_range("expected weights as large as their shape says, found fewer"));
        };
        let sizes = Sizes { items: layer.groups, rows: layer.rows, columns: outputs, depth };
        let (left, right) = (Side::Operand(&left), Side::Operand(&right));
        Products { sizes, left, right, output: Some(&mut product), finish: None }
            .compute(cpu, &mut Scratch::none());
        for (row, (y, product)) in y.chunks_mut(outputs).zip(product.chunks(outputs)).enumerate() {
            let bias = bias.map_or(T::Float::default(), |bias| bias[row].float());
            y.iter_mut().zip(product).for_each(|(y, value)| *y = T::of_float(*value + bias));
        }
    }
    Ok(())
}
