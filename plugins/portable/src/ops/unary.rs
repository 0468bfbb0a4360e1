//! Ops of one operand, element by element.

use oarlock_sdk::{Dtype, DtypeSet, Kernel, KernelCall, Result, dtype_set};

use super::elementwise::{ElementwiseWork, run_elementwise};
use super::registration::{
    ALL_DTYPES, FLOAT_DTYPES, INTEGER_DTYPES, NUMERIC_DTYPES, arithmetic_kernel, input_view, output_view,
    strided_operand,
};
use crate::argument_list::FormulaNumber;
use crate::device::GpuDevices;
use crate::gpu::Gpu;
use crate::source::{ArithmeticKind, ElementFormula, arithmetic_kind};

/// An op with its formulas over `a` for floating point and for integers.
struct UnaryOp {
    op: &'static str,
    since: u32,
    dtypes: DtypeSet,
    float: &'static str,
    integer: &'static str,
    /// Attributes that become the formula's parameters `p`, `q` and so on, with their defaults.
    attributes: &'static [(&'static str, f64)],
}

const BOOL_DTYPES: DtypeSet = dtype_set(&[Dtype::BOOL]);

macro_rules! floats {
    ($($op:literal $since:literal $formula:literal $($attributes:expr)?;)*) => {
        [$(UnaryOp {
            op: $op,
            since: $since,
            dtypes: FLOAT_DTYPES,
            float: $formula,
            integer: "",
            attributes: floats!(@attributes $($attributes)?),
        }),*]
    };
    (@attributes) => { &[] };
    (@attributes $attributes:expr) => { &$attributes };
}

// All three languages overload functions such as `exp` for `f32` and `f64`, so one formula serves both. Fractions go through `REAL`,
// because without a suffix they are `f64` and would drag the formula along.
const FLOAT_OPS: &[UnaryOp] = &floats! {
    "Acos" 7 "acos(a)";
    "Acosh" 9 "acosh(a)";
    "Asin" 7 "asin(a)";
    "Asinh" 9 "asinh(a)";
    "Atan" 7 "atan(a)";
    "Atanh" 9 "atanh(a)";
    "Ceil" 6 "ceil(a)";
    "Celu" 12 "a < 0 ? p * expm1(a / p) : a" [("alpha", 1.0)];
    "Cos" 7 "cos(a)";
    "Cosh" 9 "cosh(a)";
    // `expm1` keeps the digits that `exp(a) - 1` loses near 0.
    "Elu" 6 "a < 0 ? p * expm1(a) : a" [("alpha", 1.0)];
    "Erf" 9 "erf(a)";
    "Exp" 6 "exp(a)";
    "Floor" 6 "floor(a)";
    // `CLAMP` lets NaN through; `fmin` and `fmax` would replace it by a bound.
    "HardSigmoid" 6 "CLAMP(p * a + q, (T)0, (T)1)" [("alpha", 0.2), ("beta", 0.5)];
    "HardSwish" 14 "a * CLAMP(a / 6 + REAL(0.5), (T)0, (T)1)";
    "LeakyRelu" 6 "a < 0 ? p * a : a" [("alpha", 0.01)];
    "Log" 6 "log(a)";
    "Mish" 18 "a * tanh(softplus(a))";
    "Reciprocal" 6 "1 / a";
    // `rint` takes ties to even, as the op wants; `round` takes them away from 0.
    "Round" 11 "rint(a)";
    "Selu" 6 "q * (a < 0 ? p * expm1(a) : a)"
        [("alpha", 1.673_263_242_354_377_2), ("gamma", 1.050_700_987_355_480_5)];
    "Shrink" 9 "a < -q ? a + p : (a > q ? a - p : (IS_NAN(a) ? a : 0))" [("bias", 0.0), ("lambd", 0.5)];
    // Where `exp` overflows the quotient is 0, which is right.
    "Sigmoid" 6 "1 / (1 + exp(-a))";
    "Sin" 7 "sin(a)";
    "Sinh" 9 "sinh(a)";
    "Softplus" 1 "softplus(a)";
    "Softsign" 1 "a / (1 + fabs(a))";
    "Sqrt" 6 "sqrt(a)";
    "Swish" 24 "a / (1 + exp(-p * a))" [("alpha", 1.0)];
    "Tan" 7 "tan(a)";
    "Tanh" 6 "tanh(a)";
    "ThresholdedRelu" 10 "a <= p ? 0 : a" [("alpha", 1.0)];
};

const OTHER_UNARY_OPS: &[UnaryOp] = &[
    UnaryOp {
        op: "Abs",
        since: 6,
        dtypes: NUMERIC_DTYPES,
        float: "fabs(a)",
        integer: "a < 0 ? WRAP_NEG(a) : a",
        attributes: &[],
    },
    UnaryOp {
        op: "Neg",
        since: 6,
        dtypes: NUMERIC_DTYPES,
        float: "-a",
        integer: "WRAP_NEG(a)",
        attributes: &[],
    },
    UnaryOp {
        op: "Relu",
        since: 6,
        dtypes: NUMERIC_DTYPES,
        // No comparison with NaN is true, so NaN stays.
        float: "a < 0 ? 0 : a",
        integer: "a < 0 ? 0 : a",
        attributes: &[],
    },
    UnaryOp {
        op: "Sign",
        since: 9,
        dtypes: NUMERIC_DTYPES,
        // Both comparisons are false for NaN, which would become 0.
        float: "IS_NAN(a) ? a : (T)((a > 0) - (a < 0))",
        integer: "(a > 0) - (a < 0)",
        attributes: &[],
    },
    UnaryOp {
        op: "BitwiseNot",
        since: 18,
        dtypes: INTEGER_DTYPES,
        float: "",
        integer: "~a",
        attributes: &[],
    },
    UnaryOp { op: "Not", since: 1, dtypes: BOOL_DTYPES, float: "", integer: "!a", attributes: &[] },
];

