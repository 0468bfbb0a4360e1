//! Boxes around what is seen in a picture.

use oarlock_core::{Constant, Dtype, Error, Result};

use super::{Table, bytes_of, int, ints, like, sizes};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::Operand;
use crate::import::paddle::program::{Program, with};
use crate::import::place::wrong;

/// The most boxes that are written down for a picture of a known size.
const MOST_BOXES: i64 = 1 << 20;

pub(super) const OPS: Table =
    &[("box_coder", decode), ("multiclass_nms3", suppress), ("prior_box", prior), ("yolo_box", yolo)];

/// Numbers as a constant of a type.
fn numbers<'m>(program: &mut Program<'m>, values: &[f64], dims: &[i64], dtype: Dtype) -> Result<ValueId> {
    Ok(program.constant(Constant::new(dtype, dims, bytes_of(values, dtype)?)?))
}

fn axis(axis: i64) -> oarlock_core::Attributes {
    with([("axis", int(axis))])
}

/// The places of a grid along one of its dimensions, as a tensor of 5 dimensions with all of them in that one.
fn grid<'m>(program: &mut Program<'m>, size: ValueId, at: usize, dtype: Dtype) -> Result<ValueId> {
    let none = program.ints(&[]);
    let end = program.apply("Reshape", &[size, none]);
    let (begin, step) = (program.number(0.0, Dtype::I64)?, program.number(1.0, Dtype::I64)?);
    let places = program.apply("Range", &[begin, end, step]);
    let places = program.cast(places, dtype);
    let mut shape = [1; 5];
    shape[at] = -1;
    let shape = program.ints(&shape);
    Ok(program.apply("Reshape", &[places, shape]))
}

/// Boxes and scores of a grid: each place has a few boxes, each with four numbers, how sure it is, and one for each class.
fn yolo<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, size) = (program.input(op, "X")?, program.input(op, "ImgSize")?.id);
    let (dtype, anchors, classes) = (x.dtype(), op.ints("anchors"), op.int("class_num", 0));
    let count = (anchors.len() / 2) as i64;
    if count == 0 || classes < 1 {
        return Err(wrong("anchors and classes", format!("{count} and {classes}")));
    }
    let edges = [2, 3].map(|at| sizes(program, x, at, at + 1));
    let (batch, is_aware) = (sizes(program, x, 0, 1), op.flag("iou_aware", false));
    let (mut boxes, mut overlap) = (x.id, None);
    if is_aware {
        let parts = program.ints(&[count, count.saturating_mul(5 + classes)]);
        let made = program.nodes("Split", &[Some(x.id), Some(parts)], axis(1), 2);
        let shape = program.ints(&[count, 1]);
        let shape = program.node("Concat", &[batch, shape, edges[0], edges[1]], axis(0));
        let parts = program.apply("Reshape", &[made[0], shape]);
        overlap = Some(program.apply("Sigmoid", &[parts]));
        boxes = made[1];
    }
    let inner = program.ints(&[count, 5 + classes]);
    let shape = program.node("Concat", &[batch, inner, edges[0], edges[1]], axis(0));
    let cut = program.apply("Reshape", &[boxes, shape]);
    let parts = program.ints(&[1, 1, 1, 1, 1, classes]);
    let parts = program.nodes("Split", &[Some(cut), Some(parts)], axis(2), 6);
    let mut sure = program.apply("Sigmoid", &[parts[4]]);
    if let Some(overlap) = overlap {
        let share = op.float("iou_aware_factor", 0.5);
        let rest = like(program, x, 1.0 - share)?;
        sure = program.apply("Pow", &[sure, rest]);
        let share = like(program, x, share)?;
        let overlap = program.apply("Pow", &[overlap, share]);
        sure = program.apply("Mul", &[sure, overlap]);
    }
    let threshold = like(program, x, op.float("conf_thresh", 0.01))?;
    let counts = program.apply("GreaterOrEqual", &[sure, threshold]);
    let zero = like(program, x, 0.0)?;
    let stretch = op.float("scale_x_y", 1.0);
    let (factor, shift) = (like(program, x, stretch)?, like(program, x, -0.5 * (stretch - 1.0))?);
    let half = like(program, x, 0.5)?;
    let ratio = program.ints(&[op.int("downsample_ratio", 32)]);
    let size = program.cast(size, dtype);
    let (mut low, mut high) = (Vec::new(), Vec::new());
    // Width first: the second of both sizes of a picture, and the last dimension of the grid.
    for (at, edge, anchor) in [(0, 1, 0), (1, 0, 1)] {
        let place = program.ints(&[edge]);
        let picture = program.node("Gather", &[size, place], axis(1));
        let shape = program.ints(&[-1, 1, 1, 1, 1]);
        let picture = program.apply("Reshape", &[picture, shape]);
        let cells = program.cast(edges[edge as usize], dtype);
        let grid = grid(program, edges[edge as usize], 3 + edge as usize, dtype)?;
        let inside = program.apply("Sigmoid", &[parts[at]]);
        let inside = program.apply("Mul", &[inside, factor]);
        let inside = program.apply("Add", &[inside, shift]);
        let centre = program.apply("Add", &[grid, inside]);
        let centre = program.apply("Mul", &[centre, picture]);
        let centre = program.apply("Div", &[centre, cells]);
        let lengths: Vec<f64> = anchors.iter().skip(anchor).step_by(2).map(|it| *it as f64).collect();
        let lengths = numbers(program, &lengths[..count as usize], &[1, count, 1, 1, 1], dtype)?;
        let whole = program.apply("Mul", &[edges[edge as usize], ratio]);
        let whole = program.cast(whole, dtype);
        let length = program.apply("Exp", &[parts[at + 2]]);
        let length = program.apply("Mul", &[length, lengths]);
        let length = program.apply("Mul", &[length, picture]);
        let length = program.apply("Div", &[length, whole]);
        let length = program.apply("Mul", &[length, half]);
        let (mut from, mut to) =
            (program.apply("Sub", &[centre, length]), program.apply("Add", &[centre, length]));
        if op.flag("clip_bbox", true) {
            let one = like(program, x, 1.0)?;
            let end = program.apply("Sub", &[picture, one]);
            (from, to) = (program.apply("Max", &[from, zero]), program.apply("Min", &[to, end]));
        }
        low.push(program.apply("Where", &[counts, from, zero]));
        high.push(program.apply("Where", &[counts, to, zero]));
    }
    let boxes = program.node("Concat", &[low, high].concat(), axis(2));
    let scores = program.apply("Sigmoid", &[parts[5]]);
    let scores = program.apply("Mul", &[scores, sure]);
    let scores = program.apply("Where", &[counts, scores, zero]);
    for (name, made, inner) in [("Boxes", boxes, 4), ("Scores", scores, classes)] {
        let turned = program.node("Transpose", &[made], with([("perm", ints(&[0, 1, 3, 4, 2]))]));
        let shape = program.ints(&[-1, inner]);
        let shape = program.node("Concat", &[batch, shape], axis(0));
        let flat = program.apply("Reshape", &[turned, shape]);
        program.give(op, name, flat)?;
    }
    Ok(())
}

