//! Ops that change shapes, or repeat and combine tensors, without changing elements.

use oarlock_core::{Attributes, Dtype, Result};

use super::{
    TranslatorTable, int_attribute, ints_attribute, known_int, known_list, list_operand, lower_unary,
};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const RESHAPING_OPS: TranslatorTable = &[
    ("broadcast_tensors", lower_broadcast_all),
    ("concat", lower_concat),
    ("expand", |importer, op| lower_tile(importer, op, "expand_times", "ExpandTimes", "expand_times_tensor")),
    ("expand_as_v2", lower_expand_as),
    ("expand_v2", lower_expand),
    ("flatten2", |importer, op| {
        lower_unary(
            importer,
            op,
            "Flatten",
            build_attributes([("axis", int_attribute(op.int_attribute("axis", 1)))]),
        )
    }),
    ("flatten_contiguous_range", lower_flatten),
    ("meshgrid", lower_meshgrid),
    ("reshape", lower_reshape),
    ("reshape2", lower_reshape),
    ("split", lower_split),
    ("squeeze", |importer, op| lower_squeeze(importer, op, "Squeeze")),
    ("squeeze2", |importer, op| lower_squeeze(importer, op, "Squeeze")),
    ("stack", lower_stack),
    ("tile", |importer, op| lower_tile(importer, op, "repeat_times", "RepeatTimes", "repeat_times_tensor")),
    ("transpose", |importer, op| {
        lower_unary(
            importer,
            op,
            "Transpose",
            build_attributes([("perm", ints_attribute(&op.ints_attribute("axis")))]),
        )
    }),
    ("transpose2", |importer, op| {
        lower_unary(
            importer,
            op,
            "Transpose",
            build_attributes([("perm", ints_attribute(&op.ints_attribute("axis")))]),
        )
    }),
    ("unbind", |importer, op| lower_unstack(importer, op, "Out")),
    ("unsqueeze", |importer, op| lower_squeeze(importer, op, "Unsqueeze")),
    ("unsqueeze2", |importer, op| lower_squeeze(importer, op, "Unsqueeze")),
    ("unstack", |importer, op| lower_unstack(importer, op, "Y")),
];

fn lower_reshape<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let shape = list_operand(importer, op, "shape", "Shape", "ShapeTensor")?;
    let made = importer.add_op_with("Reshape", &[x, shape], Attributes::new());
    importer.set_output(op, "Out", made)
}

/// Merges consecutive dimensions.
fn lower_flatten<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let rank = x.rank()?;
    let from_begin = |axis: i64| if axis < 0 { axis.saturating_add(rank) } else { axis };
    let (start, stop) =
        (from_begin(op.int_attribute("start_axis", 1)), from_begin(op.int_attribute("stop_axis", -1)));
    if start < 0 || stop < start || stop >= rank.max(1) {
        return Err(invalid_model(format!("two of {rank} axes"), format!("{start} and {stop}")));
    }
    let dims = x.dims.unwrap_or_default();
    let behind = dims.get(stop as usize + 1..).unwrap_or_default();
    // 0 keeps the size of the input.
    let shape: Vec<i64> = (0..start).map(|_| 0).chain([-1]).chain(behind.iter().copied()).collect();
    let shape = if behind.iter().all(|size| *size >= 0) {
        importer.add_ints(&shape)
    } else {
        let before = importer.add_ints(&shape[..start as usize + 1]);
        let behind = super::slice_shape(importer, x, stop + 1, rank);
        importer.add_op_with("Concat", &[before, behind], build_attributes([("axis", int_attribute(0))]))
    };
    let made = importer.add_op("Reshape", &[x.id, shape]);
    importer.set_output(op, "Out", made)
}

fn lower_squeeze<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = importer.input(op, "X")?;
    let known = known_list(importer, op, "axes", "AxesTensor", "AxesTensorList")?;
    // Paddle ignores axes whose size is not 1.
    let can_be_dropped =
        |axis: &i64| name != "Squeeze" || x.dimension_size(*axis).is_none_or(|size| size == 1);
    let made = match known {
        Some(axes) if axes.is_empty() => importer.add_op(name, &[x.id]),
        Some(axes) => {
            let axes: Vec<i64> = axes.into_iter().filter(can_be_dropped).collect();
            let axes = importer.add_ints(&axes);
            importer.add_op(name, &[x.id, axes])
        }
        None => {
            let axes = list_operand(importer, op, "axes", "AxesTensor", "AxesTensorList")?;
            importer.add_op(name, &[x.id, axes])
        }
    };
    super::set_scalar_output(importer, op, "Out", made)
}

fn lower_concat<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let operands: Vec<ValueId> = importer.inputs(op, "X")?.iter().map(|operand| operand.id).collect();
    let axis = known_int(importer, op, "axis", "AxisTensor", 0)?;
    let made = importer.add_op_with("Concat", &operands, build_attributes([("axis", int_attribute(axis))]));
    importer.set_output(op, "Out", made)
}

fn lower_split<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let axis = known_int(importer, op, "axis", "AxisTensor", 0)?;
    let count = OpDesc::operand_names(&op.outputs, "Out").len();
    let known = known_list(importer, op, "sections", "SectionsTensor", "SectionsTensorList")?;
    let made = match known {
        Some(sizes) if sizes.is_empty() => {
            let attributes = build_attributes([
                ("axis", int_attribute(axis)),
                ("num_outputs", int_attribute(count as i64)),
            ]);
            importer.add_node("Split", &[Some(x.id)], attributes, count)
        }
        Some(mut sizes) => {
            if let Some(open) = sizes.iter().position(|size| *size == -1) {
                let others =
                    sizes.iter().filter(|size| **size > 0).fold(0i64, |sum, size| sum.saturating_add(*size));
                sizes[open] = x.known_dimension_size(axis)?.saturating_sub(others);
            }
            let sizes = importer.add_ints(&sizes);
            importer.add_node(
                "Split",
                &[Some(x.id), Some(sizes)],
                build_attributes([("axis", int_attribute(axis))]),
                count,
            )
        }
        None => {
            let sizes = list_operand(importer, op, "sections", "SectionsTensor", "SectionsTensorList")?;
            importer.add_node(
                "Split",
                &[Some(x.id), Some(sizes)],
                build_attributes([("axis", int_attribute(axis))]),
                count,
            )
        }
    };
    importer.set_outputs(op, "Out", &made)
}

