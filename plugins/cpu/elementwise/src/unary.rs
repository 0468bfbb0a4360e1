//! Functions of one element.

use std::marker::PhantomData;

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::SimdTarget;
use oarlock_cpu_base::math::{self, MathFloat, TrigonometricFloat};
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, Result};

use super::dtype_dispatch::with_number;
use super::element_loop::{ElementFault, ElementMap, MapLoop};
use super::operand_conversion::{OperandConversion, compute_dtype};
use super::prepared_loop::PreparedLoop;
use super::registration::{
    BOOL, BYTE_FLOATS, FLOATS, NUMBERS, SIGNED, elementwise_kernel, input_operand, output_operand,
};

/// A function of one float, generic over its type.
pub(super) trait UnaryFunction: Copy + Send + Sync + 'static {
    /// True if some values need [`UnaryFunction::apply_to_any`].
    const HAS_EXCEPTIONS: bool = false;

    /// The function, without branches.
    fn apply<T: SimdTarget, F: TrigonometricFloat>(self, x: F) -> F;

    /// True if `apply` must not be used.
    #[inline(always)]
    fn is_exception<F: TrigonometricFloat>(_x: F) -> bool {
        false
    }

    /// The function of any value, however slow.
    fn apply_to_any<F: TrigonometricFloat>(self, x: F) -> F {
        // Called for single elements, where the instruction set does not matter.
        self.apply::<oarlock_cpu_base::isa::BaselineTarget, F>(x)
    }
}

#[derive(Clone, Copy)]
pub(super) struct FunctionMap<G, F>(pub(super) G, pub(super) PhantomData<F>);

impl<G: UnaryFunction, F: TrigonometricFloat> ElementMap for FunctionMap<G, F> {
    type Input = (F,);
    type Output = F;
    const HAS_EXCEPTIONS: bool = G::HAS_EXCEPTIONS;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x,): (F,)) -> F {
        self.0.apply::<T, F>(x)
    }

    #[inline(always)]
    fn is_exception(self, (x,): (F,)) -> bool {
        G::is_exception(x)
    }

    fn apply_to_any(self, (x,): (F,)) -> Result<F, ElementFault> {
        Ok(self.0.apply_to_any(x))
    }
}

/// The loop of a function over elements of a dtype, computed as floats.
pub(super) fn function_loop<G: UnaryFunction>(dtype: Dtype, function: G) -> Result<PreparedLoop> {
    // Integers of 32 and 64 bits have more digits than an `f32`.
    let is_f64 = dtype == Dtype::F64 || compute_dtype(dtype) != Dtype::F32;
    let float = if is_f64 { Dtype::F64 } else { Dtype::F32 };
    let (input, output) =
        (OperandConversion::for_input(dtype, float)?, OperandConversion::for_output(dtype, float)?);
    Ok(if is_f64 {
        PreparedLoop::new(MapLoop(FunctionMap::<G, f64>(function, PhantomData)), [input], output)
    } else {
        PreparedLoop::new(MapLoop(FunctionMap::<G, f32>(function, PhantomData)), [input], output)
    })
}

