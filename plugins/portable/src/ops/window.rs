//! Windows of convolutions and pools: their attributes, and the output shape they imply.

use oarlock_sdk::{KernelCall, PluginError, Result, ensure};

/// One work-item loops over a whole window, and a larger window would occupy the device for too long.
// It is also the last number up to which `f32` holds every integer, and a mean divides by such a count.
const MAX_WINDOW_ELEMENTS: i64 = 1 << 24;

/// Positions in an image are computed in 32 bits if its size allows that, so windows and pads must not reach much beyond it.
const MAX_WINDOW_REACH: i64 = 1 << 30;

/// A 2-D window; every pair is height, then width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ImageWindow {
    size: [i64; 2],
    strides: [i64; 2],
    dilations: [i64; 2],
    pads_before: [i64; 2],
    pads_after: [i64; 2],
}

impl ImageWindow {
    /// A window over the whole image, for global pools.
    pub(super) fn covering_image(size: [i64; 2]) -> Self {
        Self { size, strides: [1, 1], dilations: [1, 1], pads_before: [0, 0], pads_after: [0, 0] }
    }

    /// Reads the attributes of a call on a 1-D or 2-D image. For convolutions the weights give the size.
    pub(super) fn new(
        call: &KernelCall<'_>,
        image: [i64; 2],
        weights: Option<[i64; 2]>,
        rank: usize,
    ) -> Result<Self> {
        let list = |name: &str, length: usize| -> Result<Option<Vec<i64>>> {
            let Some(list) = call.ints_attribute(name)? else { return Ok(None) };
            ensure!(
                list.len() == length,
                invalid_argument,
                "expected {length} numbers as `{name}`, found {list:?}"
            );
            Ok(Some(list.to_vec()))
        };
        let pair = |list: Option<Vec<i64>>, default: i64| match list.as_deref() {
            Some([height, width]) => [*height, *width],
            Some([width]) => [default, *width],
            _ => [default; 2],
        };
        let size = match (weights, list("kernel_shape", rank)?) {
            // The weights decide, since the kernel reads them by their own shape.
            (Some(size), _) => size,
            (None, Some(size)) => pair(Some(size), 1),
            (None, None) => {
                return Err(PluginError::invalid_argument("expected a `kernel_shape`, found none"));
            }
        };
        let pads = list("pads", 2 * rank)?.unwrap_or_else(|| vec![0; 2 * rank]);
        let mut window = Self {
            size,
            strides: pair(list("strides", rank)?, 1),
            dilations: pair(list("dilations", rank)?, 1),
            pads_before: pair(Some(pads[..rank].to_vec()), 0),
            pads_after: pair(Some(pads[rank..].to_vec()), 0),
        };
        let positive = [window.size, window.strides, window.dilations].concat();
        // Below 2³¹ each, so the products below fit into 64 bits.
        let small = |number: &i64| (0..=i64::from(i32::MAX)).contains(number);
        ensure!(
            positive.iter().all(|number| *number > 0 && small(number)) && pads.iter().all(small),
            invalid_argument,
            "expected windows, strides and dilations above 0 and pads of 0 and more, found {window:?}"
        );
        let [height, width] = window.size;
        ensure!(
            height * width <= MAX_WINDOW_ELEMENTS,
            unimplemented,
            "expected a window of at most {MAX_WINDOW_ELEMENTS} elements, found {height} by {width}"
        );
        window.apply_auto_pad(call.string_attribute("auto_pad")?.unwrap_or("NOTSET"), image)?;
        // Only now, since `auto_pad` sets the pads.
        let reach = |axis| window.dilated_extent(axis) + window.pads_before[axis] + window.pads_after[axis];
        ensure!(
            (0..2).all(|axis| reach(axis) <= MAX_WINDOW_REACH),
            unimplemented,
            "expected windows that with their pads reach over {MAX_WINDOW_REACH} elements at most, found {window:?}"
        );
        Ok(window)
    }

    fn apply_auto_pad(&mut self, mode: &str, image: [i64; 2]) -> Result<()> {
        match mode {
            "NOTSET" => {}
            "VALID" => (self.pads_before, self.pads_after) = ([0, 0], [0, 0]),
            "SAME_UPPER" | "SAME_LOWER" => {
                for (axis, size) in image.into_iter().enumerate() {
                    let out = (size + self.strides[axis] - 1) / self.strides[axis];
                    let needed = (out - 1) * self.strides[axis] + self.dilated_extent(axis);
                    let sum = (needed - size).max(0);
                    let (less, more) = (sum / 2, sum - sum / 2);
                    let upper = mode == "SAME_UPPER";
                    self.pads_before[axis] = if upper { less } else { more };
                    self.pads_after[axis] = if upper { more } else { less };
                }
            }
            _ => {
                return Err(PluginError::invalid_argument(format!(
                    "expected the `auto_pad` NOTSET, VALID, SAME_UPPER or SAME_LOWER, found {mode}"
                )));
            }
        }
        Ok(())
    }

    /// Extent of the window in the image, dilation included.
    fn dilated_extent(&self, axis: usize) -> i64 {
        (self.size[axis] - 1) * self.dilations[axis] + 1
    }

    /// Output shape. With rounding up, versions of the op disagree about a window that would start in the padding, so `found` may
    /// also be one less.
    pub(super) fn output_shape(&self, image: [i64; 2], found: [i64; 2], rounds_up: bool) -> Result<[i64; 2]> {
        let mut out = [0; 2];
        for axis in 0..2 {
            // A negative room must be refused, because the division rounds it towards 0 and would find one position.
            let room =
                image[axis] + self.pads_before[axis] + self.pads_after[axis] - self.dilated_extent(axis);
            ensure!(
                room >= 0,
                invalid_argument,
                "expected a window that fits into {image:?} and its padding, found {self:?}"
            );
            let stride = self.strides[axis];
            let most = if rounds_up { (room + stride - 1) / stride + 1 } else { room / stride + 1 };
            out[axis] = if rounds_up && found[axis] == most - 1 { found[axis] } else { most };
        }
        Ok(out)
    }

    /// The parameters in the order of the struct in kernel sources.
    pub(super) fn kernel_parameters(&self) -> Vec<i64> {
        // The pads behind the image are missing: the output shape has taken them into account.
        [self.size, self.strides, self.dilations, self.pads_before].concat()
    }

    /// End of the image, padding included, along each dimension.
    pub(super) fn padded_ends(&self, image: [i64; 2]) -> [i64; 2] {
        [image[0] + self.pads_after[0], image[1] + self.pads_after[1]]
    }
}
