//! `RoiAlign`: resamples regions of images to the same size.

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::{ComputeFloat, FloatElement};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result, dispatch, ensure};

use super::SPATIAL_FLOATS;

/// The maximum number of samples of a cell along an axis. A larger `sampling_ratio` is refused; an adaptive number is clamped,
/// since a region so large that it needs more lies mostly outside the image.
const MAX_CELL_SAMPLES: i64 = 4096;

pub(super) fn roi_align_kernels() -> Vec<Kernel<Cpu>> {
    let number = OperandSpec::new(SPATIAL_FLOATS).with_dtype_group(1);
    let row = |is_old: bool| {
        operand_kernel(
            "RoiAlign",
            move |call| RoiAlignSettings::new(call, is_old),
            |cpu, settings, operands| {
                let dtype = operands.call().input(0)?.dtype();
                dispatch!(dtype, floating_and_half + bf16, T => align_regions::<T>(cpu, settings, operands))
            },
        )
        .with_inputs([
            number.with_name("X").with_rank(4, 4),
            number.with_name("rois").with_rank(2, 2),
            OperandSpec::new(DtypeSet::I64).with_name("batch_indices").with_rank(1, 1),
        ])
        .with_outputs([number.with_name("Y").with_rank(4, 4)])
    };
    // Opset 16 changed the default of `coordinate_transformation_mode`, so there are two kernels.
    vec![row(true).since_version(10).until_version(15), row(false).since_version(16)]
}

struct RoiAlignSettings {
    takes_maximum: bool,
    /// The distance from the corner of a pixel to its center, if coordinates are those of centers.
    shift: f64,
    size: [i64; 2],
    /// Samples of a cell along each axis; with 0, as many as the cell has pixels.
    samples: f64,
    scale: f64,
}

impl RoiAlignSettings {
    fn new(call: &KernelCall<'_>, is_old: bool) -> Result<Self> {
        let takes_maximum = match call.string_attribute("mode")?.unwrap_or("avg") {
            "avg" => false,
            "max" => true,
            other => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `mode` to be `avg` or `max`, found `{other}`"
                )));
            }
        };
        let default = if is_old { "output_half_pixel" } else { "half_pixel" };
        let shift = match call.string_attribute("coordinate_transformation_mode")?.unwrap_or(default) {
            "half_pixel" => 0.5,
            "output_half_pixel" => 0.0,
            other => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `coordinate_transformation_mode` to be `half_pixel` or `output_half_pixel`, found `{other}`"
                )));
            }
        };
        let at_least =
            |name: &str, default: i64, least: i64| match call.int_attribute(name)?.unwrap_or(default) {
                found if found >= least => Ok(found),
                found => Err(PluginError::invalid_argument(format!(
                    "expected `{name}` of at least {least}, found {found}"
                ))),
            };
        let samples = at_least("sampling_ratio", 0, 0)?;
        ensure!(
            samples <= MAX_CELL_SAMPLES,
            unimplemented,
            "expected `sampling_ratio` of at most {MAX_CELL_SAMPLES}, found {samples}"
        );
        Ok(Self {
            takes_maximum,
            shift,
            size: [at_least("output_height", 1, 1)?, at_least("output_width", 1, 1)?],
            samples: samples as f64,
            scale: call.float_attribute("spatial_scale")?.unwrap_or(1.0),
        })
    }
}

struct RegionSpan {
    start: f64,
    cell: f64,
    samples: usize,
}