/// Boxes around each place of a grid, which follow from sizes alone.
fn prior<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (input, image) = (program.input(op, "Input")?, program.input(op, "Image")?);
    let [height, width] = [input.known_size(2)?, input.known_size(3)?];
    let [image_height, image_width] = [image.known_size(2)? as f64, image.known_size(3)? as f64];
    let mut ratios = vec![1.0];
    for ratio in op.floats("aspect_ratios") {
        if ratios.iter().any(|known: &f64| (known - ratio).abs() < 1e-6) {
            continue;
        }
        ratios.push(ratio);
        if op.flag("flip", false) {
            ratios.push(1.0 / ratio);
        }
    }
    let (least, most) = (op.floats("min_sizes"), op.floats("max_sizes"));
    let mut shapes = Vec::new();
    for (at, size) in least.iter().enumerate() {
        let of_ratio = |ratio: &f64| (size * ratio.sqrt(), size / ratio.sqrt());
        let between = most.get(at).map(|most| ((size * most).sqrt(), (size * most).sqrt()));
        if op.flag("min_max_aspect_ratios_order", false) {
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
    if all.is_none_or(|all| all > MOST_BOXES) {
        return Err(Error::unimplemented(format!("expected at most {MOST_BOXES} boxes, found more")));
    }
    let step = |name: &str, image: f64, cells: i64| match op.float(name, 0.0) {
        0.0 => image / cells as f64,
        step => step,
    };
    let (across, down) = (step("step_w", image_width, width), step("step_h", image_height, height));
    let offset = op.float("offset", 0.5);
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
    if op.flag("clip", false) {
        values.iter_mut().for_each(|value| *value = value.clamp(0.0, 1.0));
    }
    let (dims, dtype) = ([height, width, count, 4], input.dtype());
    let boxes = numbers(program, &values, &dims, dtype)?;
    let variances = op.floats("variances");
    if variances.len() != 4 {
        return Err(wrong("4 variances", variances.len()));
    }
    let variances = variances.repeat(values.len() / 4);
    let variances = numbers(program, &variances, &dims, dtype)?;
    program.give(op, "Boxes", boxes)?;
    program.give(op, "Variances", variances)
}

/// The last dimension of a tensor as so many tensors.
fn columns<'m>(program: &mut Program<'m>, from: ValueId, count: usize) -> Vec<ValueId> {
    let attributes = with([("axis", int(-1)), ("num_outputs", int(count as i64))]);
    program.nodes("Split", &[Some(from)], attributes, count)
}

