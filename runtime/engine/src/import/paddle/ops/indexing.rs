//! Parts of operands, by place and by index.

use oarlock_core::{Attributes, Constant, Dtype, Result};

use super::{Table, int, known_int, known_list, list};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::Operand;
use crate::import::paddle::program::{Program, with};

pub(super) const OPS: Table = &[
    ("gather", gather),
    ("gather_nd", gather_nd),
    ("index_sample", |program, op| along(program, op, "X", 1, "Out")),
    ("index_select", index_select),
    ("lookup_table", |program, op| lookup(program, op, true)),
    ("lookup_table_v2", |program, op| lookup(program, op, false)),
    ("one_hot", |program, op| one_hot(program, op, true)),
    ("one_hot_v2", |program, op| one_hot(program, op, false)),
    ("slice", slice),
    ("strided_slice", slice),
    ("take_along_axis", |program, op| along(program, op, "Input", op.int("Axis", 0), "Result")),
    ("where", select),
];

fn gather<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, index) = (program.input(op, "X")?.id, program.input(op, "Index")?);
    let axis = known_int(program, op, "axis", "Axis", 0)?;
    // An older program has its indices in a column.
    let index = match index.dims {
        Some([_, 1]) => {
            let last = program.ints(&[-1]);
            program.apply("Squeeze", &[index.id, last])
        }
        _ => index.id,
    };
    let made = program.node("Gather", &[x, index], with([("axis", int(axis))]));
    program.give(op, "Out", made)
}

/// One element for each index, from its own place but for one axis.
fn along<'m>(program: &mut Program<'m>, op: &'m OpDesc, from: &str, axis: i64, output: &str) -> Result<()> {
    let (x, index) = (program.input(op, from)?, program.input(op, "Index")?.id);
    let axis = x.axis(axis)?;
    let made = program.node("GatherElements", &[x.id, index], with([("axis", int(axis))]));
    program.give(op, output, made)
}

/// Rows of a table. The older op has its indices in a dimension of 1 more. A row may count as zeros.
fn lookup<'m>(program: &mut Program<'m>, op: &'m OpDesc, is_old: bool) -> Result<()> {
    let (table, mut ids) = (program.input(op, "W")?.id, program.input(op, "Ids")?.id);
    let last = program.ints(&[-1]);
    if is_old {
        ids = program.node("Squeeze", &[ids, last], Attributes::new());
    }
    let mut made = program.node("Gather", &[table, ids], with([("axis", int(0))]));
    let padding = op.int("padding_idx", -1);
    if padding >= 0 {
        let of_ids = program.input_dtype(op, "Ids").unwrap_or(Dtype::I64);
        let padding = program.number(padding as f64, of_ids)?;
        let zero = program.number(0.0, program.output_dtype(op, "Out").unwrap_or(Dtype::F32))?;
        let is_padding = program.node("Equal", &[ids, padding], Attributes::new());
        let is_padding = program.node("Unsqueeze", &[is_padding, last], Attributes::new());
        made = program.node("Where", &[is_padding, zero, made], Attributes::new());
    }
    program.give(op, "Out", made)
}

fn slice<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let input = program.input(op, "Input")?;
    let mut made = sliced(program, op, input, input.id)?;
    let dropped = op.ints("decrease_axis");
    if !dropped.is_empty() {
        let dropped = program.ints(&dropped);
        made = program.apply("Squeeze", &[made, dropped]);
    }
    super::give_one(program, op, "Out", made)
}

/// What lies between begin and end along some axes of an operand, of something of the same shape.
pub(super) fn sliced<'m>(
    program: &mut Program<'m>,
    op: &'m OpDesc,
    x: Operand<'m>,
    from: ValueId,
) -> Result<ValueId> {
    let starts = list(program, op, "starts", "StartsTensor", "StartsTensorList")?;
    let axes = op.ints("axes");
    let name = if op.ints("steps").is_empty() { "strides" } else { "steps" };
    let steps = known_list(program, op, name, "StridesTensor", "StridesTensorList")?;
    let mut stops = known_list(program, op, "ends", "EndsTensor", "EndsTensorList")?;
    if let (Some(stops), Some(steps)) = (&mut stops, &steps) {
        for (at, (stop, step)) in stops.iter_mut().zip(steps).enumerate() {
            // Later versions go backwards as ONNX does.
            if *step < 0 && *stop < 0 && program.is_before(3) {
                let size = axes.get(at).and_then(|axis| x.size(*axis));
                *stop = backwards(*stop, size);
            }
        }
    }
    let stops = match stops {
        Some(stops) => program.ints(&stops),
        None => list(program, op, "ends", "EndsTensor", "EndsTensorList")?,
    };
    let mut operands = vec![from, starts, stops, program.ints(&axes)];
    if steps.as_ref().is_none_or(|steps| !steps.is_empty()) {
        operands.push(match steps {
            Some(steps) => program.ints(&steps),
            None => list(program, op, name, "StridesTensor", "StridesTensorList")?,
        });
    }
    Ok(program.apply("Slice", &operands))
}

/// Where a slice ends that goes backwards. A -1 is the place before the first one, and no other end lies there.
fn backwards(stop: i64, size: Option<i64>) -> i64 {
    match size {
        _ if stop == -1 => i64::MIN,
        Some(size) if stop.saturating_add(size) < 0 => 0,
        _ => stop,
    }
}

fn select<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let mut operands = Vec::new();
    for name in ["Condition", "X", "Y"] {
        operands.push(program.input(op, name)?.id);
    }
    let made = program.node("Where", &operands, Attributes::new());
    program.give(op, "Out", made)
}

fn gather_nd<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, index) = (program.input(op, "X")?.id, program.input(op, "Index")?.id);
    // Indices of i32 are wanted as i64.
    let index = program.node("Cast", &[index], with([("to", int(Dtype::I64.onnx_number()))]));
    let made = program.node("GatherND", &[x, index], Attributes::new());
    program.give(op, "Out", made)
}

fn index_select<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, index) = (program.input(op, "X")?.id, program.input(op, "Index")?.id);
    let made = program.node("Gather", &[x, index], with([("axis", int(op.int("dim", 0)))]));
    program.give(op, "Out", made)
}

/// A one where the index says. The older op has its indices in a dimension of 1 more.
fn one_hot<'m>(program: &mut Program<'m>, op: &'m OpDesc, is_old: bool) -> Result<()> {
    let mut x = program.input(op, "X")?.id;
    if is_old {
        let last = program.ints(&[-1]);
        x = program.apply("Squeeze", &[x, last]);
    }
    let depth = known_int(program, op, "depth", "depth_tensor", 1)?;
    let depth = program.ints(&[depth]);
    let values = super::bytes_of(&[0.0, 1.0], Dtype::F32)?;
    let values = program.constant(Constant::new(Dtype::F32, &[2], values)?);
    let made = program.node("OneHot", &[x, depth, values], with([("axis", int(-1))]));
    program.give(op, "Out", made)
}
