//! `Pow`, whose exponents may be of another dtype than its bases.

#![expect(unsafe_code, reason = "exponents are looked at before the loop over them runs")]

use std::marker::PhantomData;

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::{Isa, SimdTarget};
use oarlock_cpu_base::math::{self, MathFloat};
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, Result, dtype_set, family};

use super::dtype_dispatch::unexpected_dtype;
use super::element_loop::{ElementFault, ElementLoop, ElementMap, MapLoop};
use super::legacy_broadcast;
use super::operand_conversion::{OperandConversion, compute_dtype};
use super::prepared_loop::PreparedLoop;
use super::registration::{FLOATS, INTEGERS, NUMBERS, elementwise_kernel, input_operand, output_operand};
use super::unary::maps;

maps! {
    Square(x) => x.times(x);
    Cube(x) => x.times(x).times(x);
}

/// Maps whose functions are those of floats only.
macro_rules! float_maps {
    ($($name:ident($x:ident) => $body:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            pub(super) struct $name<F>(pub(super) PhantomData<F>);

            impl<F: MathFloat> ElementMap for $name<F> {
                type Input = (F,);
                type Output = F;

                #[inline(always)]
                fn apply<T: SimdTarget>(self, ($x,): (F,)) -> F {
                    $body
                }
            }
        )*
    };
}

float_maps! {
    RootPower(x) => positive_root(x);
    InverseRootPower(x) => F::ONE / positive_root(x);
    InversePower(x) => F::ONE / x;
}

/// The power of ½. Unlike the square root, it is infinite for -∞, and not -0 for -0.
#[inline(always)]
fn positive_root<F: MathFloat>(x: F) -> F {
    let root = (x + F::ZERO).square_root();
    if x == -F::INFINITY { F::INFINITY } else { root }
}

#[derive(Clone, Copy)]
pub(super) struct PowerMap<F>(PhantomData<F>);

impl ElementMap for PowerMap<f32> {
    type Input = (f32, f32);
    type Output = f32;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (base, exponent): (f32, f32)) -> f32 {
        math::power::<T>(base, exponent)
    }
}

impl ElementMap for PowerMap<f64> {
    type Input = (f64, f64);
    type Output = f64;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (base, exponent): (f64, f64)) -> f64 {
        base.powf(exponent)
    }
}

/// Powers of floats. If all exponents are the same one of a few, they are products, roots or quotients.
pub(super) struct FloatPowerLoop<F>(pub(super) PhantomData<F>);

