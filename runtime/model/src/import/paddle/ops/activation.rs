//! Elementwise functions of one operand.

use oarlock_core::{Attribute, Attributes, Dtype, Error, Result};

use super::{TranslatorTable, add_scalar_like, float_attribute, int_attribute, lower_unary};
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;

/// Scale factors of `selu` that preserve mean and variance.
const SELU_CONSTANTS: (f64, f64) = (1.673_263_242_354_377_2, 1.050_700_987_355_480_5);

pub(super) const ACTIVATION_OPS: TranslatorTable = &[
    ("abs", |importer, op| lower_unary(importer, op, "Abs", Attributes::new())),
    ("acos", |importer, op| lower_unary(importer, op, "Acos", Attributes::new())),
    ("acosh", |importer, op| lower_unary(importer, op, "Acosh", Attributes::new())),
    ("asin", |importer, op| lower_unary(importer, op, "Asin", Attributes::new())),
    ("asinh", |importer, op| lower_unary(importer, op, "Asinh", Attributes::new())),
    ("atan", |importer, op| lower_unary(importer, op, "Atan", Attributes::new())),
    ("atanh", |importer, op| lower_unary(importer, op, "Atanh", Attributes::new())),
    ("brelu", |importer, op| {
        lower_clip(importer, op, op.float_attribute("t_min", 0.0), op.float_attribute("t_max", 24.0))
    }),
    ("ceil", |importer, op| lower_unary(importer, op, "Ceil", Attributes::new())),
    ("celu", |importer, op| {
        lower_unary(
            importer,
            op,
            "Celu",
            build_attributes([("alpha", float_attribute(op.float_attribute("alpha", 1.0)))]),
        )
    }),
    ("clip", |importer, op| {
        lower_clip(importer, op, op.float_attribute("min", f64::MIN), op.float_attribute("max", f64::MAX))
    }),
    ("cos", |importer, op| lower_unary(importer, op, "Cos", Attributes::new())),
    ("cosh", |importer, op| lower_unary(importer, op, "Cosh", Attributes::new())),
    ("elu", |importer, op| {
        lower_unary(
            importer,
            op,
            "Elu",
            build_attributes([("alpha", float_attribute(op.float_attribute("alpha", 1.0)))]),
        )
    }),
    ("erf", |importer, op| lower_unary(importer, op, "Erf", Attributes::new())),
    ("exp", |importer, op| lower_unary(importer, op, "Exp", Attributes::new())),
    ("expm1", |importer, op| lower_shifted_function(importer, op, 0.0, "Exp", -1.0)),
    ("floor", |importer, op| lower_unary(importer, op, "Floor", Attributes::new())),
    ("gelu", |importer, op| {
        let kind = if op.bool_attribute("approximate", false) { "tanh" } else { "none" };
        lower_unary(importer, op, "Gelu", build_attributes([("approximate", Attribute::String(kind.into()))]))
    }),
    ("hard_shrink", |importer, op| lower_shrink(importer, op, op.float_attribute("threshold", 0.5), 0.0)),
    ("hard_sigmoid", |importer, op| {
        let (alpha, beta) = (op.float_attribute("slope", 0.2), op.float_attribute("offset", 0.5));
        lower_unary(
            importer,
            op,
            "HardSigmoid",
            build_attributes([("alpha", float_attribute(alpha)), ("beta", float_attribute(beta))]),
        )
    }),
    ("hard_swish", lower_hard_swish),
    ("leaky_relu", |importer, op| {
        lower_unary(
            importer,
            op,
            "LeakyRelu",
            build_attributes([("alpha", float_attribute(op.float_attribute("alpha", 0.02)))]),
        )
    }),
    ("log", |importer, op| lower_unary(importer, op, "Log", Attributes::new())),
    ("log10", |importer, op| lower_logarithm(importer, op, 10.0)),
    ("log1p", |importer, op| lower_shifted_function(importer, op, 1.0, "Log", 0.0)),
    ("log2", |importer, op| lower_logarithm(importer, op, 2.0)),
    ("log_softmax", |importer, op| {
        lower_unary(
            importer,
            op,
            "LogSoftmax",
            build_attributes([("axis", int_attribute(op.int_attribute("axis", -1)))]),
        )
    }),
    ("logit", lower_logit),
    ("logsigmoid", lower_log_sigmoid),
    ("maxout", lower_maxout),
    ("mish", |importer, op| lower_unary(importer, op, "Mish", Attributes::new())),
    ("prelu", lower_prelu),
    ("reciprocal", |importer, op| lower_unary(importer, op, "Reciprocal", Attributes::new())),
    ("relu", |importer, op| lower_unary(importer, op, "Relu", Attributes::new())),
    ("relu6", |importer, op| lower_clip(importer, op, 0.0, op.float_attribute("threshold", 6.0))),
    ("round", |importer, op| lower_unary(importer, op, "Round", Attributes::new())),
    ("rrelu", |importer, op| {
        if !op.bool_attribute("is_test", false) {
            return Err(Error::unimplemented("expected an op that is not in training, found one that is"));
        }
        let slopes = [op.float_attribute("lower", 0.125), op.float_attribute("upper", 1.0 / 3.0)];
        let slope = float_attribute((slopes[0] + slopes[1]) / 2.0);
        lower_unary(importer, op, "LeakyRelu", build_attributes([("alpha", slope)]))
    }),
    ("rsqrt", lower_rsqrt),
    ("selu", |importer, op| {
        let (alpha, gamma) =
            (op.float_attribute("alpha", SELU_CONSTANTS.0), op.float_attribute("scale", SELU_CONSTANTS.1));
        lower_unary(
            importer,
            op,
            "Selu",
            build_attributes([("alpha", float_attribute(alpha)), ("gamma", float_attribute(gamma))]),
        )
    }),
    ("sigmoid", |importer, op| lower_unary(importer, op, "Sigmoid", Attributes::new())),
    ("sign", |importer, op| lower_unary(importer, op, "Sign", Attributes::new())),
    ("silu", lower_swish),
    ("sin", |importer, op| lower_unary(importer, op, "Sin", Attributes::new())),
    ("sinh", |importer, op| lower_unary(importer, op, "Sinh", Attributes::new())),
    ("softmax", |importer, op| {
        lower_unary(
            importer,
            op,
            "Softmax",
            build_attributes([("axis", int_attribute(op.int_attribute("axis", -1)))]),
        )
    }),
    ("softplus", lower_softplus),
    ("softshrink", |importer, op| {
        lower_shrink(importer, op, op.float_attribute("lambda", 0.5), op.float_attribute("lambda", 0.5))
    }),
    ("softsign", |importer, op| lower_unary(importer, op, "Softsign", Attributes::new())),
    ("sqrt", |importer, op| lower_unary(importer, op, "Sqrt", Attributes::new())),
    ("square", lower_square),
    ("stanh", lower_scaled_tanh),
    ("swiglu", lower_swiglu),
    ("swish", lower_swish),
    ("tan", |importer, op| lower_unary(importer, op, "Tan", Attributes::new())),
    ("tanh", |importer, op| lower_unary(importer, op, "Tanh", Attributes::new())),
    ("tanh_shrink", lower_tanh_shrink),
    ("thresholded_relu", |importer, op| {
        let alpha = op.float_attribute("threshold", 1.0);
        lower_unary(importer, op, "ThresholdedRelu", build_attributes([("alpha", float_attribute(alpha))]))
    }),
    ("trunc", lower_truncate),
];

