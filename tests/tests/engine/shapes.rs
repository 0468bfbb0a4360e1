//! Inputs of many shapes in one session: whatever a plan takes over from plans for other shapes, it computes to the bit what
//! a session computes that never saw any other.

use oarlock_core::{Attribute, Constant, Dtype};
use oarlock_engine::graph::{Value, ValueId};
use oarlock_engine::{Datum, SessionOptions};

use crate::random::Dice;
use crate::sketch::{Sketch, bytes, ints, random};

/// How many shapes each model is given.
const ROUNDS: usize = 24;

/// Runs a model on inputs that differ from round to round, in one session and in one for each round.
pub(crate) fn check(sketch: &Sketch, seed: u64, rounds: usize, inputs: impl Fn(&mut Dice) -> Vec<Datum>) {
    let lasting = sketch.session(&SessionOptions::default());
    let mut dice = Dice(seed);
    for round in 0..rounds {
        let inputs = inputs(&mut dice);
        let given: Vec<_> = inputs.iter().map(dims).collect();
        let fresh = sketch.session(&SessionOptions::default());
        let (found, expected) = match (lasting.run(&inputs), fresh.run(&inputs)) {
            (Ok(found), Ok(expected)) => (found, expected),
            // Shapes that do not fit together are refused in the same words.
            (found, expected) => {
                let text = |made: oarlock_core::Result<Vec<Datum>>| made.err().map(|error| error.to_string());
                assert_eq!(text(found), text(expected), "round {round}, {given:?}");
                continue;
            }
        };
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            assert_eq!(dims(found), dims(expected), "round {round}, {given:?}, output {index}");
            assert_eq!(bytes(found), bytes(expected), "round {round}, {given:?}, output {index}");
        }
        // The passes did the same too.
        let graphs = [&lasting, &fresh].map(|session| {
            session.plan(&inputs).map_or_else(|error| error.to_string(), |plan| plan.graph().to_string())
        });
        assert_eq!(graphs[0], graphs[1], "round {round}, {given:?}");
    }
}

fn dims(datum: &Datum) -> Vec<i64> {
    datum.tensor().map_or_else(|error| panic!("{error}"), |tensor| tensor.dims().to_vec())
}

fn size(dice: &mut Dice, sizes: &[i64]) -> i64 {
    dice.pick(sizes)
}

fn axis(axis: i64) -> [(&'static str, Attribute); 1] {
    [("axis", Attribute::Int(axis))]
}

fn order(order: &[i64]) -> [(&'static str, Attribute); 1] {
    [("perm", Attribute::Ints(order.to_vec()))]
}

/// One size of a value, as a list.
fn size_of(sketch: &mut Sketch, value: ValueId, at: i64) -> ValueId {
    let shape = sketch.op("Shape", &[value]);
    let at = sketch.ints(&[at]);
    sketch.op("Gather", &[shape, at])
}

#[test]
fn attention_that_remembers_computes_the_same_for_every_length() {
    let (heads, width) = (2, 4);
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1, -1, heads * width]);
    let past = ["key", "value"].map(|name| sketch.input(name, Dtype::F32, &[-1, heads, -1, width]));
    let (batch, length) = (size_of(&mut sketch, x, 0), size_of(&mut sketch, x, 1));
    let apart = sketch.ints(&[heads, width]);
    let apart = sketch.op_with("Concat", &[batch, length, apart], &axis(0));
    let part = |sketch: &mut Sketch, seed: u32| {
        let w = sketch.weights(&[heads * width, heads * width], seed);
        let rows = sketch.op("MatMul", &[x, w]);
        let parted = sketch.op("Reshape", &[rows, apart]);
        sketch.op_with("Transpose", &[parted], &order(&[0, 2, 1, 3]))
    };
    let [query, key, value] = [1, 2, 3].map(|seed| part(&mut sketch, seed));
    let key = sketch.op_with("Concat", &[past[0], key], &axis(2));
    let value = sketch.op_with("Concat", &[past[1], value], &axis(2));
    let turned = sketch.op_with("Transpose", &[key], &order(&[0, 1, 3, 2]));
    let scores = sketch.op("MatMul", &[query, turned]);
    let half = sketch.scalar(0.5);
    let scaled = sketch.op("Mul", &[scores, half]);
    // A part of a table as wide as there are keys hides some of them.
    let table = sketch.weights(&[1, 1, 1, 64], 4);
    let (zero, last) = (sketch.ints(&[0]), sketch.ints(&[3]));
    let keys = size_of(&mut sketch, key, 2);
    let mask = sketch.op("Slice", &[table, zero, keys, last]);
    let masked = sketch.op("Add", &[scaled, mask]);
    let weights = sketch.op_with("Softmax", &[masked], &axis(-1));
    let made = sketch.op("MatMul", &[weights, value]);
    let turned = sketch.op_with("Transpose", &[made], &order(&[0, 2, 1, 3]));
    let joined = sketch.ints(&[0, 0, -1]);
    let y = sketch.op("Reshape", &[turned, joined]);
    let sketch = sketch.output(&[y, key, value]);
    check(&sketch, 1, ROUNDS, |dice| {
        let (batch, length) = (size(dice, &[1, 1, 2]), size(dice, &[1, 1, 2, 5]));
        let past = size(dice, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 30]);
        vec![
            random(&[batch, length, heads * width], 5),
            random(&[batch, heads, past, width], 6),
            random(&[batch, heads, past, width], 7),
        ]
    });
}

