//! Each pass on a graph that is made for it: what is left of the graph, and that it computes the same.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::graph::ValueId;

use crate::sketch::{Sketch, ints, random};

#[test]
fn what_does_not_depend_on_inputs_is_computed_once() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[2, 3]);
    let (a, b) = (sketch.scalar(2.0), sketch.scalar(3.0));
    let six = sketch.op("Mul", &[a, b]);
    let y = sketch.op("Mul", &[x, six]);
    assert_eq!(sketch.output(&[y]).optimised(&[random(&[2, 3], 1)]), ["Mul"]);
}

#[test]
fn a_shape_that_is_put_together_from_sizes_is_computed_when_they_are_known() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1, 4, 6]);
    let shape = sketch.op("Shape", &[x]);
    let (zero, minus_one) = (sketch.ints(&[0]), sketch.ints(&[-1]));
    let batch = sketch.op("Gather", &[shape, zero]);
    let target = sketch.op_with("Concat", &[batch, minus_one], &[("axis", Attribute::Int(0))]);
    let flat = sketch.op("Reshape", &[x, target]);
    let y = sketch.op("Relu", &[flat]);
    let sketch = sketch.output(&[y]);
    for batch in [1, 3] {
        assert_eq!(sketch.optimised(&[random(&[batch, 4, 6], 1)]), ["Reshape", "Relu"]);
    }
}

#[test]
fn nodes_whose_outputs_nobody_reads_are_removed() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[4]);
    let unread = sketch.op("Exp", &[x]);
    sketch.op("Neg", &[unread]);
    let y = sketch.op("Abs", &[x]);
    assert_eq!(sketch.output(&[y]).optimised(&[random(&[4], 1)]), ["Abs"]);
}

#[test]
fn nodes_that_do_nothing_are_removed() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[4, 1]);
    let same = sketch.op("Identity", &[x]);
    let dropped = sketch.op("Dropout", &[same]);
    let cast = sketch.op_with("Cast", &[dropped], &[("to", Attribute::Int(1))]);
    let turned = sketch.op_with("Transpose", &[cast], &[("perm", Attribute::Ints(vec![0, 1]))]);
    let y = sketch.op("Abs", &[turned]);
    assert_eq!(sketch.output(&[y]).optimised(&[random(&[4, 1], 1)]), ["Abs"]);
}

#[test]
fn an_output_that_is_an_input_is_handed_on() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[4]);
    let y = sketch.op("Identity", &[x]);
    assert_eq!(sketch.output(&[y, x]).optimised(&[random(&[4], 1)]), Vec::<String>::new());
}

#[test]
fn what_is_computed_twice_is_computed_once() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[4]);
    let (a, b) = (sketch.op("Exp", &[x]), sketch.op("Exp", &[x]));
    let (a, b) = (sketch.op("Neg", &[a]), sketch.op("Neg", &[b]));
    let y = sketch.op("Add", &[a, b]);
    assert_eq!(sketch.output(&[y]).optimised(&[random(&[4], 1)]), ["Exp", "Neg", "Add"]);
}

#[test]
fn random_numbers_are_never_the_same() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[64]);
    let (a, b) = (sketch.op("RandomNormalLike", &[x]), sketch.op("RandomNormalLike", &[x]));
    let difference = sketch.op("Sub", &[a, b]);
    let sketch = sketch.output(&[difference]);
    let session = sketch.session(&oarlock_engine::SessionOptions::default());
    let made = crate::sketch::run(&session, &[random(&[64], 1)]);
    assert!(crate::sketch::bytes(&made[0]).iter().any(|byte| *byte != 0));
}

