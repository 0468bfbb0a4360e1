//! Ops that sample images at places that are computed, and those that take images apart.

use super::call::{Call, wrong_attribute};
use super::fact::{Dim, Listed, PartialDims, product};
use super::output::{Output, of_rank, one};
use super::table::{LATEST, Rule, rule};
use crate::Result;

pub(super) const RULES: &[Rule] = &[
    rule("GridSample", 16, LATEST, &[], sample),
    rule("AffineGrid", 20, LATEST, &[1], affine_grid),
    rule("Col2Im", 18, LATEST, &[1, 2], image_of_columns),
    rule("ImageDecoder", 20, LATEST, &[], decode),
];

fn sample(call: &Call<'_>) -> Result<Vec<Output>> {
    let (x, grid) = (call.dims_of_at_least(0, 3)?, call.dims_of_at_least(1, 3)?);
    let Some(grid) = grid else { return one(x.map(|x| of_rank(x.len()))) };
    let rank = grid.len();
    let unknown = of_rank(rank);
    let x = x.unwrap_or(&unknown);
    if x.len() != rank || !grid[0].agrees(x[0]) || !grid[rank - 1].agrees(Dim::from(x.len() - 2)) {
        let expected = format!("{} dimensions, from {} to one for each place's axes", x.len(), x[0]);
        return Err(call.wrong(1, expected, Listed(grid)));
    }
    one([x[0].or(grid[0]), x[1]].iter().chain(&grid[1..rank - 1]).copied().collect::<PartialDims>())
}

fn affine_grid(call: &Call<'_>) -> Result<Vec<Output>> {
    let [batches, rows, columns] = call.dims_of_rank(0)?.unwrap_or([Dim::Unknown; 3]);
    let length = call.list_length(1)?;
    let Some(sizes) = call.ints(1)? else {
        return one(length.known().and_then(|length| match length {
            4 => Some([batches, Dim::Unknown, Dim::Unknown, Dim::Known(2)].as_slice().into()),
            5 => Some([batches, Dim::Unknown, Dim::Unknown, Dim::Unknown, Dim::Known(3)].as_slice().into()),
            _ => None::<PartialDims>,
        }));
    };
    let ([count, _, spatial @ ..], 4..=5) = (sizes.as_slice(), sizes.len()) else {
        return Err(call.wrong(1, "4 or 5 sizes", format!("{sizes:?}")));
    };
    if sizes.iter().any(|size| *size < 0) || !batches.agrees(Dim::Known(*count)) {
        let expected = format!("sizes of at least 0, the first one {batches}");
        return Err(call.wrong(1, expected, format!("{sizes:?}")));
    }
    let axes = Dim::from(spatial.len());
    if !rows.agrees(axes) || !columns.agrees(axes.plus(1)?) {
        let found = Listed(&[rows, columns]).to_string();
        return Err(call.wrong(0, format!("matrices of {axes} rows and one more column"), found));
    }
    let spatial = spatial.iter().copied().map(Dim::Known);
    one([Dim::Known(*count)].into_iter().chain(spatial).chain([axes]).collect::<PartialDims>())
}

fn image_of_columns(call: &Call<'_>) -> Result<Vec<Output>> {
    let [batches, rows, columns] = call.dims_of_rank(0)?.unwrap_or([Dim::Unknown; 3]);
    let lengths = call.list_length(1)?.or(call.list_length(2)?);
    call.expect_dims(1, &[lengths])?;
    call.expect_dims(2, &[lengths])?;
    let sizes = |input| match call.ints(input)? {
        Some(sizes) if sizes.is_empty() || sizes.iter().any(|size| *size < 0) => {
            Err(call.wrong(input, "sizes of at least 0", format!("{sizes:?}")))
        }
        sizes => Ok(sizes.map(|sizes| sizes.into_iter().map(Dim::Known).collect::<PartialDims>())),
    };
    let (image, block) = (sizes(1)?, sizes(2)?);
    let block_size = match &block {
        Some(block) => product(block)?,
        None => Dim::Unknown,
    };
    if !rows.may_divide_by(block_size) {
        return Err(call.wrong(0, format!("a second dimension that blocks of {block_size} divide"), rows));
    }
    let Some(image) = image else {
        return one(super::reshape::rank_of(call, 1)?.map(|rank| of_rank(rank + 2)));
    };
    let block = block.unwrap_or_else(|| of_rank(image.len()));
    let places = places(call, &image, &block)?;
    if !places.agrees(columns) {
        return Err(call.wrong(0, format!("a column for each of {places} blocks"), columns));
    }
    one([batches, rows.over(block_size)?].into_iter().chain(image).collect::<PartialDims>())
}

/// How many blocks there are in an image.
fn places(call: &Call<'_>, image: &[Dim], block: &[Dim]) -> Result<Dim> {
    use super::window::Sizes;
    let axes = image.len();
    if block.len() != axes {
        return Err(call.wrong(2, format!("{axes} sizes"), block.len()));
    }
    let strides = Sizes::read(call, "strides", axes, 1, 1)?;
    let dilations = Sizes::read(call, "dilations", axes, 1, 1)?;
    let pads = Sizes::read(call, "pads", axes * 2, 0, 0)?;
    let along = |axis: usize| {
        let padded = image[axis].plus(pads.get(axis))?.plus(pads.get(axis + axes))?;
        let extent = block[axis].minus(1)?.times(dilations.get(axis))?.plus(1)?;
        let room = padded.minus(extent)?;
        if room.known().is_some_and(|room| room < 0) {
            return Err(call.wrong(2, format!("blocks of at most {padded} along axis {axis}"), extent));
        }
        room.over(strides.get(axis))?.plus(1)
    };
    product(&(0..axes).map(along).collect::<Result<PartialDims>>()?)
}

fn decode(call: &Call<'_>) -> Result<Vec<Output>> {
    call.list_length(0)?;
    let channels = match call.text("pixel_format", "RGB")? {
        "RGB" | "BGR" => 3,
        "Grayscale" => 1,
        other => {
            return Err(wrong_attribute("pixel_format", "RGB, BGR or Grayscale", format!("`{other}`")));
        }
    };
    one([Dim::Unknown, Dim::Unknown, Dim::Known(channels)].as_slice())
}
