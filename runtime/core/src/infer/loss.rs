//! Losses: the distance of a prediction from the target.

use super::context::{InferenceContext, attribute_error};
use super::fact::{PartialDim, PartialDims};
use super::output::PartialShape;
use super::rule::{InferenceRule, LATEST, rule};
use crate::Result;

pub(super) const RULES: &[InferenceRule] = &[
    rule("NegativeLogLikelihoodLoss", 12, LATEST, &[], |call| Ok(vec![loss_shape(call)?.into()])),
    rule("SoftmaxCrossEntropyLoss", 12, LATEST, &[], |call| {
        Ok(vec![loss_shape(call)?.into(), call.input_shape(0)?.into()])
    }),
];

/// Scores have the classes as their second dimension; labels do not.
fn loss_shape(call: &InferenceContext<'_>) -> Result<PartialShape> {
    let labels = match call.dims_of_at_least(0, 2)? {
        Some([batches, classes, rest @ ..]) => {
            let labels: PartialDims = [batches].into_iter().chain(rest).copied().collect();
            call.expect_dims(1, &labels)?;
            call.expect_dims(2, &[*classes])?;
            let found = call.input_dims(1)?.unwrap_or(&labels);
            Some(
                labels
                    .iter()
                    .zip(found)
                    .map(|(a, b): (&PartialDim, &PartialDim)| a.refine_with(*b))
                    .collect(),
            )
        }
        _ => call.input_shape(1)?,
    };
    call.input(1)?;
    match call.string_attribute("reduction", "mean")? {
        "none" => Ok(labels),
        "mean" | "sum" => Ok(Some(PartialDims::new())),
        other => Err(attribute_error("reduction", "none, mean or sum", format!("`{other}`"))),
    }
}
