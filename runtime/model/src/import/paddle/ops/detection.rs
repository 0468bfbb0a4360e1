//! Object detection: boxes and their scores.

use oarlock_core::{Constant, Dtype, Error, Result};

use super::{TranslatorTable, add_scalar_like, encode_numbers, int_attribute, ints_attribute, slice_shape};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

/// Limit on prior boxes that are materialized for an image of known size.
const MAX_PRIOR_BOXES: i64 = 1 << 20;

pub(super) const DETECTION_OPS: TranslatorTable = &[
    ("box_coder", lower_box_coder),
    ("multiclass_nms3", lower_multiclass_nms),
    ("nms", lower_suppression),
    ("prior_box", lower_prior_box),
    ("yolo_box", lower_yolo_box),
];

/// Adds a constant of a float dtype.
fn add_float_constant<'m>(
    importer: &mut PaddleImporter<'m>,
    values: &[f64],
    dims: &[i64],
    dtype: Dtype,
) -> Result<ValueId> {
    Ok(importer.add_constant(Constant::new(dtype, dims, encode_numbers(values, dtype)?)?))
}

fn axis_attributes(axis: i64) -> oarlock_core::Attributes {
    build_attributes([("axis", int_attribute(axis))])
}

/// Grid coordinates along one dimension, as a rank-5 tensor that broadcasts over the others.
fn grid_coordinates<'m>(
    importer: &mut PaddleImporter<'m>,
    size: ValueId,
    at: usize,
    dtype: Dtype,
) -> Result<ValueId> {
    let none = importer.add_ints(&[]);
    let end = importer.add_op("Reshape", &[size, none]);
    let (begin, step) = (importer.add_scalar(0.0, Dtype::I64)?, importer.add_scalar(1.0, Dtype::I64)?);
    let places = importer.add_op("Range", &[begin, end, step]);
    let places = importer.add_cast(places, dtype);
    let mut shape = [1; 5];
    shape[at] = -1;
    let shape = importer.add_ints(&shape);
    Ok(importer.add_op("Reshape", &[places, shape]))
}

