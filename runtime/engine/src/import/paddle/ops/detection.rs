//! Boxes around what is seen in a picture.

use oarlock_core::{Constant, Dtype, Error, Result};

use super::{TranslatorTable, add_scalar_like, encode_numbers, int_attribute, ints_attribute, slice_shape};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

/// The most boxes that are written down for a picture of a known size.
const MOST_PRIOR_BOXES: i64 = 1 << 20;

pub(super) const DETECTION_OPS: TranslatorTable = &[
    ("box_coder", lower_box_coder),
    ("multiclass_nms3", lower_multiclass_nms),
    ("prior_box", lower_prior_box),
    ("yolo_box", lower_yolo_box),
];

/// Numbers as a constant of a type.
fn add_float_constant<'m>(
    program: &mut PaddleImporter<'m>,
    values: &[f64],
    dims: &[i64],
    dtype: Dtype,
) -> Result<ValueId> {
    Ok(program.add_constant(Constant::new(dtype, dims, encode_numbers(values, dtype)?)?))
}

fn axis_attributes(axis: i64) -> oarlock_core::Attributes {
    build_attributes([("axis", int_attribute(axis))])
}

/// The places of a grid along one of its dimensions, as a tensor of 5 dimensions with all of them in that one.
fn grid_coordinates<'m>(
    program: &mut PaddleImporter<'m>,
    size: ValueId,
    at: usize,
    dtype: Dtype,
) -> Result<ValueId> {
    let none = program.add_ints(&[]);
    let end = program.add_op("Reshape", &[size, none]);
    let (begin, step) = (program.add_scalar(0.0, Dtype::I64)?, program.add_scalar(1.0, Dtype::I64)?);
    let places = program.add_op("Range", &[begin, end, step]);
    let places = program.add_cast(places, dtype);
    let mut shape = [1; 5];
    shape[at] = -1;
    let shape = program.add_ints(&shape);
    Ok(program.add_op("Reshape", &[places, shape]))
}

