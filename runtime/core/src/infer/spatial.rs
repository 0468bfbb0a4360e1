//! Ops that sample images at computed positions, and ops that rearrange them into blocks or columns.

use super::context::{InferenceContext, attribute_error};
use super::fact::{DisplayDims, PartialDim, PartialDims, dim_product};
use super::output::{InferredOutput, single_output, unknown_dims};
use super::rule::{InferenceRule, LATEST, rule};
use crate::Result;

pub(super) const RULES: &[InferenceRule] = &[
    rule("GridSample", 16, LATEST, &[], infer_grid_sample),
    rule("AffineGrid", 20, LATEST, &[1], infer_affine_grid),
    rule("Col2Im", 18, LATEST, &[1, 2], infer_col2im),
    rule("ImageDecoder", 20, LATEST, &[], infer_image_decoder),
];

fn infer_grid_sample(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let (x, grid) = (call.dims_of_at_least(0, 3)?, call.dims_of_at_least(1, 3)?);
    let Some(grid) = grid else { return single_output(x.map(|x| unknown_dims(x.len()))) };
    let rank = grid.len();
    let unknown = unknown_dims(rank);
    let x = x.unwrap_or(&unknown);
    if x.len() != rank || !grid[0].may_equal(x[0]) || !grid[rank - 1].may_equal(PartialDim::from(x.len() - 2))
    {
        let expected = format!("{} dimensions, from {} to one for each place's axes", x.len(), x[0]);
        return Err(call.input_error(1, expected, DisplayDims(grid)));
    }
    single_output(
        [x[0].refine_with(grid[0]), x[1]].iter().chain(&grid[1..rank - 1]).copied().collect::<PartialDims>(),
    )
}

fn infer_affine_grid(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let [batches, rows, columns] = call.dims_of_rank(0)?.unwrap_or([PartialDim::Unknown; 3]);
    let length = call.list_length(1)?;
    let Some(sizes) = call.input_ints(1)? else {
        return single_output(length.known_size().and_then(|length| {
            match length {
                4 => Some(
                    [batches, PartialDim::Unknown, PartialDim::Unknown, PartialDim::Known(2)]
                        .as_slice()
                        .into(),
                ),
                5 => Some(
                    [
                        batches,
                        PartialDim::Unknown,
                        PartialDim::Unknown,
                        PartialDim::Unknown,
                        PartialDim::Known(3),
                    ]
                    .as_slice()
                    .into(),
                ),
                _ => None::<PartialDims>,
            }
        }));
    };
    let ([count, _, spatial @ ..], 4..=5) = (sizes.as_slice(), sizes.len()) else {
        return Err(call.input_error(1, "4 or 5 sizes", format!("{sizes:?}")));
    };
    if sizes.iter().any(|size| *size < 0) || !batches.may_equal(PartialDim::Known(*count)) {
        let expected = format!("sizes of at least 0, the first one {batches}");
        return Err(call.input_error(1, expected, format!("{sizes:?}")));
    }
    let axes = PartialDim::from(spatial.len());
    if !rows.may_equal(axes) || !columns.may_equal(axes.try_add(1)?) {
        let found = DisplayDims(&[rows, columns]).to_string();
        return Err(call.input_error(0, format!("matrices of {axes} rows and one more column"), found));
    }
    let spatial = spatial.iter().copied().map(PartialDim::Known);
    single_output(
        [PartialDim::Known(*count)].into_iter().chain(spatial).chain([axes]).collect::<PartialDims>(),
    )
}

fn infer_col2im(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    let [batches, rows, columns] = call.dims_of_rank(0)?.unwrap_or([PartialDim::Unknown; 3]);
    let lengths = call.list_length(1)?.refine_with(call.list_length(2)?);
    call.expect_dims(1, &[lengths])?;
    call.expect_dims(2, &[lengths])?;
    let sizes = |input| match call.input_ints(input)? {
        Some(sizes) if sizes.is_empty() || sizes.iter().any(|size| *size < 0) => {
            Err(call.input_error(input, "sizes of at least 0", format!("{sizes:?}")))
        }
        sizes => Ok(sizes.map(|sizes| sizes.into_iter().map(PartialDim::Known).collect::<PartialDims>())),
    };
    let (image, block) = (sizes(1)?, sizes(2)?);
    let block_size = match &block {
        Some(block) => dim_product(block)?,
        None => PartialDim::Unknown,
    };
    if !rows.may_divide_by(block_size) {
        return Err(call.input_error(
            0,
            format!("a second dimension that blocks of {block_size} divide"),
            rows,
        ));
    }
    let Some(image) = image else {
        return single_output(super::reshape::rank_from_length(call, 1)?.map(|rank| unknown_dims(rank + 2)));
    };
    let block = block.unwrap_or_else(|| unknown_dims(image.len()));
    let places = block_count(call, &image, &block)?;
    if !places.may_equal(columns) {
        return Err(call.input_error(0, format!("a column for each of {places} blocks"), columns));
    }
    single_output([batches, rows.try_div(block_size)?].into_iter().chain(image).collect::<PartialDims>())
}

/// The number of block positions in an image.
fn block_count(
    call: &InferenceContext<'_>,
    image: &[PartialDim],
    block: &[PartialDim],
) -> Result<PartialDim> {
    use super::window::AxisValues;
    let axes = image.len();
    if block.len() != axes {
        return Err(call.input_error(2, format!("{axes} sizes"), block.len()));
    }
    let strides = AxisValues::read_axis_values(call, "strides", axes, 1, 1)?;
    let dilations = AxisValues::read_axis_values(call, "dilations", axes, 1, 1)?;
    let pads = AxisValues::read_axis_values(call, "pads", axes * 2, 0, 0)?;
    let along = |axis: usize| {
        let padded = image[axis].try_add(pads.get(axis))?.try_add(pads.get(axis + axes))?;
        let extent = block[axis].try_sub(1)?.try_mul(dilations.get(axis))?.try_add(1)?;
        let room = padded.try_sub(extent)?;
        if room.known_size().is_some_and(|room| room < 0) {
            return Err(call.input_error(2, format!("blocks of at most {padded} along axis {axis}"), extent));
        }
        room.try_div(strides.get(axis))?.try_add(1)
    };
    dim_product(&(0..axes).map(along).collect::<Result<PartialDims>>()?)
}

fn infer_image_decoder(call: &InferenceContext<'_>) -> Result<Vec<InferredOutput>> {
    call.list_length(0)?;
    let channels = match call.string_attribute("pixel_format", "RGB")? {
        "RGB" | "BGR" => 3,
        "Grayscale" => 1,
        other => {
            return Err(attribute_error("pixel_format", "RGB, BGR or Grayscale", format!("`{other}`")));
        }
    };
    single_output([PartialDim::Unknown, PartialDim::Unknown, PartialDim::Known(channels)].as_slice())
}