/// Decodes the output of YOLO: each grid cell has several boxes with four coordinates, a confidence and class scores.
fn lower_yolo_box<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, size) = (importer.input(op, "X")?, importer.input(op, "ImgSize")?.id);
    let (dtype, anchors, classes) =
        (x.dtype(), op.ints_attribute("anchors"), op.int_attribute("class_num", 0));
    let count = (anchors.len() / 2) as i64;
    if count == 0 || classes < 1 {
        return Err(invalid_model("anchors and classes", format!("{count} and {classes}")));
    }
    let edges = [2, 3].map(|at| slice_shape(importer, x, at, at + 1));
    let (batch, is_aware) = (slice_shape(importer, x, 0, 1), op.bool_attribute("iou_aware", false));
    let (mut boxes, mut overlap) = (x.id, None);
    if is_aware {
        let parts = importer.add_ints(&[count, count.saturating_mul(5 + classes)]);
        let result = importer.add_node("Split", &[Some(x.id), Some(parts)], axis_attributes(1), 2);
        let shape = importer.add_ints(&[count, 1]);
        let shape = importer.add_op_with("Concat", &[batch, shape, edges[0], edges[1]], axis_attributes(0));
        let parts = importer.add_op("Reshape", &[result[0], shape]);
        overlap = Some(importer.add_op("Sigmoid", &[parts]));
        boxes = result[1];
    }
    let inner = importer.add_ints(&[count, 5 + classes]);
    let shape = importer.add_op_with("Concat", &[batch, inner, edges[0], edges[1]], axis_attributes(0));
    let cut = importer.add_op("Reshape", &[boxes, shape]);
    let parts = importer.add_ints(&[1, 1, 1, 1, 1, classes]);
    let parts = importer.add_node("Split", &[Some(cut), Some(parts)], axis_attributes(2), 6);
    let mut sure = importer.add_op("Sigmoid", &[parts[4]]);
    if let Some(overlap) = overlap {
        let share = op.float_attribute("iou_aware_factor", 0.5);
        let rest = add_scalar_like(importer, x, 1.0 - share)?;
        sure = importer.add_op("Pow", &[sure, rest]);
        let share = add_scalar_like(importer, x, share)?;
        let overlap = importer.add_op("Pow", &[overlap, share]);
        sure = importer.add_op("Mul", &[sure, overlap]);
    }
    let threshold = add_scalar_like(importer, x, op.float_attribute("conf_thresh", 0.01))?;
    let counts = importer.add_op("GreaterOrEqual", &[sure, threshold]);
    let zero = add_scalar_like(importer, x, 0.0)?;
    let stretch = op.float_attribute("scale_x_y", 1.0);
    let (factor, shift) =
        (add_scalar_like(importer, x, stretch)?, add_scalar_like(importer, x, -0.5 * (stretch - 1.0))?);
    let half = add_scalar_like(importer, x, 0.5)?;
    let ratio = importer.add_ints(&[op.int_attribute("downsample_ratio", 32)]);
    let size = importer.add_cast(size, dtype);
    let (mut low, mut high) = (Vec::new(), Vec::new());
    // x comes first: the second of the image sizes, and the last dimension of the grid.
    for (at, edge, anchor) in [(0, 1, 0), (1, 0, 1)] {
        let place = importer.add_ints(&[edge]);
        let picture = importer.add_op_with("Gather", &[size, place], axis_attributes(1));
        let shape = importer.add_ints(&[-1, 1, 1, 1, 1]);
        let picture = importer.add_op("Reshape", &[picture, shape]);
        let cells = importer.add_cast(edges[edge as usize], dtype);
        let grid = grid_coordinates(importer, edges[edge as usize], 3 + edge as usize, dtype)?;
        let inside = importer.add_op("Sigmoid", &[parts[at]]);
        let inside = importer.add_op("Mul", &[inside, factor]);
        let inside = importer.add_op("Add", &[inside, shift]);
        let center = importer.add_op("Add", &[grid, inside]);
        let center = importer.add_op("Mul", &[center, picture]);
        let center = importer.add_op("Div", &[center, cells]);
        let lengths: Vec<f64> = anchors.iter().skip(anchor).step_by(2).map(|it| *it as f64).collect();
        let lengths = add_float_constant(importer, &lengths[..count as usize], &[1, count, 1, 1, 1], dtype)?;
        let whole = importer.add_op("Mul", &[edges[edge as usize], ratio]);
        let whole = importer.add_cast(whole, dtype);
        let length = importer.add_op("Exp", &[parts[at + 2]]);
        let length = importer.add_op("Mul", &[length, lengths]);
        let length = importer.add_op("Mul", &[length, picture]);
        let length = importer.add_op("Div", &[length, whole]);
        let length = importer.add_op("Mul", &[length, half]);
        let (mut from, mut to) =
            (importer.add_op("Sub", &[center, length]), importer.add_op("Add", &[center, length]));
        if op.bool_attribute("clip_bbox", true) {
            let one = add_scalar_like(importer, x, 1.0)?;
            let end = importer.add_op("Sub", &[picture, one]);
            (from, to) = (importer.add_op("Max", &[from, zero]), importer.add_op("Min", &[to, end]));
        }
        low.push(importer.add_op("Where", &[counts, from, zero]));
        high.push(importer.add_op("Where", &[counts, to, zero]));
    }
    let boxes = importer.add_op_with("Concat", &[low, high].concat(), axis_attributes(2));
    let scores = importer.add_op("Sigmoid", &[parts[5]]);
    let scores = importer.add_op("Mul", &[scores, sure]);
    let scores = importer.add_op("Where", &[counts, scores, zero]);
    for (name, result, inner) in [("Boxes", boxes, 4), ("Scores", scores, classes)] {
        let turned = importer.add_op_with(
            "Transpose",
            &[result],
            build_attributes([("perm", ints_attribute(&[0, 1, 3, 4, 2]))]),
        );
        let shape = importer.add_ints(&[-1, inner]);
        let shape = importer.add_op_with("Concat", &[batch, shape], axis_attributes(0));
        let flat = importer.add_op("Reshape", &[turned, shape]);
        importer.set_output(op, name, flat)?;
    }
    Ok(())
}