/// Boxes and scores of a grid: each place has a few boxes, each with four numbers, how sure it is, and one for each class.
fn lower_yolo_box<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, size) = (program.input(op, "X")?, program.input(op, "ImgSize")?.id);
    let (dtype, anchors, classes) =
        (x.dtype(), op.ints_attribute("anchors"), op.int_attribute("class_num", 0));
    let count = (anchors.len() / 2) as i64;
    if count == 0 || classes < 1 {
        return Err(invalid_model("anchors and classes", format!("{count} and {classes}")));
    }
    let edges = [2, 3].map(|at| slice_shape(program, x, at, at + 1));
    let (batch, is_aware) = (slice_shape(program, x, 0, 1), op.bool_attribute("iou_aware", false));
    let (mut boxes, mut overlap) = (x.id, None);
    if is_aware {
        let parts = program.add_ints(&[count, count.saturating_mul(5 + classes)]);
        let made = program.add_node("Split", &[Some(x.id), Some(parts)], axis_attributes(1), 2);
        let shape = program.add_ints(&[count, 1]);
        let shape = program.add_op_with("Concat", &[batch, shape, edges[0], edges[1]], axis_attributes(0));
        let parts = program.add_op("Reshape", &[made[0], shape]);
        overlap = Some(program.add_op("Sigmoid", &[parts]));
        boxes = made[1];
    }
    let inner = program.add_ints(&[count, 5 + classes]);
    let shape = program.add_op_with("Concat", &[batch, inner, edges[0], edges[1]], axis_attributes(0));
    let cut = program.add_op("Reshape", &[boxes, shape]);
    let parts = program.add_ints(&[1, 1, 1, 1, 1, classes]);
    let parts = program.add_node("Split", &[Some(cut), Some(parts)], axis_attributes(2), 6);
    let mut sure = program.add_op("Sigmoid", &[parts[4]]);
    if let Some(overlap) = overlap {
        let share = op.float_attribute("iou_aware_factor", 0.5);
        let rest = add_scalar_like(program, x, 1.0 - share)?;
        sure = program.add_op("Pow", &[sure, rest]);
        let share = add_scalar_like(program, x, share)?;
        let overlap = program.add_op("Pow", &[overlap, share]);
        sure = program.add_op("Mul", &[sure, overlap]);
    }
    let threshold = add_scalar_like(program, x, op.float_attribute("conf_thresh", 0.01))?;
    let counts = program.add_op("GreaterOrEqual", &[sure, threshold]);
    let zero = add_scalar_like(program, x, 0.0)?;
    let stretch = op.float_attribute("scale_x_y", 1.0);
    let (factor, shift) =
        (add_scalar_like(program, x, stretch)?, add_scalar_like(program, x, -0.5 * (stretch - 1.0))?);
    let half = add_scalar_like(program, x, 0.5)?;
    let ratio = program.add_ints(&[op.int_attribute("downsample_ratio", 32)]);
    let size = program.add_cast(size, dtype);
    let (mut low, mut high) = (Vec::new(), Vec::new());
    // Width first: the second of both sizes of a picture, and the last dimension of the grid.
    for (at, edge, anchor) in [(0, 1, 0), (1, 0, 1)] {
        let place = program.add_ints(&[edge]);
        let picture = program.add_op_with("Gather", &[size, place], axis_attributes(1));
        let shape = program.add_ints(&[-1, 1, 1, 1, 1]);
        let picture = program.add_op("Reshape", &[picture, shape]);
        let cells = program.add_cast(edges[edge as usize], dtype);
        let grid = grid_coordinates(program, edges[edge as usize], 3 + edge as usize, dtype)?;
        let inside = program.add_op("Sigmoid", &[parts[at]]);
        let inside = program.add_op("Mul", &[inside, factor]);
        let inside = program.add_op("Add", &[inside, shift]);
        let centre = program.add_op("Add", &[grid, inside]);
        let centre = program.add_op("Mul", &[centre, picture]);
        let centre = program.add_op("Div", &[centre, cells]);
        let lengths: Vec<f64> = anchors.iter().skip(anchor).step_by(2).map(|it| *it as f64).collect();
        let lengths = add_float_constant(program, &lengths[..count as usize], &[1, count, 1, 1, 1], dtype)?;
        let whole = program.add_op("Mul", &[edges[edge as usize], ratio]);
        let whole = program.add_cast(whole, dtype);
        let length = program.add_op("Exp", &[parts[at + 2]]);
        let length = program.add_op("Mul", &[length, lengths]);
        let length = program.add_op("Mul", &[length, picture]);
        let length = program.add_op("Div", &[length, whole]);
        let length = program.add_op("Mul", &[length, half]);
        let (mut from, mut to) =
            (program.add_op("Sub", &[centre, length]), program.add_op("Add", &[centre, length]));
        if op.bool_attribute("clip_bbox", true) {
            let one = add_scalar_like(program, x, 1.0)?;
            let end = program.add_op("Sub", &[picture, one]);
            (from, to) = (program.add_op("Max", &[from, zero]), program.add_op("Min", &[to, end]));
        }
        low.push(program.add_op("Where", &[counts, from, zero]));
        high.push(program.add_op("Where", &[counts, to, zero]));
    }
    let boxes = program.add_op_with("Concat", &[low, high].concat(), axis_attributes(2));
    let scores = program.add_op("Sigmoid", &[parts[5]]);
    let scores = program.add_op("Mul", &[scores, sure]);
    let scores = program.add_op("Where", &[counts, scores, zero]);
    for (name, made, inner) in [("Boxes", boxes, 4), ("Scores", scores, classes)] {
        let turned = program.add_op_with(
            "Transpose",
            &[made],
            build_attributes([("perm", ints_attribute(&[0, 1, 3, 4, 2]))]),
        );
        let shape = program.add_ints(&[-1, inner]);
        let shape = program.add_op_with("Concat", &[batch, shape], axis_attributes(0));
        let flat = program.add_op("Reshape", &[turned, shape]);
        program.set_output(op, name, flat)?;
    }
    Ok(())
}

/// Boxes around each place of a grid, which follow from sizes alone.
fn lower_prior_box<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (input, image) = (program.input(op, "Input")?, program.input(op, "Image")?);
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
    if all.is_none_or(|all| all > MOST_PRIOR_BOXES) {
        return Err(Error::unimplemented(format!("expected at most {MOST_PRIOR_BOXES} boxes, found more")));
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
    let boxes = add_float_constant(program, &values, &dims, dtype)?;
    let variances = op.floats_attribute("variances");
    if variances.len() != 4 {
        return Err(invalid_model("4 variances", variances.len()));
    }
    let variances = variances.repeat(values.len() / 4);
    let variances = add_float_constant(program, &variances, &dims, dtype)?;
    program.set_output(op, "Boxes", boxes)?;
    program.set_output(op, "Variances", variances)
}

/// The last dimension of a tensor as so many tensors.
fn split_columns<'m>(program: &mut PaddleImporter<'m>, from: ValueId, count: usize) -> Vec<ValueId> {
    let attributes =
        build_attributes([("axis", int_attribute(-1)), ("num_outputs", int_attribute(count as i64))]);
    program.add_node("Split", &[Some(from)], attributes, count)
}

