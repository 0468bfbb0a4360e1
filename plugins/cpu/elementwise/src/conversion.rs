//! Loops that convert elements of one dtype to another.

#![expect(
    unsafe_code,
    reason = "elements of less than a byte are read and written through pointers to bytes, and conversions are unchecked"
)]

use std::marker::PhantomData;

use oarlock_cpu_base::f16_conversion::{round_to_f16, widen_f16};
use oarlock_cpu_base::isa::{Isa, SimdTarget};
use oarlock_sdk::{Dtype, Element};

use super::dtype_dispatch::is_common_dtype;
use super::element_loop::{ElementFault, ElementLoop, ElementMap, MapLoop};
use super::small_floats::{
    DecodeBf16, DecodeF8E4M3, DecodeF8E4M3Fnuz, DecodeF8E5M2, DecodeF8E5M2Fnuz, DecodeF8E8M0, EncodeBf16,
    EncodeF8E4M3, EncodeF8E4M3Fnuz, EncodeF8E4M3FnuzUnbounded, EncodeF8E4M3Unbounded, EncodeF8E5M2,
    EncodeF8E5M2Fnuz, EncodeF8E5M2FnuzUnbounded, EncodeF8E5M2Unbounded, EncodeF8E8M0, PowerRounding,
    RoundToOdd, decode_f4e2m1, encode_f4e2m1,
};

/// The loop that converts one dtype directly to another, if there is one.
pub(super) fn find_conversion(from: Dtype, to: Dtype) -> Option<&'static dyn ElementLoop> {
    let found: &'static dyn ElementLoop = match (from, to) {
        (Dtype::F16, Dtype::F32) => &SliceLoop(widen_f16),
        (Dtype::BF16, Dtype::F32) => &MapLoop(DecodeBf16),
        (Dtype::F8E4M3, Dtype::F32) => &MapLoop(DecodeF8E4M3),
        (Dtype::F8E5M2, Dtype::F32) => &MapLoop(DecodeF8E5M2),
        (Dtype::F8E4M3FNUZ, Dtype::F32) => &MapLoop(DecodeF8E4M3Fnuz),
        (Dtype::F8E5M2FNUZ, Dtype::F32) => &MapLoop(DecodeF8E5M2Fnuz),
        (Dtype::F8E8M0, Dtype::F32) => &MapLoop(DecodeF8E8M0),
        (Dtype::F4E2M1, Dtype::F32) => &UnpackBits::<4, f32>(decode_f4e2m1),
        (Dtype::F32, Dtype::F16) => &SliceLoop(round_to_f16),
        (Dtype::F32, Dtype::BF16) => &MapLoop(EncodeBf16),
        (Dtype::F32, Dtype::I64) => &MapLoop(FloatToI64),
        (Dtype::F32, Dtype::F8E4M3) => &MapLoop(EncodeF8E4M3),
        (Dtype::F32, Dtype::F8E5M2) => &MapLoop(EncodeF8E5M2),
        (Dtype::F32, Dtype::F8E4M3FNUZ) => &MapLoop(EncodeF8E4M3Fnuz),
        (Dtype::F32, Dtype::F8E5M2FNUZ) => &MapLoop(EncodeF8E5M2Fnuz),
        // The default of the attribute `round_mode`.
        (Dtype::F32, Dtype::F8E8M0) => &MapLoop(EncodeF8E8M0 { rounding: PowerRounding::Up, saturate: true }),
        (Dtype::F32, Dtype::F4E2M1) => &PackBits::<4, f32>(encode_f4e2m1),
        (Dtype::I4, Dtype::I8) => &UnpackBits::<4, i8>(sign_extend::<4>),
        (Dtype::U4, Dtype::U8) => &UnpackBits::<4, u8>(|part| part),
        (Dtype::I2, Dtype::I8) => &UnpackBits::<2, i8>(sign_extend::<2>),
        (Dtype::U2, Dtype::U8) => &UnpackBits::<2, u8>(|part| part),
        (Dtype::I4, Dtype::F32) => &UnpackBits::<4, f32>(|part| sign_extend::<4>(part).into()),
        (Dtype::I2, Dtype::F32) => &UnpackBits::<2, f32>(|part| sign_extend::<2>(part).into()),
        (Dtype::U4, Dtype::F32) => &UnpackBits::<4, f32>(f32::from),
        (Dtype::U2, Dtype::F32) => &UnpackBits::<2, f32>(f32::from),
        (Dtype::I8, Dtype::I4) => &PackBits::<4, i8>(i8::cast_unsigned),
        (Dtype::I8, Dtype::I2) => &PackBits::<2, i8>(i8::cast_unsigned),
        (Dtype::U8, Dtype::U4) => &PackBits::<4, u8>(|element| element),
        (Dtype::U8, Dtype::U2) => &PackBits::<2, u8>(|element| element),
        // The lowest bits are the same, whether the integer has a sign or not.
        (Dtype::F32, Dtype::I4 | Dtype::U4) => &PackBits::<4, f32>(<f32 as NumberConversion<u8>>::convert_to),
        (Dtype::F32, Dtype::I2 | Dtype::U2) => &PackBits::<2, f32>(<f32 as NumberConversion<u8>>::convert_to),
        _ => return find_number_conversion(from, to),
    };
    Some(found)
}

