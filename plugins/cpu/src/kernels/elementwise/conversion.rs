//! Loops that turn elements of one dtype into those of another.

#![expect(unsafe_code, reason = "elements of 4 bits are read and written through pointers to bytes")]

use std::marker::PhantomData;

use oarlock_sdk::Dtype;

use super::inner::{Fault, Inner, Loop, Map};
use super::small_floats::{
    DecodeBf16, DecodeF8E4M3, DecodeF8E5M2, DecodeF16, EncodeBf16, EncodeF8E4M3, EncodeF8E4M3Unbounded,
    EncodeF8E5M2, EncodeF8E5M2Unbounded, EncodeF16, RoundToOdd,
};
use crate::isa::{Isa, Target};

/// The loop from one dtype to another that needs no step between, if there is one.
pub(super) fn conversion(from: Dtype, to: Dtype) -> Option<&'static dyn Inner> {
    let found: &'static dyn Inner = match (from, to) {
        (Dtype::F16, Dtype::F32) => &Loop(DecodeF16),
        (Dtype::BF16, Dtype::F32) => &Loop(DecodeBf16),
        (Dtype::F8E4M3, Dtype::F32) => &Loop(DecodeF8E4M3),
        (Dtype::F8E5M2, Dtype::F32) => &Loop(DecodeF8E5M2),
        (Dtype::F32, Dtype::F16) => &Loop(EncodeF16),
        (Dtype::F32, Dtype::BF16) => &Loop(EncodeBf16),
        (Dtype::F32, Dtype::F8E4M3) => &Loop(EncodeF8E4M3),
        (Dtype::F32, Dtype::F8E5M2) => &Loop(EncodeF8E5M2),
        (Dtype::I4, Dtype::I8) => &Unpack::<i8, i8>(PhantomData),
        (Dtype::U4, Dtype::U8) => &Unpack::<u8, u8>(PhantomData),
        (Dtype::I4, Dtype::F32) => &Unpack::<i8, f32>(PhantomData),
        (Dtype::U4, Dtype::F32) => &Unpack::<u8, f32>(PhantomData),
        (Dtype::I8, Dtype::I4) => &Pack::<i8>(PhantomData),
        (Dtype::U8, Dtype::U4) => &Pack::<u8>(PhantomData),
        (Dtype::F32, Dtype::I4 | Dtype::U4) => &Pack::<f32>(PhantomData),
        _ => return between_numbers(from, to),
    };
    Some(found)
}

/// The loop from `f32` to a float of 8 bits that leaves its range where a value does.
pub(super) fn unbounded(to: Dtype) -> Option<&'static dyn Inner> {
    match to {
        Dtype::F8E4M3 => Some(&Loop(EncodeF8E4M3Unbounded)),
        Dtype::F8E5M2 => Some(&Loop(EncodeF8E5M2Unbounded)),
        other => conversion(Dtype::F32, other),
    }
}

/// The loop to `f32` whose results are to be rounded once more.
pub(super) fn to_be_rounded(from: Dtype) -> Option<&'static dyn Inner> {
    match from {
        Dtype::F64 => Some(&Loop(RoundToOdd)),
        Dtype::I32 => Some(&Loop(IntegerToOdd::<i32>(PhantomData))),
        Dtype::U32 => Some(&Loop(IntegerToOdd::<u32>(PhantomData))),
        Dtype::I64 => Some(&Loop(IntegerToOdd::<i64>(PhantomData))),
        Dtype::U64 => Some(&Loop(IntegerToOdd::<u64>(PhantomData))),
        other => conversion(other, Dtype::F32),
    }
}

/// A number of Rust that others can be made of.
pub(super) trait Convert<To>: Copy + Send + Sync + 'static {
    /// The number as another: integers keep their lowest bits, floats lose their fraction.
    fn convert(self) -> To;
}

/// The map of [`Convert`].
pub(super) struct Conversion<From, To>(PhantomData<(From, To)>);

impl<From, To> Clone for Conversion<From, To> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<From, To> Copy for Conversion<From, To> {}

impl<From: Convert<To>, To: Copy + Send + Sync + 'static> Map for Conversion<From, To> {
    type Input = (From,);
    type Output = To;

    #[inline(always)]
    fn apply<T: Target>(self, (x,): (From,)) -> To {
        x.convert()
    }
}

