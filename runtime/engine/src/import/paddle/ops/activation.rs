//! Functions of one element.

use oarlock_core::{Attribute, Attributes, Dtype, Error, Result};

use super::{TranslatorTable, add_scalar_like, float_attribute, int_attribute, lower_unary};
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;

/// The numbers of `selu` that keep mean and variance.
const SELU_CONSTANTS: (f64, f64) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);

pub(super) const ACTIVATION_OPS: TranslatorTable = &[
    ("abs", |program, op| lower_unary(program, op, "Abs", Attributes::new())),
    ("ceil", |program, op| lower_unary(program, op, "Ceil", Attributes::new())),
    ("clip", |program, op| {
        lower_clip(program, op, op.float_attribute("min", f64::MIN), op.float_attribute("max", f64::MAX))
    }),
    ("cos", |program, op| lower_unary(program, op, "Cos", Attributes::new())),
    ("elu", |program, op| {
        lower_unary(
            program,
            op,
            "Elu",
            build_attributes([("alpha", float_attribute(op.float_attribute("alpha", 1.0)))]),
        )
    }),
    ("erf", |program, op| lower_unary(program, op, "Erf", Attributes::new())),
    ("exp", |program, op| lower_unary(program, op, "Exp", Attributes::new())),
    ("floor", |program, op| lower_unary(program, op, "Floor", Attributes::new())),
    ("gelu", |program, op| {
        let kind = if op.bool_attribute("approximate", false) { "tanh" } else { "none" };
        lower_unary(program, op, "Gelu", build_attributes([("approximate", Attribute::String(kind.into()))]))
    }),
    ("hard_sigmoid", |program, op| {
        let (alpha, beta) = (op.float_attribute("slope", 0.2), op.float_attribute("offset", 0.5));
        lower_unary(
            program,
            op,
            "HardSigmoid",
            build_attributes([("alpha", float_attribute(alpha)), ("beta", float_attribute(beta))]),
        )
    }),
    ("hard_swish", lower_hard_swish),
    ("leaky_relu", |program, op| {
        lower_unary(
            program,
            op,
            "LeakyRelu",
            build_attributes([("alpha", float_attribute(op.float_attribute("alpha", 0.02)))]),
        )
    }),
    ("log", |program, op| lower_unary(program, op, "Log", Attributes::new())),
    ("log_softmax", |program, op| {
        lower_unary(
            program,
            op,
            "LogSoftmax",
            build_attributes([("axis", int_attribute(op.int_attribute("axis", -1)))]),
        )
    }),
    ("mish", |program, op| lower_unary(program, op, "Mish", Attributes::new())),
    ("prelu", lower_prelu),
    ("reciprocal", |program, op| lower_unary(program, op, "Reciprocal", Attributes::new())),
    ("relu", |program, op| lower_unary(program, op, "Relu", Attributes::new())),
    ("relu6", |program, op| lower_clip(program, op, 0.0, op.float_attribute("threshold", 6.0))),
    ("round", |program, op| lower_unary(program, op, "Round", Attributes::new())),
    ("rsqrt", lower_rsqrt),
    ("sigmoid", |program, op| lower_unary(program, op, "Sigmoid", Attributes::new())),
    ("sign", |program, op| lower_unary(program, op, "Sign", Attributes::new())),
    ("silu", lower_swish),
    ("sin", |program, op| lower_unary(program, op, "Sin", Attributes::new())),
    ("softmax", |program, op| {
        lower_unary(
            program,
            op,
            "Softmax",
            build_attributes([("axis", int_attribute(op.int_attribute("axis", -1)))]),
        )
    }),
    ("softplus", lower_softplus),
    ("softsign", |program, op| lower_unary(program, op, "Softsign", Attributes::new())),
    ("sqrt", |program, op| lower_unary(program, op, "Sqrt", Attributes::new())),
    ("square", lower_square),
    ("swish", lower_swish),
    ("tanh", |program, op| lower_unary(program, op, "Tanh", Attributes::new())),
    ("acos", |program, op| lower_unary(program, op, "Acos", Attributes::new())),
    ("acosh", |program, op| lower_unary(program, op, "Acosh", Attributes::new())),
    ("asin", |program, op| lower_unary(program, op, "Asin", Attributes::new())),
    ("asinh", |program, op| lower_unary(program, op, "Asinh", Attributes::new())),
    ("atan", |program, op| lower_unary(program, op, "Atan", Attributes::new())),
    ("atanh", |program, op| lower_unary(program, op, "Atanh", Attributes::new())),
    ("cosh", |program, op| lower_unary(program, op, "Cosh", Attributes::new())),
    ("sinh", |program, op| lower_unary(program, op, "Sinh", Attributes::new())),
    ("tan", |program, op| lower_unary(program, op, "Tan", Attributes::new())),
    ("brelu", |program, op| {
        lower_clip(program, op, op.float_attribute("t_min", 0.0), op.float_attribute("t_max", 24.0))
    }),
    ("celu", |program, op| {
        lower_unary(
            program,
            op,
            "Celu",
            build_attributes([("alpha", float_attribute(op.float_attribute("alpha", 1.0)))]),
        )
    }),
    ("expm1", |program, op| lower_shifted_function(program, op, 0.0, "Exp", -1.0)),
    ("hard_shrink", |program, op| lower_shrink(program, op, op.float_attribute("threshold", 0.5), 0.0)),
    ("log10", |program, op| lower_logarithm(program, op, 10.0)),
    ("log1p", |program, op| lower_shifted_function(program, op, 1.0, "Log", 0.0)),
    ("log2", |program, op| lower_logarithm(program, op, 2.0)),
    ("logsigmoid", lower_log_sigmoid),
    ("maxout", lower_maxout),
    ("selu", |program, op| {
        let (alpha, gamma) =
            (op.float_attribute("alpha", SELU_CONSTANTS.0), op.float_attribute("scale", SELU_CONSTANTS.1));
        lower_unary(
            program,
            op,
            "Selu",
            build_attributes([("alpha", float_attribute(alpha)), ("gamma", float_attribute(gamma))]),
        )
    }),
    ("softshrink", |program, op| {
        lower_shrink(program, op, op.float_attribute("lambda", 0.5), op.float_attribute("lambda", 0.5))
    }),
    ("stanh", lower_scaled_tanh),
    ("tanh_shrink", lower_tanh_shrink),
    ("thresholded_relu", |program, op| {
        let alpha = op.float_attribute("threshold", 1.0);
        lower_unary(program, op, "ThresholdedRelu", build_attributes([("alpha", float_attribute(alpha))]))
    }),
    ("trunc", lower_truncate),
];