impl<F: MathFloat + From<f32>> ElementLoop for FloatPowerLoop<F>
where
    PowerMap<F>: ElementMap,
{
    unsafe fn run_loop(
        &self,
        isa: Isa,
        inputs: &[*const u8],
        output: *mut u8,
        count: usize,
    ) -> Result<(), ElementFault> {
        // SAFETY: the caller vouches for `count` exponents.
        let exponents = unsafe { std::slice::from_raw_parts(inputs[1].cast::<F>(), count) };
        // Where the exponents are others, the first one usually is. Otherwise all are compared, which is faster than to stop early.
        let is_all = |power: f32| {
            let is_power = |exponent: &F| *exponent == F::from(power);
            exponents.first().is_some_and(is_power)
                && exponents.iter().fold(true, |are_all, exponent| are_all & is_power(exponent))
        };
        // SAFETY: as the caller vouches.
        unsafe {
            let bases = &inputs[..1];
            if is_all(2.0) {
                MapLoop(Square::<F>(PhantomData)).run_loop(isa, bases, output, count)
            } else if is_all(3.0) {
                MapLoop(Cube::<F>(PhantomData)).run_loop(isa, bases, output, count)
            } else if is_all(0.5) {
                MapLoop(RootPower::<F>(PhantomData)).run_loop(isa, bases, output, count)
            } else if is_all(-0.5) {
                MapLoop(InverseRootPower::<F>(PhantomData)).run_loop(isa, bases, output, count)
            } else if is_all(-1.0) {
                MapLoop(InversePower::<F>(PhantomData)).run_loop(isa, bases, output, count)
            } else {
                MapLoop(PowerMap::<F>(PhantomData)).run_loop(isa, inputs, output, count)
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
            impl ElementMap for IntegerPower<$integer> {
                type Input = ($integer, i64);
                type Output = $integer;
                const HAS_EXCEPTIONS: bool = true;
                const IS_VECTORIZED: bool = false;

                #[inline(always)]
                fn apply<T: SimdTarget>(self, (base, exponent): ($integer, i64)) -> $integer {
                    match (base, exponent) {
                        (1, _) | (_, 0) => 1,
                        (-1, _) => if exponent & 1 == 0 { 1 } else { -1 },
                        // Less than 1 in magnitude, so that nothing is left of it. Powers of 0 are exceptions.
                        (_, ..0) => 0,
                        // Such a power wraps to 0, or its base is 0.
                        (_, 64..) if base & 1 == 0 => 0,
                        _ => integer_power(base, exponent.cast_unsigned()),
                    }
                }

                #[inline(always)]
                fn is_exception(self, (base, exponent): ($integer, i64)) -> bool {
                    (base == 0) & (exponent < 0)
                }

                fn apply_to_any(self, (base, exponent): ($integer, i64)) -> Result<$integer, ElementFault> {
                    if self.is_exception((base, exponent)) {
                        return Err(ElementFault("expected exponents of 0 that are not negative, found a negative one"));
                    }
                    Ok(self.apply::<oarlock_cpu_base::isa::BaselineTarget>((base, exponent)))
                }
            }

            impl ElementMap for IntegerPowerOfFloat<$integer> {
                type Input = ($integer, f64);
                type Output = $integer;
                const IS_VECTORIZED: bool = false;

                #[inline(always)]
                fn apply<T: SimdTarget>(self, (base, exponent): ($integer, f64)) -> $integer {
                    (base as f64).powf(exponent) as $integer
                }
            }
        )*
    };
}

/// Powers of integers with a float exponent, rounded towards 0.
#[derive(Clone, Copy)]
struct IntegerPowerOfFloat<N>(PhantomData<N>);

integer_powers!(i32 i64);

fn integer_power<N: ArithmeticElement>(mut base: N, mut exponent: u64) -> N {
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

fn power_loop(call: &KernelCall<'_>) -> Result<PreparedLoop> {
    let (dtype, exponents) = (call.input(0)?.dtype(), call.input(1)?.dtype());
    let base = compute_dtype(dtype);
    let is_whole = INTEGERS.0 >> exponents.0 & 1 == 1;
    let exponent = match base {
        Dtype::F32 | Dtype::F64 => base,
        // Integers stay integers, because an `f64` does not hold all of them.
        _ if is_whole => Dtype::I64,
        _ => Dtype::F64,
    };
    let conversions =
        [OperandConversion::for_input(dtype, base)?, OperandConversion::for_input(exponents, exponent)?];
    let output = OperandConversion::for_output(dtype, base)?;
    Ok(match base {
        Dtype::F32 => PreparedLoop::new(FloatPowerLoop::<f32>(PhantomData), conversions, output),
        Dtype::F64 => PreparedLoop::new(FloatPowerLoop::<f64>(PhantomData), conversions, output),
        Dtype::I32 if is_whole => {
            PreparedLoop::new(MapLoop(IntegerPower::<i32>(PhantomData)), conversions, output)
        }
        Dtype::I64 if is_whole => {
            PreparedLoop::new(MapLoop(IntegerPower::<i64>(PhantomData)), conversions, output)
        }
        Dtype::I32 => {
            PreparedLoop::new(MapLoop(IntegerPowerOfFloat::<i32>(PhantomData)), conversions, output)
        }
        Dtype::I64 => {
            PreparedLoop::new(MapLoop(IntegerPowerOfFloat::<i64>(PhantomData)), conversions, output)
        }
        other => return Err(unexpected_dtype(other)),
    })
}

pub(super) fn power_kernels() -> [Kernel<Cpu>; 3] {
    const NARROW_BASES: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16, Dtype::F32]);
    const WIDE_BASES: DtypeSet = dtype_set(&[Dtype::F64, Dtype::I32, Dtype::I64]);
    let later = |bases: DtypeSet, exponents| {
        let inputs = [input_operand("X", bases).with_dtype_group(1), input_operand("Y", exponents)];
        elementwise_kernel("Pow", 7, inputs, output_operand("Z", bases).with_dtype_group(1), power_loop)
            .with_in_place(0, 0)
    };
    let floats =
        [input_operand("X", FLOATS).with_dtype_group(1), input_operand("Y", FLOATS).with_dtype_group(1)];
    [
        later(NARROW_BASES, NUMBERS),
        // Floats of 16 bits are not converted to these dtypes.
        later(WIDE_BASES, INTEGERS.union(family::FLOATING)),
        legacy_broadcast::legacy_kernel(
            "Pow",
            floats,
            output_operand("Z", FLOATS).with_dtype_group(1),
            power_loop,
        ),
    ]
}
