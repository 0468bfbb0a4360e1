//! `Tokenizer`, which cuts texts into tokens.

use oarlock_core::{Attribute, Error, Result};

use super::contrib_op::ContribOp;
use super::lowering::ContribLowering;
use crate::graph::{GraphValue, Weight};
use crate::import::error_location::invalid_model;

pub(super) const TOKENIZER_OPS: &[ContribOp] = &[ContribOp {
    op: "Tokenizer",
    inputs: "X",
    attributes: "mark mincharnum pad_value separators tokenexp",
    outputs: "Y",
    lower: lower_tokenizer,
}];

/// What onnxruntime writes before and after the tokens of a marked row: the characters of ASCII for the start and end of a text.
const MARKS: [&str; 2] = ["\u{2}", "\u{3}"];

/// Lowers to Oarlock's own op, which takes everything that is no part of a text as an operand.
fn lower_tokenizer(op: &mut ContribLowering<'_>) -> Result<()> {
    let attributes = op.copy_attributes(&["mincharnum", "separators", "tokenexp"]);
    match attributes.get("separators") {
        Some(Attribute::Strings(separators)) if separators.is_empty() => {
            return Err(invalid_model("`separators`", "an empty list of them"));
        }
        None if attributes.get_string("tokenexp")?.is_none() => {
            return Err(Error::invalid_argument("expected `separators` or a `tokenexp`, found neither"));
        }
        _ => {}
    }
    let mut texts = vec![op.node.attributes.get_string("pad_value")?.unwrap_or_default().to_owned()];
    if op.int_attribute("mark", 0)? != 0 {
        texts.extend(MARKS.map(str::to_owned));
    }
    let dims = vec![i64::try_from(texts.len()).unwrap_or(i64::MAX)];
    let padding = Weight::Texts { dims, texts: texts.into() };
    let padding = op.graph.add_value(GraphValue::with_weight("padding", padding));
    let result = op.add_oarlock_op("Tokenizer", &[op.input(0)?, padding], attributes);
    op.set_output(0, result);
    Ok(())
}
