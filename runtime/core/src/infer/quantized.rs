//! Quantized ops, which accumulate exactly in integers.

use super::channels_last;
use super::context::{InferenceContext, attribute_error};
use super::elementwise::infer_same_shape;
use super::fact::{DisplayDims, PartialDim, PartialDims};
use super::output::{InferredOutput, PartialShape, single_output};
use super::rule::{InferenceRule, LATEST, rule};
use crate::Result;

pub(super) const RULES: &[InferenceRule] = &[
    rule("BlockMatMul", 1, LATEST, &[], infer_block_matmul).in_oarlock_domain(),
    rule("ByteMap", 1, LATEST, &[], infer_byte_map).in_oarlock_domain(),
    rule("DequantizedConv", 1, LATEST, &[], infer_dequantized_conv).in_oarlock_domain(),
    rule("DequantizedMatMul", 1, LATEST, &[], infer_dequantized_matmul).in_oarlock_domain(),
    rule("QuantizedConv", 1, LATEST, &[], infer_quantized_conv).in_oarlock_domain(),
    rule("QuantizedMatMul", 1, LATEST, &[], infer_quantized_matmul).in_oarlock_domain(),
];

/// Indices of inputs.
const SCALE_INPUT: usize = 2;
const BIAS_INPUT: usize = 3;
const ZERO_POINT_INPUT: usize = 3;
const RESIDUAL_INPUT: usize = 4;

fn infer_byte_map(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.expect_dims(1, &[PartialDim::Known(256)])?;
    infer_same_shape(call)
}

fn infer_quantized_conv(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let outputs = call.dims_of_at_least(1, 3)?.map_or(PartialDim::Unknown, |dims| dims[0]);
    expect_per_output(call, SCALE_INPUT, outputs)?;
    channels_last::infer_biased_conv(call, BIAS_INPUT, RESIDUAL_INPUT)
}

fn infer_quantized_matmul(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let (a, w) = (call.dims_of_at_least(0, 1)?, call.dims_of_rank::<2>(1)?);
    let [depth, outputs] = w.unwrap_or([PartialDim::Unknown; 2]);
    let (depth, outputs) =
        if call.flag_attribute("transB", false)? { (outputs, depth) } else { (depth, outputs) };
    expect_per_output(call, SCALE_INPUT, outputs)?;
    call.expect_dims(BIAS_INPUT, &[outputs])?;
    matmul_rows(call, (a, depth), outputs, RESIDUAL_INPUT)
}

/// Indices of inputs of `DequantizedConv` and `DequantizedMatMul`: scale and zero point of the images or rows, scales and
/// zero points of the outputs, biases of the outputs, and the residual.
const PER_IMAGE_INPUTS: [usize; 2] = [2, 4];
const PER_OUTPUT_INPUTS: [usize; 2] = [3, 5];
const BIAS_INPUTS: [usize; 2] = [6, 7];
const ADDEND_INPUT: usize = 8;

fn infer_dequantized_conv(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let outputs = call.dims_of_at_least(1, 3)?.map_or(PartialDim::Unknown, |dims| dims[0]);
    expect_dequantized(call, outputs)?;
    channels_last::infer_biased_conv(call, BIAS_INPUTS[0], ADDEND_INPUT)
}

fn infer_dequantized_matmul(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let (a, w) = (call.dims_of_at_least(0, 1)?, call.dims_of_rank::<2>(1)?);
    let [depth, outputs] = w.unwrap_or([PartialDim::Unknown; 2]);
    expect_dequantized(call, outputs)?;
    matmul_rows(call, (a, depth), outputs, ADDEND_INPUT)
}

/// Checks scales and zero points, which have one element for all outputs or one for each.
fn expect_dequantized(call: &InferenceContext<'_>, outputs: PartialDim) -> Result<()> {
    PER_IMAGE_INPUTS.into_iter().try_for_each(|input| call.expect_one_element(input))?;
    PER_OUTPUT_INPUTS.into_iter().try_for_each(|input| expect_per_output(call, input, outputs))?;
    BIAS_INPUTS.into_iter().try_for_each(|input| call.expect_dims(input, &[outputs]))
}

/// The shape of the product of rows with a matrix of `depth` rows and `outputs` columns.
fn matmul_rows(
    call: &InferenceContext<'_>,
    (a, depth): (Option<&[PartialDim]>, PartialDim),
    outputs: PartialDim,
    residual: usize,
) -> Result<Vec<InferredOutput>> {
    let Some([rows @ .., columns]) = a else { return single_output(None) };
    if !columns.may_equal(depth) {
        return Err(call.input_error(1, format!("{columns} rows, as many as A has columns"), depth));
    }
    let dims: PartialShape = Some(rows.iter().copied().chain([outputs]).collect());
    if let Some(dims) = &dims {
        call.expect_dims(residual, dims)?;
    }
    single_output(dims)
}

fn infer_block_matmul(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let (a, w) = (call.dims_of_at_least(0, 1)?, call.dims_of_rank::<2>(1)?);
    let [outputs, depth] = w.unwrap_or([PartialDim::Unknown; 2]);
    let block = call.int_attribute_or("block_size", 0)?;
    if block < 1 {
        return Err(attribute_error("block_size", "at least 1", block));
    }
    let blocks = depth.try_add(block - 1)?.try_div(block)?;
    call.expect_dims(SCALE_INPUT, &[outputs, blocks])?;
    call.expect_dims(ZERO_POINT_INPUT, &[outputs, blocks])?;
    let Some([rows @ .., columns]) = a else { return single_output(None) };
    if !columns.may_equal(depth) {
        return Err(call.input_error(1, format!("rows of {columns}, as A has"), depth));
    }
    single_output(rows.iter().copied().chain([outputs]).collect::<PartialDims>())
}

/// Checks that an operand is a scalar, has one element, or has one for each output.
fn expect_per_output(call: &InferenceContext<'_>, input: usize, outputs: PartialDim) -> Result<()> {
    match call.optional_input(input).and_then(|fact| fact.dims.as_deref()) {
        None | Some([]) => Ok(()),
        Some([count]) if count.may_equal(PartialDim::Known(1)) || count.may_equal(outputs) => Ok(()),
        Some(found) => Err(call.input_error(input, format!("one element, or {outputs}"), DisplayDims(found))),
    }
}
