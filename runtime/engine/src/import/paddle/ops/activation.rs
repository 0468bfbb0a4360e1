//! Functions of one element.

use oarlock_core::{Attribute, Attributes, Dtype, Error, Result};

use super::{Table, float, int, like, unary};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::program::{Program, with};

/// The numbers of `selu` that keep mean and variance.
const SELU: (f64, f64) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);

pub(super) const OPS: Table = &[
    ("abs", |program, op| unary(program, op, "Abs", Attributes::new())),
    ("ceil", |program, op| unary(program, op, "Ceil", Attributes::new())),
    ("clip", |program, op| clip(program, op, op.float("min", f64::MIN), op.float("max", f64::MAX))),
    ("cos", |program, op| unary(program, op, "Cos", Attributes::new())),
    ("elu", |program, op| unary(program, op, "Elu", with([("alpha", float(op.float("alpha", 1.0)))]))),
    ("erf", |program, op| unary(program, op, "Erf", Attributes::new())),
    ("exp", |program, op| unary(program, op, "Exp", Attributes::new())),
    ("floor", |program, op| unary(program, op, "Floor", Attributes::new())),
    ("gelu", |program, op| {
        let kind = if op.flag("approximate", false) { "tanh" } else { "none" };
        unary(program, op, "Gelu", with([("approximate", Attribute::String(kind.into()))]))
    }),
    ("hard_sigmoid", |program, op| {
        let (alpha, beta) = (op.float("slope", 0.2), op.float("offset", 0.5));
        unary(program, op, "HardSigmoid", with([("alpha", float(alpha)), ("beta", float(beta))]))
    }),
    ("hard_swish", hard_swish),
    ("leaky_relu", |program, op| {
        unary(program, op, "LeakyRelu", with([("alpha", float(op.float("alpha", 0.02)))]))
    }),
    ("log", |program, op| unary(program, op, "Log", Attributes::new())),
    ("log_softmax", |program, op| {
        unary(program, op, "LogSoftmax", with([("axis", int(op.int("axis", -1)))]))
    }),
    ("mish", |program, op| unary(program, op, "Mish", Attributes::new())),
    ("prelu", prelu),
    ("reciprocal", |program, op| unary(program, op, "Reciprocal", Attributes::new())),
    ("relu", |program, op| unary(program, op, "Relu", Attributes::new())),
    ("relu6", |program, op| clip(program, op, 0.0, op.float("threshold", 6.0))),
    ("round", |program, op| unary(program, op, "Round", Attributes::new())),
    ("rsqrt", rsqrt),
    ("sigmoid", |program, op| unary(program, op, "Sigmoid", Attributes::new())),
    ("sign", |program, op| unary(program, op, "Sign", Attributes::new())),
    ("silu", swish),
    ("sin", |program, op| unary(program, op, "Sin", Attributes::new())),
    ("softmax", |program, op| unary(program, op, "Softmax", with([("axis", int(op.int("axis", -1)))]))),
    ("softplus", softplus),
    ("softsign", |program, op| unary(program, op, "Softsign", Attributes::new())),
    ("sqrt", |program, op| unary(program, op, "Sqrt", Attributes::new())),
    ("square", square),
    ("swish", swish),
    ("tanh", |program, op| unary(program, op, "Tanh", Attributes::new())),
    ("acos", |program, op| unary(program, op, "Acos", Attributes::new())),
    ("acosh", |program, op| unary(program, op, "Acosh", Attributes::new())),
    ("asin", |program, op| unary(program, op, "Asin", Attributes::new())),
    ("asinh", |program, op| unary(program, op, "Asinh", Attributes::new())),
    ("atan", |program, op| unary(program, op, "Atan", Attributes::new())),
    ("atanh", |program, op| unary(program, op, "Atanh", Attributes::new())),
    ("cosh", |program, op| unary(program, op, "Cosh", Attributes::new())),
    ("sinh", |program, op| unary(program, op, "Sinh", Attributes::new())),
    ("tan", |program, op| unary(program, op, "Tan", Attributes::new())),
    ("brelu", |program, op| clip(program, op, op.float("t_min", 0.0), op.float("t_max", 24.0))),
    ("celu", |program, op| unary(program, op, "Celu", with([("alpha", float(op.float("alpha", 1.0)))]))),
    ("expm1", |program, op| shifted(program, op, 0.0, "Exp", -1.0)),
    ("hard_shrink", |program, op| shrink(program, op, op.float("threshold", 0.5), 0.0)),
    ("log10", |program, op| logarithm(program, op, 10.0)),
    ("log1p", |program, op| shifted(program, op, 1.0, "Log", 0.0)),
    ("log2", |program, op| logarithm(program, op, 2.0)),
    ("logsigmoid", log_sigmoid),
    ("maxout", maxout),
    ("selu", |program, op| {
        let (alpha, gamma) = (op.float("alpha", SELU.0), op.float("scale", SELU.1));
        unary(program, op, "Selu", with([("alpha", float(alpha)), ("gamma", float(gamma))]))
    }),
    ("softshrink", |program, op| shrink(program, op, op.float("lambda", 0.5), op.float("lambda", 0.5))),
    ("stanh", scaled_tanh),
    ("tanh_shrink", tanh_shrink),
    ("thresholded_relu", |program, op| {
        let alpha = op.float("threshold", 1.0);
        unary(program, op, "ThresholdedRelu", with([("alpha", float(alpha))]))
    }),
    ("trunc", truncate),
];

