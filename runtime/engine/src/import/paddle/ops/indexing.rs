//! Parts of operands, by place and by index.

use oarlock_core::{Attributes, Constant, Dtype, Result};

use super::{TranslatorTable, int_attribute, known_int, known_list, list_operand};
use crate::graph::ValueId;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

pub(super) const INDEXING_OPS: TranslatorTable = &[
    ("gather", lower_gather),
    ("gather_nd", lower_gather_nd),
    ("index_sample", |program, op| lower_gather_along(program, op, "X", 1, "Out")),
    ("index_select", lower_index_select),
    ("lookup_table", |program, op| lower_lookup(program, op, true)),
    ("lookup_table_v2", |program, op| lower_lookup(program, op, false)),
    ("one_hot", |program, op| lower_one_hot(program, op, true)),
    ("one_hot_v2", |program, op| lower_one_hot(program, op, false)),
    ("slice", lower_slice),
    ("strided_slice", lower_slice),
    ("take_along_axis", |program, op| {
        lower_gather_along(program, op, "Input", op.int_attribute("Axis", 0), "Result")
    }),
    ("where", lower_select),
];

fn lower_gather<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, index) = (program.input(op, "X")?.id, program.input(op, "Index")?);
    let axis = known_int(program, op, "axis", "Axis", 0)?;
    // An older program has its indices in a column.
    let index = match index.dims {
        Some([_, 1]) => {
            let last = program.add_ints(&[-1]);
            program.add_op("Squeeze", &[index.id, last])
        }
        _ => index.id,
    };
    let made = program.add_op_with("Gather", &[x, index], build_attributes([("axis", int_attribute(axis))]));
    program.set_output(op, "Out", made)
}

/// One element for each index, from its own place but for one axis.
fn lower_gather_along<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    from: &str,
    axis: i64,
    output: &str,
) -> Result<()> {
    let (x, index) = (program.input(op, from)?, program.input(op, "Index")?.id);
    let axis = x.normalize_axis(axis)?;
    let made = program.add_op_with(
        "GatherElements",
        &[x.id, index],
        build_attributes([("axis", int_attribute(axis))]),
    );
    program.set_output(op, output, made)
}

/// Rows of a table. The older op has its indices in a dimension of 1 more. A row may count as zeros.
fn lower_lookup<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, is_old: bool) -> Result<()> {
    let (table, mut ids) = (program.input(op, "W")?.id, program.input(op, "Ids")?.id);
    let last = program.add_ints(&[-1]);
    if is_old {
        ids = program.add_op_with("Squeeze", &[ids, last], Attributes::new());
    }
    let mut made =
        program.add_op_with("Gather", &[table, ids], build_attributes([("axis", int_attribute(0))]));
    let padding = op.int_attribute("padding_idx", -1);
    if padding >= 0 {
        let of_ids = program.input_dtype(op, "Ids").unwrap_or(Dtype::I64);
        let padding = program.add_scalar(padding as f64, of_ids)?;
        let zero = program.add_scalar(0.0, program.output_dtype(op, "Out").unwrap_or(Dtype::F32))?;
        let is_padding = program.add_op_with("Equal", &[ids, padding], Attributes::new());
        let is_padding = program.add_op_with("Unsqueeze", &[is_padding, last], Attributes::new());
        made = program.add_op_with("Where", &[is_padding, zero, made], Attributes::new());
    }
    program.set_output(op, "Out", made)
}

fn lower_slice<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let input = program.input(op, "Input")?;
    let mut made = slice_operand(program, op, input, input.id)?;
    let dropped = op.ints_attribute("decrease_axis");
    if !dropped.is_empty() {
        let dropped = program.add_ints(&dropped);
        made = program.add_op("Squeeze", &[made, dropped]);
    }
    super::set_scalar_output(program, op, "Out", made)
}

/// What lies between begin and end along some axes of an operand, of something of the same shape.
pub(super) fn slice_operand<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    x: PaddleOperand<'m>,
    from: ValueId,
) -> Result<ValueId> {
    let starts = list_operand(program, op, "starts", "StartsTensor", "StartsTensorList")?;
    let axes = op.ints_attribute("axes");
    let name = if op.ints_attribute("steps").is_empty() { "strides" } else { "steps" };
    let steps = known_list(program, op, name, "StridesTensor", "StridesTensorList")?;
    let mut stops = known_list(program, op, "ends", "EndsTensor", "EndsTensorList")?;
    if let (Some(stops), Some(steps)) = (&mut stops, &steps) {
        for (at, (stop, step)) in stops.iter_mut().zip(steps).enumerate() {
            // Later versions go backwards as ONNX does.
            if *step < 0 && *stop < 0 && program.is_older_than(3) {
                let size = axes.get(at).and_then(|axis| x.dimension_size(*axis));
                *stop = backward_slice_end(*stop, size);
            }
        }
    }
    let stops = match stops {
        Some(stops) => program.add_ints(&stops),
        None => list_operand(program, op, "ends", "EndsTensor", "EndsTensorList")?,
    };
    let mut operands = vec![from, starts, stops, program.add_ints(&axes)];
    if steps.as_ref().is_none_or(|steps| !steps.is_empty()) {
        operands.push(match steps {
            Some(steps) => program.add_ints(&steps),
            None => list_operand(program, op, name, "StridesTensor", "StridesTensorList")?,
        });
    }
    Ok(program.add_op("Slice", &operands))
}

/// Where a slice ends that goes backwards. A -1 is the place before the first one, and no other end lies there.
fn backward_slice_end(stop: i64, size: Option<i64>) -> i64 {
    match size {
        _ if stop == -1 => i64::MIN,
        Some(size) if stop.saturating_add(size) < 0 => 0,
        _ => stop,
    }
}

fn lower_select<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let mut operands = Vec::new();
    for name in ["Condition", "X", "Y"] {
        operands.push(program.input(op, name)?.id);
    }
    let made = program.add_op_with("Where", &operands, Attributes::new());
    program.set_output(op, "Out", made)
}

fn lower_gather_nd<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, index) = (program.input(op, "X")?.id, program.input(op, "Index")?.id);
    // Indices of i32 are wanted as i64.
    let index = program.add_op_with(
        "Cast",
        &[index],
        build_attributes([("to", int_attribute(Dtype::I64.onnx_number()))]),
    );
    let made = program.add_op_with("GatherND", &[x, index], Attributes::new());
    program.set_output(op, "Out", made)
}

fn lower_index_select<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, index) = (program.input(op, "X")?.id, program.input(op, "Index")?.id);
    let made = program.add_op_with(
        "Gather",
        &[x, index],
        build_attributes([("axis", int_attribute(op.int_attribute("dim", 0)))]),
    );
    program.set_output(op, "Out", made)
}

/// A one where the index says. The older op has its indices in a dimension of 1 more.
fn lower_one_hot<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, is_old: bool) -> Result<()> {
    let mut x = program.input(op, "X")?.id;
    if is_old {
        let last = program.add_ints(&[-1]);
        x = program.add_op("Squeeze", &[x, last]);
    }
    let depth = known_int(program, op, "depth", "depth_tensor", 1)?;
    let depth = program.add_ints(&[depth]);
    let values = super::encode_numbers(&[0.0, 1.0], Dtype::F32)?;
    let values = program.add_constant(Constant::new(Dtype::F32, &[2], values)?);
    let made =
        program.add_op_with("OneHot", &[x, depth, values], build_attributes([("axis", int_attribute(-1))]));
    program.set_output(op, "Out", made)
}
