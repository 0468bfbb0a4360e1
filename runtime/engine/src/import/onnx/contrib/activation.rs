//! Activations, alone and with what is added before.

use oarlock_core::{Attribute, Attributes, Error, Result};

use super::lowering::Lowering;
use super::row::Row;
use crate::graph::ValueId;

pub(super) const OPS: &[Row] = &[
    Row { op: "Gelu", inputs: "X", attributes: "", outputs: "Y", lower: |op| gelu_of_sum(op, "none") },
    Row { op: "BiasGelu", inputs: "A B", attributes: "", outputs: "C", lower: |op| gelu_of_sum(op, "none") },
    Row {
        op: "FastGelu",
        inputs: "X bias?",
        attributes: "",
        outputs: "Y",
        lower: |op| gelu_of_sum(op, "tanh"),
    },
    Row { op: "QuickGelu", inputs: "X", attributes: "alpha", outputs: "Y", lower: quick_gelu },
    Row { op: "BiasAdd", inputs: "X bias skip", attributes: "", outputs: "Y", lower: bias_add },
    Row { op: "BiasSplitGelu", inputs: "X bias", attributes: "", outputs: "Y", lower: bias_split_gelu },
];

fn gelu(op: &mut Lowering<'_>, x: ValueId, approximate: &str) -> ValueId {
    op.with("Gelu", &[x], [("approximate", Attribute::String(approximate.to_owned()))])
}

fn gelu_of_sum(op: &mut Lowering<'_>, approximate: &str) -> Result<()> {
    let mut x = op.input(0)?;
    if let Some(bias) = op.maybe(1) {
        x = op.apply("Add", &[x, bias]);
    }
    let made = gelu(op, x, approximate);
    op.give(0, made);
    Ok(())
}

/// x · sigmoid(alpha · x).
fn quick_gelu(op: &mut Lowering<'_>) -> Result<()> {
    let x = op.input(0)?;
    let alpha = op.float("alpha", f64::from(1.702_f32))?;
    let inner = if alpha == 1.0 {
        x
    } else {
        let alpha = op.number(alpha, x)?;
        op.apply("Mul", &[x, alpha])
    };
    let gate = op.apply("Sigmoid", &[inner]);
    let made = op.apply("Mul", &[x, gate]);
    op.give(0, made);
    Ok(())
}

fn bias_add(op: &mut Lowering<'_>) -> Result<()> {
    let sum = op.apply("Add", &[op.input(0)?, op.input(1)?]);
    let made = op.apply("Add", &[sum, op.input(2)?]);
    op.give(0, made);
    Ok(())
}

/// One half of a sum times GELU of the other.
fn bias_split_gelu(op: &mut Lowering<'_>) -> Result<()> {
    let sum = op.apply("Add", &[op.input(0)?, op.input(1)?]);
    let halves = op.parts(sum, -1, 2);
    let gate = gelu(op, halves[1], "none");
    let made = op.apply("Mul", &[halves[0], gate]);
    op.give(0, made);
    Ok(())
}

/// The activation that an op ends in, by the name and the parameters that the op has for it.
pub(super) fn activated(op: &mut Lowering<'_>, x: ValueId, parameters: &[Option<f64>]) -> Result<ValueId> {
    let name = op.node.attributes.string("activation")?.unwrap_or_default().to_owned();
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
            let low = op.number(first.unwrap_or(f64::from(f32::MIN)), x)?;
            let high = op.number(second.unwrap_or(f64::from(f32::MAX)), x)?;
            return Ok(op.apply("Clip", &[x, low, high]));
        }
        other => {
            let expected = "`Relu`, `Sigmoid`, `Tanh`, `Softplus`, `Softsign`, `HardSwish`, `LeakyRelu`, `Elu`, \
                            `HardSigmoid` or `Clip` as `activation`";
            return Err(Error::unimplemented(format!("expected {expected}, found `{other}`")));
        }
    }
    Ok(op.of(&name, &[Some(x)], attributes, 1)[0])
}
