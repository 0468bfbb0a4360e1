//! Requantizes 32-bit sums to 8 bits.

#![expect(unsafe_code, reason = "tiles are written through pointers")]

use std::slice;

use oarlock_sdk::{Dtype, KernelCall, Result, ensure};

use oarlock_cpu_base::simd::SIGN_BIT;

/// The parameters of requantization, except for the factor of each channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequantizeParameters {
    /// The bounds of the results, minus the zero point.
    pub(super) bounds: [f32; 2],
    pub(super) zero: i32,
    pub(super) residual: ResidualAddition,
}

/// A residual that is added before results are rounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResidualAddition {
    /// The scale of the residual, in units of the result.
    pub(super) factor: f32,
    /// The zero point of the residual, and the bits to flip in its bytes to make them unsigned.
    pub(super) zero: f32,
    pub(super) sign_flip: u8,
    /// How the result is rounded before the addition, if it is.
    pub(super) inner: Option<InnerRounding>,
}

/// Rounds and clamps a result before the residual is added, as if it had been stored in between.
#[derive(Clone, Copy, Debug)]
pub(super) struct InnerRounding {
    /// The scale of the rounded result, in units of the final one.
    pub(super) factor: f32,
    /// The bounds of the rounded result, minus its zero point.
    pub(super) bounds: [f32; 2],
}

/// 1.5 · 2²³. Adding it to a small number rounds the number to the nearest integer, ties to even, because `f32` has no fractions
/// beyond 2²³. The low byte of the sum's bits is the low byte of the integer.
pub(super) const ROUNDING_OFFSET: f32 = 12_582_912.0;

#[inline(always)]
pub(super) fn clamp_value(value: f32, [low, high]: [f32; 2]) -> f32 {
    // With this order of comparisons, NaN becomes `low`.
    let value = if value > low { value } else { low };
    if value < high { value } else { high }
}

#[inline(always)]
fn round_to_even(value: f32) -> f32 {
    (value + ROUNDING_OFFSET) - ROUNDING_OFFSET
}

impl RequantizeParameters {
    /// Reads the attributes of a call.
    pub(super) fn from_call(call: &KernelCall<'_>) -> Result<Self> {
        let dtype = call.output(0)?.dtype();
        let (least, most) = dtype_range(dtype);
        let zero = zero_point(call, "y_zero", dtype)?;
        let float = |name| Ok(call.float_attribute(name)?.map(|value| value as f32));
        let bounds = match call.ints_attribute("bounds")? {
            None => [least, most],
            // Clamped to the range of the dtype first, so that the result always fits into a byte.
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
        // A residual has the dtype of the output.
        let (is_signed, z_zero) = (dtype == Dtype::I8, zero_point(call, "z_zero", dtype)?);
        let residual = ResidualAddition {
            factor: float("z_factor")?.unwrap_or(1.0),
            zero: (z_zero + if is_signed { i64::from(SIGN_BIT) } else { 0 }) as f32,
            sign_flip: if is_signed { SIGN_BIT } else { 0 },
            inner,
        };
        Ok(Self { bounds: bounds.map(|bound| (bound - zero) as f32), zero: zero as i32, residual })
    }

    /// Requantizes sums, each with the factor of its channel.
    #[inline(always)]
    pub(super) fn requantize_sums<const COUNT: usize>(
        &self,
        sums: &[i32; COUNT],
        factors: &[f32; COUNT],
        residual: Option<&[u8; COUNT]>,
        results: &mut [u8; COUNT],
    ) {
        let mut steps = [0.0; COUNT];
        // Sums beyond 2²⁴ are rounded here, as in the definition of the op, which multiplies floats.
        for ((step, sum), factor) in steps.iter_mut().zip(sums).zip(factors) {
            *step = *sum as f32 * factor;
        }
        if let Some(residual) = residual {
            let ResidualAddition { factor, zero, sign_flip, inner } = self.residual;
            if let Some(InnerRounding { factor, bounds }) = inner {
                for step in &mut steps {
                    *step = round_to_even(clamp_value(*step, bounds)) * factor;
                }
            }
            for (step, addend) in steps.iter_mut().zip(residual) {
                *step += (f32::from(addend ^ sign_flip) - zero) * factor;
            }
        }
        for (step, result) in steps.into_iter().zip(results) {
            // Clamped before rounding, because the rounding trick works for small numbers only. The bounds are integers, so the
            // order does not change the result.
            let whole = (clamp_value(step, self.bounds) + ROUNDING_OFFSET).to_bits();
            *result = whole.wrapping_add(self.zero as u32) as u8;
        }
    }
}

/// The largest bound for which rounding is exact.
const MAX_BOUND: i64 = 1 << 20;

pub(super) fn dtype_range(dtype: Dtype) -> (i64, i64) {
    if dtype == Dtype::I8 { (-128, 127) } else { (0, 255) }
}

/// The zero point attribute; 0 by default.
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

/// The epilogue of a quantized convolution.
pub(super) struct QuantizedEpilogue<'a> {
    pub(super) requantize: &'a RequantizeParameters,
    /// The factor of each output channel.
    pub(super) factors: &'a [f32],
    /// The residual, which has the shape of the output.
    pub(super) residual: Option<&'a [u8]>,
}

