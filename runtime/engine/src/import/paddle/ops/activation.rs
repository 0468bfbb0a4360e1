//! Functions of one element.

use oarlock_core::{Attribute, Attributes, Dtype, Error, Result};

use super::{Translate, float, int, unary};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Program, with};

pub(super) fn find(name: &str) -> Option<Translate> {
    Some(match name {
        "abs" => |program, op| unary(program, op, "Abs", Attributes::new()),
        "ceil" => |program, op| unary(program, op, "Ceil", Attributes::new()),
        "cos" => |program, op| unary(program, op, "Cos", Attributes::new()),
        "elu" => |program, op| unary(program, op, "Elu", with([("alpha", float(op.float("alpha", 1.0)))])),
        "erf" => |program, op| unary(program, op, "Erf", Attributes::new()),
        "exp" => |program, op| unary(program, op, "Exp", Attributes::new()),
        "floor" => |program, op| unary(program, op, "Floor", Attributes::new()),
        "gelu" => |program, op| {
            let kind = if op.flag("approximate", false) { "tanh" } else { "none" };
            unary(program, op, "Gelu", with([("approximate", Attribute::String(kind.into()))]))
        },
        "hard_sigmoid" => |program, op| {
            let (alpha, beta) = (op.float("slope", 0.2), op.float("offset", 0.5));
            unary(program, op, "HardSigmoid", with([("alpha", float(alpha)), ("beta", float(beta))]))
        },
        "hard_swish" => hard_swish,
        "leaky_relu" => {
            |program, op| unary(program, op, "LeakyRelu", with([("alpha", float(op.float("alpha", 0.02)))]))
        }
        "log" => |program, op| unary(program, op, "Log", Attributes::new()),
        "log_softmax" => {
            |program, op| unary(program, op, "LogSoftmax", with([("axis", int(op.int("axis", -1)))]))
        }
        "logical_not" => |program, op| unary(program, op, "Not", Attributes::new()),
        "mish" => |program, op| unary(program, op, "Mish", Attributes::new()),
        "prelu" => prelu,
        "reciprocal" => |program, op| unary(program, op, "Reciprocal", Attributes::new()),
        "relu" => |program, op| unary(program, op, "Relu", Attributes::new()),
        "relu6" => |program, op| clip(program, op, 0.0, op.float("threshold", 6.0)),
        "clip" => |program, op| clip(program, op, op.float("min", f64::MIN), op.float("max", f64::MAX)),
        "round" => |program, op| unary(program, op, "Round", Attributes::new()),
        "rsqrt" => rsqrt,
        "sigmoid" => |program, op| unary(program, op, "Sigmoid", Attributes::new()),
        "sign" => |program, op| unary(program, op, "Sign", Attributes::new()),
        "silu" | "swish" => swish,
        "sin" => |program, op| unary(program, op, "Sin", Attributes::new()),
        "softmax" => |program, op| unary(program, op, "Softmax", with([("axis", int(op.int("axis", -1)))])),
        "softplus" => softplus,
        "softsign" => |program, op| unary(program, op, "Softsign", Attributes::new()),
        "sqrt" => |program, op| unary(program, op, "Sqrt", Attributes::new()),
        "square" => square,
        "tanh" => |program, op| unary(program, op, "Tanh", Attributes::new()),
        _ => return None,
    })
}

/// `x · min(max(x + offset, 0), threshold) / scale`, which ONNX has for the usual numbers.
fn hard_swish<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (offset, scale, threshold) =
        (op.float("offset", 3.0), op.float("scale", 6.0), op.float("threshold", 6.0));
    if (offset, scale, threshold) != (3.0, 6.0, 6.0) {
        let found = format!("{offset}, {scale} and {threshold}");
        return Err(Error::unimplemented(format!(
            "expected `offset`, `scale` and `threshold` to be 3, 6 and 6, found {found}"
        )));
    }
    unary(program, op, "HardSwish", Attributes::new())
}

/// `x · sigmoid(beta · x)`.
fn swish<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, beta) = (program.input(op, "X")?.id, op.float("beta", 1.0));
    let scaled = if beta == 1.0 {
        x
    } else {
        let beta = program.number(beta, program.input_dtype(op, "X").unwrap_or(Dtype::F32))?;
        program.node("Mul", &[x, beta], Attributes::new())
    };
    let gate = program.node("Sigmoid", &[scaled], Attributes::new());
    let made = program.node("Mul", &[x, gate], Attributes::new());
    program.give(op, "Out", made)
}

fn softplus<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let beta = op.float("beta", 1.0);
    if beta != 1.0 {
        return Err(Error::unimplemented(format!("expected `beta` to be 1, found {beta}")));
    }
    // Beyond its threshold Paddle takes x itself, from which this differs by less than an f32 shows.
    unary(program, op, "Softplus", Attributes::new())
}

fn square<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let made = program.node("Mul", &[x, x], Attributes::new());
    program.give(op, "Out", made)
}

fn rsqrt<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let root = program.node("Sqrt", &[x], Attributes::new());
    let made = program.node("Reciprocal", &[root], Attributes::new());
    program.give(op, "Out", made)
}

/// Limits, which may also be operands.
fn clip<'m>(program: &mut Program<'m>, op: &'m OpDesc, low: f64, high: f64) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let dtype = program.input_dtype(op, "X").unwrap_or(Dtype::F32);
    let mut limit = |name: &str, value: f64| match program.maybe(op, name)? {
        Some(given) => Ok(given.id),
        None => program.number(value, dtype),
    };
    let (low, high) = (limit("Min", low)?, limit("Max", high)?);
    let made = program.node("Clip", &[x, low, high], Attributes::new());
    program.give(op, "Out", made)
}

/// A slope for all, for each channel, or for each element.
fn prelu<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect("mode", &["all", "channel", "element"])?;
    op.expect("data_format", &["NCHW", "AnyLayout"])?;
    let (x, slope) = (program.input(op, "X")?, program.input(op, "Alpha")?);
    let mut aligned = slope.id;
    if op.text("mode") == "channel" {
        let behind = x.rank()?.saturating_sub(2);
        let shape: Vec<i64> = [-1].into_iter().chain((0..behind).map(|_| 1)).collect();
        let shape = program.ints(&shape);
        aligned = program.node("Reshape", &[slope.id, shape], Attributes::new());
    }
    let made = program.node("PRelu", &[x.id, aligned], Attributes::new());
    program.give(op, "Out", made)
}
