//! Sums and means along axes, and what is normalised by them.

use oarlock_core::{Attributes, Constant, Dtype, Error, Result};

use super::{Translate, float, int};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Program, with};
use crate::import::place::wrong;

/// The most groups of channels that are normalised one by one; a constant is written for each.
const MOST_GROUPS: usize = 256;

pub(super) fn find(name: &str) -> Option<Translate> {
    Some(match name {
        "arg_max" => |program, op| arg(program, op, "ArgMax"),
        "arg_min" => |program, op| arg(program, op, "ArgMin"),
        "batch_norm" => batch_norm,
        "cumsum" => cumulative,
        "group_norm" => group_norm,
        "instance_norm" => instance_norm,
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

fn cumulative<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    if op.flag("flatten", false) || program.maybe(op, "AxisTensor")?.is_some() {
        return Err(Error::unimplemented("expected an axis that is known, found none"));
    }
    let axis = program.number(op.int("axis", -1) as f64, Dtype::I64)?;
    let flag = |name| int(op.flag(name, false).into());
    let attributes = with([("exclusive", flag("exclusive")), ("reverse", flag("reverse"))]);
    let made = program.node("CumSum", &[x, axis], attributes);
    program.give(op, "Out", made)
}

fn instance_norm<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let mut operands = Vec::new();
    for name in ["X", "Scale", "Bias"] {
        operands.push(program.input(op, name)?.id);
    }
    let epsilon = with([("epsilon", float(op.float("epsilon", 1e-5)))]);
    let made = program.node("InstanceNormalization", &operands, epsilon);
    program.give(op, "Y", made)
}

/// Each group of channels is normalised, and then each channel is scaled. ONNX has this as one op later than here.
fn group_norm<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect("data_layout", &["NCHW", "AnyLayout"])?;
    let (x, groups) = (program.input(op, "X")?, op.int("groups", 1));
    let (rank, dtype) = (x.rank()?, program.input_dtype(op, "X").unwrap_or(Dtype::F32));
    let Some(count) = usize::try_from(groups).ok().filter(|count| (1..=MOST_GROUPS).contains(count)) else {
        return Err(wrong(format!("1 to {MOST_GROUPS} groups"), groups));
    };
    let grouped = program.ints(&[0, groups, -1]);
    let grouped = program.node("Reshape", &[x.id, grouped], Attributes::new());
    let mut of_groups = |value: f64| {
        let bytes = super::bytes_of(&vec![value; count], dtype)?;
        Ok::<_, Error>(program.constant(Constant::new(dtype, &[groups], bytes)?))
    };
    let (ones, zeros) = (of_groups(1.0)?, of_groups(0.0)?);
    let epsilon = with([("epsilon", float(op.float("epsilon", 1e-5)))]);
    let normal = program.node("InstanceNormalization", &[grouped, ones, zeros], epsilon);
    let shape = program.node("Shape", &[x.id], Attributes::new());
    let mut made = program.node("Reshape", &[normal, shape], Attributes::new());
    for (name, step) in [("Scale", "Mul"), ("Bias", "Add")] {
        if let Some(given) = program.maybe(op, name)? {
            let axes: Vec<i64> = (1..rank - 1).collect();
            let axes = program.ints(&axes);
            let aligned = program.node("Unsqueeze", &[given.id, axes], Attributes::new());
            made = program.node(step, &[made, aligned], Attributes::new());
        }
    }
    program.give(op, "Y", made)
}
