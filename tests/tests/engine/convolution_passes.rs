//! Passes around convolutions: what becomes part of their weights, and which ops remain.

use oarlock_core::{Attribute, Dtype};

use crate::sketch::{GraphSketch, random_datum};

#[test]
fn images_keep_their_channels_last_from_one_convolution_to_the_next() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1, 3, 12, 12]);
    let pads = |size: i64| vec![("pads", Attribute::Ints(vec![size; 4]))];
    let (w, b) = (sketch.add_weights(&[16, 3, 3, 3], 1), sketch.add_weights(&[16], 2));
    let first = sketch.add_op_with("Conv", &[x, w, b], &pads(1));
    let first = sketch.add_op("Relu", &[first]);
    let (w, b) = (sketch.add_weights(&[16, 16, 3, 3], 3), sketch.add_weights(&[16], 4));
    let second = sketch.add_op_with("Conv", &[first, w, b], &pads(1));
    let sum = sketch.add_op("Add", &[second, first]);
    let (low, high) = (sketch.add_scalar(0.0), sketch.add_scalar(6.0));
    let bounded = sketch.add_op("Clip", &[sum, low, high]);
    let pooled = sketch.add_op_with("MaxPool", &[bounded], &[("kernel_shape", Attribute::Ints(vec![2, 2]))]);
    let joined = sketch.add_op_with("Concat", &[pooled, pooled], &[("axis", Attribute::Int(1))]);
    let mean = sketch.add_op("GlobalAveragePool", &[joined]);
    let y = sketch.add_op("Flatten", &[mean]);
    let left = sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[1, 3, 12, 12], 9)]);
    let convolutions = left.iter().filter(|op| *op == "oarlock.Conv").count();
    let transposes = left.iter().filter(|op| *op == "Transpose").count();
    assert_eq!((convolutions, transposes), (2, 1), "{left:?}");
    assert!(!left.iter().any(|op| op == "Relu" || op == "Clip" || op == "Add"), "{left:?}");
}

#[test]
fn bounds_become_part_of_convolutions_also_after_a_leaky_activation() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1, 8, 6, 6]);
    let (low, high) = (sketch.add_scalar(-0.4), sketch.add_scalar(0.7));
    let w = sketch.add_weights(&[8, 8, 3, 3], 1);
    let leaky = sketch.add_op("Conv", &[x, w]);
    let leaky = sketch.add_op_with("LeakyRelu", &[leaky], &[("alpha", Attribute::Float(0.5))]);
    let leaky = sketch.add_op("Max", &[leaky, low]);
    let bounded = sketch.add_op("Conv", &[leaky, w]);
    let bounded = sketch.add_op("Min", &[high, bounded]);
    let left = sketch.with_outputs(&[bounded]).check_optimized(&[random_datum(&[1, 8, 6, 6], 4)]);
    assert!(left.iter().all(|op| op == "oarlock.Conv" || op == "Transpose"), "{left:?}");

    // An upper bound is not part of a leaky activation, and one of a higher rank adds dimensions.
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[5, 8]);
    let (high, w) = (sketch.add_scalar(0.7), sketch.add_weights(&[8, 8], 1));
    let leaky = sketch.add_op("MatMul", &[x, w]);
    let leaky = sketch.add_op("LeakyRelu", &[leaky]);
    let y = sketch.add_op("Min", &[leaky, high]);
    let deep = sketch.add_weights(&[1, 1, 1], 3);
    let product = sketch.add_op("MatMul", &[x, w]);
    let z = sketch.add_op("Max", &[product, deep]);
    let left = sketch.with_outputs(&[y, z]).check_optimized(&[random_datum(&[5, 8], 4)]);
    assert!(left.contains(&"Min".to_owned()) && left.contains(&"Max".to_owned()), "{left:?}");
}

#[test]
fn transposed_convolutions_read_and_write_images_whose_channels_are_last() {
    let pairs = |value: i64| Attribute::Ints(vec![value; 2]);
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1, 4, 6, 7]);
    let w = sketch.add_weights(&[8, 4, 3, 3], 1);
    let first = sketch.add_op_with("Conv", &[x, w], &[("pads", Attribute::Ints(vec![1; 4]))]);
    let (w, b) = (sketch.add_weights(&[8, 3, 2, 2], 2), sketch.add_weights(&[6], 3));
    let strides = ("strides", pairs(2));
    let grown =
        sketch.add_op_with("ConvTranspose", &[first, w, b], &[strides.clone(), ("group", Attribute::Int(2))]);
    let [scale, shift, mean] = [4, 5, 6].map(|seed| sketch.add_weights(&[6], seed));
    let variance = sketch.add_floats(&[6], &[0.5, 1.0, 1.5, 2.0, 0.1, 0.2]);
    let norm = sketch.add_op("BatchNormalization", &[grown, scale, shift, mean, variance]);
    let bounded = sketch.add_op("Relu", &[norm]);
    let w = sketch.add_weights(&[6, 1, 4, 4], 7);
    let made =
        sketch.add_op_with("ConvTranspose", &[bounded, w], &[strides, ("pads", Attribute::Ints(vec![1; 4]))]);
    let y = sketch.add_op("Sigmoid", &[made]);
    let left = sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[1, 4, 6, 7], 9)]);
    let mut computing = left.clone();
    computing.retain(|op| op != "Transpose" && op != "Reshape");
    assert_eq!(computing, ["oarlock.Conv", "oarlock.ConvTranspose", "oarlock.ConvTranspose"], "{left:?}");
    assert!(left.iter().filter(|op| *op == "Transpose").count() <= 2, "{left:?}");
}