fn lower_stack<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (operands, axis) = (importer.inputs(op, "X")?, op.int_attribute("axis", 0));
    let axes = importer.add_ints(&[axis]);
    let raise = |operand: &PaddleOperand<'m>| {
        importer.add_op_with("Unsqueeze", &[operand.id, axes], Attributes::new())
    };
    let raised: Vec<ValueId> = operands.iter().map(raise).collect();
    let made = importer.add_op_with("Concat", &raised, build_attributes([("axis", int_attribute(axis))]));
    importer.set_output(op, "Y", made)
}

/// Broadcasts to a shape, in which -1 keeps a size; ONNX writes 1 for that.
fn lower_expand<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let shape = match known_list(importer, op, "shape", "Shape", "expand_shapes_tensor")? {
        Some(shape) => {
            let shape: Vec<i64> = shape.iter().map(|size| if *size == -1 { 1 } else { *size }).collect();
            importer.add_ints(&shape)
        }
        None => {
            let shape = list_operand(importer, op, "shape", "Shape", "expand_shapes_tensor")?;
            let one = importer.add_scalar(1.0, Dtype::I64)?;
            importer.add_op("Max", &[shape, one])
        }
    };
    let made = importer.add_op("Expand", &[x, shape]);
    importer.set_output(op, "Out", made)
}

/// Tiles; missing leading repeats are 1.
fn lower_tile<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    name: &str,
    whole: &str,
    parts: &str,
) -> Result<()> {
    let x = importer.input(op, "X")?;
    let (times, rank) = match known_list(importer, op, name, whole, parts)? {
        Some(mut times) => {
            let missing = usize::try_from(x.rank()?).unwrap_or_default().saturating_sub(times.len());
            times.splice(0..0, std::iter::repeat_n(1, missing));
            (importer.add_ints(&times), times.len() as i64)
        }
        None => (list_operand(importer, op, name, whole, parts)?, x.rank()?),
    };
    let missing = rank - x.rank()?;
    let mut from = x.id;
    if missing > 0 {
        let axes = importer.add_ints(&(0..missing).collect::<Vec<i64>>());
        from = importer.add_op("Unsqueeze", &[from, axes]);
    }
    let made = importer.add_op("Tile", &[from, times]);
    importer.set_output(op, "Out", made)
}

fn lower_expand_as<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let shape = match importer.optional_input(op, "Y")? {
        Some(like) => importer.add_op_with("Shape", &[like.id], Attributes::new()),
        None => importer.add_ints(&op.ints_attribute("target_shape")),
    };
    let made = importer.add_op_with("Expand", &[x, shape], Attributes::new());
    importer.set_output(op, "Out", made)
}

/// Splits an axis into slices without that axis.
fn lower_unstack<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let (x, axis) = (importer.input(op, "X")?.id, op.int_attribute("axis", 0));
    let count = OpDesc::operand_names(&op.outputs, name).len();
    let attributes =
        build_attributes([("axis", int_attribute(axis)), ("num_outputs", int_attribute(count as i64))]);
    let parts = importer.add_node("Split", &[Some(x)], attributes, count);
    let axes = importer.add_ints(&[axis]);
    let lower = |part: &ValueId| importer.add_op_with("Squeeze", &[*part, axes], Attributes::new());
    let made: Vec<ValueId> = parts.iter().map(lower).collect();
    importer.set_outputs(op, name, &made)
}

/// Broadcasts vectors against each other, each along a dimension of its own.
fn lower_meshgrid<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let vectors = importer.inputs(op, "X")?;
    let flat = importer.add_ints(&[-1]);
    let each: Vec<ValueId> =
        vectors.iter().map(|vector| importer.add_op("Reshape", &[vector.id, flat])).collect();
    let sizes: Vec<ValueId> = each.iter().map(|vector| importer.add_op("Shape", &[*vector])).collect();
    let shape = importer.add_op_with("Concat", &sizes, build_attributes([("axis", int_attribute(0))]));
    let mut made = Vec::new();
    for (at, vector) in each.iter().enumerate() {
        let alone: Vec<i64> = (0..each.len()).map(|axis| if axis == at { -1 } else { 1 }).collect();
        let alone = importer.add_ints(&alone);
        let aligned = importer.add_op("Reshape", &[*vector, alone]);
        made.push(importer.add_op("Expand", &[aligned, shape]));
    }
    importer.set_outputs(op, "Out", &made)
}

/// Repeats all operands to a common shape.
fn lower_broadcast_all<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let operands = importer.inputs(op, "X")?;
    let Some((first, others)) = operands.split_first() else { return Ok(()) };
    let mut largest = first.id;
    for other in others {
        let shape = importer.add_op("Shape", &[other.id]);
        largest = importer.add_op("Expand", &[largest, shape]);
    }
    let shape = importer.add_op("Shape", &[largest]);
    let mut results = Vec::new();
    for operand in &operands {
        results.push(importer.add_op("Expand", &[operand.id, shape]));
    }
    importer.set_outputs(op, "Out", &results)
}