impl RoiAlignSettings {
    /// The span of a region along one axis. It is computed in the type of the operands, on whose rounding the number of samples may
    /// depend.
    fn region_span<F: ComputeFloat>(&self, start: F, end: F, cells: i64) -> RegionSpan {
        let (scale, shift) = (F::from_f64(self.scale), F::from_f64(self.shift));
        let start = start * scale - shift;
        // `start` already includes the shift, so it cancels: the region keeps its size and only moves by half a pixel.
        let mut length = end * scale - shift - start;
        if self.shift == 0.0 {
            // Without half-pixel centers, ONNX enlarges small regions to at least one pixel.
            length = F::ONE.max_ignoring_nan(length);
        }
        // Divided in the type of the operands: through `ceil` below, the last bit can change the number of samples by one.
        let cell = (length / F::from_f64(cells as f64)).to_f64();
        let samples = if self.samples > 0.0 { self.samples } else { cell.ceil() };
        RegionSpan {
            start: start.to_f64(),
            cell,
            // A region of negative length has no samples, and its output is 0.
            samples: samples.clamp(0.0, MAX_CELL_SAMPLES as f64) as usize,
        }
    }
}

impl RegionSpan {
    /// The samples of each cell: two neighboring pixels and their weights, or `None` outside the image.
    fn cell_samples(&self, cells: i64, length: usize) -> Vec<Option<[(usize, f64); 2]>> {
        let sample = |index: usize| {
            let (cell, sample) = (index / self.samples, index % self.samples);
            let place = self.start
                + cell as f64 * self.cell
                + (sample as f64 + 0.5) * self.cell / self.samples as f64;
            // NaN counts as outside, too.
            if !(-1.0..=length as f64).contains(&place) {
                return None;
            }
            // Up to one pixel outside the image, a sample has the value of the border.
            let place = place.max(0.0);
            let (low, last) = (place as usize, length - 1);
            if low >= last {
                // Two pixels even here, so that the loops over samples need no branch.
                return Some([(last, 1.0), (last, 0.0)]);
            }
            let part = place - low as f64;
            Some([(low, 1.0 - part), (low + 1, part)])
        };
        (0..cells as usize * self.samples).map(sample).collect()
    }
}

fn align_regions<T: FloatElement>(
    cpu: &Cpu,
    settings: &RoiAlignSettings,
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
    operands.expect_dims(&regions, "rois", &[known, 4])?;
    operands.expect_dims(&call.input(2)?, "batch_indices", &[known])?;
    operands.expect_dims(&y, "Y", &[known, channels, rows, columns])?;
    // Indices are data, so no shape check covers them; an unchecked index would be out of bounds.
    let images_of = operands.read_input::<i64>(2)?;
    if let Some(wrong) = images_of.iter().find(|image| !(0..images).contains(*image)) {
        return Err(PluginError::out_of_range(format!(
            "expected `batch_indices` from 0 to {images} (exclusive), found {wrong}"
        )));
    }
    let (x, regions, y) =
        (operands.read_input::<T>(0)?, operands.read_input::<T>(1)?, operands.write_output::<T>(0)?);
    if y.is_empty() {
        return Ok(());
    }
    ensure!(
        height > 0 && width > 0,
        invalid_argument,
        "expected images with pixels, found {height} times {width}"
    );
    let (channels, size) = (channels as usize, element_count(&[height, width])?);
    let area = element_count(&[rows, columns])?;
    parallel_for_parts(
        cpu,
        images_of.len(),
        // The number of samples depends on the region; 16 is a guess of the number of pixels read per element.
        grain_for(channels * area * 16),
        OutputRows::new(y, channels * area),
        |first, y| {
            for (index, y) in y.chunks_mut(channels * area).enumerate() {
                let region = first + index;
                // The corners of a region are x1, y1, x2, y2.
                let corners: Vec<T::Float> =
                    regions[region * 4..][..4].iter().map(|corner| corner.to_float()).collect();
                let down = settings.region_span(corners[1], corners[3], rows);
                let across = settings.region_span(corners[0], corners[2], columns);
                let (downs, acrosses) =
                    (down.cell_samples(rows, height as usize), across.cell_samples(columns, width as usize));
                let image = &x[images_of[region] as usize * channels * size..][..channels * size];
                // All channels share the samples of a cell.
                for cell in 0..area {
                    let (row, column) = (cell / columns as usize, cell % columns as usize);
                    let downs = &downs[row * down.samples..][..down.samples];
                    let acrosses = &acrosses[column * across.samples..][..across.samples];
                    let mut totals = vec![None; channels];
                    settings.add_samples(&mut totals, image, width as usize, downs, acrosses);
                    // The mean is over all samples, including those outside the image, which count as 0.
                    let samples = T::Float::from_f64((downs.len() * acrosses.len()) as f64);
                    for (y, total) in y[cell..].iter_mut().step_by(area).zip(totals) {
                        *y = T::from_float(match total {
                            Some(total) if settings.takes_maximum => total,
                            // `None` is a cell without any sample, whose mean would be 0/0.
                            Some(total) => total / samples,
                            None => T::Float::default(),
                        });
                    }
                }
            }
        },
    );
    Ok(())
}

