//! Losses: how far what was predicted is from what was right.

use super::call::{Call, wrong_attribute};
use super::fact::{Dim, PartialDims};
use super::output::Shape;
use super::table::{LATEST, Rule, rule};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("NegativeLogLikelihoodLoss", 12, LATEST, &[], |call| Ok(vec![loss(call)?.into()])),
    rule("SoftmaxCrossEntropyLoss", 12, LATEST, &[], |call| {
        Ok(vec![loss(call)?.into(), call.shape(0)?.into()])
    }),
];

/// Scores have the classes as their second dimension, labels have not.
fn loss(call: &Call<'_>) -> Result<Shape> {
    let labels = match call.dims_of_at_least(0, 2)? {
        Some([batches, classes, rest @ ..]) => {
            let labels: PartialDims = [batches].into_iter().chain(rest).copied().collect();
            call.expect_dims(1, &labels)?;
            call.expect_dims(2, &[*classes])?;
            let found = call.dims(1)?.unwrap_or(&labels);
            Some(labels.iter().zip(found).map(|(a, b): (&Dim, &Dim)| a.or(*b)).collect())
        }
        _ => call.shape(1)?,
    };
    call.input(1)?;
    match call.text("reduction", "mean")? {
        "none" => Ok(labels),
        "mean" | "sum" => Ok(Some(PartialDims::new())),
        other => Err(wrong_attribute("reduction", "none, mean or sum", format!("`{other}`"))),
    }
}