/// Prior boxes around each grid cell, computed at import from sizes alone.
fn lower_prior_box<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (input, image) = (importer.input(op, "Input")?, importer.input(op, "Image")?);
    let [height, width] = [input.known_dimension_size(2)?, input.known_dimension_size(3)?];
    let [image_height, image_width] =
        [image.known_dimension_size(2)? as f64, image.known_dimension_size(3)? as f64];
    let mut ratios = vec![1.0];
    for ratio in op.floats_attribute("aspect_ratios") {
        if ratios.iter().any(|known: &f64| (known - ratio).abs() < 1e-6) {
            continue;
        }
        ratios.push(ratio);
        if op.bool_attribute("flip", false) {
            ratios.push(1.0 / ratio);
        }
    }
    let (least, most) = (op.floats_attribute("min_sizes"), op.floats_attribute("max_sizes"));
    let mut shapes = Vec::new();
    for (at, size) in least.iter().enumerate() {
        let of_ratio = |ratio: &f64| (size * ratio.sqrt(), size / ratio.sqrt());
        let between = most.get(at).map(|most| ((size * most).sqrt(), (size * most).sqrt()));
        if op.bool_attribute("min_max_aspect_ratios_order", false) {
            shapes.push((*size, *size));
            shapes.extend(between);
            shapes.extend(ratios.iter().filter(|ratio| (*ratio - 1.0).abs() >= 1e-6).map(of_ratio));
        } else {
            shapes.extend(ratios.iter().map(of_ratio));
            shapes.extend(between);
        }
    }
    let count = shapes.len() as i64;
    let all = height.checked_mul(width).and_then(|all| all.checked_mul(count));
    if all.is_none_or(|all| all > MAX_PRIOR_BOXES) {
        return Err(Error::unimplemented(format!("expected at most {MAX_PRIOR_BOXES} boxes, found more")));
    }
    let step = |name: &str, image: f64, cells: i64| match op.float_attribute(name, 0.0) {
        0.0 => image / cells as f64,
        step => step,
    };
    let (across, down) = (step("step_w", image_width, width), step("step_h", image_height, height));
    let offset = op.float_attribute("offset", 0.5);
    let mut values = Vec::new();
    for row in 0..height {
        for column in 0..width {
            let (x, y) = ((column as f64 + offset) * across, (row as f64 + offset) * down);
            for (wide, high) in &shapes {
                values.extend([
                    (x - wide / 2.0) / image_width,
                    (y - high / 2.0) / image_height,
                    (x + wide / 2.0) / image_width,
                    (y + high / 2.0) / image_height,
                ]);
            }
        }
    }
    if op.bool_attribute("clip", false) {
        values.iter_mut().for_each(|value| *value = value.clamp(0.0, 1.0));
    }
    let (dims, dtype) = ([height, width, count, 4], input.dtype());
    let boxes = add_float_constant(importer, &values, &dims, dtype)?;
    let variances = op.floats_attribute("variances");
    if variances.len() != 4 {
        return Err(invalid_model("4 variances", variances.len()));
    }
    let variances = variances.repeat(values.len() / 4);
    let variances = add_float_constant(importer, &variances, &dims, dtype)?;
    importer.set_output(op, "Boxes", boxes)?;
    importer.set_output(op, "Variances", variances)
}

/// Splits the last dimension.
fn split_columns<'m>(importer: &mut PaddleImporter<'m>, from: ValueId, count: usize) -> Vec<ValueId> {
    let attributes =
        build_attributes([("axis", int_attribute(-1)), ("num_outputs", int_attribute(count as i64))]);
    importer.add_node("Split", &[Some(from)], attributes, count)
}

/// Decodes boxes that are offsets from prior boxes.
fn lower_box_coder<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect_attribute("code_type", &["decode_center_size"])?;
    if op.text_attribute("code_type").is_empty() {
        return Err(Error::unimplemented("expected `code_type` to be decode_center_size, found none"));
    }
    let (prior, target) = (importer.input(op, "PriorBox")?, importer.input(op, "TargetBox")?);
    let raise = |importer: &mut PaddleImporter<'m>, from| {
        let at = importer.add_ints(&[op.int_attribute("axis", 0)]);
        if target.dims.is_some_and(|dims| dims.len() == 3) {
            importer.add_op("Unsqueeze", &[from, at])
        } else {
            from
        }
    };
    let given = op.floats_attribute("variance");
    let variance = match importer.optional_input(op, "PriorBoxVar")? {
        Some(variance) => raise(importer, variance.id),
        None if given.len() == 4 => add_float_constant(importer, &given, &[4], prior.dtype())?,
        None => add_float_constant(importer, &[1.0; 4], &[4], prior.dtype())?,
    };
    let prior_boxes = raise(importer, prior.id);
    let (prior_boxes, target) =
        (split_columns(importer, prior_boxes, 4), importer.add_op("Mul", &[target.id, variance]));
    let target = split_columns(importer, target, 4);
    let more =
        add_scalar_like(importer, prior, if op.bool_attribute("box_normalized", true) { 0.0 } else { 1.0 })?;
    let half = add_scalar_like(importer, prior, 0.5)?;
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for at in [0, 1] {
        let length = importer.add_op("Sub", &[prior_boxes[at + 2], prior_boxes[at]]);
        let length = importer.add_op("Add", &[length, more]);
        let middle = importer.add_op("Mul", &[length, half]);
        let middle = importer.add_op("Add", &[prior_boxes[at], middle]);
        let offset = importer.add_op("Mul", &[target[at], length]);
        let center = importer.add_op("Add", &[offset, middle]);
        let factor = importer.add_op("Exp", &[target[at + 2]]);
        let length = importer.add_op("Mul", &[factor, length]);
        let length = importer.add_op("Mul", &[length, half]);
        low.push(importer.add_op("Sub", &[center, length]));
        let end = importer.add_op("Add", &[center, length]);
        high.push(importer.add_op("Sub", &[end, more]));
    }
    let result = importer.add_op_with("Concat", &[low, high].concat(), axis_attributes(-1));
    importer.set_output(op, "OutputBox", result)
}

