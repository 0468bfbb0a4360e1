//! Inputs of many shapes in one session: plans reuse parts of plans for other shapes, with results that are bit for bit those
//! of a fresh session.

use oarlock_core::{Attribute, Constant, Dtype};
use oarlock_engine::graph::{GraphValue, ValueId};
use oarlock_engine::{RuntimeValue, SessionOptions};

use crate::random::SeededRandom;
use crate::sketch::{GraphSketch, datum_bytes, int_datum, random_datum};

/// Number of shapes for each model.
const ROUND_COUNT: usize = 24;

/// Runs a model on inputs that differ from round to round, in one lasting session and in a fresh one for each round.
pub(crate) fn check_shapes(
    sketch: &GraphSketch,
    seed: u64,
    rounds: usize,
    inputs: impl Fn(&mut SeededRandom) -> Vec<RuntimeValue>,
) {
    let lasting = sketch.start_session(&SessionOptions::default());
    let mut dice = SeededRandom(seed);
    for round in 0..rounds {
        let inputs = inputs(&mut dice);
        let given: Vec<_> = inputs.iter().map(datum_dims).collect();
        let fresh = sketch.start_session(&SessionOptions::default());
        let (found, expected) = match (lasting.run(&inputs), fresh.run(&inputs)) {
            (Ok(found), Ok(expected)) => (found, expected),
            // Incompatible shapes must be refused with the same message.
            (found, expected) => {
                let text =
                    |made: oarlock_core::Result<Vec<RuntimeValue>>| made.err().map(|error| error.to_string());
                assert_eq!(text(found), text(expected), "round {round}, {given:?}");
                continue;
            }
        };
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(datum_dims(found), datum_dims(expected), "round {round}, {given:?}, output {index}");
            assert_eq!(datum_bytes(found), datum_bytes(expected), "round {round}, {given:?}, output {index}");
        }
        // The passes must have done the same too.
        let graphs = [&lasting, &fresh].map(|session| {
            session.plan(&inputs).map_or_else(|error| error.to_string(), |plan| plan.graph().to_string())
        });
        assert_eq!(graphs[0], graphs[1], "round {round}, {given:?}");
    }
}

fn datum_dims(datum: &RuntimeValue) -> Vec<i64> {
    datum.as_tensor().map_or_else(|error| panic!("{error}"), |tensor| tensor.dims().to_vec())
}

fn pick_size(dice: &mut SeededRandom, sizes: &[i64]) -> i64 {
    dice.pick_one(sizes)
}

fn axis_attribute(axis: i64) -> [(&'static str, Attribute); 1] {
    [("axis", Attribute::Int(axis))]
}

fn permutation_attribute(order: &[i64]) -> [(&'static str, Attribute); 1] {
    [("perm", Attribute::Ints(order.to_vec()))]
}

/// One size of a value, as a list.
fn add_size(sketch: &mut GraphSketch, value: ValueId, at: i64) -> ValueId {
    let shape = sketch.add_op("Shape", &[value]);
    let at = sketch.add_ints(&[at]);
    sketch.add_op("Gather", &[shape, at])
}

#[test]
fn attention_that_remembers_computes_the_same_for_every_length() {
    let (heads, width) = (2, 4);
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1, -1, heads * width]);
    let past = ["key", "value"].map(|name| sketch.add_input(name, Dtype::F32, &[-1, heads, -1, width]));
    let (batch, length) = (add_size(&mut sketch, x, 0), add_size(&mut sketch, x, 1));
    let apart = sketch.add_ints(&[heads, width]);
    let apart = sketch.add_op_with("Concat", &[batch, length, apart], &axis_attribute(0));
    let part = |sketch: &mut GraphSketch, seed: u32| {
        let w = sketch.add_weights(&[heads * width, heads * width], seed);
        let rows = sketch.add_op("MatMul", &[x, w]);
        let parted = sketch.add_op("Reshape", &[rows, apart]);
        sketch.add_op_with("Transpose", &[parted], &permutation_attribute(&[0, 2, 1, 3]))
    };
    let [query, key, value] = [1, 2, 3].map(|seed| part(&mut sketch, seed));
    let key = sketch.add_op_with("Concat", &[past[0], key], &axis_attribute(2));
    let value = sketch.add_op_with("Concat", &[past[1], value], &axis_attribute(2));
    let turned = sketch.add_op_with("Transpose", &[key], &permutation_attribute(&[0, 1, 3, 2]));
    let scores = sketch.add_op("MatMul", &[query, turned]);
    let half = sketch.add_scalar(0.5);
    let scaled = sketch.add_op("Mul", &[scores, half]);
    // A slice of a table, as wide as there are keys, masks some of them.
    let table = sketch.add_weights(&[1, 1, 1, 64], 4);
    let (zero, last) = (sketch.add_ints(&[0]), sketch.add_ints(&[3]));
    let keys = add_size(&mut sketch, key, 2);
    let mask = sketch.add_op("Slice", &[table, zero, keys, last]);
    let masked = sketch.add_op("Add", &[scaled, mask]);
    let weights = sketch.add_op_with("Softmax", &[masked], &axis_attribute(-1));
    let made = sketch.add_op("MatMul", &[weights, value]);
    let turned = sketch.add_op_with("Transpose", &[made], &permutation_attribute(&[0, 2, 1, 3]));
    let joined = sketch.add_ints(&[0, 0, -1]);
    let y = sketch.add_op("Reshape", &[turned, joined]);
    let sketch = sketch.with_outputs(&[y, key, value]);
    check_shapes(&sketch, 1, ROUND_COUNT, |dice| {
        let (batch, length) = (pick_size(dice, &[1, 1, 2]), pick_size(dice, &[1, 1, 2, 5]));
        let past = pick_size(dice, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 30]);
        vec![
            random_datum(&[batch, length, heads * width], 5),
            random_datum(&[batch, heads, past, width], 6),
            random_datum(&[batch, heads, past, width], 7),
        ]
    });
}

