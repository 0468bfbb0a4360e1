//! Each pass on a graph made for it: the remaining ops, and equal results.

use oarlock_core::{Attribute, Constant, Dtype};
use oarlock_engine::graph::ValueId;

use crate::sketch::{GraphSketch, int_datum, random_datum};

#[test]
fn what_does_not_depend_on_inputs_is_computed_once() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[2, 3]);
    let (a, b) = (sketch.add_scalar(2.0), sketch.add_scalar(3.0));
    let six = sketch.add_op("Mul", &[a, b]);
    let y = sketch.add_op("Mul", &[x, six]);
    assert_eq!(sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[2, 3], 1)]), ["Mul"]);
}

#[test]
fn weights_of_8_bits_are_cast_and_scaled_once() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[2, 640]);
    // The cast weights have more than 1 MiB.
    let bytes: Vec<u8> = (0..640 * 512).map(|index| (index % 251) as u8).collect();
    let bytes = sketch.add_constant(Constant::new(Dtype::I8, &[640, 512], bytes).expect("a matrix"));
    let real = sketch.add_op_with("Cast", &[bytes], &[("to", Attribute::Int(1))]);
    let scale = sketch.add_scalar(0.01);
    let scaled = sketch.add_op("Mul", &[real, scale]);
    let y = sketch.add_op("MatMul", &[x, scaled]);
    let sketch = sketch.with_outputs(&[y]);
    assert_eq!(sketch.check_optimized(&[random_datum(&[2, 640], 1)]), ["oarlock.MatMul"]);
}

#[test]
fn large_values_are_filled_once_only_if_they_are_weights_of_layers() {
    for (op, expected) in [("MatMul", &["oarlock.MatMul"][..]), ("Add", &["ConstantOfShape", "Add"])] {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::F32, &[2, 640]);
        let dims = sketch.add_ints(&[640, 640]);
        let filled = sketch.add_op("ConstantOfShape", &[dims]);
        let operands = if op == "MatMul" { [x, filled] } else { [filled, filled] };
        let y = sketch.add_op(op, &operands);
        let sketch = sketch.with_outputs(&[y]);
        assert_eq!(sketch.check_optimized(&[random_datum(&[2, 640], 1)]), expected, "{op}");
    }
}

#[test]
fn a_shape_that_is_put_together_from_sizes_is_computed_when_they_are_known() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1, 4, 6]);
    let shape = sketch.add_op("Shape", &[x]);
    let (zero, minus_one) = (sketch.add_ints(&[0]), sketch.add_ints(&[-1]));
    let batch = sketch.add_op("Gather", &[shape, zero]);
    let target = sketch.add_op_with("Concat", &[batch, minus_one], &[("axis", Attribute::Int(0))]);
    let flat = sketch.add_op("Reshape", &[x, target]);
    let y = sketch.add_op("Relu", &[flat]);
    let sketch = sketch.with_outputs(&[y]);
    for batch in [1, 3] {
        assert_eq!(sketch.check_optimized(&[random_datum(&[batch, 4, 6], 1)]), ["Reshape", "Relu"]);
    }
}

#[test]
fn nodes_whose_outputs_nobody_reads_are_removed() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[4]);
    let unread = sketch.add_op("Exp", &[x]);
    sketch.add_op("Neg", &[unread]);
    let y = sketch.add_op("Abs", &[x]);
    assert_eq!(sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[4], 1)]), ["Abs"]);
}

#[test]
fn nodes_that_do_nothing_are_removed() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[4, 1]);
    let same = sketch.add_op("Identity", &[x]);
    let dropped = sketch.add_op("Dropout", &[same]);
    let cast = sketch.add_op_with("Cast", &[dropped], &[("to", Attribute::Int(1))]);
    let turned = sketch.add_op_with("Transpose", &[cast], &[("perm", Attribute::Ints(vec![0, 1]))]);
    let y = sketch.add_op("Abs", &[turned]);
    assert_eq!(sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[4, 1], 1)]), ["Abs"]);
}