/// Non-maximum suppression for each class, then the best boxes of each image.
fn lower_multiclass_nms<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (boxes, scores) = (importer.input(op, "BBoxes")?, importer.input(op, "Scores")?);
    if boxes.rank()? != 3 || scores.rank()? != 3 || importer.optional_input(op, "RoisNum")?.is_some() {
        return Err(Error::unimplemented("expected boxes of whole pictures, found boxes of their parts"));
    }
    if op.float_attribute("nms_eta", 1.0) != 1.0 {
        return Err(Error::unimplemented("expected one threshold for all boxes, found one that changes"));
    }
    let count = slice_shape(importer, boxes, 1, 2);
    let threshold = op.float_attribute("score_threshold", 0.0);
    let (candidates, most) = select_candidates(importer, op, scores, count, threshold)?;
    let mut areas = boxes.id;
    if !op.bool_attribute("normalized", true) {
        // Pixel coordinates are inclusive.
        let more = add_float_constant(importer, &[0.0, 0.0, 1.0, 1.0], &[4], boxes.dtype())?;
        areas = importer.add_op("Add", &[areas, more]);
    }
    let overlap = importer.add_scalar(op.float_attribute("nms_threshold", 0.3), Dtype::F32)?;
    let least = importer.add_scalar(threshold, Dtype::F32)?;
    let mut chosen = importer.add_op("NonMaxSuppression", &[areas, candidates, most, overlap, least]);
    let background = op.int_attribute("background_label", -1);
    if background >= 0 {
        let class = selected_column(importer, chosen, 1, false);
        let background = importer.add_scalar(background as f64, Dtype::I64)?;
        let is_background = importer.add_op("Equal", &[class, background]);
        let counts = importer.add_op("Not", &[is_background]);
        chosen = importer.add_op_with("Compress", &[chosen, counts], axis_attributes(0));
    }
    let batch = slice_shape(importer, boxes, 0, 1);
    if op.int_attribute("keep_top_k", -1) >= 0 {
        chosen = keep_best(importer, chosen, scores, batch, op.int_attribute("keep_top_k", -1))?;
    }
    let picture = selected_column(importer, chosen, 0, true);
    let (class, place) =
        (selected_column(importer, chosen, 1, true), selected_column(importer, chosen, 2, true));
    let last = importer.add_ints(&[-1]);
    let score = importer.add_op("GatherND", &[scores.id, chosen]);
    let score = importer.add_op("Unsqueeze", &[score, last]);
    let at = importer.add_op_with("Concat", &[picture, place], axis_attributes(1));
    let found = importer.add_op("GatherND", &[boxes.id, at]);
    let class = importer.add_cast(class, boxes.dtype());
    let result = importer.add_op_with("Concat", &[class, score, found], axis_attributes(1));
    importer.set_output(op, "Out", result)?;
    let index = importer.add_op("Mul", &[picture, count]);
    let index = importer.add_op("Add", &[index, place]);
    let index = importer.add_cast(index, Dtype::I32);
    importer.set_output(op, "Index", index)?;
    let owned = batch_membership(importer, picture, batch)?;
    let first = importer.add_ints(&[0]);
    let counts = importer.add_op_with(
        "ReduceSum",
        &[owned, first],
        build_attributes([("keepdims", int_attribute(0))]),
    );
    let counts = importer.add_cast(counts, Dtype::I32);
    importer.set_output(op, "NmsRoisNum", counts)
}

/// Drops all but the best candidates of each class; returns the scores and their number.
fn select_candidates<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &OpDesc,
    scores: PaddleOperand<'m>,
    count: ValueId,
    threshold: f64,
) -> Result<(ValueId, ValueId)> {
    let most = op.int_attribute("nms_top_k", -1);
    if most < 0 {
        return Ok((scores.id, count));
    }
    let limit = importer.add_ints(&[most]);
    let most = importer.add_op("Min", &[limit, count]);
    let best = importer.add_node("TopK", &[Some(scores.id), Some(most)], axis_attributes(-1), 2);
    let (last, end) = (importer.add_ints(&[-1]), importer.add_ints(&[i64::MAX]));
    let worst = importer.add_op("Slice", &[best[0], last, end, last]);
    let counts = importer.add_op("GreaterOrEqual", &[scores.id, worst]);
    let none = add_scalar_like(importer, scores, threshold - 1.0)?;
    Ok((importer.add_op("Where", &[counts, scores.id, none]), most))
}

