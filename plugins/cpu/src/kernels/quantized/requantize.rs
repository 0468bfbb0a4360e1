//! What becomes of a sum: eight bits again.

#![expect(unsafe_code, reason = "tiles are written through pointers")]

use std::slice;

use oarlock_sdk::{Dtype, KernelCall, Result, ensure};

use super::simd::SIGN_BIT;

/// How sums become numbers of eight bits, beside the factor of each channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequantizeParameters {
    /// The bounds of the results, less the zero point.
    pub(super) bounds: [f32; 2],
    pub(super) zero: i32,
    pub(super) residual: ResidualAddition,
}

/// What is added before results are rounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResidualAddition {
    /// What a step of it is in steps of the result.
    pub(super) factor: f32,
    /// Its zero point, and what is turned in its bytes so that they are unsigned.
    pub(super) zero: f32,
    pub(super) turned: u8,
    /// What is done to a result before.
    pub(super) inner: Option<InnerRounding>,
}

/// A result is rounded and kept within bounds before something is added: it would have been stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct InnerRounding {
    /// What a step of it is in steps of the result.
    pub(super) factor: f32,
    /// The bounds, less its zero point.
    pub(super) bounds: [f32; 2],
}

/// What is added to the smallest numbers so that they are rounded to whole ones, to even ones from the middle: beyond it
/// numbers of 32 bits have no fractions. The last byte of the sum is the last byte of the whole number.
pub(super) const ROUNDING_OFFSET: f32 = 12_582_912.0;

#[inline(always)]
pub(super) fn clamp_value(value: f32, [low, high]: [f32; 2]) -> f32 {
    let value = if value > low { value } else { low };
    if value < high { value } else { high }
}

#[inline(always)]
fn round_to_even(value: f32) -> f32 {
    (value + ROUNDING_OFFSET) - ROUNDING_OFFSET
}

impl RequantizeParameters {
    /// What the attributes of a call say.
    pub(super) fn from_call(call: &KernelCall<'_>) -> Result<Self> {
        let dtype = call.output(0)?.dtype();
        let (least, most) = dtype_range(dtype);
        let zero = zero_point(call, "y_zero", dtype)?;
        let float = |name| Ok(call.float_attribute(name)?.map(|value| value as f32));
        let bounds = match call.ints_attribute("bounds")? {
            None => [least, most],
            Some(bounds) => bounds_pair("bounds", bounds)?.map(|bound| bound.clamp(least, most)),
        };
        let inner = match float("inner_factor")? {
            None => None,
            Some(factor) => {
                let given = call.ints_attribute("inner_bounds")?.unwrap_or(&[]);
                let bounds = bounds_pair("inner_bounds", given)?
                    .map(|bound| bound.clamp(-MAX_BOUND, MAX_BOUND) as f32);
                Some(InnerRounding { factor, bounds })
            }
        };
        let (is_signed, z_zero) = (dtype == Dtype::I8, zero_point(call, "z_zero", dtype)?);
        let residual = ResidualAddition {
            factor: float("z_factor")?.unwrap_or(1.0),
            zero: (z_zero + if is_signed { i64::from(SIGN_BIT) } else { 0 }) as f32,
            turned: if is_signed { SIGN_BIT } else { 0 },
            inner,
        };
        Ok(Self { bounds: bounds.map(|bound| (bound - zero) as f32), zero: zero as i32, residual })
    }

    /// Some sums, each with the factor of its channel, become results.
    #[inline(always)]
    pub(super) fn requantize_sums<const COUNT: usize>(
        &self,
        sums: &[i32; COUNT],
        factors: &[f32; COUNT],
        residual: Option<&[u8; COUNT]>,
        results: &mut [u8; COUNT],
    ) {
        let mut steps = [0.0; COUNT];
        for ((step, sum), factor) in steps.iter_mut().zip(sums).zip(factors) {
            *step = *sum as f32 * factor;
        }
        if let Some(residual) = residual {
            let ResidualAddition { factor, zero, turned, inner } = self.residual;
            if let Some(InnerRounding { factor, bounds }) = inner {
                for step in &mut steps {
                    *step = round_to_even(clamp_value(*step, bounds)) * factor;
                }
            }
            for (step, addend) in steps.iter_mut().zip(residual) {
                *step += (f32::from(addend ^ turned) - zero) * factor;
            }
        }
        for (step, result) in steps.into_iter().zip(results) {
            let whole = (clamp_value(step, self.bounds) + ROUNDING_OFFSET).to_bits();
            *result = whole.wrapping_add(self.zero as u32) as u8;
        }
    }
}

/// The largest bound that rounding leaves exact.
const MAX_BOUND: i64 = 1 << 20;

/// The smallest and the largest number of a dtype of eight bits.
pub(super) fn dtype_range(dtype: Dtype) -> (i64, i64) {
    if dtype == Dtype::I8 { (-128, 127) } else { (0, 255) }
}

