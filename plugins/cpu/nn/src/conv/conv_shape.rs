//! The sizes of an NCHW convolution.

use oarlock_cpu_base::isa::Isa;
use oarlock_cpu_base::window::{MAX_SIZE, SlidingWindow, WindowAttributes};
use oarlock_cpu_gemm::{ConvertTo, GemmElement, GemmShape, OperandForm, PanelSource, StridedMatrix};
use oarlock_sdk::{PluginError, Result, ensure};

use super::im2col::Im2colOperand;

/// The sizes of a convolution of images. Each group of channels has separate weights.
pub(super) struct ConvShape {
    pub(super) images: usize,
    pub(super) groups: usize,
    /// Input channels of a group.
    pub(super) channels: usize,
    /// Output channels of a group.
    pub(super) rows: usize,
    pub(super) window: SlidingWindow,
}

impl ConvShape {
    pub(super) fn new(
        settings: &WindowAttributes,
        groups: i64,
        x: &[i64],
        w: &[i64],
        y: &[i64],
    ) -> Result<Self> {
        let unfit = || {
            PluginError::invalid_argument(format!(
                "expected images [N, C, …], weights [M, C / group, …] and an output [N, M, …] for {groups} groups, found \
                 {x:?}, {w:?} and {y:?}"
            ))
        };
        let ([images, channels, input @ ..], [rows, depth, kernel @ ..], [y_images, y_rows, output @ ..]) =
            (x, w, y)
        else {
            return Err(unfit());
        };
        ensure!(
            !input.is_empty(),
            invalid_argument,
            "expected at least one spatial dimension, found shape {x:?}"
        );
        let fits = groups > 0
            && images == y_images
            && rows == y_rows
            && rows % groups == 0
            && depth.checked_mul(groups) == Some(*channels)
            // Up to this bound, products of two sizes fit into 64 bits.
            && [images, channels, rows, &groups].into_iter().all(|dim| (0..=MAX_SIZE).contains(dim));
        if !fits {
            return Err(unfit());
        }
        Ok(Self {
            images: *images as usize,
            groups: groups as usize,
            channels: *depth as usize,
            rows: (*rows / groups) as usize,
            window: settings.resolve_window(input, kernel, output)?,
        })
    }

    /// The number of elements under a window, over all channels of a group.
    pub(super) fn depth(&self) -> usize {
        self.channels * self.window.step_count()
    }

    /// The matrix products that compute the convolution.
    pub(super) fn gemm_shape(&self) -> GemmShape {
        GemmShape {
            items: self.images * self.groups,
            rows: self.rows,
            columns: self.window.output_count(),
            depth: self.depth(),
        }
    }

    /// True if a group has too few outputs for a matrix product to pay.
    pub(super) fn is_direct(&self) -> bool {
        // Packing reads and writes each input once per window element. With fewer than three outputs, that costs about as much as
        // the products.
        self.rows < 3
    }

    /// The weights as left operands, one per group.
    pub(super) fn weights_operand<'a, E>(&self, weights: &'a [E]) -> Result<StridedMatrix<'a, E>> {
        let depth = self.depth();
        let offsets = (0..self.groups).map(|group| group * self.rows * depth).collect();
        StridedMatrix::new(weights, offsets, (self.rows, depth), (depth, 1)).ok_or_else(operand_size_error)
    }

    /// The images as right operands: in place if a window is one element, otherwise as im2col.
    pub(super) fn images_operand<'a, T: GemmElement, E: ConvertTo<T>>(
        &'a self,
        images: &'a [E],
        isa: Isa,
    ) -> Result<Box<dyn PanelSource<T> + 'a>> {
        let items = self.images * self.groups;
        // For a 1×1 window without padding and stride, the image already is the matrix.
        if self.window.is_pointwise() {
            let columns = self.window.output_count();
            let offsets = (0..items).map(|item| item * self.channels * columns).collect();
            let matrix = StridedMatrix::new(images, offsets, (columns, 1), (self.channels, columns));
            return Ok(Box::new(matrix.ok_or_else(operand_size_error)?));
        }
        let patches = Im2colOperand::new(images, &self.window, items, self.channels, isa);
        Ok(Box::new(patches.ok_or_else(operand_size_error)?))
    }

    /// The form of the images as an operand. `as_stored` is true if elements need no conversion.
    pub(super) fn images_form(&self, as_stored: bool) -> OperandForm {
        let items = self.images * self.groups;
        if as_stored && self.window.is_pointwise() {
            // The pixels of a channel are adjacent, as the columns of a right panel must be.
            OperandForm::InPlace { items, side_by_side: true }
        } else {
            OperandForm::Anew { items }
        }
    }
}

fn operand_size_error() -> PluginError {
    PluginError::out_of_range("expected operands as large as their shapes say, found smaller ones")
}
