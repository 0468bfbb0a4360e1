//! Ops on numbers of eight bits that are multiples of a scale, with sums that are exact.

use super::call::{Call, wrong_attribute};
use super::channels_last;
use super::fact::{Dim, Listed, PartialDims};
use super::output::{Output, Shape, one};
use super::table::{LATEST, Rule, rule};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("BlockMatMul", 1, LATEST, &[], block_product).of_domain("oarlock"),
    rule("QuantizedConv", 1, LATEST, &[], conv).of_domain("oarlock"),
    rule("QuantizedMatMul", 1, LATEST, &[], product).of_domain("oarlock"),
];

/// The places of operands.
const SCALE: usize = 2;
const BIAS: usize = 3;
const ZERO: usize = 3;
const RESIDUAL: usize = 4;

fn conv(call: &Call<'_>) -> Result<Vec<Output>> {
    let outputs = call.dims_of_at_least(1, 3)?.map_or(Dim::Unknown, |dims| dims[0]);
    expect_scale(call, outputs)?;
    channels_last::conv(call, BIAS, RESIDUAL)
}

fn product(call: &Call<'_>) -> Result<Vec<Output>> {
    let (a, w) = (call.dims_of_at_least(0, 1)?, call.dims_of_rank::<2>(1)?);
    let [depth, outputs] = w.unwrap_or([Dim::Unknown; 2]);
    let (depth, outputs) = if call.flag("transB", false)? { (outputs, depth) } else { (depth, outputs) };
    expect_scale(call, outputs)?;
    call.expect_dims(BIAS, &[outputs])?;
    let Some([rows @ .., columns]) = a else { return one(None) };
    if !columns.agrees(depth) {
        return Err(call.wrong(1, format!("{columns} rows, as many as A has columns"), depth));
    }
    let dims: Shape = Some(rows.iter().copied().chain([outputs]).collect());
    if let Some(dims) = &dims {
        call.expect_dims(RESIDUAL, dims)?;
    }
    one(dims)
}

fn block_product(call: &Call<'_>) -> Result<Vec<Output>> {
    let (a, w) = (call.dims_of_at_least(0, 1)?, call.dims_of_rank::<2>(1)?);
    let [outputs, depth] = w.unwrap_or([Dim::Unknown; 2]);
    let block = call.int_or("block_size", 0)?;
    if block < 1 {
        return Err(wrong_attribute("block_size", "at least 1", block));
    }
    let blocks = depth.plus(block - 1)?.over(block)?;
    call.expect_dims(SCALE, &[outputs, blocks])?;
    call.expect_dims(ZERO, &[outputs, blocks])?;
    let Some([rows @ .., columns]) = a else { return one(None) };
    if !columns.agrees(depth) {
        return Err(call.wrong(1, format!("rows of {columns}, as A has"), depth));
    }
    one(rows.iter().copied().chain([outputs]).collect::<PartialDims>())
}

/// Checks that there is one scale, or one for each output.
fn expect_scale(call: &Call<'_>, outputs: Dim) -> Result<()> {
    match call.dims(SCALE)? {
        None | Some([]) => Ok(()),
        Some([count]) if count.agrees(Dim::Known(1)) || count.agrees(outputs) => Ok(()),
        Some(found) => Err(call.wrong(SCALE, format!("one element, or {outputs}"), Listed(found))),
    }
}
