//! Every op through the plugin's table, as a host runs it.

mod arithmetic;
mod arrays;
mod bits;
mod casts;
mod complex;
mod floats;
mod fused;
mod quantization;
mod shapes;

use oarlock_cpu_testing::runner::{TestArray, TestAttribute};
use oarlock_sdk::{Dtype, Element};

use crate::KERNELS;

const ISAS: [&str; 4] = ["scalar", "sse4.1", "avx2", "avx512"];

/// Runs an op with each instruction set and returns its output, which must be the same bytes for all.
#[track_caller]
fn compute_on_all_isas(
    op: &str,
    version: u32,
    attributes: &[(&str, TestAttribute<'_>)],
    inputs: &[&TestArray],
    output: (Dtype, &[i64]),
) -> TestArray {
    let results = ISAS.map(|isa| compute_with_isa(isa, op, version, attributes, inputs, output).unwrap());
    let [first, .., last] = &results;
    // The inputs are the same, so different bytes mean that a rule of rounding depends on the machine.
    assert!(
        results.iter().all(|result| result.bytes() == first.bytes()),
        "{op} depends on the instruction set"
    );
    last.clone()
}

fn compute_with_isa(
    isa: &str,
    op: &str,
    version: u32,
    attributes: &[(&str, TestAttribute<'_>)],
    inputs: &[&TestArray],
    output: (Dtype, &[i64]),
) -> Result<TestArray, String> {
    let inputs: Vec<_> = inputs.iter().map(|input| Some(*input)).collect();
    let mut outputs = KERNELS.run_with_isa(isa, op, version, attributes, &inputs, &[Some(output)])?;
    Ok(outputs.remove(0).expect("an output"))
}

/// An op of two one-dimensional inputs of the same type.
#[track_caller]
fn compute_pairwise<T: Element, O: Element>(op: &str, version: u32, a: &[T], b: &[T]) -> Vec<O> {
    let dims = [a.len() as i64];
    let (a, b) = (TestArray::from_values(&dims, a), TestArray::from_values(&dims, b));
    compute_on_all_isas(op, version, &[], &[&a, &b], (O::DTYPE, &dims)).values()
}

/// An op of one one-dimensional input.
#[track_caller]
fn compute_unary<T: Element, O: Element>(
    op: &str,
    version: u32,
    attributes: &[(&str, TestAttribute<'_>)],
    x: &[T],
) -> Vec<O> {
    let dims = [x.len() as i64];
    compute_on_all_isas(op, version, attributes, &[&TestArray::from_values(&dims, x)], (O::DTYPE, &dims))
        .values()
}