/// `x · min(max(x + offset, 0), threshold) / scale`, which ONNX has for the usual numbers.
fn hard_swish<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (offset, scale, threshold) =
        (op.float("offset", 3.0), op.float("scale", 6.0), op.float("threshold", 6.0));
    if (offset, scale, threshold) != (3.0, 6.0, 6.0) {
        // Newer versions of Paddle do not look at them, and older ones do.
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

/// `ln(1 + exp(beta · x)) / beta`. Beyond its threshold Paddle takes x itself, which differs by less than an f32 shows.
fn softplus<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, beta) = (program.input(op, "X")?, op.float("beta", 1.0));
    let made = if beta == 1.0 {
        program.apply("Softplus", &[x.id])
    } else {
        let beta = like(program, x, beta)?;
        let scaled = program.apply("Mul", &[x.id, beta]);
        let sum = program.apply("Softplus", &[scaled]);
        program.apply("Div", &[sum, beta])
    };
    program.give(op, "Out", made)
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

/// A function of `x + before`, with something added.
fn shifted<'m>(
    program: &mut Program<'m>,
    op: &'m OpDesc,
    before: f64,
    name: &str,
    behind: f64,
) -> Result<()> {
    let x = program.input(op, "X")?;
    let (before, behind) = (like(program, x, before)?, like(program, x, behind)?);
    let moved = program.apply("Add", &[x.id, before]);
    let made = program.apply(name, &[moved]);
    let made = program.apply("Add", &[made, behind]);
    program.give(op, "Out", made)
}

fn logarithm<'m>(program: &mut Program<'m>, op: &'m OpDesc, base: f64) -> Result<()> {
    let x = program.input(op, "X")?;
    let made = program.apply("Log", &[x.id]);
    let factor = like(program, x, base.ln())?;
    let made = program.apply("Div", &[made, factor]);
    program.give(op, "Out", made)
}

fn shrink<'m>(program: &mut Program<'m>, op: &'m OpDesc, limit: f64, bias: f64) -> Result<()> {
    unary(program, op, "Shrink", with([("lambd", float(limit)), ("bias", float(bias))]))
}

/// `ln(sigmoid(x))`, which is `−softplus(−x)` without the loss of what is near zero.
fn log_sigmoid<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let negative = program.apply("Neg", &[x]);
    let made = program.apply("Softplus", &[negative]);
    let made = program.apply("Neg", &[made]);
    program.give(op, "Out", made)
}

/// `b · tanh(a · x)`.
fn scaled_tanh<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let inner = like(program, x, op.float("scale_a", 0.67))?;
    let outer = like(program, x, op.float("scale_b", 1.7159))?;
    let scaled = program.apply("Mul", &[x.id, inner]);
    let bent = program.apply("Tanh", &[scaled]);
    let made = program.apply("Mul", &[bent, outer]);
    program.give(op, "Out", made)
}

fn tanh_shrink<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let bent = program.apply("Tanh", &[x]);
    let made = program.apply("Sub", &[x, bent]);
    program.give(op, "Out", made)
}

/// A number without its fraction.
fn truncate<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let (sign, size) = (program.apply("Sign", &[x]), program.apply("Abs", &[x]));
    let whole = program.apply("Floor", &[size]);
    let made = program.apply("Mul", &[sign, whole]);
    program.give(op, "Out", made)
}

/// The largest of each group of neighbours in a dimension.
fn maxout<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let (axis, groups) = (x.axis(op.int("axis", 1))?, op.int("groups", 1));
    let (before, behind) = (super::sizes(program, x, 0, axis), super::sizes(program, x, axis + 1, x.rank()?));
    let parts = program.ints(&[-1, groups]);
    let shape = program.node("Concat", &[before, parts, behind], with([("axis", Attribute::Int(0))]));
    let grouped = program.apply("Reshape", &[x.id, shape]);
    let axes = program.ints(&[axis + 1]);
    let made = program.node("ReduceMax", &[grouped, axes], with([("keepdims", Attribute::Int(0))]));
    program.give(op, "Out", made)
}
