//! Sliding windows over the spatial dimensions of an image, for convolution and pooling.

use std::ops::Range;

use oarlock_sdk::{KernelCall, PluginError, Result, ensure};

/// The window attributes of an op, before they are resolved for a shape.
#[derive(Clone, Debug, Default)]
pub struct WindowAttributes {
    kernel: Option<Vec<usize>>,
    strides: Option<Vec<usize>>,
    dilations: Option<Vec<usize>>,
    pads: Option<Vec<usize>>,
    auto_pad: AutoPad,
    /// True if a last window that reaches past the input is kept (`ceil_mode`).
    ceil: bool,
}

/// How the padding is determined: the attribute `auto_pad`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AutoPad {
    /// The attribute `pads`.
    #[default]
    NotSet,
    /// Enough padding for an output size of ceil(input / stride). If the total is odd, the extra element is at the end.
    SameUpper,
    /// The same, with the extra element at the beginning.
    SameLower,
    /// No padding.
    Valid,
}

impl AutoPad {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        Ok(match call.string_attribute("auto_pad")? {
            None | Some("" | "NOTSET") => Self::NotSet,
            Some("SAME_UPPER") => Self::SameUpper,
            Some("SAME_LOWER") => Self::SameLower,
            Some("VALID") => Self::Valid,
            Some(other) => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `auto_pad` to be `NOTSET`, `SAME_UPPER`, `SAME_LOWER` or `VALID`, found `{other}`"
                )));
            }
        })
    }

    /// The part of the total padding that goes to the beginning.
    pub fn begin_padding(self, total: usize) -> usize {
        if self == Self::SameLower { total - total / 2 } else { total / 2 }
    }
}

/// The largest size or stride. The product of two such numbers still fits in a `usize`.
pub const MAX_SIZE: i64 = 1 << 30;

impl WindowAttributes {
    pub fn new(call: &KernelCall<'_>) -> Result<Self> {
        let list = |name: &str, least: i64| -> Result<Option<Vec<usize>>> {
            let Some(values) = call.ints_attribute(name)? else { return Ok(None) };
            ensure!(
                values.iter().all(|value| (least..=MAX_SIZE).contains(value)),
                invalid_argument,
                "expected `{name}` between {least} and {MAX_SIZE}, found {values:?}"
            );
            Ok(Some(values.iter().map(|value| *value as usize).collect()))
        };
        Ok(Self {
            kernel: list("kernel_shape", 1)?,
            strides: list("strides", 1)?,
            dilations: list("dilations", 1)?,
            pads: list("pads", 0)?,
            auto_pad: AutoPad::new(call)?,
            ceil: call.int_attribute("ceil_mode")?.unwrap_or(0) != 0,
        })
    }

    /// The windows of a kernel of these sizes over the spatial dimensions of an image.
    pub fn resolve_window(&self, input: &[i64], kernel: &[i64], output: &[i64]) -> Result<SlidingWindow> {
        let axes = self.resolve_axes(input, kernel, output)?;
        for axis in &axes {
            axis.check_axis(self.ceil)?;
        }
        SlidingWindow::new(axes)
    }

    /// The windows whose size is an attribute, as in pooling.
    pub fn pooling_window(&self, input: &[i64], output: &[i64]) -> Result<SlidingWindow> {
        let kernel = self.kernel.as_ref();
        let kernel = kernel.ok_or_else(|| {
            PluginError::invalid_argument("expected an attribute `kernel_shape`, found none")
        })?;
        let kernel: Vec<_> = kernel.iter().map(|size| *size as i64).collect();
        self.resolve_window(input, &kernel, output)
    }

    /// The windows of a transposed convolution. They slide over its output, so input and output are swapped.
    pub fn transposed_window(&self, input: &[i64], kernel: &[i64], output: &[i64]) -> Result<SlidingWindow> {
        SlidingWindow::new(self.resolve_axes(output, kernel, input)?)
    }

    fn resolve_axes(&self, input: &[i64], kernel: &[i64], output: &[i64]) -> Result<Vec<WindowAxis>> {
        let rank = input.len();
        let fits = |list: &Option<Vec<usize>>, count| list.as_ref().is_none_or(|list| list.len() == count);
        ensure!(
            rank == output.len()
                && rank == kernel.len()
                && fits(&self.kernel, rank)
                && fits(&self.strides, rank)
                && fits(&self.dilations, rank)
                && fits(&self.pads, 2 * rank),
            invalid_argument,
            "expected kernel, strides, dilations and pads for {rank} spatial dimensions, found {} of the kernel, {} of the \
             output and other attributes {self:?}",
            kernel.len(),
            output.len()
        );
        let size = |dim: i64, least: i64| {
            ensure!(
                (least..=MAX_SIZE).contains(&dim),
                out_of_range,
                "expected spatial dimensions between {least} and {MAX_SIZE}, found {dim}"
            );
            Ok(dim as usize)
        };
        let at = |list: &Option<Vec<usize>>, index: usize, default| {
            list.as_ref().map_or(default, |list| list[index])
        };
        (0..rank)
            .map(|index| {
                let mut axis = WindowAxis {
                    input: size(input[index], 0)?,
                    output: size(output[index], 0)?,
                    kernel: size(kernel[index], 1)?,
                    stride: at(&self.strides, index, 1),
                    dilation: at(&self.dilations, index, 1),
                    pad: (at(&self.pads, index, 0), at(&self.pads, rank + index, 0)),
                };
                ensure!(
                    self.kernel.is_none() || at(&self.kernel, index, 0) == axis.kernel,
                    invalid_argument,
                    "expected weights of the size of `kernel_shape`, {:?}, found {kernel:?}",
                    self.kernel
                );
                if self.auto_pad != AutoPad::NotSet {
                    let total = if self.auto_pad == AutoPad::Valid { 0 } else { axis.same_padding() };
                    let begin = self.auto_pad.begin_padding(total);
                    axis.pad = (begin, total - begin);
                }
                Ok(axis)
            })
            .collect()
    }

