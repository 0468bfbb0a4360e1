//! Functions of Python's array standard that ONNX lacks: ops of the domain `oarlock`.

use std::marker::PhantomData;

use oarlock_cpu_base::OARLOCK_DOMAIN;
use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::SimdTarget;
use oarlock_cpu_base::math::MathFloat;
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, Result, dtype_set};

use super::bitwise::integer_shift_loop;
use super::dtype_dispatch::with_number;
use super::element_loop::{ElementFault, ElementMap, MapLoop};
use super::operand_conversion::{OperandConversion, compute_dtype};
use super::prepared_loop::PreparedLoop;
use super::registration::{
    BOOL, FLOATS, INTEGERS, NUMBERS, elementwise_kernel, input_operand, output_operand,
};

/// Floats that are computed in their own type.
const WIDE_FLOATS: DtypeSet = dtype_set(&[Dtype::F32, Dtype::F64]);

/// Floats that are computed in a wider type.
const NARROW_FLOATS: DtypeSet = dtype_set(&[Dtype::F16, Dtype::BF16]);

/// A float with the functions of the platform's math library, which are exact to the last bit or nearly so.
trait PlatformMath: MathFloat + ArithmeticElement {
    // NumPy calls the same library, so results agree to the last bit; speed matters less for these functions.
    fn atan2(self, other: Self) -> Self;
    fn hypot(self, other: Self) -> Self;
    fn power_of_e(self) -> Self;
    fn expm1(self) -> Self;
    fn log1p(self) -> Self;
    fn log2(self) -> Self;
    fn log10(self) -> Self;
    fn round_toward_zero(self) -> Self;
    fn next_after(self, other: Self) -> Self;
    fn has_sign_bit(self) -> bool;
}

macro_rules! exact {
    ($($float:ident)*) => {
        $(
            impl PlatformMath for $float {
                fn atan2(self, other: Self) -> Self {
                    $float::atan2(self, other)
                }

                fn hypot(self, other: Self) -> Self {
                    $float::hypot(self, other)
                }

                fn power_of_e(self) -> Self {
                    self.exp()
                }

                fn expm1(self) -> Self {
                    self.exp_m1()
                }

                fn log1p(self) -> Self {
                    self.ln_1p()
                }

                fn log2(self) -> Self {
                    $float::log2(self)
                }

                fn log10(self) -> Self {
                    $float::log10(self)
                }

                #[inline(always)]
                fn round_toward_zero(self) -> Self {
                    self.trunc()
                }

                fn next_after(self, other: Self) -> Self {
                    if self.is_nan() || other.is_nan() {
                        Self::NAN
                    } else if self == other {
                        // Of two zeros the second one, as C's `nextafter`.
                        other
                    } else if self < other {
                        self.next_up()
                    } else {
                        self.next_down()
                    }
                }

                #[inline(always)]
                fn has_sign_bit(self) -> bool {
                    self.is_sign_negative()
                }
            }
        )*
    };
}

exact!(f32 f64);