#[test]
fn an_output_that_is_an_input_is_handed_on() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[4]);
    let y = sketch.add_op("Identity", &[x]);
    assert_eq!(sketch.with_outputs(&[y, x]).check_optimized(&[random_datum(&[4], 1)]), Vec::<String>::new());
}

#[test]
fn what_is_computed_twice_is_computed_once() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[4]);
    let (a, b) = (sketch.add_op("Exp", &[x]), sketch.add_op("Exp", &[x]));
    let (a, b) = (sketch.add_op("Neg", &[a]), sketch.add_op("Neg", &[b]));
    let y = sketch.add_op("Add", &[a, b]);
    assert_eq!(sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[4], 1)]), ["Exp", "Neg", "Add"]);
}

#[test]
fn random_numbers_are_never_the_same() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[64]);
    let (a, b) = (sketch.add_op("RandomNormalLike", &[x]), sketch.add_op("RandomNormalLike", &[x]));
    let difference = sketch.add_op("Sub", &[a, b]);
    let sketch = sketch.with_outputs(&[difference]);
    let session = sketch.start_session(&oarlock_engine::SessionOptions::default());
    let made = crate::sketch::run_session(&session, &[random_datum(&[64], 1)]);
    assert!(crate::sketch::datum_bytes(&made[0]).iter().any(|byte| *byte != 0));
}

#[test]
fn attention_with_subgraphs_matches_attention_without_them() {
    let mut change = GraphSketch::new();
    let [scores, factor] = ["scores", "factor"]
        .map(|name| change.graph.add_value(oarlock_engine::graph::GraphValue::with_name(name)));
    change.graph.inputs = vec![scores, factor];
    let changed = change.add_op("Mul", &[scores, factor]);
    let change = change.with_outputs(&[changed]).graph;
    for is_known in [true, false] {
        let size = |size: i64| if is_known { size } else { -1 };
        let mut sketch = GraphSketch::new();
        let query = sketch.add_input("query", Dtype::F32, &[size(2), 4, size(3), 8]);
        let key = sketch.add_input("key", Dtype::F32, &[size(2), 2, size(5), 8]);
        let value = sketch.add_input("value", Dtype::F32, &[size(2), 2, size(5), 6]);
        let half = sketch.add_scalar(0.5);
        let attention = |sketch: &mut GraphSketch, attributes: &[(&str, Attribute)]| {
            let made = sketch.add_op_with("FlexAttention", &[query, key, value], attributes);
            let node = sketch.graph.nodes.last_mut().unwrap();
            (node.domain, node.opset) = ("ai.onnx.preview".into(), 1);
            made
        };
        let with = attention(&mut sketch, &[]);
        sketch.set_subgraph("score_mod", change.clone(), &[half]);
        let without = attention(&mut sketch, &[("scale", Attribute::Float(0.5 / 8f64.sqrt()))]);
        let difference = sketch.add_op("Sub", &[with, without]);
        let sketch = sketch.with_outputs(&[with, difference]);
        let inputs =
            [random_datum(&[2, 4, 3, 8], 1), random_datum(&[2, 2, 5, 8], 2), random_datum(&[2, 2, 5, 6], 3)];
        let ops = sketch.check_optimized(&inputs);
        assert!(!ops.iter().any(|op| op.contains("FlexAttention")), "{ops:?}");
        let made = crate::sketch::run_session(
            &sketch.start_session(&oarlock_engine::SessionOptions::default()),
            &inputs,
        );
        let [made, difference] = [0, 1].map(|at| made[at].as_tensor().unwrap().to_vec::<f32>().unwrap());
        assert!(made.iter().any(|element| element.abs() > 0.1), "{made:?}");
        assert!(difference.iter().all(|element| element.abs() < 1e-5), "{difference:?}");
    }
}