#[test]
fn convolutions_compute_the_same_for_images_of_every_size() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1, 3, -1, -1]);
    let pads = |pads: &str| [("auto_pad", Attribute::String(pads.to_owned()))];
    let conv = |sketch: &mut GraphSketch, x: ValueId, dims: &[i64], attributes: &[(&str, Attribute)]| {
        let (w, b) = (sketch.add_weights(dims, 1), sketch.add_weights(&dims[..1], 2));
        let made = sketch.add_op_with("Conv", &[x, w, b], attributes);
        sketch.add_op("Relu", &[made])
    };
    let strides = ("strides", Attribute::Ints(vec![2, 2]));
    let [same] = pads("SAME_UPPER");
    let a = conv(&mut sketch, x, &[8, 3, 3, 3], &[same.clone(), strides]);
    let b = conv(&mut sketch, a, &[8, 8, 3, 3], &[same]);
    let sum = sketch.add_op("Add", &[a, b]);
    let pooled = sketch.add_op("GlobalAveragePool", &[sum]);
    let gate = sketch.add_op("Sigmoid", &[pooled]);
    let gated = sketch.add_op("Mul", &[sum, gate]);
    let flat = sketch.add_op("Flatten", &[pooled]);
    let w = sketch.add_weights(&[8, 5], 3);
    let y = sketch.add_op("MatMul", &[flat, w]);
    let sketch = sketch.with_outputs(&[y, gated]);
    check_shapes(&sketch, 2, ROUND_COUNT, |dice| {
        let dims = [
            pick_size(dice, &[0, 1, 1, 2, 3]),
            3,
            pick_size(dice, &[1, 2, 7, 8, 20]),
            pick_size(dice, &[1, 8, 9, 17]),
        ];
        vec![random_datum(&dims, 5)]
    });
}

#[test]
fn a_loop_over_what_grows_computes_the_same() {
    let mut body = GraphSketch::new();
    let [iteration, condition, state, step] =
        ["i", "go", "state", "step"].map(|name| body.graph.add_value(GraphValue::with_name(name)));
    body.graph.inputs = vec![iteration, condition, state, step];
    let longer = body.add_op_with("Concat", &[state, step], &axis_attribute(0));
    let go = body.add_op("Identity", &[condition]);
    let sum = body.add_op("ReduceSum", &[longer]);
    let rows = body.add_op("Shape", &[longer]);
    let spread = body.add_op("Expand", &[sum, rows]);
    let longer = body.add_op("Sub", &[longer, spread]);
    let body = body.with_outputs(&[go, longer, sum]).graph;
    let mut sketch = GraphSketch::new();
    let count = sketch.add_input("count", Dtype::I64, &[]);
    let [start, step] = ["start", "step"].map(|name| sketch.add_input(name, Dtype::F32, &[-1, -1]));
    let go = sketch.add_constant(Constant::new(Dtype::Bool, &[], vec![1]).unwrap());
    let made = sketch.add_op_with_outputs("Loop", &[count, go, start], &[], 2);
    sketch.set_subgraph("body", body, &[step]);
    let sketch = sketch.with_outputs(&made);
    check_shapes(&sketch, 3, ROUND_COUNT, |dice| {
        let (width, rows) = (pick_size(dice, &[1, 2, 5]), pick_size(dice, &[0, 1, 3]));
        vec![
            int_datum(&[], &[pick_size(dice, &[0, 1, 7])]),
            random_datum(&[rows, width], 5),
            random_datum(&[pick_size(dice, &[0, 1, 2]), width], 6),
        ]
    });
}

