//! Recurrent layers.

use oarlock_core::{Attribute, Dtype, Error, Result};

use super::{Table, int, ints, text};
use crate::graph::ValueId;
use crate::import::paddle::messages::OpDesc;
use crate::import::paddle::operand::Operand;
use crate::import::paddle::program::{Program, with};
use crate::import::place::wrong;

/// The most layers on top of each other.
const MOST_LAYERS: i64 = 64;

pub(super) const OPS: Table = &[("rnn", recurrent)];

/// What kind of layer it is.
struct Kind {
    /// What ONNX calls it.
    op: &'static str,
    /// Which of Paddle's gates each of ONNX's is.
    gates: &'static [usize],
    /// How many states there are.
    states: usize,
    activation: &'static str,
}

fn kind(op: &OpDesc) -> Result<Kind> {
    let of = |op, gates, states, activation| Ok(Kind { op, gates, states, activation });
    match op.text("mode") {
        "LSTM" => of("LSTM", &[0, 3, 1, 2], 2, ""),
        "GRU" => of("GRU", &[1, 0, 2], 1, ""),
        "RNN_TANH" => of("RNN", &[0], 1, "Tanh"),
        "RNN_RELU" => of("RNN", &[0], 1, "Relu"),
        other => Err(wrong("`mode` to be LSTM, GRU, RNN_TANH or RNN_RELU", other)),
    }
}

/// Layers on top of each other, each in one or both directions. First all matrices are listed, and then what is added.
fn recurrent<'m>(program: &mut Program<'m>, op: &'m OpDesc) -> Result<()> {
    let (kind, layers) = (kind(op)?, op.int("num_layers", 1));
    let directions = if op.flag("is_bidirec", false) { 2 } else { 1 };
    let (weights, states) = (program.inputs(op, "WeightList")?, program.inputs(op, "PreState")?);
    if !(1..=MOST_LAYERS).contains(&layers) {
        return Err(Error::unimplemented(format!("expected 1 to {MOST_LAYERS} layers, found {layers}")));
    }
    let layers = layers as usize;
    if weights.len() != 4 * layers * directions || states.len() != kind.states {
        let expected = format!("{} weights and {} states", 4 * layers * directions, kind.states);
        return Err(wrong(expected, format!("{} and {}", weights.len(), states.len())));
    }
    let lengths = program.maybe(op, "SequenceLength")?;
    let lengths = lengths.map(|lengths| program.cast(lengths.id, Dtype::I32));
    let mut x = program.input(op, "Input")?.id;
    let mut ends: Vec<Vec<ValueId>> = vec![Vec::new(); kind.states];
    for layer in 0..layers {
        let first = 2 * layer * directions;
        let of_layer = |which: usize| -> Vec<Operand<'m>> {
            (0..directions).map(|direction| weights[first + 2 * direction + which]).collect()
        };
        let behind = 2 * layers * directions;
        let [input, hidden] = [0, 1].map(|which| stacked(program, &kind, &of_layer(which)));
        let [input_bias, hidden_bias] =
            [0, 1].map(|which| stacked(program, &kind, &of_layer(behind + which)));
        let bias = program.node("Concat", &[input_bias, hidden_bias], with([("axis", int(1))]));
        let mut operands = vec![Some(x), Some(input), Some(hidden), Some(bias), lengths];
        let places =
            [layer * directions, (layer + 1) * directions].map(|place| program.ints(&[place as i64]));
        let axis = program.ints(&[0]);
        for state in &states {
            operands.push(Some(program.apply("Slice", &[state.id, places[0], places[1], axis])));
        }
        let mut attributes = with([
            ("hidden_size", int(op.int("hidden_size", 1))),
            ("direction", text(if directions == 2 { "bidirectional" } else { "forward" })),
        ]);
        if kind.op == "GRU" {
            attributes.set("linear_before_reset", int(1));
        }
        if !kind.activation.is_empty() {
            let names = vec![kind.activation.to_owned(); directions];
            attributes.set("activations", Attribute::Strings(names));
        }
        let made = program.nodes(kind.op, &operands, attributes, 1 + kind.states);
        // Directions become parts of the last dimension.
        let turned = program.node("Transpose", &[made[0]], with([("perm", ints(&[0, 2, 1, 3]))]));
        let shape = program.ints(&[0, 0, -1]);
        x = program.apply("Reshape", &[turned, shape]);
        for (all, end) in ends.iter_mut().zip(&made[1..]) {
            all.push(*end);
        }
    }
    program.give(op, "Out", x)?;
    let mut states = Vec::new();
    for each in &ends {
        states.push(match each.as_slice() {
            [one] => *one,
            each => program.node("Concat", each, with([("axis", int(0))])),
        });
    }
    program.give_all(op, "State", &states)
}

/// The weights of all directions, with their gates in the order of ONNX.
fn stacked<'m>(program: &mut Program<'m>, kind: &Kind, weights: &[Operand<'m>]) -> ValueId {
    let first = program.ints(&[0]);
    let mut each = Vec::new();
    for weight in weights {
        let mut ordered = weight.id;
        if kind.gates.len() > 1 {
            let count = kind.gates.len();
            let attributes = with([("axis", int(0)), ("num_outputs", int(count as i64))]);
            let parts = program.nodes("Split", &[Some(weight.id)], attributes, count);
            let turned: Vec<ValueId> = kind.gates.iter().map(|gate| parts[*gate]).collect();
            ordered = program.node("Concat", &turned, with([("axis", int(0))]));
        }
        each.push(program.apply("Unsqueeze", &[ordered, first]));
    }
    match each.as_slice() {
        [one] => *one,
        each => program.node("Concat", each, with([("axis", int(0))])),
    }
}
