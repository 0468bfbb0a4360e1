//! Every op through the plugin's table, as a host runs it.

mod arithmetic;
mod arrays;
mod bits;
mod casts;
mod complex;
mod floats;
mod quantization;
mod shapes;

use oarlock_sdk::{Dtype, Element};

use crate::testing::{Array, Attribute, run_with_isa};

const ISAS: [&str; 3] = ["scalar", "avx2", "avx512"];

/// Runs an op with each instruction set and returns its one output of the last, which all others must have the bytes of.
#[track_caller]
fn compute(
    op: &str,
    version: u32,
    attributes: &[(&str, Attribute<'_>)],
    inputs: &[&Array],
    output: (Dtype, &[i64]),
) -> Array {
    let results = ISAS.map(|isa| compute_with(isa, op, version, attributes, inputs, output).unwrap());
    let [first, _, last] = &results;
    assert!(
        results.iter().all(|result| result.bytes() == first.bytes()),
        "{op} depends on the instruction set"
    );
    last.clone()
}

fn compute_with(
    isa: &str,
    op: &str,
    version: u32,
    attributes: &[(&str, Attribute<'_>)],
    inputs: &[&Array],
    output: (Dtype, &[i64]),
) -> Result<Array, String> {
    let inputs: Vec<_> = inputs.iter().map(|input| Some(*input)).collect();
    let mut outputs = run_with_isa(isa, op, version, attributes, &inputs, &[Some(output)])?;
    Ok(outputs.remove(0).expect("an output"))
}

/// An op of two one-dimensional inputs of the same type.
#[track_caller]
fn pairwise<T: Element, O: Element>(op: &str, version: u32, a: &[T], b: &[T]) -> Vec<O> {
    let dims = [a.len() as i64];
    let (a, b) = (Array::of(&dims, a), Array::of(&dims, b));
    compute(op, version, &[], &[&a, &b], (O::DTYPE, &dims)).values()
}

/// An op of one one-dimensional input.
#[track_caller]
fn each<T: Element, O: Element>(
    op: &str,
    version: u32,
    attributes: &[(&str, Attribute<'_>)],
    x: &[T],
) -> Vec<O> {
    let dims = [x.len() as i64];
    compute(op, version, attributes, &[&Array::of(&dims, x)], (O::DTYPE, &dims)).values()
}
