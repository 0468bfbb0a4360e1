//! `DeformConv`: a convolution that reads each pixel under its window at a place of its own.
//!
//! What the windows see is the right operand of a product of matrices. It is gathered while its panels are packed, with the
//! channels of a pixel side by side: a place between pixels and what these weigh are found once for all channels that share it.

use std::ops::Range;

use oarlock_sdk::{Call, Error, Kernel, Operand, OperandFlags, Result, dispatch, ensure};

use super::FLOATS;
use super::taps::{Beyond, Method, Taps};
use super::window::{MOST, Settings};
use crate::device::Cpu;
use crate::gemm::{
    Convert, Finish, Matrix, Number as Product, Operand as Factor, Scratch, Side, Sizes, Stored, add_bias,
    compute_stored,
};
use crate::isa::{Isa, Target, Vectorized};
use crate::kernels::movement::plane::{Plane, turn_each};
use crate::kernels::rows::axis::count;
use crate::kernels::rows::number::{Float, Number, Real};
use crate::kernels::rows::operands::{Operands, kernel};
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
    images: usize,
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
            images: images as usize,
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

    /// Input channels of a group.
    fn depth(&self) -> usize {
        self.channels / self.groups
    }

    /// The pixels around a place, and what each of them weighs. What lies beyond the edges is the pixel after the last, and
    /// weighs nothing.
    #[inline(always)]
    fn corners(&self, place: [f64; 2]) -> [(usize, f64); 4] {
        let along = |axis: usize| {
            let length = self.input[axis];
            Taps::new(place[axis], length, Method::Linear, Beyond::Zeros, (0.0, length as f64 - 1.0)).pair()
        };
        let (rows, columns) = (along(0), along(1));
        let corner = |row: usize, column: usize| match (rows[row], columns[column]) {
            ((Some(row), down), (Some(column), across)) => (row * self.input[1] + column, down * across),
            _ => (self.input[0] * self.input[1], 0.0),
        };
        [corner(0, 0), corner(0, 1), corner(1, 0), corner(1, 1)]
    }
}

/// The right operand: for each window what it sees, by step and then by channel.
struct Seen<'a, T: Real> {
    layer: &'a Layer,
    isa: Isa,
    /// Images with the channels of a pixel side by side.
    pixels: &'a [T::Float],
    /// A pixel of zeros.
    beyond: &'a [T::Float],
    offset: &'a [T],
    mask: Option<&'a [T]>,
}

impl<T: Real> Factor<T::Float> for Seen<'_, T>
where
    T::Float: Product,
{
    fn items(&self) -> usize {
        self.layer.images * self.layer.groups
    }

    fn pack(
        &self,
        item: usize,
        depth: Range<usize>,
        lanes: Range<usize>,
        width: usize,
        panel: &mut [T::Float],
    ) {
        if lanes.len() < width {
            panel.fill(T::Float::default());
        }
        let (rows, columns) = (depth.len(), lanes.len());
        let mut seen = vec![T::Float::default(); columns * rows];
        self.isa.vectorize(Gather { operand: self, item, depth, lanes, seen: &mut seen });
        Plane { input: &seen, stride: rows, out: panel, pitch: width, rows, columns }.turn(self.isa);
    }
}

/// Some windows of an item and some elements that they see: of a window one after the other.
struct Gather<'a, T: Real> {
    operand: &'a Seen<'a, T>,
    item: usize,
    depth: Range<usize>,
    lanes: Range<usize>,
    seen: &'a mut [T::Float],
}

