//! Functions of bits: those of `bool`, which is 0 or 1, and those of integers, which are the same with and without a sign but
//! for shifts.

use std::marker::PhantomData;
use std::ops::{BitAnd, BitOr, BitXor, Not};

use oarlock_sdk::{Call, Dtype, Error, Kernel, Result};

use super::aligned;
use super::inner::{Loop, Map};
use super::pass::Pass;
use super::port::Port;
use super::row::{BOOL, INTEGERS, input, output, row};
use crate::device::Cpu;
use crate::isa::Target;

/// Bits of an integer.
trait Bits:
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

impl Bits for u8 {}
impl Bits for u16 {}
impl Bits for u32 {}
impl Bits for u64 {}

macro_rules! maps_of_bits {
    ($($name:ident($($x:ident),*) => $body:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $name<B>(PhantomData<B>);

            impl<B: Bits> Map for $name<B> {
                type Input = ($(maps_of_bits!(@type $x B),)*);
                type Output = B;

                #[inline(always)]
                fn apply<T: Target>(self, ($($x,)*): Self::Input) -> B {
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

/// The opposite of a `bool`.
#[derive(Clone, Copy)]
struct Opposite;

impl Map for Opposite {
    type Input = (u8,);
    type Output = u8;

    #[inline(always)]
    fn apply<T: Target>(self, (x,): (u8,)) -> u8 {
        u8::from(x == 0)
    }
}

/// An integer that can be shifted by as many bits as another says.
trait Shift: Copy + Send + Sync + 'static {
    /// To the left, with zeros from the right.
    fn left(self, by: Self) -> Self;
    /// To the right, with the sign from the left.
    fn right(self, by: Self) -> Self;
}

macro_rules! shifts {
    ($($integer:ty)*) => {
        $(
            impl Shift for $integer {
                #[inline(always)]
                fn left(self, by: Self) -> Self {
                    if (0..Self::BITS as Self).contains(&by) { self.wrapping_shl(by as u32) } else { 0 }
                }

                #[inline(always)]
                fn right(self, by: Self) -> Self {
                    if (0..Self::BITS as Self).contains(&by) {
                        self.wrapping_shr(by as u32)
                    } else {
                        // All bits are the sign: a shift by all of them at once would be none.
                        self >> (Self::BITS - 1) >> 1
                    }
                }
            }
        )*
    };
}

shifts!(i8 u8 i16 u16 i32 u32 i64 u64);

#[derive(Clone, Copy)]
struct Left<B>(PhantomData<B>);

impl<B: Shift> Map for Left<B> {
    type Input = (B, B);
    type Output = B;

    #[inline(always)]
    fn apply<T: Target>(self, (x, by): (B, B)) -> B {
        x.left(by)
    }
}

#[derive(Clone, Copy)]
struct Right<B>(PhantomData<B>);

impl<B: Shift> Map for Right<B> {
    type Input = (B, B);
    type Output = B;

    #[inline(always)]
    fn apply<T: Target>(self, (x, by): (B, B)) -> B {
        x.right(by)
    }
}

/// The pass of a map of bits, by their number.
macro_rules! pass {
    ($call:expr, $map:ident, $count:literal) => {{
        let port = Port::direct($call.input(0)?.dtype());
        let ports = [port; $count];
        Ok(match port.bits {
            8 => Pass::new(Loop($map::<u8>(PhantomData)), ports, port),
            16 => Pass::new(Loop($map::<u16>(PhantomData)), ports, port),
            32 => Pass::new(Loop($map::<u32>(PhantomData)), ports, port),
            _ => Pass::new(Loop($map::<u64>(PhantomData)), ports, port),
        })
    }};
}

fn shift(call: &Call<'_>) -> Result<Pass> {
    let is_left = match call.string("direction")? {
        Some("LEFT") => true,
        Some("RIGHT") => false,
        other => {
            let found = other.unwrap_or("none");
            return Err(Error::invalid_argument(format!(
                "expected `direction` to be `LEFT` or `RIGHT`, found `{found}`"
            )));
        }
    };
    shifted(call.input(0)?.dtype(), is_left)
}

/// The pass of a shift of integers of a dtype.
pub(super) fn shifted(dtype: Dtype, is_left: bool) -> Result<Pass> {
    let port = Port::direct(dtype);
    let ports = [port; 2];
    macro_rules! shifted {
        ($($name:ident $integer:ty),*) => {
            match dtype {
                $(
                    Dtype::$name if is_left => Ok(Pass::new(Loop(Left::<$integer>(PhantomData)), ports, port)),
                    Dtype::$name => Ok(Pass::new(Loop(Right::<$integer>(PhantomData)), ports, port)),
                )*
                other => Err(super::number::unexpected(other)),
            }
        };
    }
    shifted!(I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64)
}

fn of_bools(
    op: &'static str,
    pass: impl Fn(&Call<'_>) -> Result<Pass> + Copy + Send + Sync + 'static,
) -> [Kernel<Cpu>; 2] {
    let (inputs, output) = ([input("A", BOOL), input("B", BOOL)], output("C", BOOL));
    [row(op, 7, inputs, output, pass).in_place(0, 0).in_place(0, 1), aligned::row(op, inputs, output, pass)]
}

fn of_integers(
    op: &'static str,
    since: u32,
    pass: impl Fn(&Call<'_>) -> Result<Pass> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    let inputs = [input("", INTEGERS).group(1), input("", INTEGERS).group(1)];
    row(op, since, inputs, output("", INTEGERS).group(1), pass).in_place(0, 0).in_place(0, 1)
}

/// The rows of all functions of bits.
pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let not = row("Not", 1, [input("X", BOOL)], output("Y", BOOL), |_| {
        let bool = Port::direct(Dtype::BOOL);
        Ok(Pass::new(Loop(Opposite), [bool], bool))
    });
    let inputs = [input("X", INTEGERS).group(1)];
    let inverse =
        row("BitwiseNot", 18, inputs, output("Y", INTEGERS).group(1), |call| pass!(call, Inverse, 1));
    let mut kernels = vec![
        not.in_place(0, 0),
        inverse.in_place(0, 0),
        of_integers("BitwiseAnd", 18, |call| pass!(call, Both, 2)),
        of_integers("BitwiseOr", 18, |call| pass!(call, Any, 2)),
        of_integers("BitwiseXor", 18, |call| pass!(call, One, 2)),
        of_integers("BitShift", 11, shift),
    ];
    kernels.extend(of_bools("And", |call| pass!(call, Both, 2)));
    kernels.extend(of_bools("Or", |call| pass!(call, Any, 2)));
    kernels.extend(of_bools("Xor", |call| pass!(call, One, 2)));
    kernels
}
