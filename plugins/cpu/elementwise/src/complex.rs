//! Arithmetic and functions of complex numbers: ops of the domain `oarlock`, named as those of ONNX for real numbers.

mod functions;

use std::marker::PhantomData;

use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::SimdTarget;
use oarlock_sdk::{Complex, Dtype, DtypeSet, Kernel, KernelCall, PluginError, Result, dtype_set};

use super::array_api::array_kernel;
use super::element_loop::{ElementMap, InputElements, MapLoop};
use super::operand_conversion::OperandConversion;
use super::prepared_loop::PreparedLoop;
use super::registration::BOOL;
use functions::ComplexF64;

const COMPLEX_DTYPES: DtypeSet = dtype_set(&[Dtype::C64, Dtype::C128]);
const COMPONENT_DTYPES: DtypeSet = dtype_set(&[Dtype::F32, Dtype::F64]);

/// The type of the real and the imaginary part.
trait ComplexComponent: Copy + Send + Sync + 'static {
    // Everything is computed in `f64`, also for pairs of `f32`: one copy of the functions, and products that do not overflow on the
    // way.
    fn widen(self) -> f64;
    fn from_f64(value: f64) -> Self;
}

impl ComplexComponent for f32 {
    #[inline(always)]
    fn widen(self) -> f64 {
        self.into()
    }

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as Self
    }
}

impl ComplexComponent for f64 {
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }
}

#[inline(always)]
fn widen_complex<P: ComplexComponent>(z: Complex<P>) -> ComplexF64 {
    ComplexF64 { re: z.re.widen(), im: z.im.widen() }
}

#[inline(always)]
fn narrow_complex<P: ComplexComponent>(z: ComplexF64) -> Complex<P> {
    Complex { re: P::from_f64(z.re), im: P::from_f64(z.im) }
}

/// Maps that are computed in 64 bits: each names its operands and has a formula.
macro_rules! maps {
    ($($name:ident($($x:ident),*) $(-> $output:ident)? => $body:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $name<P>(PhantomData<P>);

            impl<P: ComplexComponent> ElementMap for $name<P> {
                type Input = ($(maps!(@input $x P),)*);
                type Output = maps!(@type P $($output)?);
                // Most formulas branch on special values; a vectorized copy would do the same work.
                const IS_VECTORIZED: bool = false;

                #[inline(always)]
                fn apply<T: SimdTarget>(self, ($($x,)*): Self::Input) -> Self::Output {
                    $(let $x = widen_complex($x);)*
                    maps!(@result P $($output)?, $body)
                }
            }
        )*
    };
    (@input $x:ident $part:ident) => { Complex<$part> };
    (@type $part:ident) => { Complex<$part> };
    (@type $part:ident part) => { $part };
    (@type $part:ident truth) => { u8 };
    (@result $part:ident, $body:expr) => { narrow_complex($body) };
    (@result $part:ident part, $body:expr) => { $part::from_f64($body) };
    (@result $part:ident truth, $body:expr) => { u8::from($body) };
}

maps! {
    Add(a, b) => a + b;
    Sub(a, b) => a - b;
    // Not the formula of the textbook, which gives NaN where a factor is infinite.
    Mul(a, b) => functions::product(a, b);
    Div(a, b) => functions::quotient(a, b);
    Pow(a, b) => functions::power(a, b);
    Equal(a, b) -> truth => a == b;
    Abs(z) -> part => functions::magnitude(z);
    Real(z) -> part => z.re;
    Imag(z) -> part => z.im;
    IsFinite(z) -> truth => z.re.is_finite() && z.im.is_finite();
    IsInf(z) -> truth => z.re.is_infinite() || z.im.is_infinite();
    IsNaN(z) -> truth => z.re.is_nan() || z.im.is_nan();
    Neg(z) => -z;
    Conj(z) => ComplexF64 { re: z.re, im: -z.im };
    Reciprocal(z) => functions::quotient(ComplexF64 { re: 1.0, im: 0.0 }, z);
    Sign(z) => functions::sign(z);
    Sqrt(z) => functions::sqrt(z);
    Exp(z) => functions::exp(z);
    Expm1(z) => functions::expm1(z);
    Log(z) => functions::log(z);
    Log1p(z) => functions::log1p(z);
    // Scaled after the logarithm, whose imaginary part is an angle and must be scaled too.
    Log2(z) => functions::scale(functions::log(z), std::f64::consts::LOG2_E);
    Log10(z) => functions::scale(functions::log(z), std::f64::consts::LOG10_E);
    Sin(z) => functions::sin(z);
    Cos(z) => functions::cos(z);
    Tan(z) => functions::tan(z);
    Sinh(z) => functions::sinh(z);
    Cosh(z) => functions::cosh(z);
    Tanh(z) => functions::tanh(z);
    Asin(z) => functions::asin(z);
    Acos(z) => functions::acos(z);
    Atan(z) => functions::atan(z);
    Asinh(z) => functions::asinh(z);
    Acosh(z) => functions::acosh(z);
    Atanh(z) => functions::atanh(z);
}

