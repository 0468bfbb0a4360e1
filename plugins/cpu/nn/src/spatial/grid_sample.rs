//! `GridSample`: samples images at the positions of a grid.

use std::ops::Range;

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::compute_element::{ComputeElement, ComputeFloat};
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{BaselineTarget, Isa, SimdTarget, SimdTask};
use oarlock_cpu_base::math::MathFloat;
use oarlock_cpu_base::rows::grain_for;
use oarlock_cpu_base::rows::operands::{KernelOperands, operand_kernel};
use oarlock_cpu_base::rows::output_parts::{OutputRows, parallel_for_parts};
use oarlock_sdk::shape::element_count;
use oarlock_sdk::{
    Dtype, DtypeSet, Kernel, KernelCall, OperandSpec, PluginError, Result, dispatch, ensure, family,
};

use super::SPATIAL_FLOATS;
use super::taps::{AxisTaps, PaddingMode, SampleMethod};

const SAMPLE_DTYPES: DtypeSet = family::FLOATING_AND_INTEGRAL.union(DtypeSet::F16).union(DtypeSet::BF16);

/// Channels that are read together, so that positions and weights are loaded once for all of them.
const CHANNEL_BLOCK: usize = 4;

/// Grid positions whose taps are computed before all channels are sampled there: few enough that the taps stay in cache.
const POINT_BLOCK: usize = 128;

pub(super) fn grid_sample_kernels() -> Vec<Kernel<Cpu>> {
    let sample = OperandSpec::new(SAMPLE_DTYPES).with_dtype_group(1).with_rank(3, u32::MAX);
    vec![
        operand_kernel("GridSample", GridSampleSettings::new, |cpu, settings, operands| {
            let call = operands.call();
            let (samples, places) = (call.input(0)?.dtype(), call.input(1)?.dtype());
            // The dtypes of grid and images are independent. The grid reader is a `dyn`, so that `sample_grid` is not compiled for
            // every pair of dtypes.
            let places = dispatch!(places, floating_and_half + bf16, P => grid_reader::<P>(operands))?;
            dispatch!(samples, floating_and_integral + f16 + bf16, S => {
                sample_grid::<S>(cpu, settings, operands, &*places)
            })
        })
        .since_version(16)
        .with_inputs([
            sample.with_name("X"),
            OperandSpec::new(SPATIAL_FLOATS).with_name("grid").with_rank(3, u32::MAX),
        ])
        .with_outputs([sample.with_name("Y")]),
    ]
}

struct GridSampleSettings {
    method: SampleMethod,
    beyond: PaddingMode,
    aligns_corners: bool,
}

impl GridSampleSettings {
    fn new(call: &KernelCall<'_>) -> Result<Self> {
        let method = match call.string_attribute("mode")?.unwrap_or("linear") {
            "nearest" => SampleMethod::Nearest,
            // Opset 20 renamed the modes when it allowed more than two axes.
            "linear" | "bilinear" => SampleMethod::Linear,
            "cubic" | "bicubic" => SampleMethod::Cubic,
            other => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `mode` to be `nearest`, `linear` or `cubic`, found `{other}`"
                )));
            }
        };
        let beyond = match call.string_attribute("padding_mode")?.unwrap_or("zeros") {
            "zeros" => PaddingMode::Zeros,
            "border" => PaddingMode::Border,
            "reflection" => PaddingMode::Reflection,
            other => {
                return Err(PluginError::invalid_argument(format!(
                    "expected `padding_mode` to be `zeros`, `border` or `reflection`, found `{other}`"
                )));
            }
        };
        Ok(Self { method, beyond, aligns_corners: call.int_attribute("align_corners")?.unwrap_or(0) != 0 })
    }

    /// The taps of a position from -1 to 1 along an axis.
    #[inline(always)]
    fn axis_taps(&self, place: f64, length: usize) -> AxisTaps {
        let last = length as f64 - 1.0;
        let (place, edges) = if self.aligns_corners {
            // -1 and 1 are the centers of the outermost elements, and reflection is at these centers.
            ((place + 1.0) / 2.0 * last, (0.0, last))
        } else {
            // -1 and 1 are the outer edges of the outermost elements, and reflection is at these edges.
            (((place + 1.0) * length as f64 - 1.0) / 2.0, (-0.5, last + 0.5))
        };
        AxisTaps::new(place, length, self.method, self.beyond, edges)
    }
}

