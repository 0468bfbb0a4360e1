//! `ConvTranspose`: a convolution whose windows lie over the output. Each element of the output is a sum over the windows it
//! lies under, so that no two threads write the same one.

#![expect(unsafe_code, reason = "operands are memory that the call vouches for")]

use std::ops::Range;
use std::sync::Arc;

use oarlock_sdk::{
    Call, Error, Kernel, KernelFlags, Operand as Demand, OperandFlags, Result, dispatch, ensure,
};

use super::plain::NUMBERS;
use super::window::{AutoPad, MOST, Settings, Window, coordinates};
use crate::device::Cpu;
use crate::gemm::{
    Convert, Finish, Matrix, Number, Operand, Packed, Scratch, Side, Sizes, Stored, compute_stored,
};

type Run = dyn Fn(&Cpu, &Call<'_>) -> Result<()> + Send + Sync;

pub(super) fn kernel() -> Kernel<Cpu> {
    let number = Demand::new(NUMBERS).group(1);
    Kernel::prepared("ConvTranspose", |cpu: &Cpu, call| {
        dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => prepare::<T>(cpu, call))
    })
    .flags(KernelFlags::DETERMINISTIC)
    .inputs([
        number.named("X").rank(3, u32::MAX),
        number.named("W").rank(3, u32::MAX),
        number.named("B").rank(1, 1).flags(OperandFlags::OPTIONAL),
    ])
    .outputs([number.named("Y").rank(3, u32::MAX)])
}

/// The attributes.
struct Attributes {
    window: Settings,
    groups: i64,
    output_padding: Option<Vec<i64>>,
    output_shape: Option<Vec<i64>>,
}

impl Attributes {
    fn new(call: &Call<'_>) -> Result<Self> {
        let list = |name| Ok::<_, Error>(call.ints(name)?.map(<[i64]>::to_vec));
        Ok(Self {
            window: Settings::new(call)?,
            groups: call.int("group")?.unwrap_or(1),
            output_padding: list("output_padding")?,
            output_shape: list("output_shape")?,
        })
    }

    fn layer(&self, call: &Call<'_>) -> Result<Layer> {
        let (x, w, y) = (call.input(0)?.dims(), call.input(1)?.dims(), call.output(0)?.dims());
        let unfit = || {
            Error::invalid_argument(format!(
                "expected images [N, C, …], weights [C, M / group, …] and an output [N, M, …] for {} groups, found {x:?}, \
                 {w:?} and {y:?}",
                self.groups
            ))
        };
        let (
            [images, channels, input @ ..],
            [w_channels, rows, kernel @ ..],
            [y_images, y_rows, output @ ..],
        ) = (x, w, y)
        else {
            return Err(unfit());
        };
        let fits = self.groups > 0
            && !input.is_empty()
            && images == y_images
            && channels == w_channels
            && channels % self.groups == 0
            && rows.checked_mul(self.groups) == Some(*y_rows)
            && [images, channels, y_rows, &self.groups].into_iter().all(|dim| (0..=MOST).contains(dim));
        if !fits {
            return Err(unfit());
        }
        let mut window = self.window.transposed_window(input, kernel, output)?;
        self.place(&mut window)?;
        Ok(Layer {
            images: *images as usize,
            groups: self.groups as usize,
            channels: (*channels / self.groups) as usize,
            rows: *rows as usize,
            window,
        })
    }

