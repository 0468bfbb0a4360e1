//! `DeformConv`: a convolution that samples each element of its window at a separate offset.
//!
//! The sampled windows are the right operand of a matrix product. They are gathered while its panels are packed, from NHWC images:
//! the position and the weights of a sample are computed once for all channels that share them.

use std::ops::Range;

use oarlock_cpu_base::compute_element::{ComputeElement, ComputeFloat, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{BaselineTarget, Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::plane_transpose::{PlaneTranspose, transpose_planes};
use oarlock_cpu_base::rows::scratch::try_filled_vec;
use oarlock_cpu_gemm::{
    ConvertTo, GemmElement, GemmEpilogue, GemmOperand, GemmShape, PanelSource, ScratchBuffer, StoredElement,
    StridedMatrix, add_bias, compute_stored_gemm,
};
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{Kernel, KernelCall, OperandFlags, OperandSpec, PluginError, Result, dispatch, ensure};

use super::SPATIAL_FLOATS;
use super::block_settings::{BlockSettings, MAX_SIZE};
use super::taps::{AxisTaps, PaddingMode, SampleMethod};

pub(super) fn deform_conv_kernels() -> Vec<Kernel<Cpu>> {
    let image = OperandSpec::new(SPATIAL_FLOATS).with_dtype_group(1).with_rank(4, 4);
    let optional = OperandFlags::OPTIONAL;
    let kernel = operand_kernel("DeformConv", DeformConvAttributes::new, |cpu, attributes, operands| {
        let dtype = operands.call().input(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16, T => convolve::<T>(cpu, attributes, operands))
    });
    let inputs = [
        image.with_name("X"),
        image.with_name("W"),
        image.with_name("offset"),
        OperandSpec::new(SPATIAL_FLOATS)
            .with_dtype_group(1)
            .with_rank(1, 1)
            .with_name("B")
            .with_flags(optional),
        image.with_name("mask").with_flags(optional),
    ];
    vec![kernel.since_version(19).with_inputs(inputs).with_outputs([image.with_name("Y")])]
}

struct DeformConvAttributes {
    window: BlockSettings,
    groups: i64,
    offset_groups: i64,
}

impl DeformConvAttributes {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let groups = |name| match call.int_attribute(name)?.unwrap_or(1) {
            found @ 1..=MAX_SIZE => Ok(found),
            found => {
                Err(PluginError::invalid_argument(format!("expected `{name}` of at least 1, found {found}")))
            }
        };
        Ok(Self {
            window: BlockSettings::new(call)?,
            groups: groups("group")?,
            offset_groups: groups("offset_group")?,
        })
    }
}

/// The sizes on which the operands agree.
struct DeformConvLayer {
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

impl DeformConvLayer {
    fn new(attributes: &DeformConvAttributes, operands: &KernelOperands<'_, '_>) -> Result<Self> {
        let call = operands.call();
        let (x, w, offset, y) = (call.input(0)?, call.input(1)?, call.input(2)?, call.output(0)?);
        let (&[images, channels, height, width], &[rows, depth, high, wide], &[_, _, out_height, out_width]) =
            (x.dims(), w.dims(), y.dims())
        else {
            return Err(PluginError::invalid_argument(format!(
                "expected images and weights of four dimensions, found {:?} and {:?}",
                x.dims(),
                w.dims()
            )));
        };
        let all = [images, channels, height, width, rows, depth, high, wide, out_height, out_width];
        let &DeformConvAttributes { groups, offset_groups, .. } = attributes;
        ensure!(
            // Below this bound, the sums and products of sizes that follow cannot overflow.
            all.iter().all(|dim| (0..=MAX_SIZE).contains(dim))
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
        let [strides, dilations, pads] = attributes.window.for_axes(2)?;
        let fits = |axis: usize, input: i64, kernel: i64, output: i64| {
            let padded = input + pads[axis] + pads[axis + 2];
            let extent = (kernel - 1).saturating_mul(dilations[axis]).saturating_add(1);
            // If the window is larger than the padded image, the division below would round towards 0, to one output instead of
            // none.
            extent <= padded && output == (padded - extent) / strides[axis] + 1
        };
        ensure!(
            fits(0, height, high, out_height) && fits(1, width, wide, out_width),
            invalid_argument,
            "expected an output for windows of {high} times {wide} on images of {height} times {width}, found {:?}",
            y.dims()
        );
        let steps = element_count(&[high, wide, offset_groups])? as i64;
        // Two offsets for each window element, down and along.
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

    fn output_pixels(&self) -> usize {
        self.output[0] * self.output[1]
    }

    fn window_pixels(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    /// Input channels of a group.
    fn group_channels(&self) -> usize {
        self.channels / self.groups
    }

    /// The pixels around a position, and their weights. A pixel beyond the edges is given as the one after the last, with weight 0.
    #[inline(always)]
    fn bilinear_corners(&self, place: [f64; 2]) -> [(usize, f64); 4] {
        // Offsets may reach any position in the zero padding, so a position is not clamped to the image: it merely has no pixels
        // there.
        let along = |axis: usize| {
            let length = self.input[axis];
            AxisTaps::new(
                place[axis],
                length,
                SampleMethod::Linear,
                PaddingMode::Zeros,
                (0.0, length as f64 - 1.0),
            )
            .first_pair()
        };
        let (rows, columns) = (along(0), along(1));
        let corner = |row: usize, column: usize| match (rows[row], columns[column]) {
            ((Some(row), down), (Some(column), across)) => (row * self.input[1] + column, down * across),
            // An index past the image, for which the reader substitutes zeros.
            _ => (self.input[0] * self.input[1], 0.0),
        };
        [corner(0, 0), corner(0, 1), corner(1, 0), corner(1, 1)]
    }
}

/// The right operand: for each window, its samples by step and then by channel.
struct SampledWindows<'a, T: FloatElement> {
    layer: &'a DeformConvLayer,
    isa: Isa,
    /// The images in NHWC.
    pixels: &'a [T::Float],
    /// A pixel of zeros.
    beyond: &'a [T::Float],
    offset: &'a [T],
    mask: Option<&'a [T]>,
}

impl<T: FloatElement> PanelSource<T::Float> for SampledWindows<'_, T>
where
    T::Float: GemmElement,
{
    fn item_count(&self) -> usize {
        self.layer.images * self.layer.groups
    }

    fn pack_panel(
        &self,
        item: usize,
        depth: Range<usize>,
        lanes: Range<usize>,
        width: usize,
        panel: &mut [T::Float],
    ) {
        // The micro-kernel reads whole vectors, including lanes beyond the last window.
        if lanes.len() < width {
            panel.fill(T::Float::default());
        }
        let (rows, columns) = (depth.len(), lanes.len());
        // Windows are sampled one by one, so that a position is computed once for many channels, and then transposed, since a panel
        // is ordered by steps.
        let mut seen = vec![T::Float::default(); columns * rows];
        let sampling = SampleWindowsTask { operand: self, item, depth, lanes, seen: &mut seen };
        if const { T::Float::IS_COMMON } {
            self.isa.vectorize(sampling);
        } else {
            sampling.run_on_target::<BaselineTarget>();
        }
        PlaneTranspose { input: &seen, stride: rows, out: panel, pitch: width, rows, columns }
            .transpose_plane(self.isa);
    }
}

/// Samples a range of elements of some windows, window after window.
struct SampleWindowsTask<'a, T: FloatElement> {
    operand: &'a SampledWindows<'a, T>,
    item: usize,
    depth: Range<usize>,
    lanes: Range<usize>,
    seen: &'a mut [T::Float],
}

impl<T: FloatElement> SimdTask for SampleWindowsTask<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<I: SimdTarget>(self) {
        let Self {
            operand: &SampledWindows { layer, pixels, beyond, offset, mask, .. },
            item,
            depth,
            lanes,
            seen,
        } = self;
        // An item of the product is a group of an image.
        let (image, group) = (item / layer.groups, item % layer.groups);
        let (channels, per_offset_group) = (layer.channels, layer.channels / layer.offset_groups);
        let (outputs, steps) = (layer.output_pixels(), layer.window_pixels());
        let area = layer.input[0] * layer.input[1];
        let pixels = &pixels[image * area * channels..][..area * channels];
        // The first position of a window along an axis. In `f64`, since `f32` positions beyond 2²⁴ would lose their fraction.
        let start = |axis: usize, index: usize| index as f64 * layer.strides[axis] - layer.pads[axis];
        let across = layer.output[1];
        let starts: Vec<_> =
            lanes.clone().map(|window| [start(0, window / across), start(1, window % across)]).collect();
        let mut begin = depth.start;
        while begin < depth.end {
            // A run of channels of one window element that share their offsets.
            let (step, within) = (begin / layer.group_channels(), begin % layer.group_channels());
            let channel = group * layer.group_channels() + within;
            let shared = per_offset_group - channel % per_offset_group;
            // A run ends where the offsets change, the step changes, or the panel ends.
            let count = shared.min(layer.group_channels() - within).min(depth.end - begin);
            let at = ((image * layer.offset_groups + channel / per_offset_group) * steps + step) * outputs;
            let within = [step / layer.kernel[1], step % layer.kernel[1]];
            let within = [0, 1].map(|axis| within[axis] as f64 * layer.dilations[axis]);
            let windows = lanes.clone().zip(&starts);
            for ((window, start), seen) in windows.zip(seen.chunks_exact_mut(depth.len())) {
                let [down, along] =
                    [2 * at + window, 2 * at + outputs + window].map(|at| offset[at].to_float().to_f64());
                let corners =
                    layer.bilinear_corners([start[0] + within[0] + down, start[1] + within[1] + along]);
                let from = |corner: usize| match pixels.get(corners[corner].0 * channels + channel..) {
                    // `pixels` ends with this image, so past its last pixel there is nothing to read, even if another image
                    // follows.
                    Some([]) | None => &beyond[..count],
                    Some(pixel) => &pixel[..count],
                };
                let mask = mask.map(|mask| mask[at + window].to_float());
                let weight = |corner: usize| {
                    let weight = T::Float::from_f64(corners[corner].1);
                    // The mask scales the sample; multiplied into the four weights, it costs nothing per channel.
                    mask.map_or(weight, |mask| weight * mask)
                };
                let weights = [weight(0), weight(1), weight(2), weight(3)];
                let from = [from(0), from(1), from(2), from(3)];
                blend_pixels(&mut seen[begin - depth.start..][..count], from, weights);
            }
            begin += count;
        }
    }
}

/// Channels that are blended together: 8 `f32` are one ymm register.
const BLEND_BLOCK: usize = 8;

/// Weighted sums of four pixels, for as many channels as `sums` has room for.
#[inline(always)]
fn blend_pixels<F: ComputeFloat>(sums: &mut [F], pixels: [&[F]; 4], weights: [F; 4]) {
    let blend = |[first, second, third, fourth]: [F; 4]| {
        // Two independent sums: a shorter chain than one sum of four.
        (first * weights[0] + second * weights[1]) + (third * weights[2] + fourth * weights[3])
    };
    let blocks = pixels.map(|pixels| pixels.as_chunks::<BLEND_BLOCK>());
    let (sums, last_sums) = sums.as_chunks_mut::<BLEND_BLOCK>();
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

fn convolve<T>(cpu: &Cpu, attributes: &DeformConvAttributes, operands: &KernelOperands<'_, '_>) -> Result<()>
where
    T: FloatElement + StoredElement<ComputeType = <T as ComputeElement>::Float>,
    T::Float: GemmElement + ConvertTo<T::Float>,
{
    let layer = DeformConvLayer::new(attributes, operands)?;
    let floats = |operand| Ok(T::to_floats(cpu.isa(), operands.read_input::<T>(operand)?));
    let (weights, x) = (floats(1)?, floats(0)?);
    let (bias, mask) = (operands.read_optional_input::<T>(3)?, operands.read_optional_input::<T>(4)?);
    let y = operands.write_output::<T>(0)?;
    if y.is_empty() {
        return Ok(());
    }
    let area = layer.input[0] * layer.input[1];
    ensure!(area > 0, invalid_argument, "expected images with pixels, found {:?}", layer.input);
    let (steps, depth) = (layer.window_pixels(), layer.group_channels() * layer.window_pixels());
    let mut pixels = try_filled_vec(T::Float::default(), x.len())?;
    // Both operands change from channels first to channels last, so that the steps of a sum have the same order in both.
    transpose_planes(cpu, &x, &mut pixels, area, layer.channels);
    let mut transposed = try_filled_vec(T::Float::default(), weights.len())?;
    transpose_planes(cpu, &weights, &mut transposed, steps, layer.group_channels());
    let beyond = try_filled_vec(T::Float::default(), layer.channels)?;
    let offset = operands.read_input::<T>(2)?;
    let offsets = (0..layer.groups).map(|group| group * layer.rows * depth).collect();
    let left =
        StridedMatrix::new(&transposed, offsets, (layer.rows, depth), (depth, 1)).ok_or_else(|| {
            PluginError::out_of_range("expected weights as large as their shape says, found fewer")
        })?;
    let right =
        SampledWindows { layer: &layer, isa: cpu.isa(), pixels: &pixels, beyond: &beyond, offset, mask };
    let items = layer.images * layer.groups;
    let sizes = GemmShape { items, rows: layer.rows, columns: layer.output_pixels(), depth };
    let add_bias = bias.map(|bias| add_bias(bias, layer.groups));
    let epilogue = add_bias.as_ref().map(|add_bias| add_bias as &GemmEpilogue<'_, T::Float>);
    let sides = (GemmOperand::Operand(&left), GemmOperand::Operand(&right));
    compute_stored_gemm(cpu, sizes, sides, y, epilogue, &mut ScratchBuffer::without_workspace());
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    /// Numbers between -1 and 1.
    fn sample_values(count: usize, factor: usize) -> Vec<f64> {
        (0..count).map(|at| (at * factor % 211) as f64 / 105.0 - 1.0).collect()
    }

    /// The value at a position of a plane of 5 by 7 pixels.
    fn sample_plane(plane: &[f64], [y, x]: [f64; 2]) -> f64 {
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
            // Windows of 3 by 2 pixels, strides of 2 and 1, dilations of 1 and 3, and some padding.
            let (high, wide) = (3, 6);
            let area = high * wide;
            let x = sample_values(images * channels * 35, 37);
            let w = sample_values(outputs * depth * steps, 53);
            let mut offset = sample_values(images * offset_groups * steps * 2 * area, 59);
            offset.iter_mut().for_each(|offset| *offset *= 3.0);
            let mask = sample_values(images * offset_groups * steps * area, 61);
            let bias = sample_values(outputs, 67);
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
                    *y += sample_plane(plane, [down, along])
                        * weight
                        * w[(output * depth + within) * steps + step];
                }
            }
            let array = |dims: &[usize], values: &[f64]| {
                let dims: Vec<_> = dims.iter().map(|dim| *dim as i64).collect();
                TestArray::from_values(&dims, &values.iter().map(|value| *value as f32).collect::<Vec<_>>())
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
                ("group", TestAttribute::Int(groups as i64)),
                ("offset_group", TestAttribute::Int(offset_groups as i64)),
                ("strides", TestAttribute::Ints(&[2, 1])),
                ("dilations", TestAttribute::Ints(&[1, 3])),
                ("pads", TestAttribute::Ints(&[1, 2, 1, 0])),
            ];
            KERNELS.check_kernel(
                "DeformConv",
                19,
                &attributes,
                &inputs,
                &[array(&[images, outputs, high, wide], &y)],
            );
        }
    }

    #[test]
    fn what_lies_beyond_the_edges_or_at_no_place_is_zero() {
        let x = TestArray::from_values(&[1, 1, 2, 2], &[f32::INFINITY; 4]);
        let (w, y) = (
            TestArray::from_values(&[1, 1, 1, 1], &[1f32]),
            TestArray::from_values(&[1, 1, 2, 2], &[0f32; 4]),
        );
        let offset =
            TestArray::from_values(&[1, 2, 2, 2], &[f32::NAN, 9., -9., 0., 0., f32::INFINITY, 0., -1e30]);
        KERNELS.check_kernel("DeformConv", 19, &[], &[Some(&x), Some(&w), Some(&offset)], &[y]);
    }
}