/// Integers as `f32` that are to be rounded once more.
#[derive(Clone, Copy)]
struct IntegerToOdd<From>(PhantomData<From>);

impl<From: Convert<f64>> Map for IntegerToOdd<From> {
    type Input = (From,);
    type Output = f32;

    #[inline(always)]
    fn apply<T: Target>(self, (x,): (From,)) -> f32 {
        RoundToOdd.apply::<T>((x.convert(),))
    }
}

/// Whether a number is other than 0.
#[derive(Clone, Copy)]
struct IsNonzero<From>(PhantomData<From>);

impl<From: Convert<f64> + PartialEq + Default> Map for IsNonzero<From> {
    type Input = (From,);
    type Output = u8;

    #[inline(always)]
    fn apply<T: Target>(self, (x,): (From,)) -> u8 {
        u8::from(x != From::default())
    }
}

macro_rules! convert {
    ($from:ty as $by:ty => $($to:ty)*) => {
        $(
            impl Convert<$to> for $from {
                #[inline(always)]
                fn convert(self) -> $to {
                    self as $by as $to
                }
            }
        )*
    };
}

macro_rules! integers {
    ($($from:ty)*) => { $(convert! { $from as $from => i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 })* };
}

// What is cut off the integer part of a float is what C and NumPy cut off on most machines.
macro_rules! floats {
    ($($from:ty)*) => {
        $(
            convert! { $from as i32 => i8 u8 i16 u16 }
            convert! { $from as i64 => u32 }
            convert! { $from as $from => i32 i64 f32 f64 }

            impl Convert<u64> for $from {
                #[inline(always)]
                fn convert(self) -> u64 {
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
        fn between_numbers(from: Dtype, to: Dtype) -> Option<&'static dyn Inner> {
            match from {
                $(Dtype::$from_dtype => table!(@row $from, to, $to_list),)*
                Dtype::BOOL => table!(@row u8, to, $to_list),
                _ => None,
            }
        }
    };
    (@row $from:ty, $to:ident, [$($to_dtype:ident $to_type:ty),*]) => {
        match $to {
            $(Dtype::$to_dtype => Some(&Loop(Conversion::<$from, $to_type>(PhantomData))),)*
            Dtype::BOOL => Some(&Loop(IsNonzero::<$from>(PhantomData))),
            _ => None,
        }
    };
}

table! {
    I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64, F32 f32, F64 f64
    => [I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64, F32 f32, F64 f64]
}

/// Takes halves out of bytes, the lower one first.
struct Unpack<Half, To>(PhantomData<(Half, To)>);

/// A byte whose halves are numbers.
trait Halves: Send + Sync {
    /// The lower half of a byte.
    fn lower(byte: u8) -> Self;
}

impl Halves for i8 {
    #[inline(always)]
    fn lower(byte: u8) -> Self {
        (byte << 4) as i8 >> 4
    }
}

impl Halves for u8 {
    #[inline(always)]
    fn lower(byte: u8) -> Self {
        byte & 0xF
    }
}

impl<Half: Halves, To: From<Half> + Send + Sync> Inner for Unpack<Half, To> {
    unsafe fn run(&self, _: Isa, inputs: &[*const u8], output: *mut u8, count: usize) -> Result<(), Fault> {
        let (input, output) = (inputs[0], output.cast::<To>());
        for index in 0..count {
            // SAFETY: the caller vouches for `count` halves of bytes and as many elements.
            unsafe {
                let byte = *input.add(index / 2) >> (index % 2 * 4);
                output.add(index).write(Half::lower(byte).into());
            }
        }
        Ok(())
    }
}

/// Puts two elements into each byte, the first in the lower half. The last byte's upper half is 0 without an element.
struct Pack<From>(PhantomData<From>);

impl<From: Convert<i8>> Inner for Pack<From> {
    unsafe fn run(&self, _: Isa, inputs: &[*const u8], output: *mut u8, count: usize) -> Result<(), Fault> {
        let input = inputs[0].cast::<From>();
        for index in (0..count).step_by(2) {
            // SAFETY: the caller vouches for `count` elements and as many halves of bytes.
            unsafe {
                let lower = (*input.add(index)).convert() & 0xF;
                let upper = if index + 1 < count { (*input.add(index + 1)).convert() << 4 } else { 0 };
                output.add(index / 2).write((lower | upper).cast_unsigned());
            }
        }
        Ok(())
    }
}
