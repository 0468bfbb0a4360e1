//! Functions of two elements.

use std::marker::PhantomData;

use oarlock_cpu_base::arithmetic::ArithmeticElement;
use oarlock_cpu_base::device::Cpu;
use oarlock_cpu_base::isa::SimdTarget;
use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, Result};

use super::dtype_dispatch::with_number;
use super::element_loop::{ElementFault, ElementMap, MapLoop};
use super::legacy_broadcast;
use super::operand_conversion::OperandConversion;
use super::prepared_loop::PreparedLoop;
use super::registration::{BOOL, NUMBERS, elementwise_kernel, input_operand, output_operand};
use super::unary::maps;

maps! {
    /// a + b
    Plus(a, b) => a.plus(b);
    /// a - b
    Minus(a, b) => a.minus(b);
    /// a · b
    Times(a, b) => a.times(b);
    /// The larger operand; NaN if either is NaN.
    Larger(a, b) => a.maximum(b);
    /// The smaller operand; NaN if either is NaN.
    Smaller(a, b) => a.minimum(b);
    // NaN is not below 0, and stays.
    Slope(x, slope) => if x < N::default() { x.times(slope) } else { x };
    Equal(a, b) -> u8 => u8::from(a == b);
    Greater(a, b) -> u8 => u8::from(a > b);
    GreaterOrEqual(a, b) -> u8 => u8::from(a >= b);
    Less(a, b) -> u8 => u8::from(a < b);
    LessOrEqual(a, b) -> u8 => u8::from(a <= b);
}