#[test]
fn convolutions_compute_the_same_for_images_of_every_size() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1, 3, -1, -1]);
    let pads = |pads: &str| [("auto_pad", Attribute::String(pads.to_owned()))];
    let conv = |sketch: &mut Sketch, x: ValueId, dims: &[i64], attributes: &[(&str, Attribute)]| {
        let (w, b) = (sketch.weights(dims, 1), sketch.weights(&dims[..1], 2));
        let made = sketch.op_with("Conv", &[x, w, b], attributes);
        sketch.op("Relu", &[made])
    };
    let strides = ("strides", Attribute::Ints(vec![2, 2]));
    let [same] = pads("SAME_UPPER");
    let a = conv(&mut sketch, x, &[8, 3, 3, 3], &[same.clone(), strides]);
    let b = conv(&mut sketch, a, &[8, 8, 3, 3], &[same]);
    let sum = sketch.op("Add", &[a, b]);
    let pooled = sketch.op("GlobalAveragePool", &[sum]);
    let gate = sketch.op("Sigmoid", &[pooled]);
    let gated = sketch.op("Mul", &[sum, gate]);
    let flat = sketch.op("Flatten", &[pooled]);
    let w = sketch.weights(&[8, 5], 3);
    let y = sketch.op("MatMul", &[flat, w]);
    let sketch = sketch.output(&[y, gated]);
    check(&sketch, 2, ROUNDS, |dice| {
        let dims =
            [size(dice, &[0, 1, 1, 2, 3]), 3, size(dice, &[1, 2, 7, 8, 20]), size(dice, &[1, 8, 9, 17])];
        vec![random(&dims, 5)]
    });
}

#[test]
fn a_loop_over_what_grows_computes_the_same() {
    let mut body = Sketch::new();
    let [iteration, condition, state, step] =
        ["i", "go", "state", "step"].map(|name| body.graph.add(Value::named(name)));
    body.graph.inputs = vec![iteration, condition, state, step];
    let longer = body.op_with("Concat", &[state, step], &axis(0));
    let go = body.op("Identity", &[condition]);
    let sum = body.op("ReduceSum", &[longer]);
    let rows = body.op("Shape", &[longer]);
    let spread = body.op("Expand", &[sum, rows]);
    let longer = body.op("Sub", &[longer, spread]);
    let body = body.output(&[go, longer, sum]).graph;
    let mut sketch = Sketch::new();
    let count = sketch.input("count", Dtype::I64, &[]);
    let [start, step] = ["start", "step"].map(|name| sketch.input(name, Dtype::F32, &[-1, -1]));
    let go = sketch.constant(Constant::new(Dtype::Bool, &[], vec![1]).unwrap());
    let made = sketch.op_of("Loop", &[count, go, start], &[], 2);
    sketch.with_graph("body", body, &[step]);
    let sketch = sketch.output(&made);
    check(&sketch, 3, ROUNDS, |dice| {
        let (width, rows) = (size(dice, &[1, 2, 5]), size(dice, &[0, 1, 3]));
        vec![
            ints(&[], &[size(dice, &[0, 1, 7])]),
            random(&[rows, width], 5),
            random(&[size(dice, &[0, 1, 2]), width], 6),
        ]
    });
}

