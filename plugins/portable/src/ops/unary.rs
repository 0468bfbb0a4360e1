//! Ops of one operand, element by element.

use oarlock_sdk::{Call, Dtype, DtypeSet, Kernel, Result, dtype_set};

use super::elementwise::{Work, elementwise};
use super::row::{ALL, FLOATS, INTEGERS, NUMBERS, arithmetic, input, output, strided};
use crate::arguments::Number;
use crate::device::Gpus;
use crate::gpu::Gpu;
use crate::source::{Formula, Kind, kind};

/// One op: what it computes of `a`, in floating point and in integers.
struct Unary {
    op: &'static str,
    since: u32,
    dtypes: DtypeSet,
    float: &'static str,
    integer: &'static str,
    /// The attributes that are parameters `p` and so on of the formula, with their defaults.
    attributes: &'static [(&'static str, f64)],
}

const BOOL: DtypeSet = dtype_set(&[Dtype::BOOL]);

macro_rules! floats {
    ($($op:literal $since:literal $formula:literal $($attributes:expr)?;)*) => {
        [$(Unary {
            op: $op,
            since: $since,
            dtypes: FLOATS,
            float: $formula,
            integer: "",
            attributes: floats!(@attributes $($attributes)?),
        }),*]
    };
    (@attributes) => { &[] };
    (@attributes $attributes:expr) => { &$attributes };
}

const FLOATING: &[Unary] = &floats! {
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
    "Elu" 6 "a < 0 ? p * expm1(a) : a" [("alpha", 1.0)];
    "Erf" 9 "erf(a)";
    "Exp" 6 "exp(a)";
    "Floor" 6 "floor(a)";
    "HardSigmoid" 6 "CLAMP(p * a + q, (T)0, (T)1)" [("alpha", 0.2), ("beta", 0.5)];
    "HardSwish" 14 "a * CLAMP(a / 6 + REAL(0.5), (T)0, (T)1)";
    "LeakyRelu" 6 "a < 0 ? p * a : a" [("alpha", 0.01)];
    "Log" 6 "log(a)";
    "Mish" 18 "a * tanh(softplus(a))";
    "Reciprocal" 6 "1 / a";
    "Round" 11 "rint(a)";
    "Selu" 6 "q * (a < 0 ? p * expm1(a) : a)"
        [("alpha", 1.673_263_242_354_377_2), ("gamma", 1.050_700_987_355_480_5)];
    "Shrink" 9 "a < -q ? a + p : (a > q ? a - p : (IS_NAN(a) ? a : 0))" [("bias", 0.0), ("lambd", 0.5)];
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

const OTHERS: &[Unary] = &[
    Unary {
        op: "Abs",
        since: 6,
        dtypes: NUMBERS,
        float: "fabs(a)",
        integer: "a < 0 ? WRAP_NEG(a) : a",
        attributes: &[],
    },
    Unary { op: "Neg", since: 6, dtypes: NUMBERS, float: "-a", integer: "WRAP_NEG(a)", attributes: &[] },
    Unary {
        op: "Relu",
        since: 6,
        dtypes: NUMBERS,
        float: "a < 0 ? 0 : a",
        integer: "a < 0 ? 0 : a",
        attributes: &[],
    },
    Unary {
        op: "Sign",
        since: 9,
        dtypes: NUMBERS,
        float: "IS_NAN(a) ? a : (T)((a > 0) - (a < 0))",
        integer: "(a > 0) - (a < 0)",
        attributes: &[],
    },
    Unary { op: "BitwiseNot", since: 18, dtypes: INTEGERS, float: "", integer: "~a", attributes: &[] },
    Unary { op: "Not", since: 1, dtypes: BOOL, float: "", integer: "!a", attributes: &[] },
];

pub(super) fn kernels<G: Gpu>() -> Vec<Kernel<Gpus<G>>> {
    let table = FLOATING.iter().chain(OTHERS).map(|unary| {
        let operand = strided(unary.dtypes).group(1);
        arithmetic(unary.op, |gpus: &Gpus<G>, call| run(gpus, call, unary))
            .since(unary.since)
            .inputs([operand])
            .outputs([super::row::plain(unary.dtypes).group(1)])
            .in_place(0, 0)
    });
    let tests = [("IsNaN", 9), ("IsInf", 10)].into_iter().map(|(op, since)| {
        arithmetic(op, move |gpus: &Gpus<G>, call| test(gpus, call, op == "IsNaN"))
            .since(since)
            .inputs([strided(FLOATS)])
            .outputs([super::row::plain(BOOL)])
    });
    let gelu = arithmetic("Gelu", gelu::<G>)
        .since(20)
        .inputs([strided(FLOATS).group(1).named("X")])
        .outputs([super::row::plain(FLOATS).group(1).named("Y")])
        .in_place(0, 0);
    let cast = ["Cast", "CastLike"].into_iter().map(|op| {
        let target = (op == "CastLike").then(|| strided(ALL).named("target_type"));
        arithmetic(op, cast::<G>)
            .since(if op == "Cast" { 6 } else { 15 })
            .inputs(std::iter::once(strided(ALL).named("input")).chain(target))
            .outputs([super::row::plain(ALL).named("output")])
    });
    table.chain(tests).chain([gelu]).chain(cast).collect()
}

fn run<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>, unary: &Unary) -> Result<()> {
    let (x, y) = (input(call, 0)?, output(call, 0)?);
    let formula = if kind(x.dtype) == Kind::Float { unary.float } else { unary.integer };
    let parameter = |(name, default): &(&str, f64)| Ok(Number::Float(call.float(name)?.unwrap_or(*default)));
    let parameters: Vec<Number> = unary.attributes.iter().map(parameter).collect::<Result<_>>()?;
    let work = Work { formula: Formula::Plain(formula), compute: x.dtype, parameters: &parameters };
    elementwise(gpus, call, work, &[&x], &y)
}

fn test<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>, is_nan: bool) -> Result<()> {
    let (x, y) = (input(call, 0)?, output(call, 0)?);
    let wanted = |name| Ok(call.int(name)?.unwrap_or(1) != 0);
    let formula = match (is_nan, wanted("detect_positive")?, wanted("detect_negative")?) {
        (true, ..) => "IS_NAN(a)",
        (false, true, true) => "fabs(a) == INFINITE",
        (false, true, false) => "a == INFINITE",
        (false, false, true) => "a == -INFINITE",
        (false, false, false) => "0",
    };
    elementwise(gpus, call, Work::plain(Formula::Plain(formula), x.dtype), &[&x], &y)
}

fn gelu<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (x, y) = (input(call, 0)?, output(call, 0)?);
    let formula = match call.string("approximate")? {
        Some("tanh") => {
            "a * REAL(0.5) * (1 + tanh(REAL(0.797884560802865356) * (a + REAL(0.044715) * a * a * a)))"
        }
        _ => "a * REAL(0.5) * (1 + erf(a * REAL(0.707106781186547524)))",
    };
    elementwise(gpus, call, Work::plain(Formula::Plain(formula), x.dtype), &[&x], &y)
}

fn cast<G: Gpu>(gpus: &Gpus<G>, call: &Call<'_>) -> Result<()> {
    let (x, y) = (input(call, 0)?, output(call, 0)?);
    elementwise(gpus, call, Work::plain(Formula::Cast, x.dtype), &[&x], &y)
}
