//! Products and convolutions with the activations that onnxruntime fuses into them.

use oarlock_core::{Attribute, Attributes, Error, Result};

use super::activation::add_activation;
use super::contrib_op::ContribOp;
use super::lowering::ContribLowering;
use crate::graph::ValueId;
use oarlock_core::schema::OARLOCK_DOMAIN;

pub(super) const PRODUCT_OPS: &[ContribOp] = &[
    ContribOp {
        op: "FusedMatMul",
        inputs: "A B",
        attributes: "alpha transA transB transBatchA transBatchB",
        outputs: "Y",
        lower: lower_fused_matmul,
    },
    ContribOp {
        op: "TransposeMatMul",
        inputs: "A B",
        attributes: "alpha transA transB transBatchA transBatchB",
        outputs: "Y",
        lower: lower_fused_matmul,
    },
    ContribOp {
        op: "FusedGemm",
        inputs: "A B C?",
        attributes: "activation activation_alpha activation_beta activation_gamma alpha beta transA transB",
        outputs: "Y",
        lower: lower_gemm,
    },
    ContribOp {
        op: "GemmFastGelu",
        inputs: "X W bias?",
        attributes: "",
        outputs: "Y",
        lower: lower_gemm_fast_gelu,
    },
    ContribOp {
        op: "FusedConv",
        inputs: "X W B? Z?",
        attributes: "activation activation_params auto_pad dilations group kernel_shape pads strides",
        outputs: "Y",
        lower: lower_fused_conv,
    },
];

/// Attributes that define the windows of convolutions and pools.
pub(super) const WINDOW_ATTRIBUTES: [&str; 6] =
    ["auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"];

fn lower_fused_matmul(op: &mut ContribLowering<'_>) -> Result<()> {
    let (a, turns_a) = transposed_operand(op, op.input(0)?, "transA", "transBatchA")?;
    let (b, turns_b) = transposed_operand(op, op.input(1)?, "transB", "transBatchB")?;
    let alpha = op.float_attribute("alpha", 1.0)?;
    let result = if turns_a || turns_b {
        // The ranks are unknown, so the operands cannot be transposed by separate nodes.
        let result = op.add_op_with(
            "MatMul",
            &[a, b],
            [
                ("alpha", Attribute::Float(alpha)),
                ("transA", Attribute::Int(turns_a.into())),
                ("transB", Attribute::Int(turns_b.into())),
            ],
        );
        if let Some(node) = op.last_node() {
            (node.domain, node.opset) = (OARLOCK_DOMAIN.into(), 1);
        }
        result
    } else {
        let result = op.add_op("MatMul", &[a, b]);
        multiply_by(op, result, alpha)?
    };
    op.set_output(0, result);
    Ok(())
}

pub(super) fn multiply_by(op: &mut ContribLowering<'_>, value: ValueId, factor: f64) -> Result<ValueId> {
    if factor == 1.0 {
        return Ok(value);
    }
    let factor = op.add_scalar_like(factor, value)?;
    Ok(op.add_op("Mul", &[value, factor]))
}

/// Brings an operand into the order that `MatMul` expects; true if it still has to be transposed.
fn transposed_operand(
    op: &mut ContribLowering<'_>,
    value: ValueId,
    turns: &str,
    moves: &str,
) -> Result<(ValueId, bool)> {
    let (turns, moves) = (op.int_attribute(turns, 0)? != 0, op.int_attribute(moves, 0)? != 0);
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
    let value = if moves || turns { op.add_transpose(value, &order) } else { value };
    Ok((value, false))
}

fn lower_gemm(op: &mut ContribLowering<'_>) -> Result<()> {
    let inputs = [Some(op.input(0)?), Some(op.input(1)?), op.optional_input(2)];
    let attributes = op.copy_attributes(&["alpha", "beta", "transA", "transB"]);
    let result = op.add_node("Gemm", &inputs, attributes, 1)[0];
    let parameter = |name: &str| op.node.attributes.get_float(name);
    let parameters = [parameter("activation_alpha")?, parameter("activation_beta")?];
    let result = add_activation(op, result, &parameters)?;
    op.set_output(0, result);
    Ok(())
}

fn lower_gemm_fast_gelu(op: &mut ContribLowering<'_>) -> Result<()> {
    let mut result = op.add_op("MatMul", &[op.input(0)?, op.input(1)?]);
    if let Some(bias) = op.optional_input(2) {
        result = op.add_op("Add", &[result, bias]);
    }
    let result = op.add_op_with("Gelu", &[result], [("approximate", Attribute::String("tanh".to_owned()))]);
    op.set_output(0, result);
    Ok(())
}

fn activation_parameters(op: &ContribLowering<'_>) -> Result<Vec<Option<f64>>> {
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

fn lower_fused_conv(op: &mut ContribLowering<'_>) -> Result<()> {
    let inputs = [Some(op.input(0)?), Some(op.input(1)?), op.optional_input(2)];
    let attributes = op.copy_attributes(&WINDOW_ATTRIBUTES);
    let mut result = op.add_node("Conv", &inputs, attributes, 1)[0];
    if let Some(sum) = op.optional_input(3) {
        result = op.add_op("Add", &[result, sum]);
    }
    let parameters = activation_parameters(op)?;
    let result = add_activation(op, result, &parameters)?;
    op.set_output(0, result);
    Ok(())
}

/// The rank of images, from the window or the weights.
pub(super) fn spatial_rank(op: &ContribLowering<'_>, weights: ValueId) -> Result<usize> {
    let of_window = op.node.attributes.get_ints("kernel_shape")?.map(|kernel| kernel.len() + 2);
    of_window.or_else(|| op.rank(weights)).ok_or_else(|| {
        Error::unimplemented("expected a `kernel_shape` or weights of a known shape, found neither")
    })
}

/// Transposes from NHWC to NCHW.
pub(super) fn to_channels_first(op: &mut ContribLowering<'_>, value: ValueId, rank: usize) -> ValueId {
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    let order: Vec<i64> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    op.add_transpose(value, &order)
}

/// Transposes from NCHW to NHWC.
pub(super) fn to_channels_last(op: &mut ContribLowering<'_>, value: ValueId, rank: usize) -> ValueId {
    let rank = i64::try_from(rank).unwrap_or(i64::MAX);
    let order: Vec<i64> = [0].into_iter().chain(2..rank).chain([1]).collect();
    op.add_transpose(value, &order)
}

/// Window attributes of an op in either layout.
pub(super) fn window_attributes(op: &ContribLowering<'_>) -> Attributes {
    op.copy_attributes(&[&WINDOW_ATTRIBUTES[..], &["ceil_mode", "count_include_pad"]].concat())
}