/// The kernel of a function of floats that `read` makes from the attributes.
pub(super) fn float_kernel<G: UnaryFunction>(
    op: &'static str,
    since: u32,
    read: impl Fn(&KernelCall<'_>) -> Result<G> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    function_kernel(op, since, FLOATS, read)
}

/// As [`float_kernel`], for any dtypes; integers are computed as `f64`.
pub(super) fn function_kernel<G: UnaryFunction>(
    op: &'static str,
    since: u32,
    dtypes: DtypeSet,
    read: impl Fn(&KernelCall<'_>) -> Result<G> + Send + Sync + 'static,
) -> Kernel<Cpu> {
    let pass = move |call: &KernelCall<'_>| function_loop(call.input(0)?.dtype(), read(call)?);
    elementwise_kernel(
        op,
        since,
        [input_operand("", dtypes).with_dtype_group(1)],
        output_operand("", dtypes).with_dtype_group(1),
        pass,
    )
    // Each output depends on the input at the same place alone.
    .with_in_place(0, 0)
}

/// Defines functions of floats: their name, their parameters, and their formula. `T` and `F` stand for the instruction set and
/// the float.
macro_rules! functions {
    ($($(#[$docs:meta])* $name:ident $({ $($field:ident),* })? ($x:ident) => $body:expr;)*) => {
        $(
            $(#[$docs])*
            #[derive(Clone, Copy)]
            pub(crate) struct $name { $($(pub(crate) $field: f64),*)? }

            impl $crate::unary::UnaryFunction for $name {
                #[inline(always)]
                fn apply<T: SimdTarget, F: TrigonometricFloat>(self, $x: F) -> F {
                    $($(let $field = F::from_f64(self.$field);)*)?
                    $body
                }
            }
        )*
    };
}

pub(super) use functions;

/// Rounding, roots and so on of a float.
pub(super) mod of_float {
    use super::{SimdTarget, TrigonometricFloat, math};

    functions! {
        Ceil(x) => x.round_up();
        Floor(x) => x.round_down();
        Round(x) => x.round_to_even();
        Reciprocal(x) => F::ONE / x;
        Sqrt(x) => x.square_root();
        Exp(x) => math::exp::<T, F>(x);
        Log(x) => math::log::<T, F>(x);
        // These need no reduction of angles, so no value is an exception.
        Asin(x) => x.asin::<T>();
        Acos(x) => x.acos::<T>();
        Atan(x) => x.atan::<T>();
        Sinh(x) => math::sinh::<T, F>(x);
        Cosh(x) => math::cosh::<T, F>(x);
        Tanh(x) => math::tanh::<T, F>(x);
        Asinh(x) => math::asinh::<T, F>(x);
        Acosh(x) => math::acosh::<T, F>(x);
        Atanh(x) => math::atanh::<T, F>(x);
        Erf(x) => math::erf::<T, F>(x);
    }
}

macro_rules! angles {
    ($($name:ident: $function:ident $function_of_any:ident;)*) => {
        $(
            #[derive(Clone, Copy)]
            pub(super) struct $name;

            impl UnaryFunction for $name {
                const HAS_EXCEPTIONS: bool = true;

                #[inline(always)]
                fn apply<T: SimdTarget, F: TrigonometricFloat>(self, x: F) -> F {
                    x.$function::<T>()
                }

                #[inline(always)]
                fn is_exception<F: TrigonometricFloat>(x: F) -> bool {
                    // Reducing a huge angle takes hundreds of bits of π. One such element must not make the loop for all others
                    // slow, so it leaves the loop.
                    x.is_huge_angle()
                }

                fn apply_to_any<F: TrigonometricFloat>(self, x: F) -> F {
                    x.$function_of_any()
                }
            }
        )*
    };
}

angles! {
    Sin: sin sin_of_any;
    Cos: cos cos_of_any;
    Tan: tan tan_of_any;
}

/// Defines maps of numbers of one type `N`, to the same type or another.
macro_rules! maps {
    ($($(#[$docs:meta])* $name:ident($($x:ident),*) $(-> $output:ty)? => $body:expr;)*) => {
        $(
            $(#[$docs])*
            #[derive(Clone, Copy)]
            pub(super) struct $name<N>(pub(super) std::marker::PhantomData<N>);

            impl<N: ArithmeticElement> ElementMap for $name<N> {
                type Input = ($(maps!(@type $x N),)*);
                type Output = maps!(@output N $($output)?);
                // One copy for rare dtypes: three for each of them would be most of the code of this crate.
                const IS_VECTORIZED: bool = $crate::dtype_dispatch::is_common_dtype(N::DTYPE);

                #[inline(always)]
                fn apply<T: SimdTarget>(self, ($($x,)*): Self::Input) -> Self::Output {
                    $body
                }
            }
        )*
    };
    (@type $x:ident $number:ident) => { $number };
    (@output $number:ident) => { $number };
    (@output $number:ident $output:ty) => { $output };
}

pub(super) use maps;

maps! {
    Abs(x) => x.magnitude();
    Neg(x) => x.negate();
    Sign(x) => x.sign();
    // NaN is not below 0 and stays.
    Relu(x) => if x < N::default() { N::default() } else { x };
    // For `Identity` and for casts, whose operands are converted but not computed with.
    Same(x) => x;
    IsNan(x) -> u8 => u8::from(x.is_nan());
}

/// True for infinities of the signs that are looked for.
#[derive(Clone, Copy)]
struct IsInfinite<F> {
    negative: bool,
    positive: bool,
    float: PhantomData<F>,
}

impl<F: MathFloat> ElementMap for IsInfinite<F> {
    type Input = (F,);
    type Output = u8;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (x,): (F,)) -> u8 {
        // Without short circuits, whose branches would keep the loop from vectorizing.
        u8::from(self.positive & (x == F::INFINITY)) | u8::from(self.negative & (x == -F::INFINITY))
    }
}

/// The kernel of a map of numbers to the same dtype.
macro_rules! number_row {
    ($op:literal, $since:literal, $dtypes:expr, $map:ident) => {
        elementwise_kernel($op, $since, [input_operand("", $dtypes).with_dtype_group(1)], output_operand("", $dtypes).with_dtype_group(1), |call| {
            let dtype = call.input(0)?.dtype();
            with_number!(dtype, all, N => {
                let (input, output) = (OperandConversion::for_input(dtype, N::DTYPE)?, OperandConversion::for_output(dtype, N::DTYPE)?);
                Ok(PreparedLoop::new(MapLoop($map::<N>(PhantomData)), [input], output))
            })
        })
        .with_in_place(0, 0)
    };
}

/// All floats, those of 8 bits included.
const ALL_FLOATS: DtypeSet = FLOATS.union(BYTE_FLOATS);

fn float_test_kernels() -> [Kernel<Cpu>; 2] {
    let (x, y) = (input_operand("X", ALL_FLOATS), output_operand("Y", BOOL));
    let ways = |call: &KernelCall<'_>, float| {
        Ok::<_, oarlock_sdk::PluginError>((
            OperandConversion::for_input(call.input(0)?.dtype(), float)?,
            OperandConversion::without_conversion(Dtype::BOOL),
        ))
    };
    let is_nan = elementwise_kernel("IsNaN", 9, [x], y, move |call| {
        with_number!(call.input(0)?.dtype(), floats, N => {
            let (input, output) = ways(call, N::DTYPE)?;
            Ok(PreparedLoop::new(MapLoop(IsNan::<N>(PhantomData)), [input], output))
        })
    });
    let is_infinite = elementwise_kernel("IsInf", 10, [x], y, move |call| {
        let negative = call.int_attribute("detect_negative")?.unwrap_or(1) != 0;
        let positive = call.int_attribute("detect_positive")?.unwrap_or(1) != 0;
        with_number!(call.input(0)?.dtype(), floats, N => {
            let (input, output) = ways(call, N::DTYPE)?;
            Ok(PreparedLoop::new(MapLoop(IsInfinite::<N> { negative, positive, float: PhantomData }), [input], output))
        })
    });
    [is_nan, is_infinite]
}

pub(super) fn unary_kernels() -> Vec<Kernel<Cpu>> {
    use of_float::*;
    macro_rules! float_rows {
        ($($op:ident $since:literal)*) => { [$(float_kernel(stringify!($op), $since, |_| Ok($op {}))),*] };
    }
    let mut kernels = Vec::from(float_rows! {
        Ceil 1 Floor 1 Round 11 Reciprocal 1 Sqrt 1 Exp 1 Log 1 Sin 7 Cos 7 Tan 7 Asin 7 Acos 7 Atan 7 Sinh 9 Cosh 9
        Tanh 1 Asinh 9 Acosh 9 Atanh 9
    });
    kernels.extend([
        // The only function here that ONNX defines for integers too.
        function_kernel("Erf", 9, NUMBERS, |_| Ok(Erf {})),
        number_row!("Abs", 1, NUMBERS, Abs),
        number_row!("Neg", 1, FLOATS.union(SIGNED), Neg),
        number_row!("Sign", 9, NUMBERS, Sign),
        number_row!("Relu", 1, NUMBERS, Relu),
    ]);
    kernels.extend(float_test_kernels());
    kernels
}
