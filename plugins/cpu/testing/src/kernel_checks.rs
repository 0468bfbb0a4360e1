//! Compares the results of kernels, at every level of instruction sets, with expected ones.
//!
//! Cases are text, one paragraph each: a comment; the op and its version; attributes as kind, name and value; then operands as `in`
//! or `out`, dtype with shape, and elements.

use std::fmt::Debug;
use std::str::FromStr;

use oarlock_cpu_base::compute_element::ComputeElement;
use oarlock_cpu_base::math::MathFloat;
use oarlock_sdk::{Dtype, Element, dispatch, f16};

use crate::runner::{KernelRunner, TestArray, TestAttribute};

const ISA_LEVELS: [&str; 4] = ["scalar", "sse4.1", "avx2", "avx512"];

impl KernelRunner {
    /// Runs an op at each level of instruction sets and checks its outputs.
    pub fn check_kernel(
        &self,
        op: &str,
        version: u32,
        attributes: &[(&str, TestAttribute<'_>)],
        inputs: &[Option<&TestArray>],
        expected: &[TestArray],
    ) {
        let outputs: Vec<_> =
            expected.iter().map(|array| Some((array.dtype, array.dims.as_slice()))).collect();
        for isa in ISA_LEVELS {
            let found = self.run_with_isa(isa, op, version, attributes, inputs, &outputs).expect(op);
            for (expected, found) in expected.iter().zip(found) {
                expect_close(expected, &found.expect("an output"), &format!("{op} {version} with {isa}"));
            }
        }
    }

    /// Runs the cases of a text and checks their outputs.
    pub fn check_cases(&self, cases: &str) {
        for case in cases.split("\n\n") {
            self.check_case(case);
        }
    }

    fn check_case(&self, case: &str) {
        let mut lines = case.lines().filter(|line| !line.starts_with('#'));
        let (op, version) =
            lines.next().and_then(|line| line.split_once(' ')).expect("an op and its version");
        let (mut ints, mut attributes, mut inputs, mut expected) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for line in lines {
            let (kind, rest) = line.split_once(' ').expect(line);
            let (name, value) = rest.split_once(' ').unwrap_or((rest, ""));
            match kind {
                "in" => inputs.push((name != "none").then(|| parse_array(name, value))),
                "out" => expected.push(parse_array(name, value)),
                "ints" => ints.push((name, parse_numbers::<i64>(value))),
                "int" => attributes.push((name, TestAttribute::Int(value.parse().expect(line)))),
                "float" => attributes.push((name, TestAttribute::Float(value.parse().expect(line)))),
                _ => attributes.push((name, TestAttribute::Text(value))),
            }
        }
        attributes.extend(ints.iter().map(|(name, value)| (*name, TestAttribute::Ints(value))));
        let inputs: Vec<_> = inputs.iter().map(Option::as_ref).collect();
        self.check_kernel(op, version.parse().expect(version), &attributes, &inputs, &expected);
    }

    /// Runs an op and returns why it refused.
    pub fn refusal_message(
        &self,
        op: &str,
        version: u32,
        attributes: &[(&str, TestAttribute<'_>)],
        inputs: &[Option<&TestArray>],
        outputs: &[Option<(Dtype, &[i64])>],
    ) -> String {
        self.run_with_isa("", op, version, attributes, inputs, outputs).expect_err("a refusal")
    }
}

fn parse_numbers<T: FromStr<Err: Debug>>(text: &str) -> Vec<T> {
    text.split_whitespace().map(|number| number.parse().expect(number)).collect()
}

/// Parses an array from its form, such as `f32[2,3]`, and its elements.
fn parse_array(form: &str, elements: &str) -> TestArray {
    let (dtype, dims) = form.trim_end_matches(']').split_once('[').expect(form);
    let dims: Vec<i64> = parse_numbers(&dims.replace(',', " "));
    match dtype {
        "f32" => TestArray::from_values(&dims, &parse_numbers::<f32>(elements)),
        "i8" => TestArray::from_values(&dims, &parse_numbers::<i8>(elements)),
        "u8" => TestArray::from_values(&dims, &parse_numbers::<u8>(elements)),
        "i32" => TestArray::from_values(&dims, &parse_numbers::<i32>(elements)),
        "i64" => TestArray::from_values(&dims, &parse_numbers::<i64>(elements)),
        "bool" => TestArray::from_values(
            &dims,
            &parse_numbers::<u8>(elements).iter().map(|bit| *bit != 0).collect::<Vec<_>>(),
        ),
        other => panic!("no array has elements of {other}"),
    }
}

fn expect_close(expected: &TestArray, found: &TestArray, what: &str) {
    match expected.dtype {
        Dtype::F16 => compare_elements::<f16>(expected, found, 1e-3, what),
        Dtype::F32 => compare_elements::<f32>(expected, found, 1e-5, what),
        Dtype::F64 => compare_elements::<f64>(expected, found, 1e-7, what),
        _ => assert_eq!(expected.bytes(), found.bytes(), "{what}: expected {expected:?}, found {found:?}"),
    }
}

fn compare_elements<T: Element + ComputeElement>(
    expected: &TestArray,
    found: &TestArray,
    tolerance: f64,
    what: &str,
) {
    let values = |array: &TestArray| -> Vec<f64> {
        array.values::<T>().into_iter().map(|value| value.to_float().to_f64()).collect()
    };
    let (expected, found) = (values(expected), values(found));
    let is_close = |(a, b): (&f64, &f64)| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * (1.0 + a.abs())
    };
    let all_close = expected.len() == found.len() && expected.iter().zip(&found).all(is_close);
    assert!(all_close, "{what}: expected {expected:?}, found {found:?}");
}

/// Shapes with enough short lines along the middle axis that kernels transpose them.
const SHORT_LINE_SHAPES: [[usize; 3]; 11] = [
    [16, 1, 2],
    [64, 2, 1],
    [65, 3, 1],
    [50, 4, 2],
    [35, 5, 3],
    [97, 8, 1],
    [33, 16, 1],
    [40, 17, 3],
    [17, 31, 2],
    [33, 63, 1],
    [20, 9, 14],
];
/// Too few lines to be transposed.
const FEW_LINES: usize = 15;

/// Checks at each level of instruction sets that an op returns the same bits for many short lines as for few. `element` makes an
/// element from its index, and `run` runs the op along axis 1 of an input.
pub fn check_short_lines<T: Element>(
    element: impl Fn(usize) -> T,
    run: impl Fn(&str, &TestArray) -> Vec<TestArray>,
) {
    for isa in ISA_LEVELS {
        for dims in SHORT_LINE_SHAPES {
            let [outer, length, inner] = dims;
            let values: Vec<T> = (0..outer * length * inner).map(&element).collect();
            let place =
                |line: usize, at: usize, length: usize| (line / inner * length + at) * inner + line % inner;
            let found = run(isa, &TestArray::from_values(&dims.map(|dim| dim as i64), &values));
            let lines: Vec<usize> = (0..outer * inner).collect();
            for lines in lines.chunks(FEW_LINES) {
                let elements: Vec<T> = lines
                    .iter()
                    .flat_map(|line| (0..length).map(|at| values[place(*line, at, length)]))
                    .collect();
                let alone =
                    run(isa, &TestArray::from_values(&[lines.len() as i64, length as i64, 1], &elements));
                for (found, alone) in found.iter().zip(&alone) {
                    let (found, alone) = (array_to_f64(found), array_to_f64(alone));
                    let results = alone.len() / lines.len();
                    for (index, expected) in alone.iter().enumerate() {
                        let line = lines[index / results];
                        let found = found[place(line, index % results, results)];
                        let is_same =
                            found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan();
                        assert!(
                            is_same,
                            "with {isa}, line {line} of {dims:?}: expected {expected}, found {found}"
                        );
                    }
                }
            }
        }
    }
}

fn array_to_f64(array: &TestArray) -> Vec<f64> {
    let numbers: oarlock_sdk::Result<Vec<f64>> = dispatch!(array.dtype, floating_and_integral + f16, T => {
        Ok(array.values::<T>().into_iter().map(|value| value.to_float().to_f64()).collect())
    });
    numbers.expect("numbers")
}
