//! Element-wise ops of two or more operands, which broadcast.

use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, OperandFlags, Result, dtype_set, ensure};

use super::elementwise::{ElementwiseWork, run_broadcast, run_elementwise};
use super::registration::{
    ALL_DTYPES, FLOAT_DTYPES, INTEGER_DTYPES, NUMERIC_DTYPES, UNSIGNED_DTYPES, arithmetic_kernel,
    check_computable, check_output_shape, contiguous_operand, input_view, output_view, stream_kernel,
    strided_operand,
};
use crate::device::GpuDevices;
use crate::gpu::Gpu;
use crate::operand_view::OperandView;
use crate::source::{ArithmeticKind, ElementFormula, INPUT_NAMES, arithmetic_kind};

/// An op with its formulas over `a` and `b` for floating point and for integers.
struct BinaryOp {
    op: &'static str,
    since: u32,
    dtypes: DtypeSet,
    float: &'static str,
    integer: &'static str,
    /// True if the output is `bool`.
    is_test: bool,
}

const BOOL_DTYPES: DtypeSet = dtype_set(&[Dtype::BOOL]);

macro_rules! binary {
    ($($op:literal $since:literal $dtypes:ident $float:literal $integer:literal $is_test:literal;)*) => {
        &[$(BinaryOp {
            op: $op, since: $since, dtypes: $dtypes, float: $float, integer: $integer, is_test: $is_test,
        }),*]
    };
}

// Integers go through macros that compute unsigned, because signed overflow is undefined in C.
const BINARY_OPS: &[BinaryOp] = binary! {
    "Add" 7 NUMERIC_DTYPES "a + b" "WRAP_ADD(a, b)" false;
    "Sub" 7 NUMERIC_DTYPES "a - b" "WRAP_SUB(a, b)" false;
    "Mul" 7 NUMERIC_DTYPES "a * b" "WRAP_MUL(a, b)" false;
    "And" 7 BOOL_DTYPES "" "a && b" true;
    "Or" 7 BOOL_DTYPES "" "a || b" true;
    // Loads make every `bool` 0 or 1, so `!=` is an exclusive or.
    "Xor" 7 BOOL_DTYPES "" "a != b" true;
    "Equal" 7 ALL_DTYPES "a == b" "a == b" true;
    "Greater" 7 NUMERIC_DTYPES "a > b" "a > b" true;
    "GreaterOrEqual" 12 NUMERIC_DTYPES "a >= b" "a >= b" true;
    "Less" 7 NUMERIC_DTYPES "a < b" "a < b" true;
    "LessOrEqual" 12 NUMERIC_DTYPES "a <= b" "a <= b" true;
    "BitwiseAnd" 18 INTEGER_DTYPES "" "a & b" false;
    "BitwiseOr" 18 INTEGER_DTYPES "" "a | b" false;
    "BitwiseXor" 18 INTEGER_DTYPES "" "a ^ b" false;
};

/// Ops with any number of operands.
const VARIADIC_OPS: &[(&str, DtypeSet, ElementFormula)] = &[
    ("Max", NUMERIC_DTYPES, ElementFormula::Fold("maximum")),
    ("Min", NUMERIC_DTYPES, ElementFormula::Fold("minimum")),
    ("Sum", FLOAT_DTYPES, ElementFormula::Fold("plus")),
    ("Mean", FLOAT_DTYPES, ElementFormula::Mean),
];