/// Appends the positions in a part of the grid to a list.
type GridReader<'a> = dyn Fn(Range<usize>, &mut Vec<f64>) + Sync + 'a;

fn grid_reader<'a, P: ComputeElement>(operands: &'a KernelOperands<'_, '_>) -> Result<Box<GridReader<'a>>> {
    let grid = operands.read_input::<P>(1)?;
    Ok(Box::new(|part, places| places.extend(grid[part].iter().map(|place| place.to_float().to_f64()))))
}

/// True if models sample images that are computed in this float. Images of others take code for one channel and the lowest instruction
/// set, which keeps the plugin small.
const fn is_common<F: ComputeFloat>() -> bool {
    matches!(F::DTYPE, Dtype::F32)
}

struct GridSampleShape {
    channels: usize,
    axes: Vec<usize>,
    /// The number of elements of a channel of an image, and of one of the output.
    size: usize,
    places: usize,
}

impl GridSampleShape {
    fn new(operands: &KernelOperands<'_, '_>) -> Result<Self> {
        let call = operands.call();
        let (x, grid, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
        let unfit = || {
            PluginError::invalid_argument(format!(
                "expected images [N, C, …] and a grid [N, …, number of axes], found {:?} and {:?}",
                x.dims(),
                grid.dims()
            ))
        };
        let ([images, channels, axes @ ..], [grids, inner @ .., depth]) = (x.dims(), grid.dims()) else {
            return Err(unfit());
        };
        ensure!(
            images == grids && axes.len() == inner.len() && *depth == axes.len() as i64,
            invalid_argument,
            "{}",
            unfit().message()
        );
        operands.expect_dims(&y, "Y", &[&[*images, *channels], inner].concat())?;
        Ok(Self {
            channels: *channels as usize,
            axes: axes.iter().map(|axis| *axis as usize).collect(),
            size: element_count(axes)?,
            places: element_count(inner)?,
        })
    }
}

fn sample_grid<S: ComputeElement>(
    cpu: &Cpu,
    settings: &GridSampleSettings,
    operands: &KernelOperands<'_, '_>,
    read_grid: &GridReader<'_>,
) -> Result<()> {
    let GridSampleShape { channels, axes, size, places } = GridSampleShape::new(operands)?;
    let (x, y) = (operands.read_input::<S>(0)?, operands.write_output::<S>(0)?);
    if y.is_empty() {
        return Ok(());
    }
    ensure!(size > 0, invalid_argument, "expected images with elements, found {axes:?}");
    // Work is split by channels of images instead of positions, since channels share the taps of a position.
    let rows = y.len() / places;
    parallel_for_parts(cpu, rows, grain_for(places * 8), OutputRows::new(y, places), |first, y| {
        let (mut taps, mut grid_of_part) = (TapList::<S::Float>::default(), Vec::new());
        let mut row = 0;
        // Channels of an image share their grid.
        while row * places < y.len() {
            let image = (first + row) / channels;
            // A part may begin or end in the middle of an image.
            let shared = (channels - (first + row) % channels).min(y.len() / places - row);
            let first_place = image * places;
            for start in (0..places).step_by(POINT_BLOCK) {
                let end = places.min(start + POINT_BLOCK);
                grid_of_part.clear();
                let part = (first_place + start) * axes.len()..(first_place + end) * axes.len();
                read_grid(part, &mut grid_of_part);
                let listing = TapListTask { taps: &mut taps, settings, axes: &axes, grid: &grid_of_part };
                listing.list_taps(cpu.isa());
                let x = &x[(first + row) * size..][..shared * size];
                let y = &mut y[row * places..][..shared * places];
                // The remaining channels are sampled one by one, by the same code with `CHANNELS` = 1.
                let mut together = 0;
                if const { is_common::<S::Float>() } {
                    together = shared - shared % CHANNEL_BLOCK;
                    let groups = x[..together * size].chunks_exact(CHANNEL_BLOCK * size);
                    for (x, y) in groups.zip(y.chunks_exact_mut(CHANNEL_BLOCK * places)) {
                        taps.sample_channels::<S, CHANNEL_BLOCK>(x, start, y);
                    }
                }
                let last_y = y[together * places..].chunks_exact_mut(places);
                for (x, y) in x[together * size..].chunks_exact(size).zip(last_y) {
                    taps.sample_channels::<S, 1>(x, start, y);
                }
            }
            row += shared;
        }
    });
    Ok(())
}

/// The taps of an image at some positions. Most positions are inside the image and have all four taps, which are read without a
/// check for each; for the others, the taps that exist are listed.
#[derive(Default)]
struct TapList<F> {
    /// Positions with exactly four taps.
    inside: Vec<(usize, [(usize, F); 4])>,
    /// Other positions, with the number of their taps, which are consecutive in `taps`.
    others: Vec<(usize, usize)>,
    taps: Vec<(usize, F)>,
    /// True if elements are copied without arithmetic.
    is_nearest: bool,
}

/// Lists the taps at the positions of a part of a grid.
struct TapListTask<'a, F> {
    taps: &'a mut TapList<F>,
    settings: &'a GridSampleSettings,
    axes: &'a [usize],
    grid: &'a [f64],
}