    /// How the attributes determine the padding.
    pub fn auto_pad(&self) -> AutoPad {
        self.auto_pad
    }
}

/// Windows along one dimension: step `k` of window `o` is at position `o * stride + k * dilation - pad.0`.
#[derive(Clone, Copy, Debug)]
pub struct WindowAxis {
    pub input: usize,
    pub output: usize,
    pub kernel: usize,
    pub stride: usize,
    pub dilation: usize,
    pub pad: (usize, usize),
}

impl WindowAxis {
    /// The number of positions that a window spans: from its first step to the end of its last.
    pub fn extent(&self) -> usize {
        (self.kernel - 1) * self.dilation + 1
    }

    fn same_padding(&self) -> usize {
        let output = self.input.div_ceil(self.stride);
        // If the stride is larger than the window, the last window may end before the input does; the difference saturates to 0.
        (output.saturating_sub(1) * self.stride + self.extent()).saturating_sub(self.input)
    }

    fn check_axis(&self, ceil: bool) -> Result<()> {
        let padded = self.input + self.pad.0 + self.pad.1;
        let Some(room) = padded.checked_sub(self.extent()) else {
            // With `ceil`, any window may reach past the end, even the first.
            let most = usize::from(ceil && self.extent() - padded < self.stride);
            ensure!(
                self.output <= most,
                invalid_argument,
                "expected windows of at most {padded} with padding, found {}",
                self.extent()
            );
            return Ok(());
        };
        let expected = if ceil { room.div_ceil(self.stride) } else { room / self.stride } + 1;
        // Versions of the op differ on whether windows that begin in the end padding count.
        let without_last = expected - usize::from((expected - 1) * self.stride >= self.input + self.pad.0);
        ensure!(
            self.output == expected || ceil && self.output == without_last,
            invalid_argument,
            "expected an output of size {expected} for windows over {}, found {}",
            self.input,
            self.output
        );
        Ok(())
    }

    /// The position of a window's step in the input; `None` if it is in the padding.
    #[inline(always)]
    pub fn input_position(&self, window: usize, step: usize) -> Option<usize> {
        let place = (window * self.stride + step * self.dilation).checked_sub(self.pad.0)?;
        (place < self.input).then_some(place)
    }

    /// The windows whose step `step` is inside the input.
    #[inline(always)]
    pub fn windows_with_step(&self, step: usize) -> Range<usize> {
        let shift = step * self.dilation;
        let begin = self.pad.0.saturating_sub(shift).div_ceil(self.stride).min(self.output);
        let end = (self.input + self.pad.0).saturating_sub(shift).div_ceil(self.stride).min(self.output);
        begin..end.max(begin)
    }

    /// The position of a window's step that is known to be in the input: [`Self::input_position`] without the check.
    #[inline(always)]
    pub fn first_position(&self, step: usize, window: usize) -> usize {
        window * self.stride + step * self.dilation - self.pad.0
    }
}

/// Windows over all spatial dimensions.
#[derive(Clone, Debug)]
pub struct SlidingWindow {
    pub axes: Vec<WindowAxis>,
}

impl SlidingWindow {
    fn new(axes: Vec<WindowAxis>) -> Result<Self> {
        let fits = |size: fn(&WindowAxis) -> usize, most: usize| {
            axes.iter()
                .try_fold(1usize, |product, axis| product.checked_mul(size(axis)).filter(|p| *p <= most))
                .is_some()
        };
        ensure!(
            fits(|axis| axis.kernel, MAX_SIZE as usize)
                && fits(|axis| axis.input, 1 << 40)
                && fits(|axis| axis.output, 1 << 40),
            out_of_range,
            "expected images and windows that fit into memory, found images of {:?}, windows of {:?} and results of {:?}",
            axes.iter().map(|axis| axis.input).collect::<Vec<_>>(),
            axes.iter().map(|axis| axis.kernel).collect::<Vec<_>>(),
            axes.iter().map(|axis| axis.output).collect::<Vec<_>>()
        );
        Ok(Self { axes })
    }

    /// The number of windows, which is the size of an output plane.
    pub fn output_count(&self) -> usize {
        self.axes.iter().map(|axis| axis.output).product()
    }

    /// The number of elements in a plane of the image.
    pub fn input_count(&self) -> usize {
        self.axes.iter().map(|axis| axis.input).product()
    }

    /// The number of steps of a window.
    pub fn step_count(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    /// True if each window is a single element, and the windows visit every element of the input once.
    pub fn is_pointwise(&self) -> bool {
        self.axes.iter().all(|axis| axis.kernel == 1 && axis.stride == 1 && axis.pad == (0, 0))
    }
}

/// Splits an index into indices along dimensions, the last one fastest.
pub fn unravel_index(mut index: usize, sizes: impl DoubleEndedIterator<Item = usize>, parts: &mut [usize]) {
    for (size, part) in sizes.rev().zip(parts.iter_mut().rev()) {
        *part = index % size;
        index /= size;
    }
}