/// A conversion of slices to elements of another size.
struct SliceLoop<From, To>(fn(Isa, &[From], &mut [To]));

impl<From, To> ElementLoop for SliceLoop<From, To> {
    unsafe fn run_loop(
        &self,
        isa: Isa,
        inputs: &[*const u8],
        output: *mut u8,
        count: usize,
    ) -> Result<(), ElementFault> {
        // SAFETY: the caller vouches for `count` elements of each operand, which do not overlap if their sizes differ.
        let (from, to) = unsafe {
            (
                std::slice::from_raw_parts(inputs[0].cast::<From>(), count),
                std::slice::from_raw_parts_mut(output.cast::<To>(), count),
            )
        };
        (self.0)(isa, from, to);
        Ok(())
    }
}

/// The loop from `f32` to an 8-bit float whose results overflow instead of saturating.
pub(super) fn find_unbounded_conversion(to: Dtype) -> Option<&'static dyn ElementLoop> {
    match to {
        Dtype::F8E4M3 => Some(&MapLoop(EncodeF8E4M3Unbounded)),
        Dtype::F8E5M2 => Some(&MapLoop(EncodeF8E5M2Unbounded)),
        Dtype::F8E4M3FNUZ => Some(&MapLoop(EncodeF8E4M3FnuzUnbounded)),
        Dtype::F8E5M2FNUZ => Some(&MapLoop(EncodeF8E5M2FnuzUnbounded)),
        other => find_conversion(Dtype::F32, other),
    }
}

pub(super) fn power_of_two_conversion(rounding: PowerRounding, saturate: bool) -> &'static dyn ElementLoop {
    macro_rules! powers {
        ($($rounding:ident)*) => {
            match (rounding, saturate) {
                $(
                    (PowerRounding::$rounding, true) => {
                        &MapLoop(EncodeF8E8M0 { rounding: PowerRounding::$rounding, saturate: true })
                    }
                    (PowerRounding::$rounding, false) => {
                        &MapLoop(EncodeF8E8M0 { rounding: PowerRounding::$rounding, saturate: false })
                    }
                )*
            }
        };
    }
    powers!(Up Down Nearest)
}

/// The loop to `f32` for results that are rounded once more.
pub(super) fn find_round_to_odd(from: Dtype) -> Option<&'static dyn ElementLoop> {
    match from {
        Dtype::F64 => Some(&MapLoop(RoundToOdd)),
        Dtype::I32 => Some(&MapLoop(IntegerRoundToOdd::<i32>(PhantomData))),
        Dtype::U32 => Some(&MapLoop(IntegerRoundToOdd::<u32>(PhantomData))),
        Dtype::I64 => Some(&MapLoop(IntegerRoundToOdd::<i64>(PhantomData))),
        Dtype::U64 => Some(&MapLoop(IntegerRoundToOdd::<u64>(PhantomData))),
        other => find_conversion(other, Dtype::F32),
    }
}

/// A Rust number that converts to others.
pub(super) trait NumberConversion<To>: Copy + Send + Sync + 'static {
    /// Integers keep their lowest bits, floats lose their fraction.
    fn convert_to(self) -> To;
}

pub(super) struct ConversionMap<From, To>(PhantomData<(From, To)>);

impl<From, To> Clone for ConversionMap<From, To> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<From, To> Copy for ConversionMap<From, To> {}

impl<From: NumberConversion<To> + Element, To: Element> ElementMap for ConversionMap<From, To> {
    type Input = (From,);
    type Output = To;
    const IS_VECTORIZED: bool = is_common_dtype(From::DTYPE) && is_common_dtype(To::DTYPE);

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x,): (From,)) -> To {
        x.convert_to()
    }
}