#[test]
fn attention_with_graphs_computes_what_attention_without_them_does() {
    let mut change = Sketch::new();
    let [scores, factor] =
        ["scores", "factor"].map(|name| change.graph.add(oarlock_engine::graph::Value::named(name)));
    change.graph.inputs = vec![scores, factor];
    let changed = change.op("Mul", &[scores, factor]);
    let change = change.output(&[changed]).graph;
    for is_known in [true, false] {
        let size = |size: i64| if is_known { size } else { -1 };
        let mut sketch = Sketch::new();
        let query = sketch.input("query", Dtype::F32, &[size(2), 4, size(3), 8]);
        let key = sketch.input("key", Dtype::F32, &[size(2), 2, size(5), 8]);
        let value = sketch.input("value", Dtype::F32, &[size(2), 2, size(5), 6]);
        let half = sketch.scalar(0.5);
        let attention = |sketch: &mut Sketch, attributes: &[(&str, Attribute)]| {
            let made = sketch.op_with("FlexAttention", &[query, key, value], attributes);
            let node = sketch.graph.nodes.last_mut().unwrap();
            (node.domain, node.opset) = ("ai.onnx.preview".into(), 1);
            made
        };
        let with = attention(&mut sketch, &[]);
        sketch.with_graph("score_mod", change.clone(), &[half]);
        let without = attention(&mut sketch, &[("scale", Attribute::Float(0.5 / 8f64.sqrt()))]);
        let difference = sketch.op("Sub", &[with, without]);
        let sketch = sketch.output(&[with, difference]);
        let inputs = [random(&[2, 4, 3, 8], 1), random(&[2, 2, 5, 8], 2), random(&[2, 2, 5, 6], 3)];
        let ops = sketch.optimised(&inputs);
        assert!(!ops.iter().any(|op| op.contains("FlexAttention")), "{ops:?}");
        let made = crate::sketch::run(&sketch.session(&oarlock_engine::SessionOptions::default()), &inputs);
        let [made, difference] = [0, 1].map(|at| made[at].tensor().unwrap().to_vec::<f32>().unwrap());
        assert!(made.iter().any(|element| element.abs() > 0.1), "{made:?}");
        assert!(difference.iter().all(|element| element.abs() < 1e-5), "{difference:?}");
    }
}

#[test]
fn gelu_is_found_in_every_order_that_exporters_write() {
    type Write = fn(&mut Sketch, ValueId) -> ValueId;
    let erf: Write = |sketch, x| {
        let (root, one, half) = (sketch.scalar(2f32.sqrt()), sketch.scalar(1.0), sketch.scalar(0.5));
        let scaled = sketch.op("Div", &[x, root]);
        let erf = sketch.op("Erf", &[scaled]);
        let sum = sketch.op("Add", &[erf, one]);
        let product = sketch.op("Mul", &[x, sum]);
        sketch.op("Mul", &[product, half])
    };
    let half_first: Write = |sketch, x| {
        let (factor, one, half) = (sketch.scalar(0.5f32.sqrt()), sketch.scalar(1.0), sketch.scalar(0.5));
        let scaled = sketch.op("Mul", &[factor, x]);
        let erf = sketch.op("Erf", &[scaled]);
        let sum = sketch.op("Add", &[one, erf]);
        let halved = sketch.op("Mul", &[half, x]);
        sketch.op("Mul", &[sum, halved])
    };
    let tanh: Write = |sketch, x| {
        let (three, cubed) = (sketch.scalar(3.0), sketch.scalar(0.044715));
        let (factor, one, half) =
            (sketch.scalar((2.0 / std::f32::consts::PI).sqrt()), sketch.scalar(1.0), sketch.scalar(0.5));
        let power = sketch.op("Pow", &[x, three]);
        let part = sketch.op("Mul", &[power, cubed]);
        let inner = sketch.op("Add", &[x, part]);
        let scaled = sketch.op("Mul", &[inner, factor]);
        let tanh = sketch.op("Tanh", &[scaled]);
        let sum = sketch.op("Add", &[tanh, one]);
        let halved = sketch.op("Mul", &[x, half]);
        sketch.op("Mul", &[halved, sum])
    };
    for write in [erf, half_first, tanh] {
        let mut sketch = Sketch::new();
        let x = sketch.input("x", Dtype::F32, &[8, 16]);
        let y = write(&mut sketch, x);
        assert_eq!(sketch.output(&[y]).optimised(&[random(&[8, 16], 1)]), ["Gelu"]);
    }
}

