//! Normalisation, with what is added before.

use oarlock_core::{Attribute, Result};

use super::lowering::{Lowering, named};
use super::row::Row;
use crate::graph::ValueId;

/// The op that onnxruntime has in ONNX's own domain.
pub(super) const SIMPLIFIED: &str = "SimplifiedLayerNormalization";

pub(super) const OPS: &[Row] = &[
    Row {
        op: SIMPLIFIED,
        inputs: "X scale",
        attributes: "axis epsilon stash_type",
        outputs: "Y !inv_std_var",
        lower: simplified,
    },
    Row {
        op: "SkipLayerNormalization",
        inputs: "input skip gamma beta? bias?",
        attributes: "epsilon",
        outputs: "output !mean !inv_std_var input_skip_bias_sum",
        lower: |op| skip(op, 4, |op, sum| layer(op, sum, 2, 3)),
    },
    Row {
        op: "SkipSimplifiedLayerNormalization",
        inputs: "input skip gamma bias?",
        attributes: "epsilon",
        outputs: "output !mean !inv_std_var input_skip_bias_sum",
        lower: |op| {
            skip(op, 3, |op, sum| {
                let scale = op.input(2)?;
                root_mean_square(op, sum, scale)
            })
        },
    },
];

/// The small number that onnxruntime adds to a variance unless the op says another.
fn epsilon(op: &Lowering<'_>, default: f32) -> Result<Attribute> {
    Ok(Attribute::Float(op.float("epsilon", f64::from(default))?))
}

fn simplified(op: &mut Lowering<'_>) -> Result<()> {
    let mut attributes = op.copied(&["axis", "stash_type"]);
    attributes.set("epsilon", epsilon(op, 1e-5)?);
    let inputs = [Some(op.input(0)?), Some(op.input(1)?)];
    let made = op.of("RMSNormalization", &inputs, attributes, 1)[0];
    op.give(0, made);
    Ok(())
}

/// Normalisation of rows, with a scale and a bias at places of the inputs.
pub(super) fn layer(op: &mut Lowering<'_>, x: ValueId, scale: usize, bias: usize) -> Result<ValueId> {
    let attributes = named([("axis", Attribute::Int(-1)), ("epsilon", epsilon(op, 1e-12)?)]);
    let inputs = [Some(x), Some(op.input(scale)?), op.maybe(bias)];
    Ok(op.of("LayerNormalization", &inputs, attributes, 1)[0])
}

fn root_mean_square(op: &mut Lowering<'_>, x: ValueId, scale: ValueId) -> Result<ValueId> {
    let epsilon = epsilon(op, 1e-12)?;
    Ok(op.with("RMSNormalization", &[x, scale], [("axis", Attribute::Int(-1)), ("epsilon", epsilon)]))
}

/// A sum, and what is normalised of it.
fn skip(
    op: &mut Lowering<'_>,
    bias: usize,
    normalised: impl Fn(&mut Lowering<'_>, ValueId) -> Result<ValueId>,
) -> Result<()> {
    let (mut x, skip) = (op.input(0)?, op.input(1)?);
    if let Some(bias) = op.maybe(bias) {
        x = op.apply("Add", &[x, bias]);
    }
    let sum = op.apply("Add", &[x, skip]);
    let made = normalised(op, sum)?;
    op.give(0, made);
    op.give(3, sum);
    Ok(())
}