/// Integers as `f32`, rounded to odd so that they can be rounded once more.
#[derive(Clone, Copy)]
struct IntegerRoundToOdd<From>(PhantomData<From>);

impl<From: OddFloat> ElementMap for IntegerRoundToOdd<From> {
    type Input = (From,);
    type Output = f32;
    const IS_VECTORIZED: bool = is_common_dtype(From::DTYPE);

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x,): (From,)) -> f32 {
        RoundToOdd.apply::<T>((x.to_odd_float(),))
    }
}

/// An integer that converts to `f64` by rounding to odd.
trait OddFloat: Element {
    fn to_odd_float(self) -> f64;
}

macro_rules! exact_floats {
    ($($integer:ty)*) => {
        $(
            impl OddFloat for $integer {
                #[inline(always)]
                fn to_odd_float(self) -> f64 {
                    self.into()
                }
            }
        )*
    };
}

macro_rules! odd_floats {
    ($($integer:ty)*) => {
        $(
            impl OddFloat for $integer {
                #[inline(always)]
                fn to_odd_float(self) -> f64 {
                    // An `f64` holds 53 bits, so 64 bits less the lowest 11 are exact. Were those 11 rounded to nearest, a
                    // number beside a tie would become the tie, and the next rounding would go to the wrong side.
                    const DROPPED: u32 = u64::BITS - f64::MANTISSA_DIGITS;
                    let nearest = self as f64;
                    if nearest.abs() < (1_u64 << f64::MANTISSA_DIGITS) as f64 {
                        return nearest;
                    }
                    let kept = self >> DROPPED;
                    let is_inexact = kept << DROPPED != self;
                    (kept | Self::from(is_inexact)) as f64 * (1_u64 << DROPPED) as f64
                }
            }
        )*
    };
}

exact_floats!(i32 u32);
odd_floats!(i64 u64);

/// `f32` as `i64`. Before AVX-512, vectors convert to `i32` only, so other numbers are exceptions.
#[derive(Clone, Copy)]
struct FloatToI64;

impl ElementMap for FloatToI64 {
    type Input = (f32,);
    type Output = i64;
    const HAS_EXCEPTIONS: bool = true;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x,): (f32,)) -> i64 {
        // SAFETY: numbers out of the range of `i32`, and NaN, are exceptions.
        i64::from(unsafe { x.to_int_unchecked::<i32>() })
    }

    #[inline(always)]
    fn is_exception(self, (x,): (f32,)) -> bool {
        const BOUND: f32 = (1u32 << 31) as f32;
        !(x > -BOUND && x < BOUND)
    }

    fn apply_to_any(self, (x,): (f32,)) -> Result<i64, ElementFault> {
        Ok(x as i64)
    }
}

#[derive(Clone, Copy)]
struct IsNonzero<From>(PhantomData<From>);

impl<From: NumberConversion<f64> + Element + PartialEq + Default> ElementMap for IsNonzero<From> {
    type Input = (From,);
    type Output = u8;
    const IS_VECTORIZED: bool = is_common_dtype(From::DTYPE);

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x,): (From,)) -> u8 {
        u8::from(x != From::default())
    }
}

macro_rules! convert {
    ($from:ty as $by:ty => $($to:ty)*) => {
        $(
            impl NumberConversion<$to> for $from {
                #[inline(always)]
                fn convert_to(self) -> $to {
                    self as $by as $to
                }
            }
        )*
    };
}

macro_rules! integers {
    ($($from:ty)*) => { $(convert! { $from as $from => i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 })* };
}

/// Conversions by way of `i32`: numbers out of its range become its nearest end, and NaN becomes 0. What `as` compiles to does not
/// vectorize.
macro_rules! small_integers {
    ($from:ty => $($to:ty)*) => {
        $(
            impl NumberConversion<$to> for $from {
                #[inline(always)]
                fn convert_to(self) -> $to {
                    const LEAST: $from = i32::MIN as $from;
                    // The lowest bits of the least integer are 0, so NaN may become it.
                    let raised = if self > LEAST { self } else { LEAST };
                    let is_large = raised >= -LEAST;
                    // SAFETY: the number is neither NaN nor out of the range of `i32`.
                    let whole = unsafe { (if is_large { LEAST } else { raised }).to_int_unchecked::<i32>() };
                    (if is_large { i32::MAX } else { whole }) as $to
                }
            }
        )*
    };
}