#[test]
fn what_only_some_sizes_make_needless_is_done_for_the_others() {
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1, -1, 4]);
    let other = sketch.add_input("other", Dtype::F32, &[-1, -1, -1]);
    let shape = sketch.add_op("Shape", &[other]);
    // Each of these ops has no effect for some sizes: expand, transpose, reshape, slice, pad.
    let wide = sketch.add_op("Expand", &[x, shape]);
    let sum = sketch.add_op("Add", &[wide, other]);
    let turned = sketch.add_op_with("Transpose", &[sum], &permutation_attribute(&[1, 0, 2]));
    let minus_one = sketch.add_ints(&[-1]);
    let rows = add_size(&mut sketch, turned, 0);
    let target = sketch.add_op_with("Concat", &[rows, minus_one], &axis_attribute(0));
    let joined = sketch.add_op("Reshape", &[turned, target]);
    let (zero, one) = (sketch.add_ints(&[0]), sketch.add_ints(&[1]));
    let part = sketch.add_op("Slice", &[joined, zero, rows, one]);
    // A scalar that depends on sizes, and a list computed from them.
    let float = sketch.add_op_with("Cast", &[rows], &[("to", Attribute::Int(1))]);
    let root = sketch.add_op("Sqrt", &[float]);
    let scaled = sketch.add_op("Div", &[part, root]);
    let scalars =
        [0i64, 1].map(|number| Constant::new(Dtype::I64, &[], number.to_ne_bytes().to_vec()).unwrap());
    let scalars = scalars.map(|scalar| sketch.add_constant(scalar));
    let count = sketch.add_op("Squeeze", &[rows]);
    let range = sketch.add_op("Range", &[scalars[0], count, scalars[1]]);
    let column = sketch.add_op("Unsqueeze", &[range, one]);
    let column = sketch.add_op_with("Cast", &[column], &[("to", Attribute::Int(1))]);
    let y = sketch.add_op("Add", &[scaled, column]);
    let sketch = sketch.with_outputs(&[y, sum]);
    check_shapes(&sketch, 4, ROUND_COUNT, |dice| {
        let (a, b) = (pick_size(dice, &[0, 1, 1, 2, 3]), pick_size(dice, &[1, 1, 2, 3]));
        let mut repeated = |own: i64| if own == 1 { pick_size(dice, &[1, 1, 2, 3]) } else { own };
        let dims = [repeated(a), repeated(b), 4];
        vec![random_datum(&[a, b, 4], 5), random_datum(&dims, 6)]
    });
}

#[test]
fn branches_that_depend_on_sizes_are_taken_for_each_size() {
    let branch = |op: &str| {
        let mut sketch = GraphSketch::new();
        let x = sketch.graph.add_value(GraphValue::with_name("x"));
        sketch.graph.inputs = vec![x];
        let y = sketch.add_op(op, &[x]);
        sketch.with_outputs(&[y]).graph
    };
    let mut sketch = GraphSketch::new();
    let x = sketch.add_input("x", Dtype::F32, &[-1, -1]);
    let (rows, columns) = (add_size(&mut sketch, x, 0), add_size(&mut sketch, x, 1));
    let is_square = sketch.add_op("Equal", &[rows, columns]);
    let condition = sketch.add_op("Squeeze", &[is_square]);
    let chosen = sketch.add_op("If", &[condition]);
    sketch.set_subgraph("then_branch", branch("Neg"), &[x]);
    sketch.set_subgraph("else_branch", branch("Abs"), &[x]);
    let y = sketch.add_op_with("Concat", &[chosen, x], &axis_attribute(0));
    let sketch = sketch.with_outputs(&[y]);
    let sizes = &[0, 1, 2, 3, 4];
    check_shapes(&sketch, 5, ROUND_COUNT, |dice| {
        vec![random_datum(&[pick_size(dice, sizes), pick_size(dice, sizes)], 5)]
    });
}

#[test]
fn shapes_that_do_not_fit_are_refused_after_some_that_did() {
    let mut sketch = GraphSketch::new();
    let [x, y] = ["x", "y"].map(|name| sketch.add_input(name, Dtype::F32, &[-1, -1]));
    let sum = sketch.add_op("Add", &[x, y]);
    let product = sketch.add_op("MatMul", &[sum, y]);
    let sketch = sketch.with_outputs(&[product]);
    let sizes = &[1, 2, 3];
    check_shapes(&sketch, 6, ROUND_COUNT, |dice| {
        let mut dims = || [pick_size(dice, sizes), pick_size(dice, sizes)];
        let (x, y) = (dims(), dims());
        vec![random_datum(&x, 5), random_datum(&y, 6)]
    });
}