/// `x · min(max(x + offset, 0), threshold) / scale`. ONNX has it for the usual constants only.
fn lower_hard_swish<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (offset, scale, threshold) = (
        op.float_attribute("offset", 3.0),
        op.float_attribute("scale", 6.0),
        op.float_attribute("threshold", 6.0),
    );
    if (offset, scale, threshold) != (3.0, 6.0, 6.0) {
        // Newer versions of Paddle ignore these attributes, and older ones do not.
        let found = format!("{offset}, {scale} and {threshold}");
        return Err(Error::unimplemented(format!(
            "expected `offset`, `scale` and `threshold` to be 3, 6 and 6, found {found}"
        )));
    }
    lower_unary(importer, op, "HardSwish", Attributes::new())
}

/// `x · sigmoid(beta · x)`.
fn lower_swish<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, beta) = (importer.input(op, "X")?.id, op.float_attribute("beta", 1.0));
    let scaled = if beta == 1.0 {
        x
    } else {
        let beta = importer.add_scalar(beta, importer.input_dtype(op, "X").unwrap_or(Dtype::F32))?;
        importer.add_op_with("Mul", &[x, beta], Attributes::new())
    };
    let gate = importer.add_op_with("Sigmoid", &[scaled], Attributes::new());
    let result = importer.add_op_with("Mul", &[x, gate], Attributes::new());
    importer.set_output(op, "Out", result)
}