#[test]
fn the_pads_of_a_transposed_convolution_follow_from_the_size_of_its_output() {
    let mode = |name: &str| ("auto_pad", Attribute::String(name.to_owned()));
    let pairs = |name, [a, b]: [i64; 2]| (name, Attribute::Ints(vec![a, b]));
    for attributes in [
        vec![mode("SAME_UPPER")],
        vec![mode("SAME_LOWER")],
        vec![mode("VALID")],
        vec![pairs("output_shape", [14, 11])],
        vec![mode("SAME_UPPER"), pairs("output_shape", [9, 10])],
        vec![pairs("output_shape", [13, 12]), pairs("output_padding", [1, 0])],
    ] {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::F32, &[2, 3, 5, 5]);
        let w = sketch.add_weights(&[3, 5, 3, 4], 2);
        let attributes = [attributes, vec![pairs("strides", [2, 2])]].concat();
        let y = sketch.add_op_with("ConvTranspose", &[x, w], &attributes);
        let left = sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[2, 3, 5, 5], 9)]);
        assert!(left.contains(&"oarlock.ConvTranspose".to_owned()), "{attributes:?}: {left:?}");
    }
}

#[test]
fn a_batch_normalization_becomes_part_of_the_weights_before_it() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[2, 4, 6, 6]);
    let w = sketch.add_weights(&[8, 4, 1, 1], 1);
    let conv = sketch.add_op("Conv", &[x, w]);
    let [scale, shift, mean] = [2, 3, 4].map(|seed| sketch.add_weights(&[8], seed));
    let variance = sketch.add_floats(&[8], &[0.5, 1.0, 1.5, 2.0, 0.1, 0.2, 0.3, 0.4]);
    let y = sketch.add_op("BatchNormalization", &[conv, scale, shift, mean, variance]);
    let left = sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[2, 4, 6, 6], 9)]);
    assert!(!left.contains(&"BatchNormalization".to_owned()), "{left:?}");
}

/// The ops that compute when transposes and reshapes are left out.
fn computing_ops(sketch: &GraphSketch, dims: &[i64]) -> Vec<String> {
    let mut left = sketch.check_optimized(&[random_datum(dims, 9)]);
    left.retain(|op| op != "Transpose" && op != "Reshape");
    left
}

#[test]
fn arithmetic_after_a_convolution_becomes_part_of_its_weights() {
    for (op, weights, groups) in
        [("Conv", [6, 2, 3, 3], 2), ("ConvTranspose", [4, 3, 3, 3], 2), ("Conv", [6, 4, 1, 1], 1)]
    {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::F32, &[2, 4, 6, 6]);
        let (w, bias) = (sketch.add_weights(&weights, 1), sketch.add_weights(&[6], 2));
        let conv = sketch.add_op_with(op, &[x, w, bias], &[("group", Attribute::Int(groups))]);
        let (a, b) = (sketch.add_weights(&[1, 6, 1, 1], 3), sketch.add_weights(&[6, 1, 1], 4));
        let (c, d) = (sketch.add_scalar(0.7), sketch.add_floats(&[1, 1], &[1.5]));
        let mut y = sketch.add_op("Add", &[a, conv]);
        y = sketch.add_op("Mul", &[y, b]);
        y = sketch.add_op("Sub", &[y, c]);
        y = sketch.add_op("Div", &[y, d]);
        y = sketch.add_op("HardSwish", &[y]);
        assert_eq!(computing_ops(&sketch.with_outputs(&[y]), &[2, 4, 6, 6]), [format!("oarlock.{op}")]);
    }
}

#[test]
fn arithmetic_before_a_convolution_becomes_part_of_its_weights() {
    let pads = ("pads", Attribute::Ints(vec![1; 4]));
    // A shift of the inputs is no shift of the padding, so it stays.
    for (op, weights, groups, attributes, expected) in [
        ("Conv", [6, 2, 3, 3], 2, vec![], &["Sin", "oarlock.Conv"][..]),
        ("Conv", [6, 4, 1, 1], 1, vec![], &["Sin", "oarlock.Conv"]),
        ("Conv", [4, 1, 3, 3], 4, vec![pads], &["Sin", "Add", "oarlock.Conv"]),
        ("ConvTranspose", [4, 3, 3, 3], 2, vec![], &["Sin", "Add", "oarlock.ConvTranspose"]),
    ] {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::F32, &[2, 4, 6, 6]);
        let sine = sketch.add_op("Sin", &[x]);
        let (a, b) = (sketch.add_weights(&[4, 1, 1], 3), sketch.add_scalar(0.7));
        let scaled = sketch.add_op("Mul", &[a, sine]);
        let shifted = sketch.add_op("Add", &[scaled, b]);
        let w = sketch.add_weights(&weights, 1);
        let attributes = [attributes, vec![("group", Attribute::Int(groups))]].concat();
        let y = sketch.add_op_with(op, &[shifted, w], &attributes);
        assert_eq!(computing_ops(&sketch.with_outputs(&[y]), &[2, 4, 6, 6]), expected, "{op} {groups}");
    }
}

