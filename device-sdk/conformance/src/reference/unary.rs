//! Element-wise ops with one input.

use super::DtypeKinds::{Bool, Floats, Integers, Numbers, SignedNumbers};
use super::OpDefinition::{Unary, Whole};
use super::ToleranceClass::{Composed, Exact, Function, Rounded};
use super::case::AttributeValue::{Float, Int, Text};
use super::case::{ReferenceCase, ReferenceOutput};
use super::samples::ValueDomain::{self, AboveOne, NonZero, Positive, Small, Unit, Wide};
use super::samples::{CaseMaker, unary_cases};
use super::{DtypeKinds, OpDefinition, ReferenceCall, ReferenceOp, ToleranceClass, UnaryFunction};

pub(super) const OPS: &[ReferenceOp] = &[
    same("Abs", 1, Numbers, Exact, Small, |_, x| x.abs()).with_specials(),
    same("Neg", 1, SignedNumbers, Exact, Small, |_, x| -x).with_specials(),
    same("Sign", 9, Numbers, Exact, Small, |_, x| {
        if x > 0.0 {
            1.0
        } else if x < 0.0 {
            -1.0
        } else {
            x
        }
    }),
    same("Ceil", 1, Floats, Exact, Small, |_, x| x.ceil()).with_specials(),
    same("Floor", 1, Floats, Exact, Small, |_, x| x.floor()).with_specials(),
    same("Round", 11, Floats, Exact, Small, |_, x| x.round_ties_even()).with_specials(),
    same("Relu", 1, Numbers, Exact, Small, |_, x| if x < 0.0 { 0.0 } else { x }).with_specials(),
    same("Identity", 1, DtypeKinds::All, Exact, Small, |_, x| x).with_specials(),
    same("Not", 1, Bool, Exact, Small, |_, x| 1.0 - x),
    same("BitwiseNot", 18, Integers, Exact, Small, |_, x| -1.0 - x),
    same("Reciprocal", 1, Floats, Rounded, NonZero, |_, x| 1.0 / x).with_specials(),
    same("Sqrt", 1, Floats, Rounded, Positive, |_, x| x.sqrt()).with_specials(),
    same("Exp", 1, Floats, Function, Small, |_, x| x.exp()).with_specials(),
    same("Log", 1, Floats, Function, Positive, |_, x| x.ln()).with_specials(),
    same("Sin", 7, Floats, Function, Small, |_, x| x.sin()),
    same("Cos", 7, Floats, Function, Small, |_, x| x.cos()),
    same("Tan", 7, Floats, Composed, Unit, |_, x| x.tan()),
    same("Asin", 7, Floats, Function, Unit, |_, x| x.asin()),
    same("Acos", 7, Floats, Function, Unit, |_, x| x.acos()),
    same("Atan", 7, Floats, Function, Small, |_, x| x.atan()).with_specials(),
    same("Sinh", 9, Floats, Function, Small, |_, x| x.sinh()).with_specials(),
    same("Cosh", 9, Floats, Function, Small, |_, x| x.cosh()).with_specials(),
    same("Tanh", 1, Floats, Function, Small, |_, x| x.tanh()).with_specials(),
    same("Asinh", 9, Floats, Function, Small, |_, x| x.asinh()),
    same("Acosh", 9, Floats, Composed, AboveOne, |_, x| x.acosh()),
    same("Atanh", 9, Floats, Function, Unit, |_, x| x.atanh()),
    same("Erf", 9, Floats, Function, Small, |_, x| erf(x)).with_specials(),
    same("Sigmoid", 1, Floats, Function, Wide, |_, x| sigmoid(x)).with_specials(),
    same("Softplus", 1, Floats, Function, Wide, |_, x| softplus(x)),
    same("Softsign", 1, Floats, Composed, Small, |_, x| x / (1.0 + x.abs())),
    same("Mish", 18, Floats, Composed, Small, |_, x| x * softplus(x).tanh()),
    ReferenceOp::new("HardSwish", 14, (Floats, "T -> T"), Composed, Whole(plain_cases, hard_swish)),
    same("Gelu", 20, Floats, Composed, Small, gelu)
        .with_attributes(|| vec![vec![("approximate", Text("none"))], vec![("approximate", Text("tanh"))]]),
    same(
        "Elu",
        1,
        Floats,
        Composed,
        Small,
        |call, x| if x < 0.0 { call.float("alpha") * x.exp_m1() } else { x },
    )
    .with_attributes(|| [1.0, 0.25].map(|alpha| vec![("alpha", Float(alpha))]).to_vec()),
    same("Celu", 12, Floats, Composed, Small, |call, x| {
        let alpha = call.float("alpha");
        if x < 0.0 { alpha * (x / alpha).exp_m1() } else { x }
    })
    .with_attributes(|| [1.0, 2.0].map(|alpha| vec![("alpha", Float(alpha))]).to_vec()),
    same("Selu", 6, Floats, Composed, Small, |call, x| {
        let alpha = call.float("alpha");
        call.float("gamma") * if x > 0.0 { x } else { alpha * x.exp_m1() }
    })
    .with_attributes(|| {
        let usual =
            vec![("alpha", Float(1.673_263_192_176_818_8)), ("gamma", Float(1.050_701_022_148_132_3))];
        vec![usual, vec![("alpha", Float(0.5)), ("gamma", Float(2.0))]]
    }),
    same("LeakyRelu", 1, Floats, Rounded, Small, |call, x| if x < 0.0 { call.float("alpha") * x } else { x })
        .with_attributes(|| [0.01, 0.5].map(|alpha| vec![("alpha", Float(alpha))]).to_vec()),
    same(
        "ThresholdedRelu",
        10,
        Floats,
        Exact,
        Small,
        |call, x| if x > call.float("alpha") { x } else { 0.0 },
    )
    .with_attributes(|| [1.0, -0.5].map(|alpha| vec![("alpha", Float(alpha))]).to_vec()),
    same("HardSigmoid", 1, Floats, Composed, Small, |call, x| {
        (call.float("alpha") * x + call.float("beta")).clamp(0.0, 1.0)
    })
    .with_attributes(|| {
        [(0.2, 0.5), (0.5, 0.25)].map(|(a, b)| vec![("alpha", Float(a)), ("beta", Float(b))]).to_vec()
    }),
    same("Swish", 24, Floats, Composed, Small, |call, x| x * sigmoid(call.float("alpha") * x))
        .with_attributes(|| [1.0, 0.5].map(|alpha| vec![("alpha", Float(alpha))]).to_vec()),
    same("Shrink", 9, Numbers, Exact, Small, |call, x| {
        let (bias, lambda) = (call.float("bias"), call.float("lambd"));
        if x < -lambda {
            x + bias
        } else if x > lambda {
            x - bias
        } else {
            0.0
        }
    })
    .with_attributes(|| {
        [(0.0, 0.5), (1.0, 2.0)]
            .map(|(bias, lambda)| vec![("bias", Float(bias)), ("lambd", Float(lambda))])
            .to_vec()
    }),
    test("IsNaN", 9, |_, x| x.is_nan()).with_specials(),
    test("IsInf", 10, |call, x| {
        x == f64::INFINITY && call.int("detect_positive") == Some(1)
            || x == f64::NEG_INFINITY && call.int("detect_negative") == Some(1)
    })
    .with_specials()
    .with_attributes(|| {
        [(1, 1), (1, 0), (0, 1)]
            .map(|(up, down)| vec![("detect_negative", Int(down)), ("detect_positive", Int(up))])
            .to_vec()
    }),
    ReferenceOp::new("Cast", 1, (DtypeKinds::All, "T -> U"), Exact, Unary(Small, cast))
        .with_attributes(|| vec![vec![("saturate", Int(1)), ("round_mode", Text("up"))]]),
];