/// `ln(1 + exp(beta · x)) / beta`. Beyond a threshold Paddle returns x itself, which differs by less than f32 resolves.
fn lower_softplus<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, beta) = (importer.input(op, "X")?, op.float_attribute("beta", 1.0));
    let result = if beta == 1.0 {
        importer.add_op("Softplus", &[x.id])
    } else {
        let beta = add_scalar_like(importer, x, beta)?;
        let scaled = importer.add_op("Mul", &[x.id, beta]);
        let sum = importer.add_op("Softplus", &[scaled]);
        importer.add_op("Div", &[sum, beta])
    };
    importer.set_output(op, "Out", result)
}

fn lower_square<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let result = importer.add_op_with("Mul", &[x, x], Attributes::new());
    importer.set_output(op, "Out", result)
}

fn lower_rsqrt<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let root = importer.add_op_with("Sqrt", &[x], Attributes::new());
    let result = importer.add_op_with("Reciprocal", &[root], Attributes::new());
    importer.set_output(op, "Out", result)
}

/// Clamps; the limits may also be operands.
fn lower_clip<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, low: f64, high: f64) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let dtype = importer.input_dtype(op, "X").unwrap_or(Dtype::F32);
    let mut limit = |name: &str, value: f64| match importer.optional_input(op, name)? {
        Some(given) => Ok(given.id),
        None => importer.add_scalar(value, dtype),
    };
    let (low, high) = (limit("Min", low)?, limit("Max", high)?);
    let result = importer.add_op_with("Clip", &[x, low, high], Attributes::new());
    importer.set_output(op, "Out", result)
}

/// One slope, or one for each channel or element.
fn lower_prelu<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    op.expect_attribute("mode", &["all", "channel", "element"])?;
    op.expect_attribute("data_format", &["NCHW", "AnyLayout"])?;
    let (x, slope) = (importer.input(op, "X")?, importer.input(op, "Alpha")?);
    let mut aligned = slope.id;
    if op.text_attribute("mode") == "channel" {
        let behind = x.rank()?.saturating_sub(2);
        let shape: Vec<i64> = [-1].into_iter().chain((0..behind).map(|_| 1)).collect();
        let shape = importer.add_ints(&shape);
        aligned = importer.add_op_with("Reshape", &[slope.id, shape], Attributes::new());
    }
    let result = importer.add_op_with("PRelu", &[x.id, aligned], Attributes::new());
    importer.set_output(op, "Out", result)
}

/// A function of `x + before`, plus `behind`.
fn lower_shifted_function<'m>(
    importer: &mut PaddleImporter<'m>,
    op: &'m OpDesc,
    before: f64,
    name: &str,
    behind: f64,
) -> Result<()> {
    let x = importer.input(op, "X")?;
    let (before, behind) = (add_scalar_like(importer, x, before)?, add_scalar_like(importer, x, behind)?);
    let moved = importer.add_op("Add", &[x.id, before]);
    let result = importer.add_op(name, &[moved]);
    let result = importer.add_op("Add", &[result, behind]);
    importer.set_output(op, "Out", result)
}

fn lower_logarithm<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, base: f64) -> Result<()> {
    let x = importer.input(op, "X")?;
    let result = importer.add_op("Log", &[x.id]);
    let factor = add_scalar_like(importer, x, base.ln())?;
    let result = importer.add_op("Div", &[result, factor]);
    importer.set_output(op, "Out", result)
}

