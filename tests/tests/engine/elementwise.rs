//! Elementwise ops that pass values to each other run as one, with the same bits.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::export::onnx::OnnxExportOptions;
use oarlock_engine::graph::ValueId;
use oarlock_engine::{RuntimeValue, SessionOptions};

use crate::random::SeededRandom;
use crate::shape_changes::check_shapes;
use crate::sketch::{GraphSketch, datum_bytes, random_datum, run_session};

const FUSED: &str = "oarlock.FusedElementwise";

/// The ops that remain, after the outputs with and without passes were found to have the same bits.
fn remaining_ops(sketch: GraphSketch, outputs: &[ValueId], inputs: &[RuntimeValue]) -> Vec<String> {
    let sketch = sketch.with_outputs(outputs);
    let [fused, plain] = [false, true].map(|is_plain| {
        let session = sketch.start_session(&SessionOptions { is_plain, ..SessionOptions::default() });
        run_session(&session, inputs).iter().map(datum_bytes).collect::<Vec<_>>()
    });
    assert!(fused == plain, "the fused ops have other bits");
    sketch.check_fused(inputs)
}

/// A graph with an input of this shape.
fn sketch_with_input(dims: &[i64]) -> (GraphSketch, ValueId) {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, dims);
    (sketch, x)
}

#[test]
fn a_chain_becomes_one_op() {
    let (mut sketch, x) = sketch_with_input(&[5, 700]);
    let other = sketch.add_input("y", Dtype::F32, &[5, 700]);
    let mut value = x;
    for round in 0..4 {
        let factor = sketch.add_scalar(1.25);
        value = sketch.add_op("Mul", &[value, factor]);
        value = sketch.add_op("Tanh", &[value]);
        value = sketch.add_op(if round % 2 == 0 { "Add" } else { "Sub" }, &[other, value]);
        let (low, high) = (sketch.add_scalar(-1.0), sketch.add_scalar(0.75));
        value = sketch.add_op("Clip", &[value, low, high]);
        value = sketch.add_op_with("LeakyRelu", &[value], &[("alpha", Attribute::Float(0.2))]);
    }
    let inputs = [random_datum(&[5, 700], 1), random_datum(&[5, 700], 2)];
    assert_eq!(remaining_ops(sketch, &[value], &inputs), [FUSED]);
}

#[test]
fn what_others_read_stays_a_value() {
    let (mut sketch, x) = sketch_with_input(&[300]);
    let exp = sketch.add_op("Exp", &[x]);
    let neg = sketch.add_op("Neg", &[exp]);
    let y = sketch.add_op("Abs", &[neg]);
    // `exp` is an output, and `neg` is not.
    assert_eq!(remaining_ops(sketch, &[exp, y], &[random_datum(&[300], 1)]), ["Exp", FUSED]);
}

#[test]
fn a_value_that_is_read_twice_inside_is_fused() {
    let (mut sketch, x) = sketch_with_input(&[2000]);
    let exp = sketch.add_op("Exp", &[x]);
    let [floor, root] = ["Floor", "Sqrt"].map(|op| sketch.add_op(op, &[exp]));
    let sum = sketch.add_op("Add", &[floor, root]);
    let y = sketch.add_op("Mul", &[sum, exp]);
    assert_eq!(remaining_ops(sketch, &[y], &[random_datum(&[2000], 1)]), [FUSED]);
}

#[test]
fn rows_and_columns_broadcast() {
    let (mut sketch, x) = sketch_with_input(&[6, 4, 50]);
    let row = sketch.add_weights(&[50], 3);
    let column = sketch.add_weights(&[4, 1], 4);
    let scaled = sketch.add_op("Mul", &[x, row]);
    let shifted = sketch.add_op("Add", &[scaled, column]);
    let y = sketch.add_op("Relu", &[shifted]);
    assert_eq!(remaining_ops(sketch, &[y], &[random_datum(&[6, 4, 50], 1)]), [FUSED]);
}

#[test]
fn ops_of_a_smaller_shape_stay_apart() {
    let (mut sketch, x) = sketch_with_input(&[6, 50]);
    let row = sketch.add_input("row", Dtype::F32, &[50]);
    let exp = sketch.add_op("Exp", &[row]);
    let negative = sketch.add_op("Neg", &[exp]);
    let scaled = sketch.add_op("Mul", &[x, negative]);
    let y = sketch.add_op("Relu", &[scaled]);
    let inputs = [random_datum(&[6, 50], 1), random_datum(&[50], 2)];
    assert_eq!(remaining_ops(sketch, &[y], &inputs), [FUSED, FUSED]);
}