/// Boxes that are written as distances from others.
fn lower_box_coder<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect_attribute("code_type", &["decode_center_size"])?;
    if op.text_attribute("code_type").is_empty() {
        return Err(Error::unimplemented("expected `code_type` to be decode_center_size, found none"));
    }
    let (prior, target) = (program.input(op, "PriorBox")?, program.input(op, "TargetBox")?);
    let raise = |program: &mut PaddleImporter<'m>, from| {
        let at = program.add_ints(&[op.int_attribute("axis", 0)]);
        if target.dims.is_some_and(|dims| dims.len() == 3) {
            program.add_op("Unsqueeze", &[from, at])
        } else {
            from
        }
    };
    let given = op.floats_attribute("variance");
    let variance = match program.optional_input(op, "PriorBoxVar")? {
        Some(variance) => raise(program, variance.id),
        None if given.len() == 4 => add_float_constant(program, &given, &[4], prior.dtype())?,
        None => add_float_constant(program, &[1.0; 4], &[4], prior.dtype())?,
    };
    let prior_boxes = raise(program, prior.id);
    let (prior_boxes, target) =
        (split_columns(program, prior_boxes, 4), program.add_op("Mul", &[target.id, variance]));
    let target = split_columns(program, target, 4);
    let more =
        add_scalar_like(program, prior, if op.bool_attribute("box_normalized", true) { 0.0 } else { 1.0 })?;
    let half = add_scalar_like(program, prior, 0.5)?;
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for at in [0, 1] {
        let length = program.add_op("Sub", &[prior_boxes[at + 2], prior_boxes[at]]);
        let length = program.add_op("Add", &[length, more]);
        let middle = program.add_op("Mul", &[length, half]);
        let middle = program.add_op("Add", &[prior_boxes[at], middle]);
        let way = program.add_op("Mul", &[target[at], length]);
        let centre = program.add_op("Add", &[way, middle]);
        let factor = program.add_op("Exp", &[target[at + 2]]);
        let length = program.add_op("Mul", &[factor, length]);
        let length = program.add_op("Mul", &[length, half]);
        low.push(program.add_op("Sub", &[centre, length]));
        let end = program.add_op("Add", &[centre, length]);
        high.push(program.add_op("Sub", &[end, more]));
    }
    let made = program.add_op_with("Concat", &[low, high].concat(), axis_attributes(-1));
    program.set_output(op, "OutputBox", made)
}

/// The best boxes of each class that do not overlap, and of them the best of each picture.
fn lower_multiclass_nms<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (boxes, scores) = (program.input(op, "BBoxes")?, program.input(op, "Scores")?);
    if boxes.rank()? != 3 || scores.rank()? != 3 || program.optional_input(op, "RoisNum")?.is_some() {
        return Err(Error::unimplemented("expected boxes of whole pictures, found boxes of their parts"));
    }
    if op.float_attribute("nms_eta", 1.0) != 1.0 {
        return Err(Error::unimplemented("expected one threshold for all boxes, found one that changes"));
    }
    let count = slice_shape(program, boxes, 1, 2);
    let threshold = op.float_attribute("score_threshold", 0.0);
    let (candidates, most) = select_candidates(program, op, scores, count, threshold)?;
    let mut areas = boxes.id;
    if !op.bool_attribute("normalized", true) {
        // The last place of a box is a part of it.
        let more = add_float_constant(program, &[0.0, 0.0, 1.0, 1.0], &[4], boxes.dtype())?;
        areas = program.add_op("Add", &[areas, more]);
    }
    let overlap = program.add_scalar(op.float_attribute("nms_threshold", 0.3), Dtype::F32)?;
    let least = program.add_scalar(threshold, Dtype::F32)?;
    let mut chosen = program.add_op("NonMaxSuppression", &[areas, candidates, most, overlap, least]);
    let background = op.int_attribute("background_label", -1);
    if background >= 0 {
        let class = selected_column(program, chosen, 1, false);
        let background = program.add_scalar(background as f64, Dtype::I64)?;
        let is_background = program.add_op("Equal", &[class, background]);
        let counts = program.add_op("Not", &[is_background]);
        chosen = program.add_op_with("Compress", &[chosen, counts], axis_attributes(0));
    }
    let batch = slice_shape(program, boxes, 0, 1);
    if op.int_attribute("keep_top_k", -1) >= 0 {
        chosen = keep_best(program, chosen, scores, batch, op.int_attribute("keep_top_k", -1))?;
    }
    let picture = selected_column(program, chosen, 0, true);
    let (class, place) =
        (selected_column(program, chosen, 1, true), selected_column(program, chosen, 2, true));
    let last = program.add_ints(&[-1]);
    let score = program.add_op("GatherND", &[scores.id, chosen]);
    let score = program.add_op("Unsqueeze", &[score, last]);
    let at = program.add_op_with("Concat", &[picture, place], axis_attributes(1));
    let found = program.add_op("GatherND", &[boxes.id, at]);
    let class = program.add_cast(class, boxes.dtype());
    let made = program.add_op_with("Concat", &[class, score, found], axis_attributes(1));
    program.set_output(op, "Out", made)?;
    let index = program.add_op("Mul", &[picture, count]);
    let index = program.add_op("Add", &[index, place]);
    let index = program.add_cast(index, Dtype::I32);
    program.set_output(op, "Index", index)?;
    let owned = batch_membership(program, picture, batch)?;
    let first = program.add_ints(&[0]);
    let counts =
        program.add_op_with("ReduceSum", &[owned, first], build_attributes([("keepdims", int_attribute(0))]));
    let counts = program.add_cast(counts, Dtype::I32);
    program.set_output(op, "NmsRoisNum", counts)
}