// Bits of a float's integer part that do not fit are dropped, as C and NumPy do on most machines.
macro_rules! floats {
    ($($from:ty)*) => {
        $(
            small_integers! { $from => i8 u8 i16 u16 }
            convert! { $from as i64 => u32 }
            convert! { $from as $from => i32 i64 f32 f64 }

            impl NumberConversion<u64> for $from {
                #[inline(always)]
                fn convert_to(self) -> u64 {
                    // By way of `i64`, negative numbers wrap around, but those from 2⁶³ on would saturate.
                    if self < 0.0 { self as i64 as u64 } else { self as u64 }
                }
            }
        )*
    };
}

integers!(i8 u8 i16 u16 i32 u32 i64 u64);
floats!(f32 f64);

macro_rules! table {
    ($($from_dtype:ident $from:ty),* => $to_list:tt) => {
        fn find_number_conversion(from: Dtype, to: Dtype) -> Option<&'static dyn ElementLoop> {
            match from {
                $(Dtype::$from_dtype => table!(@row $from, to, $to_list),)*
                Dtype::BOOL => table!(@row u8, to, $to_list),
                _ => None,
            }
        }
    };
    (@row $from:ty, $to:ident, [$($to_dtype:ident $to_type:ty),*]) => {
        match $to {
            $(Dtype::$to_dtype => Some(&MapLoop(ConversionMap::<$from, $to_type>(PhantomData))),)*
            Dtype::BOOL => Some(&MapLoop(IsNonzero::<$from>(PhantomData))),
            _ => None,
        }
    };
}

table! {
    I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64, F32 f32, F64 f64
    => [I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64, F32 f32, F64 f64]
}

/// Unpacks elements of `BITS` bits from bytes, the lowest first. The function decodes the bits of one.
struct UnpackBits<const BITS: usize, To>(fn(u8) -> To);

/// Sign-extends the lowest bits of a byte.
fn sign_extend<const BITS: usize>(part: u8) -> i8 {
    (part << (8 - BITS)).cast_signed() >> (8 - BITS)
}

impl<const BITS: usize, To: Send + Sync> ElementLoop for UnpackBits<BITS, To> {
    unsafe fn run_loop(
        &self,
        _: Isa,
        inputs: &[*const u8],
        output: *mut u8,
        count: usize,
    ) -> Result<(), ElementFault> {
        let (input, output, shared) = (inputs[0], output.cast::<To>(), 8 / BITS);
        for index in 0..count {
            // SAFETY: the caller vouches for `count` packed elements and as many outputs.
            unsafe {
                let part = *input.add(index / shared) >> (index % shared * BITS) & ((1 << BITS) - 1);
                output.add(index).write((self.0)(part));
            }
        }
        Ok(())
    }
}

/// Packs elements of `BITS` bits into bytes, the first in the lowest bits. Unused bits of the last byte are 0.
struct PackBits<const BITS: usize, From>(fn(From) -> u8);

impl<const BITS: usize, From: Copy + Send + Sync> ElementLoop for PackBits<BITS, From> {
    unsafe fn run_loop(
        &self,
        _: Isa,
        inputs: &[*const u8],
        output: *mut u8,
        count: usize,
    ) -> Result<(), ElementFault> {
        let (input, shared) = (inputs[0].cast::<From>(), 8 / BITS);
        for first in (0..count).step_by(shared) {
            let byte = (0..shared.min(count - first)).fold(0, |byte, place| {
                // SAFETY: the caller vouches for `count` elements.
                let part = (self.0)(unsafe { *input.add(first + place) }) & ((1 << BITS) - 1);
                byte | part << (place * BITS)
            });
            // SAFETY: the caller vouches for room for as many packed elements as elements.
            unsafe { output.add(first / shared).write(byte) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_integers_beside_a_tie_stay_on_their_side_of_it() {
        // In the middle of two `bf16`, and the integers around it, which are the same number as an `f64`.
        let tie = (1_i64 << 62) + (1 << 54);
        for (integer, order) in [(tie - 1, -1), (tie, 0), (tie + 1, 1)] {
            let difference = |odd: f64, tie: f64| (odd - tie).total_cmp(&0.0) as i8;
            assert_eq!(difference(integer.to_odd_float(), tie as f64), order, "{integer}");
            assert_eq!(difference((-integer).to_odd_float(), -(tie as f64)), -order, "-{integer}");
            assert_eq!(difference((integer as u64).to_odd_float(), tie as f64), order, "{integer}");
        }
        for exact in [0, -1, (1 << 53) - 1, -(1 << 53), i64::MIN] {
            assert_eq!(exact.to_odd_float() as i128, i128::from(exact));
        }
        assert_eq!(u64::MAX.to_odd_float() as u64, u64::MAX << 11);
    }
}
