//! `GridSample`: images seen at the places of a grid.

use std::ops::Range;

use oarlock_sdk::{Call, DtypeSet, Error, Kernel, Operand, Result, dispatch, ensure, family};

use super::FLOATS;
use super::taps::{Beyond, Method, Taps};
use crate::device::Cpu;
use crate::isa::{Target, Vectorized};
use crate::kernels::rows::axis::count;
use crate::kernels::rows::grain;
use crate::kernels::rows::number::{Exact, Float, Number};
use crate::kernels::rows::operands::{Operands, kernel};
use crate::kernels::rows::parts::{Rows, in_parallel};

const SAMPLES: DtypeSet = family::FLOATING_AND_INTEGRAL.union(DtypeSet::F16).union(DtypeSet::BF16);

/// Channels that are read together, so that places and weights are fetched once for them.
const CHANNELS_AT_ONCE: usize = 4;

/// Places of a grid that are worked out before all channels are read at them.
const PLACES_AT_ONCE: usize = 128;

pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let sample = Operand::new(SAMPLES).group(1).rank(3, u32::MAX);
    vec![
        kernel("GridSample", Settings::new, |cpu, settings, operands| {
            let call = operands.call();
            let (samples, places) = (call.input(0)?.dtype(), call.input(1)?.dtype());
            let places = dispatch!(places, floating_and_half + bf16, P => reader::<P>(operands))?;
            dispatch!(samples, floating_and_integral + f16 + bf16, S => {
                sample_grid::<S>(cpu, settings, operands, &*places)
            })
        })
        .since(16)
        .inputs([sample.named("X"), Operand::new(FLOATS).named("grid").rank(3, u32::MAX)])
        .outputs([sample.named("Y")]),
    ]
}

struct Settings {
    method: Method,
    beyond: Beyond,
    aligns_corners: bool,
}

impl Settings {
    fn new(call: &Call<'_>) -> Result<Self> {
        let method = match call.string("mode")?.unwrap_or("linear") {
            "nearest" => Method::Nearest,
            "linear" | "bilinear" => Method::Linear,
            "cubic" | "bicubic" => Method::Cubic,
            other => {
                return Err(Error::invalid_argument(format!(
                    "expected `mode` to be `nearest`, `linear` or `cubic`, found `{other}`"
                )));
            }
        };
        let beyond = match call.string("padding_mode")?.unwrap_or("zeros") {
            "zeros" => Beyond::Zeros,
            "border" => Beyond::Border,
            "reflection" => Beyond::Reflection,
            other => {
                return Err(Error::invalid_argument(format!(
                    "expected `padding_mode` to be `zeros`, `border` or `reflection`, found `{other}`"
                )));
            }
        };
        Ok(Self { method, beyond, aligns_corners: call.int("align_corners")?.unwrap_or(0) != 0 })
    }

    /// What is seen at a place from -1 to 1 along an axis.
    #[inline(always)]
    fn taps(&self, place: f64, length: usize) -> Taps {
        let last = length as f64 - 1.0;
        let (place, edges) = if self.aligns_corners {
            ((place + 1.0) / 2.0 * last, (0.0, last))
        } else {
            (((place + 1.0) * length as f64 - 1.0) / 2.0, (-0.5, last + 0.5))
        };
        Taps::new(place, length, self.method, self.beyond, edges)
    }
}

/// Adds the places in a part of the grid to a list.
type Read<'a> = dyn Fn(Range<usize>, &mut Vec<f64>) + Sync + 'a;

fn reader<'a, P: Number>(operands: &'a Operands<'_, '_>) -> Result<Box<Read<'a>>> {
    let grid = operands.read::<P>(1)?;
    Ok(Box::new(|part, places| places.extend(grid[part].iter().map(|place| place.float().to_f64()))))
}

