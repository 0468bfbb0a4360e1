//! Ops that move elements without changing them.

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
    ("concat", lower_concat),
    ("expand", |program, op| lower_tile(program, op, "expand_times", "ExpandTimes", "expand_times_tensor")),
    ("expand_as_v2", lower_expand_as),
    ("expand_v2", lower_expand),
    ("flatten2", |program, op| {
        lower_unary(
            program,
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
    ("squeeze", |program, op| lower_squeeze(program, op, "Squeeze")),
    ("squeeze2", |program, op| lower_squeeze(program, op, "Squeeze")),
    ("stack", lower_stack),
    ("tile", |program, op| lower_tile(program, op, "repeat_times", "RepeatTimes", "repeat_times_tensor")),
    ("transpose", |program, op| {
        lower_unary(
            program,
            op,
            "Transpose",
            build_attributes([("perm", ints_attribute(&op.ints_attribute("axis")))]),
        )
    }),
    ("transpose2", |program, op| {
        lower_unary(
            program,
            op,
            "Transpose",
            build_attributes([("perm", ints_attribute(&op.ints_attribute("axis")))]),
        )
    }),
    ("unbind", |program, op| lower_unstack(program, op, "Out")),
    ("unsqueeze", |program, op| lower_squeeze(program, op, "Unsqueeze")),
    ("unsqueeze2", |program, op| lower_squeeze(program, op, "Unsqueeze")),
    ("unstack", |program, op| lower_unstack(program, op, "Y")),
];

fn lower_reshape<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let shape = list_operand(program, op, "shape", "Shape", "ShapeTensor")?;
    let made = program.add_op_with("Reshape", &[x, shape], Attributes::new());
    program.set_output(op, "Out", made)
}

/// Makes one dimension of some that follow each other.
fn lower_flatten<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let rank = x.rank()?;
    let from_begin = |axis: i64| if axis < 0 { axis.saturating_add(rank) } else { axis };
    let (start, stop) =
        (from_begin(op.int_attribute("start_axis", 1)), from_begin(op.int_attribute("stop_axis", -1)));
    if start < 0 || stop < start || stop >= rank.max(1) {
        return Err(invalid_model(format!("two of {rank} axes"), format!("{start} and {stop}")));
    }
    let dims = x.dims.unwrap_or_default();
    let behind = dims.get(stop as usize + 1..).unwrap_or_default();
    // A 0 stands for the size that is there already.
    let shape: Vec<i64> = (0..start).map(|_| 0).chain([-1]).chain(behind.iter().copied()).collect();
    let shape = if behind.iter().all(|size| *size >= 0) {
        program.add_ints(&shape)
    } else {
        let before = program.add_ints(&shape[..start as usize + 1]);
        let behind = super::slice_shape(program, x, stop + 1, rank);
        program.add_op_with("Concat", &[before, behind], build_attributes([("axis", int_attribute(0))]))
    };
    let made = program.add_op("Reshape", &[x.id, shape]);
    program.set_output(op, "Out", made)
}

fn lower_squeeze<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, "X")?;
    let known = known_list(program, op, "axes", "AxesTensor", "AxesTensorList")?;
    // Paddle leaves dimensions that cannot be dropped as they are.
    let can_be_dropped =
        |axis: &i64| name != "Squeeze" || x.dimension_size(*axis).is_none_or(|size| size == 1);
    let made = match known {
        Some(axes) if axes.is_empty() => program.add_op(name, &[x.id]),
        Some(axes) => {
            let axes: Vec<i64> = axes.into_iter().filter(can_be_dropped).collect();
            let axes = program.add_ints(&axes);
            program.add_op(name, &[x.id, axes])
        }
        None => {
            let axes = list_operand(program, op, "axes", "AxesTensor", "AxesTensorList")?;
            program.add_op(name, &[x.id, axes])
        }
    };
    super::set_scalar_output(program, op, "Out", made)
}

fn lower_concat<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let operands: Vec<ValueId> = program.inputs(op, "X")?.iter().map(|operand| operand.id).collect();
    let axis = known_int(program, op, "axis", "AxisTensor", 0)?;
    let made = program.add_op_with("Concat", &operands, build_attributes([("axis", int_attribute(axis))]));
    program.set_output(op, "Out", made)
}

fn lower_split<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let axis = known_int(program, op, "axis", "AxisTensor", 0)?;
    let count = OpDesc::operand_names(&op.outputs, "Out").len();
    let known = known_list(program, op, "sections", "SectionsTensor", "SectionsTensorList")?;
    let made = match known {
        Some(sizes) if sizes.is_empty() => {
            let attributes = build_attributes([
                ("axis", int_attribute(axis)),
                ("num_outputs", int_attribute(count as i64)),
            ]);
            program.add_node("Split", &[Some(x.id)], attributes, count)
        }
        Some(mut sizes) => {
            if let Some(open) = sizes.iter().position(|size| *size == -1) {
                let others =
                    sizes.iter().filter(|size| **size > 0).fold(0i64, |sum, size| sum.saturating_add(*size));
                sizes[open] = x.known_dimension_size(axis)?.saturating_sub(others);
            }
            let sizes = program.add_ints(&sizes);
            program.add_node(
                "Split",
                &[Some(x.id), Some(sizes)],
                build_attributes([("axis", int_attribute(axis))]),
                count,
            )
        }
        None => {
            let sizes = list_operand(program, op, "sections", "SectionsTensor", "SectionsTensorList")?;
            program.add_node(
                "Split",
                &[Some(x.id), Some(sizes)],
                build_attributes([("axis", int_attribute(axis))]),
                count,
            )
        }
    };
    program.set_outputs(op, "Out", &made)
}