/// The scores with only the best of each class, and how many that are.
fn select_candidates<'m>(
    program: &mut PaddleImporter<'m>,
    op: &OpDesc,
    scores: PaddleOperand<'m>,
    count: ValueId,
    threshold: f64,
) -> Result<(ValueId, ValueId)> {
    let most = op.int_attribute("nms_top_k", -1);
    if most < 0 {
        return Ok((scores.id, count));
    }
    let limit = program.add_ints(&[most]);
    let most = program.add_op("Min", &[limit, count]);
    let best = program.add_node("TopK", &[Some(scores.id), Some(most)], axis_attributes(-1), 2);
    let (last, end) = (program.add_ints(&[-1]), program.add_ints(&[i64::MAX]));
    let worst = program.add_op("Slice", &[best[0], last, end, last]);
    let counts = program.add_op("GreaterOrEqual", &[scores.id, worst]);
    let none = add_scalar_like(program, scores, threshold - 1.0)?;
    Ok((program.add_op("Where", &[counts, scores.id, none]), most))
}

/// One of the three numbers that each chosen box is named by.
fn selected_column<'m>(program: &mut PaddleImporter<'m>, chosen: ValueId, at: i64, is_kept: bool) -> ValueId {
    let (from, to, axes) = (program.add_ints(&[at]), program.add_ints(&[at + 1]), program.add_ints(&[1]));
    let column = program.add_op("Slice", &[chosen, from, to, axes]);
    if is_kept { column } else { program.add_op("Squeeze", &[column, axes]) }
}

/// A one where a row belongs to a picture.
fn batch_membership<'m>(
    program: &mut PaddleImporter<'m>,
    pictures: ValueId,
    batch: ValueId,
) -> Result<ValueId> {
    let none = program.add_ints(&[]);
    let end = program.add_op("Reshape", &[batch, none]);
    let (begin, step) = (program.add_scalar(0.0, Dtype::I64)?, program.add_scalar(1.0, Dtype::I64)?);
    let all = program.add_op("Range", &[begin, end, step]);
    let is_owner = program.add_op("Equal", &[pictures, all]);
    Ok(program.add_cast(is_owner, Dtype::I64))
}

/// Of the chosen boxes the best of each picture, in the order that they have.
fn keep_best<'m>(
    program: &mut PaddleImporter<'m>,
    chosen: ValueId,
    scores: PaddleOperand<'m>,
    batch: ValueId,
    most: i64,
) -> Result<ValueId> {
    let values = program.add_op("GatherND", &[scores.id, chosen]);
    let count = program.add_op("Shape", &[values]);
    let sorted = program.add_node("TopK", &[Some(values), Some(count)], axis_attributes(0), 2);
    let picture = selected_column(program, chosen, 0, true);
    let picture = program.add_op_with("Gather", &[picture, sorted[1]], axis_attributes(0));
    let owned = batch_membership(program, picture, batch)?;
    let first = program.add_scalar(0.0, Dtype::I64)?;
    let so_far = program.add_op("CumSum", &[owned, first]);
    let rank = program.add_op("Mul", &[so_far, owned]);
    let last = program.add_ints(&[1]);
    let rank =
        program.add_op_with("ReduceSum", &[rank, last], build_attributes([("keepdims", int_attribute(0))]));
    let most = program.add_scalar(most as f64, Dtype::I64)?;
    let stays = program.add_op("LessOrEqual", &[rank, most]);
    let stays = program.add_cast(stays, Dtype::I64);
    let back = program.add_op_with("ScatterElements", &[rank, sorted[1], stays], axis_attributes(0));
    let back = program.add_cast(back, Dtype::Bool);
    Ok(program.add_op_with("Compress", &[chosen, back], axis_attributes(0)))
}
