//! What the ops of Paddle are in ONNX's.

mod activation;
mod arithmetic;
mod boxes;
mod control;
mod create;
mod indexing;
mod logic;
mod moving;
mod normal;
mod order;
mod pool;
mod product;
mod quantize;
mod recurrent;
mod reduce;
mod sample;
mod scatter;
mod shaping;
mod spatial;

use half::{bf16, f16};
use oarlock_core::{Attribute, Attributes, Dtype, Error, Result};

use super::messages::OpDesc;
use super::operand::Operand;
use super::program::{Program, with};
use crate::graph::ValueId;

/// Adds the nodes that an op is.
pub(super) type Translate = for<'m> fn(&mut Program<'m>, &'m OpDesc) -> Result<()>;
/// Ops by their names.
type Table = &'static [(&'static str, Translate)];

const FAMILIES: [Table; 20] = [
    FEED_AND_FETCH,
    activation::OPS,
    arithmetic::OPS,
    boxes::OPS,
    control::OPS,
    create::OPS,
    indexing::OPS,
    logic::OPS,
    moving::OPS,
    normal::OPS,
    order::OPS,
    pool::OPS,
    product::OPS,
    quantize::OPS,
    recurrent::OPS,
    reduce::OPS,
    sample::OPS,
    scatter::OPS,
    shaping::OPS,
    spatial::OPS,
];

const FEED_AND_FETCH: Table =
    &[("feed", |program, op| program.feed(op)), ("fetch", |program, op| program.fetch(op))];

/// How an op is translated, where it is supported.
pub(super) fn find(name: &str) -> Option<Translate> {
    FAMILIES.iter().flat_map(|table| table.iter()).find(|(known, _)| *known == name).map(|(_, it)| *it)
}

/// The names of all ops that are supported.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().flat_map(|table| table.iter()).map(|(name, _)| *name)
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

/// An attribute that is a text.
fn text(text: &str) -> Attribute {
    Attribute::String(text.to_owned())
}

/// A number as an operand of the same type as another.
fn like<'m>(program: &mut Program<'m>, other: Operand<'m>, number: f64) -> Result<ValueId> {
    program.number(number, other.dtype())
}

/// An operand of a few sizes, of which the unknown ones are those of another operand.
fn sizes<'m>(program: &mut Program<'m>, of: Operand<'m>, from: i64, to: i64) -> ValueId {
    program.node("Shape", &[of.id], with([("start", int(from)), ("end", int(to))]))
}

/// A list that an op takes as an attribute, as one operand, or as several of one element.
fn list<'m>(
    program: &mut Program<'m>,
    op: &'m OpDesc,
    attribute: &str,
    whole: &str,
    parts: &str,
) -> Result<ValueId> {
    if let Some(known) = known_list(program, op, attribute, whole, parts)? {
        return Ok(program.ints(&known));
    }
    let flat = program.ints(&[-1]);
    let mut each = Vec::new();
    let mut given = program.inputs(op, whole)?;
    if given.is_empty() {
        given = program.inputs(op, parts)?;
    }
    for part in given {
        let part = program.cast(part.id, Dtype::I64);
        each.push(program.apply("Reshape", &[part, flat]));
    }
    Ok(match each.as_slice() {
        [one] => *one,
        each => program.node("Concat", each, with([("axis", int(0))])),
    })
}

/// The same, where all of it is known; none where a part of it is computed.
fn known_list<'m>(
    program: &mut Program<'m>,
    op: &'m OpDesc,
    attribute: &str,
    whole: &str,
    parts: &str,
) -> Result<Option<Vec<i64>>> {
    let mut given = program.inputs(op, whole)?;
    if given.is_empty() {
        given = program.inputs(op, parts)?;
    }
    if given.is_empty() {
        return Ok(Some(op.ints(attribute)));
    }
    let mut all = Vec::new();
    for operand in given {
        match program.whole(operand.id) {
            Some(known) => all.extend(known),
            None => return Ok(None),
        }
    }
    Ok(Some(all))
}

/// An integer that an op takes as an attribute, or as an operand that is known.
fn known_int<'m>(
    program: &mut Program<'m>,
    op: &'m OpDesc,
    attribute: &str,
    operand: &str,
    default: i64,
) -> Result<i64> {
    let Some(given) = program.maybe(op, operand)? else { return Ok(op.int(attribute, default)) };
    program.whole(given.id).and_then(|known| known.first().copied()).ok_or_else(|| {
        Error::unimplemented(format!("expected that `{operand}` is known, found that it is computed"))
    })
}

/// Gives an output that older programs want with one dimension where newer ones want none.
fn give_one<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str, made: ValueId) -> Result<()> {
    let output = OpDesc::operands(&op.outputs, name).first();
    let made = match output.and_then(|output| program.dims(output)) {
        Some([1]) => {
            let one = program.ints(&[1]);
            program.apply("Reshape", &[made, one])
        }
        _ => made,
    };
    program.give(op, name, made)
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