/// `x · min(max(x + offset, 0), threshold) / scale`, which ONNX has for the usual numbers.
fn lower_hard_swish<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (offset, scale, threshold) = (
        op.float_attribute("offset", 3.0),
        op.float_attribute("scale", 6.0),
        op.float_attribute("threshold", 6.0),
    );
    if (offset, scale, threshold) != (3.0, 6.0, 6.0) {
        // Newer versions of Paddle do not look at them, and older ones do.
        let found = format!("{offset}, {scale} and {threshold}");
        return Err(Error::unimplemented(format!(
            "expected `offset`, `scale` and `threshold` to be 3, 6 and 6, found {found}"
        )));
    }
    lower_unary(program, op, "HardSwish", Attributes::new())
}

/// `x · sigmoid(beta · x)`.
fn lower_swish<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, beta) = (program.input(op, "X")?.id, op.float_attribute("beta", 1.0));
    let scaled = if beta == 1.0 {
        x
    } else {
        let beta = program.add_scalar(beta, program.input_dtype(op, "X").unwrap_or(Dtype::F32))?;
        program.add_op_with("Mul", &[x, beta], Attributes::new())
    };
    let gate = program.add_op_with("Sigmoid", &[scaled], Attributes::new());
    let made = program.add_op_with("Mul", &[x, gate], Attributes::new());
    program.set_output(op, "Out", made)
}

/// `ln(1 + exp(beta · x)) / beta`. Beyond its threshold Paddle takes x itself, which differs by less than an f32 shows.
fn lower_softplus<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, beta) = (program.input(op, "X")?, op.float_attribute("beta", 1.0));
    let made = if beta == 1.0 {
        program.add_op("Softplus", &[x.id])
    } else {
        let beta = add_scalar_like(program, x, beta)?;
        let scaled = program.add_op("Mul", &[x.id, beta]);
        let sum = program.add_op("Softplus", &[scaled]);
        program.add_op("Div", &[sum, beta])
    };
    program.set_output(op, "Out", made)
}

fn lower_square<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let made = program.add_op_with("Mul", &[x, x], Attributes::new());
    program.set_output(op, "Out", made)
}

fn lower_rsqrt<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let root = program.add_op_with("Sqrt", &[x], Attributes::new());
    let made = program.add_op_with("Reciprocal", &[root], Attributes::new());
    program.set_output(op, "Out", made)
}