    /// Finds the padding and checks the size of the output.
    fn place(&self, window: &mut Window) -> Result<()> {
        let rank = window.axes.len();
        let fits = |list: &Option<Vec<i64>>| list.as_ref().is_none_or(|list| list.len() == rank);
        ensure!(
            fits(&self.output_padding) && fits(&self.output_shape),
            invalid_argument,
            "expected `output_padding` and `output_shape` of {rank} values, found {:?} and {:?}",
            self.output_padding,
            self.output_shape
        );
        for (index, axis) in window.axes.iter_mut().enumerate() {
            let extra = self.output_padding.as_ref().map_or(0, |list| list[index]);
            ensure!(
                (0..=MOST).contains(&extra),
                invalid_argument,
                "expected an output padding between 0 and {MOST}, found {extra}"
            );
            // The windows of the input, one for each of its elements, reach over the output and its padding.
            let whole = axis.stride * axis.output.saturating_sub(1) + axis.extent() + extra as usize;
            let auto_pad = self.window.auto_pad();
            let wanted = match &self.output_shape {
                Some(shape) => Some(shape[index]),
                None if matches!(auto_pad, AutoPad::SameUpper | AutoPad::SameLower) => {
                    Some((axis.output * axis.stride) as i64)
                }
                None => None,
            };
            let expected = if let Some(wanted) = wanted {
                let total = whole.saturating_sub(usize::try_from(wanted).unwrap_or(0));
                // Unlike in a convolution, the odd one is at the end only when that is asked for.
                let begin = if auto_pad == AutoPad::SameUpper { total / 2 } else { total - total / 2 };
                axis.pad = (begin, total - begin);
                wanted
            } else {
                whole as i64 - (axis.pad.0 + axis.pad.1) as i64
            };
            ensure!(
                expected.max(0) == axis.input as i64,
                invalid_argument,
                "expected an output of size {expected} for an input of {}, found {}",
                axis.output,
                axis.input
            );
        }
        Ok(())
    }
}

struct Layer {
    images: usize,
    groups: usize,
    /// Input and output channels of a group.
    channels: usize,
    rows: usize,
    /// The windows over the output, one for each element of the input.
    window: Window,
}

impl Layer {
    fn sizes(&self) -> Sizes {
        Sizes {
            items: self.images * self.groups,
            rows: self.rows,
            columns: self.window.inputs(),
            depth: self.channels * self.window.steps(),
        }
    }

    /// The weights with the output channel first.
    fn turned<E: Copy>(&self, weights: &[E]) -> Vec<E> {
        let steps = self.window.steps();
        let mut turned = Vec::with_capacity(weights.len());
        for group in 0..self.groups {
            for row in 0..self.rows {
                for channel in group * self.channels..(group + 1) * self.channels {
                    turned.extend_from_slice(&weights[(channel * self.rows + row) * steps..][..steps]);
                }
            }
        }
        turned
    }

    /// Lists which parts of which windows lie over a place of the output, which may be few of many parts, and few of many
    /// windows. The second list is room for the first one.
    fn cover(&self, places: &[usize], [covering, room]: &mut [Vec<(usize, usize)>; 2]) {
        covering.clear();
        covering.push((0, 0));
        for (axis, place) in self.window.axes.iter().zip(places) {
            let end = place + axis.pad.0 + 1;
            let first = end.saturating_sub(axis.extent()).div_ceil(axis.stride);
            let windows = first..axis.output.min(end.div_ceil(axis.stride));
            room.clear();
            for (part, source) in &*covering {
                let reaches = windows.clone().map(|window| (end - 1 - window * axis.stride, window));
                let fitting = reaches.filter(|(reach, _)| reach.is_multiple_of(axis.dilation));
                room.extend(fitting.map(|(reach, window)| {
                    (part * axis.kernel + reach / axis.dilation, source * axis.output + window)
                }));
            }
            std::mem::swap(covering, room);
        }
    }

    fn left<'a, E>(&self, turned: &'a [E]) -> Result<Matrix<'a, E>> {
        let Sizes { rows, depth, .. } = self.sizes();
        let offsets = (0..self.groups).map(|group| group * rows * depth).collect();
        let matrix = Matrix::new(turned, offsets, (rows, depth), (depth, 1));
        matrix.ok_or_else(|| Error::out_of_range("expected as many weights as their shape says, found fewer"))
    }
}