impl<T: Real> Vectorized for Gather<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Target>(self) {
        let Self { operand: &Seen { layer, pixels, beyond, offset, mask, .. }, item, depth, lanes, seen } =
            self;
        let (image, group) = (item / layer.groups, item % layer.groups);
        let (channels, per_offset_group) = (layer.channels, layer.channels / layer.offset_groups);
        let (outputs, steps) = (layer.outputs(), layer.steps());
        let area = layer.input[0] * layer.input[1];
        let pixels = &pixels[image * area * channels..][..area * channels];
        // Where windows begin along an axis.
        let start = |axis: usize, index: usize| index as f64 * layer.strides[axis] - layer.pads[axis];
        let across = layer.output[1];
        let starts: Vec<_> =
            lanes.clone().map(|window| [start(0, window / across), start(1, window % across)]).collect();
        let mut begin = depth.start;
        while begin < depth.end {
            // Channels that are seen at the same step and share their offsets.
            let (step, within) = (begin / layer.depth(), begin % layer.depth());
            let channel = group * layer.depth() + within;
            let shared = per_offset_group - channel % per_offset_group;
            let count = shared.min(layer.depth() - within).min(depth.end - begin);
            let at = ((image * layer.offset_groups + channel / per_offset_group) * steps + step) * outputs;
            let within = [step / layer.kernel[1], step % layer.kernel[1]];
            let within = [0, 1].map(|axis| within[axis] as f64 * layer.dilations[axis]);
            let windows = lanes.clone().zip(&starts);
            for ((window, start), seen) in windows.zip(seen.chunks_exact_mut(depth.len())) {
                let [down, along] =
                    [2 * at + window, 2 * at + outputs + window].map(|at| offset[at].float().to_f64());
                let corners = layer.corners([start[0] + within[0] + down, start[1] + within[1] + along]);
                let from = |corner: usize| match pixels.get(corners[corner].0 * channels + channel..) {
                    Some([]) | None => &beyond[..count],
                    Some(pixel) => &pixel[..count],
                };
                let mask = mask.map(|mask| mask[at + window].float());
                let weight = |corner: usize| {
                    let weight = T::Float::of(corners[corner].1);
                    mask.map_or(weight, |mask| weight * mask)
                };
                let weights = [weight(0), weight(1), weight(2), weight(3)];
                let from = [from(0), from(1), from(2), from(3)];
                blend(&mut seen[begin - depth.start..][..count], from, weights);
            }
            begin += count;
        }
    }
}

/// Elements that are weighed together.
const BLOCK: usize = 8;

/// The sums of pixels times what they weigh, for as many channels as there is room for.
#[inline(always)]
fn blend<F: Float>(sums: &mut [F], pixels: [&[F]; 4], weights: [F; 4]) {
    let blend = |[first, second, third, fourth]: [F; 4]| {
        (first * weights[0] + second * weights[1]) + (third * weights[2] + fourth * weights[3])
    };
    let blocks = pixels.map(|pixels| pixels.as_chunks::<BLOCK>());
    let (sums, last_sums) = sums.as_chunks_mut::<BLOCK>();
    for (index, sums) in sums.iter_mut().enumerate() {
        let pixels = blocks.map(|(blocks, _)| &blocks[index]);
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum = blend(pixels.map(|pixels| pixels[lane]));
        }
    }
    for (index, sum) in last_sums.iter_mut().enumerate() {
        *sum = blend(blocks.map(|(_, last)| last[index]));
    }
}