/// Limits, which may also be operands.
fn lower_clip<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, low: f64, high: f64) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let dtype = program.input_dtype(op, "X").unwrap_or(Dtype::F32);
    let mut limit = |name: &str, value: f64| match program.optional_input(op, name)? {
        Some(given) => Ok(given.id),
        None => program.add_scalar(value, dtype),
    };
    let (low, high) = (limit("Min", low)?, limit("Max", high)?);
    let made = program.add_op_with("Clip", &[x, low, high], Attributes::new());
    program.set_output(op, "Out", made)
}

/// A slope for all, for each channel, or for each element.
fn lower_prelu<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect_attribute("mode", &["all", "channel", "element"])?;
    op.expect_attribute("data_format", &["NCHW", "AnyLayout"])?;
    let (x, slope) = (program.input(op, "X")?, program.input(op, "Alpha")?);
    let mut aligned = slope.id;
    if op.text_attribute("mode") == "channel" {
        let behind = x.rank()?.saturating_sub(2);
        let shape: Vec<i64> = [-1].into_iter().chain((0..behind).map(|_| 1)).collect();
        let shape = program.add_ints(&shape);
        aligned = program.add_op_with("Reshape", &[slope.id, shape], Attributes::new());
    }
    let made = program.add_op_with("PRelu", &[x.id, aligned], Attributes::new());
    program.set_output(op, "Out", made)
}

/// A function of `x + before`, with something added.
fn lower_shifted_function<'m>(
    program: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    before: f64,
    name: &str,
    behind: f64,
) -> Result<()> {
    let x = program.input(op, "X")?;
    let (before, behind) = (add_scalar_like(program, x, before)?, add_scalar_like(program, x, behind)?);
    let moved = program.add_op("Add", &[x.id, before]);
    let made = program.add_op(name, &[moved]);
    let made = program.add_op("Add", &[made, behind]);
    program.set_output(op, "Out", made)
}

fn lower_logarithm<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, base: f64) -> Result<()> {
    let x = program.input(op, "X")?;
    let made = program.add_op("Log", &[x.id]);
    let factor = add_scalar_like(program, x, base.ln())?;
    let made = program.add_op("Div", &[made, factor]);
    program.set_output(op, "Out", made)
}

fn lower_shrink<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc, limit: f64, bias: f64) -> Result<()> {
    lower_unary(
        program,
        op,
        "Shrink",
        build_attributes([("lambd", float_attribute(limit)), ("bias", float_attribute(bias))]),
    )
}

/// `ln(sigmoid(x))`, which is `−softplus(−x)` without the loss of what is near zero.
fn lower_log_sigmoid<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let negative = program.add_op("Neg", &[x]);
    let made = program.add_op("Softplus", &[negative]);
    let made = program.add_op("Neg", &[made]);
    program.set_output(op, "Out", made)
}

/// `b · tanh(a · x)`.
fn lower_scaled_tanh<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let inner = add_scalar_like(program, x, op.float_attribute("scale_a", 0.67))?;
    let outer = add_scalar_like(program, x, op.float_attribute("scale_b", 1.7159))?;
    let scaled = program.add_op("Mul", &[x.id, inner]);
    let bent = program.add_op("Tanh", &[scaled]);
    let made = program.add_op("Mul", &[bent, outer]);
    program.set_output(op, "Out", made)
}

fn lower_tanh_shrink<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let bent = program.add_op("Tanh", &[x]);
    let made = program.add_op("Sub", &[x, bent]);
    program.set_output(op, "Out", made)
}

/// A number without its fraction.
fn lower_truncate<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?.id;
    let (sign, size) = (program.add_op("Sign", &[x]), program.add_op("Abs", &[x]));
    let whole = program.add_op("Floor", &[size]);
    let made = program.add_op("Mul", &[sign, whole]);
    program.set_output(op, "Out", made)
}

/// The largest of each group of neighbours in a dimension.
fn lower_maxout<'m>(program: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = program.input(op, "X")?;
    let (axis, groups) = (x.normalize_axis(op.int_attribute("axis", 1))?, op.int_attribute("groups", 1));
    let (before, behind) =
        (super::slice_shape(program, x, 0, axis), super::slice_shape(program, x, axis + 1, x.rank()?));
    let parts = program.add_ints(&[-1, groups]);
    let shape = program.add_op_with(
        "Concat",
        &[before, parts, behind],
        build_attributes([("axis", Attribute::Int(0))]),
    );
    let grouped = program.add_op("Reshape", &[x.id, shape]);
    let axes = program.add_ints(&[axis + 1]);
    let made = program.add_op_with(
        "ReduceMax",
        &[grouped, axes],
        build_attributes([("keepdims", Attribute::Int(0))]),
    );
    program.set_output(op, "Out", made)
}