pub(super) fn binary_kernels<G: Gpu>() -> Vec<Kernel<GpuDevices<G>>> {
    let table = BINARY_OPS.iter().map(|binary| {
        let operand = strided_operand(binary.dtypes).with_dtype_group(1);
        let result = if binary.is_test {
            contiguous_operand(BOOL_DTYPES)
        } else {
            contiguous_operand(binary.dtypes).with_dtype_group(1)
        };
        let kernel = arithmetic_kernel(binary.op, |gpus: &GpuDevices<G>, call| {
            let is_float = arithmetic_kind(input_view(call, 0)?.dtype) == ArithmeticKind::Float;
            run_binary(
                gpus,
                call,
                ElementFormula::Plain(if is_float { binary.float } else { binary.integer }),
            )
        })
        .since_version(binary.since)
        .with_inputs([operand.with_name("A"), operand.with_name("B")])
        .with_outputs([result.with_name("C")]);
        // A `bool` may be smaller than an input: in place, one work-item would overwrite elements that another has yet to read.
        if binary.is_test { kernel } else { kernel.with_in_place(0, 0).with_in_place(0, 1) }
    });
    let folds = VARIADIC_OPS.iter().map(|(op, dtypes, formula)| {
        arithmetic_kernel(op, |gpus: &GpuDevices<G>, call| run_fold(gpus, call, *formula))
            .since_version(8)
            .with_support_check(|gpus, call| {
                // A new check replaces the one of `arithmetic_kernel`, so it repeats it.
                check_input_count(call)?;
                check_computable(gpus, call)
            })
            .with_inputs([strided_operand(*dtypes)
                .with_dtype_group(1)
                .with_flags(OperandFlags::VARIADIC)
                .with_name("data_0")])
            .with_outputs([contiguous_operand(*dtypes).with_dtype_group(1)])
    });
    table.chain(folds).chain(special_binary_kernels()).collect()
}

fn special_binary_kernels<G: Gpu>() -> [Kernel<GpuDevices<G>>; 6] {
    let number = |dtypes| strided_operand(dtypes).with_dtype_group(1);
    [
        arithmetic_kernel("Div", run_division::<G>)
            .since_version(7)
            .with_inputs([number(NUMERIC_DTYPES).with_name("A"), number(NUMERIC_DTYPES).with_name("B")])
            .with_outputs([contiguous_operand(NUMERIC_DTYPES).with_dtype_group(1).with_name("C")])
            .with_in_place(0, 0)
            .with_in_place(0, 1),
        arithmetic_kernel("Mod", run_modulo::<G>)
            .since_version(10)
            .with_inputs([number(NUMERIC_DTYPES).with_name("A"), number(NUMERIC_DTYPES).with_name("B")])
            .with_outputs([contiguous_operand(NUMERIC_DTYPES).with_dtype_group(1).with_name("C")]),
        arithmetic_kernel("Pow", run_power::<G>)
            .since_version(7)
            .with_inputs([
                number(NUMERIC_DTYPES).with_name("X"),
                strided_operand(NUMERIC_DTYPES).with_name("Y"),
            ])
            .with_outputs([contiguous_operand(NUMERIC_DTYPES).with_dtype_group(1).with_name("Z")]),
        arithmetic_kernel("BitShift", run_bit_shift::<G>)
            .since_version(11)
            .with_inputs([number(UNSIGNED_DTYPES).with_name("X"), number(UNSIGNED_DTYPES).with_name("Y")])
            .with_outputs([contiguous_operand(UNSIGNED_DTYPES).with_dtype_group(1).with_name("Z")]),
        arithmetic_kernel("PRelu", run_prelu::<G>)
            .since_version(7)
            .with_inputs([number(NUMERIC_DTYPES).with_name("X"), number(NUMERIC_DTYPES).with_name("slope")])
            .with_outputs([contiguous_operand(NUMERIC_DTYPES).with_dtype_group(1).with_name("Y")]),
        // `Where` only selects, so it works on bits of any dtype.
        stream_kernel("Where", run_where::<G>)
            .since_version(9)
            .with_inputs([
                strided_operand(BOOL_DTYPES).with_name("condition"),
                number(ALL_DTYPES).with_name("X"),
                number(ALL_DTYPES).with_name("Y"),
            ])
            .with_outputs([contiguous_operand(ALL_DTYPES).with_dtype_group(1).with_name("output")]),
    ]
}

fn run_binary<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>, formula: ElementFormula) -> Result<()> {
    let (a, b, y) = (input_view(call, 0)?, input_view(call, 1)?, output_view(call, 0)?);
    run_elementwise(gpus, call, ElementwiseWork::without_parameters(formula, a.dtype), &[&a, &b], &y)
}