#[test]
fn an_activation_between_convolutions_of_open_size_is_found_before_its_factor_is_folded() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1, 4, -1, -1]);
    let (w, second) = (sketch.add_weights(&[8, 4, 1, 1], 1), sketch.add_weights(&[2, 8, 1, 1], 2));
    let conv = sketch.add_op("Conv", &[x, w]);
    let [root, one, half] = [std::f32::consts::SQRT_2, 1.0, 0.5].map(|value| sketch.add_scalar(value));
    let divided = sketch.add_op("Div", &[conv, root]);
    let erf = sketch.add_op("Erf", &[divided]);
    let sum = sketch.add_op("Add", &[erf, one]);
    let product = sketch.add_op("Mul", &[conv, sum]);
    let gelu = sketch.add_op("Mul", &[product, half]);
    let y = sketch.add_op("Conv", &[gelu, second]);
    let left = computing_ops(&sketch.with_outputs(&[y]), &[1, 4, 6, 6]);
    assert_eq!(left, ["oarlock.Conv", "oarlock.Conv"]);
}

#[test]
fn arithmetic_that_is_not_one_map_of_each_channel_stays() {
    // Along the columns; with as many axes as no input of the convolution has; with another reader.
    for (dims, is_output) in [(&[4][..], false), (&[1, 1, 1, 1, 1], false), (&[], true)] {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::F32, &[1, 4, 4, 4]);
        let w = sketch.add_weights(&[4, 4, 1, 1], 1);
        let conv = sketch.add_op("Conv", &[x, w]);
        let factor = sketch.add_weights(dims, 2);
        let y = sketch.add_op("Mul", &[conv, factor]);
        let outputs = if is_output { vec![conv, y] } else { vec![y] };
        let left = computing_ops(&sketch.with_outputs(&outputs), &[1, 4, 4, 4]);
        assert!(left.contains(&"Mul".to_owned()), "{dims:?}: {left:?}");
    }
}

#[test]
fn a_channel_that_constants_broadcast_to_several_stays_before_the_convolution() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[1, 1, 4, 4]);
    let (factors, w) = (sketch.add_weights(&[4, 1, 1], 1), sketch.add_weights(&[2, 4, 1, 1], 2));
    let several = sketch.add_op("Mul", &[x, factors]);
    let y = sketch.add_op("Conv", &[several, w]);
    let left = computing_ops(&sketch.with_outputs(&[y]), &[1, 1, 4, 4]);
    assert_eq!(left, ["Mul", "oarlock.Conv"]);
}

#[test]
fn a_convolution_takes_in_what_follows_the_squeeze_behind_it() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[2, 5, 1, 9]);
    let (w, bias) = (sketch.add_weights(&[7, 5, 1, 3], 1), sketch.add_weights(&[7, 1], 2));
    let image = sketch.add_op("Conv", &[x, w]);
    let axes = sketch.add_ints(&[-2]);
    let line = sketch.add_op("Squeeze", &[image, axes]);
    let line = sketch.add_op("Add", &[bias, line]);
    let (low, high) = (sketch.add_scalar(0.0), sketch.add_scalar(0.7));
    let y = sketch.add_op("Clip", &[line, low, high]);
    let left = sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[2, 5, 1, 9], 4)]);
    assert!(left.iter().all(|op| !["Add", "Clip"].contains(&op.as_str())), "{left:?}");

    // Both stay where they are if something else reads the image, and if the bias makes the line longer.
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[2, 5, 1, 3]);
    let (w, bias) = (sketch.add_weights(&[7, 5, 1, 3], 1), sketch.add_weights(&[7, 4], 2));
    let axes = sketch.add_ints(&[2]);
    let image = sketch.add_op("Conv", &[x, w]);
    let line = sketch.add_op("Squeeze", &[image, axes]);
    let longer = sketch.add_op("Add", &[line, bias]);
    let read_twice = sketch.add_op("Conv", &[x, w]);
    let tanh = sketch.add_op("Squeeze", &[read_twice, axes]);
    let tanh = sketch.add_op("Tanh", &[tanh]);
    let left =
        sketch.with_outputs(&[longer, tanh, read_twice]).check_optimized(&[random_datum(&[2, 5, 1, 3], 4)]);
    assert!(["Add", "Tanh"].iter().all(|op| left.contains(&(*op).to_owned())), "{left:?}");
}