fn lower_shrink<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc, limit: f64, bias: f64) -> Result<()> {
    lower_unary(
        importer,
        op,
        "Shrink",
        build_attributes([("lambd", float_attribute(limit)), ("bias", float_attribute(bias))]),
    )
}

/// `ln(sigmoid(x))`, computed as `−softplus(−x)`, which keeps precision near zero.
fn lower_log_sigmoid<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let negative = importer.add_op("Neg", &[x]);
    let result = importer.add_op("Softplus", &[negative]);
    let result = importer.add_op("Neg", &[result]);
    importer.set_output(op, "Out", result)
}

/// `b · tanh(a · x)`.
fn lower_scaled_tanh<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let inner = add_scalar_like(importer, x, op.float_attribute("scale_a", 0.67))?;
    let outer = add_scalar_like(importer, x, op.float_attribute("scale_b", 1.7159))?;
    let scaled = importer.add_op("Mul", &[x.id, inner]);
    let bent = importer.add_op("Tanh", &[scaled]);
    let result = importer.add_op("Mul", &[bent, outer]);
    importer.set_output(op, "Out", result)
}

fn lower_tanh_shrink<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let bent = importer.add_op("Tanh", &[x]);
    let result = importer.add_op("Sub", &[x, bent]);
    importer.set_output(op, "Out", result)
}

/// Rounds towards zero.
fn lower_truncate<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let (sign, size) = (importer.add_op("Sign", &[x]), importer.add_op("Abs", &[x]));
    let whole = importer.add_op("Floor", &[size]);
    let result = importer.add_op("Mul", &[sign, whole]);
    importer.set_output(op, "Out", result)
}

/// The maximum over each group of consecutive channels.
fn lower_maxout<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?;
    let (axis, groups) = (x.normalize_axis(op.int_attribute("axis", 1))?, op.int_attribute("groups", 1));
    let (before, behind) =
        (super::slice_shape(importer, x, 0, axis), super::slice_shape(importer, x, axis + 1, x.rank()?));
    let parts = importer.add_ints(&[-1, groups]);
    let shape = importer.add_op_with(
        "Concat",
        &[before, parts, behind],
        build_attributes([("axis", Attribute::Int(0))]),
    );
    let grouped = importer.add_op("Reshape", &[x.id, shape]);
    let axes = importer.add_ints(&[axis + 1]);
    let result = importer.add_op_with(
        "ReduceMax",
        &[grouped, axes],
        build_attributes([("keepdims", Attribute::Int(0))]),
    );
    importer.set_output(op, "Out", result)
}

/// The logarithm of the odds, of probabilities that are kept away from 0 and 1.
fn lower_logit<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (x, distance) = (importer.input(op, "X")?, op.float_attribute("eps", 0.0));
    let mut share = x.id;
    if distance > 0.0 {
        let (low, high) =
            (add_scalar_like(importer, x, distance)?, add_scalar_like(importer, x, 1.0 - distance)?);
        share = importer.add_op("Clip", &[share, low, high]);
    }
    let one = add_scalar_like(importer, x, 1.0)?;
    let rest = importer.add_op("Sub", &[one, share]);
    let odds = importer.add_op("Div", &[share, rest]);
    let result = importer.add_op("Log", &[odds]);
    importer.set_output(op, "Out", result)
}

/// SiLU of one operand times another; without the other, both are halves of one.
fn lower_swiglu<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let x = importer.input(op, "X")?.id;
    let [x, y] = match importer.optional_input(op, "Y")? {
        Some(y) => [x, y.id],
        None => {
            let halves = build_attributes([("axis", int_attribute(-1)), ("num_outputs", int_attribute(2))]);
            let halves = importer.add_node("Split", &[Some(x)], halves, 2);
            [halves[0], halves[1]]
        }
    };
    let gate = importer.add_op("Sigmoid", &[x]);
    let gated = importer.add_op("Mul", &[x, gate]);
    let result = importer.add_op("Mul", &[gated, y]);
    importer.set_output(op, "Out", result)
}