pub(super) fn unary_kernels<G: Gpu>() -> Vec<Kernel<GpuDevices<G>>> {
    let table = FLOAT_OPS.iter().chain(OTHER_UNARY_OPS).map(|unary| {
        let operand = strided_operand(unary.dtypes).with_dtype_group(1);
        arithmetic_kernel(unary.op, |gpus: &GpuDevices<G>, call| run_unary(gpus, call, unary))
            .since_version(unary.since)
            .with_inputs([operand])
            .with_outputs([super::registration::contiguous_operand(unary.dtypes).with_dtype_group(1)])
            .with_in_place(0, 0)
    });
    let tests = [("IsNaN", 9), ("IsInf", 10)].into_iter().map(|(op, since)| {
        arithmetic_kernel(op, move |gpus: &GpuDevices<G>, call| run_float_test(gpus, call, op == "IsNaN"))
            .since_version(since)
            .with_inputs([strided_operand(FLOAT_DTYPES)])
            .with_outputs([super::registration::contiguous_operand(BOOL_DTYPES)])
    });
    let gelu = arithmetic_kernel("Gelu", run_gelu::<G>)
        .since_version(20)
        .with_inputs([strided_operand(FLOAT_DTYPES).with_dtype_group(1).with_name("X")])
        .with_outputs([super::registration::contiguous_operand(FLOAT_DTYPES)
            .with_dtype_group(1)
            .with_name("Y")])
        .with_in_place(0, 0);
    let cast = ["Cast", "CastLike"].into_iter().map(|op| {
        // Only the dtype of this operand counts, and the output has it already.
        let target = (op == "CastLike").then(|| strided_operand(ALL_DTYPES).with_name("target_type"));
        arithmetic_kernel(op, run_cast::<G>)
            .since_version(if op == "Cast" { 6 } else { 15 })
            .with_inputs(std::iter::once(strided_operand(ALL_DTYPES).with_name("input")).chain(target))
            .with_outputs([super::registration::contiguous_operand(ALL_DTYPES).with_name("output")])
    });
    table.chain(tests).chain([gelu]).chain(cast).collect()
}

fn run_unary<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>, unary: &UnaryOp) -> Result<()> {
    let (x, y) = (input_view(call, 0)?, output_view(call, 0)?);
    let formula = if arithmetic_kind(x.dtype) == ArithmeticKind::Float { unary.float } else { unary.integer };
    let parameter = |(name, default): &(&str, f64)| {
        Ok(FormulaNumber::Float(call.float_attribute(name)?.unwrap_or(*default)))
    };
    let parameters: Vec<FormulaNumber> = unary.attributes.iter().map(parameter).collect::<Result<_>>()?;
    let work = ElementwiseWork {
        formula: ElementFormula::Plain(formula),
        compute: x.dtype,
        parameters: &parameters,
    };
    run_elementwise(gpus, call, work, &[&x], &y)
}

fn run_float_test<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>, is_nan: bool) -> Result<()> {
    let (x, y) = (input_view(call, 0)?, output_view(call, 0)?);
    let wanted = |name| Ok(call.int_attribute(name)?.unwrap_or(1) != 0);
    let formula = match (is_nan, wanted("detect_positive")?, wanted("detect_negative")?) {
        (true, ..) => "IS_NAN(a)",
        (false, true, true) => "fabs(a) == INFINITE",
        (false, true, false) => "a == INFINITE",
        (false, false, true) => "a == -INFINITE",
        (false, false, false) => "0",
    };
    run_elementwise(
        gpus,
        call,
        ElementwiseWork::without_parameters(ElementFormula::Plain(formula), x.dtype),
        &[&x],
        &y,
    )
}

fn run_gelu<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (x, y) = (input_view(call, 0)?, output_view(call, 0)?);
    let formula = match call.string_attribute("approximate")? {
        Some("tanh") => {
            "a * REAL(0.5) * (1 + tanh(REAL(0.797884560802865356) * (a + REAL(0.044715) * a * a * a)))"
        }
        _ => "a * REAL(0.5) * (1 + erf(a * REAL(0.707106781186547524)))",
    };
    run_elementwise(
        gpus,
        call,
        ElementwiseWork::without_parameters(ElementFormula::Plain(formula), x.dtype),
        &[&x],
        &y,
    )
}

fn run_cast<G: Gpu>(gpus: &GpuDevices<G>, call: &KernelCall<'_>) -> Result<()> {
    let (x, y) = (input_view(call, 0)?, output_view(call, 0)?);
    // Computed in the dtype of the input, so that the limits of the target meet a number that was not rounded yet.
    run_elementwise(gpus, call, ElementwiseWork::without_parameters(ElementFormula::Cast, x.dtype), &[&x], &y)
}
