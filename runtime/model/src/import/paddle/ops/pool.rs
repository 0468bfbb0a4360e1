//! Pooling with windows of a given size or number.

use oarlock_core::{Attributes, Error, Result};

use super::convolution::{padding_attribute, restore_channels, spatial_sizes, to_channels_first};
use super::{TranslatorTable, int_attribute, ints_attribute, known_list};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;

/// Limit on parts of a dimension that are not of equal size; each takes several nodes.
const MAX_POOL_PARTS: i64 = 64;

pub(super) const POOL_OPS: TranslatorTable = &[
    ("max_pool2d_with_index", |importer, op| lower_max_pool_with_index(importer, op, 2)),
    ("max_pool3d_with_index", |importer, op| lower_max_pool_with_index(importer, op, 3)),
    ("pool2d", |importer, op| lower_pool(importer, op, 2)),
    ("pool3d", |importer, op| lower_pool(importer, op, 3)),
];

fn lower_pool<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, count: usize) -> Result<()> {
    op.expect_attribute("pooling_type", &["avg", "max"])?;
    let x = importer.input(op, "X")?;
    let is_average = op.text_attribute("pooling_type") == "avg";
    let window = known_list(importer, op, "ksize", "KSize", "KSize")?.ok_or_else(|| {
        Error::unimplemented("expected a window of a known size, found one that is computed")
    })?;
    let from = to_channels_first(importer, op, "data_format", x)?;
    let is_adaptive = op.bool_attribute("adaptive", false);
    let name = if is_average { "AveragePool" } else { "MaxPool" };
    let result = if op.bool_attribute("global_pooling", false)
        || (is_adaptive && window.iter().all(|size| *size == 1))
    {
        importer.add_op(if is_average { "GlobalAveragePool" } else { "GlobalMaxPool" }, &[from])
    } else if is_adaptive {
        let sizes = spatial_sizes(op, "data_format", x)?;
        match equal_windows(&sizes, &window) {
            Some(window) => {
                let attributes = build_attributes([
                    ("kernel_shape", ints_attribute(&window)),
                    ("strides", ints_attribute(&window)),
                ]);
                importer.add_op_with(name, &[from], attributes)
            }
            None => pool_parts(importer, from, &window, if is_average { "ReduceMean" } else { "ReduceMax" })?,
        }
    } else {
        let mut attributes = pool_attributes(op, &window, count)?;
        if is_average {
            attributes
                .set("count_include_pad", int_attribute((!op.bool_attribute("exclusive", true)).into()));
        }
        importer.add_op_with(name, &[from], attributes)
    };
    let result = restore_channels(importer, op, "data_format", x, result)?;
    importer.set_output(op, "Out", result)
}

fn pool_attributes(op: &OpDesc, window: &[i64], count: usize) -> Result<Attributes> {
    Ok(build_attributes([
        ("kernel_shape", ints_attribute(window)),
        ("strides", ints_attribute(&op.ints_attribute("strides"))),
        ("ceil_mode", int_attribute(op.bool_attribute("ceil_mode", false).into())),
        padding_attribute(op, count)?,
    ]))
}

/// The window size that divides dimensions into equal parts, if there is one.
fn equal_windows(sizes: &[i64], counts: &[i64]) -> Option<Vec<i64>> {
    let window =
        |(size, count): (&i64, &i64)| (*size > 0 && *count > 0 && size % count == 0).then(|| size / count);
    let windows: Option<Vec<i64>> = sizes.iter().zip(counts).map(window).collect();
    windows.filter(|windows| windows.len() == counts.len())
}

/// Adaptive pooling with unequal parts, which may overlap by one element; each is sliced and reduced.
fn pool_parts(importer: &mut PaddleImporter, from: ValueId, counts: &[i64], name: &str) -> Result<ValueId> {
    let mut result = from;
    for (at, count) in counts.iter().enumerate() {
        if !(1..=MAX_POOL_PARTS).contains(count) {
            return Err(Error::unimplemented(format!("expected 1 to {MAX_POOL_PARTS} parts, found {count}")));
        }
        let axis = at as i64 + 2;
        let size = importer.add_op_with(
            "Shape",
            &[from],
            build_attributes([("start", int_attribute(axis)), ("end", int_attribute(axis + 1))]),
        );
        let axes = importer.add_ints(&[axis]);
        let whole = importer.add_ints(&[*count]);
        let mut each = Vec::new();
        for part in 0..*count {
            // A part begins at its start rounded down and ends at its end rounded up.
            let (begin, end) = (importer.add_ints(&[part]), importer.add_ints(&[part + 1]));
            let before_next = importer.add_ints(&[count - 1]);
            let begin = importer.add_op("Mul", &[size, begin]);
            let begin = importer.add_op("Div", &[begin, whole]);
            let end = importer.add_op("Mul", &[size, end]);
            let end = importer.add_op("Add", &[end, before_next]);
            let end = importer.add_op("Div", &[end, whole]);
            let window = importer.add_op("Slice", &[result, begin, end, axes]);
            each.push(importer.add_op_with(
                name,
                &[window, axes],
                build_attributes([("keepdims", int_attribute(1))]),
            ));
        }
        result = importer.add_op_with("Concat", &each, build_attributes([("axis", int_attribute(axis))]));
    }
    Ok(result)
}

/// Maximum pooling with indices. Paddle counts positions within an image; ONNX counts them over the whole batch.
fn lower_max_pool_with_index<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    count: usize,
) -> Result<()> {
    let x = importer.input(op, "X")?;
    let rank = x.rank()?;
    let mut window = op.ints_attribute("ksize");
    if op.bool_attribute("adaptive", false) {
        // ONNX has no indices for overlapping windows.
        let result = pool_parts(importer, x.id, &window, "ReduceMax")?;
        return importer.set_output(op, "Out", result);
    }
    if op.bool_attribute("global_pooling", false) {
        window = x.dims.and_then(|dims| dims.get(2..)).unwrap_or_default().to_vec();
        if window.iter().any(|size| *size < 0) {
            return Err(Error::unimplemented("expected a picture of a known size, found another"));
        }
    }
    if window.len() != count {
        return Err(invalid_model(format!("a window of {count} sizes"), window.len()));
    }
    let result = importer.add_node("MaxPool", &[Some(x.id)], pool_attributes(op, &window, count)?, 2);
    importer.set_output(op, "Out", result[0])?;
    let sizes = super::slice_shape(importer, x, 2, rank);
    let size =
        importer.add_op_with("ReduceProd", &[sizes], build_attributes([("keepdims", int_attribute(1))]));
    let place = importer.add_op("Mod", &[result[1], size]);
    let place = importer.add_cast(place, oarlock_core::Dtype::I32);
    importer.set_output(op, "Mask", place)
}
