//! `Pow`, whose exponents may be of another dtype than its bases.

#![expect(unsafe_code, reason = "exponents are looked at before the loop over them runs")]

use std::marker::PhantomData;

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, Result, dtype_set, family};

use super::aligned;
use super::inner::{Fault, Inner, Loop, Map};
use super::math;
use super::number::{Number, unexpected};
use super::pass::Pass;
use super::port::{Port, computed};
use super::row::{FLOATS, INTEGERS, NUMBERS, input, output, row};
use super::unary::maps;
use crate::device::Cpu;
use crate::isa::{Isa, Target};

maps! {
    Square(x) => x.times(x);
    Cube(x) => x.times(x).times(x);
}

#[derive(Clone, Copy)]
struct Power<F>(PhantomData<F>);

impl Map for Power<f32> {
    type Input = (f32, f32);
    type Output = f32;

    #[inline(always)]
    fn apply<T: Target>(self, (base, exponent): (f32, f32)) -> f32 {
        math::power::<T>(base, exponent)
    }
}

impl Map for Power<f64> {
    type Input = (f64, f64);
    type Output = f64;

    #[inline(always)]
    fn apply<T: Target>(self, (base, exponent): (f64, f64)) -> f64 {
        base.powf(exponent)
    }
}

/// Powers of floats, of which squares and cubes are products.
struct FloatPowers<F>(PhantomData<F>);

impl<F: Number + From<f32>> Inner for FloatPowers<F>
where
    Power<F>: Map,
{
    unsafe fn run(&self, isa: Isa, inputs: &[*const u8], output: *mut u8, count: usize) -> Result<(), Fault> {
        let exponents = inputs[1].cast::<F>();
        // SAFETY: the caller vouches for `count` exponents.
        let is_all = |power: f32| (0..count).all(|index| unsafe { *exponents.add(index) } == F::from(power));
        // SAFETY: as the caller vouches.
        unsafe {
            if is_all(2.0) {
                Loop(Square::<F>(PhantomData)).run(isa, &inputs[..1], output, count)
            } else if is_all(3.0) {
                Loop(Cube::<F>(PhantomData)).run(isa, &inputs[..1], output, count)
            } else {
                Loop(Power::<F>(PhantomData)).run(isa, inputs, output, count)
            }
        }
    }
}

/// Powers of integers that wrap around.
#[derive(Clone, Copy)]
struct IntegerPower<N>(PhantomData<N>);

macro_rules! integer_powers {
    ($($integer:ty)*) => {
        $(
            impl Map for IntegerPower<$integer> {
                type Input = ($integer, i64);
                type Output = $integer;
                const HAS_EXCEPTIONS: bool = true;
                const IS_VECTORIZED: bool = false;

                #[inline(always)]
                fn apply<T: Target>(self, (base, exponent): ($integer, i64)) -> $integer {
                    match (base, exponent) {
                        (1, _) | (_, 0) => 1,
                        (-1, _) => if exponent & 1 == 0 { 1 } else { -1 },
                        (_, ..0) => 0,
                        // A power that large wraps to 0, or its base is 0.
                        (_, 64..) if base & 1 == 0 => 0,
                        _ => integer_power(base, exponent.cast_unsigned()),
                    }
                }

                #[inline(always)]
                fn is_exception(self, (base, exponent): ($integer, i64)) -> bool {
                    (base == 0) & (exponent < 0)
                }

                fn apply_to_any(self, (base, exponent): ($integer, i64)) -> Result<$integer, Fault> {
                    if self.is_exception((base, exponent)) {
                        return Err(Fault("expected exponents of 0 that are not negative, found a negative one"));
                    }
                    Ok(self.apply::<crate::isa::Baseline>((base, exponent)))
                }
            }

            impl Map for IntegerPowerOfFloat<$integer> {
                type Input = ($integer, f64);
                type Output = $integer;
                const IS_VECTORIZED: bool = false;

                #[inline(always)]
                fn apply<T: Target>(self, (base, exponent): ($integer, f64)) -> $integer {
                    (base as f64).powf(exponent) as $integer
                }
            }
        )*
    };
}

/// Powers of integers with an exponent that need not be whole, rounded towards 0.
#[derive(Clone, Copy)]
struct IntegerPowerOfFloat<N>(PhantomData<N>);

integer_powers!(i32 i64);

fn integer_power<N: Number>(mut base: N, mut exponent: u64) -> N {
    let mut result = N::ONE;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.times(base);
        }
        base = base.times(base);
        exponent >>= 1;
    }
    result
}

fn pass(call: &Call<'_>) -> Result<Pass> {
    let (dtype, exponents) = (call.input(0)?.dtype(), call.input(1)?.dtype());
    let base = computed(dtype);
    let is_whole = INTEGERS.0 >> exponents.0 & 1 == 1;
    let exponent = match base {
        Dtype::F32 | Dtype::F64 => base,
        _ if is_whole => Dtype::I64,
        _ => Dtype::F64,
    };
    let ports = [Port::input(dtype, base)?, Port::input(exponents, exponent)?];
    let output = Port::output(dtype, base)?;
    Ok(match base {
        Dtype::F32 => Pass::new(FloatPowers::<f32>(PhantomData), ports, output),
        Dtype::F64 => Pass::new(FloatPowers::<f64>(PhantomData), ports, output),
        Dtype::I32 if is_whole => Pass::new(Loop(IntegerPower::<i32>(PhantomData)), ports, output),
        Dtype::I64 if is_whole => Pass::new(Loop(IntegerPower::<i64>(PhantomData)), ports, output),
        Dtype::I32 => Pass::new(Loop(IntegerPowerOfFloat::<i32>(PhantomData)), ports, output),
        Dtype::I64 => Pass::new(Loop(IntegerPowerOfFloat::<i64>(PhantomData)), ports, output),
        other => return Err(unexpected(other)),
    })
}

/// The rows of `Pow`.
pub(super) fn kernels() -> [Kernel<Cpu>; 3] {
    const NARROW: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32]);
    const WIDE: DtypeSet = dtype_set(&[Dtype::F64, Dtype::I32, Dtype::I64]);
    let later = |bases: DtypeSet, exponents| {
        let inputs = [input("X", bases).group(1), input("Y", exponents)];
        row("Pow", 7, inputs, output("Z", bases).group(1), pass).in_place(0, 0)
    };
    let floats = [input("X", FLOATS).group(1), input("Y", FLOATS).group(1)];
    [
        later(NARROW, NUMBERS),
        // Halves are not made into numbers of these dtypes.
        later(WIDE, INTEGERS.union(family::FLOATING)),
        aligned::row("Pow", floats, output("Z", FLOATS).group(1), pass),
    ]
}