/// Boxes that are written as distances from others.
fn decode<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect("code_type", &["decode_center_size"])?;
    if op.text("code_type").is_empty() {
        return Err(Error::unimplemented("expected `code_type` to be decode_center_size, found none"));
    }
    let (prior, target) = (program.input(op, "PriorBox")?, program.input(op, "TargetBox")?);
    let raise = |program: &mut Program<'m>, from| {
        let at = program.ints(&[op.int("axis", 0)]);
        if target.dims.is_some_and(|dims| dims.len() == 3) {
            program.apply("Unsqueeze", &[from, at])
        } else {
            from
        }
    };
    let given = op.floats("variance");
    let variance = match program.maybe(op, "PriorBoxVar")? {
        Some(variance) => raise(program, variance.id),
        None if given.len() == 4 => numbers(program, &given, &[4], prior.dtype())?,
        None => numbers(program, &[1.0; 4], &[4], prior.dtype())?,
    };
    let prior_boxes = raise(program, prior.id);
    let (prior_boxes, target) =
        (columns(program, prior_boxes, 4), program.apply("Mul", &[target.id, variance]));
    let target = columns(program, target, 4);
    let more = like(program, prior, if op.flag("box_normalized", true) { 0.0 } else { 1.0 })?;
    let half = like(program, prior, 0.5)?;
    let (mut low, mut high) = (Vec::new(), Vec::new());
    for at in [0, 1] {
        let length = program.apply("Sub", &[prior_boxes[at + 2], prior_boxes[at]]);
        let length = program.apply("Add", &[length, more]);
        let middle = program.apply("Mul", &[length, half]);
        let middle = program.apply("Add", &[prior_boxes[at], middle]);
        let way = program.apply("Mul", &[target[at], length]);
        let centre = program.apply("Add", &[way, middle]);
        let factor = program.apply("Exp", &[target[at + 2]]);
        let length = program.apply("Mul", &[factor, length]);
        let length = program.apply("Mul", &[length, half]);
        low.push(program.apply("Sub", &[centre, length]));
        let end = program.apply("Add", &[centre, length]);
        high.push(program.apply("Sub", &[end, more]));
    }
    let made = program.node("Concat", &[low, high].concat(), axis(-1));
    program.give(op, "OutputBox", made)
}

/// The best boxes of each class that do not overlap, and of them the best of each picture.
fn suppress<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (boxes, scores) = (program.input(op, "BBoxes")?, program.input(op, "Scores")?);
    if boxes.rank()? != 3 || scores.rank()? != 3 || program.maybe(op, "RoisNum")?.is_some() {
        return Err(Error::unimplemented("expected boxes of whole pictures, found boxes of their parts"));
    }
    if op.float("nms_eta", 1.0) != 1.0 {
        return Err(Error::unimplemented("expected one threshold for all boxes, found one that changes"));
    }
    let count = sizes(program, boxes, 1, 2);
    let threshold = op.float("score_threshold", 0.0);
    let (candidates, most) = candidates(program, op, scores, count, threshold)?;
    let mut areas = boxes.id;
    if !op.flag("normalized", true) {
        // The last place of a box is a part of it.
        let more = numbers(program, &[0.0, 0.0, 1.0, 1.0], &[4], boxes.dtype())?;
        areas = program.apply("Add", &[areas, more]);
    }
    let overlap = program.number(op.float("nms_threshold", 0.3), Dtype::F32)?;
    let least = program.number(threshold, Dtype::F32)?;
    let mut chosen = program.apply("NonMaxSuppression", &[areas, candidates, most, overlap, least]);
    let background = op.int("background_label", -1);
    if background >= 0 {
        let class = column(program, chosen, 1, false);
        let background = program.number(background as f64, Dtype::I64)?;
        let is_background = program.apply("Equal", &[class, background]);
        let counts = program.apply("Not", &[is_background]);
        chosen = program.node("Compress", &[chosen, counts], axis(0));
    }
    let batch = sizes(program, boxes, 0, 1);
    if op.int("keep_top_k", -1) >= 0 {
        chosen = kept(program, chosen, scores, batch, op.int("keep_top_k", -1))?;
    }
    let picture = column(program, chosen, 0, true);
    let (class, place) = (column(program, chosen, 1, true), column(program, chosen, 2, true));
    let last = program.ints(&[-1]);
    let score = program.apply("GatherND", &[scores.id, chosen]);
    let score = program.apply("Unsqueeze", &[score, last]);
    let at = program.node("Concat", &[picture, place], axis(1));
    let found = program.apply("GatherND", &[boxes.id, at]);
    let class = program.cast(class, boxes.dtype());
    let made = program.node("Concat", &[class, score, found], axis(1));
    program.give(op, "Out", made)?;
    let index = program.apply("Mul", &[picture, count]);
    let index = program.apply("Add", &[index, place]);
    let index = program.cast(index, Dtype::I32);
    program.give(op, "Index", index)?;
    let owned = owned(program, picture, batch)?;
    let first = program.ints(&[0]);
    let counts = program.node("ReduceSum", &[owned, first], with([("keepdims", int(0))]));
    let counts = program.cast(counts, Dtype::I32);
    program.give(op, "NmsRoisNum", counts)
}

