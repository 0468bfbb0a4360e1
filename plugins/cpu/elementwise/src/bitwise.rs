//! Bitwise functions of `bool`, which is 0 or 1, and of integers. Except for shifts, signed and unsigned integers share them.

use std::marker::PhantomData;
use std::ops::{BitAnd, BitOr, BitXor, Not};

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::SimdTarget;
use oarlock_sdk::{Dtype, Kernel, KernelCall, PluginError, Result};

use super::element_loop::{ElementMap, MapLoop};
use super::legacy_broadcast;
use super::operand_conversion::OperandConversion;
use super::prepared_loop::PreparedLoop;
use super::registration::{BOOL, INTEGERS, elementwise_kernel, input_operand, output_operand};

/// Bits of an integer.
trait BitwiseInteger:
    Copy
    + Send
    + Sync
    + 'static
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
{
}

// Signed integers are handled as unsigned ones of the same size, which halves the number of loops.
impl BitwiseInteger for u8 {}
impl BitwiseInteger for u16 {}
impl BitwiseInteger for u32 {}
impl BitwiseInteger for u64 {}

macro_rules! maps_of_bits {
    ($($name:ident($($x:ident),*) => $body:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            pub(super) struct $name<B>(pub(super) PhantomData<B>);

            impl<B: BitwiseInteger> ElementMap for $name<B> {
                type Input = ($(maps_of_bits!(@type $x B),)*);
                type Output = B;

                #[inline(always)]
                fn apply<T: SimdTarget>(self, ($($x,)*): Self::Input) -> B {
                    $body
                }
            }
        )*
    };
    (@type $x:ident $bits:ident) => { $bits };
}

maps_of_bits! {
    Both(a, b) => a & b;
    Any(a, b) => a | b;
    One(a, b) => a ^ b;
    Inverse(a) => !a;
}

#[derive(Clone, Copy)]
pub(super) struct BoolNot;

impl ElementMap for BoolNot {
    type Input = (u8,);
    type Output = u8;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x,): (u8,)) -> u8 {
        // Bytes other than 0 and 1 count as true.
        u8::from(x == 0)
    }
}

/// An integer that can be shifted by another.
trait ShiftableInteger: Copy + Send + Sync + 'static {
    /// Shifts in zeros.
    fn shift_left(self, by: Self) -> Self;
    /// Shifts in the sign.
    fn shift_right(self, by: Self) -> Self;
}

macro_rules! shifts {
    ($($integer:ty)*) => {
        $(
            impl ShiftableInteger for $integer {
                #[inline(always)]
                fn shift_left(self, by: Self) -> Self {
                    // Shifted by the width or more, or by a negative number, nothing is left, as in NumPy.
                    if (0..Self::BITS as Self).contains(&by) { self.wrapping_shl(by as u32) } else { 0 }
                }

                #[inline(always)]
                fn shift_right(self, by: Self) -> Self {
                    if (0..Self::BITS as Self).contains(&by) {
                        self.wrapping_shr(by as u32)
                    } else {
                        // All bits become the sign. It takes two shifts, since one by the full width would not shift at all.
                        self >> (Self::BITS - 1) >> 1
                    }
                }
            }
        )*
    };
}

shifts!(i8 u8 i16 u16 i32 u32 i64 u64);

#[derive(Clone, Copy)]
struct ShiftLeft<B>(PhantomData<B>);

impl<B: ShiftableInteger> ElementMap for ShiftLeft<B> {
    type Input = (B, B);
    type Output = B;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x, by): (B, B)) -> B {
        x.shift_left(by)
    }
}

#[derive(Clone, Copy)]
struct ShiftRight<B>(PhantomData<B>);

impl<B: ShiftableInteger> ElementMap for ShiftRight<B> {
    type Input = (B, B);
    type Output = B;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x, by): (B, B)) -> B {
        x.shift_right(by)
    }
}