fn prepare<E: Stored>(cpu: &Cpu, call: &Call<'_>) -> Result<Arc<Run>> {
    let attributes = Attributes::new(call)?;
    let layer = attributes.layer(call)?;
    let w = call.input(1)?;
    let packed = if w.is_constant() && layer.rows > 0 {
        // SAFETY: the device's memory is the host's, and a constant is never written.
        let turned = layer.turned::<E>(unsafe { w.elements() }?);
        Some(Packed::left(cpu, &layer.left(&turned)?, layer.rows, layer.sizes().depth))
    } else {
        None
    };
    Ok(Arc::new(move |cpu, call| convolve::<E>(cpu, call, &attributes, packed.as_ref())))
}

fn convolve<E: Stored>(
    cpu: &Cpu,
    call: &Call<'_>,
    attributes: &Attributes,
    packed: Option<&Packed<E::Computed>>,
) -> Result<()> {
    let layer = attributes.layer(call)?;
    let outputs = layer.groups * layer.rows;
    // SAFETY: the device's memory is the host's, and the call vouches for its operands.
    let (x, w, y) = unsafe {
        (
            call.input(0)?.elements::<E>()?,
            call.input(1)?.elements::<E>()?,
            call.output(0)?.elements_mut::<E>()?,
        )
    };
    // SAFETY: as above.
    let bias = call.optional_input(2)?.map(|bias| unsafe { bias.elements::<E>() }).transpose()?;
    ensure!(
        bias.is_none_or(|bias| bias.len() == outputs),
        invalid_argument,
        "expected {outputs} biases, one for each output channel, found {}",
        bias.map_or(0, <[E]>::len)
    );
    if y.is_empty() {
        return Ok(());
    }
    let sizes = layer.sizes();
    let turned = if packed.is_some() { Vec::new() } else { layer.turned(w) };
    let matrix;
    let left = match packed.filter(|packed| (packed.lanes(), packed.depth()) == (sizes.rows, sizes.depth)) {
        Some(packed) => Side::Packed(packed),
        None => {
            matrix = layer.left(&turned)?;
            Side::Operand(&matrix)
        }
    };
    let right = Covering { elements: x, layer: &layer };
    let add_bias: &Finish<'_, E::Computed> = &|mut part| {
        let first = part.item % layer.groups * layer.rows;
        for (row, numbers) in part.each_row() {
            let Some(bias) = bias.map(|bias| bias[first + row].convert()) else { return };
            numbers.iter_mut().for_each(|number| *number = number.plus(bias));
        }
    };
    let finish = bias.is_some().then_some(add_bias);
    compute_stored(cpu, sizes, (left, Side::Operand(&right)), y, finish, &mut Scratch::of(call));
    Ok(())
}

/// The right operand: for each element of the output, the elements of the input whose windows it lies under, by channel and by
/// where in the window; zero where that is none.
struct Covering<'a, E> {
    elements: &'a [E],
    layer: &'a Layer,
}

impl<T: Number, E: Convert<T>> Operand<T> for Covering<'_, E> {
    fn items(&self) -> usize {
        self.layer.images * self.layer.groups
    }

    fn pack(&self, item: usize, depth: Range<usize>, lanes: Range<usize>, width: usize, panel: &mut [T]) {
        panel.fill(T::default());
        let axes = &self.layer.window.axes;
        let (steps, inputs) = (self.layer.window.steps(), self.layer.window.outputs());
        let mut places = vec![0; axes.len()];
        let mut covering = [Vec::new(), Vec::new()];
        for (lane, output) in lanes.enumerate() {
            coordinates(output, axes.iter().map(|axis| axis.input), &mut places);
            self.layer.cover(&places, &mut covering);
            for channel in depth.start / steps..depth.end.div_ceil(steps) {
                for (part, source) in &covering[0] {
                    let step = channel * steps + part;
                    if depth.contains(&step) {
                        let element = self.elements[(item * self.layer.channels + channel) * inputs + source];
                        panel[(step - depth.start) * width + lane] = element.convert();
                    }
                }
            }
        }
    }
}