impl QuantizedEpilogue<'_> {
    /// Requantizes some channels of a pixel, whose outputs begin at an index. `requantize` is a copy of the field, because the
    /// compiler would have to assume that writing results changes the original.
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
        // Larger arrays would not stay in registers.
        part.finish_chunks::<16>(requantize).finish_chunks::<8>(requantize).finish_chunks::<1>(requantize);
    }
}

/// Sums to requantize, with their factors, residuals and results.
struct RequantizePart<'a> {
    sums: &'a [i32],
    factors: &'a [f32],
    residual: Option<&'a [u8]>,
    results: &'a mut [u8],
}

impl RequantizePart<'_> {
    /// Requantizes `COUNT` at a time and returns the rest.
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

/// The epilogue of a tile: the destination of the results of some pixels and channels, and how they are computed.
pub(super) struct QuantizedTileEpilogue<'a> {
    pub(super) requantize: &'a RequantizeParameters,
    /// The factors, one per channel.
    pub(super) factors: &'a [f32],
    /// The residual of the first pixel; null if there is none.
    pub(super) residual: *const u8,
    /// The address for the results of the first pixel, and the distance between pixels, both here and in the residual.
    pub(super) output: *mut u8,
    pub(super) pixel: usize,
}

impl QuantizedTileEpilogue<'_> {
    /// Requantizes the sums of some pixels.
    ///
    /// # Safety
    ///
    /// There is room for the results of the pixels, which only the caller accesses; a residual, if any, has the same size.
    #[inline(always)]
    pub(super) unsafe fn finish_pixels<const COUNT: usize>(&self, sums: &[[i32; COUNT]]) {
        // A copy, because the compiler would have to assume that writing results changes the original.
        let (requantize, channels) = (*self.requantize, self.factors.len());
        for (pixel, sums) in sums.iter().enumerate() {
            let place = pixel * self.pixel;
            // SAFETY: guaranteed by the caller.
            let (residual, results) = unsafe {
                let residual = self.residual.wrapping_add(place);
                let residual = (!self.residual.is_null()).then(|| slice::from_raw_parts(residual, channels));
                (residual, slice::from_raw_parts_mut(self.output.add(place), channels))
            };
            let part = RequantizePart { sums: &sums[..channels], factors: self.factors, residual, results };
            // Chunks of constant size vectorize; the remainder is processed one by one.
            part.finish_chunks::<16>(&requantize)
                .finish_chunks::<8>(&requantize)
                .finish_chunks::<1>(&requantize);
        }
    }
}