#[test]
fn gelu_is_found_in_every_order_that_exporters_write() {
    type WriteGraph = fn(&mut GraphSketch, ValueId) -> ValueId;
    let erf: WriteGraph = |sketch, x| {
        let (root, one, half) =
            (sketch.add_scalar(2f32.sqrt()), sketch.add_scalar(1.0), sketch.add_scalar(0.5));
        let scaled = sketch.add_op("Div", &[x, root]);
        let erf = sketch.add_op("Erf", &[scaled]);
        let sum = sketch.add_op("Add", &[erf, one]);
        let product = sketch.add_op("Mul", &[x, sum]);
        sketch.add_op("Mul", &[product, half])
    };
    let half_first: WriteGraph = |sketch, x| {
        let (factor, one, half) =
            (sketch.add_scalar(0.5f32.sqrt()), sketch.add_scalar(1.0), sketch.add_scalar(0.5));
        let scaled = sketch.add_op("Mul", &[factor, x]);
        let erf = sketch.add_op("Erf", &[scaled]);
        let sum = sketch.add_op("Add", &[one, erf]);
        let halved = sketch.add_op("Mul", &[half, x]);
        sketch.add_op("Mul", &[sum, halved])
    };
    let tanh: WriteGraph = |sketch, x| {
        let (three, cubed) = (sketch.add_scalar(3.0), sketch.add_scalar(0.044715));
        let (factor, one, half) = (
            sketch.add_scalar((2.0 / std::f32::consts::PI).sqrt()),
            sketch.add_scalar(1.0),
            sketch.add_scalar(0.5),
        );
        let power = sketch.add_op("Pow", &[x, three]);
        let part = sketch.add_op("Mul", &[power, cubed]);
        let inner = sketch.add_op("Add", &[x, part]);
        let scaled = sketch.add_op("Mul", &[inner, factor]);
        let tanh = sketch.add_op("Tanh", &[scaled]);
        let sum = sketch.add_op("Add", &[tanh, one]);
        let halved = sketch.add_op("Mul", &[x, half]);
        sketch.add_op("Mul", &[halved, sum])
    };
    for write in [erf, half_first, tanh] {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::F32, &[8, 16]);
        let y = write(&mut sketch, x);
        assert_eq!(sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[8, 16], 1)]), ["Gelu"]);
    }
}

#[test]
fn what_is_nearly_gelu_is_left_alone() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[8]);
    let (root, one, half) = (sketch.add_scalar(1.5), sketch.add_scalar(1.0), sketch.add_scalar(0.5));
    let scaled = sketch.add_op("Div", &[x, root]);
    let erf = sketch.add_op("Erf", &[scaled]);
    let sum = sketch.add_op("Add", &[erf, one]);
    let product = sketch.add_op("Mul", &[x, sum]);
    let y = sketch.add_op("Mul", &[product, half]);
    let left = sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[8], 1)]);
    assert!(left.contains(&"Erf".to_owned()), "{left:?}");
}

/// The ops that older exporters emit for layer normalization.
fn add_layer_norm(sketch: &mut GraphSketch, x: ValueId, size: i64) -> ValueId {
    let axes = [("axes", Attribute::Ints(vec![-1]))];
    let old = |sketch: &mut GraphSketch, value| {
        let made = sketch.add_op_with("ReduceMean", &[value], &axes);
        sketch.graph.nodes.last_mut().expect("a node").opset = 13;
        made
    };
    let (two, epsilon) = (sketch.add_scalar(2.0), sketch.add_scalar(1e-5));
    let mean = old(sketch, x);
    let difference = sketch.add_op("Sub", &[x, mean]);
    let square = sketch.add_op("Pow", &[difference, two]);
    let variance = old(sketch, square);
    let sum = sketch.add_op("Add", &[variance, epsilon]);
    let root = sketch.add_op("Sqrt", &[sum]);
    let quotient = sketch.add_op("Div", &[difference, root]);
    let (scale, bias) = (sketch.add_weights(&[size], 3), sketch.add_weights(&[size], 4));
    let scaled = sketch.add_op("Mul", &[quotient, scale]);
    sketch.add_op("Add", &[scaled, bias])
}

