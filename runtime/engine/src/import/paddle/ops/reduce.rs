//! Sums and means along axes, and what is normalised by them.

use oarlock_core::{Attributes, Dtype, Error, Result};

use super::{Translate, float, int};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Program, with};

pub(super) fn find(name: &str) -> Option<Translate> {
    Some(match name {
        "arg_max" => |program, op| arg(program, op, "ArgMax"),
        "arg_min" => |program, op| arg(program, op, "ArgMin"),
        "batch_norm" => batch_norm,
        "layer_norm" => layer_norm,
        "mean" => |program, op| super::unary(program, op, "ReduceMean", with([("keepdims", int(0))])),
        "reduce_max" => |program, op| reduce(program, op, "ReduceMax"),
        "reduce_mean" => |program, op| reduce(program, op, "ReduceMean"),
        "reduce_min" => |program, op| reduce(program, op, "ReduceMin"),
        "reduce_prod" => |program, op| reduce(program, op, "ReduceProd"),
        "reduce_sum" => |program, op| reduce(program, op, "ReduceSum"),
        _ => return None,
    })
}

fn reduce<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let keep = with([("keepdims", int(op.flag("keep_dim", false).into()))]);
    let axes = op.ints("dim");
    let made = if op.flag("reduce_all", false) || axes.is_empty() {
        program.node(name, &[x], keep)
    } else {
        let axes = program.ints(&axes);
        program.node(name, &[x, axes], keep)
    };
    program.give(op, "Out", made)
}

fn arg<'m>(program: &mut Program<'m>, op: &'m OpDesc, name: &str) -> Result<()> {
    let x = program.input(op, "X")?;
    if program.maybe(op, "Axis")?.is_some() {
        return Err(Error::unimplemented("expected an axis that is known, found one that is computed"));
    }
    let (axis, keep) = (op.int("axis", -1), op.flag("keepdims", false).into());
    let mut made = if op.flag("flatten", false) {
        let all = program.ints(&[-1]);
        let flat = program.node("Reshape", &[x.id, all], Attributes::new());
        program.node(name, &[flat], with([("axis", int(0)), ("keepdims", int(keep))]))
    } else {
        program.node(name, &[x.id], with([("axis", int(axis)), ("keepdims", int(keep))]))
    };
    if program.output_dtype(op, "Out") == Some(Dtype::I32) {
        made = program.node("Cast", &[made], with([("to", int(Dtype::I32.onnx_number()))]));
    }
    program.give(op, "Out", made)
}

fn batch_norm<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect("data_layout", &["NCHW", "AnyLayout"])?;
    if !op.flag("is_test", false) && !op.flag("use_global_stats", false) {
        return Err(Error::unimplemented("expected a program for inference, found one for training"));
    }
    let mut operands = Vec::new();
    for name in ["X", "Scale", "Bias", "Mean", "Variance"] {
        operands.push(program.input(op, name)?.id);
    }
    let epsilon = with([("epsilon", float(op.float("epsilon", 1e-5)))]);
    let made = program.node("BatchNormalization", &operands, epsilon);
    program.give(op, "Y", made)
}

fn layer_norm<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, axis) = (program.input(op, "X")?, op.int("begin_norm_axis", 1));
    let rank = x.rank()?;
    if axis != rank - 1 {
        // Scale and bias are flat, and ONNX wants them with the dimensions that they are for.
        return Err(Error::unimplemented(format!(
            "expected the last of {rank} dimensions to be normalised, found all from {axis} on"
        )));
    }
    let scale = match program.maybe(op, "Scale")? {
        Some(scale) => scale.id,
        None => {
            let dtype = program.input_dtype(op, "X").unwrap_or(Dtype::F32);
            program.number(1.0, dtype)?
        }
    };
    let bias = program.maybe(op, "Bias")?.map(|bias| bias.id);
    let operands: Vec<_> = [x.id, scale].into_iter().chain(bias).collect();
    let attributes = with([("axis", int(-1)), ("epsilon", float(op.float("epsilon", 1e-5)))]);
    let made = program.node("LayerNormalization", &operands, attributes);
    program.give(op, "Y", made)
}