fn lower_stack<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (operands, axis) = (program.inputs(op, "X")?, op.int_attribute("axis", 0));
    let axes = program.add_ints(&[axis]);
    let raise = |operand: &PaddleOperand<'m>| {
        program.add_op_with("Unsqueeze", &[operand.id, axes], Attributes::new())
    };
    let raised: Vec<ValueId> = operands.iter().map(raise).collect();
    let made = program.add_op_with("Concat", &raised, build_attributes([("axis", int_attribute(axis))]));
    program.set_output(op, "Y", made)
}

/// Repeats dimensions of 1; a -1 in the shape keeps what is there, for which ONNX writes 1.
fn lower_expand<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let shape = match known_list(program, op, "shape", "Shape", "expand_shapes_tensor")? {
        Some(shape) => {
            let shape: Vec<i64> = shape.iter().map(|size| if *size == -1 { 1 } else { *size }).collect();
            program.add_ints(&shape)
        }
        None => {
            let shape = list_operand(program, op, "shape", "Shape", "expand_shapes_tensor")?;
            let one = program.add_scalar(1.0, Dtype::I64)?;
            program.add_op("Max", &[shape, one])
        }
    };
    let made = program.add_op("Expand", &[x, shape]);
    program.set_output(op, "Out", made)
}

/// Repeats all of some dimensions; those before the ones that are named are as they are.
fn lower_tile<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    name: &str,
    whole: &str,
    parts: &str,
) -> Result<()> {
    let x = program.input(op, "X")?;
    let (times, rank) = match known_list(program, op, name, whole, parts)? {
        Some(mut times) => {
            let missing = usize::try_from(x.rank()?).unwrap_or_default().saturating_sub(times.len());
            times.splice(0..0, std::iter::repeat_n(1, missing));
            (program.add_ints(&times), times.len() as i64)
        }
        None => (list_operand(program, op, name, whole, parts)?, x.rank()?),
    };
    let missing = rank - x.rank()?;
    let mut from = x.id;
    if missing > 0 {
        let axes = program.add_ints(&(0..missing).collect::<Vec<i64>>());
        from = program.add_op("Unsqueeze", &[from, axes]);
    }
    let made = program.add_op("Tile", &[from, times]);
    program.set_output(op, "Out", made)
}

fn lower_expand_as<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let shape = match program.optional_input(op, "Y")? {
        Some(like) => program.add_op_with("Shape", &[like.id], Attributes::new()),
        None => program.add_ints(&op.ints_attribute("target_shape")),
    };
    let made = program.add_op_with("Expand", &[x, shape], Attributes::new());
    program.set_output(op, "Out", made)
}

/// All places along an axis, each without it.
fn lower_unstack<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let (x, axis) = (program.input(op, "X")?.id, op.int_attribute("axis", 0));
    let count = OpDesc::operand_names(&op.outputs, name).len();
    let attributes =
        build_attributes([("axis", int_attribute(axis)), ("num_outputs", int_attribute(count as i64))]);
    let parts = program.add_node("Split", &[Some(x)], attributes, count);
    let axes = program.add_ints(&[axis]);
    let lower = |part: &ValueId| program.add_op_with("Squeeze", &[*part, axes], Attributes::new());
    let made: Vec<ValueId> = parts.iter().map(lower).collect();
    program.set_outputs(op, name, &made)
}

/// Vectors as dimensions of their own, all repeated to one shape.
fn lower_meshgrid<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let vectors = program.inputs(op, "X")?;
    let flat = program.add_ints(&[-1]);
    let each: Vec<ValueId> =
        vectors.iter().map(|vector| program.add_op("Reshape", &[vector.id, flat])).collect();
    let sizes: Vec<ValueId> = each.iter().map(|vector| program.add_op("Shape", &[*vector])).collect();
    let shape = program.add_op_with("Concat", &sizes, build_attributes([("axis", int_attribute(0))]));
    let mut made = Vec::new();
    for (at, vector) in each.iter().enumerate() {
        let alone: Vec<i64> = (0..each.len()).map(|axis| if axis == at { -1 } else { 1 }).collect();
        let alone = program.add_ints(&alone);
        let aligned = program.add_op("Reshape", &[*vector, alone]);
        made.push(program.add_op("Expand", &[aligned, shape]));
    }
    program.set_outputs(op, "Out", &made)
}
