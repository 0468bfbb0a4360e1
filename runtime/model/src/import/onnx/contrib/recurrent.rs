//! Recurrent layers with 8-bit weights.

use oarlock_core::{Dtype, Result};

use super::contrib_op::ContribOp;
use super::lowering::ContribLowering;
use crate::graph::ValueId;
use oarlock_core::schema::OARLOCK_DOMAIN;

pub(super) const RECURRENT_OPS: &[ContribOp] = &[ContribOp {
    op: "DynamicQuantizeLSTM",
    inputs: "X W R B? sequence_lens? initial_h? initial_c? P? W_scale W_zero_point R_scale R_zero_point",
    attributes: "activation_alpha activation_beta activations clip direction hidden_size input_forget",
    outputs: "Y? Y_h? Y_c?",
    lower: lower_quantized_lstm,
}];

/// Replacement for constant weights, which is what quantization tools write.
const QUANTIZED_LSTM_OP: &str = "DynamicQuantizedLSTM";

/// Lowers to Oarlock's own op, or else to an LSTM on floats, which does not round the activations in between.
fn lower_quantized_lstm(op: &mut ContribLowering<'_>) -> Result<()> {
    let attributes = op.copy_attributes(&[
        "activation_alpha",
        "activation_beta",
        "activations",
        "clip",
        "direction",
        "hidden_size",
        "input_forget",
    ]);
    let is_known =
        |index: usize| op.optional_input(index).is_some_and(|value| op.known_constant(value).is_some());
    let result = if [1, 2, 8, 9, 10, 11].into_iter().all(is_known) {
        let inputs: Vec<Option<ValueId>> = (0..12).map(|index| op.optional_input(index)).collect();
        let result = op.add_node(QUANTIZED_LSTM_OP, &inputs, attributes, 3);
        if let Some(node) = op.last_node() {
            (node.domain, node.opset) = (OARLOCK_DOMAIN.into(), 1);
        }
        result
    } else {
        let [weights, recurrent] = [[1, 8, 9], [2, 10, 11]].map(|places| dequantize_weights(op, places));
        let inputs = [Some(op.input(0)?), Some(weights?), Some(recurrent?)].into_iter();
        let inputs: Vec<Option<ValueId>> =
            inputs.chain((3..8).map(|index| op.optional_input(index))).collect();
        op.add_node("LSTM", &inputs, attributes, 3)
    };
    result.iter().enumerate().for_each(|(index, result)| op.set_output(index, *result));
    Ok(())
}

/// Dequantizes weights and transposes them to ONNX's layout: a row for each output.
fn dequantize_weights(op: &mut ContribLowering<'_>, [weights, scale, zero]: [usize; 3]) -> Result<ValueId> {
    let is_both = op.node.attributes.get_string("direction")? == Some("bidirectional");
    let [scale, zero] = [op.input(scale)?, op.input(zero)?]
        .map(|step| op.add_reshape(step, &[if is_both { 2 } else { 1 }, 1, -1]));
    let [weights, zero] = [op.input(weights)?, zero].map(|numbers| op.add_cast(numbers, Dtype::F32));
    let moved = op.add_op("Sub", &[weights, zero]);
    let result = op.add_op("Mul", &[moved, scale]);
    Ok(op.add_transpose(result, &[0, 2, 1]))
}
