//! `MaxRoiPool`: the maximum of each cell of each region.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::FloatElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{Kernel, KernelCall, OperandSpec, PluginError, Result, dispatch};

use super::SPATIAL_FLOATS;

pub(super) fn max_roi_pool_kernels() -> Vec<Kernel<Cpu>> {
    let number = OperandSpec::new(SPATIAL_FLOATS).with_dtype_group(1);
    let kernel = operand_kernel("MaxRoiPool", MaxRoiPoolSettings::new, |cpu, settings, operands| {
        let dtype = operands.call().input(0)?.dtype();
        dispatch!(dtype, floating_and_half + bf16, T => pool_regions::<T>(cpu, settings, operands))
    });
    let (images, regions) = (number.with_name("X").with_rank(4, 4), number.with_name("rois").with_rank(2, 2));
    vec![kernel.with_inputs([images, regions]).with_outputs([number.with_name("Y").with_rank(4, 4)])]
}

struct MaxRoiPoolSettings {
    size: [i64; 2],
    scale: f64,
}

impl MaxRoiPoolSettings {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let size = call.ints_attribute("pooled_shape")?.unwrap_or_default();
        let &[height @ 1..=i64::MAX, width @ 1..=i64::MAX] = size else {
            return Err(PluginError::invalid_argument(format!(
                "expected `pooled_shape` of a height and a width, found {size:?}"
            )));
        };
        Ok(Self { size: [height, width], scale: call.float_attribute("spatial_scale")?.unwrap_or(1.0) })
    }

    /// The pixels of each cell along one axis, as half-open ranges.
    fn cell_ranges(&self, start: f64, end: f64, cells: i64, length: i64) -> Vec<(usize, usize)> {
        let (start, end) = ((start * self.scale).round(), (end * self.scale).round());
        // Both corners belong to the region, which has at least one pixel.
        let cell = (end - start + 1.0).max(1.0) / cells as f64;
        let pixel = |place: f64| (place + start).clamp(0.0, length as f64) as usize;
        (0..cells)
            .map(|index| (pixel((index as f64 * cell).floor()), pixel(((index + 1) as f64 * cell).ceil())))
            .collect()
    }
}

fn pool_regions<T: FloatElement>(
    cpu: &Cpu,
    settings: &MaxRoiPoolSettings,
    operands: &KernelOperands<'_, '_>,
) -> Result<()> {
    let call = operands.call();
    let (x, regions, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let &[images, channels, height, width] = x.dims() else {
        return Err(PluginError::invalid_argument(format!(
            "expected images of four dimensions, found {:?}",
            x.dims()
        )));
    };
    let [rows, columns] = settings.size;
    let known = regions.dims().first().copied().unwrap_or(0);
    operands.expect_dims(&regions, "rois", &[known, 5])?;
    operands.expect_dims(&y, "Y", &[known, channels, rows, columns])?;
    let (x, y) = (operands.read_input::<T>(0)?, operands.write_output::<T>(0)?);
    let regions: Vec<f64> =
        operands.read_input::<T>(1)?.iter().map(|corner| corner.to_float().to_f64()).collect();
    for region in regions.chunks(5) {
        // The index of the image is stored as a float before the corners. No range contains NaN.
        if !(0.0..images as f64).contains(&region[0]) {
            let found = region[0];
            return Err(PluginError::out_of_range(format!(
                "expected images from 0 to {images} (exclusive), found {found}"
            )));
        }
    }
    let (channels, size, area) =
        (channels as usize, element_count(&[height, width])?, element_count(&[rows, columns])?);
    let each = channels * area;
    parallel_for_parts(cpu, regions.len() / 5, grain_for(each * 16), OutputRows::new(y, each), |first, y| {
        for (region, y) in regions[first * 5..].chunks(5).zip(y.chunks_mut(each.max(1))) {
            let downs = settings.cell_ranges(region[2], region[4], rows, height);
            let acrosses = settings.cell_ranges(region[1], region[3], columns, width);
            let image = &x[region[0] as usize * channels * size..][..channels * size];
            for (channel, y) in y.chunks_mut(area).enumerate() {
                let channel = &image[channel * size..][..size];
                for (cell, y) in y.iter_mut().enumerate() {
                    let (top, bottom) = downs[cell / columns as usize];
                    let (left, right) = acrosses[cell % columns as usize];
                    let mut largest = None::<T::Float>;
                    for row in top..bottom {
                        // `min` guards against a reversed range, on which slicing would panic.
                        for pixel in &channel[row * width as usize..][left.min(right)..right] {
                            let pixel = pixel.to_float();
                            largest = Some(largest.map_or(pixel, |largest| largest.maximum(pixel)));
                        }
                    }
                    // A cell without pixels is 0.
                    *y = T::from_float(largest.unwrap_or_default());
                }
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn cells_give_their_largest_pixel_and_empty_ones_zero() {
        let image = TestArray::from_values(&[1, 1, 3, 3], &[1f32, 2., 3., 4., 5., 6., 7., 8., 9.]);
        let regions = TestArray::from_values(&[2, 5], &[0f32, 0., 0., 1., 2., 0., 7., 7., 9., f32::INFINITY]);
        let attributes = [("pooled_shape", TestAttribute::Ints(&[1, 2]))];
        let expected = TestArray::from_values(&[2, 1, 1, 2], &[7f32, 8., 0., 0.]);
        KERNELS.check_kernel("MaxRoiPool", 1, &attributes, &[Some(&image), Some(&regions)], &[expected]);
    }
}
