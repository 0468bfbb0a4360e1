//! What the ops of Paddle are in ONNX's.

mod activation;
mod arithmetic;
mod control_flow;
mod convolution;
mod creation;
mod detection;
mod indexing;
mod logic;
mod normalization;
mod pool;
mod product;
mod quantize;
mod rearrange;
mod recurrent;
mod reduce;
mod resampling;
mod reshaping;
mod scatter;
mod sorting;

use half::{bf16, f16};
use oarlock_core::{Attribute, Attributes, Dtype, Error, Result};

use super::importer::{PaddleImporter, build_attributes};
use super::messages::OpDesc;
use super::operand::PaddleOperand;
use crate::graph::ValueId;

/// Adds the nodes that an op is.
pub(super) type OpTranslator = for<'m> fn(&mut PaddleImporter<'m>, &'m OpDesc) -> Result<()>;
/// Ops by their names.
type TranslatorTable = &'static [(&'static str, OpTranslator)];

const OP_FAMILIES: [TranslatorTable; 20] = [
    FEED_AND_FETCH,
    activation::ACTIVATION_OPS,
    arithmetic::ARITHMETIC_OPS,
    detection::DETECTION_OPS,
    control_flow::CONTROL_FLOW_OPS,
    creation::CREATION_OPS,
    indexing::INDEXING_OPS,
    logic::LOGIC_OPS,
    rearrange::REARRANGE_OPS,
    normalization::NORMALIZATION_OPS,
    sorting::SORTING_OPS,
    pool::POOL_OPS,
    product::PRODUCT_OPS,
    quantize::QUANTIZE_OPS,
    recurrent::RECURRENT_OPS,
    reduce::REDUCE_OPS,
    resampling::RESAMPLING_OPS,
    scatter::SCATTER_OPS,
    reshaping::RESHAPING_OPS,
    convolution::CONVOLUTION_OPS,
];

const FEED_AND_FETCH: TranslatorTable =
    &[("feed", |program, op| program.lower_feed(op)), ("fetch", |program, op| program.lower_fetch(op))];

/// How an op is translated, where it is supported.
pub(super) fn find_translator(name: &str) -> Option<OpTranslator> {
    OP_FAMILIES.iter().flat_map(|table| table.iter()).find(|(known, _)| *known == name).map(|(_, it)| *it)
}

/// The names of all ops that are supported.
pub(super) fn op_names() -> impl Iterator<Item = &'static str> {
    OP_FAMILIES.iter().flat_map(|table| table.iter()).map(|(name, _)| *name)
}

fn int_attribute(value: i64) -> Attribute {
    Attribute::Int(value)
}

fn float_attribute(value: f64) -> Attribute {
    Attribute::Float(value)
}

fn ints_attribute(values: &[i64]) -> Attribute {
    Attribute::Ints(values.to_vec())
}

/// One op of ONNX, from one operand to one.
fn lower_unary<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    name: &str,
    attributes: Attributes,
) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let made = program.add_op_with(name, &[x], attributes);
    program.set_output(op, "Out", made)
}

/// An attribute that is a text.
fn text_attribute(text: &str) -> Attribute {
    Attribute::String(text.to_owned())
}

/// A number as an operand of the same type as another.
fn add_scalar_like<'m>(
    program: &mut PaddleImporter<'m>,
    other: PaddleOperand<'m>,
    number: f64,
) -> Result<ValueId> {
    program.add_scalar(number, other.dtype())
}

/// An operand of a few sizes, of which the unknown ones are those of another operand.
fn slice_shape<'m>(program: &mut PaddleImporter<'m>, of: PaddleOperand<'m>, from: i64, to: i64) -> ValueId {
    program.add_op_with(
        "Shape",
        &[of.id],
        build_attributes([("start", int_attribute(from)), ("end", int_attribute(to))]),
    )
}

/// A list that an op takes as an attribute, as one operand, or as several of one element.
fn list_operand<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    attribute: &str,
    whole: &str,
    parts: &str,
) -> Result<ValueId> {
    if let Some(known) = known_list(program, op, attribute, whole, parts)? {
        return Ok(program.add_ints(&known));
    }
    let flat = program.add_ints(&[-1]);
    let mut each = Vec::new();
    let mut given = program.inputs(op, whole)?;
    if given.is_empty() {
        given = program.inputs(op, parts)?;
    }
    for part in given {
        let part = program.add_cast(part.id, Dtype::I64);
        each.push(program.add_op("Reshape", &[part, flat]));
    }
    Ok(match each.as_slice() {
        [one] => *one,
        each => program.add_op_with("Concat", each, build_attributes([("axis", int_attribute(0))])),
    })
}

/// The same, where all of it is known; none where a part of it is computed.
fn known_list<'m>(
    program: &mut PaddleImporter<'m>,
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
        return Ok(Some(op.ints_attribute(attribute)));
    }
    let mut all = Vec::new();
    for operand in given {
        match program.known_ints(operand.id) {
            Some(known) => all.extend(known),
            None => return Ok(None),
        }
    }
    Ok(Some(all))
}

/// An integer that an op takes as an attribute, or as an operand that is known.
fn known_int<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    attribute: &str,
    operand: &str,
    default: i64,
) -> Result<i64> {
    let Some(given) = program.optional_input(op, operand)? else {
        return Ok(op.int_attribute(attribute, default));
    };
    program.known_ints(given.id).and_then(|known| known.first().copied()).ok_or_else(|| {
        Error::unimplemented(format!("expected that `{operand}` is known, found that it is computed"))
    })
}

/// Gives an output that older programs want with one dimension where newer ones want none.
fn set_scalar_output<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    name: &str,
    made: ValueId,
) -> Result<()> {
    let output = OpDesc::operand_names(&op.outputs, name).first();
    let made = match output.and_then(|output| program.declared_dims(output)) {
        Some([1]) => {
            let one = program.add_ints(&[1]);
            program.add_op("Reshape", &[made, one])
        }
        _ => made,
    };
    program.set_output(op, name, made)
}

/// The bytes of numbers that were written as `f64`.
pub(super) fn encode_numbers(values: &[f64], dtype: Dtype) -> Result<Vec<u8>> {
    fn encode_all<const SIZE: usize>(values: &[f64], encode: impl Fn(f64) -> [u8; SIZE]) -> Vec<u8> {
        values.iter().flat_map(|value| encode(*value)).collect()
    }
    Ok(match dtype {
        Dtype::F16 => encode_all(values, |value| f16::from_f64(value).to_ne_bytes()),
        Dtype::BF16 => encode_all(values, |value| bf16::from_f64(value).to_ne_bytes()),
        Dtype::F32 => encode_all(values, |value| (value as f32).to_ne_bytes()),
        Dtype::F64 => encode_all(values, f64::to_ne_bytes),
        Dtype::Bool => encode_all(values, |value| [u8::from(value != 0.0)]),
        Dtype::I8 => encode_all(values, |value| (value as i8).to_ne_bytes()),
        Dtype::U8 => encode_all(values, |value| (value as u8).to_ne_bytes()),
        Dtype::I16 => encode_all(values, |value| (value as i16).to_ne_bytes()),
        Dtype::I32 => encode_all(values, |value| (value as i32).to_ne_bytes()),
        Dtype::I64 => encode_all(values, |value| (value as i64).to_ne_bytes()),
        other => {
            return Err(Error::unimplemented(format!("expected numbers of a common dtype, found {other}")));
        }
    })
}