/// The maximum number of pixels that are listed before all channels read them.
const MAX_LISTED_PIXELS: usize = 4096;

/// Channels that are read together: their sums are independent chains, which hide the latency of an addition.
const CHANNEL_BLOCK: usize = 8;

/// The samples of a cell along one axis.
type CellSamples = [Option<[(usize, f64); 2]>];

/// The weight of each pixel in the sum of some samples. A sample outside the image is 0.
fn pixel_weights(samples: &CellSamples) -> Vec<(usize, f64)> {
    let mut weights: Vec<(usize, f64)> = Vec::with_capacity(samples.len() + 1);
    for (pixel, weight) in samples.iter().flatten().flatten() {
        // Samples are in ascending or descending order, so a pixel that is already listed is among the last.
        match weights.iter_mut().rev().take(3).find(|(known, _)| known == pixel) {
            Some((_, sum)) => *sum += weight,
            None => weights.push((*pixel, *weight)),
        }
    }
    weights
}

impl RoiAlignSettings {
    /// Adds the samples of a cell to the result of each channel: their sum or their maximum.
    fn add_samples<T: FloatElement>(
        &self,
        totals: &mut [Option<T::Float>],
        image: &[T],
        width: usize,
        downs: &CellSamples,
        acrosses: &CellSamples,
    ) {
        if !self.takes_maximum {
            // A sum over products of weights factors into a product of sums, so each pixel is read once, however many samples use
            // it. A maximum does not factor.
            let (downs, acrosses) = (pixel_weights(downs), pixel_weights(acrosses));
            self.add_products(
                totals,
                image,
                width,
                downs.iter().map(|down| (std::slice::from_ref(down), &acrosses[..])),
            );
            return;
        }
        let is_outside = |samples: &CellSamples| samples.iter().any(Option::is_none);
        if is_outside(downs) && !acrosses.is_empty() || is_outside(acrosses) && !downs.is_empty() {
            // A sample outside the image is 0 and takes part in the maximum.
            totals.fill(Some(T::Float::default()));
        }
        let inside = downs
            .iter()
            .flatten()
            .flat_map(|down| acrosses.iter().flatten().map(move |across| (&down[..], &across[..])));
        self.add_products(totals, image, width, inside);
    }