/// An op whose output has the dtype of its input.
const fn same(
    name: &'static str,
    since: u32,
    kinds: DtypeKinds,
    tolerance: ToleranceClass,
    domain: ValueDomain,
    function: UnaryFunction,
) -> ReferenceOp {
    ReferenceOp::new(name, since, (kinds, "T -> T"), tolerance, OpDefinition::Unary(domain, function))
}

/// An op whose output is true or false.
const fn test(name: &'static str, since: u32, function: fn(&ReferenceCall<'_>, f64) -> bool) -> ReferenceOp {
    ReferenceOp::new(name, since, (Floats, "T -> bool"), Exact, OpDefinition::Test(Small, function))
}

fn plain_cases(make: CaseMaker) -> Vec<ReferenceCase> {
    unary_cases(make, Small, false, &[Vec::new()])
}

/// A device may multiply with a rounded sixth, which leaves a little of the half where the sum should be 0.
fn hard_swish(call: &ReferenceCall<'_>) -> Vec<ReferenceOutput> {
    let input = call.input(0);
    vec![ReferenceOutput::from_fn(&input.dims, |at| {
        let x = input.at(at);
        (x * (x / 6.0 + 0.5).clamp(0.0, 1.0), x.abs())
    })]
}

/// Floats lose their fraction as integers, and everything but 0 is true.
fn cast(call: &ReferenceCall<'_>, x: f64) -> f64 {
    if Floats.contains(call.second) || Bool.contains(call.second) { x } else { x.trunc() }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn gelu(call: &ReferenceCall<'_>, x: f64) -> f64 {
    if call.text("approximate") == "tanh" {
        let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
        // The same as half of `1 + tanh`, without the cancellation for negative numbers.
        return x * sigmoid(2.0 * inner);
    }
    0.5 * x * erfc(-x / std::f64::consts::SQRT_2)
}

/// The error function by a series of positive terms, and by its complement where that is small.
fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.abs() > 2.5 {
        return x.signum() * (1.0 - erfc(x.abs()));
    }
    let (mut term, mut sum, mut number) = (x, x, 0.0);
    while term.abs() > 1e-18 * sum.abs() {
        number += 1.0;
        term *= 2.0 * x * x / (2.0 * number + 1.0);
        sum += term;
    }
    sum * (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI
}

/// One less the error function, by a continued fraction where the difference would cancel.
fn erfc(x: f64) -> f64 {
    if x < 1.0 {
        return 1.0 - erf(x);
    }
    if x > 30.0 {
        return 0.0;
    }
    let tail = (1..=200).rev().fold(0.0, |tail, number| f64::from(number) / 2.0 / (x + tail));
    (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI / 2.0 / (x + tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_has_its_published_values() {
        for (x, expected) in [
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
        ] {
            assert!(
                (erf(x) - expected).abs() < 1e-15 && (erf(-x) + expected).abs() < 1e-15,
                "{x}: {}",
                erf(x)
            );
        }
        let far = erfc(5.0) / 1.537_459_794_428_035e-12;
        assert!((far - 1.0).abs() < 1e-13, "{far}");
        assert!((erfc(1.0) - 0.157_299_207_050_285_13).abs() < 1e-15);
    }
}