/// Maps that are undefined for integers if the divisor is 0.
macro_rules! divisions {
    ($($name:ident: $function:ident, vectors: $is_vectorized:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            pub(super) struct $name<N>(pub(super) PhantomData<N>);

            impl<N: ArithmeticElement> ElementMap for $name<N> {
                type Input = (N, N);
                type Output = N;
                const HAS_EXCEPTIONS: bool = N::IS_INTEGER;
                const IS_VECTORIZED: bool = $is_vectorized;

                #[inline(always)]
                fn apply<T: SimdTarget>(self, (a, b): (N, N)) -> N {
                    a.$function(b)
                }

                #[inline(always)]
                fn is_exception(self, (_, b): (N, N)) -> bool {
                    b == N::default()
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
    Over: divided_by, vectors: !N::IS_INTEGER;
    // The remainder of floats is a function call, which instruction sets do not speed up.
    TruncatedRest: truncated_remainder, vectors: false;
    FlooredRest: floored_remainder, vectors: false;
}

/// The loop of a map of two numbers of a dtype to one of the same.
macro_rules! number_pass {
    ($call:expr, $map:ident) => {{
        let dtype = $call.input(0)?.dtype();
        with_number!(dtype, all, N => {
            let (input, output) = (OperandConversion::for_input(dtype, N::DTYPE)?, OperandConversion::for_output(dtype, N::DTYPE)?);
            Ok(PreparedLoop::new(MapLoop($map::<N>(PhantomData)), [input; 2], output))
        })
    }};
}

/// The loop of a comparison.
macro_rules! comparison_pass {
    ($call:expr, $map:ident) => {{
        let dtype = $call.input(0)?.dtype();
        let output = OperandConversion::without_conversion(Dtype::BOOL);
        if dtype == Dtype::BOOL {
            // A `bool` is a byte of 0 or 1, and compares like one.
            return Ok(PreparedLoop::new(MapLoop($map::<u8>(PhantomData)), [output; 2], output));
        }
        with_number!(dtype, all, N => {
            Ok(PreparedLoop::new(MapLoop($map::<N>(PhantomData)), [OperandConversion::for_input(dtype, N::DTYPE)?; 2], output))
        })
    }};
}

/// The rows of a binary op: versions up to 6 align the second input by an attribute, later ones broadcast.
fn versioned_kernels(
    op: &'static str,
    dtypes: DtypeSet,
    pass: impl Fn(&KernelCall<'_>) -> Result<PreparedLoop> + Copy + Send + Sync + 'static,
) -> [Kernel<Cpu>; 2] {
    let inputs =
        [input_operand("A", dtypes).with_dtype_group(1), input_operand("B", dtypes).with_dtype_group(1)];
    let output = output_operand("C", dtypes).with_dtype_group(1);
    [
        legacy_broadcast::legacy_kernel(op, inputs, output, pass),
        elementwise_kernel(op, 7, inputs, output, pass).with_in_place(0, 0).with_in_place(0, 1),
    ]
}

fn comparison_kernels(
    op: &'static str,
    since: u32,
    dtypes: DtypeSet,
    pass: impl Fn(&KernelCall<'_>) -> Result<PreparedLoop> + Copy + Send + Sync + 'static,
) -> Vec<Kernel<Cpu>> {
    let inputs =
        [input_operand("A", dtypes).with_dtype_group(1), input_operand("B", dtypes).with_dtype_group(1)];
    let newer = elementwise_kernel(op, since, inputs, output_operand("C", BOOL), pass);
    // Ops of later versions never had the attributes of the first broadcasts.
    if since > 7 {
        vec![newer]
    } else {
        vec![newer, legacy_broadcast::legacy_kernel(op, inputs, output_operand("C", BOOL), pass)]
    }
}

fn modulo_kernel() -> Kernel<Cpu> {
    let inputs =
        [input_operand("A", NUMBERS).with_dtype_group(1), input_operand("B", NUMBERS).with_dtype_group(1)];
    elementwise_kernel("Mod", 10, inputs, output_operand("C", NUMBERS).with_dtype_group(1), |call| {
        // The remainder has the sign of the divisor, as in Python, or with `fmod` that of the dividend, as in C.
        if call.int_attribute("fmod")?.unwrap_or(0) == 0 {
            number_pass!(call, FlooredRest)
        } else {
            number_pass!(call, TruncatedRest)
        }
    })
    .with_in_place(0, 0)
    .with_in_place(0, 1)
}

fn parametric_relu_kernels() -> [Kernel<Cpu>; 2] {
    let inputs = [
        input_operand("X", NUMBERS).with_dtype_group(1),
        input_operand("slope", NUMBERS).with_dtype_group(1),
    ];
    let output = output_operand("Y", NUMBERS).with_dtype_group(1);
    let pass = |call: &KernelCall<'_>| number_pass!(call, Slope);
    [
        elementwise_kernel("PRelu", 7, inputs, output, pass).with_in_place(0, 0),
        legacy_broadcast::legacy_channel_kernel("PRelu", inputs, output, pass),
    ]
}

pub(super) fn binary_kernels() -> Vec<Kernel<Cpu>> {
    let mut kernels = vec![modulo_kernel()];
    kernels.extend(versioned_kernels("Add", NUMBERS, |call| number_pass!(call, Plus)));
    kernels.extend(versioned_kernels("Sub", NUMBERS, |call| number_pass!(call, Minus)));
    kernels.extend(versioned_kernels("Mul", NUMBERS, |call| number_pass!(call, Times)));
    kernels.extend(versioned_kernels("Div", NUMBERS, |call| number_pass!(call, Over)));
    kernels.extend(parametric_relu_kernels());
    kernels.extend(comparison_kernels("Equal", 7, NUMBERS.union(BOOL), |call| comparison_pass!(call, Equal)));
    kernels.extend(comparison_kernels("Greater", 7, NUMBERS, |call| comparison_pass!(call, Greater)));
    kernels.extend(comparison_kernels("Less", 7, NUMBERS, |call| comparison_pass!(call, Less)));
    kernels.extend(comparison_kernels("GreaterOrEqual", 12, NUMBERS, |call| {
        comparison_pass!(call, GreaterOrEqual)
    }));
    kernels
        .extend(comparison_kernels("LessOrEqual", 12, NUMBERS, |call| comparison_pass!(call, LessOrEqual)));
    kernels
}