fn sample_grid<S: Number>(
    cpu: &Cpu,
    settings: &Settings,
    operands: &Operands<'_, '_>,
    read_grid: &Read<'_>,
) -> Result<()> {
    let call = operands.call();
    let (x, grid, y) = (call.input(0)?, call.input(1)?, call.output(0)?);
    let unfit = || {
        Error::invalid_argument(format!(
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
    let (size, places) = (count(axes)?, count(inner)?);
    let (x, y) = (operands.read::<S>(0)?, operands.write::<S>(0)?);
    if y.is_empty() {
        return Ok(());
    }
    ensure!(size > 0, invalid_argument, "expected images with elements, found {axes:?}");
    let (channels, axes) = (*channels as usize, axes.iter().map(|axis| *axis as usize).collect::<Vec<_>>());
    let rows = y.len() / places;
    in_parallel(cpu, rows, grain(places * 8), Rows::new(y, places), |first, y| {
        let (mut taps, mut grid_of_part) = (TapList::<S::Float>::default(), Vec::new());
        let mut row = 0;
        // Channels of one image share their grid.
        while row * places < y.len() {
            let image = (first + row) / channels;
            let shared = (channels - (first + row) % channels).min(y.len() / places - row);
            let first_place = image * places;
            for start in (0..places).step_by(PLACES_AT_ONCE) {
                let end = places.min(start + PLACES_AT_ONCE);
                grid_of_part.clear();
                let part = (first_place + start) * axes.len()..(first_place + end) * axes.len();
                read_grid(part, &mut grid_of_part);
                cpu.isa().vectorize(Fill { taps: &mut taps, settings, axes: &axes, grid: &grid_of_part });
                let x = &x[(first + row) * size..][..shared * size];
                let y = &mut y[row * places..][..shared * places];
                let together = shared - shared % CHANNELS_AT_ONCE;
                let (x, last_x) = x.split_at(together * size);
                let (y, last_y) = y.split_at_mut(together * places);
                let groups = x.chunks_exact(CHANNELS_AT_ONCE * size);
                for (x, y) in groups.zip(y.chunks_exact_mut(CHANNELS_AT_ONCE * places)) {
                    taps.read::<S, CHANNELS_AT_ONCE>(x, start, y);
                }
                for (x, y) in last_x.chunks_exact(size).zip(last_y.chunks_exact_mut(places)) {
                    taps.read::<S, 1>(x, start, y);
                }
            }
            row += shared;
        }
    });
    Ok(())
}

/// Elements of an image to be read at some places, and what each weighs. Places in the image, of which there are the most, are
/// read without a look at each element; others have those of their elements that exist.
#[derive(Default)]
struct TapList<F> {
    /// Places between the elements of two lines.
    inside: Vec<(usize, [(usize, F); 4])>,
    /// Other places, how many elements each has, and those, one place after the other.
    others: Vec<(usize, usize)>,
    taps: Vec<(usize, F)>,
    /// Whether elements are copied as they are.
    is_nearest: bool,
}

/// Lists what to read at the places of a part of a grid.
struct Fill<'a, F> {
    taps: &'a mut TapList<F>,
    settings: &'a Settings,
    axes: &'a [usize],
    grid: &'a [f64],
}

impl<F: Float> Vectorized for Fill<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<T: Target>(self) {
        let Self { taps: list, settings, axes, grid } = self;
        list.inside.clear();
        list.others.clear();
        list.taps.clear();
        list.is_nearest = settings.method == Method::Nearest;
        let mut now = Vec::new();
        let mut next = Vec::new();
        for (index, place) in grid.chunks(axes.len()).enumerate() {
            // Most places lie between four elements of a plane.
            if let ([down, along], [x, y]) = (axes, place)
                && let Some(lines) = settings.taps(*y, *down).between()
                && let Some(columns) = settings.taps(*x, *along).between()
            {
                let tap = |line: usize, column: usize| {
                    let ((row, share), (at, weight)) = (lines[line], columns[column]);
                    (row * along + at, F::of(share * weight))
                };
                list.inside.push((index, [tap(0, 0), tap(0, 1), tap(1, 0), tap(1, 1)]));
                continue;
            }
            now.clear();
            now.push((0, 1.0));
            // The last axis comes first in a grid.
            for (axis, place) in axes.iter().zip(place.iter().rev()) {
                let taps = settings.taps(*place, *axis);
                next.clear();
                for (at, weight) in &now {
                    // Nothing is read beyond an edge, not even something that is not a number.
                    let exist =
                        taps.iter().filter_map(|(index, share)| Some((at * axis + index?, weight * share)));
                    next.extend(exist);
                }
                std::mem::swap(&mut now, &mut next);
            }
            match <[(usize, f64); 4]>::try_from(&now[..]) {
                Ok(taps) => list.inside.push((index, taps.map(|(at, weight)| (at, F::of(weight))))),
                Err(_) => {
                    list.others.push((index, now.len()));
                    list.taps.extend(now.iter().map(|(at, weight)| (*at, F::of(*weight))));
                }
            }
        }
    }
}

impl<F: Float> TapList<F> {
    /// Reads some channels of an image at these places, of which the first has this number in the output.
    fn read<S: Number<Float = F>, const CHANNELS: usize>(&self, image: &[S], start: usize, out: &mut [S]) {
        let (size, pitch) = (image.len() / CHANNELS, out.len() / CHANNELS);
        let mut channels = [image; CHANNELS];
        for (index, channel) in channels.iter_mut().enumerate() {
            *channel = &image[index * size..][..size];
        }
        let sums = |taps: &[(usize, F)]| {
            let mut sums = [F::default(); CHANNELS];
            for (at, weight) in taps {
                for (sum, channel) in sums.iter_mut().zip(channels) {
                    *sum = *sum + channel[*at].float() * *weight;
                }
            }
            sums.map(S::of_float)
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
                [] => [S::of_exact(S::Exact::ZERO); CHANNELS],
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

    use crate::kernels::rows::checking::{check, refusal};
    use crate::testing::{Array, Attribute, run};

    #[test]
    fn channels_and_images_are_seen_at_their_own_places() {
        let x = Array::of(&[2, 2, 1, 2], &[1f32, 2., 3., 4., 5., 6., 7., 8.]);
        let grid = Array::of(&[2, 1, 2, 2], &[-1f32, 0., 1., 0., 0., 0., -1., 0.]);
        let attributes = [("align_corners", Attribute::Int(1)), ("mode", Attribute::Text("linear"))];
        let expected = Array::of(&[2, 2, 1, 2], &[1f32, 2., 3., 4., 5.5, 5., 7.5, 7.]);
        check("GridSample", 20, &attributes, &[Some(&x), Some(&grid)], &[expected]);
    }

    #[test]
    fn many_channels_are_seen_as_each_of_them_is() {
        let (channels, side) = (6i64, 5i64);
        let size = (side * side) as usize;
        let values: Vec<f32> = (0..channels * side * side).map(|at| (at * 37 % 101) as f32).collect();
        let grid: Vec<f32> = (0..2 * 300).map(|at| (at * 53 % 131) as f32 / 50.0 - 1.3).collect();
        let grid = Array::of(&[1, 10, 30, 2], &grid);
        for mode in ["linear", "nearest", "cubic"] {
            let attributes = [("mode", Attribute::Text(mode))];
            let seen = |values: &[f32]| {
                let channels = (values.len() / size) as i64;
                let x = Array::of(&[1, channels, side, side], values);
                let outputs = [Some((Dtype::F32, &[1, channels, 10, 30][..]))];
                let results = run("GridSample", 20, &attributes, &[Some(&x), Some(&grid)], &outputs).unwrap();
                results[0].as_ref().unwrap().values::<f32>()
            };
            let each: Vec<f32> = values.chunks(size).flat_map(seen).collect();
            assert_eq!(seen(&values), each, "{mode}");
        }
    }

    #[test]
    fn what_is_no_place_is_not_read_and_zeros_hide_what_is_not_a_number() {
        let x = Array::of(&[1, 1, 2, 2], &[f32::INFINITY, 1., 1., 1.]);
        let grid = Array::of(&[1, 1, 3, 2], &[f32::NAN, 0., 9., 9., f32::INFINITY, 0.]);
        let attributes = [("mode", Attribute::Text("nearest"))];
        check(
            "GridSample",
            20,
            &attributes,
            &[Some(&x), Some(&grid)],
            &[Array::of(&[1, 1, 1, 3], &[0f32; 3])],
        );
    }

    #[test]
    fn a_grid_for_other_axes_is_refused() {
        let (x, grid) = (Array::of(&[1, 1, 2, 2], &[1f32; 4]), Array::of(&[1, 1, 1, 3], &[0f32; 3]));
        let outputs: [Option<(Dtype, &[i64])>; 1] = [Some((Dtype::F32, &[1, 1, 1, 1]))];
        let message = refusal("GridSample", 20, &[], &[Some(&x), Some(&grid)], &outputs);
        assert!(message.contains("number of axes"), "{message}");
    }
}