#[test]
fn what_is_nearly_gelu_is_left_alone() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[8]);
    let (root, one, half) = (sketch.scalar(1.5), sketch.scalar(1.0), sketch.scalar(0.5));
    let scaled = sketch.op("Div", &[x, root]);
    let erf = sketch.op("Erf", &[scaled]);
    let sum = sketch.op("Add", &[erf, one]);
    let product = sketch.op("Mul", &[x, sum]);
    let y = sketch.op("Mul", &[product, half]);
    let left = sketch.output(&[y]).optimised(&[random(&[8], 1)]);
    assert!(left.contains(&"Erf".to_owned()), "{left:?}");
}

/// The ops that older exporters write for layer normalisation.
fn layer_norm(sketch: &mut Sketch, x: ValueId, size: i64) -> ValueId {
    let axes = [("axes", Attribute::Ints(vec![-1]))];
    let old = |sketch: &mut Sketch, value| {
        let made = sketch.op_with("ReduceMean", &[value], &axes);
        sketch.graph.nodes.last_mut().expect("a node").opset = 13;
        made
    };
    let (two, epsilon) = (sketch.scalar(2.0), sketch.scalar(1e-5));
    let mean = old(sketch, x);
    let difference = sketch.op("Sub", &[x, mean]);
    let square = sketch.op("Pow", &[difference, two]);
    let variance = old(sketch, square);
    let sum = sketch.op("Add", &[variance, epsilon]);
    let root = sketch.op("Sqrt", &[sum]);
    let quotient = sketch.op("Div", &[difference, root]);
    let (scale, bias) = (sketch.weights(&[size], 3), sketch.weights(&[size], 4));
    let scaled = sketch.op("Mul", &[quotient, scale]);
    sketch.op("Add", &[scaled, bias])
}

#[test]
fn layer_normalisation_is_found_in_its_parts() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[5, 24]);
    let y = layer_norm(&mut sketch, x, 24);
    assert_eq!(sketch.output(&[y]).optimised(&[random(&[5, 24], 1)]), ["LayerNormalization"]);
}

#[test]
fn a_residual_is_added_within_the_normalisation_behind_it() {
    let mut sketch = Sketch::new();
    let (x, y) = (sketch.input("x", Dtype::F32, &[5, 24]), sketch.input("y", Dtype::F32, &[5, 24]));
    let sum = sketch.op("Add", &[x, y]);
    let (scale, bias) = (sketch.weights(&[24], 3), sketch.weights(&[24], 4));
    let norm = sketch.op("LayerNormalization", &[sum, scale, bias]);
    let both = sketch.op("Mul", &[norm, sum]);
    let left = sketch.output(&[both]).optimised(&[random(&[5, 24], 1), random(&[5, 24], 2)]);
    assert_eq!(left, ["oarlock.SkipLayerNormalization", "Mul"]);
}

#[test]
fn a_product_takes_bias_residual_and_activation_with_it() {
    let mut sketch = Sketch::new();
    let (x, z) = (sketch.input("x", Dtype::F32, &[7, 16]), sketch.input("z", Dtype::F32, &[7, 24]));
    let (w, b) = (sketch.weights(&[16, 24], 2), sketch.weights(&[24], 3));
    let product = sketch.op("MatMul", &[x, w]);
    let biased = sketch.op("Add", &[b, product]);
    let sum = sketch.op("Add", &[biased, z]);
    let y = sketch.op("Relu", &[sum]);
    let left = sketch.output(&[y]).optimised(&[random(&[7, 16], 1), random(&[7, 24], 4)]);
    assert_eq!(left, ["oarlock.MatMul"]);
}

#[test]
fn a_value_that_others_read_stays_apart_from_what_follows_it() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[7, 16]);
    let w = sketch.weights(&[16, 24], 2);
    let product = sketch.op("MatMul", &[x, w]);
    let y = sketch.op("Relu", &[product]);
    let left = sketch.output(&[y, product]).optimised(&[random(&[7, 16], 1)]);
    assert_eq!(left, ["oarlock.MatMul", "Relu"]);
}

