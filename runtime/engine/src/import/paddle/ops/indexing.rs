//! Parts of operands, by place and by index.

use oarlock_core::{Attributes, Dtype, Error, Result};

use super::{Translate, int};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Program, with};

pub(super) fn find(name: &str) -> Option<Translate> {
    Some(match name {
        "gather" => gather,
        "lookup_table" => |program, op| lookup(program, op, true),
        "lookup_table_v2" => |program, op| lookup(program, op, false),
        "slice" | "strided_slice" => slice,
        "top_k_v2" => top_k,
        "where" => select,
        _ => return None,
    })
}

fn gather<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, index) = (program.input(op, "X")?.id, program.input(op, "Index")?.id);
    if program.maybe(op, "Axis")?.is_some() {
        return Err(Error::unimplemented("expected an axis that is known, found one that is computed"));
    }
    let made = program.node("Gather", &[x, index], with([("axis", int(op.int("axis", 0)))]));
    program.give(op, "Out", made)
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

/// One end of each slice: as an attribute, or as operands.
fn ends<'m>(
    program: &mut Program<'m>,
    op: &'m OpDesc,
    name: &str,
    whole: &str,
    parts: &str,
) -> Result<ValueId> {
    let to_i64 = || with([("to", int(Dtype::I64.onnx_number()))]);
    if let Some(given) = program.maybe(op, whole)? {
        return Ok(program.node("Cast", &[given.id], to_i64()));
    }
    let given = program.inputs(op, parts)?;
    if given.is_empty() {
        return Ok(program.ints(&op.ints(name)));
    }
    let flat = program.ints(&[-1]);
    let mut each = Vec::with_capacity(given.len());
    for part in given {
        let part = program.node("Cast", &[part.id], to_i64());
        each.push(program.node("Reshape", &[part, flat], Attributes::new()));
    }
    Ok(program.node("Concat", &each, with([("axis", int(0))])))
}

fn slice<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let input = program.input(op, "Input")?.id;
    let starts = ends(program, op, "starts", "StartsTensor", "StartsTensorList")?;
    let stops = ends(program, op, "ends", "EndsTensor", "EndsTensorList")?;
    let axes = program.ints(&op.ints("axes"));
    let mut operands = vec![input, starts, stops, axes];
    let steps = op.ints("strides");
    if !steps.is_empty() {
        operands.push(program.ints(&steps));
    }
    let mut made = program.node("Slice", &operands, Attributes::new());
    let dropped = op.ints("decrease_axis");
    if !dropped.is_empty() {
        let dropped = program.ints(&dropped);
        made = program.node("Squeeze", &[made, dropped], Attributes::new());
    }
    program.give(op, "Out", made)
}

fn top_k<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    if program.maybe(op, "K")?.is_some() {
        return Err(Error::unimplemented("expected a count that is known, found one that is computed"));
    }
    let count = program.ints(&[op.int("k", 1)]);
    let attributes = with([
        ("axis", int(op.int("axis", -1))),
        ("largest", int(op.flag("largest", true).into())),
        ("sorted", int(op.flag("sorted", true).into())),
    ]);
    let made = program.nodes("TopK", &[Some(x), Some(count)], attributes, 2);
    program.give(op, "Out", made[0])?;
    program.give(op, "Indices", made[1])
}

fn select<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let mut operands = Vec::new();
    for name in ["Condition", "X", "Y"] {
        operands.push(program.input(op, name)?.id);
    }
    let made = program.node("Where", &operands, Attributes::new());
    program.give(op, "Out", made)
}
