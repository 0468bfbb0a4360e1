//! Activations, alone or fused with a bias.

use oarlock_core::{Attribute, Attributes, Error, Result};

use super::contrib_op::ContribOp;
use super::lowering::ContribLowering;
use crate::graph::ValueId;

pub(super) const ACTIVATION_OPS: &[ContribOp] = &[
    ContribOp {
        op: "Gelu",
        inputs: "X",
        attributes: "",
        outputs: "Y",
        lower: |op| lower_gelu_of_sum(op, "none"),
    },
    ContribOp {
        op: "BiasGelu",
        inputs: "A B",
        attributes: "",
        outputs: "C",
        lower: |op| lower_gelu_of_sum(op, "none"),
    },
    ContribOp {
        op: "FastGelu",
        inputs: "X bias?",
        attributes: "",
        outputs: "Y",
        lower: |op| lower_gelu_of_sum(op, "tanh"),
    },
    ContribOp { op: "QuickGelu", inputs: "X", attributes: "alpha", outputs: "Y", lower: lower_quick_gelu },
    ContribOp { op: "BiasAdd", inputs: "X bias skip", attributes: "", outputs: "Y", lower: lower_bias_add },
    ContribOp {
        op: "BiasSplitGelu",
        inputs: "X bias",
        attributes: "",
        outputs: "Y",
        lower: lower_bias_split_gelu,
    },
];

fn add_gelu(op: &mut ContribLowering<'_>, x: ValueId, approximate: &str) -> ValueId {
    op.add_op_with("Gelu", &[x], [("approximate", Attribute::String(approximate.to_owned()))])
}

fn lower_gelu_of_sum(op: &mut ContribLowering<'_>, approximate: &str) -> Result<()> {
    let mut x = op.input(0)?;
    if let Some(bias) = op.optional_input(1) {
        x = op.add_op("Add", &[x, bias]);
    }
    let result = add_gelu(op, x, approximate);
    op.set_output(0, result);
    Ok(())
}

/// x · sigmoid(alpha · x).
fn lower_quick_gelu(op: &mut ContribLowering<'_>) -> Result<()> {
    let x = op.input(0)?;
    let alpha = op.float_attribute("alpha", f64::from(1.702_f32))?;
    let inner = if alpha == 1.0 {
        x
    } else {
        let alpha = op.add_scalar_like(alpha, x)?;
        op.add_op("Mul", &[x, alpha])
    };
    let gate = op.add_op("Sigmoid", &[inner]);
    let result = op.add_op("Mul", &[x, gate]);
    op.set_output(0, result);
    Ok(())
}

fn lower_bias_add(op: &mut ContribLowering<'_>) -> Result<()> {
    let sum = op.add_op("Add", &[op.input(0)?, op.input(1)?]);
    let result = op.add_op("Add", &[sum, op.input(2)?]);
    op.set_output(0, result);
    Ok(())
}

/// Adds the bias, then multiplies one half by GELU of the other.
fn lower_bias_split_gelu(op: &mut ContribLowering<'_>) -> Result<()> {
    let sum = op.add_op("Add", &[op.input(0)?, op.input(1)?]);
    let halves = op.add_split(sum, -1, 2);
    let gate = add_gelu(op, halves[1], "none");
    let result = op.add_op("Mul", &[halves[0], gate]);
    op.set_output(0, result);
    Ok(())
}

/// Adds the activation named by the attribute `activation`, with parameters by position.
pub(super) fn add_activation(
    op: &mut ContribLowering<'_>,
    x: ValueId,
    parameters: &[Option<f64>],
) -> Result<ValueId> {
    let name = op.node.attributes.get_string("activation")?.unwrap_or_default().to_owned();
    let [first, second] = [0, 1].map(|index| parameters.get(index).copied().flatten());
    let mut attributes = Attributes::new();
    let mut set = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            attributes.set(name, Attribute::Float(value));
        }
    };
    match &*name {
        "" => return Ok(x),
        "Relu" | "Sigmoid" | "Tanh" | "Softplus" | "Softsign" | "HardSwish" => {}
        "LeakyRelu" | "Elu" => set("alpha", first),
        "HardSigmoid" => {
            set("alpha", first);
            set("beta", second);
        }
        "Clip" => {
            let low = op.add_scalar_like(first.unwrap_or(f64::from(f32::MIN)), x)?;
            let high = op.add_scalar_like(second.unwrap_or(f64::from(f32::MAX)), x)?;
            return Ok(op.add_op("Clip", &[x, low, high]));
        }
        other => {
            let expected = "`Relu`, `Sigmoid`, `Tanh`, `Softplus`, `Softsign`, `HardSwish`, `LeakyRelu`, `Elu`, \
                            `HardSigmoid` or `Clip` as `activation`";
            return Err(Error::unimplemented(format!("expected {expected}, found `{other}`")));
        }
    }
    Ok(op.add_node(&name, &[Some(x)], attributes, 1)[0])
}