#[test]
fn images_keep_their_channels_last_from_one_convolution_to_the_next() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[1, 3, 12, 12]);
    let pads = |size: i64| vec![("pads", Attribute::Ints(vec![size; 4]))];
    let (w, b) = (sketch.weights(&[16, 3, 3, 3], 1), sketch.weights(&[16], 2));
    let first = sketch.op_with("Conv", &[x, w, b], &pads(1));
    let first = sketch.op("Relu", &[first]);
    let (w, b) = (sketch.weights(&[16, 16, 3, 3], 3), sketch.weights(&[16], 4));
    let second = sketch.op_with("Conv", &[first, w, b], &pads(1));
    let sum = sketch.op("Add", &[second, first]);
    let (low, high) = (sketch.scalar(0.0), sketch.scalar(6.0));
    let bounded = sketch.op("Clip", &[sum, low, high]);
    let pooled = sketch.op_with("MaxPool", &[bounded], &[("kernel_shape", Attribute::Ints(vec![2, 2]))]);
    let joined = sketch.op_with("Concat", &[pooled, pooled], &[("axis", Attribute::Int(1))]);
    let mean = sketch.op("GlobalAveragePool", &[joined]);
    let y = sketch.op("Flatten", &[mean]);
    let left = sketch.output(&[y]).optimised(&[random(&[1, 3, 12, 12], 9)]);
    let convolutions = left.iter().filter(|op| *op == "oarlock.Conv").count();
    let transposes = left.iter().filter(|op| *op == "Transpose").count();
    assert_eq!((convolutions, transposes), (2, 1), "{left:?}");
    assert!(!left.iter().any(|op| op == "Relu" || op == "Clip" || op == "Add"), "{left:?}");
}

#[test]
fn transposed_convolutions_read_and_write_images_whose_channels_are_last() {
    let pairs = |value: i64| Attribute::Ints(vec![value; 2]);
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[1, 4, 6, 7]);
    let w = sketch.weights(&[8, 4, 3, 3], 1);
    let first = sketch.op_with("Conv", &[x, w], &[("pads", Attribute::Ints(vec![1; 4]))]);
    let (w, b) = (sketch.weights(&[8, 3, 2, 2], 2), sketch.weights(&[6], 3));
    let strides = ("strides", pairs(2));
    let grown =
        sketch.op_with("ConvTranspose", &[first, w, b], &[strides.clone(), ("group", Attribute::Int(2))]);
    let [scale, shift, mean] = [4, 5, 6].map(|seed| sketch.weights(&[6], seed));
    let variance = sketch.floats(&[6], &[0.5, 1.0, 1.5, 2.0, 0.1, 0.2]);
    let norm = sketch.op("BatchNormalization", &[grown, scale, shift, mean, variance]);
    let bounded = sketch.op("Relu", &[norm]);
    let w = sketch.weights(&[6, 1, 4, 4], 7);
    let made =
        sketch.op_with("ConvTranspose", &[bounded, w], &[strides, ("pads", Attribute::Ints(vec![1; 4]))]);
    let y = sketch.op("Sigmoid", &[made]);
    let left = sketch.output(&[y]).optimised(&[random(&[1, 4, 6, 7], 9)]);
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
        let mut sketch = Sketch::new();
        let x = sketch.input("x", Dtype::F32, &[2, 3, 5, 5]);
        let w = sketch.weights(&[3, 5, 3, 4], 2);
        let attributes = [attributes, vec![pairs("strides", [2, 2])]].concat();
        let y = sketch.op_with("ConvTranspose", &[x, w], &attributes);
        let left = sketch.output(&[y]).optimised(&[random(&[2, 3, 5, 5], 9)]);
        assert!(left.contains(&"oarlock.ConvTranspose".to_owned()), "{attributes:?}: {left:?}");
    }
}

#[test]
fn a_batch_normalisation_becomes_part_of_the_weights_before_it() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[2, 4, 6, 6]);
    let w = sketch.weights(&[8, 4, 1, 1], 1);
    let conv = sketch.op("Conv", &[x, w]);
    let [scale, shift, mean] = [2, 3, 4].map(|seed| sketch.weights(&[8], seed));
    let variance = sketch.floats(&[8], &[0.5, 1.0, 1.5, 2.0, 0.1, 0.2, 0.3, 0.4]);
    let y = sketch.op("BatchNormalization", &[conv, scale, shift, mean, variance]);
    let left = sketch.output(&[y]).optimised(&[random(&[2, 4, 6, 6], 9)]);
    assert!(!left.contains(&"BatchNormalization".to_owned()), "{left:?}");
}

