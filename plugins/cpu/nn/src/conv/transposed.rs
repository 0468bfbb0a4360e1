//! `ConvTranspose`: a convolution whose windows slide over the output. A matrix product computes the elements of all windows, and
//! col2im adds those of overlapping windows.

use oarlock_cpu_base::compute_element::{ComputeElement, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_cpu_base::window::{AutoPad, MAX_SIZE, SlidingWindow, WindowAttributes};
use oarlock_cpu_gemm::{
    BatchedGemm, ConvertTo, GemmElement, GemmOperand, GemmShape, ScratchBuffer, StoredElement, StridedMatrix,
};
use oarlock_sdk::{
    Kernel, KernelCall, KernelFlags, OperandFlags, OperandSpec, PluginError, Result, dispatch, ensure,
};

use super::col2im::Col2ImFold;
use super::float_conv::CONV_DTYPES;

/// The approximate number of window elements between the product and col2im: 1 MiB of f32, so that they are still in cache when
/// they are added.
const ELEMENTS_AT_ONCE: usize = 1 << 18;

pub(super) fn conv_transpose_kernel() -> Kernel<Cpu> {
    let number = OperandSpec::new(CONV_DTYPES).with_dtype_group(1);
    operand_kernel("ConvTranspose", ConvTransposeAttributes::new, |cpu, attributes, operands| {
        let dtype = operands.call().output(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16, T => run_conv_transpose::<T>(cpu, attributes, operands))
    })
    .with_workspace(|_, call| {
        // The workspace contains numbers of the compute type, which is wider than 16-bit elements.
        let layer = ConvTransposeAttributes::new(call)?.resolve_shape(call)?;
        let size = dispatch!(call.output(0)?.dtype(), floating_and_half + bf16, T => {
            Ok::<_, PluginError>(size_of::<<T as StoredElement>::ComputeType>())
        })?;
        // Up to 64 bytes are lost to aligning the scratch memory to a cache line.
        Ok((layer.columns_at_once(layer.items_at_once()) * size + 64) as u64)
    })
    .with_flags(KernelFlags::DETERMINISTIC)
    .with_inputs([
        number.with_name("X").with_rank(3, u32::MAX),
        number.with_name("W").with_rank(3, u32::MAX),
        number.with_name("B").with_rank(1, 1).with_flags(OperandFlags::OPTIONAL),
    ])
    .with_outputs([number.with_name("Y").with_rank(3, u32::MAX)])
}

struct ConvTransposeAttributes {
    window: WindowAttributes,
    groups: i64,
    output_padding: Option<Vec<i64>>,
    output_shape: Option<Vec<i64>>,
}

impl ConvTransposeAttributes {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let list = |name| Ok::<_, PluginError>(call.ints_attribute(name)?.map(<[i64]>::to_vec));
        Ok(Self {
            window: WindowAttributes::new(call)?,
            groups: call.int_attribute("group")?.unwrap_or(1),
            output_padding: list("output_padding")?,
            output_shape: list("output_shape")?,
        })
    }

    fn resolve_shape(&self, call: &KernelCall<'_>) -> Result<ConvTransposeShape> {
        let (x, w, y) = (call.input(0)?.dims(), call.input(1)?.dims(), call.output(0)?.dims());
        let unfit = || {
            PluginError::invalid_argument(format!(
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
            && [images, channels, y_rows, &self.groups].into_iter().all(|dim| (0..=MAX_SIZE).contains(dim));
        if !fits {
            return Err(unfit());
        }
        // The window slides over the output, so input and output are swapped: from here on, `axis.input` is the size of the output.
        let mut window = self.window.transposed_window(input, kernel, output)?;
        self.resolve_padding(&mut window)?;
        Ok(ConvTransposeShape {
            images: *images as usize,
            groups: self.groups as usize,
            channels: (*channels / self.groups) as usize,
            rows: *rows as usize,
            window,
        })
    }

    /// Resolves the padding and checks the size of the output.
    fn resolve_padding(&self, window: &mut SlidingWindow) -> Result<()> {
        let rank = window.axes.len();
        let stated = self.output_shape.as_deref().filter(|shape| !shape.is_empty());
        // Some exporters include batch and channels.
        let fits = self.output_padding.as_ref().is_none_or(|list| list.len() == rank)
            && stated.is_none_or(|shape| [rank, rank + 2].contains(&shape.len()));
        ensure!(
            fits,
            invalid_argument,
            "expected `output_padding` and `output_shape` of {rank} values, found {:?} and {:?}",
            self.output_padding,
            self.output_shape
        );
        let stated = stated.map(|shape| &shape[shape.len() - rank..]);
        for (index, axis) in window.axes.iter_mut().enumerate() {
            let extra = self.output_padding.as_ref().map_or(0, |list| list[index]);
            ensure!(
                (0..=MAX_SIZE).contains(&extra),
                invalid_argument,
                "expected an output padding between 0 and {MAX_SIZE}, found {extra}"
            );
            // The windows, one per input element, reach over the output and its padding.
            let span = (axis.stride * axis.output + axis.extent() + extra as usize) as i64;
            let whole = span - axis.stride as i64;
            let auto_pad = self.window.auto_pad();
            let wanted = match stated {
                Some(shape) => Some(shape[index]),
                None if matches!(auto_pad, AutoPad::SameUpper | AutoPad::SameLower) => {
                    Some((axis.output * axis.stride) as i64)
                }
                None => None,
            };
            let expected = if let Some(wanted) = wanted {
                let total = (whole - wanted.max(0)).max(0) as usize;
                // Unlike in a convolution, an odd pad is at the end only if that is requested.
                let begin = if auto_pad == AutoPad::SameUpper { total / 2 } else { total - total / 2 };
                axis.pad = (begin, total - begin);
                wanted
            } else {
                whole - (axis.pad.0 + axis.pad.1) as i64
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

struct ConvTransposeShape {
    images: usize,
    groups: usize,
    /// The input and output channels of a group.
    channels: usize,
    rows: usize,
    /// The windows over the output, one per input element.
    window: SlidingWindow,
}

fn run_conv_transpose<E>(
    cpu: &Cpu,
    attributes: &ConvTransposeAttributes,
    operands: &KernelOperands<'_, '_>,
) -> Result<()>
where
    E: FloatElement + StoredElement<ComputeType = <E as ComputeElement>::Float>,
    E::Float: GemmElement,
{
    let layer = attributes.resolve_shape(operands.call())?;
    let outputs = layer.groups * layer.rows;
    let (x, w, bias) =
        (operands.read_input::<E>(0)?, operands.read_input::<E>(1)?, operands.read_optional_input::<E>(2)?);
    let y = operands.write_output::<E>(0)?;
    ensure!(
        bias.is_none_or(|bias| bias.len() == outputs),
        invalid_argument,
        "expected {outputs} biases, one for each output channel, found {}",
        bias.map_or(0, <[E]>::len)
    );
    if y.is_empty() {
        return Ok(());
    }
    let plane = layer.window.input_count();
    let items = layer.items_at_once();
    let mut scratch = ScratchBuffer::from_call(operands.call());
    let columns = scratch.allocate_elements::<E::Float>(layer.columns_at_once(items));
    for (index, y) in y.chunks_mut(items * layer.rows * plane).enumerate() {
        let first = index * items;
        let mut result = Ok(());
        // Narrow outputs are accumulated in `f32` and rounded once, after all windows were added.
        E::write_floats(cpu.isa(), y, |y| {
            for (row, y) in y.chunks_mut(plane).enumerate() {
                let output = (first * layer.rows + row) % outputs;
                // Sums start at the bias, because windows are added to the existing values.
                y.fill(bias.map_or(E::Float::default(), |bias| bias[output].convert()));
            }
            result = layer.add_windows(cpu, first, (x, w), columns, y);
        });
        result?;
    }
    Ok(())
}

impl ConvTransposeShape {
    /// The number of window elements of an item, which is one group of one image.
    fn windows_per_item(&self) -> usize {
        (self.rows * self.window.step_count()).saturating_mul(self.window.output_count())
    }

    fn items_at_once(&self) -> usize {
        // Small items are multiplied together, since a separate product for each would be mostly overhead.
        (ELEMENTS_AT_ONCE / self.windows_per_item().max(1)).min(self.images * self.groups).max(1)
    }

    /// The number of window elements in memory at a time.
    fn columns_at_once(&self, items: usize) -> usize {
        let windows = self.window.output_count();
        if [self.images, self.channels, self.rows].contains(&0) {
            return 0;
        }
        // At least one row of windows, even if that exceeds the limit.
        (items * self.windows_per_item()).min((ELEMENTS_AT_ONCE / windows.max(1)).max(1) * windows)
    }

    /// Adds the window elements of some items to the output, which has one plane per row.
    fn add_windows<E, T>(
        &self,
        cpu: &Cpu,
        first: usize,
        (x, w): (&[E], &[E]),
        columns: &mut [T],
        y: &mut [T],
    ) -> Result<()>
    where
        E: ConvertTo<T>,
        T: GemmElement,
    {
        let (steps, windows, plane) =
            (self.window.step_count(), self.window.output_count(), self.window.input_count());
        if columns.is_empty() {
            return Ok(());
        }
        let (lanes, items) = (self.rows * steps, y.len() / plane / self.rows);
        // Items share the buffer equally. A lane is one window element of one output channel.
        let lanes_at_once = lanes.min(columns.len() / windows / items);
        for begin in (0..lanes).step_by(lanes_at_once) {
            let some = begin..lanes.min(begin + lanes_at_once);
            let columns = &mut columns[..items * some.len() * windows];
            // The weights repeat for each image.
            let groups = (first..first + items).map(|item| item % self.groups);
            let offsets = groups.map(|group| group * self.channels * lanes + begin).collect();
            // Weights are stored with the input channels first, so the left operand is a transposed view and nothing is copied.
            let left = StridedMatrix::new(w, offsets, (some.len(), 1), (self.channels, lanes));
            let offsets = (first..first + items).map(|item| item * self.channels * windows).collect();
            let right = StridedMatrix::new(x, offsets, (windows, 1), (self.channels, windows));
            let (Some(left), Some(right)) = (left, right) else {
                return Err(PluginError::out_of_range(
                    "expected operands as large as their shapes say, found smaller ones",
                ));
            };
            let sizes = GemmShape { items, rows: some.len(), columns: windows, depth: self.channels };
            let (left, right) = (GemmOperand::Operand(&left), GemmOperand::Operand(&right));
            BatchedGemm { sizes, left, right, output: Some(columns), epilogue: None }
                .compute(cpu, &mut ScratchBuffer::without_workspace());
            let columns = &*columns;
            // Several items always have all rows; a single item may start and end within a row.
            let planes = begin / steps..(items - 1) * self.rows + some.end.div_ceil(steps);
            let y = OutputRows::new(&mut y[planes.start * plane..planes.end * plane], plane);
            parallel_for_parts(cpu, planes.len(), grain_for(steps * windows), y, |first, y| {
                for (index, image) in y.chunks_mut(plane).enumerate() {
                    let row = planes.start + first + index;
                    // The block of lanes may begin in the middle of a row's steps.
                    let start = begin.max(row * steps);
                    let end = ((row + 1) * steps).min(begin + columns.len() / windows);
                    let columns = &columns[(start - begin) * windows..(end - begin) * windows];
                    let steps = start - row * steps..end - row * steps;
                    Col2ImFold { axes: &self.window.axes, steps, columns, image }.add_to_image(cpu.isa());
                }
            });
        }
        Ok(())
    }
}
