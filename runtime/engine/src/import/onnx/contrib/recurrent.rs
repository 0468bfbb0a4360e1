//! Recurrent layers whose weights are of eight bits.

use oarlock_core::{Dtype, Result};

use super::lowering::Lowering;
use super::row::Row;
use crate::graph::ValueId;

pub(super) const OPS: &[Row] = &[Row {
    op: "DynamicQuantizeLSTM",
    inputs: "X W R B? sequence_lens? initial_h? initial_c? P? W_scale W_zero_point R_scale R_zero_point",
    attributes: "activation_alpha activation_beta activations clip direction hidden_size input_forget",
    outputs: "Y? Y_h? Y_c?",
    lower: lstm,
}];

/// What takes its place where weights are constant, as they are in models that tools write.
const OWN: &str = "DynamicQuantizedLSTM";

/// An op of this program's own, or else the same with floats, where what goes through the layer is not rounded on the way.
fn lstm(op: &mut Lowering<'_>) -> Result<()> {
    let attributes = op.copied(&[
        "activation_alpha",
        "activation_beta",
        "activations",
        "clip",
        "direction",
        "hidden_size",
        "input_forget",
    ]);
    let is_known = |index: usize| op.maybe(index).is_some_and(|value| op.known(value).is_some());
    let made = if [1, 2, 8, 9, 10, 11].into_iter().all(is_known) {
        let inputs: Vec<Option<ValueId>> = (0..12).map(|index| op.maybe(index)).collect();
        let made = op.of(OWN, &inputs, attributes, 3);
        if let Some(node) = op.last() {
            (node.domain, node.opset) = ("oarlock".into(), 1);
        }
        made
    } else {
        let [weights, recurrent] = [[1, 8, 9], [2, 10, 11]].map(|places| real(op, places));
        let inputs = [Some(op.input(0)?), Some(weights?), Some(recurrent?)].into_iter();
        let inputs: Vec<Option<ValueId>> = inputs.chain((3..8).map(|index| op.maybe(index))).collect();
        op.of("LSTM", &inputs, attributes, 3)
    };
    made.iter().enumerate().for_each(|(index, made)| op.give(index, *made));
    Ok(())
}

/// Weights as floats, as ONNX has them: a row for each output.
fn real(op: &mut Lowering<'_>, [weights, scale, zero]: [usize; 3]) -> Result<ValueId> {
    let is_both = op.node.attributes.string("direction")? == Some("bidirectional");
    let [scale, zero] = [op.input(scale)?, op.input(zero)?]
        .map(|step| op.reshape(step, &[if is_both { 2 } else { 1 }, 1, -1]));
    let [weights, zero] = [op.input(weights)?, zero].map(|numbers| op.cast(numbers, Dtype::F32));
    let moved = op.apply("Sub", &[weights, zero]);
    let made = op.apply("Mul", &[moved, scale]);
    Ok(op.transpose(made, &[0, 2, 1]))
}