/// Counts the operands, up to the number of names that formulas have for inputs.
fn check_input_count(call: &KernelCall<'_>) -> Result<usize> {
    // A kernel has a fixed list of parameters: each number of inputs is a program of its own, and the list has to end somewhere.
    let (count, most) = (call.input_count(), INPUT_NAMES.len());
    ensure!((1..=most).contains(&count), unimplemented, "expected 1 to {most} inputs, found {count}");
    Ok(count)
}

fn run_fold<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>, formula: ElementFormula) -> Result<()> {
    let count = check_input_count(call)?;
    let inputs: Vec<OperandView> = (0..count).map(|index| input_view(call, index)).collect::<Result<_>>()?;
    let y = output_view(call, 0)?;
    run_elementwise(
        gpus,
        call,
        ElementwiseWork::without_parameters(formula, y.dtype),
        &inputs.iter().collect::<Vec<_>>(),
        &y,
    )
}

fn run_division<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let is_float = arithmetic_kind(input_view(call, 0)?.dtype) == ArithmeticKind::Float;
    run_binary(
        gpus,
        call,
        // Floats have infinity and NaN for the result. Only integers need a program that can report a fault.
        if is_float { ElementFormula::Plain("a / b") } else { ElementFormula::Division("divide(a, b)") },
    )
}

fn run_modulo<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let is_float = arithmetic_kind(input_view(call, 0)?.dtype) == ArithmeticKind::Float;
    // `%` in C follows the sign of the dividend. Without `fmod` the op follows that of the divisor.
    let formula = match (call.int_attribute("fmod")?.unwrap_or(0) != 0, is_float) {
        (true, true) => ElementFormula::Plain("fmod(a, b)"),
        (true, false) => ElementFormula::Division("remainder_like_c(a, b)"),
        (false, true) => ElementFormula::Plain("remainder_like_divisor(a, b)"),
        (false, false) => ElementFormula::Division("remainder_like_divisor(a, b)"),
    };
    run_binary(gpus, call, formula)
}

/// The exponent may have another dtype than the base; integer powers of integers are exact.
fn run_power<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let formula =
        match (arithmetic_kind(input_view(call, 0)?.dtype), arithmetic_kind(input_view(call, 1)?.dtype)) {
            (ArithmeticKind::Float, _) => "pow(a, (T)b)",
            // In `f32` on every device, since some have nothing wider.
            (_, ArithmeticKind::Float) => "pow((f32)a, (f32)b)",
            _ => "power(a, (T)b)",
        };
    run_binary(gpus, call, ElementFormula::Plain(formula))
}

fn run_bit_shift<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let direction = call.string_attribute("direction")?;
    let formula = match direction {
        Some("LEFT") => "SHIFT(a, b, <<)",
        Some("RIGHT") => "SHIFT(a, b, >>)",
        _ => {
            let found = direction.unwrap_or("nothing");
            return Err(oarlock_sdk::PluginError::invalid_argument(format!(
                "expected the `direction` LEFT or RIGHT, found {found}"
            )));
        }
    };
    run_binary(gpus, call, ElementFormula::Plain(formula))
}

/// The slope broadcasts to the input, never the input to the slope.
fn run_prelu<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (x, slope, y) = (input_view(call, 0)?, input_view(call, 1)?, output_view(call, 0)?);
    // `run_broadcast` would also accept an output larger than the input.
    check_output_shape(&x.dims, &y)?;
    let formula = if arithmetic_kind(x.dtype) == ArithmeticKind::Float {
        "a < 0 ? b * a : a"
    } else {
        "a < 0 ? WRAP_MUL(a, b) : a"
    };
    run_broadcast(
        gpus,
        call,
        ElementwiseWork::without_parameters(ElementFormula::Plain(formula), x.dtype),
        &[&x, &slope],
        &y,
    )
}

fn run_where<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let condition = input_view(call, 0)?;
    let (x, y, result) = (
        input_view(call, 1)?.reinterpret_as_bits(),
        input_view(call, 2)?.reinterpret_as_bits(),
        output_view(call, 0)?.reinterpret_as_bits(),
    );
    let work = ElementwiseWork::without_parameters(ElementFormula::Plain("a ? b : c"), result.dtype);
    run_elementwise(gpus, call, work, &[&condition, &x, &y], &result)
}
