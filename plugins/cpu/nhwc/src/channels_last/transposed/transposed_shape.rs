//! The sizes of a transposed convolution.

use oarlock_cpu_base::window::WindowAxis;

/// The sizes of a transposed convolution. The windows of its axes slide over the output.
#[derive(Clone, Debug)]
pub(crate) struct NhwcTransposedShape {
    pub(crate) images: usize,
    /// Channels of the input and of the output, over all groups.
    pub(crate) channels: usize,
    pub(crate) outputs: usize,
    pub(crate) groups: usize,
    /// Down an image and along a row of it.
    pub(crate) vertical: WindowAxis,
    pub(crate) horizontal: WindowAxis,
}

impl NhwcTransposedShape {
    pub(super) fn depth(&self) -> usize {
        self.channels / self.groups
    }

    pub(super) fn outputs_per_group(&self) -> usize {
        self.outputs / self.groups
    }

    /// Everything that packed weights depend on besides the weights and the instruction set.
    pub(super) fn weights_key(&self) -> [usize; 9] {
        let Self { groups, vertical, horizontal, .. } = self;
        let of_group = [self.depth(), self.outputs_per_group(), *groups];
        let [a, b, c] = of_group;
        [
            a,
            b,
            c,
            vertical.kernel,
            vertical.stride,
            vertical.dilation,
            horizontal.kernel,
            horizontal.stride,
            horizontal.dilation,
        ]
    }
}