/// The loop of a bitwise map for elements of a size.
macro_rules! pass {
    ($call:expr, $map:ident, $count:literal) => {{
        let conversion = OperandConversion::without_conversion($call.input(0)?.dtype());
        let conversions = [conversion; $count];
        Ok(match conversion.bits {
            8 => PreparedLoop::new(MapLoop($map::<u8>(PhantomData)), conversions, conversion),
            16 => PreparedLoop::new(MapLoop($map::<u16>(PhantomData)), conversions, conversion),
            32 => PreparedLoop::new(MapLoop($map::<u32>(PhantomData)), conversions, conversion),
            _ => PreparedLoop::new(MapLoop($map::<u64>(PhantomData)), conversions, conversion),
        })
    }};
}

fn shift_loop(call: &KernelCall<'_>) -> Result<PreparedLoop> {
    let is_left = match call.string_attribute("direction")? {
        Some("LEFT") => true,
        Some("RIGHT") => false,
        other => {
            let found = other.unwrap_or("none");
            return Err(PluginError::invalid_argument(format!(
                "expected `direction` to be `LEFT` or `RIGHT`, found `{found}`"
            )));
        }
    };
    integer_shift_loop(call.input(0)?.dtype(), is_left)
}

pub(super) fn integer_shift_loop(dtype: Dtype, is_left: bool) -> Result<PreparedLoop> {
    let conversion = OperandConversion::without_conversion(dtype);
    let conversions = [conversion; 2];
    macro_rules! shifted {
        ($($name:ident $integer:ty),*) => {
            match dtype {
                $(
                    Dtype::$name if is_left => Ok(PreparedLoop::new(MapLoop(ShiftLeft::<$integer>(PhantomData)), conversions, conversion)),
                    Dtype::$name => Ok(PreparedLoop::new(MapLoop(ShiftRight::<$integer>(PhantomData)), conversions, conversion)),
                )*
                other => Err(super::dtype_dispatch::unexpected_dtype(other)),
            }
        };
    }
    shifted!(I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64)
}

fn bool_kernels(
    op: &'static str,
    pass: impl Fn(&KernelCall<'_>) -> Result<PreparedLoop> + Copy + Send + Sync + 'static,
) -> [Kernel<Cpu>; 2] {
    let (inputs, output) = ([input_operand("A", BOOL), input_operand("B", BOOL)], output_operand("C", BOOL));
    [
        elementwise_kernel(op, 7, inputs, output, pass).with_in_place(0, 0).with_in_place(0, 1),
        legacy_broadcast::legacy_kernel(op, inputs, output, pass),
    ]
}

fn integer_kernel(
    op: &'static str,
    since: u32,
    pass: impl Fn(&KernelCall<'_>) -> Result<PreparedLoop> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    let inputs =
        [input_operand("", INTEGERS).with_dtype_group(1), input_operand("", INTEGERS).with_dtype_group(1)];
    elementwise_kernel(op, since, inputs, output_operand("", INTEGERS).with_dtype_group(1), pass)
        .with_in_place(0, 0)
        .with_in_place(0, 1)
}

pub(super) fn bitwise_kernels() -> Vec<Kernel<Cpu>> {
    let not = elementwise_kernel("Not", 1, [input_operand("X", BOOL)], output_operand("Y", BOOL), |_| {
        let bool = OperandConversion::without_conversion(Dtype::BOOL);
        Ok(PreparedLoop::new(MapLoop(BoolNot), [bool], bool))
    });
    let inputs = [input_operand("X", INTEGERS).with_dtype_group(1)];
    let inverse = elementwise_kernel(
        "BitwiseNot",
        18,
        inputs,
        output_operand("Y", INTEGERS).with_dtype_group(1),
        |call| pass!(call, Inverse, 1),
    );
    let mut kernels = vec![
        not.with_in_place(0, 0),
        inverse.with_in_place(0, 0),
        integer_kernel("BitwiseAnd", 18, |call| pass!(call, Both, 2)),
        integer_kernel("BitwiseOr", 18, |call| pass!(call, Any, 2)),
        integer_kernel("BitwiseXor", 18, |call| pass!(call, One, 2)),
        integer_kernel("BitShift", 11, shift_loop),
    ];
    kernels.extend(bool_kernels("And", |call| pass!(call, Both, 2)));
    kernels.extend(bool_kernels("Or", |call| pass!(call, Any, 2)));
    kernels.extend(bool_kernels("Xor", |call| pass!(call, One, 2)));
    kernels
}