/// The scores with only the best of each class, and how many that are.
fn candidates<'m>(
    program: &mut Program<'m>,
    op: &OpDesc,
    scores: Operand<'m>,
    count: ValueId,
    threshold: f64,
) -> Result<(ValueId, ValueId)> {
    let most = op.int("nms_top_k", -1);
    if most < 0 {
        return Ok((scores.id, count));
    }
    let limit = program.ints(&[most]);
    let most = program.apply("Min", &[limit, count]);
    let best = program.nodes("TopK", &[Some(scores.id), Some(most)], axis(-1), 2);
    let (last, end) = (program.ints(&[-1]), program.ints(&[i64::MAX]));
    let worst = program.apply("Slice", &[best[0], last, end, last]);
    let counts = program.apply("GreaterOrEqual", &[scores.id, worst]);
    let none = like(program, scores, threshold - 1.0)?;
    Ok((program.apply("Where", &[counts, scores.id, none]), most))
}

/// One of the three numbers that each chosen box is named by.
fn column<'m>(program: &mut Program<'m>, chosen: ValueId, at: i64, is_kept: bool) -> ValueId {
    let (from, to, axes) = (program.ints(&[at]), program.ints(&[at + 1]), program.ints(&[1]));
    let column = program.apply("Slice", &[chosen, from, to, axes]);
    if is_kept { column } else { program.apply("Squeeze", &[column, axes]) }
}

/// A one where a row belongs to a picture.
fn owned<'m>(program: &mut Program<'m>, pictures: ValueId, batch: ValueId) -> Result<ValueId> {
    let none = program.ints(&[]);
    let end = program.apply("Reshape", &[batch, none]);
    let (begin, step) = (program.number(0.0, Dtype::I64)?, program.number(1.0, Dtype::I64)?);
    let all = program.apply("Range", &[begin, end, step]);
    let is_owner = program.apply("Equal", &[pictures, all]);
    Ok(program.cast(is_owner, Dtype::I64))
}

/// Of the chosen boxes the best of each picture, in the order that they have.
fn kept<'m>(
    program: &mut Program<'m>,
    chosen: ValueId,
    scores: Operand<'m>,
    batch: ValueId,
    most: i64,
) -> Result<ValueId> {
    let values = program.apply("GatherND", &[scores.id, chosen]);
    let count = program.apply("Shape", &[values]);
    let sorted = program.nodes("TopK", &[Some(values), Some(count)], axis(0), 2);
    let picture = column(program, chosen, 0, true);
    let picture = program.node("Gather", &[picture, sorted[1]], axis(0));
    let owned = owned(program, picture, batch)?;
    let first = program.number(0.0, Dtype::I64)?;
    let so_far = program.apply("CumSum", &[owned, first]);
    let rank = program.apply("Mul", &[so_far, owned]);
    let last = program.ints(&[1]);
    let rank = program.node("ReduceSum", &[rank, last], with([("keepdims", int(0))]));
    let most = program.number(most as f64, Dtype::I64)?;
    let stays = program.apply("LessOrEqual", &[rank, most]);
    let stays = program.cast(stays, Dtype::I64);
    let back = program.node("ScatterElements", &[rank, sorted[1], stays], axis(0));
    let back = program.cast(back, Dtype::Bool);
    Ok(program.node("Compress", &[chosen, back], axis(0)))
}