fn convolve<T>(cpu: &Cpu, attributes: &Attributes, operands: &Operands<'_, '_>) -> Result<()>
where
    T: Real + Stored<Computed = <T as Number>::Float>,
    T::Float: Product + Convert<T::Float>,
{
    let layer = Layer::new(attributes, operands)?;
    let floats = |operand| Ok(T::floats(cpu.isa(), operands.read::<T>(operand)?));
    let (weights, x) = (floats(1)?, floats(0)?);
    let (bias, mask) = (operands.read_optional::<T>(3)?, operands.read_optional::<T>(4)?);
    let y = operands.write::<T>(0)?;
    if y.is_empty() {
        return Ok(());
    }
    let area = layer.input[0] * layer.input[1];
    ensure!(area > 0, invalid_argument, "expected images with pixels, found {:?}", layer.input);
    let (steps, depth) = (layer.steps(), layer.depth() * layer.steps());
    let mut pixels = filled(T::Float::default(), x.len())?;
    turn_each(cpu, &x, &mut pixels, area, layer.channels);
    let mut turned = filled(T::Float::default(), weights.len())?;
    turn_each(cpu, &weights, &mut turned, steps, layer.depth());
    let beyond = filled(T::Float::default(), layer.channels)?;
    let offset = operands.read::<T>(2)?;
    let offsets = (0..layer.groups).map(|group| group * layer.rows * depth).collect();
    let left = Matrix::new(&turned, offsets, (layer.rows, depth), (depth, 1))
        .ok_or_else(|| Error::out_of_range("expected weights as large as their shape says, found fewer"))?;
    let right = Seen { layer: &layer, isa: cpu.isa(), pixels: &pixels, beyond: &beyond, offset, mask };
    let items = layer.images * layer.groups;
    let sizes = Sizes { items, rows: layer.rows, columns: layer.outputs(), depth };
    let add_bias = bias.map(|bias| add_bias(bias, layer.groups));
    let finish = add_bias.as_ref().map(|add_bias| add_bias as &Finish<'_, T::Float>);
    let sides = (Side::Operand(&left), Side::Operand(&right));
    compute_stored(cpu, sizes, sides, y, finish, &mut Scratch::none());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::kernels::rows::checking::check;
    use crate::testing::{Array, Attribute};

    /// Numbers between -1 and 1.
    fn values(count: usize, factor: usize) -> Vec<f64> {
        (0..count).map(|at| (at * factor % 211) as f64 / 105.0 - 1.0).collect()
    }

    /// What lies at a place of a plane of 5 times 7 pixels.
    fn seen(plane: &[f64], [y, x]: [f64; 2]) -> f64 {
        let pixel = |row: f64, column: f64| {
            let is_inside = (0.0..5.0).contains(&row) && (0.0..7.0).contains(&column);
            let share = (1.0 - (y - row).abs()) * (1.0 - (x - column).abs());
            if is_inside { plane[row as usize * 7 + column as usize] * share } else { 0.0 }
        };
        let (row, column) = (y.floor(), x.floor());
        pixel(row, column)
            + pixel(row, column + 1.0)
            + pixel(row + 1.0, column)
            + pixel(row + 1.0, column + 1.0)
    }

    #[test]
    fn each_group_of_channels_is_seen_at_its_own_places() {
        let (images, channels, outputs, steps) = (2, 12, 6, 6);
        for (groups, offset_groups, has_mask) in [(1, 1, false), (2, 3, true), (3, 2, true), (1, 12, false)] {
            let depth = channels / groups;
            // Windows of 3 by 2 pixels with strides of 2 and 1, dilations of 1 and 3 and some padding.
            let (high, wide) = (3, 6);
            let area = high * wide;
            let x = values(images * channels * 35, 37);
            let w = values(outputs * depth * steps, 53);
            let mut offset = values(images * offset_groups * steps * 2 * area, 59);
            offset.iter_mut().for_each(|offset| *offset *= 3.0);
            let mask = values(images * offset_groups * steps * area, 61);
            let bias = values(outputs, 67);
            let mut y = vec![0.0; images * outputs * area];
            for (at, y) in y.iter_mut().enumerate() {
                let (image, output, window) = (at / area / outputs, at / area % outputs, at % area);
                *y = bias[output];
                for product in 0..depth * steps {
                    let (within, step) = (product / steps, product % steps);
                    let channel = output / (outputs / groups) * depth + within;
                    let group = image * offset_groups + channel / (channels / offset_groups);
                    let place = (group * steps + step) * area + window;
                    let moved = (group * steps + step) * 2 * area + window;
                    let down = (window / wide * 2 + step / 2) as f64 - 1.0 + offset[moved];
                    let along = (window % wide + step % 2 * 3) as f64 - 2.0 + offset[moved + area];
                    let plane = &x[(image * channels + channel) * 35..][..35];
                    let weight = if has_mask { mask[place] } else { 1.0 };
                    *y += seen(plane, [down, along]) * weight * w[(output * depth + within) * steps + step];
                }
            }
            let array = |dims: &[usize], values: &[f64]| {
                let dims: Vec<_> = dims.iter().map(|dim| *dim as i64).collect();
                Array::of(&dims, &values.iter().map(|value| *value as f32).collect::<Vec<_>>())
            };
            let inputs = [
                array(&[images, channels, 5, 7], &x),
                array(&[outputs, depth, 3, 2], &w),
                array(&[images, offset_groups * steps * 2, high, wide], &offset),
                array(&[outputs], &bias),
                array(&[images, offset_groups * steps, high, wide], &mask),
            ];
            let inputs: Vec<_> = inputs.iter().take(if has_mask { 5 } else { 4 }).map(Some).collect();
            let attributes = [
                ("group", Attribute::Int(groups as i64)),
                ("offset_group", Attribute::Int(offset_groups as i64)),
                ("strides", Attribute::Ints(&[2, 1])),
                ("dilations", Attribute::Ints(&[1, 3])),
                ("pads", Attribute::Ints(&[1, 2, 1, 0])),
            ];
            check("DeformConv", 19, &attributes, &inputs, &[array(&[images, outputs, high, wide], &y)]);
        }
    }

    #[test]
    fn what_lies_beyond_the_edges_or_at_no_place_is_zero() {
        let x = Array::of(&[1, 1, 2, 2], &[f32::INFINITY; 4]);
        let (w, y) = (Array::of(&[1, 1, 1, 1], &[1f32]), Array::of(&[1, 1, 2, 2], &[0f32; 4]));
        let offset = Array::of(&[1, 2, 2, 2], &[f32::NAN, 9., -9., 0., 0., f32::INFINITY, 0., -1e30]);
        check("DeformConv", 19, &[], &[Some(&x), Some(&w), Some(&offset)], &[y]);
    }
}