impl<F: ComputeFloat> TapListTask<'_, F> {
    // Not a part of each caller: those differ in dtypes that share the float.
    #[inline(never)]
    fn list_taps(self, isa: Isa) {
        if const { is_common::<F>() } {
            isa.vectorize(self);
        } else {
            self.run_on_target::<BaselineTarget>();
        }
    }
}

impl<F: ComputeFloat> SimdTask for TapListTask<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run_on_target<T: SimdTarget>(self) {
        let Self { taps: list, settings, axes, grid } = self;
        list.inside.clear();
        list.others.clear();
        list.taps.clear();
        list.is_nearest = settings.method == SampleMethod::Nearest;
        let mut now = Vec::new();
        let mut next = Vec::new();
        for (index, place) in grid.chunks(axes.len()).enumerate() {
            // Most positions lie between four elements of a plane.
            if let ([down, along], [x, y]) = (axes, place)
                && let Some(lines) = settings.axis_taps(*y, *down).linear_pair()
                && let Some(columns) = settings.axis_taps(*x, *along).linear_pair()
            {
                let tap = |line: usize, column: usize| {
                    let ((row, share), (at, weight)) = (lines[line], columns[column]);
                    (row * along + at, F::from_f64(share * weight))
                };
                list.inside.push((index, [tap(0, 0), tap(0, 1), tap(1, 0), tap(1, 1)]));
                continue;
            }
            now.clear();
            now.push((0, 1.0));
            // Coordinates of a grid are in reverse order of axes: x, then y.
            for (axis, place) in axes.iter().zip(place.iter().rev()) {
                let taps = settings.axis_taps(*place, *axis);
                next.clear();
                for (at, weight) in &now {
                    // Nothing is read beyond an edge: 0 times an infinity or NaN there would be NaN.
                    let exist =
                        taps.iter().filter_map(|(index, share)| Some((at * axis + index?, weight * share)));
                    next.extend(exist);
                }
                std::mem::swap(&mut now, &mut next);
            }
            // Any four taps are a weighted sum, such as a cubic with missing ones, so they go to the fast list, too.
            match <[(usize, f64); 4]>::try_from(&now[..]) {
                Ok(taps) => list.inside.push((index, taps.map(|(at, weight)| (at, F::from_f64(weight))))),
                Err(_) => {
                    list.others.push((index, now.len()));
                    list.taps.extend(now.iter().map(|(at, weight)| (*at, F::from_f64(*weight))));
                }
            }
        }
    }
}

