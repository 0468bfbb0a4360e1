//! Ops on numbers of eight bits that are multiples of a scale, with sums that are exact.

use super::call::{Call, wrong_attribute};
use super::channels_last;
use super::fact::{Dim, Listed, PartialDims};
use super::output::{Output, Shape, one};
use super::table::{LATEST, Rule, rule};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("BlockMatMul", 1, LATEST, &[], block_product).of_domain("oarlock"),
    rule("DequantizedConv", 1, LATEST, &[], dequantized_conv).of_domain("oarlock"),
    rule("DequantizedMatMul", 1, LATEST, &[], dequantized_product).of_domain("oarlock"),
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
    expect_of_outputs(call, SCALE, outputs)?;
    channels_last::conv(call, BIAS, RESIDUAL)
}

fn product(call: &Call<'_>) -> Result<Vec<Output>> {
    let (a, w) = (call.dims_of_at_least(0, 1)?, call.dims_of_rank::<2>(1)?);
    let [depth, outputs] = w.unwrap_or([Dim::Unknown; 2]);
    let (depth, outputs) = if call.flag("transB", false)? { (outputs, depth) } else { (depth, outputs) };
    expect_of_outputs(call, SCALE, outputs)?;
    call.expect_dims(BIAS, &[outputs])?;
    rows_with(call, (a, depth), outputs, RESIDUAL)
}

/// The places of what `DequantizedConv` and `DequantizedMatMul` have for all images or rows, for all outputs or each of them,
/// and for each output, and of what is added in the end.
const OF_IMAGES: [usize; 2] = [2, 4];
const OF_OUTPUTS: [usize; 2] = [3, 5];
const BIASES: [usize; 2] = [6, 7];
const ADDEND: usize = 8;

fn dequantized_conv(call: &Call<'_>) -> Result<Vec<Output>> {
    let outputs = call.dims_of_at_least(1, 3)?.map_or(Dim::Unknown, |dims| dims[0]);
    expect_dequantized(call, outputs)?;
    channels_last::conv(call, BIASES[0], ADDEND)
}

fn dequantized_product(call: &Call<'_>) -> Result<Vec<Output>> {
    let (a, w) = (call.dims_of_at_least(0, 1)?, call.dims_of_rank::<2>(1)?);
    let [depth, outputs] = w.unwrap_or([Dim::Unknown; 2]);
    expect_dequantized(call, outputs)?;
    rows_with(call, (a, depth), outputs, ADDEND)
}

/// Checks what there is for all outputs, or for each of them.
fn expect_dequantized(call: &Call<'_>, outputs: Dim) -> Result<()> {
    OF_IMAGES.into_iter().try_for_each(|input| call.expect_one_element(input))?;
    OF_OUTPUTS.into_iter().try_for_each(|input| expect_of_outputs(call, input, outputs))?;
    BIASES.into_iter().try_for_each(|input| call.expect_dims(input, &[outputs]))
}

/// The shape of a product of rows with a matrix of so many rows and outputs.
fn rows_with(
    call: &Call<'_>,
    (a, depth): (Option<&[Dim]>, Dim),
    outputs: Dim,
    residual: usize,
) -> Result<Vec<Output>> {
    let Some([rows @ .., columns]) = a else { return one(None) };
    if !columns.agrees(depth) {
        return Err(call.wrong(1, format!("{columns} rows, as many as A has columns"), depth));
    }
    let dims: Shape = Some(rows.iter().copied().chain([outputs]).collect());
    if let Some(dims) = &dims {
        call.expect_dims(residual, dims)?;
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

/// Checks that an operand has one element, or one for each output.
fn expect_of_outputs(call: &Call<'_>, input: usize, outputs: Dim) -> Result<()> {
    match call.given(input).and_then(|fact| fact.dims.as_deref()) {
        None | Some([]) => Ok(()),
        Some([count]) if count.agrees(Dim::Known(1)) || count.agrees(outputs) => Ok(()),
        Some(found) => Err(call.wrong(input, format!("one element, or {outputs}"), Listed(found))),
    }
}
