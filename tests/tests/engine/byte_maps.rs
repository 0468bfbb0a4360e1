//! Elementwise ops between 8-bit values: they become tables, and what moves such values moves their bytes.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::graph::ValueId;

use crate::quantized::{QuantizationStep, QuantizedSketch, quantization_step};
use crate::shape_changes::check_shapes;
use crate::sketch::random_datum;

const INPUT_STEP: QuantizationStep = quantization_step(1.0 / 64.0, 0x70);
const MIDDLE_STEP: QuantizationStep = quantization_step(1.0 / 128.0, 5);
const OUTPUT_STEP: QuantizationStep = quantization_step(1.0 / 32.0, 0x60);
const SHAPE: [i64; 4] = [1, 8, 5, 7];

/// The ops that remain, after the model was run with and without passes on the same input.
fn remaining_ops(graph: QuantizedSketch, outputs: &[ValueId]) -> Vec<String> {
    graph.sketch.with_outputs(outputs).check_optimized(&[random_datum(&SHAPE, 9)])
}

/// A value of 8 bits, as a float.
fn rounded_input(graph: &mut QuantizedSketch) -> ValueId {
    let x = graph.add_input(&SHAPE);
    graph.add_rounding(x, INPUT_STEP)
}

#[test]
fn elementwise_ops_between_bytes_become_one_table() {
    for dtype in [Dtype::U8, Dtype::I8] {
        let mut graph = QuantizedSketch::new();
        let x = rounded_input(&mut graph);
        let sigmoid = graph.sketch.add_op("Sigmoid", &[x]);
        let sigmoid = graph.add_rounding(sigmoid, MIDDLE_STEP);
        let product = graph.sketch.add_op("Mul", &[x, sigmoid]);
        let half = graph.sketch.add_scalar(0.5);
        let product = graph.sketch.add_op("Sub", &[product, half]);
        let y = graph.add_quantize(product, QuantizationStep { dtype, ..OUTPUT_STEP });
        assert_eq!(remaining_ops(graph, &[y]), ["QuantizeLinear", "oarlock.ByteMap"], "{dtype:?}");
    }
}

#[test]
fn joined_and_taken_values_stay_bytes() {
    let mut graph = QuantizedSketch::new();
    let x = rounded_input(&mut graph);
    let [left, right] = <[ValueId; 2]>::try_from(graph.sketch.add_op_with_outputs(
        "Split",
        &[x],
        &[("axis", Attribute::Int(1)), ("num_outputs", Attribute::Int(2))],
        2,
    ))
    .expect("two outputs");
    graph.sketch.graph.nodes.last_mut().expect("a node").opset = 18;
    // One half keeps its scale, and the other gets another.
    let (left, right) = (graph.add_rounding(left, INPUT_STEP), graph.add_rounding(right, MIDDLE_STEP));
    let joined = graph.sketch.add_op_with("Concat", &[left, right, x], &[("axis", Attribute::Int(1))]);
    let y = graph.add_quantize(joined, INPUT_STEP);
    let mut left = remaining_ops(graph, &[y]);
    left.sort();
    let bytes_alone = ["Concat", "QuantizeLinear", "Split", "oarlock.ByteMap", "oarlock.ByteMap"];
    assert_eq!(left, bytes_alone);
}

#[test]
fn a_value_of_two_bytes_stays_as_it_is() {
    let mut graph = QuantizedSketch::new();
    let x = rounded_input(&mut graph);
    let other = graph.sketch.add_input("y", Dtype::F32, &SHAPE);
    let other = graph.add_rounding(other, MIDDLE_STEP);
    let product = graph.sketch.add_op("Mul", &[x, other]);
    let y = graph.add_quantize(product, OUTPUT_STEP);
    let inputs = [random_datum(&SHAPE, 9), random_datum(&SHAPE, 10)];
    let left = graph.sketch.with_outputs(&[y]).check_optimized(&inputs);
    assert!(left.contains(&"Mul".to_owned()) && !left.contains(&"oarlock.ByteMap".to_owned()), "{left:?}");
}

#[test]
fn a_factor_for_each_channel_is_no_table() {
    let mut graph = QuantizedSketch::new();
    let x = rounded_input(&mut graph);
    let factors: Vec<f32> = (0..8).map(|at| 0.25 * at as f32).collect();
    let factors = graph.sketch.add_floats(&[8, 1, 1], &factors);
    let product = graph.sketch.add_op("Mul", &[x, factors]);
    let y = graph.add_quantize(product, OUTPUT_STEP);
    let left = remaining_ops(graph, &[y]);
    assert!(left.contains(&"Mul".to_owned()), "{left:?}");
}

#[test]
fn rounding_again_to_the_same_steps_changes_nothing() {
    let mut graph = QuantizedSketch::new();
    let x = rounded_input(&mut graph);
    let y = graph.add_quantize(x, INPUT_STEP);
    assert_eq!(remaining_ops(graph, &[y]), ["QuantizeLinear"]);
}

#[test]
fn tables_serve_inputs_of_every_shape() {
    let mut graph = QuantizedSketch::new();
    let x = graph.add_input(&[-1, 4, -1]);
    let x = graph.add_rounding(x, INPUT_STEP);
    let half = [("axis", Attribute::Int(1)), ("num_outputs", Attribute::Int(2))];
    let parts = graph.sketch.add_op_with_outputs("Split", &[x], &half, 2);
    graph.sketch.graph.nodes.last_mut().expect("a node").opset = 18;
    let sigmoid = graph.sketch.add_op("Sigmoid", &[x]);
    let values = [parts[0], sigmoid, parts[1]].map(|value| graph.add_rounding(value, MIDDLE_STEP));
    let joined = graph.sketch.add_op_with("Concat", &values, &[("axis", Attribute::Int(1))]);
    let y = graph.add_quantize(joined, INPUT_STEP);
    let sketch = graph.sketch.with_outputs(&[y]);
    check_shapes(&sketch, 5, 12, |dice| {
        vec![random_datum(&[dice.pick_one(&[1, 2, 3]), 4, dice.pick_one(&[1, 5, 64])], 7)]
    });
}

#[test]
fn a_long_chain_is_one_table() {
    let mut graph = QuantizedSketch::new();
    let mut x = rounded_input(&mut graph);
    // Each table begins with the one before it; otherwise the passes would run half a million nodes.
    for step in 0..600 {
        x = graph.sketch.add_op(if step % 2 == 0 { "Sigmoid" } else { "Tanh" }, &[x]);
        x = graph.add_rounding(x, MIDDLE_STEP);
    }
    let y = graph.add_quantize(x, OUTPUT_STEP);
    assert_eq!(remaining_ops(graph, &[y]), ["QuantizeLinear", "oarlock.ByteMap"]);
}
