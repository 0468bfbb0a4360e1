//! The taps of a resize along one axis: which elements of the input make one of the output, and their weights.

use oarlock_cpu_base::rows::scratch::try_reserve_vec;
use oarlock_sdk::{KernelCall, PluginError, Result};

/// The taps of each index of the output; `None` if the index lies outside of the crop.
pub(super) type ResizeTaps = Vec<Option<Vec<(usize, f64)>>>;

#[derive(Clone, Copy)]
pub(super) struct ResizedAxis {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) scale: f64,
    /// The part of the input to take, for `tf_crop_and_resize`.
    pub(super) crop: (f64, f64),
}

/// Maps an index of the output to a place in the input.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum CoordinateTransform {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    HalfPixelForNearest,
    Crop,
}

/// Which neighbors of that place count.
#[derive(Clone, Copy)]
enum ResizeFilter {
    Nearest(fn(f64) -> f64),
    Linear,
    Cubic(f64),
}

/// The attributes of a resize.
#[derive(Clone, Copy)]
pub(super) struct ResizeMethod {
    pub(super) coordinates: CoordinateTransform,
    filter: ResizeFilter,
    excludes_outside: bool,
    smooths: bool,
}

impl ResizeMethod {
    pub(super) fn new(
        call: &KernelCall<'_>,
        default_coordinates: &str,
        default_rounding: &str,
    ) -> Result<Self> {
        let unknown = |name: &str, found: &str| {
            PluginError::invalid_argument(format!(
                "expected `{name}` to be one that ONNX has, found `{found}`"
            ))
        };
        let name = "coordinate_transformation_mode";
        let coordinates = match call.string_attribute(name)?.unwrap_or(default_coordinates) {
            "half_pixel" => CoordinateTransform::HalfPixel,
            "half_pixel_symmetric" => CoordinateTransform::HalfPixelSymmetric,
            "pytorch_half_pixel" => CoordinateTransform::PytorchHalfPixel,
            "align_corners" => CoordinateTransform::AlignCorners,
            "asymmetric" => CoordinateTransform::Asymmetric,
            "tf_half_pixel_for_nn" => CoordinateTransform::HalfPixelForNearest,
            "tf_crop_and_resize" => CoordinateTransform::Crop,
            other => return Err(unknown(name, other)),
        };
        let rounding: fn(f64) -> f64 =
            match call.string_attribute("nearest_mode")?.unwrap_or(default_rounding) {
                // A tie goes down here and up in the next, unlike with `round`, which goes away from 0.
                "round_prefer_floor" => |at| (at - 0.5).ceil(),
                "round_prefer_ceil" => |at| (at + 0.5).floor(),
                "floor" => f64::floor,
                "ceil" => f64::ceil,
                other => return Err(unknown("nearest_mode", other)),
            };
        let filter = match call.string_attribute("mode")?.unwrap_or("nearest") {
            "nearest" => ResizeFilter::Nearest(rounding),
            "linear" | "bilinear" => ResizeFilter::Linear,
            "cubic" => ResizeFilter::Cubic(call.float_attribute("cubic_coeff_a")?.unwrap_or(-0.75)),
            other => return Err(unknown("mode", other)),
        };
        let excludes_outside = call.int_attribute("exclude_outside")?.unwrap_or(0) != 0;
        let smooths = call.int_attribute("antialias")?.unwrap_or(0) != 0;
        Ok(Self { coordinates, filter, excludes_outside, smooths })
    }

    /// True if each element of the output is one of the input.
    pub(super) fn is_nearest(&self) -> bool {
        matches!(self.filter, ResizeFilter::Nearest(_))
    }

    /// The nearest index of the input for each index of the output, for methods that copy one element.
    pub(super) fn nearest_indices(&self, axis: &ResizedAxis) -> Result<Vec<Option<usize>>> {
        let mut map = try_reserve_vec(axis.to)?;
        let first = |taps: Vec<(usize, f64)>| taps.first().map(|(at, _)| *at);
        // One list for each axis: outputs of a row share it, whatever the other axes do.
        map.extend((0..axis.to).map(|index| self.taps_at(axis, index).and_then(first)));
        Ok(map)
    }

    /// The taps of an axis whose input is not empty.
    pub(super) fn axis_taps(&self, axis: &ResizedAxis) -> ResizeTaps {
        (0..axis.to).map(|index| self.taps_at(axis, index)).collect()
    }

    fn taps_at(&self, axis: &ResizedAxis, index: usize) -> Option<Vec<(usize, f64)>> {
        let last = axis.from as f64 - 1.0;
        let place = self.coordinates.source_coordinate(axis, index as f64);
        if self.coordinates == CoordinateTransform::Crop && !(0.0..=last).contains(&place) {
            // Outside of the crop ONNX writes a value of the caller.
            return None;
        }
        // Beyond an edge, the edge repeats.
        let inside = |at: f64| at.clamp(0.0, last) as usize;
        let (reach, weight): (f64, &dyn Fn(f64) -> f64) = match self.filter {
            ResizeFilter::Nearest(rounding) => return Some(vec![(inside(rounding(place)), 1.0)]),
            ResizeFilter::Linear => (1.0, &|distance| (1.0 - distance).max(0.0)),
            ResizeFilter::Cubic(a) => (2.0, &move |distance| cubic_weight(a, distance)),
        };
        // Antialiasing stretches the filter over all elements that one of a smaller output stands for.
        let shrink = if self.smooths { axis.scale.min(1.0) } else { 1.0 };
        // Bounds the work, however small a scale is stated.
        let reach = (reach / shrink).min(2.0 * axis.from as f64 + 4.0);
        let (first, end) = ((place - reach).floor() as i64 + 1, (place + reach).ceil() as i64);
        let mut taps: Vec<_> = (first..end)
            .filter(|at| !self.excludes_outside || (0..axis.from as i64).contains(at))
            .map(|at| (inside(at as f64), weight((at as f64 - place).abs() * shrink)))
            .collect();
        // The weights of a sampled filter need not add up to 1, and those outside may be missing.
        let sum: f64 = taps.iter().map(|(_, weight)| weight).sum();
        if sum != 0.0 {
            taps.iter_mut().for_each(|(_, weight)| *weight /= sum);
        }
        Some(taps)
    }
}

impl CoordinateTransform {
    fn source_coordinate(self, axis: &ResizedAxis, index: f64) -> f64 {
        let ResizedAxis { from, to, scale, crop: (start, end) } = *axis;
        let (last, to) = (from as f64 - 1.0, to as f64);
        let half_pixel = (index + 0.5) / scale - 0.5;
        match self {
            Self::HalfPixel => half_pixel,
            Self::HalfPixelSymmetric => {
                let wanted = scale * from as f64;
                from as f64 / 2.0 * (1.0 - to / wanted) + half_pixel
            }
            Self::PytorchHalfPixel if to > 1.0 => half_pixel,
            Self::AlignCorners if to > 1.0 => index * last / (to - 1.0),
            Self::PytorchHalfPixel | Self::AlignCorners => 0.0,
            Self::Asymmetric => index / scale,
            Self::HalfPixelForNearest => (index + 0.5) / scale,
            Self::Crop if to > 1.0 => start * last + index * (end - start) * last / (to - 1.0),
            Self::Crop => 0.5 * (start + end) * last,
        }
    }
}

/// The cubic convolution with coefficient `a`, at a distance.
pub(super) fn cubic_weight(a: f64, x: f64) -> f64 {
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}
