//! Products in less than f32: only where that was allowed, and only what can be.

use oarlock_core::{Attribute, Dtype};
use oarlock_engine::graph::ValueId;
use oarlock_engine::{Datum, Precision, Rounding, Session, SessionOptions};

use crate::sketch::{RUNTIME, Sketch, bytes, random, run};

fn session(sketch: &Sketch, precision: Precision) -> Session {
    sketch.session(&SessionOptions { precision, ..SessionOptions::default() })
}

fn rounding(session: &Session, inputs: &[Datum]) -> Rounding {
    let plan = session.plan(inputs).unwrap_or_else(|error| panic!("{error}"));
    Rounding::of(&plan, &RUNTIME, &session.devices()[0])
}

fn floats(datum: &Datum) -> Vec<f32> {
    datum.tensor().and_then(|tensor| tensor.to_vec()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a model exactly and in bf16. Either something is rounded, and then results differ, but by little, or there is a
/// reason for each node, and they do not.
fn check(sketch: &Sketch, inputs: &[Datum], nodes: usize) {
    let (exact, rounded) = (session(sketch, Precision::F32), session(sketch, Precision::Bf16));
    assert_eq!(rounding(&exact, inputs).rounded, 0);
    let Rounding { rounded: count, whole } = rounding(&rounded, inputs);
    assert_eq!(count + whole.len(), nodes, "{whole:?}");
    assert!(whole.iter().all(|reason| reason.starts_with("expected")), "{whole:?}");
    let (expected, found) = (run(&exact, inputs), run(&rounded, inputs));
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(bytes(expected) != bytes(found), count > 0, "{whole:?}");
        let (expected, found) = (floats(expected), floats(found));
        let largest = expected.iter().fold(0f32, |largest, element| largest.max(element.abs()));
        let apart = expected.iter().zip(&found).map(|(a, b)| (a - b).abs());
        assert!(apart.fold(0f32, f32::max) <= 0.02 * largest);
    }
    let again = run(&rounded, inputs);
    assert!(again.iter().zip(&found).all(|(again, found)| bytes(again) == bytes(found)));
}

#[test]
fn products_round_what_they_multiply_where_that_is_allowed() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1, 40]);
    let (a, b, bias) = (sketch.weights(&[40, 70], 1), sketch.weights(&[30, 70], 2), sketch.weights(&[70], 3));
    let hidden = sketch.op("MatMul", &[x, a]);
    let hidden = sketch.op("Add", &[hidden, bias]);
    let hidden = sketch.op("Relu", &[hidden]);
    let y = sketch.op_with("Gemm", &[hidden, b], &[("transB", Attribute::Int(1))]);
    // What is no constant is not rounded.
    let turned = sketch.op("Transpose", &[y]);
    let z = sketch.op("MatMul", &[turned, y]);
    let sketch = sketch.output(&[y, z]);
    for rows in [1, 3, 50] {
        check(&sketch, &[random(&[rows, 40], 4)], 3);
    }
}

#[test]
fn convolutions_round_what_they_multiply_where_that_is_allowed() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[1, 3, 16, 16]);
    let conv = |sketch: &mut Sketch, x: ValueId, dims: &[i64], group: i64| {
        let (w, b) = (sketch.weights(dims, 1), sketch.weights(&dims[..1], 2));
        let pads = vec![dims[2] / 2; 4];
        let attributes = [("pads", Attribute::Ints(pads)), ("group", Attribute::Int(group))];
        sketch.op_with("Conv", &[x, w, b], &attributes)
    };
    let first = conv(&mut sketch, x, &[20, 3, 5, 5], 1);
    let bounded = sketch.op("Relu", &[first]);
    let depthwise = conv(&mut sketch, bounded, &[20, 1, 3, 3], 20);
    let last = conv(&mut sketch, depthwise, &[33, 20, 1, 1], 1);
    let sketch = sketch.output(&[last]);
    check(&sketch, &[random(&[1, 3, 16, 16], 5)], 3);
}

#[test]
fn what_passes_do_not_touch_stays_exact() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[2, 40]);
    let w = sketch.weights(&[40, 70], 1);
    let y = sketch.op("MatMul", &[x, w]);
    let sketch = sketch.output(&[y]);
    let plain = SessionOptions { is_plain: true, ..SessionOptions::default() };
    let rounded = SessionOptions { precision: Precision::Bf16, ..plain.clone() };
    let inputs = [random(&[2, 40], 2)];
    let made = [plain, rounded].map(|options| bytes(&run(&sketch.session(&options), &inputs)[0]));
    assert_eq!(made[0], made[1]);
}

/// The dtype of what each convolution makes, in order.
fn made_by_convolutions(session: &Session, inputs: &[Datum]) -> Vec<Option<Dtype>> {
    let plan = session.plan(inputs).unwrap_or_else(|error| panic!("{error}"));
    let graph = plan.graph();
    let convolutions = graph.nodes.iter().filter(|node| &*node.op == "Conv");
    convolutions.map(|node| graph.value(node.output(0)?).dtype()).collect()
}

