//! Functions of two elements.

use std::marker::PhantomData;

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, Result};

use super::aligned;
use super::inner::{Fault, Loop, Map};
use super::number::{Number, with_number};
use super::pass::Pass;
use super::port::Port;
use super::row::{BOOL, NUMBERS, input, output, row};
use super::unary::maps;
use crate::device::Cpu;
use crate::isa::Target;

maps! {
    /// a + b
    Plus(a, b) => a.plus(b);
    /// a - b
    Minus(a, b) => a.minus(b);
    /// a · b
    Times(a, b) => a.times(b);
    /// The larger of both.
    Larger(a, b) => a.larger(b);
    /// The smaller of both.
    Smaller(a, b) => a.smaller(b);
    Slope(x, slope) => if x < N::default() { x.times(slope) } else { x };
    Equal(a, b) -> u8 => u8::from(a == b);
    Greater(a, b) -> u8 => u8::from(a > b);
    GreaterOrEqual(a, b) -> u8 => u8::from(a >= b);
    Less(a, b) -> u8 => u8::from(a < b);
    LessOrEqual(a, b) -> u8 => u8::from(a <= b);
}

/// Maps that integers have no result of where the divisor is 0.
macro_rules! divisions {
    ($($name:ident: $function:ident, vectors: $is_vectorized:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $name<N>(PhantomData<N>);

            impl<N: Number> Map for $name<N> {
                type Input = (N, N);
                type Output = N;
                const HAS_EXCEPTIONS: bool = N::IS_INTEGER;
                const IS_VECTORIZED: bool = $is_vectorized;

                #[inline(always)]
                fn apply<T: Target>(self, (a, b): (N, N)) -> N {
                    a.$function(b)
                }

                #[inline(always)]
                fn is_exception(self, (_, b): (N, N)) -> bool {
                    b == N::default()
                }

                fn apply_to_any(self, (a, b): (N, N)) -> Result<N, Fault> {
                    if self.is_exception((a, b)) {
                        return Err(Fault("expected integers other than 0 to divide by, found 0"));
                    }
                    Ok(a.$function(b))
                }
            }
        )*
    };
}

divisions! {
    Over: over, vectors: !N::IS_INTEGER;
    TruncatedRest: truncated_rest, vectors: false;
    FlooredRest: floored_rest, vectors: false;
}

/// The pass of a map of two numbers of a dtype to one of the same.
macro_rules! number_pass {
    ($call:expr, $map:ident) => {{
        let dtype = $call.input(0)?.dtype();
        with_number!(dtype, all, N => {
            let (input, output) = (Port::input(dtype, N::DTYPE)?, Port::output(dtype, N::DTYPE)?);
            Ok(Pass::new(Loop($map::<N>(PhantomData)), [input; 2], output))
        })
    }};
}

/// The pass of a comparison.
macro_rules! comparison_pass {
    ($call:expr, $map:ident) => {{
        let dtype = $call.input(0)?.dtype();
        let output = Port::direct(Dtype::BOOL);
        if dtype == Dtype::BOOL {
            return Ok(Pass::new(Loop($map::<u8>(PhantomData)), [output; 2], output));
        }
        with_number!(dtype, all, N => {
            Ok(Pass::new(Loop($map::<N>(PhantomData)), [Port::input(dtype, N::DTYPE)?; 2], output))
        })
    }};
}

/// The versions of an op of two numbers: the first six, whose second input is aligned by an attribute, and the later ones.
fn versions(
    op: &'static str,
    dtypes: DtypeSet,
    pass: impl Fn(&Call<'_>) -> Result<Pass> + Copy + Send + Sync + 'static,
) -> [Kernel<Cpu>; 2] {
    let inputs = [input("A", dtypes).group(1), input("B", dtypes).group(1)];
    let output = output("C", dtypes).group(1);
    [aligned::row(op, inputs, output, pass), row(op, 7, inputs, output, pass).in_place(0, 0).in_place(0, 1)]
}

fn comparison(
    op: &'static str,
    since: u32,
    dtypes: DtypeSet,
    pass: impl Fn(&Call<'_>) -> Result<Pass> + Copy + Send + Sync + 'static,
) -> Vec<Kernel<Cpu>> {
    let inputs = [input("A", dtypes).group(1), input("B", dtypes).group(1)];
    let newer = row(op, since, inputs, output("C", BOOL), pass);
    if since > 7 { vec![newer] } else { vec![newer, aligned::row(op, inputs, output("C", BOOL), pass)] }
}

fn modulo() -> Kernel<Cpu> {
    let inputs = [input("A", NUMBERS).group(1), input("B", NUMBERS).group(1)];
    row("Mod", 10, inputs, output("C", NUMBERS).group(1), |call| {
        if call.int("fmod")?.unwrap_or(0) == 0 {
            number_pass!(call, FlooredRest)
        } else {
            number_pass!(call, TruncatedRest)
        }
    })
    .in_place(0, 0)
    .in_place(0, 1)
}

fn parametric_relu() -> [Kernel<Cpu>; 2] {
    let inputs = [input("X", NUMBERS).group(1), input("slope", NUMBERS).group(1)];
    let output = output("Y", NUMBERS).group(1);
    let pass = |call: &Call<'_>| number_pass!(call, Slope);
    [
        row("PRelu", 7, inputs, output, pass).in_place(0, 0),
        aligned::row_with_channels("PRelu", inputs, output, pass),
    ]
}

/// The rows of all functions of two elements but those of bits.
pub(super) fn kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = vec![modulo()];
    kernels.extend(versions("Add", NUMBERS, |call| number_pass!(call, Plus)));
    kernels.extend(versions("Sub", NUMBERS, |call| number_pass!(call, Minus)));
    kernels.extend(versions("Mul", NUMBERS, |call| number_pass!(call, Times)));
    kernels.extend(versions("Div", NUMBERS, |call| number_pass!(call, Over)));
    kernels.extend(parametric_relu());
    kernels.extend(comparison("Equal", 7, NUMBERS.union(BOOL), |call| comparison_pass!(call, Equal)));
    kernels.extend(comparison("Greater", 7, NUMBERS, |call| comparison_pass!(call, Greater)));
    kernels.extend(comparison("Less", 7, NUMBERS, |call| comparison_pass!(call, Less)));
    kernels.extend(comparison("GreaterOrEqual", 12, NUMBERS, |call| comparison_pass!(call, GreaterOrEqual)));
    kernels.extend(comparison("LessOrEqual", 12, NUMBERS, |call| comparison_pass!(call, LessOrEqual)));
    kernels
}
