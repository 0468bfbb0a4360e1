//! The geometry of NHWC convolutions and poolings.

use oarlock_cpu_base::window::{MAX_SIZE, WindowAttributes, WindowAxis};
use oarlock_sdk::{PluginError, Result, ensure};

/// The maximum number of pixels of all images, so that element counts do not overflow.
const MAX_PIXELS: usize = 1 << 44;

/// The sizes of images with one or two spatial dimensions (with one, the first is 1), and the windows over them.
#[derive(Clone, Debug)]
pub struct NhwcGeometry {
    pub images: usize,
    /// Channels of the input and of the output, over all groups.
    pub channels: usize,
    pub outputs: usize,
    pub groups: usize,
    /// Down an image and along a row of it.
    pub vertical: WindowAxis,
    pub horizontal: WindowAxis,
}

impl NhwcGeometry {
    /// A convolution of `x` [N, …, C] with `w` [M, C / groups, …] into `y` [N, …, M].
    pub fn for_convolution(
        settings: &WindowAttributes,
        groups: i64,
        x: &[i64],
        w: &[i64],
        y: &[i64],
    ) -> Result<Self> {
        let unfit = || {
            PluginError::invalid_argument(format!(
                "expected images [N, …, C], weights [M, C / group, …] and an output [N, …, M] for {groups} groups, found {x:?}, \
                 {w:?} and {y:?}"
            ))
        };
        let (
            [images, input @ .., channels],
            [outputs, depth, kernel @ ..],
            [y_images, output @ .., y_outputs],
        ) = (x, w, y)
        else {
            return Err(unfit());
        };
        let fits = groups > 0
            && (images, outputs) == (y_images, y_outputs)
            && outputs % groups == 0
            && depth.checked_mul(groups) == Some(*channels)
            && [images, channels, outputs].into_iter().all(|dim| (0..=MAX_SIZE).contains(dim));
        if !fits {
            return Err(unfit());
        }
        let (images, channels) = (*images as usize, *channels as usize);
        let (vertical, horizontal) =
            spatial_axes(images, settings.resolve_window(input, kernel, output)?.axes)?;
        Ok(Self {
            images,
            channels,
            outputs: *outputs as usize,
            groups: groups as usize,
            vertical,
            horizontal,
        })
    }

    /// A matrix product as a convolution: pixels are the rows of the left operand, and channels are the steps of the sums.
    pub fn for_matmul(rows: usize, depth: usize, columns: usize) -> Self {
        let axis = |size: usize| WindowAxis {
            input: size,
            output: size,
            kernel: 1,
            stride: 1,
            dilation: 1,
            pad: (0, 0),
        };
        Self {
            images: 1,
            channels: depth,
            outputs: columns,
            groups: 1,
            vertical: axis(1),
            horizontal: axis(rows),
        }
    }

    /// A pooling of `x` [N, …, C] into `y` [N, …, C].
    pub fn for_pooling(settings: &WindowAttributes, x: &[i64], y: &[i64]) -> Result<Self> {
        let ([images, input @ .., channels], [y_images, output @ .., y_channels]) = (x, y) else {
            return Err(pooling_shape_error(x, y));
        };
        let sizes = usize::try_from(*images).ok().zip(usize::try_from(*channels).ok());
        let Some((images, channels)) = sizes.filter(|_| (images, channels) == (y_images, y_channels)) else {
            return Err(pooling_shape_error(x, y));
        };
        let (vertical, horizontal) = spatial_axes(images, settings.pooling_window(input, output)?.axes)?;
        // Each channel is pooled for itself, as in a depthwise convolution.
        Ok(Self { images, channels, outputs: channels, groups: channels, vertical, horizontal })
    }

    /// Input and output channels of a group.
    pub fn channels_per_group(&self) -> usize {
        self.channels / self.groups
    }

    pub fn outputs_per_group(&self) -> usize {
        self.outputs / self.groups
    }

    /// The number of output pixels in all images.
    pub fn output_pixels(&self) -> usize {
        self.images * self.vertical.output * self.horizontal.output
    }

    /// The number of elements of one channel under a window.
    pub fn tap_count(&self) -> usize {
        self.vertical.kernel * self.horizontal.kernel
    }

    /// True if each window is one pixel, and the windows visit every input pixel once.
    pub fn is_pointwise(&self) -> bool {
        [self.vertical, self.horizontal]
            .iter()
            .all(|axis| axis.kernel == 1 && axis.stride == 1 && axis.pad == (0, 0))
    }

    pub fn is_depthwise(&self) -> bool {
        // With a single channel, all but one lane of a vector of channels would be empty.
        self.groups == self.channels && self.groups == self.outputs && self.groups > 1
    }
}

/// Extends the axes to two; with one spatial dimension, the first has size 1.
pub fn spatial_axes(images: usize, mut axes: Vec<WindowAxis>) -> Result<(WindowAxis, WindowAxis)> {
    if axes.len() == 1 {
        axes.insert(0, WindowAxis { input: 1, output: 1, kernel: 1, stride: 1, dilation: 1, pad: (0, 0) });
    }
    ensure!(axes.len() == 2, unimplemented, "expected one or two spatial dimensions, found {}", axes.len());
    let (vertical, horizontal) = (axes[0], axes[1]);
    let fits = |size: usize| images.checked_mul(size).is_some_and(|all| all <= MAX_PIXELS);
    ensure!(
        // Sizes are limited so that the product of two fits.
        fits(vertical.output * horizontal.output) && fits(vertical.input * horizontal.input),
        out_of_range,
        "expected images that fit into memory, found {images} of {} by {}",
        vertical.input,
        horizontal.input
    );
    Ok((vertical, horizontal))
}

fn pooling_shape_error(x: &[i64], y: &[i64]) -> PluginError {
    PluginError::invalid_argument(format!(
        "expected images [N, …, C] and an output of as many dimensions, images and channels, found {x:?} and {y:?}"
    ))
}
