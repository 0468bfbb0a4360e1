//! Parts of operands, by place and by index.

use oarlock_core::{Attributes, Constant, Dtype, Error, Result};

use super::{Translate, int, list};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Program, with};

pub(super) fn find(name: &str) -> Option<Translate> {
    Some(match name {
        "gather" => gather,
        "gather_nd" => gather_nd,
        "index_select" => index_select,
        "one_hot_v2" => one_hot,
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

fn slice<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let input = program.input(op, "Input")?.id;
    let starts = list(program, op, "starts", "StartsTensor", "StartsTensorList")?;
    let stops = list(program, op, "ends", "EndsTensor", "EndsTensorList")?;
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

fn one_hot<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    if program.maybe(op, "depth_tensor")?.is_some() {
        return Err(Error::unimplemented("expected a depth that is known, found one that is computed"));
    }
    let depth = program.ints(&[op.int("depth", 1)]);
    let values = super::bytes_of(&[0.0, 1.0], Dtype::F32)?;
    let values = program.constant(Constant::new(Dtype::F32, &[2], values)?);
    let made = program.node("OneHot", &[x, depth, values], with([("axis", int(-1))]));
    program.give(op, "Out", made)
}