#[test]
fn layer_normalization_is_found_in_its_parts() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[5, 24]);
    let y = add_layer_norm(&mut sketch, x, 24);
    assert_eq!(
        sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[5, 24], 1)]),
        ["LayerNormalization"]
    );
}

#[test]
fn a_residual_is_added_within_the_normalization_behind_it() {
    let mut sketch = GraphSketch::new();
    let (x, y) = (sketch.add_input("x", Dtype::F32, &[5, 24]), sketch.add_input("y", Dtype::F32, &[5, 24]));
    let sum = sketch.add_op("Add", &[x, y]);
    let (scale, bias) = (sketch.add_weights(&[24], 3), sketch.add_weights(&[24], 4));
    let norm = sketch.add_op("LayerNormalization", &[sum, scale, bias]);
    let both = sketch.add_op("Mul", &[norm, sum]);
    let left =
        sketch.with_outputs(&[both]).check_optimized(&[random_datum(&[5, 24], 1), random_datum(&[5, 24], 2)]);
    assert_eq!(left, ["oarlock.SkipLayerNormalization", "Mul"]);
}

#[test]
fn rms_normalization_is_found_in_every_form_that_exporters_write() {
    for form in 0..4 {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::F32, &[-1, 16]);
        let [two, half, one, inverse] = [2.0, 0.5, 1.0, -0.5].map(|value| sketch.add_scalar(value));
        let square = if form == 0 { sketch.add_op("Mul", &[x, x]) } else { sketch.add_op("Pow", &[x, two]) };
        let axes = sketch.add_ints(&[-1]);
        let mean = sketch.add_op("ReduceMean", &[square, axes]);
        let epsilon = sketch.add_scalar(1e-6);
        let sum = sketch.add_op("Add", &[epsilon, mean]);
        let normal = match form {
            0 => {
                let root = sketch.add_op("Sqrt", &[sum]);
                sketch.add_op("Div", &[x, root])
            }
            1 => {
                let root = sketch.add_op("Sqrt", &[sum]);
                let factor = sketch.add_op("Reciprocal", &[root]);
                sketch.add_op("Mul", &[factor, x])
            }
            2 => {
                let root = sketch.add_op("Pow", &[sum, half]);
                let factor = sketch.add_op("Div", &[one, root]);
                sketch.add_op("Mul", &[x, factor])
            }
            _ => {
                let factor = sketch.add_op("Pow", &[sum, inverse]);
                sketch.add_op("Mul", &[x, factor])
            }
        };
        let scale = sketch.add_weights(&[16], 3);
        let y = sketch.add_op("Mul", &[scale, normal]);
        let left = sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[3, 16], 1)]);
        assert_eq!(left, ["RMSNormalization"], "{form}");
    }
}

#[test]
fn a_product_takes_bias_residual_and_activation_with_it() {
    let mut sketch = GraphSketch::new();
    let (x, z) = (sketch.add_input("x", Dtype::F32, &[7, 16]), sketch.add_input("z", Dtype::F32, &[7, 24]));
    let (w, b) = (sketch.add_weights(&[16, 24], 2), sketch.add_weights(&[24], 3));
    let product = sketch.add_op("MatMul", &[x, w]);
    let biased = sketch.add_op("Add", &[b, product]);
    let sum = sketch.add_op("Add", &[biased, z]);
    let y = sketch.add_op("Relu", &[sum]);
    let left =
        sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[7, 16], 1), random_datum(&[7, 24], 4)]);
    assert_eq!(left, ["oarlock.MatMul"]);
}

#[test]
fn a_product_with_other_readers_is_not_fused() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[7, 16]);
    let w = sketch.add_weights(&[16, 24], 2);
    let product = sketch.add_op("MatMul", &[x, w]);
    let y = sketch.add_op("Relu", &[product]);
    let left = sketch.with_outputs(&[y, product]).check_optimized(&[random_datum(&[7, 16], 1)]);
    assert_eq!(left, ["oarlock.MatMul", "Relu"]);
}