    /// Adds pixels, weighted by the product of their weights down and across.
    fn add_products<'a, T: FloatElement>(
        &self,
        totals: &mut [Option<T::Float>],
        image: &[T],
        width: usize,
        products: impl Iterator<Item = (&'a [(usize, f64)], &'a [(usize, f64)])>,
    ) {
        let mut pixels: Vec<(usize, T::Float)> = Vec::new();
        for (rows, columns) in products {
            for (row, down) in rows {
                let weighed = |(column, across): &(usize, f64)| {
                    (row * width + column, T::Float::from_f64(down * across))
                };
                pixels.extend(columns.iter().map(weighed));
            }
            // The list stays in cache while all channels read it.
            if pixels.len() >= MAX_LISTED_PIXELS {
                self.add_pixels(totals, image, &pixels);
                pixels.clear();
            }
        }
        self.add_pixels(totals, image, &pixels);
    }

    fn add_pixels<T: FloatElement>(
        &self,
        totals: &mut [Option<T::Float>],
        image: &[T],
        pixels: &[(usize, T::Float)],
    ) {
        if pixels.is_empty() {
            return;
        }
        let size = image.len() / totals.len().max(1);
        let (some, last) = totals.as_chunks_mut::<CHANNEL_BLOCK>();
        let (channels, last_channels) = image.split_at(some.len() * CHANNEL_BLOCK * size);
        for (totals, channels) in some.iter_mut().zip(channels.chunks_exact(CHANNEL_BLOCK * size)) {
            self.add_to_channels(totals, channels, pixels);
        }
        for (total, channel) in last.iter_mut().zip(last_channels.chunks_exact(size)) {
            self.add_to_channels(std::array::from_mut(total), channel, pixels);
        }
    }

    fn add_to_channels<T: FloatElement, const CHANNELS: usize>(
        &self,
        totals: &mut [Option<T::Float>; CHANNELS],
        image: &[T],
        pixels: &[(usize, T::Float)],
    ) {
        let size = image.len() / CHANNELS;
        let channels: [&[T]; CHANNELS] = std::array::from_fn(|index| &image[index * size..][..size]);
        // Only the first list of a channel starts here; later lists continue from the total.
        let start = if self.takes_maximum { T::Float::LOWEST } else { T::Float::default() };
        let mut sums = totals.map(|total| total.unwrap_or(start));
        for (at, weight) in pixels {
            for (sum, channel) in sums.iter_mut().zip(channels) {
                let weighed = channel[*at].to_float() * *weight;
                // The op takes the maximum of the weighted pixels, not of the interpolated samples.
                *sum = if self.takes_maximum { sum.maximum(weighed) } else { *sum + weighed };
            }
        }
        *totals = sums.map(Some);
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    fn sample_image() -> TestArray {
        TestArray::from_values(&[1, 1, 2, 2], &[1f32, 2., 3., 4.])
    }

    #[test]
    fn a_region_of_the_whole_image_gives_its_mean() {
        let regions = TestArray::from_values(&[1, 4], &[0f32, 0., 2., 2.]);
        let inputs = [Some(&sample_image()), Some(&regions), Some(&TestArray::from_values(&[1], &[0i64]))];
        KERNELS.check_kernel(
            "RoiAlign",
            16,
            &[],
            &inputs,
            &[TestArray::from_values(&[1, 1, 1, 1], &[2.5f32])],
        );
    }

    #[test]
    fn regions_without_end_or_number_are_nothing_to_fear() {
        for corner in [f32::NAN, f32::INFINITY, 1e30, -1e30] {
            let regions = TestArray::from_values(&[1, 4], &[0f32, 0., corner, corner]);
            let inputs =
                [Some(&sample_image()), Some(&regions), Some(&TestArray::from_values(&[1], &[0i64]))];
            let attributes = [("sampling_ratio", TestAttribute::Int(4096))];
            let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1, 1, 1, 1]))];
            crate::KERNELS.run_kernel("RoiAlign", 16, &attributes, &inputs, &outputs).unwrap();
        }
    }

    #[test]
    fn each_channel_gets_the_mean_or_the_maximum_of_its_own_samples() {
        let (channels, height, width) = (11, 6, 5);
        let values: Vec<f32> =
            (0..channels * height * width).map(|at| (at * 37 % 101) as f32 - 50.0).collect();
        // A region inside the image, one that extends beyond it, and one with swapped corners.
        let corners = [[0.5f64, 1.0, 4.5, 5.0], [-3.0, -2.0, 4.0, 9.0], [4.0, 5.0, 1.0, 0.5]];
        for (mode, samples) in [("avg", 1), ("avg", 3), ("max", 1), ("max", 3)] {
            let mut expected = Vec::new();
            for ([x, y, end_x, end_y], channel) in
                corners.iter().flat_map(|corners| (0..channels).map(move |channel| (*corners, channel)))
            {
                let pixel =
                    |row: usize, column: usize| f64::from(values[(channel * height + row) * width + column]);
                for cell in 0..4 {
                    let place = |start: f64, end: f64, cell: usize, sample: usize| {
                        let size = (end - start) / 2.0;
                        start - 0.5 + size * (cell as f64 + (sample as f64 + 0.5) / samples as f64)
                    };
                    let (mut sum, mut greatest) = (0.0, f64::NEG_INFINITY);
                    for sample in 0..samples * samples {
                        let row = place(y, end_y, cell / 2, sample / samples);
                        let column = place(x, end_x, cell % 2, sample % samples);
                        let is_inside = |place: f64, size: usize| (-1.0..=size as f64).contains(&place);
                        if !is_inside(row, height) || !is_inside(column, width) {
                            greatest = greatest.max(0.0);
                            continue;
                        }
                        let (row, column) =
                            (row.clamp(0.0, height as f64 - 1.0), column.clamp(0.0, width as f64 - 1.0));
                        for corner in 0..4 {
                            let near = |place: f64, after: usize| place.floor() as usize + after;
                            let (at, beside) = (near(row, corner / 2), near(column, corner % 2));
                            let share =
                                (1.0 - (row - at as f64).abs()) * (1.0 - (column - beside as f64).abs());
                            let seen = pixel(at.min(height - 1), beside.min(width - 1)) * share;
                            (sum, greatest) = (sum + seen, greatest.max(seen));
                        }
                    }
                    expected
                        .push(if mode == "avg" { sum / (samples * samples) as f64 } else { greatest } as f32);
                }
            }
            let x = TestArray::from_values(&[1, channels as i64, height as i64, width as i64], &values);
            let regions: Vec<_> = corners.iter().flatten().map(|corner| *corner as f32).collect();
            let inputs = [
                Some(&x),
                Some(&TestArray::from_values(&[3, 4], &regions)),
                Some(&TestArray::from_values(&[3], &[0i64; 3])),
            ];
            let attributes = [
                ("mode", TestAttribute::Text(mode)),
                ("sampling_ratio", TestAttribute::Int(samples as i64)),
                ("output_height", TestAttribute::Int(2)),
                ("output_width", TestAttribute::Int(2)),
            ];
            KERNELS.check_kernel(
                "RoiAlign",
                16,
                &attributes,
                &inputs,
                &[TestArray::from_values(&[3, channels as i64, 2, 2], &expected)],
            );
        }
    }

    #[test]
    fn more_samples_than_are_taken_are_refused() {
        let regions = TestArray::from_values(&[1, 4], &[0f32, 0., 2., 2.]);
        let inputs = [Some(&sample_image()), Some(&regions), Some(&TestArray::from_values(&[1], &[0i64]))];
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1, 1, 1, 1]))];
        let attributes = [("sampling_ratio", TestAttribute::Int(4097))];
        let message = KERNELS.refusal_message("RoiAlign", 16, &attributes, &inputs, &outputs);
        assert!(message.contains("`sampling_ratio` of at most 4096"), "{message}");
    }

    #[test]
    fn an_image_that_is_not_there_is_refused() {
        let regions = TestArray::from_values(&[1, 4], &[0f32, 0., 2., 2.]);
        let inputs = [Some(&sample_image()), Some(&regions), Some(&TestArray::from_values(&[1], &[1i64]))];
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1, 1, 1, 1]))];
        let message = KERNELS.refusal_message("RoiAlign", 16, &[], &inputs, &outputs);
        assert!(message.contains("`batch_indices` from 0 to 1"), "{message}");
    }
}