/// One column of the selected indices (batch, class, box).
fn selected_column<'m>(
    importer: &mut PaddleImporter<'m>,
    chosen: ValueId,
    at: i64,
    is_kept: bool,
) -> ValueId {
    let (from, to, axes) = (importer.add_ints(&[at]), importer.add_ints(&[at + 1]), importer.add_ints(&[1]));
    let column = importer.add_op("Slice", &[chosen, from, to, axes]);
    if is_kept { column } else { importer.add_op("Squeeze", &[column, axes]) }
}

/// A matrix with ones where a row belongs to an image.
fn batch_membership<'m>(
    importer: &mut PaddleImporter<'m>,
    pictures: ValueId,
    batch: ValueId,
) -> Result<ValueId> {
    let none = importer.add_ints(&[]);
    let end = importer.add_op("Reshape", &[batch, none]);
    let (begin, step) = (importer.add_scalar(0.0, Dtype::I64)?, importer.add_scalar(1.0, Dtype::I64)?);
    let all = importer.add_op("Range", &[begin, end, step]);
    let is_owner = importer.add_op("Equal", &[pictures, all]);
    Ok(importer.add_cast(is_owner, Dtype::I64))
}

/// Keeps the best selected boxes of each image, in their order.
fn keep_best<'m>(
    importer: &mut PaddleImporter<'m>,
    chosen: ValueId,
    scores: PaddleOperand<'m>,
    batch: ValueId,
    most: i64,
) -> Result<ValueId> {
    let values = importer.add_op("GatherND", &[scores.id, chosen]);
    let count = importer.add_op("Shape", &[values]);
    let sorted = importer.add_node("TopK", &[Some(values), Some(count)], axis_attributes(0), 2);
    let picture = selected_column(importer, chosen, 0, true);
    let picture = importer.add_op_with("Gather", &[picture, sorted[1]], axis_attributes(0));
    let owned = batch_membership(importer, picture, batch)?;
    let first = importer.add_scalar(0.0, Dtype::I64)?;
    let so_far = importer.add_op("CumSum", &[owned, first]);
    let rank = importer.add_op("Mul", &[so_far, owned]);
    let last = importer.add_ints(&[1]);
    let rank =
        importer.add_op_with("ReduceSum", &[rank, last], build_attributes([("keepdims", int_attribute(0))]));
    let most = importer.add_scalar(most as f64, Dtype::I64)?;
    let stays = importer.add_op("LessOrEqual", &[rank, most]);
    let stays = importer.add_cast(stays, Dtype::I64);
    let back = importer.add_op_with("ScatterElements", &[rank, sorted[1], stays], axis_attributes(0));
    let back = importer.add_cast(back, Dtype::Bool);
    Ok(importer.add_op_with("Compress", &[chosen, back], axis_attributes(0)))
}

/// The indices of boxes that overlap no better one by more than a threshold. The boxes are in the order of their scores.
fn lower_suppression<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let boxes = importer.input(op, "Boxes")?;
    let count = super::slice_shape(importer, boxes, 0, 1);
    let none = importer.add_ints(&[]);
    let most = importer.add_op("Reshape", &[count, none]);
    let (zero, one) = (importer.add_scalar(0.0, Dtype::I64)?, importer.add_scalar(1.0, Dtype::I64)?);
    let places = importer.add_op("Range", &[zero, most, one]);
    let scores = importer.add_op("Sub", &[most, places]);
    let scores = importer.add_cast(scores, Dtype::F32);
    let (batch, class) = (importer.add_ints(&[0]), importer.add_ints(&[0, 1]));
    let scores = importer.add_op("Unsqueeze", &[scores, class]);
    let boxes = importer.add_op("Unsqueeze", &[boxes.id, batch]);
    let threshold = importer.add_scalar(op.float_attribute("iou_threshold", 1.0), Dtype::F32)?;
    let kept = importer.add_op("NonMaxSuppression", &[boxes, scores, most, threshold]);
    let (last, axis) =
        (importer.add_scalar(2.0, Dtype::I64)?, build_attributes([("axis", int_attribute(1))]));
    let result = importer.add_op_with("Gather", &[kept, last], axis);
    importer.set_output(op, "KeepBoxesIdxs", result)
}