/// Joins a real and an imaginary part.
#[derive(Clone, Copy)]
struct JoinComponents<P>(PhantomData<P>);

impl<P: ComplexComponent> ElementMap for JoinComponents<P> {
    type Input = (P, P);
    type Output = Complex<P>;

    #[inline(always)]
    fn apply<T: SimdTarget>(self, (re, im): (P, P)) -> Complex<P> {
        Complex { re, im }
    }
}

fn component_dtype(dtype: Dtype) -> Dtype {
    if dtype == Dtype::C64 { Dtype::F32 } else { Dtype::F64 }
}

fn complex_loop<const COUNT: usize, N, W>(
    dtypes: (Dtype, Dtype),
    is_wide: bool,
    narrow: N,
    wide: W,
) -> Result<PreparedLoop>
where
    N: ElementMap<Input: InputElements> + Copy,
    W: ElementMap<Input: InputElements> + Copy,
{
    let (input, output) =
        (OperandConversion::without_conversion(dtypes.0), OperandConversion::without_conversion(dtypes.1));
    // Both loops have the same operands; only the type of the parts differs.
    Ok(if is_wide {
        PreparedLoop::new(MapLoop(wide), [input; COUNT], output)
    } else {
        PreparedLoop::new(MapLoop(narrow), [input; COUNT], output)
    })
}

/// The kernels of a map. Its output dtypes follow from that of the inputs.
macro_rules! rows {
    ($($count:literal $outputs:ident $of:expr; $($name:ident)*)*) => {
        vec![$($(
            array_kernel(stringify!($name), COMPLEX_DTYPES, $outputs, |call: &KernelCall<'_>| {
                let dtype = call.input(0)?.dtype();
                // A function pointer, so that the closures of all rows have one type.
                let of: fn(Dtype) -> Dtype = $of;
                complex_loop::<$count, _, _>((dtype, of(dtype)), dtype == Dtype::C128, $name::<f32>(PhantomData), $name::<f64>(PhantomData))
            }, [(); $count]),
        )*)*]
    };
}

pub(super) fn complex_kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = rows! {
        2 COMPLEX_DTYPES |dtype| dtype; Add Sub Mul Div Pow
        2 BOOL |_| Dtype::BOOL; Equal
        1 COMPONENT_DTYPES component_dtype; Abs Real Imag
        1 BOOL |_| Dtype::BOOL; IsFinite IsInf IsNaN
        1 COMPLEX_DTYPES |dtype| dtype; Neg Conj Reciprocal Sign Sqrt Exp Expm1 Log Log1p Log2 Log10 Sin Cos Tan Sinh Cosh Tanh Asin
            Acos Atan Asinh Acosh Atanh
    };
    kernels.push(array_kernel(
        "Complex",
        COMPONENT_DTYPES,
        COMPLEX_DTYPES,
        |call| {
            let part = call.input(0)?.dtype();
            let whole = match part {
                Dtype::F32 => Dtype::C64,
                Dtype::F64 => Dtype::C128,
                _ => return Err(PluginError::invalid_argument("expected parts of f32 or f64, found others")),
            };
            complex_loop::<2, _, _>(
                (part, whole),
                part == Dtype::F64,
                JoinComponents::<f32>(PhantomData),
                JoinComponents::<f64>(PhantomData),
            )
        },
        [(); 2],
    ));
    kernels
}
