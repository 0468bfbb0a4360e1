//! Recurrent layers.

use oarlock_core::{Attribute, Dtype, Error, Result};

use super::{TranslatorTable, int_attribute, ints_attribute, text_attribute};
use crate::graph::ValueId;
use crate::import::error_location::invalid_model;
use crate::import::paddle::importer::{PaddleImporter, build_attributes};
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::PaddleOperand;

/// Limit on stacked layers.
const MAX_RECURRENT_LAYERS: i64 = 64;

pub(super) const RECURRENT_OPS: TranslatorTable = &[("rnn", lower_recurrent)];

/// LSTM, GRU or plain RNN.
struct RecurrentKind {
    /// Name of the ONNX op.
    op: &'static str,
    /// For each gate in ONNX's order, its position in Paddle's.
    gates: &'static [usize],
    /// Number of state tensors.
    states: usize,
    activation: &'static str,
}

fn recurrent_kind(op: &OpDesc) -> Result<RecurrentKind> {
    let of = |op, gates, states, activation| Ok(RecurrentKind { op, gates, states, activation });
    match op.text_attribute("mode") {
        "LSTM" => of("LSTM", &[0, 3, 1, 2], 2, ""),
        "GRU" => of("GRU", &[1, 0, 2], 1, ""),
        "RNN_TANH" => of("RNN", &[0], 1, "Tanh"),
        "RNN_RELU" => of("RNN", &[0], 1, "Relu"),
        other => Err(invalid_model("`mode` to be LSTM, GRU, RNN_TANH or RNN_RELU", other)),
    }
}

/// Stacked layers in one or both directions. The list of weights has all matrices first, then all biases.
fn lower_recurrent<'m>(importer: &mut PaddleImporter<'m>, op: &'m OpDesc) -> Result<()> {
    let (kind, layers) = (recurrent_kind(op)?, op.int_attribute("num_layers", 1));
    let directions = if op.bool_attribute("is_bidirec", false) { 2 } else { 1 };
    let (weights, states) = (importer.inputs(op, "WeightList")?, importer.inputs(op, "PreState")?);
    if !(1..=MAX_RECURRENT_LAYERS).contains(&layers) {
        return Err(Error::unimplemented(format!(
            "expected 1 to {MAX_RECURRENT_LAYERS} layers, found {layers}"
        )));
    }
    let layers = layers as usize;
    if weights.len() != 4 * layers * directions || states.len() != kind.states {
        let expected = format!("{} weights and {} states", 4 * layers * directions, kind.states);
        return Err(invalid_model(expected, format!("{} and {}", weights.len(), states.len())));
    }
    let lengths = importer.optional_input(op, "SequenceLength")?;
    let lengths = lengths.map(|lengths| importer.add_cast(lengths.id, Dtype::I32));
    let mut x = importer.input(op, "Input")?.id;
    let mut ends: Vec<Vec<ValueId>> = vec![Vec::new(); kind.states];
    for layer in 0..layers {
        let first = 2 * layer * directions;
        let of_layer = |which: usize| -> Vec<PaddleOperand<'m>> {
            (0..directions).map(|direction| weights[first + 2 * direction + which]).collect()
        };
        let behind = 2 * layers * directions;
        let [input, hidden] = [0, 1].map(|which| stack_weights(importer, &kind, &of_layer(which)));
        let [input_bias, hidden_bias] =
            [0, 1].map(|which| stack_weights(importer, &kind, &of_layer(behind + which)));
        let bias = importer.add_op_with(
            "Concat",
            &[input_bias, hidden_bias],
            build_attributes([("axis", int_attribute(1))]),
        );
        let mut operands = vec![Some(x), Some(input), Some(hidden), Some(bias), lengths];
        let places =
            [layer * directions, (layer + 1) * directions].map(|place| importer.add_ints(&[place as i64]));
        let axis = importer.add_ints(&[0]);
        for state in &states {
            operands.push(Some(importer.add_op("Slice", &[state.id, places[0], places[1], axis])));
        }
        let mut attributes = build_attributes([
            ("hidden_size", int_attribute(op.int_attribute("hidden_size", 1))),
            ("direction", text_attribute(if directions == 2 { "bidirectional" } else { "forward" })),
        ]);
        if kind.op == "GRU" {
            attributes.set("linear_before_reset", int_attribute(1));
        }
        if !kind.activation.is_empty() {
            let names = vec![kind.activation.to_owned(); directions];
            attributes.set("activations", Attribute::Strings(names));
        }
        let result = importer.add_node(kind.op, &operands, attributes, 1 + kind.states);
        // Concatenate the directions along the last dimension.
        let transposed = importer.add_op_with(
            "Transpose",
            &[result[0]],
            build_attributes([("perm", ints_attribute(&[0, 2, 1, 3]))]),
        );
        let shape = importer.add_ints(&[0, 0, -1]);
        x = importer.add_op("Reshape", &[transposed, shape]);
        for (all, end) in ends.iter_mut().zip(&result[1..]) {
            all.push(*end);
        }
    }
    importer.set_output(op, "Out", x)?;
    let mut states = Vec::new();
    for each in &ends {
        states.push(match each.as_slice() {
            [one] => *one,
            each => importer.add_op_with("Concat", each, build_attributes([("axis", int_attribute(0))])),
        });
    }
    importer.set_outputs(op, "State", &states)
}

/// The weights of all directions, with gates in ONNX's order.
fn stack_weights<'m>(
    importer: &mut PaddleImporter<'m>,
    kind: &RecurrentKind,
    weights: &[PaddleOperand<'m>],
) -> ValueId {
    let first = importer.add_ints(&[0]);
    let mut each = Vec::new();
    for weight in weights {
        let mut ordered = weight.id;
        if kind.gates.len() > 1 {
            let count = kind.gates.len();
            let attributes =
                build_attributes([("axis", int_attribute(0)), ("num_outputs", int_attribute(count as i64))]);
            let parts = importer.add_node("Split", &[Some(weight.id)], attributes, count);
            let transposed: Vec<ValueId> = kind.gates.iter().map(|gate| parts[*gate]).collect();
            ordered =
                importer.add_op_with("Concat", &transposed, build_attributes([("axis", int_attribute(0))]));
        }
        each.push(importer.add_op("Unsqueeze", &[ordered, first]));
    }
    match each.as_slice() {
        [one] => *one,
        each => importer.add_op_with("Concat", each, build_attributes([("axis", int_attribute(0))])),
    }
}