impl<F: ComputeFloat> TapList<F> {
    /// Samples some channels of an image at these positions, the first of which has index `start` in the output.
    fn sample_channels<S: ComputeElement<Float = F>, const CHANNELS: usize>(
        &self,
        image: &[S],
        start: usize,
        out: &mut [S],
    ) {
        // An array of slices of equal length instead of a stride, so that the bounds check of a tap is one comparison per channel.
        let (size, pitch) = (image.len() / CHANNELS, out.len() / CHANNELS);
        let mut channels = [image; CHANNELS];
        for (index, channel) in channels.iter_mut().enumerate() {
            *channel = &image[index * size..][..size];
        }
        let sums = |taps: &[(usize, F)]| {
            let mut sums = [F::default(); CHANNELS];
            for (at, weight) in taps {
                for (sum, channel) in sums.iter_mut().zip(channels) {
                    *sum = *sum + channel[*at].to_float() * *weight;
                }
            }
            sums.map(S::from_float)
        };
        let mut put = |place: usize, found: [S; CHANNELS]| {
            for (index, found) in found.into_iter().enumerate() {
                out[index * pitch + start + place] = found;
            }
        };
        for (place, taps) in &self.inside {
            put(*place, sums(taps));
        }
        let mut rest = &self.taps[..];
        for (place, count) in &self.others {
            let (taps, further) = rest.split_at(*count);
            let found = match taps {
                // Only the padding mode `zeros` leaves a position without taps.
                [] => [S::from_accumulator(S::Accumulator::ZERO); CHANNELS],
                // Copied without arithmetic: an `i64` beyond 2⁵³ would be rounded by a float.
                [(at, _)] if self.is_nearest => channels.map(|channel| channel[*at]),
                _ => sums(taps),
            };
            put(*place, found);
            rest = further;
        }
    }
}

#[cfg(test)]
mod tests {
    use oarlock_sdk::Dtype;

    use crate::KERNELS;
    use oarlock_cpu_testing::runner::{TestArray, TestAttribute};

    #[test]
    fn channels_and_images_are_seen_at_their_own_places() {
        let x = TestArray::from_values(&[2, 2, 1, 2], &[1f32, 2., 3., 4., 5., 6., 7., 8.]);
        let grid = TestArray::from_values(&[2, 1, 2, 2], &[-1f32, 0., 1., 0., 0., 0., -1., 0.]);
        let attributes = [("align_corners", TestAttribute::Int(1)), ("mode", TestAttribute::Text("linear"))];
        let expected = TestArray::from_values(&[2, 2, 1, 2], &[1f32, 2., 3., 4., 5.5, 5., 7.5, 7.]);
        KERNELS.check_kernel("GridSample", 20, &attributes, &[Some(&x), Some(&grid)], &[expected]);
    }

    #[test]
    fn many_channels_are_seen_as_each_of_them_is() {
        let (channels, side) = (6i64, 5i64);
        let size = (side * side) as usize;
        let values: Vec<f32> = (0..channels * side * side).map(|at| (at * 37 % 101) as f32).collect();
        let grid: Vec<f32> = (0..2 * 300).map(|at| (at * 53 % 131) as f32 / 50.0 - 1.3).collect();
        let grid = TestArray::from_values(&[1, 10, 30, 2], &grid);
        for mode in ["linear", "nearest", "cubic"] {
            let attributes = [("mode", TestAttribute::Text(mode))];
            let seen = |values: &[f32]| {
                let channels = (values.len() / size) as i64;
                let x = TestArray::from_values(&[1, channels, side, side], values);
                let outputs = [Some((Dtype::F32, &[1, channels, 10, 30][..]))];
                let results = KERNELS
                    .run_kernel("GridSample", 20, &attributes, &[Some(&x), Some(&grid)], &outputs)
                    .unwrap();
                results[0].as_ref().unwrap().values::<f32>()
            };
            let each: Vec<f32> = values.chunks(size).flat_map(seen).collect();
            assert_eq!(seen(&values), each, "{mode}");
        }
    }

    #[test]
    fn what_is_no_place_is_not_read_and_zeros_hide_what_is_not_a_number() {
        let x = TestArray::from_values(&[1, 1, 2, 2], &[f32::INFINITY, 1., 1., 1.]);
        let grid = TestArray::from_values(&[1, 1, 3, 2], &[f32::NAN, 0., 9., 9., f32::INFINITY, 0.]);
        let attributes = [("mode", TestAttribute::Text("nearest"))];
        KERNELS.check_kernel(
            "GridSample",
            20,
            &attributes,
            &[Some(&x), Some(&grid)],
            &[TestArray::from_values(&[1, 1, 1, 3], &[0f32; 3])],
        );
    }

    #[test]
    fn a_grid_for_other_axes_is_refused() {
        let (x, grid) = (
            TestArray::from_values(&[1, 1, 2, 2], &[1f32; 4]),
            TestArray::from_values(&[1, 1, 1, 3], &[0f32; 3]),
        );
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1, 1, 1, 1]))];
        let message = KERNELS.refusal_message("GridSample", 20, &[], &[Some(&x), Some(&grid)], &outputs);
        assert!(message.contains("number of axes"), "{message}");
    }
}