/// A zero point: 0 unless an attribute says another.
pub(super) fn zero_point(call: &KernelCall<'_>, name: &str, dtype: Dtype) -> Result<i64> {
    let (zero, (least, most)) = (call.int_attribute(name)?.unwrap_or(0), dtype_range(dtype));
    ensure!(
        (least..=most).contains(&zero),
        invalid_argument,
        "expected `{name}` between {least} and {most}, found {zero}"
    );
    Ok(zero)
}

fn bounds_pair(name: &str, bounds: &[i64]) -> Result<[i64; 2]> {
    match bounds {
        [low, high] if low <= high => Ok([*low, *high]),
        _ => Err(oarlock_sdk::PluginError::invalid_argument(format!(
            "expected `{name}` to be two bounds, the lower first, found {bounds:?}"
        ))),
    }
}

/// What follows a convolution while its sums are at hand.
pub(super) struct QuantizedEpilogue<'a> {
    pub(super) requantize: &'a RequantizeParameters,
    /// The factor of each output channel.
    pub(super) factors: &'a [f32],
    /// What is added, which has the shape of the output.
    pub(super) residual: Option<&'a [u8]>,
}

impl QuantizedEpilogue<'_> {
    /// Finishes the sums of some channels, from one on, of a pixel whose outputs begin at a place. `requantize` is a copy
    /// of what is here: what is written might change this one, as far as the compiler knows.
    #[inline(always)]
    pub(super) fn finish_pixel(
        &self,
        requantize: &RequantizeParameters,
        sums: &[i32],
        (channel, place): (usize, usize),
        results: &mut [u8],
    ) {
        let count = results.len();
        let residual = self.residual.map(|residual| &residual[place..][..count]);
        let part = RequantizePart {
            sums: &sums[..count],
            factors: &self.factors[channel..][..count],
            residual,
            results,
        };
        // Arrays of more elements are not kept in registers.
        part.finish_chunks::<16>(requantize).finish_chunks::<8>(requantize).finish_chunks::<1>(requantize);
    }
}

/// Sums that are to be finished, with what belongs to each.
struct RequantizePart<'a> {
    sums: &'a [i32],
    factors: &'a [f32],
    residual: Option<&'a [u8]>,
    results: &'a mut [u8],
}

impl RequantizePart<'_> {
    /// Finishes so many at a time, and gives those that are left.
    #[inline(always)]
    fn finish_chunks<const COUNT: usize>(self, requantize: &RequantizeParameters) -> Self {
        let (sums, sums_left) = self.sums.as_chunks::<COUNT>();
        let (factors, factors_left) = self.factors.as_chunks::<COUNT>();
        let (results, results_left) = self.results.as_chunks_mut::<COUNT>();
        let residual = self.residual.map(|residual| residual.as_chunks::<COUNT>());
        for (index, results) in results.iter_mut().enumerate() {
            let residual = residual.map(|(whole, _)| &whole[index]);
            requantize.requantize_sums(&sums[index], &factors[index], residual, results);
        }
        let residual = residual.map(|(_, left)| left);
        Self { sums: sums_left, factors: factors_left, residual, results: results_left }
    }
}

/// Where the results of some pixels and channels go, and how they are made of sums.
pub(super) struct QuantizedTileEpilogue<'a> {
    pub(super) requantize: RequantizeParameters,
    /// The factors of the channels, as many as there are channels.
    pub(super) factors: &'a [f32],
    /// What is added to the first pixel, if anything is.
    pub(super) residual: *const u8,
    /// Where the results of the first pixel go, and how far the pixels are apart, here and in what is added.
    pub(super) output: *mut u8,
    pub(super) pixel: usize,
}

impl QuantizedTileEpilogue<'_> {
    /// Makes results of the sums of some pixels.
    ///
    /// # Safety
    ///
    /// There is room for the results of so many pixels, which is the caller's alone, and there is as much of what is added.
    #[inline(always)]
    pub(super) unsafe fn finish_pixels<const COUNT: usize>(&self, sums: &[[i32; COUNT]]) {
        let (requantize, channels) = (self.requantize, self.factors.len());
        for (pixel, sums) in sums.iter().enumerate() {
            let place = pixel * self.pixel;
            // SAFETY: as the caller vouches.
            let (residual, results) = unsafe {
                let residual = self.residual.wrapping_add(place);
                let residual = (!self.residual.is_null()).then(|| slice::from_raw_parts(residual, channels));
                (residual, slice::from_raw_parts_mut(self.output.add(place), channels))
            };
            let part = RequantizePart { sums: &sums[..channels], factors: self.factors, residual, results };
            part.finish_chunks::<16>(&requantize)
                .finish_chunks::<8>(&requantize)
                .finish_chunks::<1>(&requantize);
        }
    }
}