/// The ops that exporters emit for attention. Returns the output, and the present keys and values.
fn add_attention(
    sketch: &mut GraphSketch,
    batch: i64,
    length: i64,
    past: Option<[ValueId; 2]>,
) -> (ValueId, [ValueId; 2]) {
    let (heads, size) = (3, 8);
    let x = sketch.add_input("x", Dtype::F32, &[batch, length, heads * size]);
    let shape = sketch.add_ints(&[batch, length, heads, size]);
    let order = |order: [i64; 4]| [("perm", Attribute::Ints(order.to_vec()))];
    let [query, mut key, mut value] = [1, 2, 3].map(|seed| {
        let w = sketch.add_weights(&[heads * size, heads * size], seed);
        let rows = sketch.add_op("MatMul", &[x, w]);
        let apart = sketch.add_op("Reshape", &[rows, shape]);
        sketch.add_op_with("Transpose", &[apart], &order([0, 2, 1, 3]))
    });
    if let Some([past_key, past_value]) = past {
        key = sketch.add_op_with("Concat", &[past_key, key], &[("axis", Attribute::Int(2))]);
        value = sketch.add_op_with("Concat", &[past_value, value], &[("axis", Attribute::Int(2))]);
    }
    let turned = sketch.add_op_with("Transpose", &[key], &order([0, 1, 3, 2]));
    let scores = sketch.add_op("MatMul", &[query, turned]);
    let root = sketch.add_scalar(8f32.sqrt());
    let scaled = sketch.add_op("Div", &[scores, root]);
    let weights = sketch.add_op_with("Softmax", &[scaled], &[("axis", Attribute::Int(-1))]);
    let made = sketch.add_op("MatMul", &[weights, value]);
    let back = sketch.add_op_with("Transpose", &[made], &order([0, 2, 1, 3]));
    let rows = sketch.add_ints(&[batch, length, heads * size]);
    (sketch.add_op("Reshape", &[back, rows]), [key, value])
}

#[test]
fn attention_is_found_and_reads_its_heads_from_rows() {
    let mut sketch = GraphSketch::new();
    let (y, _) = add_attention(&mut sketch, 2, 5, None);
    let left = sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[2, 5, 24], 9)]);
    assert_eq!(left, ["oarlock.MatMul", "oarlock.MatMul", "oarlock.MatMul", "Attention"]);
}

#[test]
fn attention_puts_past_and_present_together_itself() {
    let mut sketch = GraphSketch::new();
    let past = ["key", "value"].map(|name| sketch.add_input(name, Dtype::F32, &[2, 3, 7, 8]));
    let (y, [key, value]) = add_attention(&mut sketch, 2, 2, Some(past));
    let inputs =
        [random_datum(&[2, 3, 7, 8], 5), random_datum(&[2, 3, 7, 8], 6), random_datum(&[2, 2, 24], 9)];
    let left = sketch.with_outputs(&[y, key, value]).check_optimized(&inputs);
    assert!(left.contains(&"Attention".to_owned()) && !left.contains(&"Concat".to_owned()), "{left:?}");
}

#[test]
fn a_mask_that_repeats_along_the_keys_is_not_one_that_ends_before_them() {
    let found = |mask: &[i64]| {
        let mut sketch = GraphSketch::new();
        let [query, key, value] =
            ["q", "k", "v"].map(|name| sketch.add_input(name, Dtype::F32, &[2, 3, 4, 8]));
        let mask_input = sketch.add_input("mask", Dtype::F32, mask);
        let turned = sketch.add_op_with("Transpose", &[key], &[("perm", Attribute::Ints(vec![0, 1, 3, 2]))]);
        let scores = sketch.add_op("MatMul", &[query, turned]);
        let masked = sketch.add_op("Add", &[scores, mask_input]);
        let weights = sketch.add_op_with("Softmax", &[masked], &[("axis", Attribute::Int(-1))]);
        let y = sketch.add_op("MatMul", &[weights, value]);
        let heads = |seed| random_datum(&[2, 3, 4, 8], seed);
        let left =
            sketch.with_outputs(&[y]).check_optimized(&[heads(1), heads(2), heads(3), random_datum(mask, 4)]);
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
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[2, 3, 4]);
    let order = |order: [i64; 3]| [("perm", Attribute::Ints(order.to_vec()))];
    let mut y = sketch.add_op_with("Transpose", &[x], &order([1, 2, 0]));
    for step in 0..3000 {
        y = sketch.add_op("Relu", &[y]);
        if step % 7 == 0 {
            y = sketch.add_op_with("Transpose", &[y], &order([1, 2, 0]));
        }
    }
    let left = sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[2, 3, 4], 1)]);
    assert!(left.iter().filter(|op| *op == "Transpose").count() <= 1, "{left:?}");
}

