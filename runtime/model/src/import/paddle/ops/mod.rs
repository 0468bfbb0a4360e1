//! Translates Paddle ops to ONNX.

mod activation;
mod arithmetic;
mod control_flow;
mod convolution;
mod counting;
mod creation;
mod detection;
mod diagonal;
mod indexing;
mod linear_algebra;
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

use oarlock_core::{Attribute, Attributes, Dtype, Error, Result};

use super::importer::{OpTranslator, PaddleImporter, build_attributes};
use super::messages::OpDesc;
use super::number_encoding::encode_numbers;
use super::operand::PaddleOperand;
use crate::graph::ValueId;

/// Translators by the name of the op.
type TranslatorTable = &'static [(&'static str, OpTranslator)];

const OP_FAMILIES: [TranslatorTable; 23] = [
    FEED_AND_FETCH,
    activation::ACTIVATION_OPS,
    arithmetic::ARITHMETIC_OPS,
    detection::DETECTION_OPS,
    control_flow::CONTROL_FLOW_OPS,
    counting::COUNTING_OPS,
    creation::CREATION_OPS,
    diagonal::DIAGONAL_OPS,
    indexing::INDEXING_OPS,
    linear_algebra::LINEAR_ALGEBRA_OPS,
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
    &[("feed", |importer, op| importer.lower_feed(op)), ("fetch", |importer, op| importer.lower_fetch(op))];

/// `None` for an op that is not supported.
pub(super) fn find_translator(name: &str) -> Option<OpTranslator> {
    OP_FAMILIES.iter().flat_map(|table| table.iter()).find(|(known, _)| *known == name).map(|(_, it)| *it)
}

/// The names of all supported ops.
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

/// Translates an op with one operand and one output to a single node.
fn lower_unary<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    name: &str,
    attributes: Attributes,
) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let made = importer.add_op_with(name, &[x], attributes);
    importer.set_output(op, "Out", made)
}

fn text_attribute(text: &str) -> Attribute {
    Attribute::String(text.to_owned())
}

/// Adds a scalar of the dtype of another operand.
fn add_scalar_like<'m>(
    importer: &mut PaddleImporter<'m>,
    other: PaddleOperand<'m>,
    number: f64,
) -> Result<ValueId> {
    importer.add_scalar(number, other.dtype())
}

/// Adds the sizes `from..to` of an operand's shape.
fn slice_shape<'m>(importer: &mut PaddleImporter<'m>, of: PaddleOperand<'m>, from: i64, to: i64) -> ValueId {
    importer.add_op_with(
        "Shape",
        &[of.id],
        build_attributes([("start", int_attribute(from)), ("end", int_attribute(to))]),
    )
}

/// A list that an op takes as an attribute, as one operand, or as several scalar operands.
fn list_operand<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    attribute: &str,
    whole: &str,
    parts: &str,
) -> Result<ValueId> {
    if let Some(known) = known_list(importer, op, attribute, whole, parts)? {
        return Ok(importer.add_ints(&known));
    }
    let flat = importer.add_ints(&[-1]);
    let mut each = Vec::new();
    let mut given = importer.inputs(op, whole)?;
    if given.is_empty() {
        given = importer.inputs(op, parts)?;
    }
    for part in given {
        let part = importer.add_cast(part.id, Dtype::I64);
        each.push(importer.add_op("Reshape", &[part, flat]));
    }
    Ok(match each.as_slice() {
        [one] => *one,
        each => importer.add_op_with("Concat", each, build_attributes([("axis", int_attribute(0))])),
    })
}

/// Such a list if it is constant; `None` if a part of it is computed.
fn known_list<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    attribute: &str,
    whole: &str,
    parts: &str,
) -> Result<Option<Vec<i64>>> {
    let mut given = importer.inputs(op, whole)?;
    if given.is_empty() {
        given = importer.inputs(op, parts)?;
    }
    if given.is_empty() {
        return Ok(Some(op.ints_attribute(attribute)));
    }
    let mut all = Vec::new();
    for operand in given {
        match importer.known_ints(operand.id) {
            Some(known) => all.extend(known),
            None => return Ok(None),
        }
    }
    Ok(Some(all))
}

/// An integer that an op takes as an attribute or as a constant operand.
fn known_int<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    attribute: &str,
    operand: &str,
    default: i64,
) -> Result<i64> {
    let Some(given) = importer.optional_input(op, operand)? else {
        return Ok(op.int_attribute(attribute, default));
    };
    importer.known_ints(given.id).and_then(|known| known.first().copied()).ok_or_else(|| {
        Error::unimplemented(format!("expected `{operand}` to be a constant, found a computed value"))
    })
}

/// Sets a scalar output; older programs expect the shape `[1]` instead.
fn set_scalar_output<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    name: &str,
    made: ValueId,
) -> Result<()> {
    let output = OpDesc::operand_names(&op.outputs, name).first();
    let made = match output.and_then(|output| importer.declared_dims(output)) {
        Some([1]) => {
            let one = importer.add_ints(&[1]);
            importer.add_op("Reshape", &[made, one])
        }
        _ => made,
    };
    importer.set_output(op, name, made)
}
