//! What the ops of Paddle are in ONNX's.

mod activation;
mod arithmetic;
mod create;
mod indexing;
mod reduce;
mod shaping;
mod spatial;

use half::{bf16, f16};
use oarlock_core::{Attribute, Attributes, Dtype, Error, Result};

use super::messages::OpDesc;
use super::program::{Program, with};
use crate::graph::ValueId;

/// Adds the nodes that an op is.
pub(super) type Translate = for<'m> fn(&mut Program<'m>, &'m OpDesc) -> Result<()>;

/// How an op is translated, where it is supported.
pub(super) fn find(name: &str) -> Option<Translate> {
    let families = [
        activation::find,
        arithmetic::find,
        create::find,
        indexing::find,
        reduce::find,
        shaping::find,
        spatial::find,
    ];
    match name {
        "feed" => Some(|program, op| program.feed(op)),
        "fetch" => Some(|program, op| program.fetch(op)),
        name => families.iter().find_map(|find| find(name)),
    }
}

fn int(value: i64) -> Attribute {
    Attribute::Int(value)
}

fn float(value: f64) -> Attribute {
    Attribute::Float(value)
}

fn ints(values: &[i64]) -> Attribute {
    Attribute::Ints(values.to_vec())
}

/// One op of ONNX, from one operand to one.
fn unary<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str, attributes: Attributes) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let made = program.node(name, &[x], attributes);
    program.give(op, "Out", made)
}

/// A list that an op takes as an attribute, as one operand, or as several of one element.
fn list<'m>(
    program: &mut Program<'m>,
    op: &'m OpDesc,
    attribute: &str,
    whole: &str,
    parts: &str,
) -> Result<ValueId> {
    if let Some(given) = program.maybe(op, whole)? {
        return Ok(program.node("Cast", &[given.id], with([("to", int(Dtype::I64.onnx_number()))])));
    }
    let given = program.inputs(op, parts)?;
    if given.is_empty() {
        return Ok(program.ints(&op.ints(attribute)));
    }
    let flat = program.ints(&[-1]);
    let mut each = Vec::with_capacity(given.len());
    for part in given {
        let part = program.node("Cast", &[part.id], with([("to", int(Dtype::I64.onnx_number()))]));
        each.push(program.node("Reshape", &[part, flat], Attributes::new()));
    }
    Ok(program.node("Concat", &each, with([("axis", int(0))])))
}

/// The bytes of numbers that were written as `f64`.
pub(super) fn bytes_of(values: &[f64], dtype: Dtype) -> Result<Vec<u8>> {
    fn all<const SIZE: usize>(values: &[f64], encode: impl Fn(f64) -> [u8; SIZE]) -> Vec<u8> {
        values.iter().flat_map(|value| encode(*value)).collect()
    }
    Ok(match dtype {
        Dtype::F16 => all(values, |value| f16::from_f64(value).to_ne_bytes()),
        Dtype::BF16 => all(values, |value| bf16::from_f64(value).to_ne_bytes()),
        Dtype::F32 => all(values, |value| (value as f32).to_ne_bytes()),
        Dtype::F64 => all(values, f64::to_ne_bytes),
        Dtype::Bool => all(values, |value| [u8::from(value != 0.0)]),
        Dtype::I8 => all(values, |value| (value as i8).to_ne_bytes()),
        Dtype::U8 => all(values, |value| (value as u8).to_ne_bytes()),
        Dtype::I16 => all(values, |value| (value as i16).to_ne_bytes()),
        Dtype::I32 => all(values, |value| (value as i32).to_ne_bytes()),
        Dtype::I64 => all(values, |value| (value as i64).to_ne_bytes()),
        other => {
            return Err(Error::unimplemented(format!("expected numbers of a common dtype, found {other}")));
        }
    })
}