/// Convolutions of 24 channels with pads, so that images keep their size.
fn conv(sketch: &mut Sketch, x: ValueId, dims: &[i64], group: i64) -> ValueId {
    let (w, b) = (sketch.weights(dims, 1), sketch.weights(&dims[..1], 2));
    let attributes = [("pads", Attribute::Ints(vec![dims[2] / 2; 4])), ("group", Attribute::Int(group))];
    sketch.op_with("Conv", &[x, w, b], &attributes)
}

#[test]
fn images_that_only_convolutions_read_are_kept_rounded() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[1, 3, 12, 12]);
    let first = conv(&mut sketch, x, &[24, 3, 3, 3], 1);
    let wide = conv(&mut sketch, first, &[48, 24, 1, 1], 1);
    let wide = sketch.op("Relu", &[wide]);
    let depthwise = conv(&mut sketch, wide, &[48, 1, 3, 3], 48);
    let narrow = conv(&mut sketch, depthwise, &[24, 48, 1, 1], 1);
    // It is added, and so read by a convolution in the end.
    let sum = sketch.op("Add", &[narrow, first]);
    let last = conv(&mut sketch, sum, &[10, 24, 1, 1], 1);
    let sketch = sketch.output(&[last]);
    let inputs = [random(&[1, 3, 12, 12], 6)];
    check(&sketch, &inputs, 5);
    let exact = made_by_convolutions(&session(&sketch, Precision::F32), &inputs);
    assert_eq!(exact, [Some(Dtype::F32); 5]);
    let session = session(&sketch, Precision::Bf16);
    if rounding(&session, &inputs).rounded > 0 {
        let [images @ .., output] = &*made_by_convolutions(&session, &inputs) else { panic!("five") };
        assert_eq!((images, *output), (&[Some(Dtype::BF16); 4][..], Some(Dtype::F32)));
    }
}

#[test]
fn images_that_others_read_or_convolutions_cannot_are_kept_whole() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[1, 4, 8, 8]);
    // What is read by a pool, or given out, or has an odd number of channels, or an activation that does more than cut off.
    let pooled = conv(&mut sketch, x, &[8, 4, 3, 3], 1);
    let attributes = [("kernel_shape", Attribute::Ints(vec![2, 2]))];
    let pool = sketch.op_with("MaxPool", &[pooled], &attributes);
    let given = conv(&mut sketch, pool, &[8, 8, 1, 1], 1);
    let odd = conv(&mut sketch, given, &[7, 8, 1, 1], 1);
    let curved = conv(&mut sketch, odd, &[6, 7, 1, 1], 1);
    let curved = sketch.op("HardSwish", &[curved]);
    let kept = conv(&mut sketch, curved, &[6, 6, 1, 1], 1);
    let last = conv(&mut sketch, kept, &[6, 6, 1, 1], 1);
    let sketch = sketch.output(&[given, last]);
    let inputs = [random(&[1, 4, 8, 8], 7)];
    let (exact, rounded) = (session(&sketch, Precision::F32), session(&sketch, Precision::Bf16));
    for (exact, rounded) in run(&exact, &inputs).iter().zip(&run(&rounded, &inputs)) {
        let (exact, rounded) = (floats(exact), floats(rounded));
        let largest = exact.iter().fold(0f32, |largest, element| largest.max(element.abs()));
        assert!(exact.iter().zip(&rounded).all(|(a, b)| (a - b).abs() <= 0.02 * largest));
    }
    if rounding(&rounded, &inputs).rounded > 0 {
        let whole = Some(Dtype::F32);
        let made = made_by_convolutions(&rounded, &inputs);
        assert_eq!(made, [whole, whole, whole, whole, Some(Dtype::BF16), whole]);
    }
}

#[test]
fn images_of_other_sizes_are_kept_rounded_as_well() {
    let mut sketch = Sketch::new();
    let x = sketch.input("x", Dtype::F32, &[-1, 4, -1, -1]);
    let first = conv(&mut sketch, x, &[24, 4, 3, 3], 1);
    let depthwise = conv(&mut sketch, first, &[24, 1, 3, 3], 24);
    let last = conv(&mut sketch, depthwise, &[5, 24, 1, 1], 1);
    let sketch = sketch.output(&[last]);
    let (exact, rounded) = (session(&sketch, Precision::F32), session(&sketch, Precision::Bf16));
    for dims in [[1, 4, 9, 9], [2, 4, 16, 5], [1, 4, 9, 9], [1, 4, 1, 1]] {
        let inputs = [random(&dims, 8)];
        let (expected, found) = (floats(&run(&exact, &inputs)[0]), floats(&run(&rounded, &inputs)[0]));
        let largest = expected.iter().fold(0f32, |largest, element| largest.max(element.abs()));
        assert!(expected.iter().zip(&found).all(|(a, b)| (a - b).abs() <= 0.02 * largest), "{dims:?}");
        if rounding(&rounded, &inputs).rounded > 0 {
            let made = made_by_convolutions(&rounded, &inputs);
            assert_eq!(made, [Some(Dtype::BF16), Some(Dtype::BF16), Some(Dtype::F32)], "{dims:?}");
        }
    }
}