/// What exporters write for attention. Gives the output, and what became of keys and values.
fn attention(
    sketch: &mut Sketch,
    batch: i64,
    length: i64,
    past: Option<[ValueId; 2]>,
) -> (ValueId, [ValueId; 2]) {
    let (heads, size) = (3, 8);
    let x = sketch.input("x", Dtype::F32, &[batch, length, heads * size]);
    let shape = sketch.ints(&[batch, length, heads, size]);
    let order = |order: [i64; 4]| [("perm", Attribute::Ints(order.to_vec()))];
    let [query, mut key, mut value] = [1, 2, 3].map(|seed| {
        let w = sketch.weights(&[heads * size, heads * size], seed);
        let rows = sketch.op("MatMul", &[x, w]);
        let apart = sketch.op("Reshape", &[rows, shape]);
        sketch.op_with("Transpose", &[apart], &order([0, 2, 1, 3]))
    });
    if let Some([past_key, past_value]) = past {
        key = sketch.op_with("Concat", &[past_key, key], &[("axis", Attribute::Int(2))]);
        value = sketch.op_with("Concat", &[past_value, value], &[("axis", Attribute::Int(2))]);
    }
    let turned = sketch.op_with("Transpose", &[key], &order([0, 1, 3, 2]));
    let scores = sketch.op("MatMul", &[query, turned]);
    let root = sketch.scalar(8f32.sqrt());
    let scaled = sketch.op("Div", &[scores, root]);
    let weights = sketch.op_with("Softmax", &[scaled], &[("axis", Attribute::Int(-1))]);
    let made = sketch.op("MatMul", &[weights, value]);
    let back = sketch.op_with("Transpose", &[made], &order([0, 2, 1, 3]));
    let rows = sketch.ints(&[batch, length, heads * size]);
    (sketch.op("Reshape", &[back, rows]), [key, value])
}

#[test]
fn attention_is_found_and_reads_its_heads_from_rows() {
    let mut sketch = Sketch::new();
    let (y, _) = attention(&mut sketch, 2, 5, None);
    let left = sketch.output(&[y]).optimised(&[random(&[2, 5, 24], 9)]);
    assert_eq!(left, ["oarlock.MatMul", "oarlock.MatMul", "oarlock.MatMul", "Attention"]);
}

#[test]
fn attention_puts_past_and_present_together_itself() {
    let mut sketch = Sketch::new();
    let past = ["key", "value"].map(|name| sketch.input(name, Dtype::F32, &[2, 3, 7, 8]));
    let (y, [key, value]) = attention(&mut sketch, 2, 2, Some(past));
    let inputs = [random(&[2, 3, 7, 8], 5), random(&[2, 3, 7, 8], 6), random(&[2, 2, 24], 9)];
    let left = sketch.output(&[y, key, value]).optimised(&inputs);
    assert!(left.contains(&"Attention".to_owned()) && !left.contains(&"Concat".to_owned()), "{left:?}");
}

#[test]
fn a_mask_that_repeats_along_the_keys_is_not_one_that_ends_before_them() {
    let found = |mask: &[i64]| {
        let mut sketch = Sketch::new();
        let [query, key, value] = ["q", "k", "v"].map(|name| sketch.input(name, Dtype::F32, &[2, 3, 4, 8]));
        let mask_input = sketch.input("mask", Dtype::F32, mask);
        let turned = sketch.op_with("Transpose", &[key], &[("perm", Attribute::Ints(vec![0, 1, 3, 2]))]);
        let scores = sketch.op("MatMul", &[query, turned]);
        let masked = sketch.op("Add", &[scores, mask_input]);
        let weights = sketch.op_with("Softmax", &[masked], &[("axis", Attribute::Int(-1))]);
        let y = sketch.op("MatMul", &[weights, value]);
        let heads = |seed| random(&[2, 3, 4, 8], seed);
        let left = sketch.output(&[y]).optimised(&[heads(1), heads(2), heads(3), random(mask, 4)]);
        left.contains(&"Attention".to_owned())
    };
    for mask in [&[1][..], &[4, 1], &[1, 1, 1, 1], &[2, 1, 4, 1], &[1, 3, 1, 1]] {
        assert!(!found(mask), "{mask:?}");
    }
    for mask in [&[4, 4][..], &[1, 4], &[2, 1, 1, 4], &[1, 3, 4, 4]] {
        assert!(found(mask), "{mask:?}");
    }
}

