//! Convolutions, and the handling of image layouts for other ops too.

use oarlock_core::{Attribute, Result};

use super::{TranslatorTable, int_attribute, ints_attribute, text_attribute};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const CONVOLUTION_OPS: TranslatorTable = &[
    ("conv2d", |importer, op| lower_convolution(importer, op, "Conv")),
    ("conv2d_transpose", |importer, op| lower_convolution(importer, op, "ConvTranspose")),
    ("conv3d", |importer, op| lower_convolution(importer, op, "Conv")),
    ("conv3d_transpose", |importer, op| lower_convolution(importer, op, "ConvTranspose")),
    ("depthwise_conv2d", |importer, op| lower_convolution(importer, op, "Conv")),
    ("depthwise_conv2d_transpose", |importer, op| lower_convolution(importer, op, "ConvTranspose")),
];

/// True for NHWC and its 1-D and 3-D relatives.
pub(super) fn is_channels_last(op: &OpDesc, attribute: &str) -> Result<bool> {
    let first = ["NCHW", "AnyLayout", "NCDHW", "NCW", "NCL", "NC"];
    let last = ["NHWC", "NDHWC", "NWC", "NLC"];
    op.expect_attribute(attribute, &[first.as_slice(), last.as_slice()].concat())?;
    Ok(last.contains(&op.text_attribute(attribute)))
}

/// Transposes an operand to channels first, as ONNX expects.
pub(super) fn to_channels_first<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &OpDesc,
    attribute: &str,
    x: PaddleOperand<'m>,
) -> Result<ValueId> {
    if !is_channels_last(op, attribute)? || x.rank()? < 3 {
        return Ok(x.id);
    }
    let rank = x.rank()?;
    let order: Vec<i64> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    Ok(importer.add_op_with("Transpose", &[x.id], build_attributes([("perm", ints_attribute(&order))])))
}

/// Transposes a result back to the layout of the op.
pub(super) fn restore_channels<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &OpDesc,
    attribute: &str,
    x: PaddleOperand<'m>,
    made: ValueId,
) -> Result<ValueId> {
    if !is_channels_last(op, attribute)? || x.rank()? < 3 {
        return Ok(made);
    }
    let order: Vec<i64> = [0].into_iter().chain(2..x.rank()?).chain([1]).collect();
    Ok(importer.add_op_with("Transpose", &[made], build_attributes([("perm", ints_attribute(&order))])))
}

/// Spatial sizes of an image, -1 for unknown ones.
pub(super) fn spatial_sizes(op: &OpDesc, attribute: &str, x: PaddleOperand<'_>) -> Result<Vec<i64>> {
    let dims = x.dims.unwrap_or_default();
    let range =
        if is_channels_last(op, attribute)? { 1..dims.len().saturating_sub(1) } else { 2..dims.len() };
    Ok(dims.get(range).unwrap_or_default().to_vec())
}

/// Padding as an ONNX attribute: explicit pads, all begins before all ends, or `auto_pad`.
pub(super) fn padding_attribute(op: &OpDesc, count: usize) -> Result<(&'static str, Attribute)> {
    op.expect_attribute("padding_algorithm", &["EXPLICIT", "SAME", "VALID"])?;
    let given = op.ints_attribute("paddings");
    let pads = match op.text_attribute("padding_algorithm") {
        "SAME" => return Ok(("auto_pad", text_attribute("SAME_UPPER"))),
        "VALID" => vec![0; 2 * count],
        _ if given.len() == count => [given.as_slice(), &given].concat(),
        _ if given.len() == 2 * count => {
            let every_second = |from| given.iter().skip(from).step_by(2).copied();
            every_second(0).chain(every_second(1)).collect()
        }
        _ => return Err(invalid_model(format!("{count} or {} paddings", 2 * count), given.len())),
    };
    Ok(("pads", ints_attribute(&pads)))
}

fn lower_convolution<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let (input, filter) = (importer.input(op, "Input")?, importer.input(op, "Filter")?);
    let count = op.ints_attribute("strides").len();
    let from = to_channels_first(importer, op, "data_format", input)?;
    let bias = importer.optional_input(op, "Bias")?.map(|bias| bias.id);
    let operands: Vec<_> = [from, filter.id].into_iter().chain(bias).collect();
    let mut dilations = op.ints_attribute("dilations");
    let mut attributes = build_attributes([
        ("strides", ints_attribute(&op.ints_attribute("strides"))),
        ("group", int_attribute(op.int_attribute("groups", 1))),
        padding_attribute(op, count)?,
    ]);
    if op.text_attribute("padding_algorithm") == "SAME" {
        // Paddle ignores dilations in this mode.
        dilations = vec![1; count];
    }
    attributes.set("dilations", ints_attribute(&dilations));
    let more = op.ints_attribute("output_padding");
    if !more.is_empty() {
        attributes.set("output_padding", ints_attribute(&more));
    }
    if let Some(more) = output_padding(op, input, filter)? {
        attributes.set("output_padding", ints_attribute(&more));
    } else if !op.ints_attribute("output_size").is_empty() {
        attributes.set("output_shape", ints_attribute(&op.ints_attribute("output_size")));
    }
    let made = importer.add_op_with(name, &operands, attributes);
    let made = restore_channels(importer, op, "data_format", input, made)?;
    importer.set_output(op, "Output", made)
}

/// The `output_padding` that gives a transposed convolution its requested output size.
fn output_padding(
    op: &OpDesc,
    input: PaddleOperand<'_>,
    filter: PaddleOperand<'_>,
) -> Result<Option<Vec<i64>>> {
    let wanted = op.ints_attribute("output_size");
    let count = wanted.len();
    let Some(window) = filter.dims.and_then(|dims| dims.get(2..)).filter(|_| count > 0) else {
        return Ok(None);
    };
    let Attribute::Ints(pads) = padding_attribute(op, count)?.1 else { return Ok(None) };
    let (strides, dilations) = (op.ints_attribute("strides"), op.ints_attribute("dilations"));
    let sizes = spatial_sizes(op, "data_format", input)?;
    let lists = [sizes.len(), window.len(), strides.len(), dilations.len()];
    if lists.iter().any(|length| *length != count) || sizes.iter().any(|size| *size < 0) {
        return Ok(None);
    }
    let missing = |at: usize| {
        let covered = dilations[at].checked_mul(window[at].checked_sub(1)?)?.checked_add(1)?;
        let made = (sizes[at].checked_sub(1)?).checked_mul(strides[at])?.checked_add(covered)?;
        wanted[at].checked_sub(made)?.checked_add(pads[at])?.checked_add(pads[at + count])
    };
    Ok((0..count).map(missing).collect())
}