#[test]
fn what_only_some_sizes_make_needless_is_done_for_the_others() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1, -1, 4]);
    let other = sketch.input("other", Dtype::F32, &[-1, -1, -1]);
    let shape = sketch.op("Shape", &[other]);
    // Each of these does nothing for some sizes: to repeat, to turn, to join and part, to take a part, to put zeros around.
    let wide = sketch.op("Expand", &[x, shape]);
    let sum = sketch.op("Add", &[wide, other]);
    let turned = sketch.op_with("Transpose", &[sum], &order(&[1, 0, 2]));
    let minus_one = sketch.ints(&[-1]);
    let rows = size_of(&mut sketch, turned, 0);
    let target = sketch.op_with("Concat", &[rows, minus_one], &axis(0));
    let joined = sketch.op("Reshape", &[turned, target]);
    let (zero, one) = (sketch.ints(&[0]), sketch.ints(&[1]));
    let part = sketch.op("Slice", &[joined, zero, rows, one]);
    // A number that follows from sizes, and a list that is computed of them.
    let float = sketch.op_with("Cast", &[rows], &[("to", Attribute::Int(1))]);
    let root = sketch.op("Sqrt", &[float]);
    let scaled = sketch.op("Div", &[part, root]);
    let scalars =
        [0i64, 1].map(|number| Constant::new(Dtype::I64, &[], number.to_ne_bytes().to_vec()).unwrap());
    let scalars = scalars.map(|scalar| sketch.constant(scalar));
    let count = sketch.op("Squeeze", &[rows]);
    let range = sketch.op("Range", &[scalars[0], count, scalars[1]]);
    let column = sketch.op("Unsqueeze", &[range, one]);
    let column = sketch.op_with("Cast", &[column], &[("to", Attribute::Int(1))]);
    let y = sketch.op("Add", &[scaled, column]);
    let sketch = sketch.output(&[y, sum]);
    check(&sketch, 4, ROUNDS, |dice| {
        let (a, b) = (size(dice, &[0, 1, 1, 2, 3]), size(dice, &[1, 1, 2, 3]));
        let mut repeated = |own: i64| if own == 1 { size(dice, &[1, 1, 2, 3]) } else { own };
        let dims = [repeated(a), repeated(b), 4];
        vec![random(&[a, b, 4], 5), random(&dims, 6)]
    });
}

#[test]
fn branches_that_depend_on_sizes_are_taken_for_each_size() {
    let branch = |op: &str| {
        let mut sketch = Sketch::new();
        let x = sketch.graph.add(Value::named("x"));
        sketch.graph.inputs = vec![x];
        let y = sketch.op(op, &[x]);
        sketch.output(&[y]).graph
    };
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1, -1]);
    let (rows, columns) = (size_of(&mut sketch, x, 0), size_of(&mut sketch, x, 1));
    let is_square = sketch.op("Equal", &[rows, columns]);
    let condition = sketch.op("Squeeze", &[is_square]);
    let chosen = sketch.op("If", &[condition]);
    sketch.with_graph("then_branch", branch("Neg"), &[x]);
    sketch.with_graph("else_branch", branch("Abs"), &[x]);
    let y = sketch.op_with("Concat", &[chosen, x], &axis(0));
    let sketch = sketch.output(&[y]);
    let sizes = &[0, 1, 2, 3, 4];
    check(&sketch, 5, ROUNDS, |dice| vec![random(&[size(dice, sizes), size(dice, sizes)], 5)]);
}

#[test]
fn shapes_that_do_not_fit_are_refused_after_some_that_did() {
    let mut sketch = Sketch::new();
    let [x, y] = ["x", "y"].map(|name| sketch.input(name, Dtype::F32, &[-1, -1]));
    let sum = sketch.op("Add", &[x, y]);
    let product = sketch.op("MatMul", &[sum, y]);
    let sketch = sketch.output(&[product]);
    let sizes = &[1, 2, 3];
    check(&sketch, 6, ROUNDS, |dice| {
        let mut dims = || [size(dice, sizes), size(dice, sizes)];
        let (x, y) = (dims(), dims());
        vec![random(&x, 5), random(&y, 6)]
    });
}
