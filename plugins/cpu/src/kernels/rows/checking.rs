//! Compares what kernels give, with every level of instruction sets, to what was expected.
//!
//! Cases are text, a paragraph each: a comment, the op and its version, attributes as kind, name and value, then the operands
//! as `in` or `out`, dtype with shape, and elements.

use std::fmt::Debug;
use std::str::FromStr;

use oarlock_sdk::{Dtype, Element, f16};

use crate::kernels::rows::number::{Float, Number};
use crate::testing::{Array, Attribute, run_with_isa};

const LEVELS: [&str; 3] = ["scalar", "avx2", "avx512"];

/// Runs an op with each level of instruction sets and checks its outputs.
pub(crate) fn check(
    op: &str,
    version: u32,
    attributes: &[(&str, Attribute<'_>)],
    inputs: &[Option<&Array>],
    expected: &[Array],
) {
    let outputs: Vec<_> = expected.iter().map(|array| Some((array.dtype, array.dims.as_slice()))).collect();
    for isa in LEVELS {
        let found = run_with_isa(isa, op, version, attributes, inputs, &outputs).expect(op);
        for (expected, found) in expected.iter().zip(found) {
            expect_close(expected, &found.expect("an output"), &format!("{op} {version} with {isa}"));
        }
    }
}

/// Checks the cases of a file.
pub(crate) fn check_all(cases: &str) {
    for case in cases.split("\n\n") {
        check_case(case);
    }
}

fn check_case(case: &str) {
    let mut lines = case.lines().filter(|line| !line.starts_with('#'));
    let (op, version) = lines.next().and_then(|line| line.split_once(' ')).expect("an op and its version");
    let (mut ints, mut attributes, mut inputs, mut expected) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for line in lines {
        let (kind, rest) = line.split_once(' ').expect(line);
        let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
        match kind {
            "in" => inputs.push((name != "none").then(|| array(name, value))),
            "out" => expected.push(array(name, value)),
            "ints" => ints.push((name, numbers::<i64>(value))),
            "int" => attributes.push((name, Attribute::Int(value.parse().expect(line)))),
            "float" => attributes.push((name, Attribute::Float(value.parse().expect(line)))),
            _ => attributes.push((name, Attribute::Text(value))),
        }
    }
    attributes.extend(ints.iter().map(|(name, value)| (*name, Attribute::Ints(value))));
    let inputs: Vec<_> = inputs.iter().map(Option::as_ref).collect();
    check(op, version.parse().expect(version), &attributes, &inputs, &expected);
}

fn numbers<T: FromStr<Err: Debug>>(text: &str) -> Vec<T> {
    text.split_whitespace().map(|number| number.parse().expect(number)).collect()
}

/// An array of a dtype and shape such as `f32[2,3]`.
fn array(form: &str, elements: &str) -> Array {
    let (dtype, dims) = form.trim_end_matches(']').split_once('[').expect(form);
    let dims: Vec<i64> = numbers(&dims.replace(',', " "));
    match dtype {
        "f32" => Array::of(&dims, &numbers::<f32>(elements)),
        "i8" => Array::of(&dims, &numbers::<i8>(elements)),
        "u8" => Array::of(&dims, &numbers::<u8>(elements)),
        "i32" => Array::of(&dims, &numbers::<i32>(elements)),
        "i64" => Array::of(&dims, &numbers::<i64>(elements)),
        "bool" => Array::of(&dims, &numbers::<u8>(elements).iter().map(|bit| *bit != 0).collect::<Vec<_>>()),
        other => panic!("no array has elements of {other}"),
    }
}

/// Runs an op and returns why it refused.
pub(crate) fn refusal(
    op: &str,
    version: u32,
    attributes: &[(&str, Attribute<'_>)],
    inputs: &[Option<&Array>],
    outputs: &[Option<(Dtype, &[i64])>],
) -> String {
    run_with_isa("", op, version, attributes, inputs, outputs).expect_err("a refusal")
}

fn expect_close(expected: &Array, found: &Array, what: &str) {
    match expected.dtype {
        Dtype::F16 => close::<f16>(expected, found, 1e-3, what),
        Dtype::F32 => close::<f32>(expected, found, 1e-5, what),
        Dtype::F64 => close::<f64>(expected, found, 1e-7, what),
        _ => assert_eq!(expected.bytes(), found.bytes(), "{what}: expected {expected:?}, found {found:?}"),
    }
}

fn close<T: Element + Number>(expected: &Array, found: &Array, tolerance: f64, what: &str) {
    let values = |array: &Array| -> Vec<f64> {
        array.values::<T>().into_iter().map(|value| value.float().to_f64()).collect()
    };
    let (expected, found) = (values(expected), values(found));
    let is_close = |(a, b): (&f64, &f64)| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * (1.0 + a.abs())
    };
    let all_close = expected.len() == found.len() && expected.iter().zip(&found).all(is_close);
    assert!(all_close, "{what}: expected {expected:?}, found {found:?}");
}