#[test]
fn masks_stay_inside() {
    let (mut sketch, x) = sketch_with_input(&[9, 130]);
    let (zero, one) = (sketch.add_scalar(0.0), sketch.add_scalar(1.0));
    let mask = sketch.add_op("Greater", &[x, zero]);
    let below = sketch.add_op("Sub", &[x, one]);
    let y = sketch.add_op("Where", &[mask, x, below]);
    assert_eq!(remaining_ops(sketch, &[y], &[random_datum(&[9, 130], 1)]), [FUSED]);
}

#[test]
fn a_mask_from_outside_is_read_by_an_op_of_its_own() {
    let (mut sketch, x) = sketch_with_input(&[9, 13]);
    let zero = sketch.add_scalar(0.0);
    let mask = sketch.add_op("Greater", &[x, zero]);
    let below = sketch.add_op("Exp", &[x]);
    let below = sketch.add_op("Neg", &[below]);
    let chosen = sketch.add_op("Where", &[mask, x, below]);
    let root = sketch.add_op("Abs", &[chosen]);
    let y = sketch.add_op("Sqrt", &[root]);
    let left = remaining_ops(sketch, &[mask, y], &[random_datum(&[9, 13], 1)]);
    assert_eq!(left, ["Greater", FUSED, "Where", FUSED]);
}

#[test]
fn products_keep_their_epilogues() {
    let (mut sketch, x) = sketch_with_input(&[8, 16]);
    let (weights, bias) = (sketch.add_weights(&[16, 24], 2), sketch.add_weights(&[24], 3));
    let product = sketch.add_op("MatMul", &[x, weights]);
    let sum = sketch.add_op("Add", &[product, bias]);
    let sum = sketch.add_op("Relu", &[sum]);
    let root = sketch.add_op("Sqrt", &[sum]);
    let y = sketch.add_op("Neg", &[root]);
    let sketch = sketch.with_outputs(&[y]);
    assert_eq!(sketch.check_fused(&[random_datum(&[8, 16], 1)]), ["oarlock.MatMul", FUSED]);
}

#[test]
fn many_inputs_are_several_ops() {
    let mut sketch = GraphSketch::new();
    let inputs: Vec<ValueId> =
        (0..12).map(|index| sketch.add_input(&format!("x{index}"), Dtype::F32, &[40])).collect();
    let sum = inputs[1..].iter().fold(inputs[0], |sum, input| sketch.add_op("Add", &[sum, *input]));
    let data: Vec<_> = (1..=12).map(|seed| random_datum(&[40], seed)).collect();
    assert_eq!(remaining_ops(sketch, &[sum], &data), [FUSED, FUSED]);
}

#[test]
fn chains_serve_inputs_of_every_shape() {
    let (mut sketch, x) = sketch_with_input(&[-1, -1]);
    let row = sketch.add_input("row", Dtype::F32, &[-1]);
    let sum = sketch.add_op("Add", &[x, row]);
    let angle = sketch.add_op("Sin", &[sum]);
    let two = sketch.add_scalar(2.0);
    let y = sketch.add_op("Mul", &[angle, two]);
    let sketch = sketch.with_outputs(&[y]);
    check_shapes(&sketch, 5, 24, |dice: &mut SeededRandom| {
        let (rows, columns) = (dice.pick_one(&[0, 1, 3]), dice.pick_one(&[1, 5, 64]));
        let row = dice.pick_one(&[1, columns]);
        vec![random_datum(&[rows, columns], 7), random_datum(&[row], 8)]
    });
}

#[test]
fn exported_models_have_the_ops_of_onnx() {
    let (mut sketch, x) = sketch_with_input(&[9, 130]);
    let exp = sketch.add_op("Exp", &[x]);
    let y = sketch.add_op("Neg", &[exp]);
    let sketch = sketch.with_outputs(&[y]);
    let session = sketch.start_session(&SessionOptions::default());
    assert_eq!(sketch.check_fused(&[random_datum(&[9, 130], 1)]), [FUSED]);
    let files = session.to_onnx(&OnnxExportOptions::default()).expect("a model");
    assert_eq!(files.own_nodes, 0);
}