#[test]
fn a_transpose_goes_as_far_as_it_can_at_once_however_long_the_way() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[2, 3, 4]);
    let order = |order: [i64; 3]| [("perm", Attribute::Ints(order.to_vec()))];
    let mut y = sketch.op_with("Transpose", &[x], &order([1, 2, 0]));
    for step in 0..3000 {
        y = sketch.op("Relu", &[y]);
        if step % 7 == 0 {
            y = sketch.op_with("Transpose", &[y], &order([1, 2, 0]));
        }
    }
    let left = sketch.output(&[y]).optimised(&[random(&[2, 3, 4], 1)]);
    assert!(left.iter().filter(|op| *op == "Transpose").count() <= 1, "{left:?}");
}

#[test]
fn a_branch_whose_condition_is_known_takes_the_place_of_the_if() {
    let mut branches = ["Exp", "Neg"].map(|op| {
        let mut branch = Sketch::new();
        let x = branch.graph.add(oarlock_engine::graph::Value::named("x"));
        branch.graph.inputs.push(x);
        let y = branch.op(op, &[x]);
        branch.output(&[y]).graph
    });
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[4]);
    let size = sketch.op("Size", &[x]);
    let four =
        sketch.constant(oarlock_core::Constant::new(Dtype::I64, &[], 4i64.to_ne_bytes().to_vec()).unwrap());
    let condition = sketch.op("Equal", &[size, four]);
    let y = sketch.op("If", &[condition]);
    sketch.with_graph("then_branch", std::mem::take(&mut branches[0]), &[x]);
    sketch.with_graph("else_branch", std::mem::take(&mut branches[1]), &[x]);
    assert_eq!(sketch.output(&[y]).optimised(&[random(&[4], 1)]), ["Exp"]);
}

#[test]
fn token_ids_are_looked_up_in_constants() {
    let mut sketch = Sketch::new();
    let ids = sketch.input("ids", Dtype::I64, &[-1]);
    let table = sketch.weights(&[10, 4], 1);
    let y = sketch.op("Gather", &[table, ids]);
    assert_eq!(sketch.output(&[y]).optimised(&[ints(&[3], &[9, 0, 4])]), ["Gather"]);
}

#[test]
fn activations_are_found_in_their_parts_and_become_part_of_the_product_before_them() {
    let swish = |sketch: &mut Sketch, x| {
        let sigmoid = sketch.op("Sigmoid", &[x]);
        sketch.op("Mul", &[sigmoid, x])
    };
    let hard_swish = |sketch: &mut Sketch, x| {
        let [three, zero, six] = [3.0, 0.0, 6.0].map(|value| sketch.scalar(value));
        let sum = sketch.op("Add", &[x, three]);
        let bounded = sketch.op("Clip", &[sum, zero, six]);
        let product = sketch.op("Mul", &[x, bounded]);
        sketch.op("Div", &[product, six])
    };
    let hard_sigmoid = |sketch: &mut Sketch, x| {
        let [three, zero, six] = [3.0, 0.0, 6.0].map(|value| sketch.scalar(value));
        let sum = sketch.op("Add", &[three, x]);
        let bounded = sketch.op("Clip", &[sum, zero, six]);
        sketch.op("Div", &[bounded, six])
    };
    for write in [swish, hard_swish, hard_sigmoid] {
        let mut sketch = Sketch::new();
        let x = sketch.input("x", Dtype::F32, &[5, 16]);
        let w = sketch.weights(&[16, 8], 2);
        let product = sketch.op("MatMul", &[x, w]);
        let y = write(&mut sketch, product);
        assert_eq!(sketch.output(&[y]).optimised(&[random(&[5, 16], 1)]), ["oarlock.MatMul"]);
    }
}
