//! Products and convolutions with what onnxruntime joins to them.

use oarlock_core::{Attribute, Attributes, Error, Result};

use super::activation::activated;
use super::lowering::{Lowering, OARLOCK};
use super::row::Row;
use crate::graph::ValueId;

pub(super) const OPS: &[Row] = &[
    Row {
        op: "FusedMatMul",
        inputs: "A B",
        attributes: "alpha transA transB transBatchA transBatchB",
        outputs: "Y",
        lower: matmul,
    },
    Row {
        op: "TransposeMatMul",
        inputs: "A B",
        attributes: "alpha transA transB transBatchA transBatchB",
        outputs: "Y",
        lower: matmul,
    },
    Row {
        op: "FusedGemm",
        inputs: "A B C?",
        attributes: "activation activation_alpha activation_beta activation_gamma alpha beta transA transB",
        outputs: "Y",
        lower: gemm,
    },
    Row { op: "GemmFastGelu", inputs: "X W bias?", attributes: "", outputs: "Y", lower: gemm_fast_gelu },
    Row {
        op: "FusedConv",
        inputs: "X W B? Z?",
        attributes: "activation activation_params auto_pad dilations group kernel_shape pads strides",
        outputs: "Y",
        lower: conv,
    },
];

/// The attributes that say where the windows of convolutions and pools lie.
pub(super) const WINDOW: [&str; 6] = ["auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"];

fn matmul(op: &mut Lowering<'_>) -> Result<()> {
    let (a, turns_a) = operand(op, op.input(0)?, "transA", "transBatchA")?;
    let (b, turns_b) = operand(op, op.input(1)?, "transB", "transBatchB")?;
    let alpha = op.float("alpha", 1.0)?;
    let made = if turns_a || turns_b {
        // How many dimensions there are is not known, so they cannot be turned by themselves.
        let made = op.with(
            "MatMul",
            &[a, b],
            [
                ("alpha", Attribute::Float(alpha)),
                ("transA", Attribute::Int(turns_a.into())),
                ("transB", Attribute::Int(turns_b.into())),
            ],
        );
        if let Some(node) = op.last() {
            (node.domain, node.opset) = (OARLOCK.into(), 1);
        }
        made
    } else {
        let made = op.apply("MatMul", &[a, b]);
        scaled(op, made, alpha)?
    };
    op.give(0, made);
    Ok(())
}

/// A value times a number.
pub(super) fn scaled(op: &mut Lowering<'_>, value: ValueId, factor: f64) -> Result<ValueId> {
    if factor == 1.0 {
        return Ok(value);
    }
    let factor = op.number(factor, value)?;
    Ok(op.apply("Mul", &[value, factor]))
}

/// An operand as MatMul wants it, or that it is still to be turned.
fn operand(op: &mut Lowering<'_>, value: ValueId, turns: &str, moves: &str) -> Result<(ValueId, bool)> {
    let (turns, moves) = (op.int(turns, 0)? != 0, op.int(moves, 0)? != 0);
    let Some(rank) = op.rank(value).and_then(|rank| i64::try_from(rank).ok()) else {
        if moves {
            let expected = "the shape of an operand with transposed batches";
            return Err(Error::unimplemented(format!(
                "expected {expected}, found that the model does not say it"
            )));
        }
        return Ok((value, turns));
    };
    if rank < 2 {
        return Ok((value, false));
    }
    let mut order: Vec<i64> = (0..rank).collect();
    if moves {
        order[..rank as usize - 1].rotate_left(1);
    }
    if turns {
        order.swap(rank as usize - 2, rank as usize - 1);
    }
    let value = if moves || turns { op.transpose(value, &order) } else { value };
    Ok((value, false))
}

fn gemm(op: &mut Lowering<'_>) -> Result<()> {
    let inputs = [Some(op.input(0)?), Some(op.input(1)?), op.maybe(2)];
    let attributes = op.copied(&["alpha", "beta", "transA", "transB"]);
    let made = op.of("Gemm", &inputs, attributes, 1)[0];
    let parameter = |name: &str| op.node.attributes.float(name);
    let parameters = [parameter("activation_alpha")?, parameter("activation_beta")?];
    let made = activated(op, made, &parameters)?;
    op.give(0, made);
    Ok(())
}

fn gemm_fast_gelu(op: &mut Lowering<'_>) -> Result<()> {
    let mut made = op.apply("MatMul", &[op.input(0)?, op.input(1)?]);
    if let Some(bias) = op.maybe(2) {
        made = op.apply("Add", &[made, bias]);
    }
    let made = op.with("Gelu", &[made], [("approximate", Attribute::String("tanh".to_owned()))]);
    op.give(0, made);
    Ok(())
}

/// The parameters of the activation of a convolution.
fn parameters(op: &Lowering<'_>) -> Result<Vec<Option<f64>>> {
    Ok(match op.node.attributes.get("activation_params") {
        Some(Attribute::Floats(list)) => list.iter().copied().map(Some).collect(),
        Some(Attribute::Ints(list)) if list.is_empty() => Vec::new(),
        None => Vec::new(),
        Some(other) => {
            let message = format!("expected a list of floats as `activation_params`, found {other:?}");
            return Err(Error::invalid_argument(message));
        }
    })
}

fn conv(op: &mut Lowering<'_>) -> Result<()> {
    let inputs = [Some(op.input(0)?), Some(op.input(1)?), op.maybe(2)];
    let attributes = op.copied(&WINDOW);
    let mut made = op.of("Conv", &inputs, attributes, 1)[0];
    if let Some(sum) = op.maybe(3) {
        made = op.apply("Add", &[made, sum]);
    }
    let parameters = parameters(op)?;
    let made = activated(op, made, &parameters)?;
    op.give(0, made);
    Ok(())
}

/// How many dimensions images have, by the weights or the window of an op.
pub(super) fn spatial_rank(op: &Lowering<'_>, weights: ValueId) -> Result<usize> {
    let of_window = op.node.attributes.ints("kernel_shape")?.map(|kernel| kernel.len() + 2);
    of_window.or_else(|| op.rank(weights)).ok_or_else(|| {
        Error::unimplemented("expected a `kernel_shape` or weights of a known shape, found neither")
    })
}

/// An image whose channels are the last dimension, as ONNX has it.
pub(super) fn channels_first(op: &mut Lowering<'_>, value: ValueId, rank: usize) -> ValueId {
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    let order: Vec<i64> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    op.transpose(value, &order)
}

/// An image as ONNX has it, with its channels last.
pub(super) fn channels_last(op: &mut Lowering<'_>, value: ValueId, rank: usize) -> ValueId {
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    let order: Vec<i64> = [0].into_iter().chain(2..rank).chain([1]).collect();
    op.transpose(value, &order)
}

/// The attributes of a window that an op with channels last or first has.
pub(super) fn window(op: &Lowering<'_>) -> Attributes {
    op.copied(&[&WINDOW[..], &["ceil_mode", "count_include_pad"]].concat())
}