#[test]
fn a_branch_whose_condition_is_known_takes_the_place_of_the_if() {
    let mut branches = ["Exp", "Neg"].map(|op| {
        let mut branch = GraphSketch::new();
        let x = branch.graph.add_value(oarlock_engine::graph::GraphValue::with_name("x"));
        branch.graph.inputs.push(x);
        let y = branch.add_op(op, &[x]);
        branch.with_outputs(&[y]).graph
    });
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[4]);
    let size = sketch.add_op("Size", &[x]);
    let four = sketch
        .add_constant(oarlock_core::Constant::new(Dtype::I64, &[], 4i64.to_ne_bytes().to_vec()).unwrap());
    let condition = sketch.add_op("Equal", &[size, four]);
    let y = sketch.add_op("If", &[condition]);
    sketch.set_subgraph("then_branch", std::mem::take(&mut branches[0]), &[x]);
    sketch.set_subgraph("else_branch", std::mem::take(&mut branches[1]), &[x]);
    assert_eq!(sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[4], 1)]), ["Exp"]);
}

#[test]
fn token_ids_are_looked_up_in_constants() {
    let mut sketch = GraphSketch::new();
    let ids = sketch.add_input("ids", Dtype::I64, &[-1]);
    let table = sketch.add_weights(&[10, 4], 1);
    let y = sketch.add_op("Gather", &[table, ids]);
    assert_eq!(sketch.with_outputs(&[y]).check_optimized(&[int_datum(&[3], &[9, 0, 4])]), ["Gather"]);
}

#[test]
fn activations_are_found_in_their_parts_and_become_part_of_the_product_before_them() {
    let swish = |sketch: &mut GraphSketch, x| {
        let sigmoid = sketch.add_op("Sigmoid", &[x]);
        sketch.add_op("Mul", &[sigmoid, x])
    };
    let hard_swish = |sketch: &mut GraphSketch, x| {
        let [three, zero, six] = [3.0, 0.0, 6.0].map(|value| sketch.add_scalar(value));
        let sum = sketch.add_op("Add", &[x, three]);
        let bounded = sketch.add_op("Clip", &[sum, zero, six]);
        let product = sketch.add_op("Mul", &[x, bounded]);
        sketch.add_op("Div", &[product, six])
    };
    let hard_sigmoid = |sketch: &mut GraphSketch, x| {
        let [three, zero, six] = [3.0, 0.0, 6.0].map(|value| sketch.add_scalar(value));
        let sum = sketch.add_op("Add", &[three, x]);
        let bounded = sketch.add_op("Clip", &[sum, zero, six]);
        sketch.add_op("Div", &[bounded, six])
    };
    for write in [swish, hard_swish, hard_sigmoid] {
        let mut sketch = GraphSketch::new();
        let x = sketch.add_input("x", Dtype::F32, &[5, 16]);
        let w = sketch.add_weights(&[16, 8], 2);
        let product = sketch.add_op("MatMul", &[x, w]);
        let y = write(&mut sketch, product);
        assert_eq!(
            sketch.with_outputs(&[y]).check_optimized(&[random_datum(&[5, 16], 1)]),
            ["oarlock.MatMul"]
        );
    }
}