macro_rules! maps_of_floats {
    ($($(#[$docs:meta])* $name:ident($($x:ident),*) $(-> $output:ty)? => $body:expr;)*) => {
        $(
            $(#[$docs])*
            #[derive(Clone, Copy)]
            struct $name<F>(PhantomData<F>);

            impl<F: PlatformMath> ElementMap for $name<F> {
                type Input = ($(maps_of_floats!(@type $x F),)*);
                type Output = maps_of_floats!(@output F $($output)?);

                #[inline(always)]
                fn apply<T: SimdTarget>(self, ($($x,)*): Self::Input) -> Self::Output {
                    $body
                }
            }
        )*
    };
    (@type $x:ident $float:ident) => { $float };
    (@output $float:ident) => { $float };
    (@output $float:ident $output:ty) => { $output };
}

maps_of_floats! {
    Atan2(y, x) => y.atan2(x);
    CopySign(x, sign) => x.copy_sign(sign);
    Hypot(a, b) => a.hypot(b);
    /// log(eᵃ + eᵇ). The larger exponential is factored out, so that no input overflows.
    LogAddExp(a, b) => if a == b {
        // Equal infinities have no difference that could be taken.
        a + F::from_f64(std::f64::consts::LN_2)
    } else {
        a.maximum(b) + (-(a - b).magnitude()).power_of_e().log1p()
    };
    NextAfter(x, to) => x.next_after(to);
    Expm1(x) => x.expm1();
    Log1p(x) => x.log1p();
    Log2(x) => x.log2();
    Log10(x) => x.log10();
    Trunc(x) => x.round_toward_zero();
    IsFinite(x) -> u8 => u8::from(x.magnitude() < F::INFINITY);
    SignBit(x) -> u8 => u8::from(x.has_sign_bit());
}

/// The neighbor of a 16-bit float in the direction of another, found by their bits: for one sign, these are in the order of the
/// numbers.
#[derive(Clone, Copy)]
struct NarrowNextAfter {
    /// The bits of infinity; those above it are NaN.
    infinite: u16,
}

impl ElementMap for NarrowNextAfter {
    type Input = (u16, u16);
    type Output = u16;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x, to): (u16, u16)) -> u16 {
        const SIGN: u16 = 1 << 15;
        let (far, far_to) = (x & !SIGN, to & !SIGN);
        // Places on the number line: -0 and 0 are both 0.
        let place = |bits: u16, far: u16| if bits < SIGN { i32::from(far) } else { -i32::from(far) };
        let (at, at_to) = (place(x, far), place(to, far_to));
        if far > self.infinite {
            x
        } else if far_to > self.infinite || at == at_to {
            to
        } else if at == 0 {
            // From 0, the smallest number of the sign that is wanted.
            (to & SIGN) | 1
        } else if (at < at_to) == (at > 0) {
            // Away from 0 the bits grow, and towards it they shrink.
            x + 1
        } else {
            x - 1
        }
    }
}

/// A division that rounds the quotient down, and its remainder, which has the sign of the divisor.
trait FloorDivision: ArithmeticElement {
    fn floor_divide(self, other: Self) -> Self;
    fn floor_modulo(self, other: Self) -> Self;
}

macro_rules! floored_floats {
    ($($float:ident)*) => {
        $(
            impl FloorDivision for $float {
                fn floor_divide(self, other: Self) -> Self {
                    if other == 0.0 || self.is_infinite() {
                        // Infinity or NaN, as the plain division gives.
                        return self / other;
                    }
                    if other.is_infinite() {
                        // The quotient is a 0, or just below it and rounds down to -1.
                        let is_below = self != 0.0 && (self < 0.0) != (other < 0.0);
                        return if self.is_nan() { self } else if is_below { -1.0 } else { (self / other).copysign(self / other) };
                    }
                    // The remainder is exact, so the quotient without it is nearly an integer, and rounding makes it one.
                    let rest = self.floor_modulo(other);
                    let quotient = (self - rest) / other;
                    let rounded = quotient.floor();
                    // The division may round to just below the integer that it should be.
                    let nearest = if quotient - rounded > 0.5 { rounded + 1.0 } else { rounded };
                    if nearest == 0.0 { (0.0 as $float).copysign(self / other) } else { nearest }
                }

                fn floor_modulo(self, other: Self) -> Self {
                    let rest = self % other;
                    if rest == 0.0 {
                        // Python gives a remainder of 0 the sign of the divisor.
                        (0.0 as $float).copysign(other)
                    } else if (rest < 0.0) != (other < 0.0) {
                        rest + other
                    } else {
                        rest
                    }
                }
            }
        )*
    };
}

floored_floats!(f32 f64);

macro_rules! floored_integers {
    ($($integer:ident)*) => {
        $(
            impl FloorDivision for $integer {
                fn floor_divide(self, other: Self) -> Self {
                    let quotient = self.divided_by(other);
                    // The machine rounds towards 0; with unequal signs and a remainder, that is one too high. `MIN.max(0)` is 0 in
                    // a form that unsigned types accept without a lint.
                    let is_above = self.minus(quotient.times(other)) != 0 && (self < $integer::MIN.max(0)) != (other < $integer::MIN.max(0));
                    if is_above { quotient.wrapping_sub(1) } else { quotient }
                }

                fn floor_modulo(self, other: Self) -> Self {
                    self.floored_remainder(other)
                }
            }
        )*
    };
}

floored_integers!(i8 u8 i16 u16 i32 u32 i64 u64);

macro_rules! divisions {
    ($($name:ident: $function:ident;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $name<N>(PhantomData<N>);

            impl<N: FloorDivision> ElementMap for $name<N> {
                type Input = (N, N);
                type Output = N;
                const HAS_EXCEPTIONS: bool = true;
                // Processors have no vector division of integers.
                const IS_VECTORIZED: bool = !N::IS_INTEGER;

                #[inline(always)]
                fn apply<T: SimdTarget>(self, (a, b): (N, N)) -> N {
                    a.$function(b)
                }

                #[inline(always)]
                fn is_exception(self, (_, b): (N, N)) -> bool {
                    // Floats give infinity or NaN instead.
                    N::IS_INTEGER && b == N::default()
                }

                fn apply_to_any(self, (a, b): (N, N)) -> Result<N, ElementFault> {
                    if self.is_exception((a, b)) {
                        return Err(ElementFault("expected integers other than 0 to divide by, found 0"));
                    }
                    Ok(a.$function(b))
                }
            }
        )*
    };
}

divisions! {
    Quotient: floor_divide;
    Rest: floor_modulo;
}

/// The kernel of a function of floats.
macro_rules! float_row {
    ($op:literal, $count:literal, $map:ident) => {
        float_row!($op, $count, $map, FLOATS)
    };
    ($op:literal, $count:literal, $map:ident, $dtypes:expr) => {
        array_kernel(
            $op,
            $dtypes,
            $dtypes,
            |call| {
                let dtype = call.input(0)?.dtype();
                let is_f64 = dtype == Dtype::F64 || compute_dtype(dtype) != Dtype::F32;
                let float = if is_f64 { Dtype::F64 } else { Dtype::F32 };
                let (input, output) = (
                    OperandConversion::for_input(dtype, float)?,
                    OperandConversion::for_output(dtype, float)?,
                );
                Ok(if is_f64 {
                    PreparedLoop::new(MapLoop($map::<f64>(PhantomData)), [input; $count], output)
                } else {
                    PreparedLoop::new(MapLoop($map::<f32>(PhantomData)), [input; $count], output)
                })
            },
            [(); $count],
        )
    };
}

/// The kernel of a predicate of a float.
macro_rules! test_row {
    ($op:literal, $map:ident) => {
        array_kernel(
            $op,
            FLOATS,
            BOOL,
            |call| {
                let dtype = call.input(0)?.dtype();
                let output = OperandConversion::without_conversion(Dtype::BOOL);
                Ok(if dtype == Dtype::F64 {
                    PreparedLoop::new(
                        MapLoop($map::<f64>(PhantomData)),
                        [OperandConversion::for_input(dtype, Dtype::F64)?],
                        output,
                    )
                } else {
                    PreparedLoop::new(
                        MapLoop($map::<f32>(PhantomData)),
                        [OperandConversion::for_input(dtype, Dtype::F32)?],
                        output,
                    )
                })
            },
            [()],
        )
    };
}

macro_rules! number_row {
    ($op:literal, $map:ident) => {
        array_kernel($op, NUMBERS, NUMBERS, |call| {
            let dtype = call.input(0)?.dtype();
            with_number!(dtype, all, N => {
                let (input, output) = (OperandConversion::for_input(dtype, N::DTYPE)?, OperandConversion::for_output(dtype, N::DTYPE)?);
                Ok(PreparedLoop::new(MapLoop($map::<N>(PhantomData)), [input; 2], output))
            })
        }, [(); 2])
    };
}

/// The kernel of an op of `COUNT` operands. Its output may reuse the memory of those with its dtype.
pub(super) fn array_kernel<const COUNT: usize>(
    op: &'static str,
    inputs: DtypeSet,
    outputs: DtypeSet,
    pass: impl Fn(&KernelCall<'_>) -> Result<PreparedLoop> + Send + Sync + 'static,
    _: [(); COUNT],
) -> Kernel<Cpu> {
    let is_same = inputs == outputs;
    let result =
        if is_same { output_operand("", outputs).with_dtype_group(1) } else { output_operand("", outputs) };
    let kernel =
        elementwise_kernel(op, 1, [input_operand("", inputs).with_dtype_group(1); COUNT], result, pass)
            .with_domain(OARLOCK_DOMAIN);
    // Elements of different sizes do not line up, so their memory cannot be reused.
    let places = if is_same { COUNT as u32 } else { 0 };
    (0..places).fold(kernel, |kernel, input| kernel.with_in_place(0, input))
}

pub(super) fn array_api_kernels() -> Vec<Kernel<Cpu>> {
    vec![
        float_row!("Atan2", 2, Atan2),
        float_row!("CopySign", 2, CopySign),
        float_row!("Expm1", 1, Expm1),
        number_row!("FloorDivide", Quotient),
        float_row!("Hypot", 2, Hypot),
        test_row!("IsFinite", IsFinite),
        float_row!("Log10", 1, Log10),
        float_row!("Log1p", 1, Log1p),
        float_row!("Log2", 1, Log2),
        float_row!("LogAddExp", 2, LogAddExp),
        float_row!("NextAfter", 2, NextAfter, WIDE_FLOATS),
        array_kernel(
            "NextAfter",
            NARROW_FLOATS,
            NARROW_FLOATS,
            |call| {
                let dtype = call.input(0)?.dtype();
                let infinite = if dtype == Dtype::F16 { 0x7c00 } else { 0x7f80 };
                let conversion = OperandConversion::without_conversion(dtype);
                Ok(PreparedLoop::new(MapLoop(NarrowNextAfter { infinite }), [conversion; 2], conversion))
            },
            [(); 2],
        ),
        number_row!("Remainder", Rest),
        array_kernel(
            "ShiftLeft",
            INTEGERS,
            INTEGERS,
            |call| integer_shift_loop(call.input(0)?.dtype(), true),
            [(); 2],
        ),
        array_kernel(
            "ShiftRight",
            INTEGERS,
            INTEGERS,
            |call| integer_shift_loop(call.input(0)?.dtype(), false),
            [(); 2],
        ),
        test_row!("SignBit", SignBit),
        float_row!("Trunc", 1, Trunc),
    ]
}
